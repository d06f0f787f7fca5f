"""`def_rule`: users' own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.extend.core import primitives
from jax.interpreters import ad

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.map_shards import on_parts
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import SUMMED, THROUGH, Factors, Numbering
from gridlayout.ops.decisions.jaxprs import traced_collectives
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.table import RECORDS
from gridlayout.public import public
from gridlayout.sharding.collectives import shard_mapped
from gridlayout.sharding.cost import Cost


@public
def def_rule(
    primitive: core.Primitive | str,
    cost: Callable[..., Cost] | None = None,
    decide: Callable[..., Any] | None = None,
    factors: Any = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function as the rule of a lax primitive.

    It replaces the primitive's present rule, or the fallback.

    primitive: a `jax.extend.core.Primitive`, or its name. The decorated function is called as
    `rule(eqn, *values)` with the equation of the jaxpr (`eqn.params`; `eqn.outvars[0].aval` has
    shape and dtype) and its operands. These are `GridArray`s, or plain arrays where no core holds
    them. It returns the result, a `GridArray` or an array, or a list of them if the primitive has
    several; or it returns None, and the primitive runs as without this rule. Write it with
    `gl.map_shards`, `gl.relayout` and `gl.numpy`. Its results and collectives are found by tracing
    it once on whole storages, and cached.

    decide: states the decision instead. `decide(eqn, *layouts)` takes the operands' layouts and
    returns two tuples: the layouts to relay the operands out to, None for one that every core gets
    in full, and the layouts of the results. Or it returns None if the rule does not apply. The
    decorated function then takes each core's buffers, as in `gl.map_shards`, and runs in the same
    `shard_map` as the other kernels of the program.

    cost: `cost(eqn, *layouts) -> gl.Cost`, the cost that the report shows. Derivatives are taken of
    the primitive, not of the rule.

    factors: which dims may be divided together, so that `gl.plan` and `gl.on_grid` choose layouts
    for the primitive: `(operands, results)` with a string or tuple for each array, which names each
    dim, as in `(["ik", "kj"], ["ij"])`; None in a tuple is a dim that stays whole. A part of the
    results needs the same part of the operands. A name that no result has is summed: the rule sums
    partial results over the devices. Or a function that returns this,
    `factors(params, operand_shapes, result_shapes)`. By default all dims stay whole.

    `LayoutError` if there is no such primitive, with the nearest names, if a result has another
    shape or dtype than the primitive's, or if factors do not fit the arrays.

    >>> import jax, numpy as np
    >>> from gridlayout import DeviceGrid, GridLayout, map_shards, on_grid, put
    >>> from gridlayout.ops.primitives.table import RECORDS
    >>> earlier = RECORDS["ceil"]
    >>> @def_rule("ceil")
    ... def rule(eqn, x):
    ...     return map_shards(lambda shard: -jax.numpy.floor(-shard), x, out=x.layout)
    >>> x = put(np.float32([0.25, 1.5]), GridLayout((2,), grid=(2,)), DeviceGrid((1,)))
    >>> on_grid(jax.lax.ceil)(x).to_logical().tolist()
    [1.0, 2.0]
    >>> RECORDS["ceil"] = earlier
    """
    name = primitive.name if isinstance(primitive, core.Primitive) else primitive
    if not isinstance(name, str) or not name:
        raise LayoutError(f"def_rule takes a primitive or its name, not {primitive!r}")
    if name == primitive:
        _check_known(name)
    for what, given in (("cost", cost), ("decide", decide)):
        if given is not None and not callable(given):
            raise LayoutError(
                f"def_rule: {what} must be a function of (eqn, *layouts), not {given!r}"
            )

    def define(rule: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(rule):
            raise LayoutError(f"def_rule: the rule of {name} must be a function, not {rule!r}")
        made = (
            _UserRule(name, rule, cost) if decide is None else _KernelRule(name, rule, cost, decide)
        )
        facts = {} if factors is None else {"factors": _StatedFactors(name, factors)}
        RECORDS.first(name, made, **facts)
        return rule

    return define


class _StatedFactors:
    """A user's factors as a function of parameters and shapes."""

    def __init__(self, name: str, stated: Any) -> None:
        self.name, self.stated = name, stated
        if not callable(stated):
            self._dims(stated)

    def __call__(self, params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
        given = self.stated(params, ins, outs) if callable(self.stated) else self.stated
        of_ins, of_outs = self._dims(given)
        made, places = Numbering(ins, outs), dict[Any, list[tuple[int, int]]]()
        ranks = [*map(len, of_ins)], [*map(len, of_outs)]
        if ranks != ([*map(len, ins)], [*map(len, outs)]):
            raise self._error(given, f"the arrays have the shapes {[*ins]} and {[*outs]}")
        for k, dims in enumerate(of_ins + of_outs):
            for d, factor in enumerate(dims):
                if factor is not None:
                    places.setdefault(factor, []).append((k, d))
        results = {factor for dims in of_outs for factor in dims}
        for factor, where in places.items():
            if len({made.shapes[k][d] for k, d in where}) > 1:
                raise self._error(given, f"the dims {factor!r} have different extents in {[*ins]}")
            made.add(THROUGH if factor in results else SUMMED, *where)
        return made.factors()

    def _dims(self, given: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return the names of the dims of operands, and those of results."""
        try:
            ins, outs = given
            found = [tuple(dims) for dims in ins], [tuple(dims) for dims in outs]
        except (TypeError, ValueError):
            raise self._error(given, "a string or a tuple names the dims of each array") from None
        for dims in (*found[0], *found[1]):
            names = [name for name in dims if name is not None]
            if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
                raise self._error(given, "an array's dims have different names, or None")
        return found

    def _error(self, given: Any, why: str) -> LayoutError:
        return LayoutError(
            f"factors of the rule of {self.name} are {given!r}, but {why}: state "
            "(operands, results), as in (['ik', 'kj'], ['ij'])"
        )


def _check_known(name: str) -> None:
    """`LayoutError` unless JAX, a rule or a derivative rule knows a primitive of this name."""
    found = {getattr(primitives, each) for each in dir(primitives) if each.endswith("_p")}
    known = {*RECORDS, *(p.name for p in (*found, *ad.primitive_jvps))}
    if name in known:
        return
    near = get_close_matches(name, sorted(known), 3, 0.5)
    meant = f", such as {', '.join(map(repr, near))}" if near else ""
    raise LayoutError(
        f"def_rule: there is no primitive {name!r}; give a name that jax.make_jaxpr prints{meant}, "
        "or the jax.extend.core.Primitive itself if it is your own"
    )


def is_user_rule(rule: Any) -> bool:
    """Whether a rule was added by `def_rule`."""
    return isinstance(rule, (_UserRule, _KernelRule))


class _UserRule:
    """A user's function as a rule: traced for the decision, run on whole storages."""

    def __init__(self, name: str, rule: Any, cost: Any) -> None:
        self.name, self.rule, self.cost = name, rule, cost

    def __call__(self, b: Builder, op: Op, *values: Value) -> Any:
        made = [b.as_sharded(x) if x.layout is not None else b.replicated(x) for x in values]
        device, eqn = b.device, op.equation or _as_equation(op)

        def operand(spec: Spec, array: Any) -> Any:
            return placed(array, spec.layout, device) if isinstance(spec, Sharded) else array

        specs: list[Spec] | None = None

        def run(*arrays: Any) -> Any:
            nonlocal specs
            found = self.rule(eqn, *(operand(x.spec, a) for x, a in zip(made, arrays, strict=True)))
            if found is None:
                return []
            outs = list(found) if op.primitive.multiple_results else [found]
            _check_results(self.name, op, outs)
            specs = [
                b.sharded(out.layout)
                if isinstance(out, GridArray)
                else Replicated(out.shape, out.dtype)
                for out in outs
            ]
            return [out.storage if isinstance(out, GridArray) else out for out in outs]

        with device.active():
            closed = jax.make_jaxpr(run)(*(_storage(b, x.spec) for x in made))
        if specs is None:
            return None

        program, sent = core.jaxpr_as_fun(closed), traced_collectives(closed, device)
        if self.cost is not None:
            b.stated = self.cost(eqn, *(x.layout for x in values))
        return b.run(program, made, specs, sent, is_global=True)


def _check_results(name: str, op: Op, outs: Sequence[Any]) -> None:
    """`LayoutError` unless results have the primitive's shapes and dtypes."""
    if len(outs) != len(op.outs):
        raise LayoutError(
            f"the rule of {name} returns {len(outs)} results, but the primitive has {len(op.outs)}"
        )
    for out, aval in zip(outs, op.outs, strict=True):
        if (jnp.shape(out), jnp.result_type(out)) != (aval.shape, aval.dtype):
            dims = f"{aval.dtype}[{','.join(map(str, aval.shape))}]"
            raise LayoutError(f"the rule of {name} returns {out!r}, but the primitive gives {dims}")


class _KernelRule:
    """A user's function of each core's buffers as a rule, with the user's `decide`."""

    def __init__(self, name: str, kernel: Any, cost: Any, decide: Any) -> None:
        self.name, self.kernel, self.cost, self.decide = name, kernel, cost, decide

    def __call__(self, b: Builder, op: Op, *values: Value) -> Any:
        eqn = op.equation or _as_equation(op)
        stated = self.decide(eqn, *(value.layout for value in values))
        if stated is None:
            return None
        in_layouts, outs = map(tuple, stated)
        if len(in_layouts) != len(values) or not all(isinstance(x, Layout) for x in outs):
            raise LayoutError(
                f"decide of the rule of {self.name} returns {stated!r}: it must return a layout or "
                f"None for each of {len(values)} operands, and a layout for each result"
            )
        _check_results(self.name, op, outs)
        for layout in filter(None, (*in_layouts, *outs)):
            b.device.placement(layout)  # a grid that the user states must have one
        made = [
            b.replicated(x) if layout is None else b.as_sharded(x, layout)
            for x, layout in zip(values, in_layouts, strict=True)
        ]
        outs = tuple(layout.with_oob(None) for layout in outs)
        run = on_parts(self.kernel, b.device, in_layouts, outs)
        specs = [b.sharded(layout) for layout in outs]
        with b.device.active():
            ends = (tuple(x.partition for x in some) for some in ([x.spec for x in made], specs))
            sharded = shard_mapped(run, b.device.fine, *ends)
            traced = jax.make_jaxpr(sharded)(*(_storage(b, x.spec) for x in made))
        if self.cost is not None:
            b.stated = self.cost(eqn, *(x.layout for x in values))
        return b.run(lambda *xs: list(run(*xs)), made, specs, traced_collectives(traced, b.device))


def _as_equation(op: Op) -> Any:
    """Return an object like a jaxpr equation for an op, for users' rules."""
    outs = [SimpleNamespace(aval=aval) for aval in op.outs]
    return SimpleNamespace(primitive=op.primitive, params=op.params, outvars=outs)


def _storage(b: Builder, spec: Spec) -> Any:
    """Return the type of a whole storage."""
    if not isinstance(spec, Sharded):
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype)
    shape = (*spec.placement.slots, *spec.layout.local_shape)
    sharding = b.device.partitioned(spec.layout)
    return jax.ShapeDtypeStruct(shape, spec.dtype, sharding=sharding)
