"""The search for the equation that makes a NaN or an infinity, while JAX checks numbers.

A call with such an element in a result is repeated on logical arrays, equation by equation. Padding
takes no part in that, nor does the mesh.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend import core

from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.decisions.jaxprs import jaxpr_of
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import BARRIER, Atom
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.number_checks import NumberChecks, number_checks

# Where the code is that is not the user's: JAX and this library.
_PACKAGES = str(Path(jax.__file__).parent), str(Path(__file__).parents[2])


def check_results(
    closed: Any, operands: Sequence[Any], results: Sequence[Any], device: DeviceGrid
) -> None:
    """Raise FloatingPointError if an element of a result is a number that JAX's checks report.

    closed: the jaxpr on logical shapes that was run. operands, results: `GridArray`s and arrays;
    what padding the results have is not reported.
    """
    checks = number_checks()
    arrays = [x.storage if isinstance(x, GridArray) else x for x in results]
    if checks is None or any(isinstance(x, jax.core.Tracer) for x in arrays):
        return
    name = next(filter(None, map(checks.name_in, arrays)), None)
    if name is None:
        return
    # Of several processes, each one sees the shards of its own devices only.
    if len(device.processes) == 1:
        logical = [np.asarray(x) if isinstance(x, GridArray) else x for x in operands]
        search = _Search(checks)
        with jax.debug_nans(False), jax.debug_infs(False):
            search.evaluated(closed, logical)
        if search.passed is not None:
            raise search.passed
    raise FloatingPointError(
        f"invalid value ({name}) encountered in a result of a function on the grid. No equation "
        "of the function gives one on logical arrays"
    )


class _Search:
    """The search for the equation that makes the first number that JAX's checks report.

    passed: the error for the first equation with such a result that has such an operand as well.
    """

    def __init__(self, checks: NumberChecks) -> None:
        self.checks = checks
        self.passed: FloatingPointError | None = None

    def evaluated(self, closed: Any, operands: Sequence[Any]) -> list[Any]:
        """Return the results of a jaxpr; FloatingPointError at the equation that is searched for.

        A loop is one equation.
        """
        graph = Graph.of(closed)
        values = {**graph.constants, **dict(enumerate(operands))}

        def read(atom: Atom) -> Any:
            return values[atom] if isinstance(atom, int) else np.asarray(atom.val)

        for node in graph.nodes:
            given = list(map(read, node.atoms))
            if node.name == "cond":
                outs = self.evaluated(node.params["branches"][int(given[0])], given[1:])
            else:
                outs = given if node.label == BARRIER else self.equation(node.eqn, given)
            values.update(zip(node.outs, outs, strict=True))
        return list(map(read, graph.results))

    def equation(self, eqn: Any, given: Sequence[Any]) -> Any:
        """Return the results of one equation."""
        variables = zip(eqn.invars, given, strict=True)
        arrays = [x for atom, x in variables if isinstance(atom, core.Var)]
        outs = core.jaxpr_as_fun(_alone(eqn))(*arrays)
        if (name := self._name_in(outs)) is not None:
            error = _error(eqn, name)
            if self._name_in(given) is None:
                raise error
            self.passed = self.passed or error
        return outs

    def _name_in(self, arrays: Sequence[Any]) -> str | None:
        return next(filter(None, map(self.checks.name_in, arrays)), None)


def _alone(eqn: Any) -> Any:
    """Return an equation as a closed jaxpr of the variables that it reads."""
    operands = [atom for atom in eqn.invars if isinstance(atom, core.Var)]
    return jaxpr_of(operands, [eqn], eqn.outvars, eqn)


def _error(eqn: Any, name: str) -> FloatingPointError:
    """Return the error for an equation, with the line of the user's code that it comes from."""
    error = FloatingPointError(f"invalid value ({name}) encountered in {eqn.primitive.name}")
    if eqn.source_info.traceback is not None:
        frames = traceback.extract_tb(eqn.source_info.traceback.as_python_traceback())
        own = [frame for frame in frames if not frame.filename.startswith(_PACKAGES)]
        if own:
            error.add_note(f"in {own[-1].name}, {own[-1].filename}:{own[-1].lineno}")
    return error
