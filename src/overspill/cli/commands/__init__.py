"""One module for each command. The modules beside this folder are what commands share."""
