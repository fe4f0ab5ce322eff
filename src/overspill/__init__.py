"""Overspill: large tool outputs kept whole and out of the context, slow tools off the turn."""
