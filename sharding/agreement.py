"""Agreement: processes that are to run one program find out first whether they all mean one.

Each says what it is about to do as lines of text; they compare digests, and where those differ
search for the first line that does (`processes.py`). What they agreed on is remembered by its
digest, alike in all of them, and not asked again: so it is text, in which nothing is a process's
own. Where one process has all devices, nothing of this happens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.calls import Call
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.elements import MOST_BYTES, Elements, digest_of
from gridlayout.sharding.messages import Lines
from gridlayout.sharding.processes import Group
from gridlayout.sharding.processes import names as process_names

# What Python prints of one thing differently in each process: addresses, and sets' order.
_ADDRESS, _SET = re.compile(r"\b0x[0-9a-f]+"), re.compile(r"\{([^{}:=]*)\}")
_MOST_KNOWN = 4096
Result = TypeVar("Result")


def crossing(what: Any, device: DeviceGrid, *values: Any, patient: bool = False) -> Crossing:
    """A call of `what` on a device grid, in a `with`: it is told of, and tells, the others' errors.

    What runs on the devices stands in the `with` too, after `agree`, and `ran` is told the result:
    where another process does not come to it, this one ends (`watch.py`).

    values: its arrays; of a call that JAX traces nothing is compared, nor where this process or
    every other one has none of the devices. patient: whether processes may take very different time
    to come to its end: each asks the others in any case, and waits for them without one.
    """
    if len(device.processes) < 2:
        return _ALONE
    if jax.process_index() not in device.processes or _is_traced(values):
        return _ALONE
    return _Together(what, device, _group(device.processes, device.platform), patient)


def check_has_part(device: DeviceGrid, what: str) -> None:
    """`LayoutError` where this process has none of the devices, and so no part of `what`."""
    if jax.process_index() not in device.processes:
        raise LayoutError(
            f"process {jax.process_index()} has no part of {what}: the devices of {device!r} are "
            f"those of {process_names(device.processes)}; ask there, or take a mesh over all "
            "processes"
        )


def layout_lines(*named: tuple[str, Layout]) -> list[str]:
    """Layouts as lines: as users write them, then a digest of all that makes two of them equal."""
    parts = repr([(x.steps, x.order, x.core_rank) for _, x in named])
    steps = f"steps of layouts: {digest_of(parts.encode()).hex()}"
    return [*(f"{what}: {layout!r}" for what, layout in named), steps]


def jaxpr_lines(closed: Any) -> list[str]:
    """A function's jaxpr as lines, and what it closes over."""
    found = [f"constant {_constant(x)}" for x in closed.consts]
    return [*found, *(common_text(line.strip()) for line in str(closed).splitlines())]


class Crossing:
    """A call on a device grid of this process alone, which has no one to agree with."""

    def __enter__(self) -> Crossing:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        pass

    def agree(
        self,
        key: Hashable,
        lines: Callable[[], Iterable[str]],
        *,
        owner: Any = None,
        data: Callable[[], Elements] | None = None,
    ) -> None:
        """Go on when every process of the device grid says the same; else `LayoutError` in each.

        lines: what this process is about to do. key: what they follow from, by which their digest
        is kept, as long as the owner where there is one. data: the elements that are to be the same
        as well, if they are to be compared.
        """

    def ran(self, result: Result) -> Result:
        """The result of the call, which the devices may still be at."""
        return result

    def compare_copies(self, names: Sequence[str], digests: NDArray[np.uint32]) -> None:
        """`LayoutError` in each process where two that agreed have different copies of something.

        digests: one a name, 0 of what is not here. All processes have the same names.
        """


_ALONE = Crossing()


class _Together(Crossing):
    """A call that other processes take part in."""

    def __init__(self, what: Any, device: DeviceGrid, group: Group, patient: bool) -> None:
        self.what, self.device, self.group, self.is_open = what, device, group, True
        self.is_patient, self.counted = patient, b""
        self.call: Call | None = None

    def __str__(self) -> str:
        return common_text(str(self.what))

    def __enter__(self) -> Crossing:
        self.call = self.group.calls.begin(self)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            if self.is_open and isinstance(error, Exception):
                words = f"{self}: {type(error).__name__}: {error}"
                self.group.report(self, words, self.is_patient)
        finally:
            self.group.close(self.call, self.counted, error)

    def agree(
        self,
        key: Hashable,
        lines: Callable[[], Iterable[str]],
        *,
        owner: Any = None,
        data: Callable[[], Elements] | None = None,
    ) -> None:
        @cache
        def text() -> Lines:
            devices = " ".join(str(d.id) for d in self.device.fine.devices.flat)
            return Lines([str(self), f"on {self.device!r}", *lines(), f"devices {devices}"])

        known = self.group.known if owner is None else _kept_for(owner)
        key = (self.device, key) if owner is not None else (self.what, self.device, key)
        digest = known.get(key)
        if digest is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            digest = known[key] = text().prefix(None)
        elements = None if data is None else data()
        self.is_open = False
        if self.call is not None:
            self.call.digest = digest
        self.counted = self.group.agree(self, digest, text, elements, self.is_patient)

    def ran(self, result: Result) -> Result:
        if self.call is not None:
            last: Any = (
                result if hasattr(result, "storage") else [None, *jax.tree.leaves(result)][-1]
            )
            array = getattr(last, "storage", last)
            self.call.result = ref(array) if isinstance(array, jax.Array) else None
        return result

    def compare_copies(self, names: Sequence[str], digests: NDArray[np.uint32]) -> None:
        rows = self.group.table(digests)
        for name, column in zip(names, rows.T.tolist(), strict=True):
            who = {digest: p for p, digest in zip(self.group.processes, column, strict=True)}
            who.pop(0, None)
            if len(who) > 1:
                raise LayoutError(
                    f"{self}: {process_names([*who.values()])} give different data for {name}, of "
                    "which each has a copy: give the same data for one box in all processes"
                )


@cache
def _group(processes: tuple[int, ...], platform: str) -> Group:
    return Group(processes, platform)


_owned: WeakKeyDictionary[Any, dict[Any, bytes]] = WeakKeyDictionary()


def _kept_for(owner: Any) -> dict[Any, bytes]:
    try:
        return _owned.setdefault(owner, {})
    except TypeError:  # it can't be hashed, or not weakly referenced
        return {}


def common_text(line: str) -> str:
    """A line without what differs from process to process."""
    line = _SET.sub(lambda m: f"{{{', '.join(sorted(m[1].split(', ')))}}}", line)
    return _ADDRESS.sub("0x...", line)


def _is_traced(values: Sequence[Any]) -> bool:
    tracer = jax.core.Tracer
    leaves = jax.tree.leaves(values)
    return any(
        isinstance(x, tracer) or isinstance(getattr(x, "storage", None), tracer) for x in leaves
    )


def _constant(x: Any) -> str:
    """An array that a function closes over: its bytes, if they are here and not many."""
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return type(x).__name__
    kind = f"{x.dtype}{list(x.shape)}"
    is_here = not isinstance(x, jax.Array) or (
        not isinstance(x, jax.core.Tracer)
        and x.is_fully_addressable
        and not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    )
    if not is_here or x.nbytes > MOST_BYTES:
        return kind
    return f"{kind} of digest {Elements(np.asarray(x)).prefix(None).hex()}"
