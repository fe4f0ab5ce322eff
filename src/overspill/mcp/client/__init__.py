"""The MCP client: reads server configurations, connects to servers, and restarts servers that end."""
