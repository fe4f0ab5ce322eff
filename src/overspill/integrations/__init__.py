"""One line in your framework. Each module here serves one framework and needs that framework's package, and nothing else does."""
