"""The caches of the library: bounded together by bytes, and emptied by one call.

Planning asks its caches thousands of times per program, so `cached` keeps C's `lru_cache` in front,
and drops what has not been asked for while its share of the limit was filled once. Compiled
programs are few and large, so `Kept` marks each use and drops the least recently used of all.

Any thread may use them. Dicts are read and written without a lock, as Python allows; one lock is
for what concerns all caches. Nothing is freed while it is held: freeing a compiled program takes
JAX's locks, and JAX may wait for this one (`drop_all`).
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Hashable
from functools import lru_cache, partial, update_wrapper
from itertools import count
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload
from weakref import WeakSet

import numpy as np

from gridlayout.arguments import as_int
from gridlayout.errors import LayoutError
from gridlayout.public import public

_LIMIT = 1 << 30
# What an entry of `cached` takes, with its keys, if nothing else is stated: measured.
_ENTRY = 1 << 10

Params = ParamSpec("Params")
Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Size = int | Callable[[Any], int]


class Held(Protocol):
    """What a cached value holds: an object that states its bytes, which values may share."""

    @property
    def held_bytes(self) -> int:
        """An estimate of its bytes, compiled programs included."""


@overload
def cached(fn: Callable[Params, Result], /) -> Callable[Params, Result]: ...
@overload
def cached(
    *, size: Size = _ENTRY, entries: int | None = None
) -> Callable[[Callable[Params, Result]], Callable[Params, Result]]: ...
def cached(fn: Any = None, /, *, size: Size = _ENTRY, entries: int | None = None) -> Any:
    """Decorate a function to remember its results, as `functools.lru_cache` does.

    size: the bytes of an entry, or a function that returns those of a result. A sixteenth of
    `limit` is for the results of all decorated functions together. Each time that half of it
    was filled, the results are dropped that no call asked for meanwhile.
    entries: instead, the most results of this function; for small results of many texts.

    >>> @cached
    ... def square(n):
    ...     print("computed")
    ...     return n * n
    >>> square(3), square(3)
    computed
    (9, 9)
    """
    if fn is None:
        return partial(cached, size=size, entries=entries)
    if entries is not None:
        _CACHES.counted.append(front := lru_cache(maxsize=entries)(fn))
        return front
    one = _Remembered(fn, size)
    _CACHES.functions.append(one)
    return one.front


class _Remembered:
    """The results of one function: `recent` ones, which `front` has too, and `older` ones."""

    def __init__(self, fn: Callable[..., Any], size: Size) -> None:
        self.recent: dict[Any, Any] = {}
        self.older: dict[Any, Any] = {}
        # Without a bound of its own: `front` has exactly what `recent` has.
        self.front: Any = lru_cache(maxsize=None)(self._missed)
        update_wrapper(self.front, fn)
        self.fn, self.size = fn, size

    def _missed(self, *args: Any, **kwargs: Any) -> Any:
        key = (self, args, *sorted(kwargs.items())) if kwargs else args
        found = self.older.pop(key, self)
        if found is self:
            found = self.fn(*args, **kwargs)
        self.recent[key] = found
        size = self.size
        _CACHES.charge(size if isinstance(size, int) else size(found))
        return found

    def age(self) -> dict[Any, Any]:
        """Return the older results, and forget them; the recent ones become older ones."""
        dropped, self.older, self.recent = self.older, self.recent, {}
        self.front.cache_clear()
        return dropped


def array_bytes(found: Any) -> int:
    """Return the bytes of an entry of NumPy arrays, in tuples of any depth.

    >>> array_bytes((np.zeros(1000), (0, np.zeros(1000)))) - array_bytes(())
    16000
    """

    def inside(x: Any) -> int:
        if isinstance(x, np.ndarray):
            return x.nbytes
        return sum(map(inside, x)) if isinstance(x, tuple) else 0

    return _ENTRY + inside(found)


class _Entry(Generic[Value]):
    __slots__ = "held", "used", "value"

    def __init__(self, value: Value, held: Held) -> None:
        self.value, self.held, self.used = value, held, next(_uses)


_uses = count()


class Kept(Generic[Key, Value]):
    """A dict of compiled programs and what belongs to them.

    Fifteen sixteenths of `limit` are for all such dicts together; the least recently used
    entries of all of them are dropped beyond it. An entry lives no longer than its dict.
    """

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry[Value]] = {}
        self._last: tuple[Key | None, _Entry[Value] | None] = None, None
        _CACHES.add(self)

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, which is then the most recently used one, or None."""
        last, entry = self._last  # most calls repeat the key of the previous one, without a hash
        if entry is None or key != last:
            if (entry := self._entries.get(key)) is None:
                return None
            self._last = key, entry
        entry.used = next(_uses)
        return entry.value

    def add(self, key: Key, value: Value, held: Held) -> Value:
        """Add a value, and return it. held: what it holds, which is counted once for all values."""
        self._entries[key] = _Entry(value, held)
        self._last = None, None
        _CACHES.trim()
        return value

    def entries(self) -> list[tuple[_Entry[Value], Kept[Key, Value], Key]]:
        """Return each entry, with this dict and its key."""
        return [(entry, self, key) for key, entry in self._entries.copy().items()]

    def drop(self, key: Key) -> None:
        """Drop one value."""
        self._entries.pop(key, None)
        self._last = None, None

    def emptied(self) -> dict[Key, _Entry[Value]]:
        """Drop all values, and return what to free."""
        dropped, self._entries = self._entries, {}
        self._last = None, None
        return dropped

    def __len__(self) -> int:
        return len(self._entries)


class _Caches:
    """All caches. counted: C caches of a stated number of entries.

    filled: the bytes of recent results, and of older ones. is_stale: whether all is to be dropped,
    because `clear` could not.
    """

    def __init__(self) -> None:
        self.limit = _LIMIT
        self.functions: list[_Remembered] = []
        self.counted: list[Any] = []
        self.dicts: WeakSet[Kept[Any, Any]] = WeakSet()
        self.filled = [0, 0]
        self.is_stale = False
        self.lock = threading.RLock()

    def add(self, kept: Kept[Any, Any]) -> None:
        """Add a dict, which is in the list while it exists."""
        with self.lock:
            self.dicts.add(kept)

    def charge(self, size: int) -> None:
        """Count one more recent result."""
        with self.lock:
            self.filled[0] += size
            is_full = self.filled[0] > self.limit // 32
        if is_full:
            self.age()
        if self.is_stale:
            self.clear()

    def age(self) -> None:
        """Drop the older results of all functions; the recent ones become older ones."""
        with self.lock:
            dropped = [each.age() for each in self.functions]
            self.filled = [0, self.filled[0]]
        del dropped  # freed here, without the lock

    def entries(self) -> list[tuple[_Entry[Any], Kept[Any, Any], Any]]:
        """Return each entry of the dicts, with its dict and its key."""
        with self.lock:
            dicts = list(self.dicts)
        return [each for kept in dicts for each in kept.entries()]

    @property
    def program_bytes(self) -> int:
        """An estimate of the bytes that the entries of dicts hold."""
        held = {id(entry.held): entry.held for entry, *_ in self.entries()}
        return sum(each.held_bytes for each in held.values())

    def trim(self) -> None:
        """Drop the least recently used entries of dicts beyond the limit, but not the last one."""
        if self.is_stale:
            self.clear()
        left, counted = 15 * self.limit // 16, set[int]()
        if self.program_bytes <= left:
            return
        entries = sorted(self.entries(), key=lambda each: each[0].used, reverse=True)
        for n, (entry, kept, key) in enumerate(entries):
            if id(entry.held) not in counted:
                left -= entry.held.held_bytes
                counted.add(id(entry.held))
            if left < 0 and n:
                kept.drop(key)

    def clear(self, wait: bool = True) -> None:
        """Drop everything; if another thread has the lock, wait for it or leave it to that one."""
        self.is_stale = True
        if not self.lock.acquire(blocking=wait):
            return
        try:
            self.is_stale, self.filled = False, [0, 0]
            dropped = [each.age() for each in self.functions for _ in range(2)]
            dropped += [kept.emptied() for kept in list(self.dicts)]
            for front in self.counted:
                front.cache_clear()
        finally:
            self.lock.release()
        del dropped


_CACHES = _Caches()


@public
def clear() -> None:
    """Drop all that the library has cached: plans, tables of indices, compiled programs.

    Arrays, layouts and functions that you hold stay, and compile again when they are called. The
    caches of JAX stay too; `jax.clear_caches()` empties those and the library's.

    >>> clear()
    >>> nbytes()
    0
    """
    _CACHES.clear()
    gc.collect()  # programs and JAX's functions refer to each other


def trim() -> None:
    """Drop the least recently used programs beyond the limit, as one has become larger."""
    _CACHES.trim()


def drop_all() -> None:
    """Drop all that the library has cached, as JAX drops its own.

    Python calls it where an object is freed, in any thread and with any lock held. So it does not
    wait: if another thread has the lock, the next call that adds to a cache drops everything.
    """
    _CACHES.clear(wait=False)


@public
def nbytes() -> int:
    """Return an estimate of the bytes that the library's caches hold on the host.

    It counts plans, compiled programs and tables of indices; `gl.caches.limit` bounds it. What JAX
    caches for functions that you pass to `jax.jit` is not included.

    >>> nbytes() <= limit()
    True
    """
    return sum(_CACHES.filled) + _CACHES.program_bytes


@public
def limit(nbytes: int | None = None) -> int:
    """Return the most bytes that the library's caches may hold on the host; 1 GiB by default.

    nbytes: the new value; None leaves it. A sixteenth is for plans and tables of indices,
    the rest for compiled programs. Beyond it, what was not used for the longest time is dropped,
    and computed or compiled again when it is needed. The program used last is always kept.
    `LayoutError` if the limit is not a positive whole number.

    >>> before = limit()
    >>> limit(256 << 20)
    268435456
    >>> limit(before) == before
    True
    """
    if nbytes is not None:
        nbytes = as_int(nbytes, "the limit of the caches")
        if nbytes < 1:
            raise LayoutError(
                f"the limit of the caches is {nbytes} bytes, and must be at least 1; "
                "gl.caches.clear() drops what they hold"
            )
        _CACHES.limit = nbytes
        while sum(_CACHES.filled) > nbytes // 16:
            _CACHES.age()
        _CACHES.trim()
    return _CACHES.limit
