"""Measure every result, then pass it on, keep it or cut it."""
