"""Strings and bytes: encodings, lines, tokens, lenient JSON, names, patterns, sizes for people."""
