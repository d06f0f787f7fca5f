"""The demo: a network in plain JAX whose arrays do not divide evenly, trained on 2x4 cores.

`gl.on_grid` runs the training step over 2x4 emulated devices. Plain JAX runs the same step on the
same devices, with the same shardings, on arrays that are padded by hand: it refuses uneven ones.
A page shows the layouts and the program, and a plan of a large network for real chips.

This module imports no JAX, which takes seconds to start, so that the introduction is shown at once.
"""

from __future__ import annotations

__all__ = ["INTRODUCTION"]

INTRODUCTION = """\
gridlayout demo: trains a network written in plain JAX on a grid of 2x4 cores,
one on each of 8 emulated devices. Its arrays do not divide evenly: the parts
are uneven, and are padded to tiles of 8x8. The results must not change.
"""
