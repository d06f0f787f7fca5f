"""The text of affine expressions and maps, as MLIR prints it; `parsing` reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Expr(Protocol):
    """The attributes of an `AffineExpr` (`gridlayout.affine.expressions`) that printing reads."""

    @property
    def kind(self) -> str:
        """dim, constant, add, mul, floordiv, ceildiv or mod."""

    @property
    def value(self) -> int:
        """The dim's position, the constant, or the constant right operand."""

    @property
    def lhs(self) -> Expr | None:
        """The left operand, of all but dims and constants."""

    @property
    def rhs(self) -> Expr | None:
        """The right operand, of add only."""


def dim_list(count: int) -> str:
    """The dims as MLIR lists them.

    >>> dim_list(2)
    '(d0, d1)'
    """
    return f"({', '.join(f'd{position}' for position in range(count))})"


def map_text(num_dims: int, results: Iterable[Expr]) -> str:
    """The text of the map from `num_dims` dims to `results`.

    >>> map_text(1, [])
    '(d0) -> ()'
    """
    return f"{dim_list(num_dims)} -> ({', '.join(map(expr_text, results))})"


def expr_text(expr: Expr, strong: bool = False) -> str:
    """The text of an expression. strong: whether to put it in parentheses if it has an operator.

    >>> from gridlayout.affine.expressions import dim
    >>> expr_text(dim(0) // 4), expr_text(dim(0) // 4, strong=True)
    ('d0 floordiv 4', '(d0 floordiv 4)')
    """
    if expr.lhs is None:
        return f"d{expr.value}" if expr.kind == "dim" else str(expr.value)
    if expr.rhs is not None:
        text = f"{expr_text(expr.lhs)}{_addend(expr.rhs)}"
    elif expr.kind == "mul" and expr.value == -1:
        text = f"-{expr_text(expr.lhs, strong=True)}"
    else:
        spelling = "*" if expr.kind == "mul" else expr.kind
        text = f"{expr_text(expr.lhs, strong=True)} {spelling} {expr.value}"
    return f"({text})" if strong else text


def _addend(expr: Expr) -> str:
    if expr.kind == "constant" and expr.value < 0:
        return f" - {-expr.value}"
    if expr.kind == "mul" and expr.lhs is not None and expr.value < 0:
        if expr.value == -1:
            return f" - {expr_text(expr.lhs, strong=expr.lhs.kind == 'add')}"
        return f" - {expr_text(expr.lhs, strong=True)} * {-expr.value}"
    return f" + {expr_text(expr)}"
