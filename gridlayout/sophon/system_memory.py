"""Tensors in system memory: (n, c, h, w) -> n * Ns + c * Cs + h * Hs + w * Ws.

Strides count elements of the view (`gridlayout.sophon.tensors`). Bytes count from the start of the
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_count
from gridlayout.public import public
from gridlayout.sophon import strides as rules
from gridlayout.sophon.tensors import Tensor, storage_argument

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@public
def system(
    shape: Sequence[int],
    dtype: DTypeLike,
    strides: Sequence[int | None] | None = None,
    storage: str | None = None,
    *,
    start: int = 0,
    lanes: int | None = None,
    oob: Any = None,
) -> SystemLayout:
    """Return a tensor (N, C, H, W) in system memory (Sophon, "Strides in System Memory").

    strides: those of N, C, H and W, in elements, or None for the continuous layout. 0 broadcasts,
    and the stride of a dim of extent 1 may be None. start: the address in bytes. storage, lanes,
    oob: as in `local`; a chip reads 4N data that is stored in 4N here too.

    `LayoutError`: extents < 1; a negative address; a storage mode for another dtype; None for a
    stride that has an effect.

    >>> x = system((2, 3, 4, 5), "float32", start=4096)
    >>> x.strides, x.address((1, 0, 0, 0))
    ((60, 20, 5, 1), 4336)
    """
    shape, kind = rules.as_nchw(shape), dtypes.as_dtype(dtype)
    count = rules.as_lanes(storage, lanes, kind)
    return SystemLayout(shape, kind, strides, count, start=start, oob=oob)


@public
class SystemLayout(Tensor):
    """A tensor in system memory; created by `system`. Its buffer ends with its last element."""

    def __init__(
        self,
        shape: Shape,
        dtype: DTypeLike,
        strides: Any = None,
        lanes: int = 1,
        *,
        start: int = 0,
        oob: Any = None,
    ) -> None:
        view = (-(-shape[0] // lanes), *shape[1:])
        strides = _continuous(view) if strides is None else rules.as_strides(strides, view)
        place = (view, strides, lanes, as_count(start, "start"), None)
        super().__init__(shape, dtype, *place, allocation=rules.span(strides, view), oob=oob)

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self._moving, self.lanes, self.start, repr(self.oob))

    @property
    def canonical(self) -> SystemLayout:
        """The same layout with continuous strides, or with 0 for those that have no effect."""
        strides = _continuous(self.view_shape)
        is_same = rules.moving(strides, self._extents) == self._moving
        return self._changed(strides=strides if is_same else self._moving)

    _either = (("storage", "lanes"),)

    _constructor = "sophon.system", 2

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        named: dict[str, Any] = {"shape": self.shape, "dtype": self.dtype}
        if self.strides != _continuous(self.view_shape):
            named["strides"] = self.strides
        named |= {"start": self.start} if self.start else {}
        return system, {**named, **storage_argument(self), "oob": self.oob}


def _continuous(view: Shape) -> Shape:
    """Strides without gaps (Sophon, "Continuous Layout")."""
    _, channels, height, width = view
    return (channels * height * width, height * width, width, 1)
