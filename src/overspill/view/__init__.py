"""The read-only web page over stores and their journals. Stored content is shown as text, and nothing here changes it."""
