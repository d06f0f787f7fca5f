"""The document model: `GridLayout` as tt-mlir's document describes it (Tenstorrent)."""
