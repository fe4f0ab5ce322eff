"""Where outputs are kept: the protocols, one file or folder for each kind of store, and `open_store`, which creates them."""
