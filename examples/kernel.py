"""A kernel of one's own on every core: heat on a plate whose sides no grid divides.

    python examples/kernel.py

A plate of 50x37 points lies on a grid of 4x2 cores, two of them on each of 4 emulated devices. Each
core updates its own shard, and asks its four neighbours for the one row or column next to it.
"""

import gridlayout as gl

gl.emulate_devices(4)  # leave it out where there are real devices

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 25
SHAPE = (50, 37)

device = gl.DeviceGrid((2, 2))
layout = gl.GridLayout(SHAPE, "float32", grid=(4, 2), oob=0)
print(layout.summary())


def own_points(shard: jax.Array) -> jax.Array:
    """Which places of this core's shard are points of the plate; the others are padding."""
    inside = jnp.ones(shard.shape, bool)
    for dim, size in enumerate(SHAPE):
        first = gl.cores.core_index(dim) * shard.shape[dim]
        place = jax.lax.broadcasted_iota("int32", shard.shape, dim)
        inside &= first + place < size
    return inside


def heat_step(shard: jax.Array) -> jax.Array:
    """A quarter of what flows from each neighbouring point; it is 0 beyond the plate's edges."""
    above = gl.cores.shift(shard[-1:], 1, 0, wrap=False)
    below = gl.cores.shift(shard[:1], -1, 0, wrap=False)
    left = gl.cores.shift(shard[:, -1:], 1, 1, wrap=False)
    right = gl.cores.shift(shard[:, :1], -1, 1, wrap=False)
    rows = jnp.concatenate([above, shard, below], axis=0)
    columns = jnp.concatenate([left, shard, right], axis=1)
    mean = (rows[:-2] + rows[2:] + columns[:, :-2] + columns[:, 2:]) / 4
    # The padding is next to points of the plate, so it has to stay 0.
    return jnp.where(own_points(shard), mean, 0)


def hottest(shard: jax.Array) -> jax.Array:
    """The maximum over the whole grid, on every core."""
    return jnp.broadcast_to(gl.cores.pmax(shard.max(), (0, 1)), (1, 1))


@jax.jit
def run(plate: gl.GridArray) -> tuple[gl.GridArray, jax.Array]:
    """The plate after all steps, and the hottest point of it."""

    def body(_: int, now: gl.GridArray) -> gl.GridArray:
        return gl.map_shards(heat_step, now, out=layout)

    plate = jax.lax.fori_loop(0, STEPS, body, plate)
    one_a_core = gl.GridLayout(layout.grid, "float32", grid=layout.grid)
    return plate, gl.map_shards(hottest, plate, out=one_a_core)


start = np.zeros(SHAPE, np.float32)
start[:30, 10:20] = 100

# Plain JAX, on one device.
wanted = jnp.asarray(start)
for _ in range(STEPS):
    wide = jnp.pad(wanted, 1)
    wanted = (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]) / 4

plate, maxima = run(gl.put(start, layout, device))
print(plate)
print("hottest, as every core knows it:", np.unique(np.asarray(maxima)))
np.testing.assert_allclose(np.asarray(plate), wanted, rtol=1e-6, atol=1e-6)
print("equal to plain JAX")
