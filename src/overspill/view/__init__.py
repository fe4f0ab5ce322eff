"""The read-only web page over stores and their journals. Whatever is stored is shown as text, and nothing here changes it."""
