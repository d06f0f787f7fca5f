"""The text of layouts whose system has none of its own: the constructor call that makes them.

`sophon.local((2, 3, 4, 5), 'float32', layout='compact')` is read by this module and by nothing
that runs it: names are looked up in a table, arguments are literals.
"""

from __future__ import annotations

import ast
import inspect
import math
from importlib import import_module
from typing import Any, NoReturn

from gridlayout.errors import LayoutError

# module: what its texts may call, and the constants that they may name.
_NAMES: dict[str, tuple[str, ...]] = {
    "tenstorrent": ("tensor_layout",),
    "sophon": (
        *("local", "matrix", "system", "Chip"),
        *("BM1684", "BM1684X", "BM1688", "BM1690"),
    ),
    "megengine": ("format", "strided"),
    "mli": ("tensor",),
    "xla": ("layout",),
}


def call_text(name: str, *args: Any, **kwargs: Any) -> str:
    """The text of a call; arguments print as their repr, infinities and NaN as `float('inf')`.

    >>> call_text("mli.tensor", (4, 5, 3), "HWC", "int8", mem_stride=None)
    "mli.tensor((4, 5, 3), 'HWC', 'int8', mem_stride=None)"
    """
    arguments = [_text(a) for a in args] + [f"{k}={_text(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(arguments)})"


def _text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def starts_call(text: str) -> bool:
    """Whether the text begins like a constructor call: the name of a system and a dot."""
    return text.lstrip().partition(".")[0] in _NAMES


def read_call(text: str) -> Any:
    """What the call in `text` makes. `LayoutError` names the column of what it can't be."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise LayoutError(f"column {error.offset or 1}: {error.msg}") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise LayoutError(f"column 1: the text can't be read: {error}") from None
    try:
        return _value(tree.body)
    except RecursionError:
        raise LayoutError("column 1: the text nests too deep") from None


def _fail(node: ast.expr, message: str) -> NoReturn:
    raise LayoutError(f"column {node.col_offset + 1}: {message}")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value) if isinstance(value, (int, float, complex, str, type(None))):
            return value
        case ast.Tuple(elts) | ast.List(elts):
            return tuple(_value(e) for e in elts)
        case ast.UnaryOp(ast.USub(), ast.Constant(value)) if isinstance(
            value, (int, float, complex)
        ):
            return -value
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, ast.Constant(complex() as imaginary)):
            real = _value(left)  # a complex number prints as a sum
            if isinstance(real, (int, float)):
                return real + imaginary if isinstance(sign, ast.Add) else real - imaginary
        case ast.Attribute():
            return _named(node)
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as word)], []):
            return float(word)
        case ast.Call(func, args, keywords):
            return _called(node, func, args, keywords)
    _fail(node, "expected a number, a string, a tuple, or a call of a layout constructor")


def _named(node: ast.expr) -> Any:
    match node:
        case ast.Attribute(ast.Name(module), name) if name in _NAMES.get(module, ()):
            return getattr(import_module(f"gridlayout.{module}"), name)
    known = (f"{module}.{name}" for module, names in _NAMES.items() for name in names)
    _fail(node, f"{ast.unparse(node)[:48]!r} is not one of {', '.join(known)}")


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
