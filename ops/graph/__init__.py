"""A jaxpr as nodes and numbered values, and what follows from that alone."""
