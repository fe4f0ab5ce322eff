"""Works with strings and bytes: encodings, lines, tokens, lenient JSON, names, patterns, and sizes for people."""
