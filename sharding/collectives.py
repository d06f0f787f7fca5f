"""`Collective`: the description of one collective, and functions that execute collectives.

A `Collective` exists before anything runs: its kind, mesh axes, group size and the bytes that a
device receives. The functions at the end of this module execute collectives inside `shard_map`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import MEMORY_SPACES
from gridlayout.layouts.mesh_axes import Axes

ALL_GATHER, ALL_REDUCE, ALL_TO_ALL = "all_gather", "all_reduce", "all_to_all"
PERMUTE, REDUCE_SCATTER = "permute", "reduce_scatter"
COPY = "copy"  # of a device's own part, from one memory space to another


@dataclass(frozen=True)
class Collective:
    """One collective operation.

    kind: all_gather, all_reduce, all_to_all, permute or reduce_scatter; or copy: each device copies
    its own part between two memory spaces, which `axes` then names. axes: the mesh axes of the
    groups. group_size: devices per group. received_bytes: bytes that a device receives, the most of
    all devices; an all_reduce counts as a reduce_scatter and an all_gather. receivers: the number
    of devices, of all groups, that receive. count: the number of executions, in a loop. together:
    the number of collectives that are combined into one with it, including itself. copied_bytes:
    bytes that a device also copies locally, because parts along any dim but the first are not
    contiguous.

    >>> print(Collective("all_gather", ("x",), 4, 65536, 8))
    all_gather x:4 65,536 B
    """

    kind: str
    axes: Axes
    group_size: int
    received_bytes: int
    receivers: int
    count: int = 1
    together: int = 1
    copied_bytes: int = field(default=0, compare=False)

    @property
    def latency_only(self) -> Collective:
        """The same collective with 0 bytes."""
        return replace(self, received_bytes=0, copied_bytes=0)

    @property
    def total_bytes(self) -> int:
        """Bytes received, summed over all devices and executions."""
        return self.received_bytes * self.receivers * self.count

    def times(self, count: int) -> Collective:
        """Return the same collective, executed `count` times as often."""
        return replace(self, count=self.count * count)

    @property
    def words(self) -> str:
        """The collective in words.

        >>> print(Collective("all_gather", ("x",), 4, 65536, 8).words)
        65,536 B by all-gather over x (4 devices)
        """
        often = f", {self.count} times" if self.count != 1 else ""
        if self.kind == COPY:
            return f"{self.received_bytes:,} B by copy from {' to '.join(self.axes)}{often}"
        name = self.kind.replace("_", "-")
        over = f"over {' and '.join(self.axes)} ({self.group_size} devices)"
        others = f", together with {self.together - 1} more" if self.together > 1 else ""
        return f"{self.received_bytes:,} B by {name} {over}{often}{others}"

    def __str__(self) -> str:
        often = f" x{self.count}" if self.count != 1 else ""
        if self.kind == COPY:
            return f"{self.kind} {'->'.join(self.axes)} {self.received_bytes:,} B{often}"
        axes = "*".join(self.axes)
        return f"{self.kind} {axes}:{self.group_size} {self.received_bytes:,} B{often}"


def in_words(collectives: Sequence[Collective]) -> list[str]:
    """Return what each device receives, in words; the rounds of one collective are summed.

    >>> in_words([Collective("permute", ("x",), 4, n, 4) for n in (96, 96, 64)])
    ['up to 256 B by permute over x (4 devices), in 3 rounds']
    """
    rounds: dict[Any, list[Collective]] = {}
    for each in collectives:
        rounds.setdefault((each.kind, each.axes, each.group_size, each.count), []).append(each)
    found = []
    for some in rounds.values():
        words = replace(some[0], received_bytes=sum(each.received_bytes for each in some)).words
        found.append(f"up to {words}, in {len(some)} rounds" if len(some) > 1 else words)
    return found


class Devices(Protocol):
    """The sizes and names of mesh axes that collectives need, as `gl.DeviceGrid` has them."""

    @property
    def size(self) -> int:
        """The number of all devices."""

    def count(self, axes: Axes) -> int:
        """Return the number of devices along some axes."""

    def names(self, axes: Axes) -> Axes:
        """Return the names of the axes for users."""


class Turn(NamedTuple):
    """A turn of a kernel: it sends, or it computes.

    collective: the number of the collective; None to compute. operand: the number of the operand
    that is sent, if it is one.
    """

    collective: int | None = None
    operand: int | None = None


class Collectives:
    """A list of the collectives of one decision, in order.

    Each method appends to `found` and returns this object. Collectives without bytes, or with one
    device per group, are not appended. Byte counts are per device. A kernel that computes between
    its collectives records that too, by `compute`: `turns` is the order of both.

    >>> from gridlayout import DeviceGrid
    >>> Collectives(DeviceGrid((1,))).all_gather(("x",), 64).found
    []
    """

    def __init__(self, device: Devices) -> None:
        self.device = device
        self.found: list[Collective] = []
        self.turns: list[Turn] = []
        self._times = 1
        self._operand: int | None = None

    def compute(self) -> Collectives:
        """Record that devices compute now."""
        self.turns.append(Turn())
        return self

    @contextmanager
    def of(self, operand: int) -> Iterator[Collectives]:
        """Record of the collectives inside that they send this operand."""
        self._operand = operand
        yield self
        self._operand = None

    @contextmanager
    def repeated(self, times: int) -> Iterator[Collectives]:
        """Record everything inside as repeated, in turns."""
        start, self._times = len(self.turns), times
        yield self
        self.turns[start:] = self.turns[start:] * times
        self._times = 1

    def _add(
        self,
        kind: str,
        axes: Axes,
        nbytes: int,
        receivers: int | None = None,
        copied: int = 0,
    ) -> Collectives:
        n, count = self.device.count(axes), self._times
        if n > 1 and nbytes and count:
            self.turns.append(Turn(len(self.found), self._operand))
            everyone = self.device.size if receivers is None else receivers
            names = self.device.names(axes)
            sent = Collective(kind, names, n, nbytes, everyone, count, copied_bytes=copied)
            self.found.append(sent)
        return self

    def all_gather(self, axes: Axes, nbytes: int, dim: int = 0) -> Collectives:
        """Add a gather of all parts along `dim`. nbytes: of one part."""
        n = self.device.count(axes)
        return self._add(ALL_GATHER, axes, nbytes * (n - 1), copied=nbytes * n if dim else 0)

    def all_to_all(self, axes: Axes, nbytes: int, dims: tuple[int, int] = (0, 0)) -> Collectives:
        """Add an exchange in which every device gets a piece of every part. nbytes: of one part.

        dims: the dim along which parts are split, and that along which pieces are concatenated.
        """
        n, copies = self.device.count(axes), sum(map(bool, dims))
        return self._add(ALL_TO_ALL, axes, -(-nbytes // n) * (n - 1), copied=nbytes * copies)

    def all_reduce(self, axes: Axes, nbytes: int) -> Collectives:
        """Add a reduction (sum, max, ...) of all parts to every device. nbytes: of one part."""
        n = self.device.count(axes)
        return self._add(ALL_REDUCE, axes, -(-2 * (n - 1) * nbytes // n))

    def reduce_scatter(self, axes: Axes, nbytes: int, dim: int = 0) -> Collectives:
        """Add a reduction; every device gets a piece along `dim`. nbytes: of one operand."""
        n = self.device.count(axes)
        return self._add(
            REDUCE_SCATTER, axes, -(-(n - 1) * nbytes // n), copied=nbytes if dim else 0
        )

    def permute(self, axes: Axes, nbytes: int, receive: int) -> Collectives:
        """Add a permute: in each group, `receive` devices get `nbytes` each."""
        groups = self.device.size // self.device.count(axes)
        return self._add(PERMUTE, axes, nbytes if receive else 0, groups * receive)

    def pieces(self, axes: Axes, nbytes: int, receivers: int, copied: int = 0) -> Collectives:
        """Add a permute: `receivers` of all devices get `nbytes` each, along `axes`."""
        return self._add(PERMUTE, axes, nbytes, receivers, copied)

    def rotate(self, axes: Axes, nbytes: int) -> Collectives:
        """Add a rotation by one device around a ring."""
        return self._add(PERMUTE, axes, nbytes)

    def copy(self, before: str | None, after: str | None, nbytes: int) -> Collectives:
        """Add a copy of every device's part between two memory spaces, if they differ."""
        if before != after and {before, after} <= {*MEMORY_SPACES} and nbytes:
            spaces = (str(before), str(after))
            self.found.append(Collective(COPY, spaces, 1, nbytes, self.device.size))
        return self

    def broadcast(self, axes: Axes, nbytes: int) -> Collectives:
        """Add a broadcast from one device to all, by a tree of permutes."""
        n = self.device.count(axes)
        for reach in _reaches(n):
            receivers = self.device.size // n * min(reach, n - reach)
            self._add(PERMUTE, axes, nbytes, receivers)
        return self


def check_sendable(dtype: np.dtype[Any]) -> None:
    """Raise `LayoutError` for types that collectives do not support: those of 1 and 2 bits.

    XLA's collectives on CPUs (JAX 0.10 to 0.12) return wrong bits or abort the process.

    >>> check_sendable(np.dtype("int8"))
    """
    if dtypes.bits(dtype) < 4:
        raise LayoutError(
            f"{dtype.name} can't be stored on devices, because their collectives corrupt elements "
            "of 1 and 2 bits: use int4 or int8 there; gl.to_bytes supports it"
        )


def total_bytes(collectives: Iterable[Collective]) -> int:
    """Return the bytes received, summed over all devices."""
    return sum(each.total_bytes for each in collectives)


def ring(n: int) -> list[tuple[int, int]]:
    """Return the pairs (from, to) of a rotation by one device."""
    return [((k + 1) % n, k) for k in range(n)]


def _reaches(n: int) -> list[int]:
    """Return the distance of each round of a broadcast: 1, 2, 4, ... below `n`."""
    found, reach = [], 1
    while reach < n:
        found.append(reach)
        reach *= 2
    return found


# -- shard_map -------------------------------------------------------------------------------------


def shard_mapped(
    fn: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any
) -> Callable[..., Any]:
    """Return a function of devices' parts as a function of whole arrays, by `jax.shard_map`.

    JAX does not check which results are replicated: it can't know that of all collectives here.
    """
    return jax.shard_map(fn, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


# Sizes of mesh axes, and this device's index along them, cached by `once`.
_here: ContextVar[tuple[Mapping[str, int], Any] | None] = ContextVar(
    "gridlayout_here", default=None
)


@contextmanager
def once(sizes: Mapping[str, int]) -> Iterator[None]:
    """Compute this device's index along these axes once, for all calls of `index_of` inside.

    Enter it directly inside `shard_map`; nested programs, such as loop bodies, use the value.
    """
    token = _here.set((sizes, lax.optimization_barrier(index_of(tuple(sizes)))))
    try:
        yield
    finally:
        _here.reset(token)


def index_of(axes: Axes) -> Any:
    """Return this device's index along mesh axes, the major axis first."""
    if not axes:
        return 0
    known: tuple[Mapping[str, int], Any] = _here.get() or ({}, None)
    sizes, number = known
    names = tuple(sizes)
    start = names.index(axes[0]) if axes[0] in names else 0
    if names[start : start + len(axes)] != axes:
        return lax.axis_index(axes[0] if len(axes) == 1 else axes)
    count, inner = (prod(sizes[n] for n in some) for some in (axes, names[start + len(axes) :]))
    number = lax.div(number, np.int32(inner)) if inner > 1 else number
    return lax.rem(number, np.int32(count)) if start else number


def slice_at(x: jax.Array | np.ndarray, start: Any, count: int, dim: int) -> jax.Array:
    """Return `count` positions along `dim` from `start`, which must not be negative."""
    if isinstance(start, int):
        return lax.slice_in_dim(x, start, start + count, axis=dim)
    return lax.dynamic_slice_in_dim(x, start, count, dim, allow_negative_indices=False)


def own_row(table: Any, axes: Axes) -> jax.Array:
    """Return this device's row of a table that has one for each index along mesh axes."""
    return lax.squeeze(slice_at(table, index_of(axes), 1, 0), (0,))


def permute(x: jax.Array, axes: Axes, pairs: Sequence[tuple[int, int]]) -> jax.Array:
    """Send `x` between the pairs (from, to) along the axes; other devices get zeros.

    JAX numbers devices in the order of the mesh, whatever the order of the axes.
    """
    if all(a == b for a, b in pairs):
        return x
    mesh = jax.sharding.get_abstract_mesh()
    ordered = tuple(sorted(axes, key=mesh.axis_names.index))
    if ordered != tuple(axes):
        sizes = [mesh.shape[axis] for axis in axes]
        numbers = np.arange(prod(sizes)).reshape(sizes)
        numbers = numbers.transpose([axes.index(axis) for axis in ordered]).ravel().argsort()
        pairs = [(int(numbers[a]), int(numbers[b])) for a, b in pairs]
    return lax.ppermute(x, ordered, pairs)


def rotate(x: jax.Array, axes: Axes, n: int) -> jax.Array:
    """Return the `x` of the next of `n` devices on a ring."""
    return permute(x, axes, ring(n))


def broadcast(x: jax.Array, axes: Axes, n: int, root: int) -> jax.Array:
    """Return the `x` of device `root` on all `n` devices, by a tree of permutes."""
    if n == 1:
        return x
    place = lax.rem(index_of(axes) + np.int32(n - root), np.int32(n))
    for reach in _reaches(n):
        far = range(min(reach, n - reach))
        pairs = [((root + k) % n, (root + k + reach) % n) for k in far]
        x = lax.select_n(place < np.int32(reach), permute(x, axes, pairs), x)
    return x


def all_gather(x: jax.Array, axes: Axes, dim: int) -> jax.Array:
    """Return the parts of all devices, concatenated along `dim`."""
    if not axes:
        return x
    # XLA gathers along the major dim and copies for any other, even behind dims of extent 1.
    ones = x.shape[:dim] if set(x.shape[:dim]) == {1} else ()
    part = x.reshape(x.shape[len(ones) :])
    whole = lax.all_gather(part, axes, axis=dim - len(ones), tiled=True)
    return whole.reshape(*ones, *whole.shape)
