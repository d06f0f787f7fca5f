"""What the marks of tests/tiers.py leave of a test's cases."""

from collections import Counter
from itertools import product
from types import SimpleNamespace

import tiers


class Item(SimpleNamespace):
    """As pytest's: a case of a test."""

    __hash__ = object.__hash__


def items(test, sizes, *mark):
    """The cases of a test whose parameters have so many values, with a mark and its arguments."""
    marks = {name: SimpleNamespace(args=args) for name, *args in ([mark] if mark else [])}
    return [
        Item(
            nodeid=f"{test}[{values}]",
            get_closest_marker=marks.get,
            callspec=SimpleNamespace(indices=dict(zip(sizes, values, strict=True))),
        )
        for values in product(*map(range, sizes.values()))
    ]


def test_each_value_of_each_parameter_is_about_as_often():
    for sizes, count in [({"a": 6, "b": 4}, 12), ({"a": 2, "b": 2, "c": 3}, 6), ({"a": 12}, 5)]:
        chosen = tiers.balanced(items("t", sizes), count)
        assert len({id(each) for each in chosen}) == count
        for name, size in sizes.items():
            often = Counter(each.callspec.indices[name] for each in chosen)
            assert len(often) == min(size, count)
            assert max(often.values()) - min(often.values()) <= 1
    # Of one parameter they are spread over all.
    few = sorted(each.callspec.indices["a"] for each in tiers.balanced(items("t", {"a": 100}), 5))
    assert max(b - a for a, b in zip([0, *few], [*few, 99], strict=True)) < 40


def test_marks_leave_all_with_all_cases_and_few_without(monkeypatch):
    plain, few = items("plain", {"a": 4}), items("few", {"a": 9}, "few", 3)
    late, every = items("late", {"a": 2}, "all_cases"), items("short", {"a": 2}, "few", 3)
    given = [*plain, *few, *late, *every]
    monkeypatch.setattr(tiers, "ALL", False)
    left = tiers.without_marked(given)
    names = Counter(each.nodeid.partition("[")[0] for each in left)
    assert names == {"plain": 4, "few": 3, "short": 2}
    assert left == [each for each in given if each in left]  # in their order
    monkeypatch.setattr(tiers, "ALL", True)
    assert tiers.without_marked(given) == given
