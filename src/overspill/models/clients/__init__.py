"""One file for each kind of provider, so that opening a model loads only the client library it needs.

Each has `connect(provider, name, endpoint)`.
"""
