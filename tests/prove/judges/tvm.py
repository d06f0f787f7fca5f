"""TVM: `IndexMap.non_surjective_inverse`, the inverse and a predicate of the padding."""

from importlib import import_module
from types import SimpleNamespace

from prove.judges import Judge

ASKED = 60  # physical positions of a layout
# How TVM writes numbers and operations; its `//` and `%` are Python's.
WORDS = SimpleNamespace(
    **dict.fromkeys(("int32", "int64"), int),
    bool=bool,
    floordiv=lambda a, b: a // b,
    floormod=lambda a, b: a % b,
    Not=lambda a: not a,
    min=min,
    max=max,
    Select=lambda c, a, b: a if c else b,
    if_then_else=lambda c, a, b: a if c else b,
)


def expression(expr, dims, number):
    """An affine expression of TVM's variables."""
    if expr.kind == "dim":
        return dims[expr.value]
    value = number(expr.value)
    if expr.kind == "constant":
        return value
    lhs = expression(expr.lhs, dims, number)
    if expr.kind == "add":
        return lhs + expression(expr.rhs, dims, number)
    if expr.kind == "ceildiv":
        return (lhs + number(expr.value - 1)) // value
    return {"mul": lhs.__mul__, "mod": lhs.__mod__, "floordiv": lhs.__floordiv__}[expr.kind](value)


class LayoutJudge(Judge):
    """Where TVM finds an inverse, it is ours, and so is the padding."""

    name = "TVM (IndexMap)"

    def __init__(self):
        self.tvm = import_module("tvm")
        try:
            self.tirx = import_module("tvm.tirx")
        except ImportError:  # of earlier versions
            self.tirx = import_module("tvm.tir")

    def ask(self, layout, holders):
        if not layout.size or not layout.shape or len(holders) < layout.size:
            return False
        number = lambda value: self.tirx.IntImm("int64", value)  # noqa: E731
        index_map = self.tirx.IndexMap.from_func(
            lambda *dims: [expression(e, dims, number) for e in layout.index_map.results],
            ndim=len(layout.shape),
            index_dtype="int64",
        )
        try:
            back, padding = index_map.non_surjective_inverse(list(layout.shape))
            extents = [int(n) for n in index_map.map_shape(list(layout.shape))]
        except Exception:  # each version has its own
            return "finds no inverse"
        names = [str(var.name) for var in back.initial_indices]
        outs = [self._code(e) for e in back.final_indices]
        is_padding = self._code(padding)
        for physical in self._positions(layout):
            found = holders.get(_at(layout, physical))
            inside = all(i < n for i, n in zip(physical, extents, strict=True))
            scope = {"T": WORDS, **dict(zip(names, physical, strict=True))}
            padded = not inside or bool(eval(is_padding, scope))
            assert padded == (found is None), f"TVM: {physical} is padding: {padded}; {padding}"
            if found is not None:
                index = tuple(int(eval(out, scope)) for out in outs)
                assert index == found[0], f"TVM: {physical} holds {index}"
        return True

    def _code(self, expr):
        return compile(str(expr), "<TVM>", "eval")

    def _positions(self, layout):
        count = 1
        for n in layout.physical_shape:
            count *= n
        for k in range(0, count, max(1, count // ASKED)):
            physical = []
            for n in reversed(layout.physical_shape):
                k, i = divmod(k, n)
                physical.append(i)
            yield tuple(reversed(physical))


def _at(layout, physical):
    position = 0
    for i, n in zip(physical[layout.core_rank :], layout.local_shape, strict=True):
        position = position * n + i
    return physical[: layout.core_rank], position
