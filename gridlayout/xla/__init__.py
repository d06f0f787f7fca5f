"""XLA: tiled layouts, `f32[3,5]{1,0:T(2,2)}`."""

from __future__ import annotations

from gridlayout.xla.tiled import COMBINE, ELEMENT_TYPES, XlaLayout, from_jax, layout, tpu_tiles

__all__ = ["COMBINE", "ELEMENT_TYPES", "XlaLayout", "from_jax", "layout", "tpu_tiles"]
