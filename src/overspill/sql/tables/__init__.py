"""The tables in an output. Runs in the loading process: everything here reads hostile text."""
