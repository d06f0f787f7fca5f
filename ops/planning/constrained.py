"""`constrained`: a planned function with sharding constraints at the values that the plan divides.

It runs the nodes of the function's graph, as JAX would, and constrains operands and results of each
to the divisions that the plan has chosen for it. XLA's partitioner does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core
from jax.sharding import AxisType, NamedSharding

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.choose.chosen import Chosen, Stated
from gridlayout.ops.choose.division import Division
from gridlayout.ops.decisions.jaxprs import scan_parts
from gridlayout.ops.decisions.stated import CONSTRAINTS, WITH_LAYOUT
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import BARRIER, Atom, Node, Path
from gridlayout.ops.planning.shardings import NamedMesh
from gridlayout.ops.planning.traced import Traced, traced_for
from gridlayout.ops.primitives.views import Known


def constrained(
    fn: Callable[..., Any],
    named: NamedMesh,
    stated: Stated,
    ends: tuple[Sequence[NamedSharding], Sequence[NamedSharding]],
    strict: bool,
) -> Callable[..., Any]:
    """Return `plan.constrained`; ends: the shardings of the plan's arguments and results."""

    @wraps(fn)
    def run(*args: Any) -> Any:
        traced = traced_for(fn, args, named.device.machine, None)
        if any(leaf.is_laid_out for leaf in traced.leaves):
            raise LayoutError(
                "a function with sharding constraints takes arrays of JAX: pass x.to_logical(), or "
                "call gl.on_grid(fn, policy=plan), which takes GridArrays"
            )
        if any(isinstance(leaf.value, jax.ShapeDtypeStruct) for leaf in traced.leaves):
            raise LayoutError(
                "a function with sharding constraints takes arrays of JAX, not structs or layouts: "
                "jax.eval_shape takes it with structs"
            )
        stated.check(traced.graph, traced.device)
        arrays = [leaf.value for leaf in traced.leaves]
        program = _program(traced, _Evaluation(named, stated.chosen, strict), ends)
        return traced.trees.results.unflatten(jax.jit(program)(*traced.constants, *arrays))

    return run


def mesh_for(named: NamedMesh, stated: Stated, layouts: Iterable[Layout | None]) -> NamedMesh:
    """Return the user's mesh if its axes are all that the plan divides by, or else a finer one.

    It has the same devices. JAX takes shardings on both in one program.
    """
    if any(kind != AxisType.Auto for kind in named.mesh.axis_types):
        raise LayoutError(
            f"the axes of the mesh are {', '.join(kind.name for kind in named.mesh.axis_types)}, "
            "and sharding constraints are for Auto axes: make the mesh with "
            "jax.sharding.Mesh(devices, names)"
        )
    used = {axes for x in layouts if x is not None for axes in named.device.placement(x).axes}
    if stated.chosen is not None:
        for choice in stated.chosen.choices.values():
            divisions = (*choice.ins, choice.out)
            used |= {stated.chosen.units.mesh_axes(dim) for each in divisions for dim in each or ()}
    is_named = all(named.entry(axes) is not None for axes in used)
    return named if is_named else named.finer


def _program(traced: Traced, evaluation: _Evaluation, ends: Any) -> Callable[..., list[Any]]:
    """Return the function of operands, with constraints. It is for `jax.jit`.

    Outside of that, JAX refuses constraints that divide a dim unevenly.
    Its derivative is another program, which the plan does not know: that of the function itself, by
    its own rules of differentiation.
    """

    @jax.custom_jvp
    def program(*operands: Any) -> list[Any]:
        constants, arrays = operands[: traced.consts], operands[traced.consts :]
        given = [*constants, *map(_placed, arrays, ends[0])]
        return list(map(_placed, evaluation.results(traced.graph, given), ends[1]))

    @program.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        return jax.jvp(core.jaxpr_as_fun(traced.closed), primals, tangents)

    return program


def _placed(x: Any, sharding: NamedSharding | None) -> Any:
    """Return an array with a constraint; a number or a random key as it is."""
    if sharding is None or not jnp.shape(x) or jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return x
    return lax.with_sharding_constraint(x, sharding)


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """Runs graphs with constraints, on a mesh whose axes are all that the plan divides by."""

    named: NamedMesh
    chosen: Chosen | None
    strict: bool

    def results(self, graph: Graph, operands: Sequence[Any], prefix: Path = ()) -> list[Any]:
        """Return the results of a graph; prefix: the path of the loop whose body it is."""
        values = {**graph.constants, **dict(enumerate(operands))}

        def read(atom: Atom) -> Any:
            return values[atom] if isinstance(atom, int) else atom.val

        for node in graph.nodes:
            outs = self._outs(node, list(map(read, node.atoms)), (*prefix, *node.path))
            values.update(zip(node.outs, outs, strict=True))
        return list(map(read, graph.results))

    def _outs(self, node: Node, given: list[Any], path: Path) -> list[Any]:
        if node.label == BARRIER:
            return list(lax.optimization_barrier(tuple(given)))
        if node.name in ("scan", "while"):
            return self._loop(node, given, path)
        if node.name == WITH_LAYOUT:
            (stated,) = self.named.of_layouts([(WITH_LAYOUT, node.params["layout"])], self.strict)
            return [_placed(given[0], stated)]
        if node.name in CONSTRAINTS:
            axes = node.constraint(self.named.device)
            return given if axes is None else [_placed(given[0], self.named.of_axes(axes))]
        choice = None if self.chosen is None else self.chosen.choices.get(path)
        if choice is None:
            return _run(node, given)
        given = [
            x if division is None else _placed(x, self._sharding(division))
            for x, division in zip(given, choice.ins, strict=True)
        ]
        return [
            _placed(x, self._sharding(choice.out)) if jnp.ndim(x) == len(choice.out) else x
            for x in _run(node, given)
        ]

    def _loop(self, node: Node, given: list[Any], path: Path) -> list[Any]:
        """Return the results of a loop, with constraints in its body, on carries and on rows."""
        params, is_scan = node.params, node.name == "scan"
        if is_scan:
            name, (first, second) = "jaxpr", scan_parts(params)
            constants = first
        else:
            name, constants = "body_jaxpr", params["body_nconsts"]
            first, second = params["cond_nconsts"] + constants, len(given)
        carry = [self._chosen((*path, -1 - k)) for k in range(second - first)]
        count = len(given) - second
        rows = [self._chosen((*path, -1 - k, -1)) for k in range(count)]
        stacks = [
            self._chosen((*path, -1 - second + first - count - k))
            for k in range(len(node.outs) - len(carry))
        ]
        body = params[name]
        graph = Graph.of(body)

        def inside(*operands: Any) -> list[Any]:
            placed = [None] * constants + carry + rows
            outs = self.results(graph, list(map(_placed, operands, placed)), path)
            return [*map(_placed, outs, carry), *outs[len(carry) :]]

        avals = [
            jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))
            for x in body.in_avals
        ]
        scanned = [self._chosen((*path, -1 - k, -1), reads=True) for k in range(count)]
        given[first:] = map(_placed, given[first:], [*carry, *scanned])
        outs = node.op.bind(*given, **{name: jax.make_jaxpr(inside)(*avals)})
        return list(map(_placed, outs, [*carry, *stacks]))

    def _chosen(self, path: Path, reads: bool = False) -> NamedSharding | None:
        """Return the sharding that is chosen for a node of a loop; None where the plan chose none.

        It is that of what the node makes: a carry, a row or a stack. reads: that of what it reads.
        """
        choice = None if self.chosen is None else self.chosen.choices.get(path)
        division = None if choice is None else choice.ins[0] if reads else choice.out
        return None if division is None else self._sharding(division)

    def _sharding(self, division: Division) -> NamedSharding:
        assert self.chosen is not None
        return self.named.of_axes([self.chosen.units.mesh_axes(units) for units in division])


def _run(node: Node, given: Sequence[Any]) -> list[Any]:
    """Return the results of a node; those of `views` by the operations that it stands for."""
    if node.name != "views":
        return node.op.bind(*given)
    values = list(given)
    for op, reads in node.params["members"]:
        operands = (x.number if isinstance(x, Known) else values[x] for x in reads)
        values += op.bind(*operands)
    return [values[k] for k in node.params["leaves"]]
