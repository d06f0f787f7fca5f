"""MLI tensors: up to 4 dims with memory strides; letters name the dims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, ShapeLike, as_count, as_shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.strides import as_permutation, row_major, span, strided_steps
from gridlayout.mli.access import Lanes, Transfers, transfers_of
from gridlayout.public import public

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MAX_RANK = 4


@public
class TensorLayout(Layout):
    """A tensor whose dims are named by the letters of `layout`, the outermost dim first.

    layout: "HWC", "CHW", "HWCN", "HW1N", or any other order of distinct letters among H, W, C, N
    and 1, such as "C" for a bias and "CN" for fully connected weights. mem_stride: in elements,
    None for no gaps. capacity: bytes of memory from the first element on, None for no limit. start:
    elements of the buffer before the first element. size: elements of the buffer. These two are for
    sub-tensors. oob: the value of the positions between elements.

    `LayoutError` if a rule is broken: extents and strides are at least 1; each stride is at least
    the span of the next dim; the capacity suffices; elements take whole bytes; dim "1" has extent
    1.

    >>> x = TensorLayout((32, 16, 3), "HWC", "int16")
    >>> x.mem_stride, x.nbytes, x.locate((16, 0, 0)).byte
    ((48, 3, 1), 3072, 1536)
    """

    def __init__(
        self,
        shape: ShapeLike,
        layout: str,
        dtype: DTypeLike,
        mem_stride: Sequence[int] | None = None,
        *,
        capacity: int | None = None,
        start: int = 0,
        size: int | None = None,
        oob: Any = None,
    ) -> None:
        shape, kind = _as_extents(shape), dtypes.as_dtype(dtype)
        self.layout: str = _as_letters(layout, shape)
        self.mem_stride: Shape = (
            row_major(shape) if mem_stride is None else _as_mem_stride(mem_stride, shape)
        )
        _, self.min_elements = span(shape, self.mem_stride)
        self.capacity: int | None = None if capacity is None else as_count(capacity, "capacity")
        self.start: int = as_count(start, "start")
        end = self.start + self.min_elements
        self.buffer_size: int = end if size is None else as_count(size, "size")
        if end > self.buffer_size:
            raise LayoutError(
                f"size {self.buffer_size}: the tensor ends at element {end} of its buffer; give "
                "at least as many elements"
            )
        _check_memory(self.min_elements, self.capacity, kind)
        steps, order = strided_steps(shape, self.mem_stride, self.start, self.buffer_size)
        super().__init__(shape, kind, steps, order, oob=oob)

    def _key(self) -> tuple[Any, ...]:
        place = (self.capacity, self.start, self.buffer_size)
        return (self.shape, self.layout, self.dtype, self.mem_stride, *place, repr(self.oob))

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same strides, in elements, with another type; `LayoutError` beyond the capacity."""
        new = super().with_dtype(dtype, oob)
        _check_memory(self.min_elements, self.capacity, new.dtype)
        return new

    _constructor = "mli.tensor", 3

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        named = {name: getattr(self, name) for name in ("shape", "layout", "dtype")}
        if self.mem_stride != row_major(self.shape):
            named["mem_stride"] = self.mem_stride
        if self.capacity is not None:
            named["capacity"] = self.capacity
        if self.start:
            named["start"] = self.start
        if self.buffer_size != self.start + self.min_elements:
            named["size"] = self.buffer_size
        return TensorLayout, {**named, "oob": self.oob}

    def permute(self, perm: Sequence[int], mem_stride: Sequence[int] | None = None) -> TensorLayout:
        """The output of the permute kernel: its dim `k` is dim `perm[k]` of this tensor.

        mem_stride: that of the result, in elements, None for no gaps. The data is
        `x.transpose(perm)`.

        >>> TensorLayout((2, 4, 8), "HWC", "int8").permute((2, 0, 1))
        mli.tensor((8, 2, 4), 'CHW', 'int8')
        """
        order = as_permutation(perm, self.ndim, "perm")
        letters = "".join(self.layout[p] for p in order)
        return TensorLayout([self.shape[p] for p in order], letters, self.dtype, mem_stride)

    def transpose(self, letters: str, mem_stride: Sequence[int] | None = None) -> TensorLayout:
        """The output of `permute` with the order given by letters, such as "HWC->CHW".

        mem_stride: that of the result, in elements, None for no gaps. `mov(x, perm="HWC->CHW")`
        gives the source index of each element.

        `LayoutError` unless the letters before the arrow are this tensor's, and those after it are
        the same letters in any order.

        >>> TensorLayout((32, 16, 3), "HWC", "int8").transpose("HWC->CHW")
        mli.tensor((3, 32, 16), 'CHW', 'int8')
        """
        if not isinstance(letters, str):
            raise LayoutError(f'letters {letters!r} must be a str such as "HWC->CHW"')
        return self.permute(as_order(letters, self.layout), mem_stride)

    def subtensor(
        self, offset: Sequence[int], size: Sequence[int], rank: int | None = None
    ) -> TensorLayout:
        """The part of this tensor at `offset` with extents `size`, in the same buffer.

        rank: the rank of the result; the first dims of extent 1 are dropped to reach it. The
        capacity is that from the part's first element on. `unpack` with the part's layout reads the
        part from this tensor's physical array.

        `LayoutError`: a part outside the tensor; a rank that dropping dims of extent 1 can't reach.

        >>> x = TensorLayout((32, 16, 3), "HWC", "int8").subtensor((16, 0, 0), (16, 16, 3))
        >>> x.start, x.mem_stride
        (768, (48, 3, 1))
        """
        start, extents = as_shape(offset, "offset"), as_shape(size, "size")
        for what, given in (("offset", start), ("size", extents)):
            if len(given) != self.ndim:
                raise LayoutError(f"{what} {given} must be {self.ndim} numbers, one per dim")
        for k, (o, n, extent) in enumerate(zip(start, extents, self.shape, strict=True)):
            if n < 1 or o + n > extent:
                raise LayoutError(
                    f"dim {k}: offset {o} and size {n} must have size >= 1 and offset + size <= "
                    f"the extent, {extent}"
                )
        kept = _kept_dims(extents, rank)
        skipped = sum(o * s for o, s in zip(start, self.mem_stride, strict=True))
        capacity = self.capacity
        if capacity is not None:
            capacity -= skipped * self.dtype.itemsize
        return TensorLayout(
            [extents[k] for k in kept],
            "".join(self.layout[k] for k in kept),
            self.dtype,
            [self.mem_stride[k] for k in kept],
            capacity=capacity,
            start=self.start + skipped,
            size=self.buffer_size,
            oob=self.oob,
        )

    # -- access by hardware --------------------------------------------------------------------

    def lanes(self, vector: int, dim: str | None = None) -> Lanes:
        """The lane use of vectors of `vector` elements along a dim.

        dim: its letter; the default is the depth, which is N for weights, otherwise C.
        `LayoutError`: a vector of 0 elements; a letter that the layout does not have.

        >>> TensorLayout((32, 16, 24), "HWC", "int8").lanes(16)
        Lanes(dim='C', extent=24, vector=16, mem_stride=1)
        """
        vector = as_count(vector, "vector", least=1)
        letter = next((d for d in "NC" if d in self.layout), None) if dim is None else dim
        if not isinstance(letter, str) or len(letter) != 1 or letter not in self.layout:
            raise LayoutError(f"dim {dim!r} must be one letter of the layout {self.layout!r}")
        k = self.layout.index(letter)
        return Lanes(letter, self.shape[k], vector, self.mem_stride[k])

    @property
    def transfers(self) -> Transfers:
        """The linear series in which a DMA transfers this tensor or sub-tensor.

        >>> part = TensorLayout((32, 16, 3), "HWC", "int8").subtensor((0, 0, 0), (16, 8, 3))
        >>> part.transfers
        Transfers(count=16, run=24, jumps=(24,), run_bytes=24)
        """
        return transfers_of(self.shape, self.mem_stride, self.dtype.itemsize)

    def slice_transfers(
        self,
        offset: Sequence[int],
        size: Sequence[int],
        layouts: Sequence[str] | None = None,
    ) -> dict[str, Transfers]:
        """The DMA series of one slice of this tensor, for several layouts of the tensor.

        offset, size: by dim of this tensor, in elements, as for `subtensor`. layouts: orders of the
        tensor's letters; the default is all orders. The tensor's own layout has its strides; the
        others have no gaps. Returns the series by layout.

        >>> x = TensorLayout((32, 16, 3), "HWC", "int8")
        >>> for name, found in x.slice_transfers((0, 0, 0), (16, 16, 3), ["HWC", "CHW"]).items():
        ...     print(name, found)
        HWC Transfers(count=1, run=768, jumps=(), run_bytes=768)
        CHW Transfers(count=3, run=256, jumps=(256,), run_bytes=256)
        """
        if isinstance(layouts, str) or not isinstance(layouts, Sequence | None):
            raise LayoutError(f"layouts {layouts!r} must be a list of layouts, such as ['CHW']")
        low, extents = as_shape(offset, "offset"), as_shape(size, "size")
        self.subtensor(low, extents)  # checks both
        found = {}
        for name in map("".join, permutations(self.layout)) if layouts is None else layouts:
            order = as_order(f"{self.layout}->{name}", self.layout)
            tensor = self if name == self.layout else self.permute(order)
            part = tensor.subtensor([low[p] for p in order], [extents[p] for p in order])
            found[name] = part.transfers
        return found


def as_order(perm: Any, letters: str) -> Shape:
    """Return a permutation of the dims `letters`, given as numbers or as letters "HWC->CHW".

    >>> as_order("HWC->CHW", "HWC"), as_order([2, 0, 1], "HWC")
    ((2, 0, 1), (2, 0, 1))
    """
    if not isinstance(perm, str):
        return as_permutation(perm, len(letters), "perm")
    before, arrow, after = (part.strip() for part in perm.partition("->"))
    if not arrow or before != letters or sorted(after) != sorted(letters):
        raise LayoutError(
            f"{perm!r} must be the tensor's letters, an arrow, and the same letters in a new "
            f"order, such as '{letters}->{letters[::-1]}'"
        )
    return tuple(letters.index(letter) for letter in after)


def _as_extents(shape: Any) -> Shape:
    dims = as_shape(shape, "shape")
    if len(dims) > MAX_RANK:
        raise LayoutError(f"shape {dims} has rank {len(dims)}; MLI tensors have at most {MAX_RANK}")
    if 0 in dims:
        raise LayoutError(f"shape {dims}: every extent of an MLI tensor must be >= 1")
    return dims


def _as_letters(layout: Any, shape: Shape) -> str:
    if not isinstance(layout, str) or set(layout) - set("HWCN1") or len(set(layout)) < len(layout):
        raise LayoutError(
            f"layout {layout!r} must be distinct letters of H, W, C, N and 1, such as HWC or HWCN"
        )
    if len(layout) != len(shape):
        raise LayoutError(f"layout {layout!r} names {len(layout)} dims, but the shape is {shape}")
    for letter, n in zip(layout, shape, strict=True):
        if letter == "1" and n != 1:
            raise LayoutError(f"layout {layout!r}: the dim named 1 has extent {n}, it must be 1")
    return layout


def _as_mem_stride(mem_stride: Any, shape: Shape) -> Shape:
    """Return strides that pass the MLI library's checks, which are stricter than its document."""
    found = as_shape(mem_stride, "mem_stride")
    if len(found) != len(shape):
        raise LayoutError(
            f"mem_stride {found} must be {len(shape)} numbers, one per dim of {shape}"
        )
    for k, stride in enumerate(found):
        if stride < 1:
            raise LayoutError(f"mem_stride[{k}] = {stride} must be >= 1: MLI has no broadcast")
        least = shape[k + 1] * found[k + 1] if k + 1 < len(shape) else 1
        if stride < least:
            raise LayoutError(
                f"mem_stride[{k}] = {stride} must be >= shape[{k + 1}] * mem_stride[{k + 1}] = "
                f"{shape[k + 1]} * {found[k + 1]} = {least}"
            )
    return found


def _check_memory(elements: int, capacity: int | None, dtype: np.dtype[Any]) -> None:
    if dtypes.bits(dtype) < 8:
        raise LayoutError(f"dtype {dtype.name}: elements of an MLI tensor take whole bytes")
    if capacity is not None and elements * dtype.itemsize > capacity:
        raise LayoutError(
            f"capacity {capacity}: the tensor needs {elements * dtype.itemsize} bytes, "
            f"{elements} elements of {dtype.itemsize}"
        )


def _kept_dims(extents: Shape, rank: Any) -> list[int]:
    """The dims that remain when the first dims of extent 1 are dropped to reach `rank`."""
    drop = 0 if rank is None else len(extents) - as_count(rank, "rank")
    ones = [k for k, n in enumerate(extents) if n == 1]
    if not 0 <= drop <= len(ones):
        raise LayoutError(
            f"rank {rank} must be in [{len(extents) - len(ones)}, {len(extents)}]: only dims of "
            f"extent 1 of the size {extents} can be dropped"
        )
    return [k for k in range(len(extents)) if k not in ones[:drop]]
