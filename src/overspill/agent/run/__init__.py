"""One run of an agent, turn by turn."""
