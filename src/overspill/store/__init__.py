"""Where outputs are kept: the protocol in `base`, one backend a file."""
