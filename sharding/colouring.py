"""Edge colouring: messages between devices in rounds, one from and one to each device a round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def most_at_one(source: Ints, target: Ints) -> int:
    """The most messages that one device sends, or receives: the fewest rounds there can be.

    >>> most_at_one(np.array([0, 0, 1]), np.array([1, 2, 2]))
    2
    """
    return max(int(np.bincount(ends).max()) for ends in (source, target))


def coloured(source: Ints, target: Ints) -> Ints:
    """The round of each message, as few as can be: by alternating paths (Kőnig's theorem).

    >>> coloured(np.array([0, 0, 1]), np.array([1, 2, 2])).tolist()
    [0, 1, 0]
    """
    count = most_at_one(source, target)
    # Of each end and round: the message, or -1.
    at = [np.full((int(ends.max()) + 1, count), -1).tolist() for ends in (source, target)]
    ends = (source.tolist(), target.tolist())
    found = [0] * len(source)
    for n, (s, t) in enumerate(zip(*ends, strict=True)):
        a, b = at[0][s].index(-1), at[1][t].index(-1)  # a round in which each of both is free
        if at[1][t][a] != -1:
            _swap(at, ends, found, at[1][t][a], a, b)
        found[n] = a
        at[0][s][a] = at[1][t][a] = n
    return np.array(found, np.int64)


def _swap(
    at: list[list[list[int]]],
    ends: tuple[list[int], list[int]],
    found: list[int],
    first: int,
    a: int,
    b: int,
) -> None:
    """Rounds `a` and `b` change places along the path that begins with a message of round `a`."""
    path, side, colour, message = [], 0, a, first
    while message != -1:
        path.append(message)
        colour = a + b - colour
        message = at[side][ends[side][message]][colour]
        side = 1 - side
    for message in path:
        for k in (0, 1):
            at[k][ends[k][message]][found[message]] = -1
    for message in path:
        found[message] = a + b - found[message]
        for k in (0, 1):
            at[k][ends[k][message]][found[message]] = message
