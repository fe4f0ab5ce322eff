"""The Model Context Protocol: a client, the proxy, and the config files of other clients."""
