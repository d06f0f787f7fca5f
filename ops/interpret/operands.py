"""Operands and results of a call: their logical shapes, and those that derivatives are taken of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import hijax
from jax.extend import core

from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec
from gridlayout.sharding.processes.agreement import layout_lines


def struct(spec: Spec) -> Any:
    """Return the logical shape and dtype of a spec as a `jax.ShapeDtypeStruct`."""
    weak = isinstance(spec, Replicated) and spec.weak_type
    return jax.ShapeDtypeStruct(spec.shape, spec.dtype, weak_type=weak)


def operand_lines(kinds: Sequence[Layout | Spec]) -> list[str]:
    """Return the types of operands as lines that processes compare.

    kinds: for each operand its layout, or the spec of one that is not laid out.
    """
    found = layout_lines(*((f"array {k}", x) for k, x in enumerate(kinds) if isinstance(x, Layout)))
    for k, x in enumerate(kinds):
        if not isinstance(x, Layout):
            dims = ",".join(map(str, x.shape))
            found.append(f"array {k}: {x.dtype.name}[{dims}], not laid out")
    return found


def without_facts(spec: Spec) -> Spec:
    """Return the spec of a tangent: the primal's layout without a known padding value."""
    if isinstance(spec, Sharded):
        return spec.with_oob(None)
    return Replicated(spec.shape, spec.dtype)


def zeros(spec: Spec) -> Any:
    """Return the cotangent 0 of a value."""
    if not is_inexact(spec):  # the type of its cotangents is float0
        return np.zeros(spec.shape, jax.dtypes.float0)
    return jnp.zeros(spec.shape, spec.dtype)


def is_inexact(spec: Spec) -> bool:
    """Return whether a value has tangents."""
    return bool(jnp.issubdtype(spec.dtype, np.inexact))


def is_nonzero(x: Any) -> bool:
    """Return whether a (co)tangent is a value, neither a symbolic zero nor float0."""
    return not isinstance(x, hijax.Zero) and x.dtype != jax.dtypes.float0


def active_operands(specs: Sequence[Spec], nonzero: Sequence[bool]) -> tuple[bool, ...]:
    """Return which operands have tangents."""
    return tuple(bool(yes) and is_inexact(spec) for spec, yes in zip(specs, nonzero, strict=True))


def select(values: Sequence[Any], which: Sequence[bool], keep: bool = True) -> list[Any]:
    """Return the values for which `which` is `keep`."""
    return [x for x, yes in zip(values, which, strict=True) if yes == keep]


def merge(which: Sequence[bool], yes: Sequence[Any], no: Sequence[Any]) -> list[Any]:
    """Return values from `yes` where `which` is true, else from `no`, in order."""
    mine, others = iter(yes), iter(no)
    return [next(mine) if one else next(others) for one in which]


def applied(jaxpr: Any, some: Sequence[bool], others: Sequence[Any]) -> Callable[..., list[Any]]:
    """Return the function of a closed jaxpr's operands of which `some` is true; others: the rest.

    >>> closed = jax.make_jaxpr(lambda x, y: x - y)(1.0, 2.0)
    >>> [float(x) for x in applied(closed, (False, True), [5.0])(3.0)]
    [2.0]
    """
    return lambda *x: list(core.jaxpr_as_fun(jaxpr)(*merge(some, x, others)))
