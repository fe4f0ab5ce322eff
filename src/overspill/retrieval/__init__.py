"""The tools that read kept outputs back, and what they answer."""
