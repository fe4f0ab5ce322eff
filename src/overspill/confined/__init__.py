"""Run our own code on hostile input, in a process that can open nothing and that ends in time."""
