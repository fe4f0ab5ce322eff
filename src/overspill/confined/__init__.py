"""Run our own code on hostile input, in a process that cannot open anything and ends in time."""
