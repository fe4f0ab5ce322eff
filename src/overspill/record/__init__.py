"""What happened in a session: events, the ledger that collects them, and views of it."""
