"""Emulated devices: several CPU devices in one process, to try a mesh without one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from gridlayout.errors import LayoutError

_YNNPACK = "--xla_cpu_experimental_ynn_fusion_type"
# What this process was told, once it was.
_count: int | None = None


def has_ynnpack() -> bool:
    """Whether XLA on CPUs computes arithmetic and reductions of it by YNNPACK, in one kernel."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    return jax.__version_info__[:2] >= (0, 12) and f"{_YNNPACK}=" not in flags


def emulate_devices(count: int) -> Sequence[jax.Device]:
    """Make JAX run on `count` CPU devices in this process, and return them.

    Call it before anything that starts JAX (`jax.devices()`, any array). It does not start JAX
    itself, so `jax.distributed.initialize` may come after it: then each process has as many devices
    of its own. Calling it again with the same count does nothing, so a notebook cell can be run
    twice. `LayoutError` when JAX has already started with another count, since JAX can't change it
    then.

        import gridlayout as gl

        gl.emulate_devices(8)
        device = gl.DeviceGrid((2, 4))
    """
    global _count
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise LayoutError(f"emulate_devices({count!r}): the count must be a whole number >= 1")
    if _count not in (None, count):
        raise LayoutError(
            f"emulate_devices({count}): JAX has already started, or is to start, with {_count} "
            "devices, as an earlier call said; call it once"
        )
    # XLA's CPU client runs all devices' programs on one pool of threads, and a collective blocks
    # its thread. With fewer than two threads a device, programs with several collectives hang, in
    # plain JAX too, and so do steps in flight at once, hence synchronous dispatch. (Many more
    # threads than that make every product slower.) The client reads both when it starts.
    threads = max(2 * count, int(os.environ.get("NPROC") or 0))
    os.environ["NPROC"] = str(threads)
    # XLA of JAX 0.12 builds YNNPACK's kernels as devices first run them, all at once, and crashes
    # now and then, as they share what is not made for several threads.
    flags = os.environ.get("XLA_FLAGS", "")
    if jax.__version_info__[:2] == (0, 12) and _YNNPACK not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_YNNPACK}=".strip()
    devices = _Devices(count)
    try:
        jax.config.update("jax_num_cpu_devices", count)
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    except RuntimeError:  # JAX refuses once its devices exist
        devices.check()
    _count = count
    return devices


class _Devices(Sequence[jax.Device]):
    """This process's devices, so many; looking at one starts JAX."""

    def __init__(self, count: int) -> None:
        self.number = count

    def check(self) -> list[jax.Device]:
        """The devices; `LayoutError` where there are others."""
        devices = jax.local_devices()
        if len(devices) != self.number or devices[0].platform != "cpu":
            raise LayoutError(
                f"emulate_devices({self.number}): JAX has already started, with {len(devices)} "
                f"{devices[0].platform} device(s); call it first, before jax.devices() or any array"
            )
        return devices

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: Any) -> Any:
        return self.check()[index]

    def __iter__(self) -> Iterator[jax.Device]:
        return iter(self.check())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.check() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.check())
