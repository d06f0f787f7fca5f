"""The rules: how each lax primitive runs on storage, per shard, with padding carried as a fact.

A rule is a function `(ctx, eqn, *values) -> (how, result)`, or `-> None` where it knows none for
these values. To add one, write it in the module of
its kind and name it here. Primitives without a rule fall back, and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gridlayout.ops.along import ALONG
from gridlayout.ops.dot import dot_general
from gridlayout.ops.elementwise import ELEMENTWISE, barrier, elementwise, key
from gridlayout.ops.indexing import INDEXING
from gridlayout.ops.reductions import NEUTRAL, reduction
from gridlayout.ops.shapes import (
    broadcast_in_dim,
    identity,
    reshape,
    squeeze,
    transpose,
    with_layout,
)

RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(NEUTRAL, reduction),
    **ALONG,
    **INDEXING,
    "dot_general": dot_general,
    "broadcast_in_dim": broadcast_in_dim,
    "transpose": transpose,
    "squeeze": squeeze,
    "reshape": reshape,
    **dict.fromkeys(("reshard", "sharding_constraint", "mesh_cast", "device_put"), identity),
    "optimization_barrier": barrier,
    **dict.fromkeys(("random_seed", "random_wrap", "random_fold_in"), key),
    "with_layout": with_layout,
}
