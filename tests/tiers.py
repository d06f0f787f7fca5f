"""How many cases run: with `--all-cases` all of them, else a stated few of each table.

`make test` decides everything and compiles a few: each function under test, each primitive and
each property at least once, in a layout that is hard on it. `make test-all` compiles all there is.
Two marks do so for whole tests. Of the cases of a test marked `few(count)`, so many run, with each
value of each parameter about equally often. One marked `all_cases` runs with `--all-cases` alone:
what it covers, a shorter one covers in `make test`.
"""

from collections import Counter, defaultdict

# Set by conftest.py, before any test module is imported.
ALL = False
GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly between whole numbers


def few(cases, count, heavy=()):
    """`count` of the cases, spread evenly over those that are not heavy; all with `--all-cases`."""
    cases = list(cases)
    if ALL:
        return cases
    cases = [case for case in cases if case not in heavy] if heavy else cases
    if count >= len(cases):
        return cases
    return [cases[k * len(cases) // count] for k in range(count)]


def together(cases, size):
    """The cases in groups, each compiled as one program; one by one with `--all-cases`."""
    cases, size = list(cases), 1 if ALL else size
    return [cases[k : k + size] for k in range(0, len(cases), size)]


def examples(count):
    """How many examples of a property Hypothesis draws: `count`, or a tenth of that."""
    return count if ALL else max(10, count // 10)


def without_marked(items):
    """The items of pytest that the marks leave: all of them with `--all-cases`."""
    if ALL:
        return items
    functions = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    left = set()
    for cases in functions.values():
        mark = cases[0].get_closest_marker("few")
        chosen = [case for case in cases if not case.get_closest_marker("all_cases")]
        assert not mark or hasattr(cases[0], "callspec"), (
            f"{cases[0].nodeid} has no cases to select"
        )
        left.update(balanced(chosen, mark.args[0]) if mark else chosen)
    return [item for item in items if item in left]


def balanced(items, count):
    """`count` items, spread over all, in which each value of each parameter is about as often."""
    rest = sorted(range(len(items)), key=lambda k: k * GOLDEN % 1)
    chosen, taken = [], Counter()
    while rest and len(chosen) < count:
        values = {k: [*items[k].callspec.indices.items()] for k in rest}
        best = min(rest, key=lambda k: sum(taken[value] for value in values[k]))
        rest.remove(best)
        taken.update(values[best])
        chosen.append(items[best])
    return chosen
