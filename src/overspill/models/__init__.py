"""One way to ask a language model, whoever serves it."""
