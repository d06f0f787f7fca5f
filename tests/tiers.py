"""How many cases run: with `--all-cases` all of them, else a stated few of each table.

`make test` decides everything and compiles a few: each function under test, each primitive and
each property at least once, in a layout that is hard on it. `make test-all` compiles all there is.
"""

# Set by conftest.py, before any test module is imported.
ALL = False


def few(cases, count):
    """`count` of the cases, spread evenly over them; all of them with `--all-cases`."""
    cases = list(cases)
    if ALL or count >= len(cases):
        return cases
    return [cases[k * len(cases) // count] for k in range(count)]


def together(cases, size):
    """The cases in groups, each compiled as one program; one by one with `--all-cases`."""
    cases, size = list(cases), 1 if ALL else size
    return [cases[k : k + size] for k in range(0, len(cases), size)]


def examples(count):
    """How many examples of a property Hypothesis draws: `count`, or a tenth of that."""
    return count if ALL else max(10, count // 10)
