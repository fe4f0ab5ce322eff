"""Cutters: one file for each kind of text. Each cuts a span of a reading into records, and `index.py` calls it."""
