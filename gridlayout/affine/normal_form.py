"""The normal form of affine expressions over a box; `simplify`, ranges and inverses use it.

A `Form` is a linear combination of atoms plus a constant. An `Atom` is a dim, or the quotient or
remainder of a form by a constant. `Forms` builds them for dims of known ranges by these laws, for
a divisor c and integers x, y (division rounds down, `r` is in [0, g)):

    (c*x + y) floordiv c = x + y floordiv c            (c*x + y) mod c = y mod c
    (g*x + r) floordiv (g*c) = x floordiv c            (g*x + r) mod (g*c) = g*(x mod c) + r
    (x floordiv a + y) floordiv b = (x + a*y) floordiv (a*b)
    (-x) floordiv c = -((x + c - 1) floordiv c)
    x mod c = x - c*(x floordiv c), whichever side has fewer atoms
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from gridlayout.affine.expressions import MAX_NODES, AffineExpr, Exprs, constant, dim, walk
from gridlayout.arguments import INT64_MAX
from gridlayout.errors import LayoutError

Range = tuple[int, int]  # least and greatest value, both included


class Atom(NamedTuple):
    """A dim at position `value`, or a form divided by `value`: its quotient or its remainder."""

    kind: str  # "dim", "floordiv" or "mod"
    value: int
    size: int  # the number of atoms, nested ones included
    inner: tuple[Form, ...]  # the divided form; empty for a dim


class Form(NamedTuple):
    """`sum(factor * atom) + offset`: terms sorted by atom, each atom once, no factor 0."""

    terms: tuple[tuple[Atom, int], ...]
    offset: int

    def plus(self, other: Form, factor: int = 1) -> Form:
        """The form plus a multiple of another form; only equal atoms are combined.

        >>> Form((), 3).plus(Form((), 2), 10)
        Form(terms=(), offset=23)
        """
        factors = dict(self.terms)
        for atom, times in other.terms:
            factors[atom] = factors.get(atom, 0) + factor * times
        return make_form(factors, self.offset + factor * other.offset)

    def times(self, factor: int) -> Form:
        """The form times a constant.

        >>> Form((), 3).times(-2)
        Form(terms=(), offset=-6)
        """
        return Form((), 0).plus(self, factor)


def size_of(form: Form) -> int:
    """How many atoms a form has, nested ones included.

    >>> size_of(Forms([(0, 99)]).of(dim(0) % 7 + 1))
    2
    """
    return sum(atom.size for atom, _ in form.terms)


def make_form(factors: dict[Atom, int], offset: int) -> Form:
    """The form with the given factor of each atom.

    >>> make_form({}, 2)
    Form(terms=(), offset=2)
    """
    return Form(tuple(sorted((a, f) for a, f in factors.items() if f)), offset)


def number(value: int) -> Form:
    """The form of a constant.

    >>> number(7)
    Form(terms=(), offset=7)
    """
    return Form((), value)


def dims_in(form: Form) -> frozenset[int]:
    """The positions of the dims that a form reads.

    >>> sorted(dims_in(Forms([(0, 9), (0, 9)]).of(dim(1) // 4)))
    [1]
    """
    found: set[int] = set()
    for atom, _ in form.terms:
        found |= {atom.value} if atom.kind == "dim" else dims_in(atom.inner[0])
    return frozenset(found)


def span(form: Form, ranges: Sequence[Range]) -> Range:
    """Bounds on the form by interval arithmetic, for dims in the given ranges.

    >>> span(Forms([(0, 9)]).of(dim(0) % 4), [(5, 6)])
    (1, 2)
    """
    low = high = form.offset
    for atom, factor in form.terms:
        least, most = atom_span(atom, ranges)
        low += factor * (least if factor > 0 else most)
        high += factor * (most if factor > 0 else least)
    return low, high


def atom_span(atom: Atom, ranges: Sequence[Range]) -> Range:
    """Bounds on an atom; see `span`.

    >>> atom_span(Atom("dim", 0, 1, ()), [(5, 6)])
    (5, 6)
    """
    if atom.kind == "dim":
        return ranges[atom.value]
    low, high = span(atom.inner[0], ranges)
    if atom.kind == "floordiv":
        return low // atom.value, high // atom.value
    if low // atom.value == high // atom.value:
        return low % atom.value, high % atom.value
    return 0, atom.value - 1


def value_at(form: Form, index: Sequence[int]) -> int:
    """The value of the form at an index.

    >>> value_at(Forms([(0, 9)]).of(dim(0) % 4), (7,))
    3
    """
    total = form.offset
    for atom, factor in form.terms:
        if atom.kind == "dim":
            total += factor * index[atom.value]
        else:
            inner = value_at(atom.inner[0], index)
            quotient, remainder = divmod(inner, atom.value)
            total += factor * (quotient if atom.kind == "floordiv" else remainder)
    return total


def to_expr(form: Form) -> AffineExpr:
    """The expression that a form stands for.

    >>> str(to_expr(Forms([(0, 99)]).of(dim(0) // 4 // 4)))
    'd0 floordiv 16'
    """
    total = constant(0)
    for atom, factor in form.terms:
        if atom.kind == "dim":
            expr = dim(atom.value)
        elif atom.kind == "floordiv":
            expr = to_expr(atom.inner[0]) // atom.value
        else:
            expr = to_expr(atom.inner[0]) % atom.value
        total = total + expr * factor
    return total + form.offset


def simplified(results: Exprs, box: tuple[int, ...]) -> Exprs:
    """The results of a map in normal form on the box; `AffineMap.simplify` is its public name.

    >>> simplified((dim(0) % 8, dim(0) // 8), (8,))
    (AffineExpr(d0), AffineExpr(0))
    """
    if 0 in box:  # everything is equal on an empty box
        return results
    forms = Forms([(0, extent - 1) for extent in box])
    made = []
    for result in results:
        try:
            made.append(to_expr(forms.of(result)))
        except LayoutError:  # beyond MAX_NODES or int64
            made.append(result)
    return tuple(made)


class Forms:
    """Builds normal forms for dims of the given ranges.

    LayoutError: a quotient or remainder has more than MAX_NODES atoms inside it.

    >>> forms = Forms([(0, 3), (0, 7)])
    >>> str(to_expr(forms.of((dim(0) * 8 + dim(1)) // 8)))
    'd0'
    """

    def __init__(self, ranges: Sequence[Range]) -> None:
        self.ranges = tuple(ranges)
        self._divided: dict[tuple[Form, int], tuple[Form, Form]] = {}

    def of(self, expr: AffineExpr, dims: Sequence[Form] | None = None) -> Form:
        """The normal form of an expression; `dims` are forms that replace its dims.

        >>> Forms([(2, 2)]).of(dim(0) + 1)
        Form(terms=(), offset=3)
        """
        done: dict[AffineExpr, Form] = {}
        for part in walk(expr):
            if part.kind == "dim":
                done[part] = self.dim(part.value) if dims is None else dims[part.value]
            elif part.lhs is None:
                done[part] = number(part.value)
            elif part.rhs is not None:
                done[part] = self.tidy(done[part.lhs].plus(done[part.rhs]))
            elif part.kind == "mul":
                done[part] = done[part.lhs].times(part.value)
            else:
                rounded = part.value - 1 if part.kind == "ceildiv" else 0
                quotient, remainder = self.divmod(done[part.lhs].plus(number(rounded)), part.value)
                done[part] = remainder if part.kind == "mod" else quotient
        return done[expr]

    def dim(self, position: int) -> Form:
        """The form of a dim; a constant if the range of the dim has only one value.

        >>> Forms([(0, 0)]).dim(0)
        Form(terms=(), offset=0)
        """
        low, high = self.ranges[position]
        return number(low) if low == high else Form(((Atom("dim", position, 1, ()), 1),), 0)

    def divmod(self, form: Form, divisor: int) -> tuple[Form, Form]:
        """Quotient and remainder of the form by a positive divisor.

        >>> forms = Forms([(0, 3), (0, 7)])
        >>> [str(to_expr(f)) for f in forms.divmod(forms.of(dim(0) * 8 + dim(1) + 9), 16)]
        ['(d0 * 8 + d1 + 9) floordiv 16', '(d0 * 8 + d1 + 9) mod 16']
        """
        if (form, divisor) not in self._divided:
            # Cached before it is tidied, because tidying requests this same division.
            quotient, remainder = self._divided[form, divisor] = self._divide(form, divisor)
            self._divided[form, divisor] = self.tidy(quotient), self.tidy(remainder)
        return self._divided[form, divisor]

    def _divide(self, form: Form, divisor: int) -> tuple[Form, Form]:
        if divisor == 1:
            return form, number(0)
        low, high = span(form, self.ranges)
        if low // divisor == high // divisor:
            return number(low // divisor), form.plus(number(-(low // divisor) * divisor))
        form = self._open_remainders(form, divisor)
        whole, rest = _multiples(form, divisor)
        low, high = span(rest, self.ranges)
        if low // divisor == high // divisor:
            period = low // divisor
            return whole.plus(number(period)), rest.plus(number(-period * divisor))
        if all(factor < 0 for _, factor in rest.terms):
            # floor(-x / c) is -ceil(x / c), so that -x gets the same atoms as x.
            top = number(divisor - 1)
            quotient, remainder = self.divmod(top.plus(rest, -1), divisor)
            return whole.plus(quotient, -1), top.plus(remainder, -1)
        quotient, remainder = self._by_common_factor(rest, divisor) or self._atoms(rest, divisor)
        return whole.plus(quotient), remainder

    def _open_remainders(self, form: Form, divisor: int) -> Form:
        """Replaces `x mod m` by `x - m*(x floordiv m)` if the divisor divides the last factor."""
        opened = form
        for atom, factor in form.terms:
            if atom.kind == "mod" and factor * atom.value % divisor == 0:
                opened = self._open(opened, atom, factor)
        return opened if opened == form else self._open_remainders(opened, divisor)

    def _open(self, form: Form, atom: Atom, factor: int) -> Form:
        inner = atom.inner[0]
        quotient, _ = self.divmod(inner, atom.value)
        without = form.plus(Form(((atom, 1),), 0), -factor)
        return without.plus(inner, factor).plus(quotient, -factor * atom.value)

    def _by_common_factor(self, form: Form, divisor: int) -> tuple[Form, Form] | None:
        """Divides by g, which divides the divisor and some terms, if the rest is in one period."""
        factors = {gcd(factor, divisor) for _, factor in form.terms}
        for g in sorted(factors - {1}, reverse=True):
            upper = Form(tuple((a, f // g) for a, f in form.terms if f % g == 0), 0)
            lower = Form(tuple((a, f) for a, f in form.terms if f % g), form.offset)
            low, high = span(lower, self.ranges)
            period = low // g
            if period == high // g:
                quotient, remainder = self.divmod(upper.plus(number(period)), divisor // g)
                return quotient, remainder.times(g).plus(lower.plus(number(-period * g)))
        return None

    def _atoms(self, form: Form, divisor: int) -> tuple[Form, Form]:
        nested = [a for a, f in form.terms if a.kind == "floordiv" and f == 1]
        remainder = _atom("mod", form, divisor)
        if len(nested) == 1 and nested[0].value * divisor <= INT64_MAX:
            atom = nested[0]
            others = form.plus(Form(((atom, -1),), 0))
            merged = self.tidy(atom.inner[0].plus(others, atom.value))
            return self.divmod(merged, atom.value * divisor)[0], remainder
        return _atom("floordiv", form, divisor), remainder

    def tidy(self, form: Form) -> Form:
        """The form with `x mod c` expanded, or introduced, wherever that leaves fewer atoms.

        >>> forms = Forms([(0, 99)])
        >>> str(to_expr(forms.of(dim(0) // 8 * 8 + dim(0) % 8)))
        'd0'
        """
        for atom, factor in form.terms:
            options = []
            if atom.kind == "mod":
                options = [self._open(form, atom, factor)]
            elif atom.kind == "floordiv":
                options = self._closed(form, atom, factor)
            for option in options:
                if size_of(option) < size_of(form):
                    return self.tidy(option)
        return form

    def _closed(self, form: Form, atom: Atom, factor: int) -> list[Form]:
        """Forms with `x - n*(x floordiv n)` written as `x mod n`: one per x = inner floordiv a."""
        inner, value = atom.inner[0], atom.value
        inside = {other.value for other, _ in form.terms if other.kind == "floordiv"}
        options = []
        for a in sorted({1} | {a for a in inside if a < value and value % a == 0}):
            n = value // a
            if factor % n == 0:
                x, _ = self.divmod(inner, a)
                if len(x.terms) < len(form.terms) or len(x.terms) == 1:
                    quotient, remainder = self.divmod(x, n)
                    times = -factor // n
                    difference = x.plus(quotient, -n)
                    options.append(form.plus(difference, -times).plus(remainder, times))
        return options


def _multiples(form: Form, divisor: int) -> tuple[Form, Form]:
    """Splits a form into `divisor * whole + rest` by dividing each factor and the offset.

    The factors of `rest` depend only on the residues of the factors, so that `-16*x mod 64` and
    `48*x mod 64` get the same form. A residue just below the divisor becomes negative: for the
    divisor 16, 15*x becomes -x.
    """
    whole: dict[Atom, int] = {}
    rest: dict[Atom, int] = {}
    for atom, factor in form.terms:
        residue = factor % divisor
        below = divisor - residue
        if 4 * below < divisor or below == 1 < divisor - 1:
            residue = -below
        whole[atom], rest[atom] = (factor - residue) // divisor, residue
    return make_form(whole, form.offset // divisor), make_form(rest, form.offset % divisor)


def _atom(kind: str, inner: Form, value: int) -> Form:
    size = 1 + size_of(inner)
    if size > MAX_NODES:
        raise LayoutError(f"the normal form is too large; keep to {MAX_NODES} quotients and dims")
    return Form(((Atom(kind, value, size, (inner,)), 1),), 0)
