"""The demo: a classifier written in plain JAX, trained on a virtual 4x4 grid of 32x32 tiles.

`gl.on_grid` puts the whole training step on the grid, over 2x4 emulated devices; the same training
in plain JAX is the judge. What is shown first needs no JAX, which takes seconds to start.
"""

from __future__ import annotations

from gridlayout.demo.progress import INTRODUCTION, Progress

__all__ = ["INTRODUCTION", "Progress"]
