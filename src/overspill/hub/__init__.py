"""The resident process that serves all conversations of a user, and the thin front that each of them starts."""
