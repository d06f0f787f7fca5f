"""Affine expressions: dims, constants, `+`, `* constant`, `floordiv`, `ceildiv` and `mod`.

They follow MLIR. Building an expression applies MLIR's own simplifications (LLVM,
mlir/lib/IR/AffineExpr.cpp), so that it prints as MLIR prints it. `floordiv` rounds towards minus
infinity, and `mod` is its remainder, which is at least 0. Constants fit int64.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from math import gcd
from typing import Any, Literal, NoReturn, SupportsIndex

from gridlayout.affine.printing import expr_text
from gridlayout.arguments import as_items, int64
from gridlayout.caching import cached
from gridlayout.errors import LayoutError

Kind = Literal["dim", "constant", "add", "mul", "floordiv", "ceildiv", "mod"]

# Limits of one expression. Recursion over it stays far below Python's limit, and a chain of
# compositions that doubles the size at every step fails before it exhausts memory.
MAX_DEPTH, MAX_NODES = 128, 4096


class AffineExpr:
    """An affine expression: an immutable tree, compared and hashed by structure.

    `kind` is the kind of the root node. `value` is the dim's position, the constant, or the
    constant right operand of mul, floordiv, ceildiv and mod. `lhs` and `rhs` are the operands that
    are expressions; only add has `rhs`. Operators `+ - * // %` take expressions and ints.
    LayoutError: a product without a constant, a divisor that is not a positive constant, a constant
    outside int64, more than MAX_NODES nodes or MAX_DEPTH levels.

    >>> d0, d1 = dims(2)
    >>> (d0 * 128 + d1) // 64, 5 - d0 * 3, d0 - d0 // 8 * 8
    (AffineExpr(d0 * 2 + d1 floordiv 64), AffineExpr(d0 * -3 + 5), AffineExpr(d0 mod 8))
    """

    __slots__ = ("_hash", "depth", "dims", "divisor", "kind", "lhs", "nodes", "rhs", "value")
    kind: Kind
    value: int
    lhs: AffineExpr | None
    rhs: AffineExpr | None
    nodes: int  # nodes of the tree; a shared part counts each time it occurs
    depth: int
    dims: frozenset[int]  # the positions of the dims that it reads
    divisor: int  # MLIR's largest known divisor; 0 for the constant 0, which every number divides
    _hash: int

    def __init__(
        self,
        kind: Kind,
        value: int,
        lhs: AffineExpr | None = None,
        rhs: AffineExpr | None = None,
    ) -> None:
        nodes = depth = 1
        for operand in (lhs, rhs):
            if operand is not None:
                nodes, depth = nodes + operand.nodes, max(depth, 1 + operand.depth)
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise LayoutError(
                f"expression of {nodes} nodes and {depth} levels is too large; "
                f"keep to {MAX_NODES} nodes and {MAX_DEPTH} levels"
            )
        put = object.__setattr__
        put(self, "kind", kind)
        put(self, "value", value)
        put(self, "lhs", lhs)
        put(self, "rhs", rhs)
        put(self, "nodes", nodes)
        put(self, "depth", depth)
        put(self, "dims", _dims(kind, value, lhs, rhs))
        put(self, "divisor", _known_divisor(kind, value, lhs, rhs))
        put(self, "_hash", hash((kind, value, lhs, rhs)))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"AffineExpr is immutable; cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"AffineExpr is immutable; cannot delete {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (AffineExpr, (self.kind, self.value, self.lhs, self.rhs))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, AffineExpr):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.kind == other.kind
            and self.value == other.value
            and self.lhs == other.lhs
            and self.rhs == other.rhs
        )

    def __add__(self, other: AffineExpr | int) -> AffineExpr:
        operand = _operand(other)
        return NotImplemented if operand is None else _add(self, operand)

    def __radd__(self, other: int) -> AffineExpr:
        operand = _operand(other)
        return NotImplemented if operand is None else _add(operand, self)

    def __sub__(self, other: AffineExpr | int) -> AffineExpr:
        operand = _operand(other)
        return NotImplemented if operand is None else _add(self, _mul(operand, -1))

    def __rsub__(self, other: int) -> AffineExpr:
        operand = _operand(other)
        return NotImplemented if operand is None else _add(operand, _mul(self, -1))

    def __neg__(self) -> AffineExpr:
        return _mul(self, -1)

    def __mul__(self, other: AffineExpr | int) -> AffineExpr:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        if operand.kind == "constant":
            return _mul(self, operand.value)
        if self.kind == "constant":
            return _mul(operand, self.value)
        raise LayoutError(f"({self}) * ({operand}) is not affine; one factor must be a constant")

    __rmul__ = __mul__

    def __floordiv__(self, other: AffineExpr | int) -> AffineExpr:
        operand = _operand(other)
        return NotImplemented if operand is None else _floordiv(self, _divisor(self, operand))

    def __mod__(self, other: AffineExpr | int) -> AffineExpr:
        operand = _operand(other)
        return NotImplemented if operand is None else _mod(self, _divisor(self, operand))

    def __str__(self) -> str:
        return expr_text(self)

    def __repr__(self) -> str:
        return f"AffineExpr({self})"


Exprs = tuple[AffineExpr, ...]  # the results of a map


def dim(position: int) -> AffineExpr:
    """The dim at a position, counted from 0.

    >>> str(dim(2))
    'd2'
    """
    checked = int64(position, "dim")
    if checked < 0:
        raise LayoutError(f"dim {checked} is below 0; dims are counted from 0")
    return _leaf("dim", checked)


def constant(value: int) -> AffineExpr:
    """The constant expression of an int that fits int64.

    >>> str(constant(-3) + dim(0))
    'd0 - 3'
    """
    return _leaf("constant", int64(value, "constant"))


@cached(entries=1024)
def _leaf(kind: Literal["dim", "constant"], value: int) -> AffineExpr:
    return AffineExpr(kind, value)


def dims(count: int) -> tuple[AffineExpr, ...]:
    """The first `count` dims.

    >>> i, j = dims(2)
    >>> str(i * 32 + j)
    'd0 * 32 + d1'
    """
    return tuple(dim(position) for position in range(count))


def ceildiv(numerator: AffineExpr | int, divisor: AffineExpr | int) -> AffineExpr:
    """The quotient by a positive constant, rounded towards plus infinity.

    >>> str(ceildiv(dim(0) + 1, 4))
    '(d0 + 1) ceildiv 4'
    """
    lhs = as_expr(numerator)
    return _ceildiv(lhs, _divisor(lhs, as_expr(divisor)))


def as_expr(value: AffineExpr | int) -> AffineExpr:
    """Return an expression unchanged, and an int as a constant expression.

    >>> str(as_expr(3))
    '3'
    """
    operand = _operand(value)
    if operand is None:
        raise LayoutError(f"{value!r} is neither an affine expression nor an int")
    return operand


def walk(*roots: AffineExpr) -> Iterator[AffineExpr]:
    """Yield each distinct subexpression of the roots once, operands before their users.

    >>> [str(e) for e in walk(dim(0) // 4 * 8)]
    ['d0', 'd0 floordiv 4', '(d0 floordiv 4) * 8']
    """
    seen: set[AffineExpr] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        expr, operands_done = stack.pop()
        if expr in seen:
            continue
        if operands_done:
            seen.add(expr)
            yield expr
            continue
        stack.append((expr, True))
        stack += [(part, False) for part in (expr.rhs, expr.lhs) if part is not None]


def checked(num_dims: int, exprs: Iterable[AffineExpr | int]) -> tuple[int, Exprs]:
    """Return a number of dims and expressions over them, as an int and a tuple.

    LayoutError: an expression reads a dim at or beyond the number of dims.

    >>> checked(1, [dim(1)])
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: result d1 reads d1, but the map has 1 dims
    """
    count, made = (
        int64(num_dims, "number of dims"),
        tuple(map(as_expr, as_items(exprs, "results", "expressions and whole numbers"))),
    )
    if count < 0:
        raise LayoutError(f"a map of {count} dims; give 0 or more")
    for expr in made:
        if expr.dims and max(expr.dims) >= count:
            beyond = min(position for position in expr.dims if position >= count)
            raise LayoutError(f"result {expr} reads d{beyond}, but the map has {count} dims")
    return count, made


def _operand(value: object) -> AffineExpr | None:
    if isinstance(value, AffineExpr):
        return value
    if type(value) is int:  # a check against a protocol is slow
        return constant(value)
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return constant(operator.index(value))
    except TypeError:  # the __index__ of arrays and of integer classes raises
        return None


def _divisor(numerator: AffineExpr, divisor: AffineExpr) -> int:
    if divisor.kind != "constant" or divisor.value < 1:
        raise LayoutError(
            f"({numerator}) cannot be divided by ({divisor}); a divisor is a positive constant"
        )
    return divisor.value


def _dims(kind: Kind, value: int, lhs: AffineExpr | None, rhs: AffineExpr | None) -> frozenset[int]:
    if lhs is None:
        return frozenset((value,)) if kind == "dim" else frozenset()
    return lhs.dims if rhs is None else lhs.dims | rhs.dims


def _known_divisor(kind: Kind, value: int, lhs: AffineExpr | None, rhs: AffineExpr | None) -> int:
    """MLIR's getLargestKnownDivisor: a divisor of the expression for all values of the dims."""
    if lhs is None:
        return abs(value) if kind == "constant" else 1
    if kind == "add":
        assert rhs is not None
        return gcd(lhs.divisor, rhs.divisor)
    if kind == "mul":
        return lhs.divisor * abs(value)
    if kind == "mod":
        return gcd(lhs.divisor, value)
    return lhs.divisor // value if lhs.divisor % value == 0 else 1


def _add(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    swap = lhs.kind == "constant" or (lhs.kind == rhs.kind == "dim" and lhs.value > rhs.value)
    if swap and rhs.kind != "constant":
        lhs, rhs = rhs, lhs
    return _simplified_sum(lhs, rhs) or AffineExpr("add", 0, lhs, rhs)


def _simplified_sum(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr | None:
    """The sum as simplified by MLIR's simplifyAdd, or None if that changes nothing."""
    if lhs.kind == "constant":
        return constant(lhs.value + rhs.value)
    if rhs.kind == "constant" and rhs.value == 0:
        return lhs
    base = tail = None
    if lhs.lhs is not None and lhs.rhs is not None:
        base, tail = lhs.lhs, lhs.rhs
        # A constant stays the last addend.
        if tail.kind == "constant" and rhs.kind == "constant":
            return _add(base, constant(tail.value + rhs.value))
    (left, left_scale), (right, right_scale) = _scaled(lhs), _scaled(rhs)
    if left == right:
        return _mul(left, left_scale + right_scale)
    if base is not None and tail is not None and tail.kind == "constant":
        return _add(_add(base, rhs), tail)
    if right.kind == "floordiv" and rhs.kind == "mul":
        if right.lhs == lhs and right_scale == -right.value:
            return _mod(lhs, right.value)
        if base is not None and tail is not None:
            # The last addend e may be the numerator of the quotient: (a + e) - (e floordiv c) * c.
            closed = _simplified_sum(tail, rhs)
            return None if closed is None else _add(base, closed)
    return None


def _scaled(expr: AffineExpr) -> tuple[AffineExpr, int]:
    if expr.kind == "mul" and expr.lhs is not None:
        return expr.lhs, expr.value
    return expr, 1


def _mul(lhs: AffineExpr, factor: int) -> AffineExpr:
    if lhs.kind == "constant":
        return constant(lhs.value * factor)
    if factor == 0:
        return constant(0)
    base, scale = _scaled(lhs)
    if scale * factor == 1:
        return base
    return AffineExpr("mul", int64(scale * factor, "factor"), base)


def _floordiv(lhs: AffineExpr, divisor: int) -> AffineExpr:
    if lhs.kind == "constant":
        return constant(lhs.value // divisor)
    if divisor == 1:
        return lhs
    base, scale = _scaled(lhs)
    if scale % divisor == 0:
        return _mul(base, scale // divisor)
    if lhs.lhs is not None and lhs.rhs is not None:
        # If the divisor divides one addend, both addends can be divided separately.
        one_divides = lhs.lhs.divisor % divisor == 0 or lhs.rhs.divisor % divisor == 0
        if one_divides:
            return _add(_floordiv(lhs.lhs, divisor), _floordiv(lhs.rhs, divisor))
    return AffineExpr("floordiv", divisor, lhs)


def _ceildiv(lhs: AffineExpr, divisor: int) -> AffineExpr:
    if lhs.kind == "constant":
        return constant(-(-lhs.value // divisor))
    if divisor == 1:
        return lhs
    base, scale = _scaled(lhs)
    if scale % divisor == 0:
        return _mul(base, scale // divisor)
    return AffineExpr("ceildiv", divisor, lhs)


def _mod(lhs: AffineExpr, divisor: int) -> AffineExpr:
    if lhs.kind == "constant":
        return constant(lhs.value % divisor)
    if lhs.divisor % divisor == 0:
        return constant(0)
    if lhs.lhs is not None and lhs.rhs is not None:
        if lhs.lhs.divisor % divisor == 0:
            return _mod(lhs.rhs, divisor)
        if lhs.rhs.divisor % divisor == 0:
            return _mod(lhs.lhs, divisor)
    if lhs.kind == "mod" and lhs.lhs is not None and lhs.value % divisor == 0:
        return _mod(lhs.lhs, divisor)
    return AffineExpr("mod", divisor, lhs)
