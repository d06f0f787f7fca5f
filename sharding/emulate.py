"""Emulated devices: several CPU devices in one process, to try a mesh without one."""

from __future__ import annotations

import os

import jax

from gridlayout.errors import LayoutError


def emulate_devices(count: int) -> list[jax.Device]:
    """Make JAX run on `count` CPU devices in this process, and return them.

    Call it before anything that starts JAX (`jax.devices()`, any array). Calling it again with the
    same count does nothing, so a notebook cell can be run twice. `LayoutError` when JAX has already
    started with another count, since JAX can't change it then.

        import gridlayout as gl

        gl.emulate_devices(8)
        device = gl.DeviceGrid((2, 4))
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise LayoutError(f"emulate_devices({count!r}): the count must be a whole number >= 1")
    # XLA's CPU client runs all devices' programs on one pool of threads, and a collective blocks
    # its thread. With fewer than two threads a device, programs with several collectives hang, in
    # plain JAX too, and so do steps in flight at once, hence synchronous dispatch. (Many more
    # threads than that make every product slower.) The client reads both when it starts.
    threads = max(2 * count, int(os.environ.get("NPROC") or 0))
    os.environ["NPROC"] = str(threads)
    try:
        jax.config.update("jax_num_cpu_devices", count)
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    except RuntimeError:  # JAX refuses once its devices exist
        pass
    devices = jax.devices()
    if len(devices) != count or devices[0].platform != "cpu":
        raise LayoutError(
            f"emulate_devices({count}): JAX has already started, with {len(devices)} "
            f"{devices[0].platform} device(s); call it first, before jax.devices() or any array"
        )
    return devices
