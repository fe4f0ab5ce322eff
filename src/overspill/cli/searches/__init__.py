"""What `extract` and `get` search, and how they print what was found."""
