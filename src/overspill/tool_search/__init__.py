"""Tools in few tokens: a model finds them, has them described, and calls them through one tool."""
