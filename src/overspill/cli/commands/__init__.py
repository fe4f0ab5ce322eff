"""One module for each command. The modules next to this folder are what commands share."""
