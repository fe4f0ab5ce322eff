"""builtin/lexical: finds the records of a stored output that answer a question, within a token budget, without a model.

Start with `index.build` and `select.select`. The package itself imports nothing, because many callers need only `words`.
"""
