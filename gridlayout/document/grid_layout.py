"""`GridLayout`: tt-mlir's document model. Collapse, divide by the grid, divide by the tile.

    logical index --linear--> collapsed index --floordiv, mod--> (core, index in the shard)
                  --floordiv, mod--> (core, tile, index in the tile) [--> (face, index in the face)]

The grid divides first and the tile second, both rounding up. The physical shape is
`grid + shard in tiles + tile`. Every size is in elements.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, embedding
from gridlayout.arguments import Shape, ShapeLike, as_axis, as_shape, one_of, positive, shown
from gridlayout.document.collapse import (
    as_printed,
    collapse_map,
    collapse_steps,
    collapsed_shape,
    default_map,
)
from gridlayout.document.partitions import grid_of, named_axes, stated
from gridlayout.document.shard import Stated, as_shard, ceil_shard, row_multiple, stated_by
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import as_space
from gridlayout.layouts.mesh_axes import Axes, as_entries, as_mesh_axes, axes_text
from gridlayout.layouts.padding import image
from gridlayout.layouts.reader import dims_text, shaped_text
from gridlayout.layouts.steps import StepBuilder
from gridlayout.other_words import LAYING_OUT
from gridlayout.public import public

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray


@public(words=LAYING_OUT)
class GridLayout(Layout):
    """A logical tensor collapsed onto a virtual grid of cores (tt-mlir, "Tensor Layout").

    shape, dtype: the logical tensor. grid: cores along each collapsed dim, of any rank and size.
    tile: the innermost block of the last `len(tile)` collapsed dims; None: shards are not tiled. In
    place of a shape, grid or tile of one dim, a number will do: `GridLayout(64, grid=8)`. collapse:
    intervals (start, end) of logical dims to join, end excluded; negative numbers count from the
    rank. Dims in no interval are not joined ("Dimension Collapsing"). The default is (0, -1); a
    `LayoutWarning` is given if it wastes most positions. linear: an affine map or its text, instead
    of `collapse`; `d0 <> d1` in the text joins dims. face: splits each tile into blocks. oob: the
    value of the padding: a number, or undef, zero, one, inf, neginf; None means undef.
    memory_space: system, mmio, dram or l1, or the document's System, SystemMMIO, DeviceDRAM,
    DeviceL1, or the name that a `Chip` gives a memory. tile_format: a block format (bfp_bf8,
    bfp_bf4, bfp_bf2) in which a core stores 32x32 tiles; it changes only bytes, arrays keep
    `dtype`. shard_shape: elements of each collapsed dim per core before tiling, if more than
    ceil-division gives; None for a dim means ceil-division. With a larger shard, the last cores may
    be empty. row_alignment: the alignment in bytes of each row of a core's buffer, a power of 2.
    Tiles are not padded; their bytes must be a multiple of it. mesh_axes: the axes of a mesh that
    divide each dim of the grid, as the entries of a `PartitionSpec` of JAX: `("y", None)`. None:
    `DeviceGrid.placement` chooses them.

    `LayoutError` if the arguments contradict each other.

    >>> layout = GridLayout((2, 3, 64, 128), "float32", grid=(2, 4), tile=(32, 32))
    >>> print(layout.linear)
    (d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3)
    >>> layout.collapsed_shape, layout.shard_shape, layout.physical_shape
    ((384, 128), (192, 32), (2, 4, 6, 1, 32, 32))
    """

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = "float32",
        grid: ShapeLike = (1, 1),
        tile: ShapeLike | None = None,
        collapse: Sequence[tuple[int, int]] | None = None,
        linear: AffineMap | str | None = None,
        oob: Any = None,
        memory_space: str = "l1",
        *,
        face: ShapeLike | None = None,
        tile_format: str | None = None,
        shard_shape: int | Sequence[int | None] | None = None,
        row_alignment: int | None = None,
        mesh_axes: Sequence[str | tuple[str, ...] | None] | None = None,
    ) -> None:
        shape = as_shape(shape, "shape")
        self.grid: Shape = positive(grid, "grid")
        self.mesh_axes = None if mesh_axes is None else as_mesh_axes(mesh_axes, len(self.grid))
        if collapse is not None and linear is not None:
            raise LayoutError("give either collapse intervals or a linear map, not both")
        is_default = collapse is None and linear is None
        if linear is None:
            linear = collapse_map(shape, collapse, len(self.grid))
        elif isinstance(linear, str):
            linear = AffineMap.parse(linear, shape)
        elif not isinstance(linear, AffineMap):
            raise LayoutError(f"linear {shown(linear)} must be an AffineMap or its text")
        self.linear: AffineMap = as_printed(linear)
        self.collapsed_shape: Shape = collapsed_shape(self.linear, shape, self.grid)
        if is_default and prod(self.collapsed_shape) > 2 * prod(shape) > 0:
            _warn_of_waste(shape, self.grid, self.linear, self.collapsed_shape)
        self.shard_shape: Shape
        self.stated_shard: Stated
        self.shard_shape, self.stated_shard = as_shard(shard_shape, self.collapsed_shape, self.grid)
        self.tile: Shape | None = None if tile is None else positive(tile, "tile")
        self.face: Shape | None = None if face is None else positive(face, "face")
        self.tile_format: str | None = tile_format
        self.memory_space: str = as_space(memory_space)
        _check_tile(self.tile, self.face, tile_format, self.grid)
        self.row_multiple: int = row_multiple(
            row_alignment, dtypes.as_dtype(dtype), self.tile, tile_format
        )
        builder = StepBuilder(shape)
        axes = collapse_steps(builder, self.linear, shape, self.collapsed_shape)
        order = self._divide(builder, axes)
        super().__init__(shape, dtype, builder.steps, order, core_rank=len(self.grid), oob=oob)

    @classmethod
    def of(
        cls, shape: ShapeLike, sharding: Any, dtype: DTypeLike = "float32", oob: Any = None
    ) -> GridLayout:
        """Return the layout that divides a tensor as a `jax.sharding.NamedSharding` does.

        Each dim is divided into as many cores as the mesh axes of its entry have devices, and need
        not be a multiple of them: a core holds the size divided by them, rounded up, as in the
        document. So the last cores along a dim may hold less, or nothing. A memory kind
        "pinned_host" gives memory space "system". `layout.named_sharding(device)` is the inverse.

        The layout names `mesh_axes` only where `DeviceGrid.placement` would choose others.
        `LayoutError` for another sharding, and for a spec that does not fit the shape or the mesh.

        >>> from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
        >>> mesh = AbstractMesh((2, 4), ("data", "model"))
        >>> GridLayout.of((53, 63), NamedSharding(mesh, P("data", "model")))
        GridLayout((53, 63), 'float32', grid=(2, 4))
        >>> GridLayout.of((5, 6, 7), NamedSharding(mesh, P(None, ("data", "model")))).shard_shape
        (5, 1, 7)
        >>> GridLayout.of((8, 8), NamedSharding(AbstractMesh((2, 2), ("x", "y")), P("y")))
        GridLayout((8, 8), 'float32', grid=(2, 1), mesh_axes=('y', None))
        """
        spec, sizes, space = stated(sharding)
        grid = grid_of(as_shape(shape, "shape"), spec, sizes)
        made = cls(shape, dtype, grid, collapse=[], oob=oob, memory_space=space)
        return made.on_mesh_axes(named_axes(grid, spec, sizes))

    def _divide(self, builder: StepBuilder, axes: Sequence[int]) -> list[int]:
        """Divide by the grid, the tile and the face; return the axes in physical order."""
        tile = self.padded_tile
        face = tile if self.face is None else (1,) * (len(tile) - len(self.face)) + self.face
        cores, tiles, faces, inner = [], [], [], []
        untiled = len(self.grid) - len(self.tile or ())
        for k, axis in enumerate(axes):
            padded = builder.resize(axis, self.grid[k] * self.shard_shape[k])
            core, shard = builder.split(padded, (self.grid[k], self.shard_shape[k]))
            cores.append(core)
            shard = builder.resize(shard, self.tile_counts[k] * tile[k])
            if k < untiled:
                tiles.append(shard)
                continue
            count, rest = builder.split(shard, (self.tile_counts[k], tile[k]))
            tiles.append(count)
            if self.face is not None and k >= len(self.grid) - len(self.face):
                block, rest = builder.split(rest, (tile[k] // face[k], face[k]))
                faces.append(block)
            inner.append(rest)
        return cores + tiles + faces + inner

    _cached = (*Layout._cached, "groups")

    # -- identity ------------------------------------------------------------------------------

    def _key(self) -> tuple[Any, ...]:
        return (
            *(self.shape, self.dtype, self.grid, self.tile, self.face, self.tile_format),
            *(self.linear, self.shard_shape, self.row_multiple, self.memory_space, repr(self.oob)),
            self.mesh_axes,
        )

    def replace(self, **changes: Any) -> GridLayout:
        """The same layout with some constructor arguments changed.

        The linear map is unchanged unless `linear` or `collapse` is given. A stated shard is
        unchanged too; give `shard_shape=None` to derive it from a new shape or grid. A new grid is
        on no stated mesh axes, unless `mesh_axes` is given. `LayoutError` for a name that is not an
        argument.

        >>> GridLayout((53, 63), grid=(3, 2)).replace(tile=(32, 32), oob=0).physical_shape
        (3, 2, 1, 1, 32, 32)
        """
        if self.mesh_axes is not None and changes.get("grid", self.grid) != self.grid:
            changes = {"mesh_axes": None, **changes}
        return super().replace(**changes)

    def on_mesh_axes(self, axes: tuple[Axes, ...] | None) -> GridLayout:
        """The same layout whose grid dims are divided by these mesh axes; None for no stated ones.

        axes: names, for each dim of the grid.

        >>> GridLayout((8, 8), grid=(2, 1)).on_mesh_axes((("y",), ()))
        GridLayout((8, 8), 'float32', grid=(2, 1), mesh_axes=('y', None))
        """
        return self if axes == self.mesh_axes else self._changed(mesh_axes=axes)

    _either = (("collapse", "linear"),)

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        now = {name: getattr(self, name) for name in _ARGUMENTS}
        now["shard_shape"] = self.stated_shard if any(self.stated_shard) else None
        return GridLayout, now

    def __repr__(self) -> str:
        wastes = prod(self.collapsed_shape) > 2 * prod(self.shape) > 0
        is_default = not wastes and self.linear == default_map(self.shape, len(self.grid))
        named = {
            **{"shape": self.shape, "dtype": self.dtype, "grid": self.grid, "tile": self.tile},
            "linear": None if is_default else str(self.linear),
            "shard_shape": self.shard_shape if any(self.stated_shard) else None,
            **{name: getattr(self, name) for name in ("row_alignment", "face", "tile_format")},
            "mesh_axes": None if self.mesh_axes is None else as_entries(self.mesh_axes),
            **{
                "oob": self.oob,
                "memory_space": None if self.memory_space == "l1" else self.memory_space,
            },
        }
        return call_text("GridLayout", {k: v for k, v in named.items() if v is not None}, 2)

    def __str__(self) -> str:
        tensor = shaped_text(self.shape, dtypes.MLIR_NAMES[self.dtype.name])
        return (
            f"tensor<{tensor}, #ttcore.metal_layout<{self.linear}, {dtypes.oob_text(self.oob)}, "
            f"<{dims_text(self.grid)}>, {self.memref}{self._words()}>>"
        )

    def _words(self) -> str:
        """The text of the shard, unless the memref implies it, of row alignment and mesh axes."""
        plain = self._counts(ceil_shard(self.collapsed_shape, self.grid))
        is_stated = stated_by(self.tile_counts, plain, self.padded_tile) == self.stated_shard
        shard = "" if is_stated else f", shard = {dims_text(self.shard_shape)}"
        rows = f", row_alignment = {self.row_alignment}" if self.row_alignment else ""
        return shard + rows + ("" if self.mesh_axes is None else axes_text(self.mesh_axes))

    @property
    def memref(self) -> str:
        """One core's shard as a memref, as in tt-mlir's document.

        >>> GridLayout((53, 63), grid=(3, 2)).memref
        'memref<18x32xf32, #ttcore.memory_space<l1>>'
        """
        element = dtypes.MLIR_NAMES[self.dtype.name]
        if self.tile is not None:
            face = f", face<{dims_text(self.face)}>" if self.face else ""
            element = f"!ttcore.tile<{dims_text(self.tile)}, {self.tile_format or element}{face}>"
        space = f"#ttcore.memory_space<{self.memory_space}>"
        return f"memref<{dims_text(self.tile_counts)}x{element}, {space}>"

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def padded_tile(self) -> Shape:
        """The tile, with leading 1s for the collapsed dims that it does not cover."""
        tile = self.tile or ()
        return (1,) * (len(self.grid) - len(tile)) + tile

    @property
    def tile_counts(self) -> Shape:
        """The shard in tiles, which is the shape of the memref."""
        return self._counts(self.shard_shape)

    def _counts(self, shard: Shape) -> Shape:
        counts = [-(-n // t) for n, t in zip(shard, self.padded_tile, strict=True)]
        if self.tile is None:
            counts[-1] = -(-counts[-1] // self.row_multiple) * self.row_multiple
        return tuple(counts)

    def padding_along(self, axis: int) -> NDArray[np.int64]:
        """Padding positions along collapsed dim `axis` of each core's shard, one number per core.

        >>> GridLayout((53, 63), grid=(3, 2), tile=(32, 32)).padding_along(0).tolist()
        [14, 14, 15]
        """
        axis = as_axis(axis, len(self.grid), "collapsed dims")
        grid, shard = self.grid[axis], self.shard_shape[axis]
        row = AffineMap(self.ndim, (self.linear.results[axis],))
        held = image(row, self.shape, (grid * shard,)).reshape(grid, shard).sum(axis=1)
        return self.tile_counts[axis] * self.padded_tile[axis] - held

    # -- structure -----------------------------------------------------------------------------

    def axis_dims(self, k: int) -> Shape:
        """The physical dims of collapsed dim `k`, the major first: grid, tiles, (faces,) tile.

        >>> GridLayout((53, 63), grid=(3, 2), tile=(32, 32)).axis_dims(1)
        (1, 3, 5)
        """
        rank, tiled = len(self.grid), len(self.tile or ())
        k = as_axis(k, rank, "collapsed dims")
        inner = k - (rank - tiled)
        if inner < 0:
            return (k, rank + k)
        faces = (2 * rank + inner,) if self.face else ()
        return (k, rank + k, *faces, 2 * rank + (tiled if self.face else 0) + inner)

    @property
    def memory(self) -> str:
        """The memory space."""
        return self.memory_space

    @property
    def as_grid(self) -> GridLayout:
        """The layout itself."""
        return self

    @property
    def grouped(self) -> GridLayout | None:
        """The layout itself if it has `groups`, otherwise None."""
        return self if self.groups else None

    def squeezed(self) -> GridLayout | None:
        """The layout without dims of extent 1; None if no dim, or every dim, has extent 1."""
        kept = [d for d, n in enumerate(self.shape) if n != 1]
        if len(kept) in (0, self.ndim):
            return None
        shape = tuple(self.shape[d] for d in kept)
        return self.replace(shape=shape, linear=self.linear.compose(embedding(self.ndim, kept)))

    @cached_property
    def groups(self) -> tuple[Shape, ...]:
        """The logical dims that each collapsed dim joins, the major first; `()` for other maps.

        Empty also if a dim of extent > 1 is in two results, or if strides overlap; then only the
        index map describes the layout. A dim of extent 1 is in every group whose result reads it.
        """
        if self.is_scatter:
            return ()
        found = []
        for coefficients, _ in self.linear.coefficients():
            dims = [d for d, c in enumerate(coefficients) if c]
            found.append(tuple(sorted(dims, key=lambda d, c=coefficients: (-abs(c[d]), d))))  # type: ignore[misc]
        return tuple(found)


_ARGUMENTS = (
    *("shape", "dtype", "grid", "tile", "linear"),
    *("oob", "memory_space", "face", "tile_format", "row_alignment", "mesh_axes"),
)


def _warn_of_waste(shape: Shape, grid: Shape, linear: AffineMap, collapsed: Shape) -> None:
    warnings.warn(
        f"the default collapse of {shape} onto a grid of rank {len(grid)} joins leading dims and "
        f"keeps them as well, {linear}: {prod(collapsed)} positions for {prod(shape)} elements. "
        f"Give collapse=[] to join no dims, or linear={str(linear)!r} to confirm this map",
        LayoutWarning,
        stacklevel=4,
    )


def _check_tile(tile: Shape | None, face: Shape | None, fmt: str | None, grid: Shape) -> None:
    if tile is not None and len(tile) > len(grid):
        raise LayoutError(f"tile {tile} has rank {len(tile)}, more than the grid's {len(grid)}")
    if face is not None and (
        tile is None
        or len(face) != len(tile)
        or any(t % f for t, f in zip(tile, face, strict=True))
    ):
        raise LayoutError(
            f"face {face} must have the tile's rank and divide it; the tile is {tile}"
        )
    if fmt is not None:
        one_of(fmt, tuple(dtypes.BLOCK_FORMATS), "tile_format")
    if fmt is not None and tile != (32, 32):
        raise LayoutError(f"tile_format {fmt!r} needs tile=(32, 32); the tile is {tile}")
