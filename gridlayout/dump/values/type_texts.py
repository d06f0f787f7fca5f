"""Reads the text of a type: `Sizes` in bytes, and the layout. Both are cached.

A dump may hold a million types, of which a few are shown. So `sizes_of` computes sizes from the
text alone, in the forms that compilers print most; for any other form it returns None and the
layout is built. The sizes equal those of the layout; for a text whose parts contradict each other,
None is returned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from gridlayout import dtypes
from gridlayout.arguments import MAX_ELEMENTS, MAX_RANK, Shape
from gridlayout.caching import cached
from gridlayout.costs import Described
from gridlayout.dump.text.hlo import ARRAY
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, Held
from gridlayout.tenstorrent.allocation import SPACES, TTNN, Unit, read_allocation, stated, unit_of
from gridlayout.text import parse

_new = tuple.__new__  # takes a third of the time of calling the class: a dump has a million types
_DIM = "[0-9]{1,18}"
_EXTENTS = re.compile(rf"(?:{_DIM}(?:,{_DIM}){{0,7}})?")
_SIDES = rf"\(({_DIM}(?:,{_DIM}){{0,7}})\)"
_BRACES = re.compile(
    r"\{([0-7](?:,[0-7]){0,7})?"
    rf"(?::(?:T{_SIDES}(?:{_SIDES})?)?(?:E\(([0-9]{{1,2}})\))?(?:S\(([0-9])\))?)?\}}"
)
_ELEMENT = r"(!ttcore\.tile<[0-9]{1,4}x[0-9]{1,4}, \w{1,12}>|[a-z]\w{0,15})"
_TENSOR = rf"tensor<((?:{_DIM}x)*)([a-z]\w{{0,15}}), "
_MEMREF = rf"memref<((?:{_DIM}x)+){_ELEMENT}, "
_DOCUMENT = re.compile(
    rf"{_TENSOR}#ttcore\.metal_layout<(\([^<>()]*\) -> \([^<>()]*\)), (?:undef|zero), "
    rf"<((?:[0-9]{{1,9}}x)*[0-9]{{1,9}})>, {_MEMREF}#ttcore\.memory_space<(\w{{1,20}})>>>>"
)
_MEMORIES = {str(n): f"memory {n}" for n in range(10)}
DEVICE = _MEMORIES["0"]  # XLA's default memory space
_BUFFER_TYPES = ("dram", "l1", "l1_small", "system_memory")
_BITS = {name: dtypes.bits(dtypes.as_dtype(dtype)) for name, dtype in dtypes.FROM_XLA.items()}
_DIMS = [", ".join(f"d{k}" for k in range(rank)) for rank in range(9)]
_TERM = re.compile(r"d([0-9])(?: \* ([0-9]{1,18}))?")
# Dims and element type of an array in MLIR, with or without an encoding.
DENSE = r"tensor<((?:[0-9]{1,12}x)*)([a-z]\w{0,20}|complex<\w{1,9}>)"
TENSOR = re.compile(f"{DENSE}[,>]")


class Sizes(NamedTuple):
    """The bytes of a type. nbytes: of all buffers. data_bytes: of the logical elements.

    buffers: the arguments of `Held`, from which `held` builds one. shape: the logical shape.
    kind: a key of the layout without its shape: types with equal kind and shape have equal layouts,
    others different ones; None if only the layouts can be compared. reason: why the text can't be
    read; empty if it can.
    """

    nbytes: int = 0
    data_bytes: int = 0
    buffers: tuple[Any, ...] = ()
    shape: Shape | None = None
    kind: tuple[Any, ...] | None = None
    reason: str = ""

    @property
    def held(self) -> Held | None:
        """The memory that it holds; None if the text can't be read."""
        return None if self.reason else Held(*self.buffers)

    @property
    def space(self) -> str:
        """The memory space of an array of HLO: `DEVICE`, "memory 1", ..., or "other memory"."""
        name = self.buffers[0] if self.buffers else DEVICE
        return name if name in _MEMORIES.values() else "other memory"


_LONG = 1 << 10  # characters of a type beyond which few are cached: an alias can stand for many
_NOTHING: Mapping[str, Sizes] = {}
_VALUELESS, _NONE = ("token[", "opaque["), Sizes()  # types whose values hold no memory


def read(text: str) -> Sizes:
    """Return the sizes of a type, or the reason why it can't be read.

    >>> found = read("f32[3,5]{1,0:T(8,128)}")
    >>> found.nbytes, found.data_bytes, layout_of("f32[3,5]{1,0:T(8,128)}").shape
    (4096, 60, (3, 5))
    """
    return _remembered(text) if len(text) <= _LONG else _remembered_long(text)


def compare_types(
    before: str, after: str, known: Mapping[str, Sizes] = _NOTHING
) -> tuple[Shape, Shape, int, bool] | None:
    """Return both shapes, the data bytes of `before`, and whether the two layouts are equal.

    None if one of the types has no layout. known: sizes of types that are parsed already.

    >>> compare_types("f32[4]{0}", "f32[4]{0:T(128)}"), compare_types("f32[4]{0}", "f32[4]{0:S(0)}")
    (((4,), (4,), 16, False), ((4,), (4,), 16, True))
    """
    one, other = known.get(before) or read(before), known.get(after) or read(after)
    if one.kind is not None and other.kind is not None:
        shapes = (one.shape or (), other.shape or ())
        same = one.kind == other.kind and shapes[0] == shapes[1]
        return *shapes, one.data_bytes, same
    if one.reason or other.reason:
        return None
    first, second = layout_of(before), layout_of(after)
    if not isinstance(first, Layout) or not isinstance(second, Layout):
        return None
    return first.shape, second.shape, first.data_bytes, first == second


@cached(entries=2048)
def layout_of(text: str) -> Described:
    """Return the layout of a type, or its `Allocation` if it states buffers only.

    Raises `LayoutError` if it states neither.
    """
    if "[" in text and "<=" in text:  # a dynamic dim of HLO: memory is allocated for its bound
        text = text.replace("<=", "")
    try:
        return parse(text)
    except LayoutError as error:
        refusal = error
    except Exception as error:  # a bug in a parser must not stop the reading of a dump
        refusal = LayoutError(f"{type(error).__name__} while it was read: {error}")
    try:
        return read_allocation(text)
    except LayoutError:
        raise refusal from None


def _read(text: str) -> Sizes:
    if (found := sizes_of(text)) is not None:
        return found
    try:
        layout = layout_of(text)
    except LayoutError as error:
        return Sizes(reason=re.sub(r"^column \d+: ", "", str(error))[:160] or "no layout")
    held = layout.held
    return Sizes(held.nbytes, layout.data_bytes, tuple(held))


_remembered, _remembered_long = cached(entries=1024)(_read), cached(entries=256)(_read)


def array_sizes(kind: str) -> list[Sizes]:
    """Return the sizes of each array in an instruction's type, which may be a nested tuple.

    >>> [each.nbytes for each in array_sizes("(f32[4]{0}, (s8[3], u32[]))")]
    [16, 3, 4]
    """
    return [_NONE if each.startswith(_VALUELESS) else read(each) for each in ARRAY.findall(kind)]


def extents(dims: str) -> Shape:
    """Return the extents of a shape in MLIR.

    >>> extents("3x5x"), extents("")
    ((3, 5), ())
    """
    return tuple(map(int, dims.rstrip("x").split("x"))) if dims else ()


def dense_bytes(shape: Sequence[int], element: str) -> int:
    """Return the bytes of a tensor's elements, without padding; 0 for more than 2**62 elements.

    >>> dense_bytes((3, 5), "bf16"), dense_bytes((4,), "complex<f32>"), dense_bytes((4,), "i1")
    (30, 32, 4)
    """
    size = prod(shape)
    if size > MAX_ELEMENTS:
        return 0
    try:
        bits = dtypes.bits(dtypes.as_dtype(element))
    except LayoutError:  # such as f6E2M3FN, whose first number is its bits
        found = re.search(r"[0-9]+", element)
        bits = int(found[0]) if found else 8
    return -(-size * bits // 8)


# -- forms that compilers print most ---------------------------------------------------------------


def sizes_of(text: str) -> Sizes | None:
    """Return the sizes of a type; None if its layout must be built to find them.

    >>> found = sizes_of("bf16[3,5]{1,0:T(8,128)(2,1)}")
    >>> found.nbytes, found.data_bytes, found.shape
    (2048, 30, (3, 5))
    """
    try:
        if text[-1:] == "}":
            return _of_hlo(text)
        if "#ttnn.ttnn_layout" in text:
            return _of_ttnn(text)
        if "#ttcore.metal_layout<(" in text:
            return _of_document(text)
        if text.startswith("memref<") or "#ttcore.metal_layout<logical_shape" in text:
            return _of_buffers(text)
    except LayoutError:  # an unknown element type, or a text that states no buffers
        pass
    return None


def _of_hlo(text: str) -> Sizes | None:
    """Return the sizes of an HLO array with dim order, at most two tiles, and a memory space."""
    element, _, rest = text.partition("[")
    dims, _, braces = rest.partition("]")
    form = _form_of(element, braces)
    shape, size = _extents_of(dims)
    if form is None or shape is None or len(shape) != len(form.sides):
        return None
    held = 1
    for n, side in zip(shape, form.sides, strict=True):
        held *= -(-n // side)
    bits = form.bits
    nbytes = (held * form.inner * bits + 7) // 8
    if nbytes > MAX_ELEMENTS:
        return None
    buffers = (form.memory, 1, nbytes, 0, 0, True)
    data_bytes = (size * bits + 7) // 8
    return _new(Sizes, (nbytes, data_bytes, buffers, shape, form.kind, ""))


@cached(entries=64)  # operands and result of an op often have one shape
def _extents_of(dims: str) -> tuple[Shape | None, int]:
    """Return the shape and the number of its elements; None for an invalid shape."""
    if not _EXTENTS.fullmatch(dims):
        return None, 0
    shape = tuple([int(word) for word in dims.split(",")]) if dims else ()
    return shape, prod(shape)


class _Form(NamedTuple):
    """What the element type and the braces of an HLO array state, independent of its shape.

    bits: of an element. sides: extents of the tile along each dim. inner: elements of a tile,
    including the padding of a second tile inside it. memory: the memory space's name.
    """

    bits: int
    sides: Shape
    inner: int
    memory: str
    kind: tuple[Any, ...]


@cached(entries=1024)
def _form_of(element: str, braces: str) -> _Form | None:
    found, bits = _BRACES.fullmatch(braces), _BITS.get(element, 0)
    if found is None or not bits:
        return None
    orders, first, second, own, space = found.groups()
    order = tuple(map(int, orders.split(","))) if orders else ()
    tiles = [tuple(map(int, each.split(","))) for each in (first, second) if each is not None]
    rank = len(order)
    if sorted(order) != list(range(rank)) or any(0 in tile for tile in tiles):
        return None
    outer, inner = (*tiles, (), ())[:2]
    if len(inner) > len(outer) or max(rank, len(outer)) + len(outer + inner) > MAX_RANK:
        return None
    sides = [1] * rank
    for d, side in zip(order, reversed(outer), strict=False):
        sides[d] = side
    padded = list(outer)
    for k, side in enumerate(reversed(inner), 1):
        padded[-k] = -(-padded[-k] // side) * side
    bits = int(own or 0) or max(bits, 8)
    space = space or "0"
    kind = (element, orders, first, second, own or "0", space)
    return _Form(bits, tuple(sides), prod(padded), _MEMORIES[space], kind)


def _of_ttnn(text: str) -> Sizes | None:
    """Return the sizes of a tensor with a ttnn_layout, from its memref."""
    found = TTNN.match(text)
    if found is None or "oob" in text or "row_alignment" in text:
        return None
    dims, element, linear, grid, counts, stored, space, word, end = found.groups()
    unit, own = unit_of(stored), unit_of(element)
    is_dealt = word in (None, "interleaved")
    if own.tile or (is_dealt and grid != "1x1"):
        return None
    shape, tiles = extents(dims), extents(counts)
    size, pages, cores = prod(shape), prod(tiles), prod(extents(grid))
    if max(size, pages * cores * unit.elements) > MAX_ELEMENTS:
        return None
    per_core = -(-pages * unit.bits // 8)
    buffers = (SPACES.get(space, space), cores, per_core, max(pages, 1) * is_dealt)
    kind, dtype = None, own.dtype
    is_whole = word == "interleaved" and end is not None and found.end() == len(text)
    is_whole = is_whole and space in _BUFFER_TYPES and bool(unit.tile_format or unit.dtype == dtype)
    if is_whole and _follows(shape, linear, tiles, unit.tile or (1, 1)):
        kind = ("ttnn", dtype, unit.tile, unit.tile_format, space)
    return Sizes(cores * per_core, _data_bytes(size, unit), buffers, shape, kind)


def _data_bytes(size: int, unit: Unit) -> int:
    return -(-size * unit.bits // (8 * unit.elements))


def _follows(shape: Shape, linear: str, counts: Shape, tile: Shape) -> bool:
    """Return whether the map and tile counts are those of an unsharded tensor padded to tiles."""
    if not 2 <= len(shape) <= 8 or 0 in shape or len(counts) != 2:
        return False
    rows = -(-shape[-2] // tile[0]) * tile[0]
    terms = []
    for k in range(len(shape) - 1):
        stride = prod(shape[k + 1 : -2]) * rows if k < len(shape) - 2 else 1
        terms.append(f"d{k} * {stride}" if stride != 1 else f"d{k}")
    rank = len(shape)
    if linear != f"({_DIMS[rank]}) -> ({' + '.join(terms)}, d{rank - 1})":
        return False
    return counts == (prod(shape[:-2]) * rows // tile[0], -(-shape[-1] // tile[1]))


def _of_document(text: str) -> Sizes | None:
    """Return the sizes of a metal_layout of tt-mlir's document.

    None if the memref is not the one that shape, map and grid imply.
    """
    found = _DOCUMENT.fullmatch(text)
    if found is None:
        return None
    dims, element, linear, grids, memref, stored, space = found.groups()
    shape, grid, counts, unit = extents(dims), extents(grids), extents(memref), unit_of(stored)
    whole = _collapsed(linear, shape)
    if whole is None or space not in MEMORY_SPACES:
        return None
    tile = unit.tile or (1, 1)
    if stored != element and not stored.endswith(f", {element}>"):
        return None
    if not 0 < len(tile) <= len(whole) == len(grid) == len(counts) or 0 in grid:
        return None
    sides = (1,) * (len(whole) - len(tile)) + tile
    for n, parts, count, side in zip(whole, grid, counts, sides, strict=True):
        shard = (n + parts - 1) // parts
        if (shard + side - 1) // side != count:
            return None
    size, cores, pages = prod(shape), prod(grid), prod(counts)
    if max(size, prod(whole), cores * pages * unit.elements) > MAX_ELEMENTS:
        return None
    per_core = -(-pages * unit.bits // 8)
    buffers = (space, cores, per_core, 0, 0, True)
    return Sizes(cores * per_core, _data_bytes(size, unit), buffers, shape)


def _collapsed(linear: str, shape: Shape) -> Shape | None:
    """Return the extents of the results of a map of sums; None if it may map two indices to one."""
    rank = len(shape)
    if rank > 8 or 0 in shape or not linear.startswith(f"({_DIMS[rank]}) -> ("):
        return None
    used, found = 0, []
    for result in linear[len(_DIMS[rank]) + 7 : -1].split(", "):
        terms = []
        for word in result.split(" + "):
            term = _TERM.fullmatch(word)
            if term is None or int(term[1]) >= rank or used & 1 << int(term[1]):
                return None
            used |= 1 << int(term[1])
            terms.append((int(term[2] or 1), shape[int(term[1])]))
        extent = 1
        for stride, n in sorted(terms):
            if stride < extent:
                return None
            extent = stride * (n - 1) + extent
        found.append(extent)
    return tuple(found) if used == (1 << rank) - 1 else None


def _of_buffers(text: str) -> Sizes | None:
    """Return the sizes of a memref in a memory space, or of the compiler's current metal_layout."""
    found = stated(text)
    if "oob" in text or not (text.startswith("memref<") or found.kind == "metal"):
        return None
    unit, cores, per_core = found.unit, prod(found.grid), found.bytes_per_core
    units = cores * prod(found.counts)
    size = units * unit.elements if found.shape is None else prod(found.shape)
    pages = max(units, 1) if found.memory_layout == "interleaved" else 0
    buffers = (found.space, cores, per_core, pages)
    return Sizes(cores * per_core, _data_bytes(size, unit), buffers)
