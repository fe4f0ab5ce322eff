"""Overspill for programs that call commands: keep what a command prints, and read it back."""
