"""`JointCall`: a call that several processes make together, from their agreement to its result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import ContextVar, Token
from functools import cache
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

import jax
import numpy as np
from jax import lax
from numpy.typing import NDArray

from gridlayout.errors import LayoutError
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.calls import Call
from gridlayout.sharding.processes.elements import Compared, digest_of
from gridlayout.sharding.processes.fair_lock import FairLock
from gridlayout.sharding.processes.group import Group
from gridlayout.sharding.processes.group import names as process_names
from gridlayout.sharding.processes.jaxprs import common_text
from gridlayout.sharding.processes.leaving import watch
from gridlayout.sharding.processes.messages import AllGather, Lines

_MOST_KNOWN = 4096
_SAME_PROGRAM = (
    "made the same call, but planned or lowered another program for it, in which they would wait "
    "for each other without end: start all with the same versions, settings, rules and machine"
)
Result = TypeVar("Result")
# The call that this thread is in, if it is one of several processes.
_open: ContextVar[SharedCall | None] = ContextVar("gridlayout_joint_call", default=None)
# Threads make joint calls one by one, as they begin them. So processes whose threads
# begin them in the same order run the same programs in that order.
_turn = FairLock()


class Lowered(Protocol):
    """A jitted function, which is compared before it runs."""

    def digest(self, args: Sequence[Any]) -> bytes:
        """Return a digest of its lowered module."""

    def lines(self, args: Sequence[Any]) -> list[str]:
        """Return its lowered module."""


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
        data: Callable[[], Compared | None] | None = None,
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
        """Return the result, which the devices may still be computing, and record it.

        On the processors of the host, as errors of a lost process then belong to this call, it
        waits for the result.
        """
        return result

    def compare_copies(self, names: Sequence[str], digests: NDArray[np.uint32]) -> None:
        """Raise `LayoutError` in all processes if two of them have different copies of an array.

        digests: one per name; 0 for an array that this process does not have. All processes pass
        the same names. Called after `agree`.
        """


LOCAL_CALL = JointCall()


class SharedCall(JointCall):
    """A call on devices of several processes.

    place: the device grid, or the sharding of the call's arrays. digest: that of the call and of
    the programs that it has run so far, on which all agreed; empty before `agree`.
    """

    def __init__(
        self, what: Any, place: Any, group: Group, *, is_patient: bool = False, digest: bytes = b""
    ) -> None:
        self.what, self.place, self.group, self.is_patient = what, place, group, is_patient
        self.digest = self.first_digest = digest
        # Whether the others exchange once more before the program runs, if they have no error.
        self.is_open, self.is_traced = not digest, False
        self.is_inner = _open.get() is not None
        self.programs: set[bytes] = set()
        self.call: Call | None = None
        self._token: Token[SharedCall | None] | None = None

    @staticmethod
    def current() -> SharedCall | None:
        """Return the call that this thread is in; None if there is none."""
        return _open.get()

    def __str__(self) -> str:
        return common_text(str(self.what))

    def __enter__(self) -> SharedCall:
        if not self.is_inner:
            _turn.acquire()
        self.call = self.group.calls.begin(self)
        if self.call is not None and self.digest:
            self.call.add(self.digest)
        self._token = _open.set(self)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        assert self._token is not None
        _open.reset(self._token)
        try:
            if self.is_open and isinstance(error, Exception) and not self._is_in_trace():
                words = f"{self}: {type(error).__name__}: {error}"
                self.group.report(self, words, self.is_patient)
        finally:
            try:
                self.group.close(self.call, self.digest, error, is_made=not self.is_traced)
            finally:
                if not self.is_inner:
                    _turn.release()

    def agree(
        self,
        key: Hashable,
        lines: Callable[[], Iterable[str]],
        *,
        owner: Any = None,
        data: Callable[[], Compared | None] | None = None,
        every_time: bool = False,
    ) -> None:
        """See `JointCall`."""

        @cache
        def text() -> Lines:
            return Lines([str(self), f"on {self.place!r}", *lines(), devices_line(self.place)])

        known = _cached_for(self.group if owner is None else owner)
        key = (self.place, key) if owner is not None else (self.what, self.place, key)
        digest = known.get(key)
        if digest is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            digest = known[key] = text().prefix(None)
        elements, every_time = None if data is None else data(), every_time or self.is_patient
        is_known = elements is None and not every_time and digest in self.group.agreed
        self.is_open = False
        if not is_known and self._is_in_trace():
            return
        if self.call is not None:
            self.call.add(digest)
        is_new = self.group.agree(
            *(self, digest, text, elements), patient=self.is_patient, every_time=every_time
        )
        self.is_open = is_new and not self.is_patient
        self.digest = self.first_digest = digest

    def compare(self, program: Lowered, args: Sequence[Any]) -> None:
        """Raise `LayoutError` in all processes unless all are about to run the same program.

        It is compared unless they have agreed on it before, in this call. They may have planned it
        for very different times.
        """
        module = program.digest(args)
        if module in self.programs:
            return
        digest = digest_of(self.digest + module)
        if digest not in self.group.agreed and self._is_in_trace():
            return
        if self.call is not None:
            self.call.add(digest)
        self.is_open = False
        self.group.agree(
            *(self, digest, lambda: Lines([f"program of {self}", *program.lines(args)])),
            title=self.group.agreed.titles.get(self.first_digest, str(self)),
            patient=True,
            must=_SAME_PROGRAM,
        )
        self.digest = digest
        self.programs.add(module)

    def _is_in_trace(self) -> bool:
        """Return whether JAX traces the code that makes the call, which is then no joint one."""
        self.is_traced = self.is_traced or isinstance(lax.full((), 0), jax.core.Tracer)
        return self.is_traced

    @property
    def repeated(self) -> Repeated | None:
        """See `JointCall`."""
        if self.call is None:
            return None
        return Repeated(self.group, self.what, self.place, self.first_digest)

    def ran(self, result: Result) -> Result:
        """See `JointCall`."""
        last = _last_array(result)
        if self.call is not None and last is not None:
            self.call.result = ref(last)
        self.is_traced = self.is_traced or isinstance(last, jax.core.Tracer)
        if last is not None and self.group.on_host and not self.is_traced:
            last.block_until_ready()
        return result

    def compare_copies(self, names: Sequence[str], digests: NDArray[np.uint32]) -> None:
        """See `JointCall`."""
        rows = self.group.exchanges.table(digests)
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

    __slots__ = "digest", "group", "place", "what"

    def __init__(self, group: Group, what: Any, place: Any, digest: bytes) -> None:
        self.group, self.what, self.place, self.digest = group, what, place, digest

    def is_agreed(self, arrays: Sequence[Any]) -> bool:
        """Whether the call has not to be compared, and JAX does not trace the arrays."""
        group = self.group
        if not group.exchanges.is_free or group.calls.last.inside:
            return False
        if self.digest not in group.agreed:
            return False
        return not any(isinstance(x, jax.core.Tracer) for x in arrays)

    def run(self, program: Callable[[Sequence[Any]], Result], arrays: Sequence[Any]) -> Result:
        """Run a program on arrays as this call, and return its result."""
        with SharedCall(self.what, self.place, self.group, digest=self.digest) as call:
            return call.ran(program(arrays))


def is_traced(values: Any) -> bool:
    """Return whether JAX traces one of the values."""
    tracer = jax.core.Tracer
    return any(
        isinstance(x, tracer) or isinstance(getattr(x, "storage", None), tracer)
        for x in jax.tree.leaves(values)
    )


def _last_array(result: Any) -> jax.Array | None:
    """Return the last array of a result; None if there is none."""
    last: Any = result if hasattr(result, "storage") else [None, *jax.tree.leaves(result)][-1]
    array = getattr(last, "storage", last)
    return array if isinstance(array, jax.Array) else None


def devices_line(place: Any) -> str:
    """Return the devices of a device grid or of a sharding in words, in their order."""
    mesh = place.fine if isinstance(place, DeviceGrid) else getattr(place, "mesh", None)
    if mesh is None:
        return f"devices {' '.join(map(str, sorted(d.id for d in place.device_set)))}"
    return f"devices {' '.join(str(d.id) for d in mesh.devices.flat)}"


@cache
def group_of(processes: tuple[int, ...], platform: str) -> Group:
    """Return the group of some processes, which watches their calls from now on."""
    gather = AllGather(processes, platform)
    group = Group(gather.processes, gather.table, on_host=platform == "cpu")
    watch(group, platform)
    return group


_owned: WeakKeyDictionary[Any, dict[Any, bytes]] = WeakKeyDictionary()


def _cached_for(owner: Any) -> dict[Any, bytes]:
    """Return the digests that are cached during the lifetime of an object."""
    try:
        return _owned.setdefault(owner, {})
    except TypeError:  # the owner has no hash or no weak references
        return {}
