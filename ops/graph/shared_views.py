"""Operations that only move elements, as views of the array that they read.

A slice of a padded array is a view of that array, and so is what a roll joins. Views of one array
that read the same elements, such as the points of a stencil, are one `views` node: what devices
receive for them, they receive once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.ops.decisions.facts import on_host
from gridlayout.ops.decisions.jaxprs import equation_of
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.graph.node import Atom, Node, Path
from gridlayout.ops.primitives.user_rules import is_user_rule
from gridlayout.ops.primitives.views import Known, borders, views_p

# The longest chain that is one view, and the most views of one array that are compared: both take
# a time quadratic in these numbers.
_LONGEST, _MOST = 64, 256


@dataclass(frozen=True)
class _View:
    """A value as a view: of which value, in which body; and the nodes on the way, in order."""

    source: int
    body: Path
    view: Shifted
    members: tuple[int, ...] = ()

    def overlaps(self, other: _View) -> bool:
        """Whether both read some of the same elements, as far as boxes around them tell."""
        pairs = zip(self.view.boxes, other.view.boxes, strict=True)
        return all(a <= d and c <= b for (a, b), (c, d) in pairs)


class Views:
    """Finds the views among the nodes of a graph, and replaces them."""

    def __init__(self, nodes: Sequence[Node], results: Sequence[Atom], shapes: Any, kinds: Any):
        self.nodes, self.shapes, self.dtypes = nodes, shapes, kinds
        self.results = {atom for atom in results if isinstance(atom, int)}
        self.found: dict[int, _View] = {}
        self.known: dict[int, Known] = {}
        self.filled: dict[int, tuple[int, Known]] = {}  # arrays of one number: the node, the number

    def replaced(self, bodies: Any) -> list[Node]:
        """Return the nodes, with `views` nodes for those that they stand for.

        bodies: returns the path of the loop's body that a node is in.
        """
        for n, node in enumerate(self.nodes):
            self._add(n, node, bodies(node.path))
        if not self.found:
            return [*self.nodes]
        leaves: dict[tuple[int, Path], list[int]] = {}
        for v in self._leaves():
            view = self.found[v]
            leaves.setdefault((view.source, view.body), []).append(v)
        made: dict[int, Node] = {}  # by the position of the first leaf's node
        for some in leaves.values():
            for near in self._groups(some):
                group = [v for v in near if {*near} >= {*self._maker(v).outs}]
                if not group:
                    continue
                members = sorted({m for v in group for m in self.found[v].members})
                views = [self.found[v] for v in group]
                shape = self.shapes[views[0].source]
                whole = [row.runs for row in Shifted.of(shape).rows]
                moves = any([row.runs for row in x.view.rows] != whole for x in views)
                is_near = None not in borders([x.view for x in views], shape)
                is_all = {*group} == {*self.nodes[members[0]].outs}
                if (len(members) > 1 or (is_near and is_all)) and moves:
                    made[min(self.found[v].members[-1] for v in group)] = self._node(group, members)
        return self._without_unread(made) if made else [*self.nodes]

    def _add(self, n: int, node: Node, body: Path) -> None:
        """Add the results of a node, if they are views."""
        of_views = None if node.label else node.record.of_views
        if not node.label and node.record.is_elementwise and not self.shapes[node.outs[0]]:
            self._add_number(node)
        if of_views is None or any(map(is_user_rule, node.record.rules)):
            return
        number = self._known(node.atoms[0]) if node.record.is_made_in_place and node.atoms else None
        if number is not None:
            self.filled[node.outs[0]] = n, number
        apart = {*self.known, *self.filled}
        arrays = [v for v in node.ins if v is not None and v not in apart]
        if not arrays or any(self._is_small(v) for v in (*arrays, *node.outs)):
            return
        given = [self.found.get(v) for v in arrays]
        first = next((x for x in given if x is not None and x.body == body), None)
        source = arrays[0] if first is None else first.source
        if jnp.issubdtype(self.dtypes[source], jax.dtypes.extended):
            return
        operands: list[Shifted | bytes | None] = []
        members: set[int] = {n}
        for atom in node.atoms:
            if (known := self._known(atom)) is not None:
                operands.append(known.bits)
            elif isinstance(atom, int) and atom in self.filled:
                maker, one = self.filled[atom]
                operands.append(Shifted.filled(self.shapes[atom], one.bits))
                members.add(maker)
            elif atom == source:
                operands.append(Shifted.of(self.shapes[source]))
            elif (view := self._view(atom)) and (view.source, view.body) == (source, body):
                operands.append(view.view)
                members.update(view.members)
            else:
                return
        if len(members) > _LONGEST:
            return
        for v, found in zip(node.outs, of_views(node.params, operands), strict=True):
            if found is not None:
                self.found[v] = _View(source, body, found, tuple(sorted(members)))

    def _is_small(self, v: int) -> bool:
        return not self.shapes[v] or 0 in self.shapes[v]

    def _view(self, atom: Atom) -> _View | None:
        return self.found.get(atom) if isinstance(atom, int) else None

    def _known(self, atom: Atom) -> Known | None:
        """Return a number that is known before anything runs; None for any other operand."""
        if isinstance(atom, int):
            return self.known.get(atom)
        aval = Aval.of(atom.aval)
        if aval.shape or jnp.issubdtype(aval.dtype, jax.dtypes.extended):
            return None
        return Known.of(np.asarray(atom.val, aval.dtype))

    def _add_number(self, node: Node) -> None:
        """Add the result of a function of known numbers."""
        numbers = [self._known(atom) for atom in node.atoms]
        some = [known.number for known in numbers if known is not None]
        if len(some) == len(numbers):
            made = on_host(Op.of(node.eqn), some)
            if made is not None:
                self.known[node.outs[0]] = Known.of(np.asarray(made))

    def _maker(self, v: int) -> Node:
        return self.nodes[self.found[v].members[-1]]

    def _leaves(self) -> list[int]:
        """Return the views that something else than a view reads."""
        read = {*self.results}
        for node in self.nodes:
            if not all(v in self.found for v in node.outs) or not node.outs:
                read.update(v for v in node.ins if v is not None)
            else:
                bodies = {(self.found[v].source, self.found[v].body) for v in node.outs}
                own = [v for v in node.ins if v in self.found]
                read.update(
                    v for v in own if {(self.found[v].source, self.found[v].body)} != bodies
                )
        return [v for v in self.found if v in read]

    def _groups(self, leaves: Sequence[int]) -> list[list[int]]:
        """Return views in groups that read the same elements."""
        if len(leaves) > _MOST:
            return [[v] for v in leaves]
        groups: list[list[int]] = []
        for v in leaves:
            view = self.found[v]
            near = [g for g in groups if any(view.overlaps(self.found[other]) for other in g)]
            groups = [g for g in groups if g not in near]
            groups.append(sorted([v, *(other for g in near for other in g)]))
        return groups

    def _node(self, group: Sequence[int], members: Sequence[int]) -> Node:
        source = self.found[group[0]].source
        number, inner = {source: 0}, []
        for m in members:
            node = self.nodes[m]
            reads = tuple(
                self._known(x) or number[x if isinstance(x, int) else -1] for x in node.atoms
            )
            inner.append((Op.of(node.eqn), reads))
            number |= {v: n for n, v in enumerate(node.outs, len(number))}
        params = {
            "views": tuple(self.found[v].view for v in group),
            "members": tuple(inner),
            "leaves": tuple(number[v] for v in group),
        }
        first = min((self.nodes[self.found[v].members[-1]] for v in group), key=self.nodes.index)
        given = jax.ShapeDtypeStruct(self.shapes[source], self.dtypes[source])
        eqn = equation_of(views_p, tuple(params.items()), given)
        eqn = eqn.replace(source_info=first.eqn.source_info, ctx=first.eqn.ctx)
        return Node(eqn, first.path, (source,), tuple(group), first.call, first.times)

    def _without_unread(self, made: dict[int, Node]) -> list[Node]:
        """Return the nodes with those that were made, without members that nothing reads now."""
        ours = {v for node in made.values() for v in node.outs}
        gone = {m for node in made.values() for v in node.outs for m in self.found[v].members}
        nodes: list[tuple[int, Node]] = []
        for n, node in enumerate(self.nodes):
            nodes += [(-1, made[n])] if n in made else []
            nodes.append((n, node))
        read, kept = {*self.results}, []
        for n, node in reversed(nodes):
            if n in gone and not (read - ours).intersection(node.outs):
                continue
            read.update(v for v in node.ins if v is not None)
            kept.append(node)
        return kept[::-1]
