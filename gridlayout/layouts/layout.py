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

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from gridlayout import dtypes
from gridlayout.arguments import shown
from gridlayout.errors import LayoutError
from gridlayout.layouts import padding
from gridlayout.layouts.call_text import call_text, replaced
from gridlayout.layouts.mapped import Mapped
from gridlayout.layouts.memory import Chip, as_chip
from gridlayout.layouts.summary import Summary
from gridlayout.layouts.traffic import Traffic, core_traffic
from gridlayout.other_words import layout_words
from gridlayout.public import public

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from gridlayout.svg import Drawing


@public
class Layout(Mapped):
    """A logical tensor of `shape` and `dtype`, laid out by `steps`; physical dims are `order`.

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

    # -- other layouts of the same data ----------------------------------------------------------

    def with_oob(self, oob: Any) -> Self:
        """The same layout with another padding value: a number, a name, or None (undef)."""
        new = dtypes.oob_value(oob, self.dtype)
        return self if new is self.oob else self._changed(oob=new)

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same layout with another element type and the padding value `oob`.

        The physical shape stays, so an alignment of rows in bytes changes with the size of
        elements. `LayoutError` if rows would be aligned to less than a byte.
        """
        new = dtypes.as_dtype(dtype)
        oob = dtypes.oob_value(oob, new)
        if self.row_multiple > 1 and self.row_multiple * dtypes.bits(new) % 8:
            raise LayoutError(
                f"rows aligned to {self.row_multiple} elements of {new.name} take no whole bytes: "
                "give a layout without row_alignment"
            )
        if new == self.dtype and oob is self.oob and self.tile_format is None:
            return self
        return self._changed(dtype=new, oob=oob, tile_format=None)

    def on_chip(self, chip: Chip | str) -> Self:
        """The same layout, with the memory called l1 or dram instead of by the chip's own name.

        chip: as for `fits`. `LayoutError` for a memory that the chip does not have.

        >>> from gridlayout import Chip, GridLayout
        >>> layout = GridLayout((4, 6), grid=(2, 3), memory_space="scratchpad")
        >>> layout.on_chip(Chip("mine", (2, 3), {"scratchpad": 1024}))
        GridLayout((4, 6), 'float32', grid=(2, 3))
        """
        space = as_chip(chip).space_of(self.memory)
        return self if space == self.memory else self.replace(memory_space=space)

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

    # The constructor's name in texts, and how many arguments it takes without names.
    _constructor: ClassVar[tuple[str, int] | None] = None

    def __repr__(self) -> str:
        if self._constructor is None:
            return super().__repr__()
        name, positional = self._constructor
        return call_text(name, self._call()[1], positional)

    # Groups of mutually exclusive constructor arguments.
    _either: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The constructor, and its arguments for this layout."""
        names = ("shape", "dtype", "steps", "order", "core_rank", "oob")
        return type(self), {name: getattr(self, name) for name in names}

    @property
    def canonical(self) -> Layout:
        """The layout that stands for all equal ones: they may state strides that have no effect.

        Values of programs are in canonical layouts, so that a program is printed in one way.

        >>> from gridlayout import megengine
        >>> x, y = (megengine.strided((1, 5), strides, "int8") for strides in [(9, 1), (5, 1)])
        >>> x == y, x.canonical
        (True, megengine.strided((1, 5), (5, 1), 'int8'))
        """
        return self

    def same_physical(self, other: Layout) -> bool:
        """Whether both have one physical shape, and every element the same physical index.

        Dtype and oob may differ. Index maps are compared in normal form, so equal maps may in rare
        cases count as different.
        """
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

    def traffic(self, to: Layout) -> Traffic:
        """The number of elements that each core of this layout shares with each core of another.

        to: a layout of the same shape. `LayoutError` for more than 2**22 pairs of cores, and if
        core coordinates depend on logical dims with more than 2**28 indices together, which are
        enumerated.

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
            raise LayoutError(f"{shown(to)} must be a layout of the shape {self.shape}")
        try:
            return core_traffic(self.shape, self.core_map, to.core_map)
        except LayoutError as error:
            raise LayoutError(f"{self!r} and {to!r}: {error}") from None

    # -- properties for rules ------------------------------------------------------------------

    @property
    def as_grid(self) -> Layout | None:
        """The same layout as a `GridLayout`; None if the document model cannot express it."""
        return None

    @property
    def grouped(self) -> Layout | None:
        """`as_grid` if each grid dim divides its own group of logical dims; otherwise None.

        >>> from gridlayout import GridLayout
        >>> layout = GridLayout((2, 3, 4), grid=(2, 1))
        >>> layout.grouped is layout, layout.groups
        (True, ((0, 1), (2,)))
        """
        return None

    def squeezed(self) -> Layout | None:
        """The layout without dims of extent 1; None if no dim, or every dim, has extent 1.

        Also None if the document model cannot express it.

        >>> from gridlayout import GridLayout
        >>> GridLayout((1, 6, 1, 4), grid=(2, 1)).squeezed().shape
        (6, 4)
        """
        return None if self.as_grid is None else self.as_grid.squeezed()

    # -- padding (gridlayout.layouts.padding) --------------------------------------------------

    @property
    def padding_share(self) -> float:
        """The fraction of physical positions that are padding, 0 to 1."""
        return padding.exact_share(self)

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
        known chips are listed if the layout is in one of their memory spaces. `print` and
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
        a `gl.DeviceGrid`), "flows" (needs to=, another layout), "halo" (what a core receives for a
        stencil) or "element" (the way of one element to its byte; needs index=, and shows its
        device with device=). options: those of the view, see `gridlayout.draw.views`.
        `LayoutError` for an unknown view or option, and for a view that does not apply to the
        layout.

        >>> from gridlayout import GridLayout
        >>> GridLayout((53, 63), grid=(3, 2)).draw().title
        'float32[53, 63]: logical tensor by core'
        """
        (drawer,) = _drawers
        return drawer(self, view, **options)

    def named_sharding(self, device: Any) -> Any:
        """Return the `jax.sharding.NamedSharding` by which JAX divides the tensor as this layout.

        device: a `gl.DeviceGrid`, or a mesh of JAX; the sharding has its mesh and its axes. Each
        device then holds the same elements, whatever their order in the cores. An axis that has
        devices with copies is not named; where a part of an axis divides a dim, the mesh is
        `device.fine`. `LayoutError` where there is no such sharding, with the reason: parts differ
        in size, or a device holds no box, or none of the elements.

        >>> import jax
        >>> from gridlayout import GridLayout
        >>> mesh = jax.sharding.AbstractMesh((2, 4), ("data", "model"))
        >>> GridLayout((6, 64), grid=(2, 4)).named_sharding(mesh).spec
        P('data', 'model')
        >>> GridLayout((53, 64), grid=(2, 4)).named_sharding(mesh)
        Traceback (most recent call last):
        gridlayout.errors.LayoutError: ...
        """
        (find,) = _finders
        return find(self, device)

    if not TYPE_CHECKING:  # for type checkers, only the names above

        def __getattr__(self, name: str) -> Any:
            words = "" if name.startswith("_") else layout_words(name, dir(self))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{words}")

    def _repr_html_(self) -> str:
        return self.summary().beside(self.draw().svg)

    def _repr_svg_(self) -> str:
        return self.draw()._repr_svg_()


class Drawer(Protocol):
    """A function that draws a layout in a view."""

    def __call__(self, layout: Layout, view: str, **options: Any) -> Drawing:
        """The drawing; `LayoutError` for an unknown view or option."""


_drawers: list[Drawer] = []
_finders: list[Callable[[Layout, Any], Any]] = []


def register_drawer(drawer: Drawer) -> None:
    """Set the function that `Layout.draw` calls; `gridlayout` sets the one of `gridlayout.draw`."""
    _drawers[:] = [drawer]


def register_shardings(find: Callable[[Layout, Any], Any]) -> None:
    """Set the function that `Layout.named_sharding` calls; `gridlayout` does, as it needs JAX."""
    _finders[:] = [find]


def check_layout(layout: Any, what: str = "layout") -> None:
    """Raise `LayoutError` unless `layout` is a `Layout`.

    >>> check_layout("f32[3]")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: layout 'f32[3]' must be a gl.Layout, such as gl.GridLayout(...);
    gl.parse reads its text
    """
    if not isinstance(layout, Layout):
        read = "; gl.parse reads its text" if isinstance(layout, str) else ""
        raise LayoutError(
            f"{what} {shown(layout)} must be a gl.Layout, such as gl.GridLayout(...){read}"
        )
