"""Sophon (okk, BM168x): chips, and tensors in the local memory of their NPUs."""

from __future__ import annotations

from gridlayout.sophon.chip import BM1684, BM1684X, BM1688, BM1690, Chip, LocalFit
from gridlayout.sophon.occupancy import Overlap, overlap
from gridlayout.sophon.tensors import LocalLayout, SystemLayout, local, matrix, system
from gridlayout.sophon.widths import Width, best_width

__all__ = [
    "BM1684",
    "BM1684X",
    "BM1688",
    "BM1690",
    "Chip",
    "LocalFit",
    "LocalLayout",
    "Overlap",
    "SystemLayout",
    "Width",
    "best_width",
    "local",
    "matrix",
    "overlap",
    "system",
]
