"""Element types: NumPy dtypes, their names in MLIR and XLA text, bit widths and padding values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from numbers import Number
from typing import Any

import ml_dtypes  # comes with every JAX: it gives NumPy the types bfloat16, int4, float8_...
import numpy as np

from gridlayout.arguments import in_short, shown
from gridlayout.errors import LayoutError

_INTS = (2, 4, 8, 16, 32, 64)  # bits of integers
_NARROW = ("float4", "float8")  # XLA's names of these types are MLIR's in small letters
MLIR_NAMES: dict[str, str] = {
    "bool": "i1",
    **{f"int{n}": f"i{n}" for n in _INTS},
    **{f"uint{n}": f"ui{n}" for n in _INTS},
    # MLIR's i1 is the type of booleans, so integers of 1 bit state their sign.
    **{
        name: mlir for name, mlir in (("int1", "si1"), ("uint1", "ui1")) if hasattr(ml_dtypes, name)
    },
    **{"float4_e2m1fn": "f4E2M1FN", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"},
    **{"float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3", "float8_e8m0fnu": "f8E8M0FNU"},
    **{"float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fnuz": "f8E4M3FNUZ"},
    **{"float8_e5m2fnuz": "f8E5M2FNUZ", "float16": "f16", "bfloat16": "bf16"},
    **{"float32": "f32", "float64": "f64"},
    **{"complex64": "complex<f32>", "complex128": "complex<f64>"},
}
_KNOWN = frozenset(map(np.dtype, MLIR_NAMES))
FROM_MLIR = {name: dtype for dtype, name in MLIR_NAMES.items()}
FROM_XLA: dict[str, str] = {
    "pred": "bool",
    **{f"u{n}": f"uint{n}" for n in _INTS},
    **{f"s{n}": f"int{n}" for n in _INTS},
    **{"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
    **{"c64": "complex64", "c128": "complex128"},
    **{mlir.lower(): name for name, mlir in MLIR_NAMES.items() if name.startswith(_NARROW)},
    **{f"{name[0].replace('i', 's')}1": name for name in ("int1", "uint1") if name in MLIR_NAMES},
}
XLA_NAMES = {dtype: name for name, dtype in FROM_XLA.items()}
# Tiles have their own names for these types (Tenstorrent's `!ttcore.tile<32x32, si32>`).
TILE_NAMES = {"uint32": "u32", "uint16": "u16", "uint8": "u8", "int32": "si32"}
FROM_TILE = {name: dtype for dtype, name in TILE_NAMES.items()}
# MLIR's integers with a stated sign; those of `MLIR_NAMES` have none, such as i32.
FROM_SIGNED = {f"si{n}": f"int{n}" for n in _INTS}
# The names of elements of Tenstorrent's tensors, memrefs and tiles.
FROM_ELEMENT = {**FROM_SIGNED, **FROM_TILE, **FROM_MLIR}

# Every name that the library prints, and MLIR's other signed integers. They take precedence over
# NumPy's codes, which count bytes: "u8" means uint8 here, but uint64 in NumPy.
_PRINTED = {
    **FROM_SIGNED,
    **FROM_MLIR,
    **FROM_XLA,
    **FROM_TILE,
}

# Bits of the types that are smaller than a byte.
_SMALL_BITS = {
    **{f"{sign}int{n}": n for sign in ("", "u") for n in (1, 2, 4)},
    "float4_e2m1fn": 4,
}
# Types without an infinity.
_SATURATING = (
    *("float4_e2m1fn", "float8_e4m3fn", "float8_e8m0fnu", "float8_e4m3b11fnuz"),
    *("float8_e4m3fnuz", "float8_e5m2fnuz"),
)

# Bytes of a 32x32 tile whose elements share exponents in groups of 16 (Tenstorrent tile formats).
# The exponents take 64 bytes per 1024 elements.
BLOCK_FORMATS: dict[str, int] = {"bfp_bf8": 1088, "bfp_bf4": 576, "bfp_bf2": 320}

Scalar = bool | int | float | complex
# One object for NaN, so that facts about padding compare equal by identity inside tuples.
NAN = float("nan")
OOB_NAMES: dict[str, Scalar | None] = {
    "undef": None,
    "zero": 0,
    "one": 1,
    "inf": math.inf,
    "neginf": -math.inf,
}


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of a name, a type or a dtype.

    Names are those of NumPy, and those of MLIR, XLA and Tenstorrent's tiles as the library prints
    them. A name that is also a NumPy code (`u8`, `i4`) counts bits, as in MLIR. `LayoutError` for
    a dtype that no layout can hold.

    >>> as_dtype("bfloat16"), as_dtype("bf16"), as_dtype("u8"), as_dtype("si32")
    (dtype(bfloat16), dtype(bfloat16), dtype('uint8'), dtype('int32'))
    """
    if isinstance(dtype, np.dtype) and dtype in _KNOWN:
        return dtype
    if isinstance(dtype, str) and dtype in BLOCK_FORMATS:
        raise LayoutError(
            f"dtype {dtype!r} is a block format of tiles: give tile_format={dtype!r} where there "
            "is one, and the dtype of the elements"
        )
    if isinstance(dtype, (tuple, list)) and all(isinstance(n, int) for n in dtype):
        raise LayoutError(
            f"dtype {dtype!r} is no element type: name other arguments, as in grid={dtype!r}"
        )
    try:
        if isinstance(dtype, str):
            dtype = _PRINTED.get(dtype, dtype)
            if "(" in dtype:
                raise TypeError("NumPy reads what is in parentheses as code")
        # NumPy reads None as float64; here None is a mistake.
        found = np.dtype("" if dtype is None else dtype)
    except Exception as error:  # NumPy's and whatever else an object's own `dtype` raises
        raise LayoutError(
            f"dtype {shown(dtype)} is not known; use one of {', '.join(MLIR_NAMES)}"
        ) from error
    if found.name not in MLIR_NAMES:
        raise LayoutError(
            f"dtype {found.name!r} is not supported; use one of {', '.join(MLIR_NAMES)}"
        )
    return found.newbyteorder("=") if found.byteorder == ">" else found


def untyped(x: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return numbers and nested lists of them as an array of `dtype`.

    `LayoutError` for anything else, and where an integer dtype does not hold them exactly.

    >>> untyped([[1, 2.0]], np.dtype("int8")).tolist()
    [[1, 2]]
    """
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            made, given = np.asarray(x, dtype), np.asarray(x)
            is_whole = _kind(dtype) in ("int", "bool")
            same = not is_whole or np.array_equal(made.astype(object), np.asarray(x, object))
    except (TypeError, ValueError, OverflowError) as error:
        raise LayoutError(
            f"{in_short(x)} can't be read as an array of {dtype.name}, the layout's dtype: {error}"
        ) from None
    if given.dtype.kind in "OSU" and not all(isinstance(n, Number) for n in given.flat):
        raise LayoutError(
            f"{in_short(x)} can't be read as an array of {dtype.name}, the layout's dtype: it "
            "holds values that are no numbers"
        )
    if not same:
        raise LayoutError(
            f"{in_short(x)} holds numbers that {dtype.name}, the layout's dtype, can't represent: "
            "round them first, or give a layout of another dtype"
        )
    return made


@cache
def bits(dtype: np.dtype[Any]) -> int:
    """Return the bits that one element takes in a core's memory: 4 for int4, 8 for bool.

    >>> bits(as_dtype("int4")), bits(as_dtype("bool")), bits(as_dtype("complex64"))
    (4, 8, 64)
    """
    return _SMALL_BITS.get(dtype.name, dtype.itemsize * 8)


def nbytes(size: int | Sequence[int], dtype: np.dtype[Any]) -> int:
    """Return the bytes of an array: whole bytes, which small elements share.

    size: its number of elements, or its shape.

    >>> nbytes(3, as_dtype("int4")), nbytes((3, 2), as_dtype("bfloat16"))
    (2, 12)
    """
    count = size if isinstance(size, int) else math.prod(size)
    return -(-count * bits(dtype) // 8)


@cache
def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the accumulation type of partial sums: float32 for floats under 4 bytes.

    >>> sum_dtype(as_dtype("bfloat16")).name, sum_dtype(as_dtype("int8")).name
    ('float32', 'int8')
    """
    narrow = _kind(dtype) == "float" and dtype.itemsize < 4
    return np.dtype(np.float32) if narrow else dtype


def oob_value(oob: Any, dtype: np.dtype[Any]) -> Scalar | None:
    """Return a padding value as a value of `dtype`; None means undef.

    oob: a number, or one of the names `undef zero one inf neginf`. Integers saturate, and so do
    floats without an infinity. `LayoutError` for a value that `dtype` cannot hold.

    >>> oob_value("neginf", as_dtype("int8")), oob_value(300, as_dtype("uint8"))
    (-128, 255)
    """
    if isinstance(oob, str):
        if oob not in OOB_NAMES:
            raise LayoutError(
                f"oob {shown(oob)} is not one of {', '.join(OOB_NAMES)}, nor a number"
            )
        oob = OOB_NAMES[oob]
    if oob is None:
        return None
    if isinstance(oob, np.generic) or (isinstance(oob, np.ndarray) and oob.ndim == 0):
        oob = oob.item()
    if not isinstance(oob, (bool, int, float, complex)):
        raise LayoutError(
            f"oob {shown(oob)} is neither a name ({', '.join(OOB_NAMES)}) nor a number"
        )
    kind = _kind(dtype)
    if kind in ("complex", "float") and isinstance(oob, int):
        oob = _nearest_float(oob)
    if kind == "complex":
        with np.errstate(over="ignore"):
            return _plain(dtype.type(complex(oob)).item())
    if isinstance(oob, complex):
        raise LayoutError(f"oob {oob!r} is complex, but the dtype is {dtype.name}")
    if kind == "float":
        return _float_value(float(oob), dtype)
    return _integer_value(oob, dtype, kind)


@cache
def _kind(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "biuc":
        return {"b": "bool", "i": "int", "u": "int", "c": "complex"}[dtype.kind]
    return "int" if dtype.name.startswith(("int", "uint")) else "float"


def _nearest_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _plain(value: Any) -> Scalar:
    """Return `value`, with any NaN replaced by the object `NAN`."""
    return NAN if value != value else value


def _float_value(value: float, dtype: np.dtype[Any]) -> Scalar:
    info = ml_dtypes.finfo(dtype)
    largest = float(info.max)
    if value != value and dtype.name == "float4_e2m1fn":
        raise LayoutError(f"oob nan is not a value of {dtype.name}; use undef, zero or a number")
    if value == 0 and not has_zero(dtype):
        raise LayoutError(
            f"oob zero is not a value of {dtype.name}, which holds powers of two: use undef or one"
        )
    if dtype.name in _SATURATING and value == value:
        value = min(max(value, float(info.min)), largest)
    with np.errstate(over="ignore"):
        return _plain(float(dtype.type(value)))


def _integer_value(value: bool | int | float, dtype: np.dtype[Any], kind: str) -> Scalar:
    if value != value:
        raise LayoutError(f"oob nan is not a value of {dtype.name}; use undef, zero or a number")
    if kind == "bool":
        low, high = 0, 1
    else:
        info = ml_dtypes.iinfo(dtype)
        low, high = int(info.min), int(info.max)
    if value in (math.inf, -math.inf):
        value = high if value > 0 else low
    if value != int(value):
        raise LayoutError(f"oob {value!r} is not a whole number, but the dtype is {dtype.name}")
    value = min(max(int(value), low), high)
    return bool(value) if kind == "bool" else value


def has_zero(dtype: np.dtype[Any]) -> bool:
    """Return whether the type can hold zero; float8_e8m0fnu holds powers of two only.

    >>> has_zero(as_dtype("float8_e5m2")), has_zero(as_dtype("float8_e8m0fnu"))
    (True, False)
    """
    return dtype.name != "float8_e8m0fnu"


def oob_text(oob: Scalar | None) -> str:
    """Return the padding value's name in tt-mlir's documents, or the number as text.

    >>> oob_text(None), oob_text(0.0), oob_text(-0.0), oob_text(7)
    ('undef', 'zero', '-0.0', '7')
    """
    if oob is None:
        return "undef"
    kind: Any = type(oob)
    for name, value in OOB_NAMES.items():
        # Compare by repr too: -0.0 and complex zeros with a sign equal 0, but are not "zero".
        if value is not None and oob == value and repr(oob) == repr(kind(value)):
            return name
    return repr(oob)


def oob_code(oob: Scalar | None) -> str:
    """Return a padding value as Python source for a constructor call.

    >>> oob_code(0.0), oob_code(-0.0), oob_code(NAN)
    ("'zero'", '-0.0', "float('nan')")
    """
    word = oob_text(oob)
    return repr(word) if word in OOB_NAMES else number_code(oob)


def number_code(value: Scalar | None) -> str:
    """Return a number as Python source that evaluates to exactly that number.

    This includes infinities, NaN and the signs of complex zeros.

    >>> number_code(math.inf), number_code(complex(-0.0, 2.5)), number_code(7)
    ("float('inf')", 'complex(-0.0, 2.5)', '7')
    """
    if isinstance(value, complex):
        return f"complex({number_code(value.real)}, {number_code(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)
