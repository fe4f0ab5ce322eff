"""Outputs in a PostgreSQL database, which many machines may share."""
