"""A store that does not answer: outputs wait for it in memory, and sessions begin without it."""
