"""Rules: how the decisions of each primitive are made, one module per kind of primitive."""
