"""`Function`: a function for the grid, with a cache of its compiled programs per signature."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import jax

from gridlayout.caching import Kept
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.policy import Policy, same_grid_and_tile
from gridlayout.ops.choose.chosen import Stated
from gridlayout.ops.decisions.env import Env, templates_of, trace_context
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.interpret.compiled import Compiled
from gridlayout.ops.interpret.grid_call import GridCall, spec_of, with_constants_as_operands
from gridlayout.ops.interpret.logical_jaxpr import logical_jaxpr
from gridlayout.ops.interpret.names import argument_names, function_name, traced_as
from gridlayout.ops.interpret.operands import struct
from gridlayout.ops.interpret.static import Results, StaticLeaf, bare
from gridlayout.ops.programs.report import Report
from gridlayout.sharding.device_grid import DeviceGrid

Runs = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Signature:
    """The static part of a call.

    kinds: for each array among the leaves, its layout if it is a `GridArray`, else its spec.
    """

    structure: Any
    leaves: tuple[StaticLeaf, ...]
    kinds: tuple[Any, ...]
    device: DeviceGrid
    algorithm: str | None
    rules: int

    @cached_property
    def specs(self) -> list[Spec]:
        """The spec of each array."""
        return [
            Sharded(kind, self.device.placement(kind)) if isinstance(kind, Layout) else kind
            for kind in self.kinds
        ]


class Function:
    """The compiled programs of a function, cached while it exists and shared by its `OnGrid`s.

    fn: returns the function. policy: chooses layouts; or the choices of a plan, and the default
    policy where the plan makes none.
    """

    def __init__(self, fn: Callable[[], Any], policy: Policy | Stated) -> None:
        self.fn = fn
        self.stated = policy if isinstance(policy, Stated) else None
        self.policy = same_grid_and_tile if isinstance(policy, Stated) else policy
        self.known: Kept[Any, Runs] = Kept()  # for calls whose leaves are all GridArrays
        self.programs: Kept[Signature, Compiled] = Kept()
        self.calls: Kept[Any, tuple[GridCall, list[Any], Results]] = Kept()

    def compiled(self, signature: Signature) -> Compiled:
        """Return the program of calls that have no traced operand."""
        if (found := self.programs.get(signature)) is None:
            found = Compiled(self.call, signature)
            self.programs.add(signature, found, found)
        return found

    def traced(self, operands: Sequence[Any], signature: Signature) -> Any:
        """Return the results of a call with operands traced by any transformations of JAX."""
        call, consts, results = self.call(signature)
        return results.unflatten(call(*consts, *operands))

    def report(self, signature: Signature) -> Report:
        """Return the report of a call, without running it."""
        call, consts, results = self.call(signature)
        fn = self.fn()
        names = ["constant"] * len(consts) + _array_names(fn, signature)
        named = (tuple(names), tuple(results.names), function_name(fn))
        return call.report.named(*named)

    def call(self, signature: Signature) -> tuple[GridCall, list[Any], Results]:
        """Return the call as a primitive, its constants, and the tree of its results."""
        key = signature, trace_context()
        if (found := self.calls.get(key)) is not None:
            return found
        closed, results, env = self.jaxpr(signature)
        jaxpr, consts = with_constants_as_operands(closed)
        if self.stated is not None:
            self.stated.check(Graph.of(jaxpr), signature.device)
        call = GridCall(env, jaxpr, [spec_of(jax.typeof(x)) for x in consts] + signature.specs)
        found = call, consts, results
        if not any(isinstance(x, jax.core.Tracer) for x in consts):
            self.calls.add(key, found, call.program)
        return found

    def jaxpr(self, signature: Signature) -> tuple[Any, Results, Env]:
        """Return the jaxpr of the function on logical shapes, its results' tree, and the `Env`."""
        fn = self.fn()
        env = Env(
            signature.device,
            self.policy,
            templates_of(kind for kind in signature.kinds if isinstance(kind, Layout)),
            signature.algorithm,
            context=trace_context(),
            stated=self.stated,
        )

        results = Results(None)

        @traced_as(fn, _array_names(fn, signature))
        def logical(*arrays: Any) -> Any:
            nonlocal results
            leaves = list(arrays)
            for i, leaf in signature.leaves:
                leaves.insert(i, leaf)
            args, kwargs = jax.tree.unflatten(signature.structure, leaves)
            named = {name: bare(x) for name, x in kwargs.items()}
            results, found = Results.of(fn(*map(bare, args), **named))
            return results.arrays_alone(found)  # JAX's errors name the path of a result

        try:
            closed = logical_jaxpr(logical, map(struct, signature.specs), signature.device)
        except Exception as error:  # JAX's own, about logical shapes: add the call to it
            if "passed to shard_map" in str(error):
                raise LayoutError(
                    f"{function_name(fn)} calls jax.shard_map or jax.pmap, which gl.on_grid does "
                    "not support: call it on x.storage outside, write the part with gl.map_shards, "
                    "or map with jax.vmap, of which devices compute their parts"
                ) from error
            error.add_note(_described(fn, signature))
            raise
        pairs = _nexts(signature, results.arrays_alone(closed.out_avals))
        first = len(closed.consts)
        return closed, results, replace(env, nexts=tuple((k, first + n) for k, n in pairs))


class _EqualFunctions:
    """Weak references to equal functions, such as bound methods; a call returns a live one."""

    def __init__(self) -> None:
        self._refs: list[weakref.ref[Any]] = []

    def add(self, fn: Any) -> None:
        """Add a function."""
        alive = [ref for ref in self._refs if ref() is not None and ref() is not fn]
        self._refs = [*alive, weakref.ref(fn)]

    def __call__(self) -> Any:
        return next(fn for ref in self._refs if (fn := ref()) is not None)


_functions: WeakKeyDictionary[Any, tuple[_EqualFunctions, dict[Any, Function]]] = (
    WeakKeyDictionary()
)
_lock = RLock()  # the hash of a function may be Python code that lifts another one


def function_of(fn: Callable[..., Any], policy: Policy | Stated) -> Function:
    """Return the cached `Function` of a function and a policy, while the function exists."""
    try:
        with _lock:
            equals, known = _functions.setdefault(fn, (_EqualFunctions(), {}))
            equals.add(fn)
            return known.setdefault(policy, Function(equals, policy))
    except TypeError:  # a function that can't be hashed, or not weakly referenced, is not shared
        return Function(lambda: fn, policy)


def _array_names(fn: Any, signature: Signature) -> list[str]:
    """Return the names of the arrays of a call."""
    known = dict(signature.leaves)
    names = enumerate(argument_names(fn, signature.structure))
    return [name for k, name in names if k not in known]


def _nexts(signature: Signature, shapes: Any) -> list[tuple[int, int]]:
    """Return pairs of a result's number and the number of the array whose next value it is.

    All results together, else each item of a container of results, are matched with the first free
    argument of the same structure, shapes and types. Trees with one leaf are not matched.
    """
    leaves: list[Any] = list(range(len(signature.kinds)))
    for i, _ in signature.leaves:
        leaves.insert(i, None)  # a static leaf: the structure then differs
    args, kwargs = jax.tree.unflatten(signature.structure, leaves)
    given = [jax.tree.flatten(each) for each in (*args, *kwargs.values())]
    structs, structure = jax.tree.flatten(shapes)
    whole = jax.tree.unflatten(structure, range(len(structs)))
    types = [(each.shape, each.dtype) for each in structs]

    def next_of(part: Any) -> list[tuple[int, int]]:
        outs: list[int]
        own: Any
        outs, own = jax.tree.flatten(part)
        for k, (ins, other) in enumerate(given):
            kinds = [signature.kinds[n] for n in ins]
            is_same = own == other and len(outs) > 1
            if is_same and [types[n] for n in outs] == [(x.shape, x.dtype) for x in kinds]:
                del given[k]
                return list(zip(outs, ins, strict=True))
        return []

    if found := next_of(whole):
        return found
    parts = jax.tree.leaves(whole, is_leaf=lambda x: x is not whole)
    return [pair for part in parts for pair in next_of(part)]


def _described(fn: Any, signature: Signature) -> str:
    """Return the note about a call for an error: each array's logical shape and layout."""
    lines = [f"on the grid, {function_name(fn)} was called with"]
    for name, kind in zip(_array_names(fn, signature), signature.kinds, strict=True):
        dims = f"{kind.dtype.name}[{','.join(map(str, kind.shape))}]"
        laid = f" in {kind!r}" if isinstance(kind, Layout) else ", not laid out"
        lines.append(f"  {name}: {dims}{laid}")
    return "\n".join(lines)
