"""The MCP proxy: stands between a client and its servers, and acts only on results that are too large or too slow."""

from overspill.proxy.http import Listening, serve_http
from overspill.proxy.options import USUAL, Options
from overspill.proxy.scopes import Scopes
from overspill.proxy.serve import open_scopes, serve_stdio

__all__ = ["USUAL", "Listening", "Options", "Scopes", "open_scopes", "serve_http", "serve_stdio"]
