"""Running compiled TTNN programs: one function per op, values in the layouts of their types."""
