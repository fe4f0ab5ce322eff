"""What the proxy and the viewer share when they serve HTTP: an address, and connections that cannot crowd out others."""
