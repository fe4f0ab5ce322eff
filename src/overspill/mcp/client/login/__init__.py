"""Servers behind a login: where the tokens are kept, how they are renewed, and how a person logs in."""
