"""The answer: which records fit, how much of each, and how they are written."""
