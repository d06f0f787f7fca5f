"""`AgreedJit`: a jitted function whose programs all processes compare before they first run.

Programs of one call may differ between processes that describe the call equally, if they plan
or lower it differently. Their collectives would then wait for each other without end, or mix up
their data. The lowered module of a program shows this, as text without names of source files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
from jax.sharding import Sharding

from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.elements import digest_of
from gridlayout.sharding.processes.joint import SharedCall, devices_line, group_of


def agreed_jit(fn: Callable[..., Any], device: DeviceGrid, **options: Any) -> Callable[..., Any]:
    """Return `jax.jit(fn, **options)`; compared first, if the device grid has several processes."""
    jitted = jax.jit(fn, **options)
    return jitted if len(device.processes) < 2 else AgreedJit(jitted)


class AgreedJit:
    """A jitted function, and the digests of its lowered modules by the types of its arguments.

    Its programs are those of the joint call that it is called in. Outside of one, it is a joint
    call itself. On arrays of this process alone nothing is compared.
    """

    def __init__(self, jitted: Any) -> None:
        self.jitted = jitted
        self.digests: dict[Any, bytes] = {}

    def __call__(self, *args: Any) -> Any:
        """Run the function."""
        if jax.process_count() == 1:
            return self.jitted(*args)
        sharding = _spread(jax.tree.leaves(args))
        if sharding is None:
            return self.jitted(*args)
        processes, platform = _processes_of(sharding)
        if jax.process_index() not in processes:
            return self.jitted(*args)
        group, call = group_of(processes, platform), SharedCall.current()
        if call is not None and call.group is group:
            call.compare(self, args)
            return self.jitted(*args)
        with SharedCall(self, sharding, group) as call:
            call.compare(self, args)
            return call.ran(self.jitted(*args))

    def __str__(self) -> str:
        return f"{self.jitted.__name__} on several processes"

    def digest(self, args: Sequence[Any]) -> bytes:
        """Return a digest of its lowered module for arguments of these types."""
        types = tuple(
            (x.shape, x.dtype, getattr(x, "weak_type", False), x.sharding)
            if isinstance(x, jax.Array)
            else _type(x)
            for x in jax.tree.leaves(args)
        )
        if (found := self.digests.get(types)) is None:
            found = self.digests[types] = digest_of("\n".join(self.lines(args)).encode())
        return found

    def lines(self, args: Sequence[Any]) -> list[str]:
        """Return its lowered module; JAX then compiles it without lowering it again."""
        found = _spread(jax.tree.leaves(args))
        text = self.jitted.lower(*args).as_text()
        lines = [f"lowered program: {line.strip()}" for line in text.splitlines()]
        return lines if found is None else [devices_line(found), *lines]


def _type(x: Any) -> Any:
    """Return what the program depends on of an argument that is not JAX's: its type or value."""
    if isinstance(x, (int, float, complex)):
        return type(x)
    return (x.shape, x.dtype) if hasattr(x, "dtype") else x


def _spread(leaves: Sequence[Any]) -> Sharding | None:
    """Return the sharding of the first array over several processes; None if JAX traces one."""
    found = None
    for x in leaves:
        if isinstance(x, jax.core.Tracer):
            return None
        if found is None and isinstance(x, jax.Array) and not x.is_fully_addressable:
            found = x.sharding
    return found


@lru_cache(4096)
def _processes_of(sharding: Sharding) -> tuple[tuple[int, ...], str]:
    """Return the processes of a sharding's devices in ascending order, and their platform."""
    devices: Any = sharding.device_set
    platform = next(iter(devices)).platform
    return tuple(sorted({each.process_index for each in devices})), platform
