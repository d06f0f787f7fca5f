"""`CollectiveOp`: one collective of a dump: its kind, device groups, mesh axes and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gridlayout.caching import cached
from gridlayout.dump.moves.meshes import Meshes
from gridlayout.dump.moves.shardings import result_bytes
from gridlayout.dump.text.hlo import new_arrays
from gridlayout.dump.text.mlir import result_names
from gridlayout.dump.text.statements import Statement
from gridlayout.dump.values.top_keys import TopKeys
from gridlayout.dump.values.type_texts import TENSOR, Sizes, array_sizes, dense_bytes, extents, read

KINDS = frozenset(
    [
        *("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "ragged_all_to_all"),
        *("collective_permute", "collective_broadcast", "mesh_partition", "point_to_point"),
        *("distribute_tensor", "aggregate_tensor", "all_slice", "mesh_shard"),
        *("all_to_all_dispatch", "all_to_all_combine"),
    ]
)
# Those in which devices receive nothing from each other.
LOCAL = ("mesh_partition", "all_slice", "mesh_shard", "distribute_tensor")
_DIALECTS = ("stablehlo", "sdy", "ttnn", "ttir", "mhlo", "d2m")


@dataclass(frozen=True)
class CollectiveOp:
    """One collective of a dump. Sizes are in bytes per device.

    line, op, name, function: its first occurrence. kind: all_gather, all_reduce, reduce_scatter,
    all_to_all, collective_permute, ... groups: the number of groups of at most `group_size`
    devices; both are 0 if the dump does not state them. axes: the mesh axes that the groups run
    along; empty if unknown. axis_sizes: their sizes; empty if unknown, or if the groups run along
    parts of axes. result_bytes: bytes of the result that a device holds; None for a type that can't
    be read. received_bytes: the most bytes that a device receives, None if these or the size of
    groups are unknown; an all_reduce counts as a reduce_scatter and an all_gather. count: the
    number of equal collectives.
    """

    line: int
    op: str
    name: str
    function: str
    kind: str
    groups: int
    group_size: int
    axes: tuple[str, ...]
    result_bytes: int | None
    count: int = 1
    axis_sizes: tuple[int, ...] = ()

    @property
    def received_bytes(self) -> int | None:
        """The most bytes that a device receives, per execution; None if it is unknown."""
        n, held = self.group_size, self.result_bytes
        if self.kind == "collective_permute" and n == 0:  # from one device, whichever it is
            return held
        if self.kind in LOCAL or n == 1:
            return 0
        if n == 0 or held is None:
            return None
        if self.kind in ("all_gather", "all_to_all", "ragged_all_to_all"):
            return held * (n - 1) // n
        if self.kind == "all_reduce":
            return 2 * held * (n - 1) // n
        return held * (n - 1) if self.kind == "reduce_scatter" else held


@cached(entries=1024)
def kind_of(op: str) -> str | None:
    """Return the kind of collective that an op is, as in `CollectiveOp`; None if it is none.

    >>> kind_of("all-gather-start"), kind_of("ttnn.all_reduce"), kind_of("add")
    ('all_gather', 'all_reduce', None)
    """
    dialect, _, word = op.rpartition(".")
    if dialect and dialect not in _DIALECTS:
        return None
    word = word.replace("-", "_").removesuffix("_start").removesuffix("_async")
    return word if word in KINDS else None


class Collectives:
    """The collectives of one pass; those of most bytes per device are stored."""

    def __init__(self, limit: int) -> None:
        self.ops = TopKeys(limit)

    def read(self, statement: Statement, meshes: Meshes, function: str) -> None:
        """Add the collective that a line states, if any."""
        kind = kind_of(statement.op)
        if kind is None:
            return
        text, found = statement.text, statement.instruction
        groups, size, axes = meshes.groups_of(text, kind)
        nbytes = _result_bytes(statement, meshes)
        name = found.name if found else result_names(text, 1)[0]
        key = (statement.op, kind, groups, size, axes, nbytes, function)
        self.ops.add(key, nbytes or 0, (statement.line, name))

    def worst_first(self, meshes: Meshes) -> tuple[CollectiveOp, ...]:
        """Return the collectives, sorted by received bytes. meshes: those that name the axes."""
        ops = []
        for key, count, (line, name) in self.ops.worst_first():
            op, kind, groups, size, group, nbytes, function = key
            axes = meshes.axes_of(group)
            where = (line, op, name, function, kind, groups, size, axes)
            ops.append(CollectiveOp(*where, nbytes, count, meshes.sizes_of(axes, size)))
        return tuple(sorted(ops, key=_most_first))


def _most_first(op: CollectiveOp) -> tuple[int, int]:
    return -(op.received_bytes or 0) * op.count, op.line


def _result_bytes(statement: Statement, meshes: Meshes) -> int | None:
    """Return the bytes of a collective's result on one device; None if a type can't be read."""
    if statement.op.startswith("sdy."):
        return result_bytes(statement.text, meshes)
    if (found := statement.instruction) is not None:
        operands = len(found.operands)
        sizes = new_arrays(found.op, operands, array_sizes(found.kind))
        if found.op.endswith("-start"):
            sizes = sizes[:operands]  # without contexts
        return _sum(sizes)
    if statement.results:
        return _sum(read(result.text) for result in statement.results)
    made = statement.text.rpartition("->")[2]
    types = TENSOR.findall(made)
    if not types or len(types) < made.count("tensor<"):
        return None
    return sum(dense_bytes(extents(dims), element) for dims, element in types)


def _sum(sizes: Iterable[Sizes]) -> int | None:
    found = list(sizes)
    return None if any(each.reason for each in found) else sum(each.nbytes for each in found)
