"""Shardings of a `TensorLayout` for given cores, and ND shardings as 2-D ones (tt-metal).

A sharding divides the physical plane over cores, rounding up, then aligns the shard. Tiled shards
are aligned to tiles. Row-major shards are not aligned if sharded by height or width, and to 64
bytes if sharded in blocks or across dims. Sizes are in elements.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import lcm, prod
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.arguments import Shape, ShapeLike, as_shape, positive
from gridlayout.errors import LayoutError
from gridlayout.public import public
from gridlayout.tenstorrent.alignment import merged
from gridlayout.tenstorrent.tt_metal import TensorLayout, tensor_layout

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# The largest alignment of any bank: rows with this alignment are valid in every memory.
_ALIGNED_BYTES = 64


@public
def height_sharded(
    shape: ShapeLike,
    dtype: DTypeLike,
    cores: int | Sequence[int],
    page: str = "tile",
    **options: Any,
) -> TensorLayout:
    """Divide the plane's rows over cores; shards consist of full rows.

    cores: a number, or (rows, columns). page, options: as for `tensor_layout`.

    >>> height_sharded((5, 1184, 128), "bfloat16", (4, 4)).shard_shape
    (384, 128)
    """
    plain = _undivided(shape, dtype, page, cores, options)
    rows, width = plain.plane
    shard = merged((_part(rows, prod(plain.cores)), max(width, 1)), plain.tile or (1,))
    return tensor_layout(
        *(shape, dtype, page, shard, cores), memory_layout="height_sharded", **options
    )


@public
def width_sharded(
    shape: ShapeLike,
    dtype: DTypeLike,
    cores: int | Sequence[int],
    page: str = "tile",
    **options: Any,
) -> TensorLayout:
    """Divide the plane's columns over cores; shards consist of full columns.

    cores: a number, or (rows, columns). page, options: as for `tensor_layout`.

    >>> width_sharded((17, 167), "float32", 16, "row_major").shard_shape
    (17, 11)
    """
    plain = _undivided(shape, dtype, page, cores, options)
    rows, width = plain.plane
    shard = merged((max(rows, 1), _part(width, prod(plain.cores))), plain.tile or (1,))
    return tensor_layout(
        *(shape, dtype, page, shard, cores), memory_layout="width_sharded", **options
    )


@public
def block_sharded(
    shape: ShapeLike,
    dtype: DTypeLike,
    cores: Sequence[int],
    page: str = "tile",
    **options: Any,
) -> TensorLayout:
    """Divide the plane's rows over rows of cores, and its columns over columns of cores.

    cores: (rows, columns), which are swapped if the orientation is "col_major". page, options: as
    for `tensor_layout`.

    >>> block_sharded((333, 555), "float32", (4, 4), "row_major").shard_shape
    (84, 144)
    """
    plain = _undivided(shape, dtype, page, cores, options)
    if len(plain.cores) != 2:
        raise LayoutError(f"cores {plain.cores} of a block sharding must be (rows, columns)")
    is_swapped = plain.orientation == "col_major"
    parts = [
        _part(n, cores)
        for n, cores in zip(plain.plane, plain.cores[:: -1 if is_swapped else 1], strict=True)
    ]
    shard = merged((parts[0], parts[1]), _recommended(plain))
    return tensor_layout(
        *(shape, dtype, page, shard, cores), memory_layout="block_sharded", **options
    )


@public
def sharded_across(
    shape: ShapeLike,
    dtype: DTypeLike,
    dims: Sequence[int],
    cores: int | Sequence[int],
    page: str = "tile",
    **options: Any,
) -> TensorLayout:
    """Divide some dims as finely as pages allow, and no others.

    dims: dims of the padded shape; negative ones count from its end. page, options: as for
    `tensor_layout`.

    >>> sharded_across((5, 3, 128, 128), "bfloat16", [-1], 16).shard_shape
    (5, 3, 128, 32)
    """
    plain = _undivided(shape, dtype, page, cores, options)
    shard = [max(n, 1) for n in plain.padded_shape]
    for d in _as_dims(dims, len(shard)):
        shard[d] = 1
    return tensor_layout(
        shape, dtype, page, merged(tuple(shard), _recommended(plain)), cores, **options
    )


@public
def as_2d(layout: TensorLayout) -> TensorLayout | None:
    """Return the 2-D sharding with the same placement as an ND sharding; None if there is none.

    The shards are the same: dims that a shard does not divide are joined with the next outer dim.
    There must not be more shards than cores. Distributing the shards row by row must assign each
    row of shards to one row of cores, unless there is only one row or column of shards.

    >>> nd = tensor_layout((2, 64, 64), "bfloat16", shard_shape=(1, 32, 32), cores=(4, 2))
    >>> found = as_2d(nd)
    >>> found.memory_layout, found.shard_shape
    ('block_sharded', (32, 32))
    >>> as_2d(nd.replace(cores=(4, 3)))
    """
    if not isinstance(layout, TensorLayout):
        raise LayoutError(f"as_2d takes a tenstorrent.TensorLayout, not {layout!r}")
    if layout.memory_layout != "nd_sharded":
        return None if layout.memory_layout == "interleaved" else layout
    shard = _shard_of_plane(layout.shard_shape, layout.padded_shape)
    if shard is None:
        return None
    kind = "block_sharded"
    if layout.distribution == "round_robin":
        if shard[0] == layout.plane[0]:
            kind = "width_sharded"
        elif shard[1] == layout.plane[1]:
            kind = "height_sharded"
        else:
            columns = layout.cores[-1 if layout.orientation == "row_major" else 0]
            if len(layout.cores) != 2 or columns != -(-layout.plane[1] // shard[1]):
                return None
    try:
        return layout.replace(shard_shape=shard, memory_layout=kind, distribution=None)
    except LayoutError:  # more shards than cores
        return None


@public
def squeeze_rank(tensor: ShapeLike, shard: ShapeLike) -> tuple[Shape, Shape]:
    """Return a tensor and its shard with the fewest dims that give the same shards in order.

    A dim is joined with the next inner dim if the shard divides no inner dim, or if the shard has
    extent 1 and divides the inner dim evenly. Dims beyond the shard's rank are joined with its
    first dim. Extents may be in any unit. `LayoutError` for a shard of more dims than the tensor,
    or of extent 0.

    >>> squeeze_rank((4, 4, 5, 5, 4, 6), (4, 3, 5, 5, 2, 2))
    ((4, 100, 4, 6), (4, 75, 2, 2))
    """
    extents, part = as_shape(tensor, "tensor"), positive(shard, "shard")
    if len(part) > len(extents):
        raise LayoutError(f"shard {part} has more dims than the tensor {extents}")
    lead = len(extents) - len(part)
    found: list[list[int]] = []
    takes_all = divides = False
    for k in reversed(range(len(part))):
        n, s = extents[lead + k], part[k]
        if found and (takes_all or (s == 1 and divides)):
            found[-1][0] *= n
            found[-1][1] *= s
        else:
            found.append([n, s])
            takes_all = True
        takes_all, divides = takes_all and n == s, n % s == 0
        if prod(extents[: lead + k]) == 1 == prod(part[:k]):
            break
    found[-1][0] *= prod(extents[:lead])
    return tuple(n for n, _ in reversed(found)), tuple(s for _, s in reversed(found))


def _shard_of_plane(shard: Shape, padded: Shape) -> Shape | None:
    """The shard as rows and columns of the plane; None unless it is a block in the same order."""
    rows = 1
    for k in reversed(range(len(shard) - 1)):
        outside, extent = len(padded) - len(shard) + k, padded[len(padded) - len(shard) + k]
        rows *= shard[k]
        if shard[k] == extent:
            continue
        if prod(shard[:k]) != 1:
            return None
        # Shards must divide the extent evenly, unless all outer dims have extent 1.
        if k and extent % shard[k] and prod(padded[:outside]) != 1:
            return None
        break
    return (rows, shard[-1])


def _undivided(
    shape: ShapeLike, dtype: DTypeLike, page: str, cores: Any, options: dict[str, Any]
) -> TensorLayout:
    """The tensor in interleaved pages, with all options but those of shards."""
    others = {name: value for name, value in options.items() if name != "distribution"}
    return tensor_layout(shape, dtype, page, cores=cores, **others)


def _part(n: int, cores: int) -> int:
    return max(-(-n // cores), 1)


def _recommended(layout: TensorLayout) -> Shape:
    if layout.tile is not None:
        return layout.tile
    bits = dtypes.bits(layout.dtype)
    return (lcm(8 * _ALIGNED_BYTES, bits) // bits,)


def _as_dims(dims: Sequence[int], rank: int) -> list[int]:
    try:
        found = [operator.index(d) for d in dims]
    except TypeError:
        raise LayoutError(f"dims {dims!r} must be a sequence of whole numbers") from None
    for d in found:
        if not -rank <= d < rank:
            raise LayoutError(f"dim {d} is outside the padded shape's {rank} dims")
    return found
