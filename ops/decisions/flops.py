"""Floating-point operations of an op, as formulas of its logical shapes.

An elementwise operation counts 1 per element, a multiply-add counts 2, data movement counts 0.
Decompositions count their leading term (Golub and Van Loan, Matrix Computations).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log2, prod

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.op import Op
from gridlayout.sharding.machines.machine import Machine

Flops = Callable[[Op], int]


def nothing(op: Op) -> int:
    """Return 0: the op only moves elements."""
    return 0


def per_result(op: Op) -> int:
    """Return 1 per element of the results."""
    return sum(prod(aval.shape) for aval in op.outs)


def per_operand(op: Op) -> int:
    """Return 1 per element of the first operand."""
    return prod(op.ins[0].shape)


def of_updates(op: Op) -> int:
    """Return 1 per element of the updates."""
    return prod(op.ins[2].shape)


def of_product(op: Op) -> int:
    """Return 2 per element of the result and contracted position."""
    (contracted, _), _ = op.params["dimension_numbers"]
    return 2 * per_result(op) * prod(op.ins[0].shape[d] for d in contracted)


def transposed(op: Op) -> tuple[int, int]:
    """Return, for each operand of a product, when a row-wise kernel has to transpose it first.

    0: never; 1: when it packs it; 2: always. No transpose is needed if batch dims come first and
    the contracted dims are the last of the left operand, or the first after them of the right one.
    """
    if op.name != "dot_general":
        return 0, 0
    (left, right), (left_batch, right_batch) = op.params["dimension_numbers"]
    before = [d for d in range(op.ins[0].ndim) if d not in (*left, *left_batch)]
    after = [d for d in range(op.ins[1].ndim) if d not in (*right, *right_batch)]
    return (
        _transposes(left_batch, before, left),
        _transposes(right_batch, right, after),
    )


def _transposes(batch: Sequence[int], first: Sequence[int], last: Sequence[int]) -> int:
    if sorted(batch) != list(range(len(batch))):
        return 2
    return int(min(last, default=inf) < max(first, default=-1))


def of_convolution(op: Op) -> int:
    """Return 2 per element of the result and weight of its output feature."""
    kernel = op.ins[1].shape
    features = kernel[op.params["dimension_numbers"].rhs_spec[0]]
    return 2 * per_result(op) * prod(kernel) // max(features, 1)


def of_blocks(op: Op, lhs: Shape, made: Shape, machine: Machine) -> int:
    """Return the flops per device of a product or convolution, padding included.

    lhs, made: the shapes of the device's blocks of the left operand and of the result. Chips that
    compute on tiles round both up to whole tiles. A convolution is rounded up as the product of a
    matrix with one window per row and one with one output feature per column.
    """
    numbers = op.params["dimension_numbers"]
    if op.name == "dot_general":
        rows, columns = prod(machine.padded(made)), 1
        depth = prod(machine.padded(lhs)[d] for d in numbers[0][0])
    else:
        features, inputs = made[numbers.out_spec[1]], op.ins[0].shape[numbers.lhs_spec[1]]
        taps = of_convolution(op) // max(2 * per_result(op), 1)
        depth = taps  # of a group's features, which devices do not divide
        if op.params["feature_group_count"] == 1:
            depth = -(-taps * lhs[numbers.lhs_spec[1]] // max(inputs, 1))
        # Devices divide windows that are larger than the result.
        dims = zip(*(spec[2:] for spec in numbers), strict=True)
        for left, right, to in dims:
            if op.ins[1].shape[right] > op.out.shape[to]:
                depth = -(-depth * lhs[left] // max(op.ins[0].shape[left], 1))
        rows, columns = machine.padded((prod(made) // max(features, 1), features))
        depth = machine.padded((depth, depth))[0]
    return 2 * rows * columns * depth


def windows(op: Op, made: Shape) -> int:
    """Return the pieces of operands that a kernel packs for a part of a convolution's result.

    made: the shape of the part. There is a piece for each position of the result and of its window,
    for all output features together; none for any other op.
    """
    if op.name != "conv_general_dilated":
        return 0
    numbers, kernel = op.params["dimension_numbers"], op.ins[1].shape
    features = max(made[numbers.out_spec[1]], 1)
    return prod(made) // features * prod(kernel[d] for d in numbers.rhs_spec[2:])


def of_window(op: Op) -> int:
    """Return 1 per element of the result and position of its window."""
    return per_result(op) * prod(op.params["window_dimensions"])


def of_sort(op: Op) -> int:
    """Return n log2 n comparisons per vector of n elements along the sorted dim."""
    names = ("dimension", "axis", "reduction_dimension")
    axis = next(op.params[name] for name in names if name in op.params)
    return per_operand(op) * _log2(op.ins[0].shape[axis])


def of_fft(op: Op) -> int:
    """Return 5 n log2 n per transform of n points; half of that for real data."""
    length = prod(op.params["fft_lengths"])
    batch = prod(op.ins[0].shape[: op.ins[0].ndim - len(op.params["fft_lengths"])])
    is_real = "R" in getattr(op.params["fft_type"], "name", str(op.params["fft_type"]))
    return 5 * batch * length * _log2(length) // (2 if is_real else 1)


def of_matrix(leading: float) -> Flops:
    """Return a formula: `leading * m * n * min(m, n)` per matrix of the first operand."""

    def flops(op: Op) -> int:
        *batch, m, n = op.ins[0].shape
        return int(leading * prod(batch) * m * n * min(m, n))

    return flops


def of_solve(op: Op) -> int:
    """Return m per element of the right-hand side, for m x m triangular matrices."""
    return prod(op.ins[1].shape) * op.ins[0].shape[-1]


def of_last(factor: int) -> Flops:
    """Return a formula: `factor` per element of the result and of the first operand's last dim."""
    return lambda op: factor * per_result(op) * (op.ins[0].shape[-1] if op.ins[0].shape else 1)


def _log2(n: int) -> int:
    return max(int(log2(n)), 1) if n > 1 else 0
