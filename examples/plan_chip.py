"""Plan a program for a chip that is not here, and see why the plan is what it is.

    python examples/plan_chip.py

No device is needed: the machine "n150" is one Wormhole chip, each core of which is a device of the
plan. The function is plain JAX, and its arguments are shapes.
"""

import jax
import jax.numpy as jnp

import gridlayout as gl


def mlp(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ up) @ down


rows, width, hidden = 4000, 512, 2048
shapes = ((rows, width), (width, hidden), (hidden, width))
arguments = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]

# Where every argument, value and result should be, L1 or DRAM, and how each equation runs.
plan = gl.plan(mlp, *arguments, machine="n150")
print(plan)

# Why the first product is divided as it is: what every other way would take.
print()
print(plan.why("dot_general:0"))

# A constraint, and what it costs: here the activations have to be on a grid of 8x8 cores.
square = gl.GridLayout((rows, width), "bfloat16", grid=(8, 8), tile=(32, 32))
constrained = gl.plan(mlp, *arguments, machine="n150", fixed={"x": square})
print("\nwith x on 8x8 cores")
print(plan.diff(constrained))

assert plan.bound <= plan.time <= constrained.time
