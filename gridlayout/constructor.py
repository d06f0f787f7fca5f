"""Parser of constructor calls: `sophon.local((2, 3, 4, 5), 'float32', layout='compact')`.

`repr` of a layout prints such a call. So does `str` if the layout's system has no text form
(`gridlayout.layouts.call_text`). The text is never evaluated as Python code: names are looked up in
a table, and arguments must be literals.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any, NoReturn

from gridlayout import megengine, mli, sophon, strided, xla
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.tenstorrent.chip_layout import ChipLayout
from gridlayout.tenstorrent.metal_layout import MetalLayout
from gridlayout.tenstorrent.tt_metal import tensor_layout
from gridlayout.tenstorrent.ttnn_document import ttnn_document
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

_SOPHON = ("local", "matrix", "system", "Chip", "BM1684", "BM1684X", "BM1688", "BM1690")
# Of each system what its texts may call, and the constants that they may name.
_SYSTEMS: dict[str, dict[str, Any]] = {
    "tenstorrent": {"tensor_layout": tensor_layout, "ttnn_document": ttnn_document},
    "sophon": {name: getattr(sophon, name) for name in _SOPHON},
    "megengine": {"format": megengine.format, "strided": megengine.strided},
    "strided": {"layout": strided.layout},
    "mli": {"tensor": mli.tensor},
    "xla": {"layout": xla.layout},
}
# The classes whose `repr` has no system's name in front.
_CLASSES = {made.__name__: made for made in (GridLayout, MetalLayout, TtnnLayout, ChipLayout)}
_NAMES = {
    **_CLASSES,
    **{f"{system}.{name}": x for system, each in _SYSTEMS.items() for name, x in each.items()},
}
_CALL = re.compile(rf"\s*(?:gl\.)?(?:(?:{'|'.join(_SYSTEMS)})\.|(?:{'|'.join(_CLASSES)})\s*\()")


def starts_call(text: str) -> bool:
    """Return whether it starts with a system's name and a dot, or a class name, after gl. or not.

    >>> starts_call("gl.GridLayout((3, 5))"), starts_call("f32[3,5]")
    (True, False)
    """
    return _CALL.match(text) is not None


def read_call(text: str) -> Any:
    """Return the result of the call in `text`; `LayoutError` names the column of an error."""
    call = text.strip()
    blanks = len(text) - len(text.lstrip())
    try:
        tree = ast.parse(call, mode="eval")
    except SyntaxError as error:
        at = min(_start(call, error.lineno or 1) + (error.offset or 1) - 1, len(call))
        raise LayoutError(f"column {blanks + at + 1}: {error.msg}") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise LayoutError(f"column 1: the text can't be read: {error}") from None
    try:
        return _value(tree.body)
    except _Refused as refused:
        start = _start(call, refused.node.lineno)
        at = start + len(call[start:].encode()[: refused.node.col_offset].decode())
        raise LayoutError(f"column {blanks + at + 1}: {refused}") from None
    except RecursionError:
        raise LayoutError("column 1: the text is nested too deeply") from None


def _start(text: str, line: int) -> int:
    """Return the position of the first character of a line, which `ast` counts from 1."""
    ends = [found.end() for found in re.finditer(r"\r\n?|\n", text)]
    return [0, *ends][:line][-1]


class _Refused(Exception):
    """A node that is refused; the message says why."""

    def __init__(self, node: ast.expr, message: str) -> None:
        super().__init__(message)
        self.node = node


def _fail(node: ast.expr, message: str) -> NoReturn:
    raise _Refused(node, message)


# No size, index or padding value has more bits, and Python refuses to print the longest integers.
_MAX_BITS = 128


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(int() as value) if value.bit_length() > _MAX_BITS:
            _fail(node, f"a number of {value.bit_length()} bits is over 2**{_MAX_BITS}")
        case ast.Constant(value) if isinstance(value, (int, float, complex, str, type(None))):
            return value
        case ast.Tuple(elts) | ast.List(elts):
            return tuple(_value(e) for e in elts)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() | complex()) as positive):
            return -_value(positive)
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, ast.Constant(complex() as imaginary)):
            real = _value(left)  # a complex number prints as a sum
            if isinstance(real, (int, float)):
                return real + imaginary if isinstance(sign, ast.Add) else real - imaginary
        case ast.Attribute():
            return _named(node)
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as word)], []):
            return float(word)
        case ast.Call(ast.Name("complex"), [real, imaginary], []):
            parts = (_value(real), _value(imaginary))
            if all(isinstance(part, (int, float)) for part in parts):
                return complex(*parts)
        case ast.Call(func, args, keywords):
            return _called(node, func, args, keywords)
    _fail(node, "expected a number, a string, a tuple, or a call of a layout constructor")


def _named(node: ast.expr) -> Any:
    name = ast.unparse(node)
    if (found := _NAMES.get(name.removeprefix("gl."))) is None:
        _fail(node, f"{name[:48]!r} is not one of {', '.join(_NAMES)}")
    return found


def _called(
    node: ast.expr, func: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]
) -> Any:
    made = _named(func)
    if not callable(made):
        _fail(node, f"{ast.unparse(func)} is not a constructor")
    named = {}
    for keyword in keywords:
        if keyword.arg is None:
            _fail(node, "** is not a literal argument")
        named[keyword.arg] = _value(keyword.value)
    values = [_value(a) for a in args]
    try:
        inspect.signature(made).bind(*values, **named)
    except TypeError as error:
        _fail(node, f"{ast.unparse(func)}: {error}")
    try:
        return made(*values, **named)
    except LayoutError as error:
        _fail(node, str(error))
