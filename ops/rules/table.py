"""The rules: how each lax primitive runs on storage, per shard, with padding carried as a fact.

A rule is a function `(builder, op, *values)` that writes a decision down and gives its results, or
`None` where it knows none for these values. To add one, write it in the module of its kind, with
its flops, and name it here; users add theirs with `def_rule`. Primitives without a rule fall back,
and the report says so.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.extend.core import primitives
from jax.interpreters import ad

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.map_shards import on_parts
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import (
    Flops,
    Rule,
    nothing,
    of_convolution,
    of_fft,
    of_last,
    of_product,
    per_operand,
    per_result,
)
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec, is_of_keys
from gridlayout.ops.decisions.traced import traced_collectives
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.products.dot_general import dot_general
from gridlayout.ops.rules.along import ALONG
from gridlayout.ops.rules.control import cond, scan, while_
from gridlayout.ops.rules.convolution import conv_general_dilated
from gridlayout.ops.rules.elementwise import ELEMENTWISE, barrier, elementwise, key
from gridlayout.ops.rules.empty import EMPTY
from gridlayout.ops.rules.fourier import fft
from gridlayout.ops.rules.linalg import LINALG, MATRICES
from gridlayout.ops.rules.parts import PARTS
from gridlayout.ops.rules.pooling import POOLING
from gridlayout.ops.rules.ragged import RAGGED
from gridlayout.ops.rules.random import random_gamma
from gridlayout.ops.rules.reductions import (
    NEUTRAL,
    OVER_MAPPED,
    bitwise,
    own_function,
    reduction,
)
from gridlayout.ops.rules.shapes import (
    broadcast_in_dim,
    identity,
    reshape,
    squeeze,
    transpose,
    with_layout,
)
from gridlayout.ops.rules.slices.indexing import INDEXING
from gridlayout.ops.rules.slices.slicing import SLICING
from gridlayout.ops.rules.vectors import VECTORS
from gridlayout.sharding.cost import Cost

# What only says how JAX is to shard a logical array.
SHARDED = ("reshard", "sharding_constraint", "mesh_cast", "device_put")
# What is tried first, and declines where it is not the case it is for; then the general rules.
_FIRST: tuple[dict[str, Rule], ...] = (VECTORS, MATRICES)
_GENERAL: tuple[dict[str, Rule], ...] = (
    dict.fromkeys(ELEMENTWISE, Rule(elementwise, per_result)),
    dict.fromkeys(NEUTRAL, Rule(reduction, per_operand)),
    {"reduce_xor": Rule(bitwise, per_operand), "reduce": Rule(own_function, per_operand)},
    *(ALONG, PARTS, INDEXING, SLICING, POOLING, LINALG, RAGGED),
    {"conv_general_dilated": Rule(conv_general_dilated, of_convolution)},
    {"dot_general": Rule(dot_general, of_product), "fft": Rule(fft, of_fft)},
    {"broadcast_in_dim": Rule(broadcast_in_dim, nothing), "transpose": Rule(transpose, nothing)},
    {"squeeze": Rule(squeeze, nothing), "reshape": Rule(reshape, nothing)},
    dict.fromkeys(SHARDED, Rule(identity, nothing)),
    {"optimization_barrier": Rule(barrier, nothing), "with_layout": Rule(with_layout, nothing)},
    dict.fromkeys(("random_seed", "random_wrap", "random_fold_in"), Rule(key, per_result)),
    {"random_gamma": Rule(random_gamma, per_result), **OVER_MAPPED},
    {"scan": Rule(scan, nothing), "while": Rule(while_, nothing), "cond": Rule(cond, nothing)},
)


def _merged(tables: Iterable[dict[str, Rule]]) -> dict[str, Rule]:
    """The tables as one; an error where two of them name a primitive."""
    found: dict[str, Rule] = {}
    for table in tables:
        if twice := found.keys() & table.keys():
            raise ValueError(f"rules are given twice for {', '.join(sorted(twice))}")
        found |= table
    return found


def _in_order(*layers: Iterable[dict[str, Rule]]) -> dict[str, tuple[Rule, ...]]:
    """The rules of each primitive in the order in which they are tried."""
    found: dict[str, tuple[Rule, ...]] = {}
    for layer in layers:
        for name, rule in _merged(layer).items():
            found[name] = (*found.get(name, ()), rule)
    return found


class _Rules(UserDict[str, tuple[Rule, ...]]):
    """Rules by primitive. version: grows with every change, so that no program planned before is
    taken for one of now.
    """

    version = 0

    def __setitem__(self, name: str, rules: tuple[Rule, ...]) -> None:
        super().__setitem__(name, rules)
        self.version += 1

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.version += 1


RULES = _Rules(_in_order(_FIRST, _GENERAL))


def rules_version() -> int:
    """A number that changes with the rules."""
    return RULES.version


def def_rule(
    primitive: core.Primitive | str,
    cost: Callable[..., Cost] | None = None,
    decide: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a lax primitive a rule, in place of the one it has or of the fallback.

    primitive: a `jax.extend.core.Primitive`, or its name. The decorated function is called as
    `rule(eqn, *values)`: the equation of the jaxpr (`eqn.params`; `eqn.outvars[0].aval` has shape
    and dtype), and its operands, `GridArray`s or, where no core holds them, plain arrays. It
    returns the result, a `GridArray` or an array, or a list of them if the primitive has several;
    or None, and the primitive runs as it would without this rule. `gl.map_shards`, `gl.relayout`
    and `gl.numpy` are there to write it with. What it returns, and sends, is found once, by tracing
    it on whole storages, and remembered.

    decide: states the decision instead: `decide(eqn, *layouts)` gives the layouts that the operands
    are wanted in, None for what every core gets whole, and those of the results, or None where it
    declines. The decorated function is then one of each core's buffers, as in `gl.map_shards`,
    which runs beside the other kernels of the program.

    cost: `cost(eqn, *layouts) -> gl.Cost`, what the report says of it. Derivatives are taken of the
    primitive, not of the rule. `LayoutError` for what is no primitive, with the nearest names, and
    where a result has another shape or dtype than the primitive's.

    >>> import jax, numpy as np
    >>> from gridlayout import DeviceGrid, GridLayout, map_shards, on_grid, put
    >>> before = RULES["ceil"]
    >>> @def_rule("ceil")
    ... def rule(eqn, x):
    ...     return map_shards(lambda shard: -jax.numpy.floor(-shard), x, out=x.layout)
    >>> x = put(np.float32([0.25, 1.5]), GridLayout((2,), grid=(2,)), DeviceGrid((1,)))
    >>> on_grid(jax.lax.ceil)(x).to_logical().tolist()
    [1.0, 2.0]
    >>> RULES["ceil"] = before
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
        before = RULES.get(name, ())
        counted = before[0].flops if before else nothing
        made = _UserRule(name, rule, cost) if decide is None else _Kernel(name, rule, cost, decide)
        RULES[name] = (Rule(made, counted), *before)
        return rule

    return define


def _check_known(name: str) -> None:
    """`LayoutError` for what is no primitive's name: neither JAX's, nor one with a derivative."""
    found = {getattr(primitives, each) for each in dir(primitives) if each.endswith("_p")}
    known = {*RULES, *REASONS, *_WITHOUT_RULE, *(p.name for p in (*found, *ad.primitive_jvps))}
    if name in known:
        return
    near = get_close_matches(name, sorted(known), 3, 0.5)
    meant = f", such as {', '.join(map(repr, near))}" if near else ""
    raise LayoutError(
        f"def_rule: {name!r} is no primitive's name; give one that jax.make_jaxpr prints{meant}, "
        "or the jax.extend.core.Primitive itself, if it is your own"
    )


LOOPS = ("scan", "while", "cond")


def is_of_user(rule: Any) -> bool:
    """Whether a user gave it."""
    return isinstance(rule, (_UserRule, _Kernel))


def rules_of(op: Op) -> tuple[Rule, ...]:
    """The rules for an op in the order in which they are tried; none where it falls back."""
    rules = RULES.get(op.name, ())
    has_keys = any(map(is_of_keys, (*op.ins, *op.outs)))
    if op.name in LOOPS or (op.name in ELEMENTWISE and not has_keys):
        return rules
    if op.name != "with_layout" and any(0 in aval.shape for aval in (*op.ins, *op.outs)):
        return (EMPTY[op.name], *rules) if op.name in EMPTY else ()
    return rules if op.name in _TAKES_KEYS or not has_keys else ()


_TAKES_KEYS = (
    "random_seed",
    "random_wrap",
    "random_fold_in",
    "random_gamma",
    "optimization_barrier",
)


def flops(op: Op) -> int:
    """Floating-point operations on logical elements."""
    rules = RULES.get(op.name)
    return rules[0].flops(op) if rules else _WITHOUT_RULE.get(op.name, nothing)(op)


_WITHOUT_RULE: dict[str, Flops] = {
    "cholesky_update": of_last(4),
    "select_and_scatter": per_operand,
}


# Why what has a rule, or could have one, falls back: the report says it.
REASONS: dict[str, str] = {
    **dict.fromkeys(LINALG, "one matrix, of which no dim can stay spread"),
    **dict.fromkeys(("eig", "eigh"), "one matrix, whose reduction reads the rest for each column"),
    **dict.fromkeys(("cholesky", "lu"), "one matrix, which panels would take longer for"),
    **dict.fromkeys(("qr", "svd"), "one matrix: by its rows only if tall, and not full_matrices"),
    "sort": "one vector, which merging blocks would take longer for",
    "pallas_call": "a kernel chooses its blocks: give it each core's with gl.map_shards",
    **dict.fromkeys(("pure_callback", "io_callback"), "the host gets the whole array"),
}


class _UserRule:
    """A user's function as a rule: decided by abstract evaluation, run on whole storages."""

    def __init__(self, name: str, rule: Any, cost: Any) -> None:
        self.name, self.rule, self.cost = name, rule, cost

    def __call__(self, b: Builder, op: Op, *values: Value) -> Any:
        made = [b.on_cores(x) if x.layout is not None else b.replicated(x) for x in values]
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
            _check(self.name, op, outs)
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


def _check(name: str, op: Op, outs: Sequence[Any]) -> None:
    """`LayoutError` unless results are of the primitive's shapes and dtypes."""
    if len(outs) != len(op.outs):
        raise LayoutError(
            f"the rule of {name} returns {len(outs)} results, the primitive {len(op.outs)}"
        )
    for out, aval in zip(outs, op.outs, strict=True):
        if (jnp.shape(out), jnp.result_type(out)) != (aval.shape, aval.dtype):
            dims = f"{aval.dtype}[{','.join(map(str, aval.shape))}]"
            raise LayoutError(f"the rule of {name} returns {out!r}, but the primitive gives {dims}")


class _Kernel:
    """A user's function of each core's buffers as a rule, with the decision that it states."""

    def __init__(self, name: str, kernel: Any, cost: Any, decide: Any) -> None:
        self.name, self.kernel, self.cost, self.decide = name, kernel, cost, decide

    def __call__(self, b: Builder, op: Op, *values: Value) -> Any:
        eqn = op.equation or _as_equation(op)
        stated = self.decide(eqn, *(value.layout for value in values))
        if stated is None:
            return None
        wanted, outs = map(tuple, stated)
        if len(wanted) != len(values) or not all(isinstance(x, Layout) for x in outs):
            raise LayoutError(
                f"the rule of {self.name} decides {stated!r}: it must give a layout or None for "
                f"each of {len(values)} operands, and a layout for each result"
            )
        _check(self.name, op, outs)
        made = [
            b.replicated(x) if layout is None else b.on_cores(x, layout)
            for x, layout in zip(values, wanted, strict=True)
        ]
        outs = tuple(layout.with_oob(None) for layout in outs)
        run = on_parts(self.kernel, b.device, wanted, outs)
        specs = [b.sharded(layout) for layout in outs]
        with b.device.active():
            whole = jax.shard_map(
                run,
                mesh=b.device.fine,
                in_specs=tuple(x.spec.partition for x in made),
                out_specs=tuple(spec.partition for spec in specs),
                check_vma=False,
            )
            traced = jax.make_jaxpr(whole)(*(_storage(b, x.spec) for x in made))
        if self.cost is not None:
            b.stated = self.cost(eqn, *(x.layout for x in values))
        return b.run(lambda *xs: list(run(*xs)), made, specs, traced_collectives(traced, b.device))


def _as_equation(op: Op) -> Any:
    """An op as a user's rule takes it."""
    outs = [SimpleNamespace(aval=aval) for aval in op.outs]
    return SimpleNamespace(primitive=op.primitive, params=op.params, outvars=outs)


def _storage(b: Builder, spec: Spec) -> Any:
    """The type of a whole storage."""
    if not isinstance(spec, Sharded):
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype)
    shape = (*spec.placement.slots, *spec.layout.local_shape)
    sharding = b.device.partitioned(spec.layout)
    return jax.ShapeDtypeStruct(shape, spec.dtype, sharding=sharding)
