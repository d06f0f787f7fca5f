"""`Consumers`: the layouts to which the consumers of a graph's values relay them out.

A product's result is placed in such a layout at once: that of a `with_layout`, or that of the array
to which an elementwise operation adds it. So the gradient of a parameter gets the parameter's
layout.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import jax

from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.specs import Sharded, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import BARRIER, Node
from gridlayout.sharding.device_grid import DeviceGrid


class Consumers:
    """The consumers of a graph's values, and the requested layouts of its results.

    known: the values that are planned so far, by number.
    """

    def __init__(
        self,
        graph: Graph,
        device: DeviceGrid,
        known: Mapping[int, Value],
        requested: Sequence[Layout | None] = (),
    ) -> None:
        self._graph, self._device, self._known = graph, device, known
        self._results: dict[int, list[Layout | None]] = {}
        for k, v in enumerate(graph.outs):
            if v is not None:
                layout = requested[k] if k < len(requested) else None
                if layout is not None and layout.shape != graph.shapes[v]:
                    layout = None
                self._results.setdefault(v, []).append(layout)

    def layout(self, value: int, cores: int) -> GridLayout | None:
        """Return the one layout that consumers of a value relay it out to, or None.

        None where there is no such layout or more than one. If the value has other consumers too,
        they read it in that layout, unless it has fewer cores than `cores`. To be called in the
        order of nodes: the layouts of earlier values have to be known.
        """
        found, others = self._layouts(value)
        grids = {as_grid(layout) for layout in found}
        only = grids.pop() if len(grids) == 1 else None
        if only is None or only.is_scatter or (others and only.num_cores < cores):
            return None
        return only

    def _layouts(self, value: int) -> tuple[set[Layout], bool]:
        """Return the layouts to which a value is relaid out, and whether it has other consumers."""
        found: set[Layout] = set()
        graph, dtype = self._graph, self._graph.dtypes[value]
        if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
            return found, True
        others = False
        same, left = {value}, [value]  # values that have the value's layout
        while left:
            v = left.pop()
            for layout in self._results.get(v, []):
                found |= _one(layout)
                others |= layout is None
            for node in graph.readers[v]:
                if node.label == BARRIER:
                    out = node.outs[node.atoms.index(v)]
                elif all(0 in graph.shapes[out] for out in node.outs) or node.record.is_reduction:
                    continue
                elif (stated := node.placed(self._device)) is not None:
                    if self._is_usual(stated):
                        found.add(stated.layout)
                    else:
                        others = True
                    continue
                elif not (node.record.is_elementwise and self._is_like(node, v)):
                    others = True
                    continue
                elif (first := self._first(node)) != v:
                    found |= self._layout_of(first, same)
                    continue
                else:
                    out = node.outs[0]
                if out not in same:
                    same.add(out)
                    left.append(out)
        return {each.with_dtype(dtype) for each in found}, others

    def _layout_of(self, value: int | None, same: Collection[int]) -> set[Layout]:
        """Return the layout of a value, or of the operand from which its operation takes it.

        The set is empty if it is unknown. same: values whose layout is to be found.
        """
        while value is not None and value not in self._known and value not in same:
            node = self._graph.makers.get(value)
            if node is not None and (stated := node.placed(self._device)) is not None:
                return {stated.layout} if self._is_usual(stated) else set()
            if node is not None and node.label == BARRIER:
                value = node.ins[node.outs.index(value)]
            else:
                is_like = node is not None and node.record.is_elementwise
                value = self._first(node) if node is not None and is_like else None
        known = None if value is None or value in same else self._known.get(value)
        return _one(None if known is None else layout_of(known.spec))

    def _is_usual(self, spec: Sharded) -> bool:
        """Return whether a layout is placed as the device grid places it."""
        return spec.placement == self._device.placement(spec.layout)

    def _is_like(self, node: Node, value: int) -> bool:
        """Return whether an operand has the shape of a node's result."""
        return self._graph.shapes[value] == self._graph.shapes[node.outs[0]]

    def _first(self, node: Node) -> int | None:
        """Return the operand whose layout an elementwise operation's result takes."""
        graph = self._graph
        for v in node.ins:
            if v is None or not self._is_like(node, v):
                continue
            if v in self._known:
                if isinstance(self._known[v].spec, Sharded):
                    return v
            elif v not in graph.makers or graph.makers[v].name != "broadcast_in_dim":
                return v
        return None


def _one(layout: Layout | None) -> set[Layout]:
    return set() if layout is None else {layout}
