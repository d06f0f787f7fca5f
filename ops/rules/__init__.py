"""The rules: how each primitive's decisions are made, a module a kind."""
