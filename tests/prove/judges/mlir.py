"""MLIR, in jaxlib: how it prints a map, and what its own folding makes of it at an index."""

from importlib import import_module
from itertools import islice

from gridlayout.affine.map import AffineMap
from prove.judges import Judge

ASKED = 12  # indices of a layout


class Mlir:
    """Affine maps as MLIR reads, prints, composes and folds them."""

    def __init__(self):
        self.ir = import_module("jaxlib.mlir.ir")

    def printed(self, text):
        """The text of a map as MLIR prints it; `ir.MLIRError` if it refuses it."""
        with self.ir.Context():
            return str(self.ir.Attribute.parse(f"affine_map<{text}>"))[len("affine_map<") : -1]

    def values(self, text, points):
        """The results of a map at points, by composing it with constants."""
        with self.ir.Context():
            m = self.ir.AffineMapAttr(self.ir.Attribute.parse(f"affine_map<{text}>")).value
            results = [result.maybe_downcast() for result in m.results]
            found = []
            for point in points:
                there = [self.ir.AffineExpr.get_constant(i) for i in point]
                inner = self.ir.AffineMap.get(0, 0, there)
                folded = (e.compose(inner).maybe_downcast() for e in results)
                found.append(tuple(e.value for e in folded))
            return found

    def composed(self, text, inner):
        """The text of a map after another one."""
        with self.ir.Context():
            outer, inner = (
                self.ir.AffineMapAttr(self.ir.Attribute.parse(f"affine_map<{each}>")).value
                for each in (text, inner)
            )
            results = [e.maybe_downcast().compose(inner) for e in outer.results]
            return str(self.ir.AffineMap.get(inner.n_dims, 0, results))


class LayoutJudge(Judge):
    """The index map as text, evaluated by MLIR."""

    name = "MLIR (jaxlib)"

    def __init__(self):
        self.mlir = Mlir()

    def ask(self, layout, holders):
        text = str(layout.index_map)
        printed = self.mlir.printed(text)  # not always the text: sums are simplified once more
        assert str(AffineMap.parse(text)) == printed, f"MLIR prints {printed} for {text}"
        some = list(islice(holders.items(), 0, None, max(1, len(holders) // ASKED)))
        found = self.mlir.values(text, [elements[0] for _, elements in some])
        for physical, ((core, position), elements) in zip(found, some, strict=True):
            offset = 0
            for i, n in zip(physical[layout.core_rank :], layout.local_shape, strict=True):
                offset = offset * n + i
            at = physical[: layout.core_rank], offset
            assert at == (core, position), f"MLIR: {elements[0]} is at {at}"
        return True
