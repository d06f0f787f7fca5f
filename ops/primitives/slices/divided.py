"""Scatter-add with operands divided as the plan of a program requests.

Indexed dims are unsharded. The index array is divided together with the slices that it selects.
The partial sums of all devices are summed.
"""

from __future__ import annotations

from math import prod

import jax
import jax.numpy as jnp

from gridlayout.ops.decisions.blocks import block_shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.specs import Deferred, Local, known_values
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.slices.logical_indices import in_shape
from gridlayout.ops.products.divided import summed

# Padding of the index array breaks what the user promises of the indices.
ANY = {"indices_are_sorted": False, "unique_indices": False}


def scatter_add(b: Builder, op: Op, requested: Requested, *operands: Value) -> Value:
    """Rule for `scatter-add` of a block of the updates to a block of the array.

    If devices have partial sums, they are summed first and then added to the array.
    """
    value, *others = operands
    specs = [spec for spec in requested.ins[1:] if spec is not None]
    indices, updates = map(b.as_spec, others, specs)
    shapes = [block_shape(spec) for spec in specs]
    made, out, dtype = requested.made, requested.out, op.out.dtype
    block, local = block_shape(made), made.local_shape
    if not requested.summed:
        operand = b.as_spec(value, made)

        def write(x: jax.Array, at: jax.Array, new: jax.Array) -> list[jax.Array]:
            new = in_shape(new, shapes[1])
            return [op.bind(x.reshape(block), at.reshape(shapes[0]), new)[0].reshape(local)]

        return b.run(write, [operand, indices, updates], [made])[0]
    # Updates in the padding must not be added.
    updates = b.with_padding(updates, 0)

    def add(at: jax.Array, new: jax.Array) -> list[jax.Array]:
        zeros = jnp.zeros(block, dtype)
        new = in_shape(new, shapes[1])
        return [op.bind(zeros, at.reshape(shapes[0]), new, **ANY)[0]]

    (part,) = b.run(add, [indices, updates], [Local(block, dtype)])
    total = summed(b, part, requested, dtype, dtype)
    if _is_zero(value):
        return total
    operand = b.as_spec(value, out)
    return b.run(lambda x, y: [x + y], [operand, total], [out])[0]


def _is_zero(value: Value) -> bool:
    """Whether a value is known to be all zeros before anything runs."""
    spec = value.spec.source if isinstance(value.spec, Deferred) else value.spec
    known = known_values(spec) if prod(spec.shape) == 1 else None
    return known is not None and not known.any()
