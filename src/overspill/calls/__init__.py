"""Running tools: each call races the clock, and slow ones keep running in the background."""
