"""Rows of tables, and what a question asks of them: which are named, joined, compared, in order."""
