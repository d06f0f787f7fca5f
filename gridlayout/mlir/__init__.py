"""MLIR text as programs: modules, functions and operations; types and attributes stay text."""
