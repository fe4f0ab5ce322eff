"""The messages of a framework's request: which results are in them, and the same messages with some results replaced."""
