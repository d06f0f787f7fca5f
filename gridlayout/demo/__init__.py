"""The demo: a classifier written in plain JAX, trained on a virtual 4x4 grid of 32x32 tiles.

`gl.on_grid` runs the complete training step on the grid, over 2x4 emulated devices; its results are
compared with the same training in plain JAX. This package imports no JAX, which takes seconds to
start, so that the introduction is shown at once.
"""

from __future__ import annotations

from gridlayout.demo.progress import INTRODUCTION, Progress

__all__ = ["INTRODUCTION", "Progress"]
