"""Overspill for whatever calls commands: keep what a command prints, and read it back."""
