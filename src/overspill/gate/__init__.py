"""Measures every result, then passes it on, stores it or shortens it."""
