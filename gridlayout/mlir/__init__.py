"""Parser of MLIR text: modules, functions and operations; types and attributes remain text."""
