"""The answer: chooses the records that fit, decides how much of each to show, and writes them."""
