"""SQL over stored outputs: find the tables in them, load each once, and query them in a process that can open nothing else."""
