"""The document model: `GridLayout`, its collapse intervals (Tenstorrent, seed 004)."""
