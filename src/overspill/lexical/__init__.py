"""builtin/lexical: finds the records of a stored output that answer a question, within a token budget, without a model.

`index.build` and `select.select` are the ways in. The package itself imports nothing: words alone are needed more often than all
of the engine.
"""
