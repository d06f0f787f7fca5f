"""Agreement: the processes of a mesh check that they are about to run the same program.

Each process describes its call as lines of text. The processes compare digests of these, and if the
digests differ, they search for the first line that does (`group.py`). All processes cache the
digests of calls on which they agreed, and do not compare them again. The text must therefore have
nothing that differs from process to process by chance. If one process has all devices, nothing is
compared. The programs that a call runs are compared too (`programs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.elements import Compared, Several, digest_of
from gridlayout.sharding.processes.group import names as process_names
from gridlayout.sharding.processes.jaxprs import plain
from gridlayout.sharding.processes.joint import (
    LOCAL_CALL,
    JointCall,
    SharedCall,
    group_of,
    is_traced,
)


def joint_call(what: Any, device: DeviceGrid, *values: Any, patient: bool = False) -> JointCall:
    """Return the context manager of a call that all processes of a device grid make.

    An error in the `with` block is sent to the other processes, and their errors are raised here.
    The block calls `agree`, then runs the program on the devices and passes its result to `ran`. If
    another process does not come to that program, this process ends (`watch.py`).

    what: the call, as messages name it. values: its arrays. Nothing is compared if JAX traces them,
    or if this process has none of the devices or all of them. patient: whether the processes may
    take very different times until `agree`: they then compare in any case, and wait without limit.
    """
    if len(device.processes) < 2:
        return LOCAL_CALL
    if jax.process_index() not in device.processes or is_traced(values):
        return LOCAL_CALL
    group = group_of(device.processes, device.platform)
    return SharedCall(what, device, group, is_patient=patient)


def is_local(device: DeviceGrid) -> bool:
    """Return whether this process has all devices."""
    return device.processes == (jax.process_index(),)


def check_has_part(device: DeviceGrid, what: str) -> None:
    """Raise `LayoutError` if this process has none of the devices, and so no part of `what`."""
    if jax.process_index() not in device.processes:
        raise LayoutError(
            f"process {jax.process_index()} has no part of {what}: the devices of {device!r} are "
            f"those of {process_names(device.processes)}. Make the call there, or use a mesh over "
            "all processes"
        )


def layout_lines(*named: tuple[str, Layout]) -> list[str]:
    """Return layouts as lines: their reprs, then a digest of all that equality compares."""
    parts = repr([(x.steps, x.order, x.core_rank) for _, x in named])
    steps = f"steps of layouts: {digest_of(parts.encode()).hex()}"
    return [*(f"{what}: {layout!r}" for what, layout in named), steps]


def local_data(arrays: Sequence[Any], names: Sequence[str] | None = None) -> Compared | None:
    """Return the data of the arrays and numbers that each process has for itself; None without any.

    Arrays over several processes, and so `GridArray`s, are the same for all. names: of all arrays;
    by default their numbers.
    """
    found = {
        f"array {k}" if names is None else names[k]: plain(x)
        for k, x in enumerate(arrays)
        if not hasattr(x, "storage") and getattr(x, "is_fully_addressable", True)
    }
    return Several(found) if found else None
