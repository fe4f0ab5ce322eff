"""The public entry points: a session, its blocking twin, and extraction without a session."""
