"""SQL over stored outputs: finds their tables, loads each once, and queries them in a process that can open nothing else."""
