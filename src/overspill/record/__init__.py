"""What happened: events, the ledger that collects them, and the views of it."""
