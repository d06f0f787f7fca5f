"""Support in `jax.experimental.checkify`: a lifted function is checked on its logical arrays.

`checkify` interprets a jaxpr by a rule per primitive. It has none for the primitives of other
projects, and no public name to add one: only this module uses its table of rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax.experimental import checkify
from jax.extend import core

from gridlayout.errors import LayoutError
from gridlayout.ops.interpret.compiled import Compiled
from gridlayout.ops.interpret.grid_call import GridCall, spec_of
from gridlayout.ops.interpret.logical_jaxpr import logical_jaxpr
from gridlayout.ops.interpret.operands import struct
from gridlayout.ops.programs.program import Program

Rule = Callable[..., Any]


def register(module: Any) -> None:
    """Let `checkify` check the equations of lifted functions."""
    from jax._src.checkify import error_checks

    rules: dict[str, Any] = {primitive.name: primitive for primitive in error_checks}
    call = rules["call_hi_primitive"]
    error_checks[call] = partial(_rule, error_checks[call], error_checks[rules["check"]])
    over_mesh = rules["shard_map"]
    error_checks[over_mesh] = partial(_rule_over_mesh, error_checks[over_mesh])
    # Inside of `checkify`, a call must be one primitive, and no compiled program.
    Compiled.is_traced_as_call = True


def _rule(other: Rule, discharge: Rule, *context: Any, _prim: Any) -> Any:
    """Return the error so far and the results of a call; `checkify`'s rule for `GridCall`s.

    context: a counter of errors, which JAX 0.10 does not have, the error so far, the errors that
    are enabled, then the operands. other: the rule for other primitives. discharge: the rule of
    `checkify.check_error`.
    """
    if not isinstance(_prim, GridCall):
        return other(*context, _prim=_prim)
    first = 0 if isinstance(context[0], checkify.Error) else 1
    enabled, operands = context[first + 1], context[first + 2 :]
    checked = _prim.derived(_Checked, frozenset(enabled))
    error, outs = checked(*operands)
    leaves, tree = jax.tree.flatten(error)
    found, _ = discharge(*context[: first + 2], *leaves, err_tree=tree, debug=False)
    return found, outs


def _rule_over_mesh(other: Rule, *context: Any, **params: Any) -> Any:
    """Apply JAX's rule for `jax.shard_map`, which fails while a mesh is set."""
    try:
        return other(*context, **params)
    except ValueError as error:
        if "context mesh" not in str(error):
            raise
        raise LayoutError(
            "checkify.checkify can't check a program over a mesh that is set, as gl.map_shards, "
            "gl.relayout and GridArray.with_oob run it: call them outside of the checked function"
        ) from error


class _Checked:
    """A call that returns an error too, of what is enabled. program: what is compiled for it."""

    def __init__(self, call: GridCall, enabled: frozenset[Any]) -> None:
        count, self.tree = len(call.results), None

        def logical(*arrays: Any) -> list[Any]:
            fn = checkify.checkify(core.jaxpr_as_fun(call.jaxpr), errors=enabled)
            error, outs = fn(*arrays)
            leaves, self.tree = jax.tree.flatten(error)
            return [*outs, *leaves]

        traced = logical_jaxpr(logical, map(struct, call.specs), call.env.device)
        # The parts of an error are plain arrays, which its message prints.
        errors = [spec_of(aval) for aval in traced.out_avals[count:]]
        self.count, self.run = count, call.with_jaxpr(traced, [*call.results, *errors])
        self.program: Program = self.run.program

    def __call__(self, *operands: Any) -> Any:
        """Return the error and the results."""
        found = self.run(*operands)
        return jax.tree.unflatten(self.tree, found[self.count :]), found[: self.count]
