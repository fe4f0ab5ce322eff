"""One way to ask a language model, wherever it runs."""
