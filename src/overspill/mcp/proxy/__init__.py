"""The MCP proxy: sits between a client and its servers, and acts only on results that are too large or too slow."""
