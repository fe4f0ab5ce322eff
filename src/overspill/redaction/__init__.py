"""Secrets in outputs: found by shape, by value and by pattern, and shown as marks."""
