"""Equations that stand for several, which XLA would not find once devices' parts are reshaped.

* What changes nothing is the array itself: a slice of all of it, or a concatenation with arrays
  without elements, as in a roll by no position.
* A transpose of a transpose is one transpose, or none, as in the gradient of `x @ w.T`.
* A scatter-add to zeros whose result is added to another array adds its updates to that array, as
  in the gradient of an embedding that also computes a model's scores. So there is one array instead
  of two, and no pass over memory to add them.
* A window over an array that is padded by what windows are padded by pads it itself, as in the
  gradient of a mean over windows. So blocks of the array are near those of the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import jax
from jax import lax
from jax.extend import core

from gridlayout.ops.decisions.jaxprs import equation_of
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.graph.node import Atom, Node, Path
from gridlayout.ops.primitives.user_rules import is_user_rule

_SUMS, _ADDED, _TURNED, _PADDED = ("add", "add_any"), "scatter-add", "transpose", "pad"
# What pads the operand of each window, and the parameter of its dilation.
_WINDOWS = {
    "conv_general_dilated": (0.0, "lhs_dilation"),
    "reduce_window_sum": (0.0, "base_dilation"),
    "reduce_window_max": (-inf, "base_dilation"),
    "reduce_window_min": (inf, "base_dilation"),
}


class Simplified:
    """The nodes and the results of a graph, with one equation for several.

    body: returns the path of the loop's body that a node is in. Only equations of one body are
    joined, because others run more or less often.
    """

    def __init__(
        self, nodes: Sequence[Node], results: Sequence[Atom], body: Callable[[Path], Path]
    ) -> None:
        self.nodes, self.results, self._body = [*nodes], [*results], body
        self._drop_unchanged()
        names = Counter(node.name for node in self.nodes)
        if names[_TURNED] > 1:
            self._join_transposes()
        if names[_ADDED]:
            self._add_updates()
        if names[_PADDED] and names.keys() & _WINDOWS.keys():
            self._join_pads()

    def _counts(self) -> Counter[int | None]:
        """Return how often each value is read, by nodes or as a result."""
        count = Counter(v for node in self.nodes for v in node.ins)
        count.update(atom for atom in self.results if isinstance(atom, int))
        return count

    def _can_join(self, node: Node, maker: Node | None) -> bool:
        """Whether both are equations of one body that no rule of the user's runs."""
        if maker is None or self._body(maker.path) != self._body(node.path):
            return False
        return not any(is_user_rule(rule) for each in (node, maker) for rule in each.record.rules)

    def _join_transposes(self) -> None:
        turned: dict[int, Node] = {}
        same: dict[int, Atom] = {}
        inner, found = set[int](), []
        for node in self.nodes:
            v = node.ins[0] if node.name == _TURNED else None
            maker = None if v is None else turned.get(v)
            if maker is not None and self._can_join(node, maker):
                inner.update(maker.outs)
                order = [maker.params["permutation"][d] for d in node.params["permutation"]]
                if order == sorted(order):
                    same[node.outs[0]] = maker.atoms[0]
                    continue
                node = _transpose(node, maker, tuple(order))
            if node.name == _TURNED:
                turned[node.outs[0]] = node
            found.append(node)
        if inner:
            self._replace(found, same, inner)

    def _drop_unchanged(self) -> None:
        same: dict[int, Atom] = {}
        inner, found = set[int](), []
        for node in self.nodes:
            if (own := _unchanged(node)) is None:
                found.append(node)
                continue
            same[node.outs[0]] = same.get(own, own)
            inner.update(v for v in node.ins if v is not None and v != own)
        if same:
            self._replace(found, same, inner)

    def _replace(self, nodes: Sequence[Node], same: dict[int, Atom], inner: set[int]) -> None:
        """Read other values, and drop the makers of the inner ones that nothing reads any more."""

        def read(atom: Atom) -> Atom:
            return same.get(atom, atom) if isinstance(atom, int) else atom

        self.nodes = [replace(node, atoms=tuple(map(read, node.atoms))) for node in nodes]
        self.results = [read(atom) for atom in self.results]
        count = self._counts()
        for n in reversed(range(len(self.nodes))):
            node = self.nodes[n]
            if inner.intersection(node.outs) and not any(count[v] for v in node.outs):
                count.subtract(node.ins)
                del self.nodes[n]

    def _add_updates(self) -> None:
        count = self._counts()
        makers = {v: node for node in self.nodes for v in node.outs}
        gone = set[Node]()
        for n, node in enumerate(self.nodes):
            if node.name not in _SUMS:
                continue
            for v, other in (node.atoms, node.atoms[::-1]):
                maker = makers.get(v) if isinstance(v, int) else None
                if (
                    maker is None
                    or not isinstance(other, int)
                    or not _is_of_zeros(maker, makers)
                    or count[maker.outs[0]] > 1
                ):
                    continue
                shapes = {tuple(atom.aval.shape) for atom in node.eqn.invars}
                if len(shapes) > 1 or not self._can_join(node, maker):
                    continue
                made = replace(node, eqn=maker.eqn, atoms=(other, *maker.atoms[1:]))
                self.nodes[n] = made
                makers.update(dict.fromkeys(made.outs, made))
                gone.add(maker)
                break
        self.nodes = [node for node in self.nodes if node not in gone]

    def _join_pads(self) -> None:
        count = self._counts()
        makers = {v: node for node in self.nodes for v in node.outs}
        gone = set[Node]()
        for n, node in enumerate(self.nodes):
            maker = makers.get(node.atoms[0]) if node.name in _WINDOWS else None  # type: ignore[arg-type]
            if maker is None or maker.name != _PADDED or count[maker.outs[0]] > 1:
                continue
            made = _padded(node, maker) if self._can_join(node, maker) else None
            if made is not None:
                self.nodes[n] = made
                gone.add(maker)
        self.nodes = [node for node in self.nodes if node not in gone]


def _padded(node: Node, pad: Node) -> Node | None:
    """Return the node of a window over what a pad pads; None if it can't pad it itself."""
    fill, (neutral, dilation) = pad.atoms[1], _WINDOWS[node.name]
    if not isinstance(fill, core.Literal) or fill.val != neutral:
        return None
    params, config = dict(node.params), pad.params["padding_config"]
    dims = range(len(config))
    if node.name == "conv_general_dilated":
        dims = params["dimension_numbers"].lhs_spec[2:]
    padding, dilated = list(params["padding"]), list(params[dilation])
    for d, (low, high, inside) in enumerate(config):
        if (low, high, inside) == (0, 0, 0):
            continue
        if d not in dims or min(low, high) < 0 or dilated[k := list(dims).index(d)] > 1:
            return None
        padding[k] = padding[k][0] + int(low), padding[k][1] + int(high)
        dilated[k] = int(inside) + 1
    params |= {"padding": tuple(padding), dilation: tuple(dilated)}
    avals = [pad.eqn.invars[0].aval, *(var.aval for var in node.eqn.invars[1:])]
    given = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals]
    eqn = equation_of(node.eqn.primitive, tuple(params.items()), *given)
    eqn = eqn.replace(source_info=node.eqn.source_info, ctx=node.eqn.ctx)
    return replace(node, eqn=eqn, atoms=(pad.atoms[0], *node.atoms[1:]))


def _unchanged(node: Node) -> int | None:
    """Return the operand that a node only returns again; None if it makes another array."""
    record = node.record
    if record.of_views is None or node.label or any(map(is_user_rule, record.rules)):
        return None
    shape = node.eqn.outvars[0].aval.shape
    pairs = zip(node.atoms, node.eqn.invars, strict=True)
    given = [(atom, var.aval.shape) for atom, var in pairs if 0 not in var.aval.shape]
    own = [atom for atom, each in given if each == shape and isinstance(atom, int)]
    if len(own) != 1 or len(node.outs) > 1 or not shape:
        return None
    x = Shifted.of(shape)
    views = [x if atom == own[0] else None for atom, _ in given]
    return own[0] if [*record.of_views(node.params, views)] == [x] else None


def _transpose(node: Node, maker: Node, order: tuple[int, ...]) -> Node:
    """Return the node of a transpose of what another one transposes."""
    array = maker.eqn.invars[0].aval
    given = jax.ShapeDtypeStruct(array.shape, array.dtype)
    eqn = equation_of(lax.transpose_p, (("permutation", order),), given)
    eqn = eqn.replace(source_info=node.eqn.source_info, ctx=node.eqn.ctx)
    return replace(node, eqn=eqn, atoms=maker.atoms)


def _is_of_zeros(node: Node, makers: dict[int, Node]) -> bool:
    """Whether a node adds updates to an array of zeros."""
    if node.name != _ADDED:
        return False
    array = node.atoms[0]
    made = makers.get(array) if isinstance(array, int) else None
    if made is None or made.name != "broadcast_in_dim":
        return False
    number = made.atoms[0]
    return isinstance(number, core.Literal) and not number.val
