"""The document model: `GridLayout`, its collapse intervals (Tenstorrent, tt-mlir)."""
