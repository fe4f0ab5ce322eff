"""Agent files: reading them, and what they may set."""
