"""`AllGather`: an all-gather of one row of numbers per process, by the processes' first devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class AllGather:
    """An all-gather between processes; each of them must call `table`.

    processes: those whose rows it returns, in the order of the rows. That is descending, unlike the
    devices of programs: a backend that identifies groups by their order then does not mix up this
    all-gather and a collective of a program.
    """

    def __init__(self, processes: Sequence[int], platform: str) -> None:
        self.processes, self.platform = tuple(sorted(processes, reverse=True)), platform
        own: dict[int, list[jax.Device]] = {}
        for device in jax.devices(platform):
            own.setdefault(device.process_index, []).append(device)
        firsts = [min(own[process], key=lambda d: d.id) for process in self.processes]
        mesh = Mesh(np.array(firsts), ("process",))
        self._device = firsts[self.processes.index(jax.process_index())]
        self._by_process = NamedSharding(mesh, PartitionSpec("process"))
        self._gather = jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))

    def table(self, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the rows of all processes."""
        local = jax.device_put(row[None], self._device)
        shape = (len(self.processes), len(row))
        rows = jax.make_array_from_single_device_arrays(shape, self._by_process, [local])
        return np.asarray(self._gather(rows).addressable_data(0))
