"""Strings and bytes: encodings, tokens, JSON that others wrote, names, patterns, sizes for people."""
