"""The MCP client: reads server configurations, connects to servers, and restarts those that end."""
