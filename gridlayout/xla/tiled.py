"""XLA's tiled layouts, `f32[3,5]{1,0:T(2,2)}`.

The physical dims of an array, the major first, are `minor_to_major` reversed. A tile of rank r
applies to the r minor physical dims: each is padded to a multiple of its tile size and split into
(tile number, index in the tile), and the tile dims become the minor dims. Each further tile applies
to the result, so it may extend across tiles. `*` first joins a dim with the next minor dim.

The physical shape is the result of the last tile. The buffer is row-major over it, so the offset of
an element is the linear index of XLA's document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import MAX_RANK, Shape, ShapeLike, as_count, as_items, as_shape, one_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.steps import StepBuilder
from gridlayout.public import public

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

COMBINE = -1  # in a tile: the asterisk of XLA's document
ELEMENT_TYPES = dtypes.FROM_XLA
_INDEX_TYPES = ("u8", "u16", "u32", "u64")
# The defaults of the fields other than dims and tiles, by constructor argument.
_PLAIN: dict[str, Any] = {
    **{"tail_alignment": 1, "index_type": None, "pointer_type": None, "element_bits": 0},
    **{"memory_space": 0, "splits": (), "metadata_bytes": 0},
}
Tiles = tuple[Shape, ...]


@public
class XlaLayout(Layout):
    """The layout of an XLA array.

    minor_to_major: the dims, the minor first; by default the last dim is the minor one. tiles:
    applied in order, each to the minor physical dims; `COMBINE` (-1) stands for `*`. The other
    arguments are fields of the text. tail_alignment (L): the number of elements of the buffer is a
    multiple of it. element_bits (E): bits per element, 0 for those of the type. splits (SC): pairs
    of a physical dim, 0 for the major one, and the indices at which it is split. metadata_bytes
    (M): bytes before the data. index_type (`#`), pointer_type (`*`), memory_space (S), splits and
    metadata_bytes do not affect the index map; they are stored and printed. `LayoutError` for
    arguments that contradict each other.

    >>> x = layout((3, 5), "float32", tiles=[(2, 2)])
    >>> print(x, x.physical_shape, x.locate((2, 3)).offset, x.nbytes)
    f32[3,5]{1,0:T(2,2)} (2, 3, 2, 2) 17 96
    """

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = "float32",
        minor_to_major: Sequence[int] | None = None,
        tiles: Sequence[Sequence[int]] = (),
        *,
        tail_alignment: int = 1,
        index_type: str | None = None,
        pointer_type: str | None = None,
        element_bits: int = 0,
        memory_space: int = 0,
        splits: Sequence[tuple[int, Sequence[int]]] = (),
        metadata_bytes: int = 0,
        oob: Any = None,
    ) -> None:
        shape = as_shape(shape, "shape")
        element = dtypes.as_dtype(dtype)
        self.minor_to_major: Shape = _permutation(minor_to_major, len(shape))
        self.tiles: Tiles = tuple(_tile(tile) for tile in _sequence(tiles, "tiles", "tiles"))
        self.tail_alignment: int = as_count(tail_alignment, "tail_alignment (L)", 1)
        self.index_type: str | None = _index_type(index_type, "index_type (#)")
        self.pointer_type: str | None = _index_type(pointer_type, "pointer_type (*)")
        self.element_bits: int = as_count(element_bits, "element_bits (E)", 0)
        self.memory_space: int = as_count(memory_space, "memory_space (S)", 0)
        physical = tuple(shape[d] for d in reversed(self.minor_to_major))
        self.splits: tuple[tuple[int, Shape], ...] = _splits(splits, physical)
        self.metadata_bytes: int = as_count(metadata_bytes, "metadata_bytes (M)", 0)
        builder = StepBuilder(shape)
        order = list(reversed(self.minor_to_major))
        for tile in self.tiles:
            order = _tiled(builder, order, tile)
        super().__init__(shape, element, builder.steps, order, oob=oob)

    def _key(self) -> tuple[Any, ...]:
        return (
            *(self.shape, self.dtype, self.minor_to_major, self.tiles, repr(self.oob)),
            *self._fields().values(),
        )

    def _fields(self) -> dict[str, Any]:
        """The fields other than the dims and the tiles, by constructor argument."""
        return {name: getattr(self, name) for name in _PLAIN}

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        now: dict[str, Any] = {"shape": self.shape, "dtype": self.dtype, "tiles": self.tiles}
        if self.minor_to_major != _permutation(None, self.ndim):
            now["minor_to_major"] = self.minor_to_major
        return XlaLayout, {**now, **self._fields(), "oob": self.oob}

    def __repr__(self) -> str:
        first = ("shape", "dtype", "minor_to_major", "tiles")
        fields = {name: value for name, value in self._fields().items() if value != _PLAIN[name]}
        named = {name: getattr(self, name) for name in first} | fields | {"oob": self.oob}
        return call_text("xla.layout", named, len(first))

    def __str__(self) -> str:
        """The canonical text of the type, or the constructor call if a type cannot express it."""
        if self.oob is not None or self.dtype.name not in dtypes.XLA_NAMES:
            return repr(self)
        dims = ",".join(map(str, self.shape))
        return f"{dtypes.XLA_NAMES[self.dtype.name]}[{dims}]{self.shard_text}"

    def _text_fields(self) -> str:
        tiles = "".join(
            f"({','.join('*' if n == COMBINE else str(n) for n in tile)})" for tile in self.tiles
        )
        splits = "".join(f"({d}:{','.join(map(str, at))})" for d, at in self.splits)
        return "".join(
            (
                f"T{tiles}" if tiles else "",
                f"L({self.tail_alignment})" if self.tail_alignment != 1 else "",
                f"#({self.index_type})" if self.index_type else "",
                f"*({self.pointer_type})" if self.pointer_type else "",
                f"E({self.element_bits})" if self.element_bits else "",
                f"S({self.memory_space})" if self.memory_space else "",
                f"SC{splits}" if splits else "",
                f"M({self.metadata_bytes})" if self.metadata_bytes else "",
            )
        )

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same layout with another element type; elements take the bits of that type."""
        return super().with_dtype(dtype, oob)._changed(element_bits=0)

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def blocks(self) -> tuple[int, ...]:
        """The elements per tile, in the order of the tiles."""
        return tuple(prod(n for n in tile if n != COMBINE) for tile in self.tiles)

    @property
    def shard_text(self) -> str:
        """The braces of the type's text."""
        inside, fields = ",".join(map(str, self.minor_to_major)), self._text_fields()
        braces = f"{{{inside}{':' if fields else ''}{fields}}}"
        return braces if inside or fields else ""

    @property
    def element_name(self) -> str:
        """The element type as XLA names it."""
        return dtypes.XLA_NAMES.get(self.dtype.name, self.dtype.name)

    @property
    def memory(self) -> str:
        """The memory space, which is a number in XLA."""
        return f"memory {self.memory_space}"

    @property
    def stored_bits(self) -> int:
        """Bits per element: E if given, otherwise those of the type, at least 8."""
        return self.element_bits or max(dtypes.bits(self.dtype), 8)

    @property
    def data_bytes(self) -> int:
        """Bytes of the logical elements; where E makes elements wider, the rest is padding.

        >>> x = layout((8, 128), "bool", tiles=[(8, 128)], element_bits=32)
        >>> x.nbytes, x.data_bytes
        (4096, 1024)
        """
        bits = min(self.stored_bits, max(dtypes.bits(self.dtype), 8))
        return -(-self.size * bits // 8)

    @property
    def bytes_per_core(self) -> int:
        """Bytes of the buffer: full tiles, rounded up to the tail alignment."""
        return self._bytes(self._aligned(prod(self.physical_shape)))

    def _aligned(self, elements: int) -> int:
        return -(-elements // self.tail_alignment) * self.tail_alignment

    def _bytes(self, elements: int) -> int:
        return -(-elements * self.stored_bits // 8)

    @property
    def first_tile_bytes(self) -> int:
        """The bytes by XLA's own size function, which considers only the first tile.

        `nbytes` is the number of XLA's document. They differ if a later tile pads, if `splits`
        divide a tiled array (this gives the largest part), and if an array without tiles has a tail
        alignment (this ignores it). `LayoutError` if the first tile combines dims, which that
        function does not support. Source: openxla/xla, `ShapeUtil::ArraySize`.

        >>> x = layout((6, 6), "float32", tiles=[(4, 4), (3, 1)])
        >>> x.first_tile_bytes, x.nbytes
        (256, 384)
        """
        if not self.tiles:
            return self._bytes(self.size)
        if COMBINE in self.tiles[0]:
            raise LayoutError(
                f"{self}: XLA's size function does not support combined dims (*); use nbytes"
            )
        part = list(self.shape)
        for d, at in self.splits:
            k = self.minor_to_major[-1 - d]
            part[k] = max(high - low for low, high in pairwise((0, *at, self.shape[k])))
        padded = layout(part, self.dtype, self.minor_to_major, self.tiles[:1]).physical_shape
        return self._bytes(self._aligned(prod(padded)))

    # -- JAX -----------------------------------------------------------------------------------

    def to_jax(self) -> Any:
        """The `jax.experimental.layout.Layout` with the same order and tiles.

        `LayoutError` for what that class does not support: combined dims, and fields other than E.
        """
        # Only this method needs JAX.
        from jax.experimental.layout import Layout as JaxLayout

        if any(COMBINE in tile for tile in self.tiles):
            raise LayoutError(
                f"{self}: jax.experimental.layout.Layout does not support combined dims (*)"
            )
        other = {name for name, value in self._fields().items() if value != _PLAIN[name]}
        if self.element_bits < 8:
            other.discard("element_bits")
        if other:
            raise LayoutError(
                f"{self}: jax.experimental.layout.Layout supports order, tiles and E below 8 bits, "
                f"but not {', '.join(sorted(other))}"
            )
        return JaxLayout(
            tuple(reversed(self.minor_to_major)),
            self.tiles or None,
            sub_byte_element_size_in_bits=self.element_bits,
        )


layout = XlaLayout


@public
def from_jax(jax_layout: Any, shape: ShapeLike, dtype: DTypeLike) -> XlaLayout:
    """The layout of a `jax.experimental.layout.Layout`, for an array of `shape` and `dtype`.

    >>> from jax.experimental.layout import Layout
    >>> print(from_jax(Layout((1, 0), ((8, 128),)), (3, 5), "float32"))
    f32[3,5]{0,1:T(8,128)}
    """
    try:
        order, tiles = jax_layout.major_to_minor, jax_layout.tiling
    except AttributeError:
        raise LayoutError(
            f"{type(jax_layout).__name__} is not a jax.experimental.layout.Layout: it has no "
            "major_to_minor and tiling"
        ) from None
    bits = getattr(jax_layout, "sub_byte_element_size_in_bits", 0)
    return layout(shape, dtype, tuple(reversed(tuple(order))), tiles or (), element_bits=bits)


@public
def tpu_tiles(shape: ShapeLike, dtype: DTypeLike) -> Tiles:
    """The usual tiles of TPU programs for an array of this shape, with the last dim minor.

    Types of 16 and 8 bits pack 2 and 4 rows into a 32-bit word by a last tile, (2, 1) or (4, 1).
    Rank 2 and more: the first tile is (8, 128). It has 4, 2 or 1 rows if the second-minor dim is
    that small, but at least as many as fill a word. Rank 1: the first tile is the next power of
    two, at least 128 words and at most 1024 elements; types below 32 bits add (128,) before the
    last tile. Rank 0: one tile of 128 words.

    This is a convention observed in compiled programs, not a rule of XLA's document. The compiler
    may choose other tiles, such as (16, 128) and (32, 128) for buffers of small types.
    `LayoutError` for types of 64 bits and of less than 8 bits, which the convention does not cover.

    >>> tpu_tiles((300, 300), "bfloat16"), tpu_tiles((3, 300), "float32"), tpu_tiles((7,), "int32")
    (((8, 128), (2, 1)), ((4, 128),), ((128,),))
    >>> tpu_tiles((7,), "bfloat16"), tpu_tiles((), "bool")
    (((256,), (128,), (2, 1)), ((512,),))
    """
    shape, element = as_shape(shape, "shape"), dtypes.as_dtype(dtype)
    bits = dtypes.bits(element)
    if bits not in (8, 16, 32):
        raise LayoutError(f"tpu_tiles: {element.name} has {bits} bits; 8, 16 and 32 are covered")
    packed = 32 // bits
    words: Tiles = ((packed, 1),) if packed > 1 else ()
    if len(shape) >= 2:
        return ((min(max(packed, _power_of_two(shape[-2])), 8), 128), *words)
    count = min(max(128 * packed, _power_of_two(prod(shape))), 1024)
    return ((count,), (128,), *words) if words and shape else ((count,),)


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


# -- steps and checks ------------------------------------------------------------------------------


def _tiled(builder: StepBuilder, order: list[int], tile: Shape) -> list[int]:
    """Apply one tile to the minor axes; return the new axes, the major first."""
    while len(order) < len(tile):  # the tile has a higher rank than the array
        order = [builder.unit(), *order]
    head, tail = order[: len(order) - len(tile)], order[len(order) - len(tile) :]
    counts, inner, joined = [], [], []
    for axis, size in zip(tail, tile, strict=True):
        joined.append(axis)
        if size == COMBINE:
            continue
        dim, joined = builder.join(joined), []
        number = -(-builder.extent[dim] // size)
        count, rest = builder.split(builder.resize(dim, number * size), (number, size))
        counts.append(count)
        inner.append(rest)
    order = [*head, *counts, *inner]
    # Checked after every tile, because an untrusted text may have thousands of tiles.
    if len(order) > MAX_RANK:
        raise LayoutError(
            f"tile {tile} makes {len(order)} physical dims; up to {MAX_RANK} are supported"
        )
    return order


def _sequence(value: Any, what: str, of: str) -> tuple[Any, ...]:
    if isinstance(value, str):
        raise LayoutError(f"{what} {value!r} must be a sequence of {of}")
    return as_items(value, what, of)


def _permutation(minor_to_major: Any, rank: int) -> Shape:
    if minor_to_major is None:
        return tuple(reversed(range(rank)))
    order = as_shape(minor_to_major, "minor_to_major")
    if sorted(order) != list(range(rank)):
        raise LayoutError(
            f"minor_to_major {order} must name each of the {rank} dims once: it is a permutation "
            f"of {tuple(range(rank))}"
        )
    return order


def _tile(tile: Any) -> Shape:
    sizes = _sequence(tile, "tile", "sizes")
    if not sizes:
        raise LayoutError("a tile must have at least one dim; leave it out instead")
    combined = [isinstance(n, (int, np.integer)) and n == COMBINE for n in sizes]
    plain = as_shape([1 if c else n for c, n in zip(combined, sizes, strict=True)], "tile")
    if 0 in plain:
        raise LayoutError(f"tile {tuple(sizes)} must hold numbers >= 1, or -1 for * (combine)")
    if combined[-1]:
        raise LayoutError(f"tile {tuple(sizes)}: the minor dim has no dim to be combined with (*)")
    return tuple(COMBINE if c else n for c, n in zip(combined, plain, strict=True))


def _index_type(name: Any, what: str) -> str | None:
    return None if name is None else one_of(name, _INDEX_TYPES, what)


def _splits(splits: Any, physical: Shape) -> tuple[tuple[int, Shape], ...]:
    """Return checked splits; `physical` has the extents in physical order, the major first."""
    found: dict[int, Shape] = {}
    for pair in _sequence(splits, "splits (SC)", "pairs"):
        try:
            d, at = pair
        except (TypeError, ValueError):
            raise LayoutError(f"splits (SC) {pair!r} must be a pair (dim, indices)") from None
        d = as_count(d, "splits (SC): dim", 0)
        indices = _sequence(at, "splits (SC): indices", "whole numbers")
        at = tuple(as_count(i, "splits (SC): index", 0) for i in indices)
        if d >= len(physical):
            raise LayoutError(f"splits (SC): dim {d} is outside the rank {len(physical)}")
        if d in found:
            raise LayoutError(f"splits (SC) name dim {d} twice")
        if not at or list(at) != sorted(set(at)) or at[-1] > physical[d]:
            raise LayoutError(
                f"splits (SC) of physical dim {d} at {at} must be increasing, inside "
                f"[0, {physical[d]}]"
            )
        found[d] = at
    return tuple(found.items())
