"""`python -m benchmarks.algorithms N`: a matrix product by each algorithm on N emulated devices.

Prints one JSON object: seconds by algorithm, and of one device and GSPMD beside them.
"""

from __future__ import annotations

import json
import subprocess
import sys

import gridlayout as gl
from benchmarks.timing import Result

MESHES = {4: (2, 2), 8: (2, 4), 16: (4, 4), 64: (8, 8)}
# What trials gave for the better of gather and ring, in one device's time.
TARGETS = {4: 1.05, 8: 1.07, 16: 1.24, 64: 1.84}
SIZE = 2048


def measured(devices: int) -> dict[str, float]:
    """Median seconds of each candidate, in a process of its own: devices are counted once."""
    out = subprocess.run(
        [sys.executable, "-m", "benchmarks.algorithms", str(devices)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(out.stdout)


def results() -> list[Result]:
    rows = []
    for devices in MESHES:
        found = measured(devices)
        one, gspmd = found.pop("one"), found.pop("gspmd")
        best = min(found, key=found.__getitem__)
        name = f"matmul {SIZE}^3 on {devices} devices, {best}"
        rows.append(Result(name, found[best], one, "one device", TARGETS[devices]))
        rows.append(Result(name, found[best], gspmd, "GSPMD, same mesh", 1.0))
    return rows


def run(devices: int) -> dict[str, float]:
    gl.emulate_devices(devices)
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    from benchmarks.timing import medians

    mesh_shape = MESHES[devices]
    rng, device = np.random.default_rng(0), gl.DeviceGrid(mesh_shape)
    a, b = (rng.standard_normal((SIZE, SIZE), np.float32) for _ in range(2))
    layout = gl.GridLayout((SIZE, SIZE), "float32", grid=mesh_shape)
    x, y = (gl.put(array, layout, device) for array in (a, b))
    one = [jax.device_put(array, jax.devices()[0]) for array in (a, b)]
    mesh = jax.make_mesh(mesh_shape, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh, PartitionSpec("x", "y"))
    split = [jax.device_put(array, sharding) for array in (a, b)]
    single = jax.jit(jnp.matmul)
    gspmd = jax.jit(jnp.matmul, in_shardings=(sharding, sharding), out_shardings=sharding)
    candidates = {"one": lambda: single(*one), "gspmd": lambda: gspmd(*split)}
    for name in gl.ALGORITHMS:
        fn = gl.on_grid(jnp.matmul, algorithm=name)
        try:
            found = np.asarray(fn(x, y))
        except gl.LayoutError:  # Cannon's on no square, 3D on four devices
            continue
        np.testing.assert_allclose(found, a @ b, atol=1e-2)
        candidates[name] = lambda fn=fn: fn(x, y).storage
    return medians(candidates, rounds=9)


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))
