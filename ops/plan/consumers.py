"""`Consumers`: the consumers of a jaxpr's values, and the layouts to which they relay values out.

A product's result is placed in such a layout at once: that of a `with_layout`, or that of the array
to which an elementwise operation adds it. So the gradient of a parameter gets the parameter's
layout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from jax.extend import core

from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.jaxprs import CALLS, called
from gridlayout.ops.decisions.specs import Sharded, is_of_keys, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.table import record_of
from gridlayout.ops.products.dot_general import dot_general

_MOST_CALLS = 32  # the most calls, each reading the one before, that a value is followed through


class Consumers:
    """The equations that read each value of a jaxpr, and the requested layouts of its results."""

    def __init__(
        self, jaxpr: Any, known: Mapping[Any, Value], requested: Sequence[Layout | None] = ()
    ) -> None:
        self._jaxpr, self._known = jaxpr, known
        self._makers = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
        self._equations: dict[Any, list[Any]] = {}
        for eqn in jaxpr.eqns:
            for atom in eqn.invars:
                if not isinstance(atom, core.Literal):
                    self._equations.setdefault(atom, []).append(eqn)
        self._after: dict[Any, GridLayout | None] = {}  # of results of calls, in one search
        self._results: dict[Any, list[Layout | None]] = {}
        for k, atom in enumerate(jaxpr.outvars):
            if not isinstance(atom, core.Literal):
                layout = requested[k] if k < len(requested) else None
                if layout is not None and layout.shape != atom.aval.shape:
                    layout = None
                self._results.setdefault(atom, []).append(layout)

    def folded_transposes(self) -> dict[int, int]:
        """Return products whose only consumer is a transpose, by equation numbers: {product: it}.

        The backward pass of every matmul has these; the product is then made transposed.
        """
        if record_of("dot_general").rules[:1] != (dot_general,):
            return {}
        numbers = {id(eqn): number for number, eqn in enumerate(self._jaxpr.eqns)}
        folded = {}
        for number, eqn in enumerate(self._jaxpr.eqns):
            if eqn.primitive.name != "dot_general" or eqn.outvars[0] in self._results:
                continue
            after = self._equations.get(eqn.outvars[0], [])
            if [each.primitive.name for each in after] == ["transpose"]:
                folded[number] = numbers[id(after[0])]
        return folded

    def layout(self, var: Any, cores: int) -> GridLayout | None:
        """Return the one layout that consumers of a value relay it out to, or None.

        None where there is no such layout or more than one. If the value has other consumers too,
        they read it in that layout, unless it has fewer cores than `cores`. To be called in the
        order of equations: the layouts of earlier values have to be known.
        """
        self._after.clear()
        return self._only_layout(var, cores, 0)

    def _only_layout(self, var: Any, cores: int, calls: int) -> GridLayout | None:
        found, others = self._layouts(var, calls)
        grids = {as_grid(layout) for layout in found}
        only = grids.pop() if len(grids) == 1 else None
        if only is None or only.is_scatter or (others and only.num_cores < cores):
            return None
        return only

    def _layouts(self, var: Any, calls: int) -> tuple[set[Layout], bool]:
        """Return the layouts to which a value is relaid out, and whether it has other consumers.

        calls: the number of calls through which another value was followed to this one.
        """
        found: set[Layout] = set()
        if is_of_keys(var.aval):
            return found, True
        others = False
        same, left = {var}, [var]  # values that have the value's layout
        while left:
            value = left.pop()
            for layout in self._results.get(value, []):
                found |= _one(layout)
                others |= layout is None
            for eqn in self._equations.get(value, []):
                name = eqn.primitive.name
                record = record_of(name)
                if all(0 in each.aval.shape for each in eqn.outvars) or record.is_reduction:
                    continue
                out = eqn.outvars[0]
                if name == "with_layout":
                    found |= _one(eqn.params["layout"])
                elif name in CALLS and calls < _MOST_CALLS:
                    for inside, other in self._inside(eqn, value, calls + 1):
                        found |= inside
                        others |= other
                elif not record.is_elementwise or value.aval.shape != out.aval.shape:
                    others = True
                elif (first := self._first(eqn)) is not value:
                    found |= self._layout_of(first, same)
                elif out not in same:
                    same.add(out)
                    left.append(out)
        return {each.with_dtype(var.aval.dtype) for each in found}, others

    def _inside(self, eqn: Any, var: Any, calls: int) -> Iterator[tuple[set[Layout], bool]]:
        """Yield `_layouts` of a value inside of a called function."""
        inner = called(eqn).jaxpr
        pairs = list(zip(inner.invars, eqn.invars, strict=True))
        values = {own: atom for own, atom in pairs if not isinstance(atom, core.Literal)}
        known = {own: self._known[x] for own, x in values.items() if x in self._known}
        for out in eqn.outvars:
            if out not in self._after:
                self._after[out] = self._only_layout(out, 0, calls)
        consumers = Consumers(inner, known, [self._after[out] for out in eqn.outvars])
        return (consumers._layouts(own, calls) for own, atom in values.items() if atom is var)

    def _layout_of(self, atom: Any, same: Collection[Any]) -> set[Layout]:
        """Return the layout of a value, or of the operand from which its operation takes it.

        The set is empty if it is unknown. same: values whose layout is to be found.
        """
        while atom is not None and atom not in self._known and atom not in same:
            eqn = self._makers.get(atom)
            if eqn is not None and eqn.primitive.name == "with_layout":
                return _one(eqn.params["layout"])
            is_like = eqn is not None and record_of(eqn.primitive.name).is_elementwise
            atom = self._first(eqn) if is_like else None
        value = None if atom in same else self._known.get(atom)
        return _one(None if value is None else layout_of(value.spec))

    def _first(self, eqn: Any) -> Any:
        """Return the operand whose layout an elementwise operation's result takes."""
        shape = eqn.outvars[0].aval.shape
        for atom in eqn.invars:
            if isinstance(atom, core.Literal) or atom.aval.shape != shape:
                continue
            maker = self._makers.get(atom)
            if atom in self._known:
                if isinstance(self._known[atom].spec, Sharded):
                    return atom
            elif maker is None or maker.primitive.name != "broadcast_in_dim":
                return atom
        return None


def _one(layout: Layout | None) -> set[Layout]:
    return set() if layout is None else {layout}
