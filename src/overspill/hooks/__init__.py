"""Built-in tools of coding agents: their hooks call us with what a tool returned, and take what to show instead."""
