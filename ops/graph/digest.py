"""`digest_of`: a digest of a program, by which a plan recognises it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from jax.extend import core

from gridlayout.ops.decisions.jaxprs import closed_of, jaxprs_in
from gridlayout.ops.decisions.op import NOT_READ
from gridlayout.ops.decisions.stated import CONSTRAINTS
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Atom
from gridlayout.ops.graph.once import once
from gridlayout.sharding.processes.jaxprs import common_text


@once
def digest_of(graph: Graph) -> str:
    """Return a digest of a program.

    It does not depend on names of variables, values of array constants, or meshes of shardings.
    """
    return sha256("\n".join(_lines(graph)).encode()).hexdigest()


def _lines(graph: Graph) -> Iterator[str]:
    def written(value: int) -> str:
        return f"{value}:{graph.dtypes[value]}{graph.shapes[value]}"

    def read(atom: Atom) -> str:
        return repr(atom.val) if isinstance(atom, core.Literal) else str(atom)

    yield f"in {[*map(written, (*range(graph.operands), *graph.constants))]}"
    for node in graph.nodes:
        ends = f"{[*map(read, node.atoms)]} -> {[*map(written, node.outs)]}"
        yield f"{node.path} {node.name} {ends}"
        if node.name in CONSTRAINTS:
            yield f"states {tuple(getattr(node.params[CONSTRAINTS[node.name]], 'spec', ()))}"
        for name, value in sorted(node.params.items()):
            if name in NOT_READ or "sharding" in name:
                continue
            inner = jaxprs_in({name: value})
            yield f"{name} {common_text(repr(value)) if not inner else len(inner)}"
            for each in inner:
                yield from _lines(Graph.of(closed_of(each)))
    yield f"out {[*map(read, graph.results)]}"
