"""The records of all primitives: their rules, and the facts that reports and plans use.

To add a primitive, write its record in the module of its kind, and name a new module's table here.
Users add rules with `def_rule` (`user_rules.py`). Primitives without a rule fall back, and the
report says so.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable
from dataclasses import replace
from threading import Lock
from typing import Any

from gridlayout.ops.decisions.factors import Factors
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import PLAIN, Decide, Record
from gridlayout.ops.decisions.specs import is_of_keys
from gridlayout.ops.primitives.along import ALONG
from gridlayout.ops.primitives.control import CONTROL
from gridlayout.ops.primitives.convolution import CONVOLUTION
from gridlayout.ops.primitives.elementwise import ELEMENTWISE
from gridlayout.ops.primitives.fourier import FOURIER
from gridlayout.ops.primitives.linalg import LINALG
from gridlayout.ops.primitives.pads import PADS
from gridlayout.ops.primitives.parts import PARTS
from gridlayout.ops.primitives.pooling import POOLING
from gridlayout.ops.primitives.ragged import RAGGED
from gridlayout.ops.primitives.random import RANDOM
from gridlayout.ops.primitives.reductions import REDUCTIONS
from gridlayout.ops.primitives.shapes import SHAPES
from gridlayout.ops.primitives.slices.records import INDEXING
from gridlayout.ops.primitives.slices.slicing import SLICING
from gridlayout.ops.primitives.stencils import STENCILS
from gridlayout.ops.primitives.vectors import VECTORS
from gridlayout.ops.primitives.views import VIEWS
from gridlayout.ops.products.dot_general import PRODUCTS

_HOST = "the host gets the full array"
_KERNEL = "a kernel chooses its blocks; call it on each core's buffer with gl.map_shards"
# Primitives that call the host or have their own sharding.
_GLOBAL = {
    **{name: Record(is_global=True, reason=_HOST) for name in ("pure_callback", "io_callback")},
    **{name: Record(is_global=True) for name in ("debug_callback", "shard_map")},
    # Pallas' interpreter retraces a kernel, which fails inside `shard_map`.
    "pallas_call": Record(is_global=True, reason=_KERNEL),
}


def merged(tables: Iterable[dict[str, Record]]) -> dict[str, Record]:
    """Return the union of tables; `ValueError` if two of them name the same primitive."""
    found: dict[str, Record] = {}
    for table in tables:
        if twice := found.keys() & table.keys():
            raise ValueError(f"two tables have records of {', '.join(sorted(twice))}")
        found |= table
    return found


_LOCK = Lock()


class _Records(UserDict[str, Record]):
    """Records by primitive. version: grows with every change; it is in programs' cache keys."""

    version = 0

    def first(self, name: str, rule: Decide, **facts: Any) -> None:
        """Put a rule before the others of a primitive, and change other facts."""
        with _LOCK:
            record = self.get(name, PLAIN)
            self[name] = replace(record, rules=(rule, *record.rules), of_logical=None, **facts)

    def __setitem__(self, name: str, record: Record) -> None:
        super().__setitem__(name, record)
        self.version += 1

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.version += 1


RECORDS = _Records(
    merged(
        (
            *(ELEMENTWISE, REDUCTIONS, ALONG, VECTORS, PARTS, PADS, INDEXING, SLICING),
            *(POOLING, LINALG),
            *(
                RAGGED,
                CONVOLUTION,
                PRODUCTS,
                FOURIER,
                SHAPES,
                RANDOM,
                CONTROL,
                VIEWS,
                STENCILS,
                _GLOBAL,
            ),
        )
    )
)


def rules_version() -> int:
    """Return a number that changes whenever the records change."""
    return RECORDS.version


def record_of(name: str) -> Record:
    """Return the record of a primitive; `PLAIN` if nothing is known of it."""
    return RECORDS.get(name, PLAIN)


def factors_of(eqn: Any) -> Factors | None:
    """Return the factors of an equation; None if some of its arrays have no elements."""
    ins = [tuple(atom.aval.shape) for atom in eqn.invars]
    outs = [tuple(var.aval.shape) for var in eqn.outvars]
    if any(0 in shape for shape in (*ins, *outs)):
        return None
    return record_of(eqn.primitive.name).factors(eqn.params, ins, outs)


def rules_of(op: Op) -> tuple[Decide, ...]:
    """Return the rules for an op in the order in which they are tried; none if it falls back."""
    record, avals = record_of(op.name), (*op.ins, *op.outs)
    if not record.takes_keys and any(map(is_of_keys, avals)):
        return ()
    if not record.takes_empty and any(0 in aval.shape for aval in avals):
        return () if record.of_empty is None else (record.of_empty, *record.rules)
    return record.rules


def flops(op: Op) -> int:
    """Return the floating-point operations of an op on logical elements."""
    return record_of(op.name).flops(op)
