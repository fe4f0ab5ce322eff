"""Outputs as files below one root."""
