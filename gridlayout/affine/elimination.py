"""Elimination: solves an affine map for its dims, in closed form.

Every result r gives an equation `form of the dims = r`. Every quotient and remainder in it gives
`x = c*(x floordiv c) + x mod c`. Three rules derive further equations until nothing new follows:

- digits: in `s1*x1 + ... + sn*xn = v`, let g be the gcd of the larger factors. If the sum of the
  terms with the smaller factors is one of g integers from l on, this sum is `(v - l) mod g + l`,
  and the other terms sum to `(v - l) floordiv g * g`;
- windows: `x mod c = v` determines x if x is one of at most c consecutive values;
- sums: an atom with factor 1 or -1 in one equation is eliminated from the others.

Each rule holds for every index of the box, so the inverse is correct on every image. On other
tuples of ints its value has no meaning; the domain of the inverse excludes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from gridlayout.affine.expressions import Exprs
from gridlayout.affine.normal_form import Atom, Form, Forms, make_form, number, span
from gridlayout.caching import cached

# The range of "any integer": far outside int64, so that no rule relies on bounds of a result.
ANY_INTEGER = (-(2**100), 2**100)
# Limits of the search. An inverse needs only a few equations per result.
MAX_EQUATIONS, MORE_PER_RESULT = 80, 8


@cached
def solve(results: Exprs, box: tuple[int, ...]) -> tuple[tuple[Form | None, ...], Forms]:
    """For each dim, its form in terms of the results, or None if it is not determined.

    Also returns the `Forms` of the results: result k is dim `k` of the returned forms.

    >>> from gridlayout.affine.expressions import dims
    >>> from gridlayout.affine.normal_form import to_expr
    >>> d0, d1 = dims(2)
    >>> solved, _ = solve((d0 * 8 + d1,), (4, 8))
    >>> [str(to_expr(form)) for form in solved]
    ['d0 floordiv 8', 'd0 mod 8']
    """
    elimination = Elimination(results, box)
    elimination.run()
    images = Forms([ANY_INTEGER] * len(results))
    shift = {len(box) + k: images.dim(k) for k in range(len(results))}
    solved = [elimination.solution(position) for position in range(len(box))]
    forms = (None if form is None else substitute(form, shift, images) for form in solved)
    return tuple(forms), images


def substitute(form: Form, dims: dict[int, Form], forms: Forms) -> Form:
    """The form with its dims replaced by the forms in `dims`, normalized by `forms`.

    >>> substitute(Forms([(0, 9)]).dim(0), {0: number(3)}, Forms([]))
    Form(terms=(), offset=3)
    """
    total = number(form.offset)
    for atom, factor in form.terms:
        if atom.kind == "dim":
            part = dims[atom.value]
        else:
            quotient, remainder = forms.divmod(substitute(atom.inner[0], dims, forms), atom.value)
            part = quotient if atom.kind == "floordiv" else remainder
        total = total.plus(part, factor)
    return forms.tidy(total)


class Elimination:
    """The equations of one map on one box, and the atoms solved so far.

    >>> from gridlayout.affine.expressions import dim
    >>> elimination = Elimination((dim(0) + 3,), (5,))
    >>> elimination.run()
    >>> elimination.solution(0)
    Form(terms=((Atom(kind='dim', value=1, size=1, inner=()), 1),), offset=-3)
    """

    def __init__(self, results: Exprs, box: Sequence[int]) -> None:
        self.count = len(box)
        self.limit = MAX_EQUATIONS + MORE_PER_RESULT * len(results)
        ranges = [(0, extent - 1) for extent in box]
        self.forms = Forms([*ranges, *([ANY_INTEGER] * len(results))])
        self.known: dict[Atom, Form] = {}  # solved atoms of dims, as forms of the results
        self.equations: dict[Form, None] = {}  # forms that equal 0, in order of discovery
        # (x, c) whose identity x = c*(x floordiv c) + x mod c is among the equations.
        self._divided: set[tuple[Form, int]] = set()
        for k, result in enumerate(results):
            image = self.forms.dim(self.count + k)
            self.add(self.forms.of(result).plus(image, -1))

    def add(self, equation: Form) -> None:
        """Adds `equation = 0` and the identities of its atoms, up to the limit of equations.

        >>> Elimination((), (2,)).add(number(0))
        """
        waiting = [equation]
        while waiting and len(self.equations) < self.limit:
            form = waiting.pop()
            if form in self.equations:
                continue
            self.equations[form] = None
            for atom, _ in form.terms:
                if atom.kind != "dim" and (atom.inner[0], atom.value) not in self._divided:
                    inner, divisor = atom.inner[0], atom.value
                    self._divided.add((inner, divisor))
                    quotient, remainder = self.forms.divmod(inner, divisor)
                    waiting.append(inner.plus(quotient, -divisor).plus(remainder, -1))

    def solution(self, position: int) -> Form | None:
        """The dim as a form of the results, or None if it is unsolved.

        In this form, result k is dim `count + k`.

        >>> Elimination((), (1,)).solution(0)
        Form(terms=(), offset=0)
        """
        form = self.forms.dim(position)
        unknown, value = self.split(form)
        return None if unknown.terms else value

    def run(self) -> None:
        """Applies the rules until all dims are solved or nothing new follows.

        >>> Elimination((), (2,)).run()
        """
        while any(self.solution(d) is None for d in range(self.count)):
            before = len(self.known), len(self.equations)
            for equation in sorted(self.equations, key=lambda e: len(e.terms)):
                unknown, value = self.split(equation)
                self._digits(unknown, value.times(-1))
            self._windows()
            if before == (len(self.known), len(self.equations)):
                self._sums()
            if before == (len(self.known), len(self.equations)):
                return

    def split(self, form: Form) -> tuple[Form, Form]:
        """The unsolved terms of a form, and the sum of its other terms as a form of the results.

        >>> e = Elimination((), (2,))
        >>> e.split(number(5))
        (Form(terms=(), offset=0), Form(terms=(), offset=5))
        """
        unknown: dict[Atom, int] = {}
        value = number(form.offset)
        for atom, factor in form.terms:
            known = self._value(atom)
            if known is None:
                unknown[atom] = factor
            else:
                value = value.plus(known, factor)
        return make_form(unknown, 0), self.forms.tidy(value)

    def _value(self, atom: Atom) -> Form | None:
        if atom in self.known:
            return self.known[atom]
        if atom.kind == "dim":
            return Form(((atom, 1),), 0) if atom.value >= self.count else None
        unknown, inner = self.split(atom.inner[0])
        if unknown.terms:
            return None
        quotient, remainder = self.forms.divmod(inner, atom.value)
        self.known[atom] = quotient if atom.kind == "floordiv" else remainder
        return self.known[atom]

    def _digits(self, form: Form, value: Form) -> None:
        """Applies the digits rule to `form = value`; a form of one atom solves that atom."""
        terms = sorted(form.terms, key=lambda term: abs(term[1]))
        if len(terms) == 1:
            ((atom, factor),) = terms
            value = value.times(-1) if factor < 0 else value
            self.known[atom] = self.forms.divmod(value, abs(factor))[0]
            return
        for cut in range(1, len(terms)):
            g = gcd(*(factor for _, factor in terms[cut:]))
            lower, upper = make_form(dict(terms[:cut]), 0), make_form(dict(terms[cut:]), 0)
            low, high = span(lower, self.forms.ranges)
            if high - low < g:
                quotient, remainder = self.forms.divmod(value.plus(number(-low)), g)
                for part, part_value in (
                    (lower, remainder.plus(number(low))),
                    (upper, quotient.times(g)),
                ):
                    self.add(part.plus(part_value, -1))
                    self._digits(part, part_value)
                return

    def _windows(self) -> None:
        """Applies the windows rule to every solved `x mod c` with an unsolved part in x."""
        for atom in [atom for atom in self.known if atom.kind == "mod"]:
            c = atom.value
            unknown, rest = self.split(atom.inner[0])
            value = self.known[atom].plus(rest, -1)
            if len(unknown.terms) == 1:
                ((only, factor),) = unknown.terms
                if gcd(factor, c) == 1:
                    unknown, value = Form(((only, 1),), 0), value.times(pow(factor, -1, c))
            low, high = span(unknown, self.forms.ranges)
            if not unknown.terms:
                continue
            if high - low < c:
                _, above = self.forms.divmod(value.plus(number(-low)), c)
                self.add(unknown.plus(above, -1).plus(number(-low)))
            elif rest.terms:
                left, right = (self.forms.divmod(form, c)[1] for form in (unknown, value))
                self.add(left.plus(right, -1))

    def _sums(self) -> None:
        """Eliminates each atom that has factor 1 or -1 in one equation from the other equations."""
        parts = {equation: dict(self.split(equation)[0].terms) for equation in self.equations}
        for equation, terms in parts.items():
            if len(self.equations) >= self.limit:
                return
            for atom in [atom for atom, factor in terms.items() if abs(factor) == 1]:
                for other, others in parts.items():
                    # The sum may have no more atoms than the longer one, or equations grow forever.
                    most = max(len(terms), len(others))
                    if (
                        atom in others
                        and other != equation
                        and len({**terms, **others}) <= most + 1
                    ):
                        self.add(other.plus(equation, -others[atom] * terms[atom]))
