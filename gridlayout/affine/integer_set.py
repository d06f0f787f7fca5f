"""`AffineSet`: the indices that meet affine constraints; MLIR's integer sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from gridlayout.affine.evaluation import evaluate, program_of
from gridlayout.affine.expressions import AffineExpr, as_expr, checked, constant
from gridlayout.affine.printing import dim_list
from gridlayout.arguments import as_flag, as_items
from gridlayout.errors import LayoutError
from gridlayout.public import public


@public
class AffineSet:
    """The indices that meet all constraints; MLIR's integer set.

    The constraint `(expr, True)` means `expr == 0`, and `(expr, False)` means `expr >= 0`. A set is
    immutable and prints as in MLIR; an empty list of constraints prints as `0 == 0`.

    >>> from gridlayout.affine.expressions import dim
    >>> print(AffineSet(1, [(dim(0), False), (5 - dim(0), False)]))
    (d0) : (d0 >= 0, -d0 + 5 >= 0)
    """

    __slots__ = ("constraints", "num_dims")
    num_dims: int
    constraints: tuple[tuple[AffineExpr, bool], ...]

    def __init__(self, num_dims: int, constraints: Iterable[tuple[AffineExpr | int, bool]]) -> None:
        pairs = tuple(map(_pair, as_items(constraints, "constraints", "pairs (expression, bool)")))
        count, _ = checked(num_dims, [expr for expr, _ in pairs])
        object.__setattr__(self, "num_dims", count)
        object.__setattr__(self, "constraints", pairs or ((constant(0), True),))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"AffineSet is immutable; cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"AffineSet is immutable; cannot delete {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (AffineSet, (self.num_dims, self.constraints))

    def __hash__(self) -> int:
        return hash((self.num_dims, self.constraints))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineSet):
            return NotImplemented
        return (self.num_dims, self.constraints) == (other.num_dims, other.constraints)

    def __str__(self) -> str:
        parts = (f"{expr} {'==' if equal else '>='} 0" for expr, equal in self.constraints)
        return f"{dim_list(self.num_dims)} : ({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"AffineSet({self})"

    def contains(self, *index: Any) -> Any:
        """Whether an index meets all constraints: a bool, or an array of bools for arrays.

        LayoutError: as for `AffineMap.__call__`.

        >>> import numpy as np
        >>> from gridlayout.affine.expressions import dim
        >>> AffineSet(1, [(dim(0) - 2, False)]).contains(np.arange(4))
        array([False, False,  True,  True])
        """
        program = program_of(self.num_dims, tuple(expr for expr, _ in self.constraints))
        values = evaluate(program, index)
        inside: Any = True
        for value, (_, equal) in zip(values, self.constraints, strict=True):
            inside = inside & (value == 0 if equal else value >= 0)
        return inside


def _pair(constraint: Any) -> tuple[AffineExpr, bool]:
    pair = as_items(constraint, "constraint", "an expression and a bool")
    if len(pair) != 2:
        raise LayoutError(f"constraint {constraint!r} must be a pair of an expression and a bool")
    return as_expr(pair[0]), as_flag(pair[1], "the second of a constraint,")
