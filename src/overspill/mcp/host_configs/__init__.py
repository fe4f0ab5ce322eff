"""Find the configuration files of MCP clients, make their servers run through the proxy, and undo it."""
