"""Which buffers of an HLO computation share memory, and the most bytes of its temporaries."""

from __future__ import annotations

from array import array
from bisect import bisect

from gridlayout.dump.values.hlo_computation import APART, INNER, MADE, Computation
from gridlayout.dump.values.peaks import most_of

_ALIGNMENT = 64  # bytes, of every buffer
_MAX_RESULTS = 64  # most results whose buffers are tried for temporaries


def most_temporary(
    now: Computation, reuse: bool = False, in_loop: bool = False, apart: bool = False
) -> tuple[int, int]:
    """Return the peak bytes of temporaries, and the first instruction where it is reached.

    reuse: whether a temporary may be placed in the buffer of a result. in_loop: whether results are
    in the buffers of the parameters, as in the body of a loop. apart: whether no temporary may be
    placed in the state of a loop.
    """
    spans, marks = now.spans, now.spans.marks
    returned = {k for part in now.roots for k in part}
    results = {k for k in returned if marks[k] == MADE}
    placed = _in_results(now, results) if reuse else results
    place, last = _places(now, placed if reuse else set(), results, in_loop, apart)
    rest = [
        k
        for k in range(len(spans))
        if place[k] == k and marks[k] in (MADE, INNER, APART) and k not in placed
    ]
    if not apart:
        shared = {k for k, state in now.states.items() if state & returned}
        rest = [k for k in rest if k not in shared]
    if not reuse:
        taken = {place[k] for k in results}
        rest = [k for k in rest if k not in taken]
    sizes = [
        _aligned(n) if mark == MADE else n for n, mark in zip(spans.nbytes, marks, strict=True)
    ]
    return most_of(rest, spans.first, last, sizes)


def _places(
    now: Computation, placed: set[int], results: set[int], in_loop: bool, apart: bool
) -> tuple[array[int], array[int]]:
    """Return the buffer whose memory each buffer uses, and the last instruction that uses it.

    placed: buffers whose place is known. results: those that the computation returns. in_loop,
    apart: as for `most_temporary`; a loop's state is free after the parameter's last use.
    """
    spans, nbytes, marks = now.spans, now.spans.nbytes, now.spans.marks
    place, last = array("q", range(len(spans))), spans.last[:]
    inputs = _parameters_of_results(now) if in_loop else {}
    taken = set() if placed else set(results)
    for new, old in zip(now.turns[::2], now.turns[1::2], strict=True):
        k = place[old]
        if new in placed or k in placed:
            continue
        if (own := inputs.get(new)) is not None:
            if apart:
                continue
            in_place = last[own] == spans.first[k] and now.reuses(k, own)
            if last[own] >= spans.first[k] and not in_place:
                continue
        same = nbytes[new] == nbytes[k] and marks[k] == MADE and place[new] == new != k
        if same and k not in taken and last[k] == spans.first[new]:
            place[new], last[k] = k, last[new]
            if new in taken:
                taken.add(k)
    return place, last


def _parameters_of_results(now: Computation) -> dict[int, int]:
    """Return the buffers of the results of a loop's body, and those of their parameters."""
    inputs, marks = now.parameters(), now.spans.marks
    if len(inputs) != len(now.roots):
        return {}
    pairs = zip(now.roots, inputs, strict=True)
    return {
        part[0]: own[0]
        for part, own in pairs
        if len(part) == 1 == len(own) and marks[part[0]] == MADE
    }


def _in_results(now: Computation, results: set[int]) -> set[int]:
    """Return the buffers that are placed in the memory of a result, with the results.

    The largest buffers are placed first; of equal ones, the first defined. Each is placed in the
    smallest result that is free; of equal ones, in the last defined.
    """
    spans = now.spans
    first, last, nbytes = spans.first, spans.last, spans.nbytes
    large = sorted(results, key=lambda k: (nbytes[k], -first[k]))[-_MAX_RESULTS:]
    ranges = {k: [(first[k], last[k], k)] for k in large}
    room = _aligned(nbytes[large[-1]]) if large else -1
    small = [
        k
        for k in range(len(spans))
        if nbytes[k] <= room and spans.marks[k] in (MADE, APART) and k not in results
    ]
    small.sort(key=lambda k: (-nbytes[k], first[k]))
    placed = set(results)
    for k in small:
        for result, among in ranges.items():
            if nbytes[k] > _aligned(nbytes[result]):
                continue
            at = bisect(among, (first[k], last[k], k))
            if _follows(now, among[at - 1] if at else None, k) and _precedes(
                now, k, among[at] if at < len(among) else None
            ):
                among.insert(at, (first[k], last[k], k))  # ranges stay sorted
                placed.add(k)
                break
    return placed


def _follows(now: Computation, before: tuple[int, int, int] | None, k: int) -> bool:
    """Return whether `k` may be in the buffer of a value that is live before it."""
    if before is None or before[1] < now.spans.first[k]:
        return True
    return before[1] == now.spans.first[k] and now.reuses(k, before[2])


def _precedes(now: Computation, k: int, after: tuple[int, int, int] | None) -> bool:
    """Return whether `k` may be in the buffer of a value that is live after it."""
    if after is None or now.spans.last[k] < after[0]:
        return True
    return now.spans.last[k] == after[0] and now.reuses(after[2], k)


def _aligned(nbytes: int) -> int:
    # An aligned number is returned as the same object, which saves memory for a million values.
    return nbytes + -nbytes % _ALIGNMENT if nbytes % _ALIGNMENT else nbytes
