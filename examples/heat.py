"""A stencil as plain JAX writes it, on a grid that does not divide the array.

    python examples/heat.py

Heat on a plate of 509x515 points between cold walls. The function is written for the whole plate;
`gl.on_grid` runs it on blocks of 8 emulated devices, in which 509 rows are divided by 2 and 515
columns by 4. The report says what devices receive, and for how many steps at once.
"""

import gridlayout as gl

gl.emulate_devices(8)  # leave it out where there are real devices

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 40


def heat(plate: jax.Array) -> jax.Array:
    """The plate after all steps."""

    def step(plate: jax.Array, _: None) -> tuple[jax.Array, None]:
        wide = jnp.pad(plate, 1)
        around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
        return plate + 0.2 * (around - 4 * plate), None

    return jax.lax.scan(step, plate, length=STEPS)[0]


device = gl.DeviceGrid((2, 4))
layout = gl.GridLayout((509, 515), "float32", grid=(2, 4))
start = np.zeros(layout.shape, np.float32)
start[100:300, 50:120] = 100

run = gl.on_grid(heat)
plate = gl.put(start, layout, device)
print(run.report(plate))

end = run(plate)
print(f"{end}, {end.layout.padding_share:.2%} of it padding")
np.testing.assert_allclose(np.asarray(end), jax.jit(heat)(start), rtol=1e-4, atol=1e-3)
print("equal to plain JAX")
