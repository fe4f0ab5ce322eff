"""Programs of models over stored outputs and tools."""
