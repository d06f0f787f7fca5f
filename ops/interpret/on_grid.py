"""`on_grid`: any JAX function on laid-out arrays.

The function is traced on the logical shapes to a jaxpr, and the jaxpr is evaluated on `GridArray`s,
one rule a lax primitive. Concrete calls go through `jax.jit`, which caches by function, shapes and
layouts.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

from gridlayout.arguments import one_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.placing import check_device, described
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.policy import Policy, same_grid_and_tile
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.interpret.agreeing import agree_on_call
from gridlayout.ops.interpret.derivatives import (
    differentiable,
    pair_of,
    planned,
    with_constants_as_operands,
)
from gridlayout.ops.moves.packing import automatic
from gridlayout.ops.moves.spaces import brought_back, fetched
from gridlayout.ops.products.algorithms import ALGORITHMS
from gridlayout.ops.programs.report import Report
from gridlayout.ops.rules.table import rules_version
from gridlayout.sharding.device_grid import DeviceGrid

# Whether a function is being traced for the grid: a lifted function called inside just runs.
_tracing: ContextVar[bool] = ContextVar("gridlayout_tracing", default=False)


def on_grid(
    fn: Callable[..., Any],
    device: DeviceGrid | None = None,
    policy: Policy | None = None,
    algorithm: str | None = None,
) -> OnGrid:
    """`fn`, a plain JAX function, running on `GridArray`s.

    fn: written for logical arrays. device: where plain arrays go when none is a `GridArray`.
    policy: chooses layouts (`gridlayout.ops.decisions.policy`). algorithm: of all products, a
    name in `gl.ALGORITHMS`; by default the cheapest one. Arguments may be pytrees; plain arrays
    among them are laid out by the policy, scalars stay as they are, and leaves that are no arrays
    are static. Results of rank 1 and more are `GridArray`s, scalars are `jax.Array`s.
    `LayoutError` when there is no device, or more than one.

    >>> import jax.numpy as jnp, numpy as np
    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> x = put(np.arange(35.0).reshape(5, 7), GridLayout((5, 7), grid=(2, 4)), DeviceGrid((1,)))
    >>> on_grid(lambda x: jnp.sum(x * 2, axis=1))(x).to_logical().tolist()
    [42.0, 140.0, 238.0, 336.0, 434.0]
    """
    if isinstance(fn, OnGrid):
        fn = fn.fn
    return OnGrid(fn, device, policy, algorithm)


@dataclass(frozen=True)
class _Static:
    """The part of a call that is known when it is traced."""

    structure: Any
    leaves: tuple[tuple[int, Any], ...]
    device: DeviceGrid
    algorithm: str | None
    rules: int


_FORWARD = (
    "around gl.on_grid derivatives are reverse-mode; forward mode goes inside: "
    "gl.on_grid(lambda x, t: jax.jvp(f, (x,), (t,)))"
)


class OnGrid:
    """A function lifted to the grid; see `gl.on_grid`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        device: DeviceGrid | None,
        policy: Policy | None,
        algorithm: str | None = None,
    ) -> None:
        if not callable(fn):
            raise LayoutError(f"on_grid takes a function, not {type(fn).__name__}")
        if device is not None:
            check_device(device)
        if policy is not None and not callable(policy):
            raise LayoutError(
                f"policy {policy!r} must be a function of (shape, dtype, template, device) that "
                "gives a layout, or None"
            )
        if algorithm is not None:
            one_of(algorithm, ALGORITHMS, "algorithm")
        self.fn, self.device, self.algorithm = fn, device, algorithm
        self.__wrapped__ = fn
        self._program = _program(fn, policy or same_grid_and_tile)

    def __repr__(self) -> str:
        return f"on_grid({getattr(self.fn, '__name__', repr(self.fn))})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result on the grid."""
        if (call := self._split(args, kwargs)) is None:
            return self.fn(*args, **kwargs)
        arrays, static = call
        static.device.check_has_devices(repr(self))
        if any(isinstance(_data(x), jax.ShapeDtypeStruct) for x in arrays):
            raise LayoutError(f"{self!r}: an argument has a shape and no data; .report takes it")
        agree_on_call(self, arrays, static)
        with static.device.active():
            try:
                return _given(self._program.run(_kept(arrays, fetched), static), brought_back)
            except TypeError as error:  # JAX's own, of custom_vjp, which the user never wrote
                if any(isinstance(x, ad.JVPTracer) for x in jax.tree.leaves(arrays)):
                    error.add_note(_FORWARD)
                raise

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """What a call with these arguments does, primitive by primitive, without running it.

        An array may be a `jax.ShapeDtypeStruct`, or a `GridArray` that `gl.put` makes of one, or
        the `gl.Layout` that it is in, where the device grid is known: so devices are not needed.
        """
        args, kwargs = self._described(args, kwargs)
        if (call := self._split(args, kwargs)) is None:
            raise LayoutError("report: no argument is a GridArray, and on_grid was given no device")
        dynamic, static = call
        with static.device.active():
            return self._program.report(dynamic, static)

    def _described(self, args: Any, kwargs: Any) -> Any:
        """The arguments, layouts among them made arrays without data."""
        is_leaf = lambda x: _is_grid(x) or isinstance(x, Layout)  # noqa: E731
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=is_leaf)
        found = [self.device, *(x.device for x in leaves if _is_grid(x))]
        device = next((each for each in found if each is not None), None)
        if device is None:
            return args, kwargs
        made = [described(x, device) if isinstance(x, Layout) else x for x in leaves]
        return jax.tree.unflatten(structure, made)

    def _split(self, args: Any, kwargs: Any) -> tuple[list[Any], _Static] | None:
        """The arrays and the static rest of a call; None when it is to run as plain JAX."""
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_grid)
        devices = {x.device for x in leaves if _is_grid(x)}
        if devices and _tracing.get():
            raise LayoutError(
                f"{self!r}: a GridArray inside a function that runs on the grid is one it closes "
                "over; give it to the function as an argument"
            )
        if self.device is not None:
            devices.add(self.device)
        if len(devices) > 1:
            raise LayoutError(f"{self!r}: the arrays are on different device grids, {devices}")
        if not devices:
            if _tracing.get():
                return None
            raise LayoutError(
                f"{self!r}: no argument is a GridArray, so there is no device grid: put one with "
                "gl.put, or give gl.on_grid(fn, device=...)"
            )
        device = devices.pop()
        dynamic = [automatic(x, device) for x in leaves if _is_array(x)]
        static = tuple((i, x) for i, x in enumerate(leaves) if not _is_array(x))
        for _, x in static:
            _check_static(x)
        for x in filter(_is_grid, dynamic):
            x.check_rank()
            if np.ndim(x.storage) > len(x.layout.physical_shape):
                raise LayoutError(f"{x!r} has batch dims: map over them with jax.vmap")
        return dynamic, _Static(structure, static, device, self.algorithm, rules_version())


class _Program:
    """What is compiled of a function: kept as long as the function, and shared by its `OnGrid`s."""

    def __init__(self, fn: Any, policy: Policy) -> None:
        self.fn, self.policy = fn, policy  # fn: a reference to the function that does not hold it
        self.reports: dict[Any, Report] = {}
        self.run = partial(jax.jit, static_argnums=(1,))(self.traced)

    def traced(self, kept: Sequence[Any], static: _Static) -> Any:
        """The call as a traced program: jit's view of it."""
        dynamic = _given(kept)
        closed, shapes, env = self.jaxpr(dynamic, static)
        outs = differentiable(env, closed, list(map(_pair, dynamic)))
        arrays = [
            GridArray(array, spec.layout, static.device) if isinstance(spec, Sharded) else array
            for spec, array in outs
        ]
        return _kept(jax.tree.unflatten(jax.tree.structure(shapes), arrays))

    def report(self, dynamic: Sequence[Any], static: _Static) -> Report:
        """The report of a call; kept, like what jit compiles."""
        avals = tuple(map(_aval, dynamic))
        layouts = tuple(x.layout if _is_grid(x) else None for x in dynamic)
        key = (static, layouts, tuple((np.shape(a), jnp.result_type(a)) for a in avals))
        if key not in self.reports:
            closed, _, env = self.jaxpr(dynamic, static)
            jaxpr, consts = with_constants_as_operands(closed)
            pairs = [*map(pair_of, consts), *map(_pair, dynamic)]
            if len(self.reports) >= 64:
                self.reports.clear()
            self.reports[key] = Report.of(planned(env, jaxpr, [spec for spec, _ in pairs]))
        return self.reports[key]

    def jaxpr(self, dynamic: Sequence[Any], static: _Static) -> tuple[Any, Any, Env]:
        """The function on logical shapes: its jaxpr, its results' shapes, and the environment."""
        fn = self.fn()
        template = next((x.layout for x in dynamic if _is_grid(x)), None)
        env = Env(static.device, self.policy, template, static.algorithm)

        def logical(*arrays: Any) -> Any:
            leaves = list(arrays)
            for i, leaf in static.leaves:
                leaves.insert(i, leaf)
            args, kwargs = jax.tree.unflatten(static.structure, leaves)
            return fn(*args, **kwargs)

        token = _tracing.set(True)
        try:
            avals = [_aval(x) for x in dynamic]
            closed, shapes = jax.make_jaxpr(logical, return_shape=True)(*avals)
        except Exception as error:  # JAX's own, of logical shapes: say where they come from
            if "passed to shard_map" in str(error):
                raise LayoutError(
                    f"{_name(fn)} calls jax.shard_map, which gl.on_grid does not support: call it "
                    "on x.storage outside, or write the part with gl.map_shards"
                ) from error
            error.add_note(_described(fn, dynamic))
            raise
        finally:
            _tracing.reset(token)
        return closed, shapes, env


def _pair(x: Any) -> Any:
    """A value at run time: its spec, and the storage or the whole array."""
    if not _is_grid(x):
        return pair_of(x)
    return Sharded(x.layout, x.device.placement(x.layout.core_shape)), x.storage


def _check_static(x: Any) -> None:
    try:
        hash(x)
    except TypeError:
        raise LayoutError(
            f"the argument {x!r} is no array, so it is static, and a {type(x).__name__} can't be "
            "hashed, which programs are remembered by: let the function close over it "
            "(functools.partial), or give a tuple or a frozen dataclass"
        ) from None


def _name(fn: Any) -> str:
    return str(getattr(fn, "__name__", repr(fn)))


def _described(fn: Any, values: Sequence[Any]) -> str:
    """A call as an error's note tells it: logical shapes, and each array's layout."""
    lines = [f"on the grid, {_name(fn)} was called with"]
    for x in values:
        dims = f"{jnp.result_type(x).name}[{','.join(map(str, jnp.shape(x)))}]"
        lines.append(f"  {dims} in {x.layout!r}" if _is_grid(x) else f"  {dims}, not laid out")
    return "\n".join(lines)


_programs: WeakKeyDictionary[Any, dict[Policy, _Program]] = WeakKeyDictionary()


def _program(fn: Callable[..., Any], policy: Policy) -> _Program:
    try:
        return _programs.setdefault(fn, {}).setdefault(policy, _Program(weakref.ref(fn), policy))
    except TypeError:  # a function that can't be hashed, or not weakly referenced, is not shared
        return _Program(lambda: fn, policy)


@partial(
    jax.tree_util.register_dataclass, data_fields=["storage"], meta_fields=["layout", "device"]
)
@dataclass(frozen=True)
class _Kept:
    """A `GridArray` on its way across our own jit: what its layout says of the padding stays."""

    storage: Any
    layout: Layout
    device: DeviceGrid


def _as_it_is(storage: Any, layout: Layout, device: DeviceGrid) -> Any:
    return storage


def _kept(tree: Any, at: Callable[..., Any] = _as_it_is) -> Any:
    def keep(x: Any) -> Any:
        return _Kept(at(x.storage, x.layout, x.device), x.layout, x.device) if _is_grid(x) else x

    return jax.tree.map(keep, tree, is_leaf=_is_grid)


def _given(tree: Any, at: Callable[..., Any] = _as_it_is) -> Any:
    def give(x: Any) -> Any:
        if not isinstance(x, _Kept):
            return x
        return GridArray(at(x.storage, x.layout, x.device), x.layout, x.device)

    return jax.tree.map(give, tree, is_leaf=lambda x: isinstance(x, _Kept))


def _is_grid(x: Any) -> bool:
    return isinstance(x, GridArray)


def _data(x: Any) -> Any:
    return x.storage if _is_grid(x) else x


def _is_array(x: Any) -> bool:
    if isinstance(x, (GridArray, jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)):
        return True
    return isinstance(x, (bool, int, float, complex))


def _aval(x: Any) -> Any:
    if _is_grid(x):
        return jax.ShapeDtypeStruct(x.shape, x.dtype)
    if isinstance(x, jax.Array):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.aval.weak_type)
    return x
