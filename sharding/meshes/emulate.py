"""Emulated devices: several CPU devices in one process, to test a mesh without its hardware."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from gridlayout.arguments import as_int
from gridlayout.errors import LayoutError
from gridlayout.public import public

_YNNPACK = "--xla_cpu_experimental_ynn_fusion_type"
# The number of devices that this process requested; None if it requested none.
_count: int | None = None


def has_ynnpack() -> bool:
    """Return whether XLA on CPUs fuses arithmetic with reductions of its result, by YNNPACK."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    return jax.__version_info__[:2] >= (0, 12) and f"{_YNNPACK}=" not in flags


@public
def emulate_devices(count: int) -> Sequence[jax.Device]:
    """Make JAX run on `count` CPU devices in this process, and return them.

    Call it before anything that starts JAX (`jax.devices()`, any array). It does not start JAX
    itself, so `jax.distributed.initialize` may follow; then each process has `count` devices.
    Another call with the same count does nothing, so a notebook cell can be run twice. Raises
    `LayoutError` if JAX has already started with another count, because JAX can't change it then.

        import gridlayout as gl

        gl.emulate_devices(8)
        device = gl.DeviceGrid((2, 4))
    """
    global _count
    count = as_int(count, "the count of emulate_devices")
    if count < 1:
        raise LayoutError(f"emulate_devices({count}): the count must be a whole number >= 1")
    if _count not in (None, count):
        raise LayoutError(
            f"emulate_devices({count}): an earlier call requested {_count} devices; call it once, "
            "or with the same count"
        )
    # XLA's CPU client runs the programs of all devices on one thread pool, and a collective blocks
    # its thread. With fewer than two threads per device, programs with several collectives hang,
    # also in plain JAX. So do several programs in flight, hence synchronous dispatch. (With many
    # more threads, products become slower.) The client reads both settings when it starts.
    stated = os.environ.get("NPROC", "")  # what is no number, XLA ignores
    threads = max(2 * count, int(stated) if stated.isascii() and stated.isdecimal() else 0)
    os.environ["NPROC"] = str(threads)
    # XLA of JAX 0.12 builds YNNPACK kernels when the devices first run them. They do so at the same
    # time, sharing data that is not thread-safe, and sometimes crash.
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
    """The `count` devices of this process; any access starts JAX."""

    def __init__(self, count: int) -> None:
        self.number = count

    def check(self) -> list[jax.Device]:
        """Return the devices; raise `LayoutError` if JAX has started with other devices."""
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
