"""`once`: functions of a graph, of which each graph keeps the results."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class Keeps(Protocol):
    """A graph with the results of functions of it; nothing changes it after it is made."""

    kept: dict[Any, Any]


G = TypeVar("G", bound=Keeps)
P = ParamSpec("P")
T = TypeVar("T")


def once(fn: Callable[Concatenate[G, P], T]) -> Callable[Concatenate[G, P], T]:
    """Decorate a function of a graph, and other arguments, so that it runs once for these."""

    @wraps(fn)
    def known(graph: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = fn, args, *sorted(kwargs.items())
        if key not in graph.kept:
            graph.kept[key] = fn(graph, *args, **kwargs)
        found: T = graph.kept[key]
        return found

    return known
