"""Evaluation of affine maps: one straight-line program, run on ints, NumPy or JAX arrays.

The program computes each common subexpression once. It computes `mod` from the quotient, which maps
such as `(d0 floordiv 32, d0 mod 32)` need anyway. Divisions by powers of two become shifts and
masks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.expressions import AffineExpr, Exprs, walk
from gridlayout.arguments import INT64_MAX, INT64_MIN
from gridlayout.caching import cached
from gridlayout.errors import LayoutError

Int64s = NDArray[np.int64]

# Elements per chunk: the temporaries of one chunk stay in the L2 cache.
CHUNK = 8192


class Step(NamedTuple):
    """One operation of a program, on the results `a` and `b` of earlier steps.

    For `add` and `sub`, `b` is the number of a step; for other operations it is a constant. `dim`
    and `constant` hold the dim's position or the constant in `b` and do not use `a`.
    """

    op: str
    a: int
    b: int


class Program(NamedTuple):
    """The steps in order, the step number of each result, and the number of dims of an index."""

    num_dims: int
    steps: tuple[Step, ...]
    results: tuple[int, ...]


_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "shift": operator.rshift,
    "mask": operator.and_,
}
_NUMPY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "shift": np.right_shift,
    "mask": np.bitwise_and,
}
_BINARY = ("add", "sub")  # here `b` is a step; for other operations it is a constant


@cached
def program_of(num_dims: int, results: Exprs) -> Program:
    """The program of the map from `num_dims` dims to `results`.

    >>> from gridlayout.affine.expressions import dim
    >>> program_of(1, (dim(0) // 3, dim(0) % 3)).results
    (1, 3)
    """
    steps: dict[Step, int] = {}

    def emit(op: str, a: int, b: int) -> int:
        return steps.setdefault(Step(op, a, b), len(steps))

    done: dict[AffineExpr, int] = {}
    for expr in walk(*results):
        if expr.lhs is None:
            done[expr] = emit(expr.kind, 0, expr.value)
        elif expr.rhs is not None:
            done[expr] = _emit_add(emit, done, expr.lhs, expr.rhs)
        else:
            done[expr] = _emit_unary(emit, expr.kind, done[expr.lhs], expr.value)
    return Program(num_dims, tuple(steps), tuple(done[result] for result in results))


Emit = Callable[[str, int, int], int]


def _emit_add(emit: Emit, done: dict[AffineExpr, int], lhs: AffineExpr, rhs: AffineExpr) -> int:
    if rhs.kind == "mul" and rhs.value == -1 and rhs.lhs is not None:
        return emit("sub", done[lhs], done[rhs.lhs])
    return emit("add", done[lhs], done[rhs])


def _emit_unary(emit: Emit, kind: str, a: int, value: int) -> int:
    power_of_two = value > 0 and value & (value - 1) == 0
    if kind == "mul":
        return emit("mul", a, value)
    if kind == "ceildiv":  # ceil(a / c) is -floor(-a / c)
        return emit("mul", _emit_unary(emit, "floordiv", emit("mul", a, -1), value), -1)
    if kind == "floordiv":
        if power_of_two:
            return emit("shift", a, value.bit_length() - 1)
        return emit("floordiv", a, value)
    if power_of_two:
        return emit("mask", a, value - 1)
    return emit("sub", a, emit("mul", emit("floordiv", a, value), value))


def evaluate(program: Program, index: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a map at an index; `AffineMap.__call__` is its public name.

    >>> from gridlayout.affine.expressions import constant, dim
    >>> evaluate(program_of(1, (dim(0) % 3, constant(7))), (np.arange(5),))
    (array([0, 1, 2, 0, 1]), array([7, 7, 7, 7, 7]))
    """
    if len(index) != program.num_dims:
        raise LayoutError(
            f"the map takes {program.num_dims} indices, not {len(index)}: give one argument per "
            "dim; write map(*index) for an index in a tuple"
        )
    values = [_integer(value) for value in index]
    arrays = [value for value in values if not isinstance(value, int)]
    if not arrays:
        return _on_ints(program, values)
    if all(isinstance(value, np.ndarray) for value in arrays):
        return _on_numpy(program, [_as_int64(value) for value in values])
    return _on_arrays(program, values)


def _integer(value: Any) -> Any:
    """The value as an int, or an array of integers unchanged; LayoutError for anything else."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(value, np.generic):
        # A class of integers has the attribute __index__ too, but is no integer.
        is_refused = isinstance(value, (bool, np.bool_, type))
        if is_refused or not hasattr(value, "__index__"):
            raise LayoutError(f"index {value!r} is not an integer")
        return operator.index(value)
    kind = np.dtype(dtype).kind if isinstance(dtype, np.dtype | type) else "?"
    if kind not in "iu" or (kind == "u" and not isinstance(value, np.ndarray)):
        raise LayoutError(f"an index has dtype {dtype}: use a signed integer dtype")
    return value


def _run(steps: Sequence[Step], values: Sequence[Any]) -> list[Any]:
    done: list[Any] = []
    for op, a, b in steps:
        if op == "dim":
            done.append(values[b])
        elif op == "constant":
            done.append(b)
        else:
            done.append(_PYTHON[op](done[a], done[b] if op in _BINARY else b))
    return done


def _on_ints(program: Program, values: Sequence[int]) -> tuple[int, ...]:
    done = _run(program.steps, values)
    return tuple(done[step] for step in program.results)


def _on_arrays(program: Program, values: Sequence[Any]) -> tuple[Any, ...]:
    """Evaluates on JAX arrays and tracers; Python inspects their shapes and dtypes only."""
    shape = _common_shape(values)
    # The dtype of a JAX array or tracer takes precedence over that of a NumPy array.
    dtype = next(v.dtype for v in values if not isinstance(v, int | np.ndarray))
    # JAX would compute with signed and unsigned 64-bit integers in floating point.
    values = [_as_int64(v) if getattr(v, "dtype", None) == np.uint64 else v for v in values]
    try:
        done = _run(program.steps, values)
    except OverflowError as error:
        raise LayoutError(f"a constant of the map does not fit {dtype}: {error}") from None
    results = [done[step] for step in program.results]
    zeros = np.zeros(shape, dtype)
    return tuple(r if np.shape(r) == shape and hasattr(r, "dtype") else zeros + r for r in results)


def _common_shape(values: Sequence[Any]) -> tuple[int, ...]:
    shapes = [np.shape(value) for value in values]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        named = ", ".join(map(str, shapes))
        raise LayoutError(f"index shapes {named} do not broadcast together") from None


def _as_int64(value: Any) -> Int64s:
    low, high = (value, value) if isinstance(value, int) else _extremes(value)
    if low < INT64_MIN or high > INT64_MAX:
        raise LayoutError(f"index values {low} to {high} are outside int64")
    return np.asarray(value, dtype=np.int64)


def _extremes(value: NDArray[Any]) -> tuple[int, int]:
    return (int(value.min()), int(value.max())) if value.size else (0, 0)


def _on_numpy(program: Program, values: Sequence[Int64s]) -> tuple[Int64s, ...]:
    shape = _common_shape(values)
    _refuse_overflow(program, [_extremes(value) for value in values])
    outs = tuple(np.empty(shape, np.int64) for _ in program.results)
    # Indices of unequal shapes, such as those of np.ogrid, are not broadcast before the end.
    if all(value.shape == shape and value.flags.c_contiguous for value in values):
        _in_chunks(program, [value.reshape(-1) for value in values], [o.reshape(-1) for o in outs])
    else:
        done = _run(program.steps, values)
        for out, step in zip(outs, program.results, strict=True):
            out[...] = done[step]
    return outs


def _refuse_overflow(program: Program, bounds: Sequence[tuple[int, int]]) -> None:
    """Raises LayoutError if a step could leave int64 for indices within the inclusive bounds."""
    done: list[tuple[int, int]] = []
    for op, a, b in program.steps:
        if op == "dim":
            low, high = bounds[b]
        elif op == "constant":
            low = high = b
        elif op == "mask":
            low, high = 0, b
        elif op == "sub" and program.steps[b].op == "mul" and _is_remainder(program, a, b):
            low, high = 0, program.steps[b].b - 1
        elif op in _BINARY:
            (low, high), (least, most) = done[a], done[b]
            low, high = (low + least, high + most) if op == "add" else (low - most, high - least)
        else:
            ends = [_PYTHON[op](end, b) for end in done[a]]
            low, high = min(ends), max(ends)
        if low < INT64_MIN or high > INT64_MAX:
            raise LayoutError(
                f"a value from {low} to {high} could leave int64; use smaller indices"
            )
        done.append((low, high))


def _is_remainder(program: Program, a: int, b: int) -> bool:
    product = program.steps[b]
    return program.steps[product.a] == Step("floordiv", a, product.b)


def _in_chunks(program: Program, values: Sequence[Int64s], outs: Sequence[Int64s]) -> None:
    """Runs the steps chunk by chunk; each step writes to a reused buffer or to its result."""
    steps, count = program.steps, outs[0].size if outs else 0
    results: dict[int, int] = {}
    for k, step in enumerate(program.results):
        results.setdefault(step, k)
    buffers = {
        k: np.empty(min(CHUNK, count), np.int64)
        for k, (op, _, _) in enumerate(steps)
        if k not in results and op not in ("dim", "constant")
    }
    for start in range(0, count, CHUNK):
        part = slice(start, min(start + CHUNK, count))
        done: list[Any] = []
        for k, (op, a, b) in enumerate(steps):
            if op == "dim":
                done.append(values[b][part])
            elif op == "constant":
                done.append(b)
            else:
                out = outs[results[k]][part] if k in results else buffers[k][: part.stop - start]
                done.append(_NUMPY[op](done[a], done[b] if op in _BINARY else b, out=out))
        for out, step in zip(outs, program.results, strict=True):
            if steps[step].op in ("dim", "constant") or out is not outs[results[step]]:
                out[part] = done[step]
