"""Finds the rows of tables that a question names, joins, compares or orders."""
