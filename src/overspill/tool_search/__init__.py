"""Tools in few tokens: a model finds them, gets them described, and calls them through one tool."""
