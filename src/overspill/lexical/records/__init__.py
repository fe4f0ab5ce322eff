"""Cutters: one file for each kind of text, each turning a stretch of a reading into records."""
