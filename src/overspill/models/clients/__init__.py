"""One file for each client library, so that opening a target loads only the one it speaks through."""
