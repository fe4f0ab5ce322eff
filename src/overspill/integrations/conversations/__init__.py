"""A framework's messages and results: which results are in a request, and the same with some of them replaced."""
