"""`Mapped`: a tensor whose elements are placed by an affine map.

A logical shape, a dtype, and a list of invertible steps (`gridlayout.layouts.steps`) that turn the
logical dims into the physical ones. The index map, its inverse with the domain on which it is
valid, and the places of single elements follow from the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gridlayout import dtypes
from gridlayout.affine.integer_set import AffineSet
from gridlayout.affine.map import AffineExpr, AffineMap, Inverse, dim
from gridlayout.arguments import Shape, as_index, as_int, as_items, as_shape, check_size
from gridlayout.errors import LayoutError
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.location import Location
from gridlayout.layouts.steps import Scatter, Step, StepBuilder, inverse_exprs, is_small

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Mapped(Buffers):
    """A tensor of `shape` and `dtype`, placed by `steps`; `order` lists the physical dims.

    Immutable and hashable. Users see its subclass `gl.Layout`.

    >>> from gridlayout.layouts.steps import StepBuilder
    >>> builder = StepBuilder((5,)); tiles = builder.split(builder.resize(0, 6), (3, 2))
    >>> Mapped((5,), "float32", builder.steps, tiles).locate((3,)).offset
    3
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
            self._expressions()  # LayoutError if an expression is too large
        self._freeze()

    # Properties that are computed from the steps on first use; they are not pickled.
    _cached: ClassVar[tuple[str, ...]] = ("index_map", "inverse", "inverse_in_bounds")

    # -- identity ------------------------------------------------------------------------------

    _compared: tuple[Any, ...]
    _hash: int

    def _key(self) -> tuple[Any, ...]:
        """The values by which layouts are compared and hashed."""
        return (self.shape, self.dtype, self.steps, self.order, self.core_rank, repr(self.oob))

    def _freeze(self) -> None:
        """Store the values that are compared and hashed; afterwards no attribute can be set."""
        compared = self._key()
        self.__dict__.update(_compared=compared, _hash=hash((type(self), compared)))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._compared == other._compared)

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: Any) -> None:
        if "_hash" in self.__dict__:
            raise AttributeError(f"a layout is frozen: {name} can't be set; build a new layout")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a layout is frozen: {name} can't be deleted")

    def __getstate__(self) -> dict[str, Any]:
        # The hash differs from process to process, and what is cached can be computed again.
        computed = ("_hash", "_compared", *self._cached)
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["oob"] = dtypes.oob_value(self.oob, self.dtype)  # NaN is one object
        self._freeze()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.shape}, {self.dtype.name!r}, {self.index_map}, "
            f"physical_shape={self.physical_shape}, oob={dtypes.oob_text(self.oob)})"
        )

    def _changed(self, **fields: Any) -> Self:
        """A copy with other facts about the data; the steps and cached properties are shared."""
        new = object.__new__(type(self))
        new.__dict__.update({**self.__dict__, **fields})
        new._freeze()
        return new

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

        `LayoutError` if the layout has a `Scatter` whose map has no closed inverse.
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

        If several elements share the position, one of them is returned. `LayoutError` if the search
        for it exceeds its budget, which happens only to a layout with a `Scatter`.

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
        """Raise `LayoutError` if two indices share a place, which it names, or if undecided."""
        # A scatter is the first step and reads the logical dims; all other steps are injective.
        for scatter in (step for step in self.steps if isinstance(step, Scatter)):
            clash = scatter.map.collision(self.shape)
            if clash is not None:
                raise LayoutError(
                    f"the map {scatter.map} sends {clash[0]} and {clash[1]} to one place: the "
                    "layout is a read-only view; unpack can read it, but pack and put need an "
                    "injective map"
                )
