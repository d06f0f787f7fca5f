"""Agreement: the processes of a mesh check that they are about to run the same program.

Each process describes its call as lines of text. The processes compare digests of these, and if the
digests differ, they search for the first line that does (`processes.py`). All processes cache the
digests of calls on which they agreed, and do not compare them again. The text must therefore have
nothing that differs from process to process by chance. If one process has all devices, nothing is
compared.
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
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.calls import Call
from gridlayout.sharding.processes.elements import MOST_BYTES, Elements, digest_of
from gridlayout.sharding.processes.group import Group
from gridlayout.sharding.processes.group import names as process_names
from gridlayout.sharding.processes.messages import Lines

# What Python prints differently in each process: addresses, and the order of sets.
_ADDRESS, _SET = re.compile(r"\b0x[0-9a-f]+"), re.compile(r"\{([^{}:=]*)\}")
_MOST_KNOWN = 4096
Result = TypeVar("Result")


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
        return _LOCAL_CALL
    if jax.process_index() not in device.processes or _is_traced(values):
        return _LOCAL_CALL
    return _SharedCall(what, device, _group(device.processes, device.platform), patient)


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


def jaxpr_lines(closed: Any) -> list[str]:
    """Return the jaxpr of a function as lines, with the constants over which it closes."""
    found = [f"constant {_constant(x)}" for x in closed.consts]
    return [*found, *(common_text(line.strip()) for line in str(closed).splitlines())]


class JointCall:
    """A call on a device grid. This class is for devices of one process: it compares nothing."""

    def __enter__(self) -> JointCall:
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
        every_time: bool = False,
    ) -> None:
        """Raise `LayoutError` in all processes unless their calls are the same.

        lines: the description of the call. key: determines the lines; their digest is cached by it,
        during the lifetime of `owner` if there is one. data: the elements that are compared too, if
        any. every_time: compare even if all have agreed on this call before.
        """

    @property
    def repeated(self) -> Repeated | None:
        """The call, for runs without `agree`; None if it is local, or inside another call."""
        return None

    def ran(self, result: Result) -> Result:
        """Return the result, which the devices may still be computing, and record it."""
        return result

    def compare_copies(self, names: Sequence[str], digests: NDArray[np.uint32]) -> None:
        """Raise `LayoutError` in all processes if two of them have different copies of an array.

        digests: one per name; 0 for an array that this process does not have. All processes pass
        the same names. Called after `agree`.
        """


_LOCAL_CALL = JointCall()


class _SharedCall(JointCall):
    """A call on a device grid of several processes."""

    def __init__(self, what: Any, device: DeviceGrid, group: Group, patient: bool) -> None:
        self.what, self.device, self.group, self.is_open = what, device, group, True
        self.is_patient, self.counted = patient, b""
        self.call: Call | None = None

    def __str__(self) -> str:
        return common_text(str(self.what))

    def __enter__(self) -> JointCall:
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
        every_time: bool = False,
    ) -> None:
        @cache
        def text() -> Lines:
            devices = " ".join(str(d.id) for d in self.device.fine.devices.flat)
            return Lines([str(self), f"on {self.device!r}", *lines(), f"devices {devices}"])

        known = self.group.known if owner is None else _cached_for(owner)
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
        self.counted = self.group.agree(
            self, digest, text, elements, self.is_patient, every_time or self.is_patient
        )

    @property
    def repeated(self) -> Repeated | None:
        return None if self.call is None else Repeated(self.group, self, self.call.digest)

    def ran(self, result: Result) -> Result:
        if self.call is not None:
            self.call.result = _last_array(result)
        return result

    def compare_copies(self, names: Sequence[str], digests: NDArray[np.uint32]) -> None:
        rows = self.group.table(digests)
        for name, column in zip(names, rows.T.tolist(), strict=True):
            who = {digest: p for p, digest in zip(self.group.processes, column, strict=True)}
            who.pop(0, None)
            if len(who) > 1:
                raise LayoutError(
                    f"{self}: {process_names([*who.values()])} pass different data for {name}, of "
                    "which each has a copy: pass the same data for a box in all processes"
                )


class Repeated:
    """A call on which all processes agreed before; it is run again without a comparison."""

    __slots__ = "digest", "group", "what"

    def __init__(self, group: Group, what: Any, digest: bytes) -> None:
        self.group, self.what, self.digest = group, what, digest

    def is_agreed(self, arrays: Sequence[Any]) -> bool:
        """Whether nothing has to be compared, and JAX does not trace the arrays."""
        group = self.group
        if group.pending is not None or group.lost or group.calls.last.inside:
            return False
        if self.digest not in group.agreed or self.digest == group.interrupted:
            return False
        return not any(isinstance(x, jax.core.Tracer) for x in arrays)

    def run(self, program: Callable[[Sequence[Any]], Result], arrays: Sequence[Any]) -> Result:
        """Run a program on arrays as this call, and return its result."""
        call = self.group.calls.begin(self.what)
        assert call is not None
        call.digest = self.digest
        error = None
        try:
            result = program(arrays)
            call.result = _last_array(result)
            return result
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.group.close(call, self.digest, error)


def _last_array(result: Any) -> ref[jax.Array] | None:
    """Return a weak reference to the last array of a result; None if there is none."""
    last: Any = result if hasattr(result, "storage") else [None, *jax.tree.leaves(result)][-1]
    array = getattr(last, "storage", last)
    return ref(array) if isinstance(array, jax.Array) else None


@cache
def _group(processes: tuple[int, ...], platform: str) -> Group:
    return Group(processes, platform)


_owned: WeakKeyDictionary[Any, dict[Any, bytes]] = WeakKeyDictionary()


def _cached_for(owner: Any) -> dict[Any, bytes]:
    """Return the digests that are cached during the lifetime of an object."""
    try:
        return _owned.setdefault(owner, {})
    except TypeError:  # the owner has no hash or no weak references
        return {}


def common_text(line: str) -> str:
    """Return a line without addresses and with sets in sorted order."""
    line = _SET.sub(lambda m: f"{{{', '.join(sorted(m[1].split(', ')))}}}", line)
    return _ADDRESS.sub("0x...", line)


def _is_traced(values: Sequence[Any]) -> bool:
    tracer = jax.core.Tracer
    leaves = jax.tree.leaves(values)
    return any(
        isinstance(x, tracer) or isinstance(getattr(x, "storage", None), tracer) for x in leaves
    )


def _constant(x: Any) -> str:
    """Describe a constant of a jaxpr: type, shape, and a digest if it is small and local."""
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return type(x).__name__
    kind = f"{x.dtype}{list(x.shape)}"
    is_local = not isinstance(x, jax.Array) or (
        not isinstance(x, jax.core.Tracer)
        and x.is_fully_addressable
        and not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    )
    if not is_local or x.nbytes > MOST_BYTES:
        return kind
    return f"{kind} of digest {Elements(np.asarray(x)).prefix(None).hex()}"
