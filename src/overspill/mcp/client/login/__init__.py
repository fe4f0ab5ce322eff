"""Servers behind a login: who holds the tokens, how they are renewed, and how a person logs in."""
