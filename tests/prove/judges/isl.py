"""isl: sets and relations of integers, exact for everything affine."""

from importlib import import_module

import gridlayout as gl
from prove.judges import Judge

OPERATIONS = 500_000  # of isl for one layout
WORDS = {"floordiv": "floor", "ceildiv": "ceil"}


def expression(expr):
    """An affine expression as isl writes it."""
    if expr.kind == "dim":
        return f"d{expr.value}"
    if expr.kind == "constant":
        return f"({expr.value})"
    lhs = expression(expr.lhs)
    if expr.kind == "add":
        return f"({lhs} + {expression(expr.rhs)})"
    if expr.kind == "mul":
        return f"({expr.value} * {lhs})"
    if expr.kind == "mod":
        return f"({lhs} mod {expr.value})"
    return f"{WORDS[expr.kind]}(({lhs}) / {expr.value})"


def names(count):
    """The dims of a space."""
    return ", ".join(f"d{d}" for d in range(count))


def box(shape):
    """The constraints of the indices of a shape."""
    return " and ".join(f"0 <= d{d} < {n}" for d, n in enumerate(shape)) or "true"


class Isl:
    """What isl says of maps and sets of the library, which it is given as text."""

    def __init__(self):
        self.isl = import_module("islpy")

    def relation(self, m, shape):
        """A map on the indices of a shape."""
        results = ", ".join(map(expression, m.results))
        text = f"{{ [{names(m.num_dims)}] -> [{results}] : {box(shape)} }}"
        return self.isl.Map(text)

    def set(self, s, shape=None):
        """An `AffineSet`, inside a box if a shape is given."""
        parts = [f"{expression(e)} {'=' if equal else '>='} 0" for e, equal in s.constraints]
        parts += [] if shape is None else [box(shape)]
        return self.isl.Set(f"{{ [{names(s.num_dims)}] : {' and '.join(parts)} }}")

    def box(self, shape):
        """The indices of a shape."""
        return self.isl.Set(f"{{ [{names(len(shape))}] : {box(shape)} }}")

    def assert_inverse(self, relation, inverse):
        """The domain is the image, and the map goes back from there."""
        image = relation.range()
        domain = self.set(inverse.domain)
        assert domain.is_equal(image), f"domain {inverse.domain}; isl: {image}"
        results = ", ".join(map(expression, inverse.map.results))
        back = self.isl.Map(f"{{ [{names(inverse.map.num_dims)}] -> [{results}] }}")
        found = back.intersect_domain(image)
        assert found.is_equal(relation.reverse()), f"inverse {inverse.map}; isl: {found}"


def count(found):
    """The number of the members of a set; `TypeError` if isl has no operations left to print it."""
    return int(found.count_val().to_str())


class LayoutJudge(Judge):
    """Injectivity, image, inverse and padding of a layout, as isl computes them."""

    name = "isl (islpy)"

    def __init__(self):
        self.isl = Isl()

    def ask(self, layout, holders):
        if 0 in layout.shape:
            return False
        # Some comparisons take isl exponential time.
        context = self.isl.isl.DEFAULT_CONTEXT
        context.reset_operations()
        context.set_max_operations(OPERATIONS)
        try:
            return self._asked(layout, holders)
        except (self.isl.isl.Error, TypeError):
            if self._has_operations():
                raise
            return f"no answer within {OPERATIONS:,} operations"
        finally:
            context.set_max_operations(0)

    def _has_operations(self):
        """Whether isl can still answer. Each call fails in its own way if it can't."""
        try:
            return self.isl.isl.Set("{ [a] : a = 0 }") is not None
        except self.isl.isl.Error:
            return False

    def _asked(self, layout, holders):
        relation = self.isl.relation(layout.index_map, layout.shape)
        image = relation.range()
        assert image.is_subset(self.isl.box(layout.physical_shape)), f"isl: the image is {image}"
        positions = len(holders)
        assert count(image) == positions, f"isl: {count(image)} positions, not {positions}"
        injective = bool(relation.is_injective())
        assert injective == (positions == layout.size), f"isl: injective: {injective}"
        if not injective:
            return True
        try:
            inverse = layout.inverse
        except gl.LayoutError:  # a scatter without a closed inverse
            return True
        self.isl.assert_inverse(relation, inverse)
        return True
