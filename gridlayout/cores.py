"""What runs on a core, inside of `gl.map_shards`: the core's index, and what cores exchange."""

from __future__ import annotations

from gridlayout.ops.array.cores import all_gather, core_index, pmax, pmin, psum, shift

__all__ = ["all_gather", "core_index", "pmax", "pmin", "psum", "shift"]


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
