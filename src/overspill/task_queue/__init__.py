"""Slow tools on the workers of an existing task engine: the session's side."""
