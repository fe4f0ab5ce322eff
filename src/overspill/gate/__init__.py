"""Where every tool result passes: measured, then passed on, kept or cut."""
