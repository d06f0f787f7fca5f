"""Memory of values: sizes of their types, the largest of them, live ranges and peaks."""
