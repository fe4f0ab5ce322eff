"""Finds and reads tables: where they are, their headers and cells, and what these mean. Cards, SQL, engine and viewer use it."""
