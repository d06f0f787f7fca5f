"""Floating-point operations on logical elements, as formulas of an op's shapes.

One each, two where they multiply and add. What only moves elements takes none; of decompositions
the leading term is counted (Golub and Van Loan, Matrix Computations).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log2, prod
from typing import Any

from gridlayout.ops.decisions.op import Op
from gridlayout.sharding.machine import Machine

Shape = tuple[int, ...]
Flops = Callable[[Op], int]


@dataclass(frozen=True)
class Rule:
    """How a primitive's decisions are made, and what it computes.

    decide: `(builder, op, *values)`, which writes a decision down and gives its results; or a
    `Choice` of several; or None, where it knows none for these values.
    """

    decide: Callable[..., Any]
    flops: Flops


def nothing(op: Op) -> int:
    """Elements are only moved."""
    return 0


def per_result(op: Op) -> int:
    """One for each element of the results."""
    return sum(prod(aval.shape) for aval in op.outs)


def per_operand(op: Op) -> int:
    """One for each element of the first operand."""
    return prod(op.ins[0].shape)


def of_updates(op: Op) -> int:
    """One for each element that is written."""
    return prod(op.ins[2].shape)


def of_product(op: Op) -> int:
    """A product and a sum for each element of the result and each contracted position."""
    (contracted, _), _ = op.params["dimension_numbers"]
    return 2 * per_result(op) * prod(op.ins[0].shape[d] for d in contracted)


def transposed(op: Op) -> tuple[int, int]:
    """Of each operand of a product, when a kernel that goes along its rows transposes it first.

    0: never; 1: to pack it; 2: always. A left operand has its contracted dims last, a right one
    first, and both have batch dims before all others.
    """
    if op.name != "dot_general":
        return 0, 0
    (left, right), (left_batch, right_batch) = op.params["dimension_numbers"]
    before = [d for d in range(op.ins[0].ndim) if d not in (*left, *left_batch)]
    after = [d for d in range(op.ins[1].ndim) if d not in (*right, *right_batch)]
    return (
        _turned(left_batch, before, left),
        _turned(right_batch, right, after),
    )


def _turned(batch: Sequence[int], first: Sequence[int], last: Sequence[int]) -> int:
    if sorted(batch) != list(range(len(batch))):
        return 2
    return int(min(last, default=inf) < max(first, default=-1))


def of_convolution(op: Op) -> int:
    """A product and a sum for each element of the result and each weight of its feature."""
    kernel = op.ins[1].shape
    features = kernel[op.params["dimension_numbers"].rhs_spec[0]]
    return 2 * per_result(op) * prod(kernel) // max(features, 1)


def of_blocks(op: Op, lhs: Shape, made: Shape, machine: Machine) -> int:
    """Operations of a device's blocks of a product or convolution, on padding too.

    lhs, made: its blocks of the left operand and of the result. Chips that compute with tiles take
    whole ones: of a convolution a row of tiles for the results, and a column for the features, of a
    matrix whose rows are windows.
    """
    numbers = op.params["dimension_numbers"]
    if op.name == "dot_general":
        rows, columns = prod(machine.padded(made)), 1
        depth = prod(machine.padded(lhs)[d] for d in numbers[0][0])
    else:
        features, inputs = made[numbers.out_spec[1]], op.ins[0].shape[numbers.lhs_spec[1]]
        taps = of_convolution(op) // max(2 * per_result(op), 1)
        depth = -(-taps * lhs[numbers.lhs_spec[1]] // max(inputs, 1))
        rows, columns = machine.padded((prod(made) // max(features, 1), features))
        depth = machine.padded((depth, depth))[0]
    return 2 * rows * columns * depth


def of_window(op: Op) -> int:
    """One for each element of the result and each place in its window."""
    return per_result(op) * prod(op.params["window_dimensions"])


def of_sort(op: Op) -> int:
    """n log2 n comparisons along the dim."""
    names = ("dimension", "axis", "reduction_dimension")
    axis = next(op.params[name] for name in names if name in op.params)
    return per_operand(op) * _log2(op.ins[0].shape[axis])


def of_fft(op: Op) -> int:
    """5 n log2 n for a transform of n points; half of that for real ones."""
    length = prod(op.params["fft_lengths"])
    batch = prod(op.ins[0].shape[: op.ins[0].ndim - len(op.params["fft_lengths"])])
    is_real = "R" in getattr(op.params["fft_type"], "name", str(op.params["fft_type"]))
    return 5 * batch * length * _log2(length) // (2 if is_real else 1)


def of_matrix(leading: float) -> Flops:
    """`leading * m * n * min(m, n)` for each matrix of the first operand."""

    def flops(op: Op) -> int:
        *batch, m, n = op.ins[0].shape
        return int(leading * prod(batch) * m * n * min(m, n))

    return flops


def of_solve(op: Op) -> int:
    """A product and a sum for each element of the right side and each row above it."""
    return prod(op.ins[1].shape) * op.ins[0].shape[-1]


def of_last(factor: int) -> Flops:
    """So many for each element of the result and each position of the last dim of the first."""
    return lambda op: factor * per_result(op) * (op.ins[0].shape[-1] if op.ins[0].shape else 1)


def _log2(n: int) -> int:
    return max(int(log2(n)), 1) if n > 1 else 0
