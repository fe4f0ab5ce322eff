"""Agent files: how to read them, and what they can set."""
