"""The configuration files of MCP clients: where they lie, and how their servers come to run through the proxy and back."""
