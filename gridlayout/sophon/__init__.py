"""Sophon (okk, BM168x): chips, and tensors in local memory of NPUs and in system memory."""

from __future__ import annotations

from gridlayout.sophon.address_map import MemoryMap, memory_map
from gridlayout.sophon.chip import BM1684, BM1684X, BM1688, BM1690, Chip, LocalFit
from gridlayout.sophon.copies import Copy, Move, copy
from gridlayout.sophon.local_memory import LocalLayout, local, matrix
from gridlayout.sophon.occupancy import Overlap, Reuse, overlap, reuse
from gridlayout.sophon.system_memory import SystemLayout, system
from gridlayout.sophon.tensors import Tensor, ViewElement
from gridlayout.sophon.widths import Width, best_width

__all__ = ["BM1684", "BM1684X", "BM1688", "BM1690", "Chip", "Copy", "LocalFit", "LocalLayout"]
__all__ += ["MemoryMap", "Move", "Overlap", "Reuse", "SystemLayout", "Tensor", "ViewElement"]
__all__ += ["Width", "best_width", "copy", "local", "matrix", "memory_map", "overlap", "reuse"]
__all__ += ["system"]
