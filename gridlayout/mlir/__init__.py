"""MLIR's text as programs: modules, functions, operations, with their types and attributes as text."""
