"""Measures every result, then passes it on, keeps it or cuts it."""
