"""Live ranges against their definitions, counted time by time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridlayout import live_ranges
from gridlayout.live_ranges import Interval

TIMES = 12
SIZES = st.sampled_from([0, 1, 2, 3, 8, 1 << 70])
BOUNDS = st.integers(0, TIMES - 1)


@st.composite
def intervals(draw, most=14):
    """Intervals in any order, some of them never live."""
    found = draw(st.lists(st.builds(Interval, BOUNDS, BOUNDS, SIZES), max_size=most))
    return [each for each in found if each.last >= each.first - 1]


def by_first(some):
    return sorted(some, key=lambda each: each.first)


def live_at(some, time):
    return [n for n, each in enumerate(some) if each.first <= time <= each.last]


def are_apart(a, b):
    return a.last < b.first or b.last < a.first


# -- bytes over time -------------------------------------------------------------------------------


@given(intervals(), st.integers(0, TIMES + 2))
def test_the_bytes_held_are_the_sum_of_what_is_live(some, times):
    held = [sum(some[n].nbytes for n in live_at(some, time)) for time in range(times)]
    assert live_ranges.held_over_time(some, times) == held


@given(intervals())
def test_the_peak_is_the_first_time_with_the_most_bytes(some):
    held = live_ranges.held_over_time(some, TIMES)
    most = max(held)
    assert live_ranges.peak(by_first(some)) == (most, held.index(most) if most else 0)


@given(intervals(), st.integers(0, TIMES + 2))
def test_the_highest_is_the_largest_number_of_what_is_live(some, times):
    highest = [max((some[n].nbytes for n in live_at(some, t)), default=0) for t in range(times)]
    assert live_ranges.highest_over_time(some, times) == highest


RANGES = st.dictionaries(st.integers(0, 20), st.tuples(BOUNDS, BOUNDS).map(sorted))


@given(RANGES)
def test_live_values_are_those_between_their_ends(ranges):
    known = {n: -n for n in ranges if n % 3}
    found = {n: dict(live) for n, live in live_ranges.live_values(ranges, known, TIMES)}
    ends = {last for n, (_, last) in ranges.items() if n in known}
    assert found.keys() == ends | {TIMES - 1}
    for time, live in found.items():
        assert live == {n: -n for n in known if ranges[n][0] <= time <= ranges[n][1]}


@given(RANGES, st.booleans())
def test_changes_are_where_ranges_begin_and_end(ranges, always):
    found = [*live_ranges.changes(ranges, TIMES, always)]
    ends = {last for _, last in ranges.values()} | {TIMES - 1}
    assert [time for time, _, _ in found] == sorted({*range(TIMES)} if always else ends)
    assert sorted(n for _, began, _ in found for n in began) == sorted(ranges)
    assert all(last == time for time, _, ended in found for _, last in map(ranges.get, ended))
    assert all(first <= time for time, began, _ in found for first, _ in map(ranges.get, began))


# -- addresses -------------------------------------------------------------------------------------


def lowest_address(some, addresses, n, placed):
    """The lowest address at which value `n` overlaps none of the `placed` ones live with it."""
    live = [k for k in placed if some[k].last >= some[n].first and some[k].nbytes]
    blocks = [(addresses[k], addresses[k] + some[k].nbytes) for k in live]
    for address in sorted([0, *(end for _, end in blocks)]):
        end = address + some[n].nbytes
        if all(end <= start or stop <= address for start, stop in blocks):
            return address
    raise AssertionError("there is always room above")


@given(intervals(most=30))
def test_first_fit_takes_the_lowest_address_that_is_free(some):
    addresses, placed = live_ranges.first_fit(some), []
    for n in sorted(range(len(some)), key=lambda n: some[n].first):
        if some[n].nbytes:
            assert addresses[n] == lowest_address(some, addresses, n, placed)
        placed.append(n)


@given(intervals(most=30))
def test_no_two_values_that_are_live_at_once_overlap(some):
    addresses = live_ranges.first_fit(some)
    for time in range(TIMES):
        blocks = sorted((addresses[n], some[n].nbytes) for n in live_at(some, time))
        ends = [address + nbytes for address, nbytes in blocks]
        starts = [address for address, nbytes in blocks if nbytes]
        assert all(end <= start for end, start in zip(sorted(ends), starts[1:], strict=False))


def test_a_freed_address_is_taken_again_and_gaps_are_joined():
    some = [Interval(0, 0, 4), Interval(0, 0, 4), Interval(0, 2, 1), Interval(1, 2, 8)]
    assert live_ranges.first_fit(some) == [0, 4, 8, 0]


# -- shared places ---------------------------------------------------------------------------------


@given(st.lists(st.sets(st.integers(0, 3), max_size=3), min_size=1, max_size=16))
def test_a_place_is_passed_on_at_the_last_use(reads):
    # Buffer n is made at time n from those made `back + 1` times before.
    reads = [sorted(n - back - 1 for back in some if back < n) for n, some in enumerate(reads)]
    count = len(reads)
    last = [max([n, *(m for m in range(count) if n in reads[m])]) for n in range(count)]
    turns = [(new, old) for new in range(count) for old in reads[new]]
    place, end = live_ranges.in_turn(range(count), last, turns)
    expected = []
    for new in range(count):
        given_up = [expected[old] for old in reads[new] if last[old] == new]
        expected.append(given_up[0] if given_up else new)
    assert place == expected
    for k in {*place}:
        assert end[k] == last[max(n for n in range(count) if place[n] == k)]


def test_a_place_is_only_passed_on_to_those_that_may_use_it():
    chain = [0, 1, 2], [1, 2, 2], [(1, 0), (2, 1)]
    assert live_ranges.in_turn(*chain, may=lambda new, _: new == 2) == ([0, 1, 1], [1, 2, 2])
    # What is asked about is the place, not the value that was in it last.
    assert live_ranges.in_turn(*chain, may=lambda _, k: k == 0) == ([0, 0, 0], [2, 2, 2])


@given(intervals(most=6), intervals(most=20), st.data())
def test_values_are_in_the_first_result_with_room(results, others, data):
    results, once = ([x for x in some if x.first <= x.last] for some in (results, others))
    counts = [data.draw(st.integers(1, 3)) for _ in once]
    others = [each for each, count in zip(once, counts, strict=True) for _ in range(count)]
    together = live_ranges.in_results(results, once, counts)
    found = live_ranges.in_results(results, others)
    assert [n for some in together for n in some] == [n for some in found for n in some]
    inside = [[each] for each in results]
    for k in sorted(range(len(others)), key=lambda k: (-others[k].nbytes, k)):
        fits = [
            n
            for n, each in enumerate(results)
            if others[k].nbytes <= each.nbytes and all(are_apart(others[k], x) for x in inside[n])
        ]
        assert found[k] == fits[:1]
        if fits:
            inside[fits[0]].append(others[k])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 13, 100])
def test_many_values_share_one_result(count):
    others = [Interval(k, k, 1) for k in range(count)]
    assert live_ranges.in_results([Interval(count, count, 1)], others) == [[0]] * count
    assert live_ranges.in_results([Interval(count - 1, count, 1)], others).count([]) == 1
