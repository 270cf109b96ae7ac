"""Requests to addresses that callers chose: `rules` says which may be called, `client` calls them."""
