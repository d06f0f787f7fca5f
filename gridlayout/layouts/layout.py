"""`Layout`: one affine map from a logical index to a physical index.

A layout is a logical shape, a dtype, and a list of invertible steps (`gridlayout.layouts.steps`)
that turn the logical dims into the physical dims. Everything else is derived from these: the index
map, its inverse and the domain of the inverse, the padding, the bytes and the array program.

    physical shape = (core dims ..., dims inside one core's buffer ...)

`core_rank` is the number of leading physical dims that index cores. A core's buffer is row-major
over the remaining dims. `oob` is the known value of the padding: a number, or None (undef). It
describes the data, not the placement, so `Layout.same_physical` ignores it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gridlayout import dtypes
from gridlayout.affine.integer_set import AffineSet
from gridlayout.affine.map import AffineExpr, AffineMap, Inverse, dim
from gridlayout.arguments import Shape, as_index, as_int, as_items, as_shape, check_size
from gridlayout.errors import LayoutError
from gridlayout.layouts import padding
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.location import Location
from gridlayout.layouts.memory import Chip, as_chip
from gridlayout.layouts.replacing import replaced
from gridlayout.layouts.steps import Scatter, Step, StepBuilder, inverse_exprs, is_small
from gridlayout.layouts.summary import Summary
from gridlayout.layouts.traffic import Traffic, core_traffic

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from gridlayout.document.grid_layout import GridLayout
    from gridlayout.draw.svg import Drawing


class Layout(Buffers):
    """The layout of a logical tensor of `shape` and `dtype`.

    steps: the steps from the logical dims to the physical dims. order: the axes that remain after
    the steps, in the order of the physical dims. A layout is immutable and hashable, so it can be
    static pytree metadata. Users call a system's constructor, such as `gl.GridLayout`; rules and
    new systems call this one.

    >>> from gridlayout.layouts.steps import StepBuilder
    >>> builder = StepBuilder((5,)); tiles = builder.split(builder.resize(0, 6), (3, 2))
    >>> layout = Layout((5,), "float32", builder.steps, tiles)
    >>> print(layout.index_map, layout.physical_shape)
    (d0) -> (d0 floordiv 2, d0 mod 2) (3, 2)
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        steps: Sequence[Step],
        order: Sequence[int],
        *,
        core_rank: int = 0,
        oob: Any = None,
    ) -> None:
        self.shape: Shape = as_shape(shape, "shape")
        self.dtype: np.dtype[Any] = dtypes.as_dtype(dtype)
        self.steps: tuple[Step, ...] = as_items(steps, "steps", "gridlayout.layouts.steps")
        if wrong := [step for step in self.steps if not isinstance(step, Step)]:
            raise LayoutError(f"step {wrong[0]!r} is not one of gridlayout.layouts.steps")
        axes = as_items(order, "order", "axes")
        self.order: Shape = tuple(as_int(axis, "an axis of order,") for axis in axes)
        self.oob: dtypes.Scalar | None = dtypes.oob_value(oob, self.dtype)
        builder = StepBuilder(self.shape).run(self.steps)
        if sorted(self.order) != sorted(builder.extent):
            raise LayoutError(
                f"order {self.order} must name the axes that remain, {sorted(builder.extent)}"
            )
        self.physical_shape: Shape = tuple(builder.extent[axis] for axis in self.order)
        core_rank = as_int(core_rank, "core_rank")
        if not 0 <= core_rank <= len(self.order):
            raise LayoutError(f"core_rank {core_rank} must be in [0, {len(self.order)}]")
        self.core_rank: int = core_rank
        check_size(self.shape, self.physical_shape)
        if not is_small(self.ndim, self.steps):
            self._expressions()  # raises if an expression exceeds the limits of AffineExpr
        self._hash = hash((type(self), self._key()))

    # Cached properties that are derived from the steps.
    _cached: ClassVar[tuple[str, ...]] = ("index_map", "inverse", "inverse_in_bounds")

    # -- identity ------------------------------------------------------------------------------

    def _key(self) -> tuple[Any, ...]:
        """The values by which layouts are compared and hashed."""
        return (self.shape, self.dtype, self.steps, self.order, self.core_rank, repr(self.oob))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._key() == other._key())

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: Any) -> None:
        if "_hash" in self.__dict__:
            raise AttributeError(f"a layout is frozen: {name} can't be set; build a new layout")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a layout is frozen: {name} can't be deleted")

    def __getstate__(self) -> dict[str, Any]:
        # The hash differs between processes, and cached properties can be computed again.
        computed = ("_hash", *self._cached)
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["oob"] = dtypes.oob_value(self.oob, self.dtype)  # NaN is one object
        self.__dict__["_hash"] = hash((type(self), self._key()))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.shape}, {self.dtype.name!r}, {self.index_map}, "
            f"physical_shape={self.physical_shape}, oob={dtypes.oob_text(self.oob)})"
        )

    def _changed(self, **fields: Any) -> Self:
        """A copy with other facts about the data; the steps and cached properties are shared."""
        new = object.__new__(type(self))
        new.__dict__.update({**self.__dict__, **fields})
        new.__dict__["_hash"] = hash((type(new), new._key()))
        return new

    def with_oob(self, oob: Any) -> Self:
        """The same layout with another padding value: a number, a name, or None (undef)."""
        new = dtypes.oob_value(oob, self.dtype)
        return self if new is self.oob else self._changed(oob=new)

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same layout with another element type and the padding value `oob`."""
        new = dtypes.as_dtype(dtype)
        oob = dtypes.oob_value(oob, new)
        if new == self.dtype and oob is self.oob and self.tile_format is None:
            return self
        return self._changed(dtype=new, oob=oob, tile_format=None)

    def replace(self, **changes: Any) -> Self:
        """The layout that the constructor returns with some arguments changed.

        changes: new values by the constructor's argument names. An argument that has its default
        value is derived again from the new values. `LayoutError` for an unknown name, and for
        values that the constructor refuses.

        >>> from gridlayout import tenstorrent
        >>> tenstorrent.ttnn((64, 64), "bfloat16", grid=(2, 1)).replace(grid=(1, 4)).memory_layout
        'width_sharded'
        """
        made, now = self._call()
        found: Self = replaced(made, now, changes, self._either)
        return found

    # Groups of mutually exclusive constructor arguments.
    _either: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The constructor, and its arguments for this layout."""
        names = ("shape", "dtype", "steps", "order", "core_rank", "oob")
        return type(self), {name: getattr(self, name) for name in names}

    def same_physical(self, other: Layout) -> bool:
        """Whether every element has the same physical index in both; dtype and oob may differ."""
        if self is other:
            return True
        check_layout(other)
        if (self.shape, self.physical_shape, self.core_rank) != (
            *(other.shape, other.physical_shape, other.core_rank),
        ):
            return False
        if (self.steps, self.order) == (other.steps, other.order) or 0 in self.shape:
            return True
        return self.index_map == other.index_map

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """The rank of the logical shape."""
        return len(self.shape)

    @property
    def padding_share(self) -> float:
        """The fraction of physical positions that are padding, 0 to 1."""
        total = prod(self.physical_shape)
        if not total:
            return 0.0
        try:
            self.check_invertible()
        except LayoutError:  # elements share positions, so count the positions
            return int(self.padding_per_core().sum()) / total
        return (total - self.size) / total

    def _expressions(self) -> tuple[AffineExpr, ...]:
        """The expression of each physical dim, not simplified."""
        expr = StepBuilder(self.shape).run(self.steps).expr
        return tuple(expr[axis] for axis in self.order)

    # -- the map and its inverse ---------------------------------------------------------------

    @cached_property
    def index_map(self) -> AffineMap:
        """The map from a logical index to a physical index."""
        exact = AffineMap(self.ndim, self._expressions())
        return exact if 0 in self.shape else exact.simplify(self.shape)

    @cached_property
    def inverse(self) -> Inverse:
        """The map from a physical index to a logical index, and the domain on which it is valid.

        `LayoutError` if the index map is a `Scatter` without a closed inverse.
        """
        map, domain = self.inverse_in_bounds
        box: list[tuple[AffineExpr, bool]] = []
        for d, extent in enumerate(self.physical_shape):
            box += [(dim(d), False), (-dim(d) + (extent - 1), False)]
        return Inverse(map, AffineSet(domain.num_dims, (*box, *domain.constraints)))

    @cached_property
    def inverse_in_bounds(self) -> Inverse:
        """`inverse` for indices that are known to be inside `physical_shape`."""
        back = inverse_exprs(self.shape, self.steps, self.order)
        rank = len(self.order)
        constraints = [(e, True) for e in back.equal]
        for expr, bound in back.bounds:
            constraints += [(expr, False), (-expr + (bound - 1), False)]
        map = AffineMap(rank, back.logical)
        if 0 not in self.physical_shape:
            map = map.simplify(self.physical_shape)
        return Inverse(map, AffineSet(rank, tuple(constraints)))

    @property
    def core_map(self) -> AffineMap:
        """The map from a logical index to the coordinates of its core in the grid.

        >>> from gridlayout import GridLayout
        >>> print(GridLayout((6, 4), grid=(2, 1)).core_map)
        (d0, d1) -> (d0 floordiv 3, 0)
        """
        return AffineMap(self.ndim, self.index_map.results[: self.core_rank])

    def traffic(self, to: Layout) -> Traffic:
        """The number of elements that each core here shares with each core of another layout.

        to: a layout of the same shape. `LayoutError` if core coordinates depend on logical dims
        with more than 2**28 indices together, because these indices are enumerated.

        >>> from gridlayout import GridLayout
        >>> found = GridLayout((6,), grid=(2,)).traffic(GridLayout((6,), grid=(3,)))
        >>> for row in zip(found.before.tolist(), found.after.tolist(), found.counts.tolist()):
        ...     print(row)
        ([0], [0], 2)
        ([0], [1], 1)
        ([1], [1], 1)
        ([1], [2], 2)
        """
        if not isinstance(to, Layout) or to.shape != self.shape:
            raise LayoutError(f"{to!r} must be a layout of the shape {self.shape}")
        try:
            return core_traffic(self.shape, self.core_map, to.core_map)
        except LayoutError as error:
            raise LayoutError(f"{self!r} and {to!r}: {error}") from None

    # -- properties for rules ------------------------------------------------------------------

    @property
    def as_grid(self) -> GridLayout | None:
        """The same layout as a `GridLayout`, which can be modified; None if there is none."""
        return None

    @property
    def grouped(self) -> GridLayout | None:
        """`as_grid` if each grid dim divides its own group of logical dims; otherwise None.

        >>> from gridlayout import GridLayout
        >>> layout = GridLayout((2, 3, 4), grid=(2, 1))
        >>> layout.grouped is layout, layout.groups
        (True, ((0, 1), (2,)))
        """
        return None

    @property
    def is_scatter(self) -> bool:
        """Whether the layout has no pad-reshape-transpose program and uses a gather instead."""
        return any(isinstance(step, Scatter) for step in self.steps)

    def locate(self, index: Sequence[int]) -> Location:
        """The location of a logical index: its core, the index inside the core, and the offset.

        >>> from gridlayout import GridLayout
        >>> GridLayout((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32)).locate((20, 40))
        Location(core=(1, 1), local=(0, 0, 2, 8), offset=72, byte=144)
        """
        index = as_index(index, self.shape, "index")
        physical = self.index_map(*index)
        core, local = physical[: self.core_rank], physical[self.core_rank :]
        offset = 0
        for i, n in zip(local, self.local_shape, strict=True):
            offset = offset * n + i
        return Location(core, local, offset, self.byte_of(offset), self.bit_of(offset))

    def logical_index(self, physical: Sequence[int]) -> Shape | None:
        """The logical index at a physical index, or None if that position is padding.

        >>> from gridlayout import GridLayout
        >>> layout = GridLayout((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32))
        >>> layout.logical_index((1, 1, 0, 0, 2, 8)), layout.logical_index((0, 0, 0, 0, 18, 0))
        ((20, 40), None)
        """
        physical = as_index(physical, self.physical_shape, "physical index")
        if self.is_scatter:
            return self.index_map.preimage(physical, self.shape)
        if not self.inverse_in_bounds.domain.contains(*physical):
            return None
        return self.inverse.map(*physical)

    def check_invertible(self) -> None:
        """Raise `LayoutError` if two logical indices share a physical index; it names them."""
        # A scatter is the first step and reads the logical dims; all other steps are injective.
        for scatter in (step for step in self.steps if isinstance(step, Scatter)):
            clash = scatter.map.collision(self.shape)
            if clash is not None:
                raise LayoutError(
                    f"the map {scatter.map} sends {clash[0]} and {clash[1]} to one place: the "
                    "layout is a read-only view; unpack can read it, but pack and put need an "
                    "injective map"
                )

    # -- padding (gridlayout.layouts.padding) --------------------------------------------------

    def padding_mask(self) -> NDArray[np.bool_]:
        """A bool array of shape `physical_shape`, True where the position is padding."""
        return padding.padding_mask(self)

    def padded_regions(self) -> list[padding.Box]:
        """The padding as a list of few disjoint boxes: tuples of slices of the physical array."""
        return padding.padded_regions(self)

    def padding_per_core(self) -> NDArray[np.int64]:
        """The number of padding positions in each core's buffer: an array of `core_shape`."""
        return padding.padding_per_core(self)

    # -- text for people -----------------------------------------------------------------------

    def summary(self, chip: Chip | str | None = None) -> Summary:
        """A short readable description: shard, padding, bytes, waste, cores, and whether it fits.

        chip: the chip whose memory must hold the layout, a `gl.Chip` or a name. With None, all
        chips with a name are listed if the layout is in one of their memory spaces. `print` and
        notebooks show the result.

        >>> from gridlayout import GridLayout
        >>> print(GridLayout((53, 63), grid=(3, 2), tile=(32, 32)).summary("wormhole"))
        float32[53, 63] on 3x2 cores, in l1
          shard    18x32 elements per core, in 1x1 tiles of 32x32
          padding  45.7% of 6,144 positions hold no element
          bytes    4.0 KiB per core, 24.0 KiB in total, 11.0 KiB wasted: 1.84 times the data
          cores    first (0, 0): 576 elements from (0, 0); last (2, 1): 527 elements up to (52, 62)
          fits     Wormhole: 1.3 MiB of l1 left on each core
        """
        return Summary(self, None if chip is None else as_chip(chip))

    # -- drawings (gridlayout.draw) ------------------------------------------------------------

    def draw(self, view: str = "logical", **options: Any) -> Drawing:
        """A drawing of the layout as SVG: `.svg`, `.save(path)`; notebooks show it.

        view: "logical" (the tensor by core), "tiles", "strides", "physical" and "memory" (the
        contents of each core, by position or by address), "lanes", "slots", "fold" (needs device=,
        a `gl.DeviceGrid`) or "flows" (needs to=, another layout). options: those of the view, see
        `gridlayout.draw.views`. `LayoutError` for an unknown view or option, and for a view that
        does not apply to the layout.

        >>> from gridlayout import GridLayout
        >>> GridLayout((53, 63), grid=(3, 2)).draw().title
        'float32[53, 63]: logical tensor by core'
        """
        # Most programs do not draw, and `gridlayout.draw` takes time to import.
        from gridlayout.draw.views import draw_layout

        return draw_layout(self, view, **options)

    def _repr_html_(self) -> str:
        return self.summary().beside(self.draw().svg)


def check_layout(layout: Any, what: str = "layout") -> None:
    """Raise `LayoutError` unless `layout` is a `Layout`.

    >>> check_layout("f32[3]")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: layout 'f32[3]' must be a gl.Layout, such as gl.GridLayout(...)
    """
    if not isinstance(layout, Layout):
        raise LayoutError(f"{what} {layout!r} must be a gl.Layout, such as gl.GridLayout(...)")
