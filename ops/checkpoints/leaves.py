"""Encoding of a tree's leaves for Orbax, with the kind of each leaf, which restores its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import check_has_data, check_no_stack
from gridlayout.ops.checkpoints.handler import local_bytes, storage_name, with_stored_dtype
from gridlayout.ops.checkpoints.record import LayoutRecord
from gridlayout.ops.trees.leaves import Leaf

# The kind of a leaf, and what else Orbax's files don't record of it, such as its dtype.
Kind = dict[str, Any]
# What is saved for an array without elements, because Orbax refuses those.
_NOTHING = 0


def name_of(keys: Sequence[str]) -> str:
    """Return the name of a leaf in Orbax's files."""
    return ".".join(keys)


def check_names(leaves: Sequence[Leaf]) -> None:
    """`LayoutError` if two leaves have the same name, or a name is not valid Unicode."""
    known: dict[str, Leaf] = {}
    for leaf in leaves:
        name = name_of(leaf.keys)
        _check_text(name)
        for each in (name, storage_name(name)) if leaf.is_laid_out else (name,):
            other = known.setdefault(each, leaf)
            if other is not leaf:
                raise LayoutError(
                    f"{other} and {leaf} have the same name in the files, {each!r}: rename one"
                )


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LayoutError(f"the text {text!r} can't be encoded as UTF-8: replace it") from None


def encode(leaf: Leaf, is_copied: bool) -> tuple[Any, Kind | None]:
    """Return a leaf as Orbax takes it, and its kind; (None, None) if it is not saved.

    is_copied: whether to copy NumPy arrays, because their owner may change them meanwhile.
    """
    x = leaf.value
    with leaf.named():
        if isinstance(x, (jax.ShapeDtypeStruct, jax.core.Tracer)):
            raise LayoutError(
                "gl.save needs arrays with data: give no ShapeDtypeStruct, and call it outside of "
                "JAX's jit"
            )
        if leaf.is_laid_out:
            check_has_data(x, "gl.save")
            check_no_stack(x)
            LayoutRecord.of(x)  # raises where the layout has no text
            return x, {"kind": "grid"}
        if leaf.is_key:
            kind = {"kind": "key", "implementation": str(jax.random.key_impl(x))}
            return _array(jax.random.key_data(x))[0], kind
        if isinstance(x, jax.Array):
            return _array(x)
        if leaf.is_array:
            return _array(x, is_copied)
        return _number(x)


def _array(x: Any, is_copied: bool = False) -> tuple[Any, Kind]:
    kind: Kind = {"kind": "jax" if isinstance(x, jax.Array) else "numpy"}
    if isinstance(x, np.generic):
        kind = {"kind": "scalar"}
    if not isinstance(x, jax.Array):
        x = np.array(x) if is_copied else np.asarray(x)
    # Elements of one byte are saved as uint8 if TensorStore lacks their dtype, wider ones are not.
    is_wide = x.dtype.itemsize > 1 and _lacks(x.dtype)
    if is_wide or x.dtype.hasobject or x.dtype.kind in "USmM" or x.dtype.names:
        raise LayoutError(
            f"a checkpoint can't hold elements of {x.dtype}: convert them to a dtype of JAX"
        )
    if not x.size:
        return _NOTHING, {**kind, "shape": list(x.shape), "dtype": x.dtype.name}
    stored = _stored(x)
    if stored.dtype != x.dtype:
        kind = {**kind, "dtype": x.dtype.name}
    return stored, kind


def _stored(x: Any) -> Any:
    if not isinstance(x, jax.Array):
        return x.view(np.uint8) if _lacks(x.dtype) else x
    # A process-local array: the primary process writes its own, as a NumPy array.
    is_local = jax.process_count() > 1 and x.is_fully_addressable
    return _stored(np.asarray(x)) if is_local else with_stored_dtype(x)


def _lacks(dtype: np.dtype[Any]) -> bool:
    import tensorstore as ts

    try:
        ts.dtype(dtype.name)
    except (TypeError, ValueError):
        return True
    return False


def _number(x: Any) -> tuple[Any, Kind | None]:
    """Encode a Python number or text; (None, None) for anything else, such as a function."""
    if isinstance(x, (bytes, bytearray)):
        raise LayoutError(
            f"a checkpoint can't hold {type(x).__name__}: save np.frombuffer(x, 'uint8') instead"
        )
    if isinstance(x, str):
        _check_text(x)
        return x, {"kind": "str"}
    if isinstance(x, (bool, complex)):
        return np.asarray(x), {"kind": type(x).__name__}
    if isinstance(x, int):
        if not -(2**63) <= x < 2**63:
            raise LayoutError(f"{x} does not fit 64 bits, in which integers are saved")
        return int(x), {"kind": "int"}
    return (float(x), {"kind": "float"}) if isinstance(x, float) else (None, None)


def bytes_of(x: Any) -> int:
    """Return the bytes of a `GridArray` that this process writes; 0 for other leaves."""
    return local_bytes(x.storage) if hasattr(x, "layout") else 0
