"""Arguments of a program: checks of shape and dtype, and relayouts to their types' layouts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.placing import put
from gridlayout.ops.array.relayout import relayout
from gridlayout.ops.tenstorrent.table import stored
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.tenstorrent.tensor_type import TensorType


def checked(array: Any, kind: TensorType, what: str, any_shape: bool = False) -> Any:
    """Return the array as a JAX array; a `GridArray` or a `ShapeDtypeStruct` as it is.

    `LayoutError` for another dtype or shape. any_shape: whether other shapes are accepted.
    Truth values become numbers; floats of any width become values of a block format.
    """
    if not isinstance(array, (GridArray, jax.Array, jax.ShapeDtypeStruct)):
        try:
            array = jnp.asarray(array)
        except (TypeError, ValueError) as error:
            raise LayoutError(f"{what} is no array: {error}") from None
    if not any_shape and tuple(array.shape) != kind.shape:
        raise LayoutError(f"{what} has shape {tuple(array.shape)}, not {kind.shape}")
    is_number = kind.tile_format is not None and jnp.issubdtype(array.dtype, jnp.floating)
    if (is_number or array.dtype == bool) and isinstance(array, jax.Array):
        array = stored(array, kind)
    if array.dtype != kind.dtype:
        raise LayoutError(
            f"{what} has dtype {array.dtype.name}, but the program was compiled for "
            f"{np.dtype(kind.dtype).name}: give it in that dtype"
        )
    return array


def laid_out(array: Any, layout: Layout | None, device: DeviceGrid) -> Any:
    """Return a checked array in the layout; without a layout, as it is."""
    if layout is None:
        return array
    return relayout(array, layout) if isinstance(array, GridArray) else put(array, layout, device)


def placeholder(kind: TensorType, layout: Layout | None, mesh: Shape) -> Any:
    """Return what represents an argument in a report: its layout, or its shape."""
    return layout or jax.ShapeDtypeStruct((*mesh, *kind.shape), kind.dtype)
