"""Finds secrets in outputs by shape, value or pattern, and shows them as marks."""
