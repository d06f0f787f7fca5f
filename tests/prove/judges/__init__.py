"""Judges that share no code with the library: MLIR, XLA, isl, einops, TVM, IREE, torch, CuTe.

A judge imports its program when it is made; one whose program is not installed is missing, and the
table says so. `ask(layout, holders)` returns True if the judge agrees, False if the layout is none
of its affair, a text if the program refuses it, and raises AssertionError if it disagrees. `finish`
asks what was collected for one call, and returns for how many layouts.
"""

from importlib import import_module

LAYOUT_JUDGES = ("isl", "mlir", "xla", "einops", "tvm", "iree", "dtensor", "cute")


class Judge:
    """A program that is asked about layouts; `name` is what the table calls it."""

    name = ""
    systems = ()  # parts of the claim on layouts that it can be asked about; empty for all

    def ask(self, layout, holders):
        """Whether the judge agrees; see the module."""
        raise NotImplementedError

    def finish(self):
        """Ask what was collected; the number of layouts that were judged by it."""
        return 0


def of_layouts(system):
    """The judges of the layouts of a system, and the reason why each other one is missing."""
    found, missing = [], {}
    for module in LAYOUT_JUDGES:
        kind = import_module(f"prove.judges.{module}").LayoutJudge
        if kind.systems and system not in kind.systems:
            continue
        try:
            found.append(kind())
        except (ImportError, OSError) as error:
            missing[kind.name] = f"{type(error).__name__}: {error}"[:200]
    return found, missing
