"""One file for each client library, so that opening a model loads only the one it needs.

Each has `connect(provider, name, endpoint)`.
"""
