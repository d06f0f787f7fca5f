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
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from gridlayout.arguments import one_of
from gridlayout.draw.svg import Drawing
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray, check_no_stack
from gridlayout.ops.array.placing import described
from gridlayout.ops.array.policy import Policy, same_grid_and_tile
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.interpret.agreeing import agree_on_call
from gridlayout.ops.interpret.compiled import Compiled
from gridlayout.ops.interpret.grid_call import (
    GridCall,
    spec_of,
    struct,
    with_constants_as_operands,
)
from gridlayout.ops.interpret.names import argument_names, function_name, result_names
from gridlayout.ops.moves.packing import automatic
from gridlayout.ops.products.algorithms import ALGORITHMS
from gridlayout.ops.programs.report import Report
from gridlayout.ops.rules.table import rules_version
from gridlayout.sharding.device_grid import DeviceGrid, check_device

# Whether a function is being traced for the grid: a lifted function called inside just runs.
_tracing: ContextVar[bool] = ContextVar("gridlayout_tracing", default=False)
_MOST_KEPT = 1024  # programs of a function
_OPTIONS = (
    *("jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_dtype_promotion"),
    *("jax_numpy_rank_promotion", "jax_threefry_partitionable", "jax_default_prng_impl"),
)


def on_grid(
    fn: Callable[..., Any],
    device: DeviceGrid | None = None,
    policy: Policy | None = None,
    algorithm: str | None = None,
) -> OnGrid:
    """`fn`, a plain JAX function, running on `GridArray`s.

    fn: written for logical arrays. device: where plain arrays go when none is a `GridArray`.
    policy: chooses layouts (`gridlayout.ops.array.policy`). algorithm: of all products, a
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
    """The part of a call that is known when it is traced.

    kinds: of each array among the leaves, its layout if it is a `GridArray`, else its spec.
    """

    structure: Any
    leaves: tuple[tuple[int, Any], ...]
    kinds: tuple[Any, ...]
    device: DeviceGrid
    algorithm: str | None
    rules: int

    @cached_property
    def specs(self) -> list[Spec]:
        """What is known of each array."""
        return [
            Sharded(kind, self.device.placement(kind.core_shape))
            if isinstance(kind, Layout)
            else kind
            for kind in self.kinds
        ]


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
        self._last: tuple[Any, Any] = None, None

    def __repr__(self) -> str:
        return f"on_grid({getattr(self.fn, '__name__', repr(self.fn))})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result on the grid."""
        # Arguments that are arrays have no structure but their number.
        same, flat = None if kwargs else self._by_layouts(args, len(args)), None
        if same is None:
            flat = jax.tree.flatten((args, kwargs))
            same = self._by_layouts(*flat)
        if same is not None and not _tracing.get():
            key, storages = same
            last = self._last  # most calls are as the one before
            known = last[1] if key == last[0] else self._program.known.get(key)
            if known is not None:
                self._last = key, known
                try:
                    return known(storages)
                except TypeError:  # of one without data, which is refused below
                    if jax.ShapeDtypeStruct not in set(map(type, storages)):
                        raise
        if (call := self._split(*(flat or jax.tree.flatten((args, kwargs))))) is None:
            return self.fn(*args, **kwargs)
        operands, static = call
        (device := static.device).check_has_devices(repr(self))
        if any(map(_has_no_data, operands)):
            raise LayoutError(f"{self!r}: an argument has a shape and no data; .report takes it")
        if any(isinstance(x, jax.core.Tracer) for x in operands):
            return self._program.traced(operands, static)
        agree_on_call(self, operands, static)
        compiled = self._program.compiled(static)
        found = compiled([x.storage if _is_grid(x) else device.whole(x) for x in operands])
        if same is not None and len(device.processes) == 1:
            _remember(self._program.known, same[0], compiled)
        return found

    def _by_layouts(self, leaves: Sequence[Any], structure: Any) -> tuple[Any, list[Any]] | None:
        """What calls with such arguments are known by, and their storages; of GridArrays alone."""
        device, kinds, storages = self.device, [], []
        for x in leaves:
            if type(x) is not GridArray or (x.device is not device and device is not None):
                return None
            device = x.device
            kinds.append(x.layout)
            storages.append(x.storage)
        return (structure, tuple(kinds), device, self.algorithm, rules_version()), storages

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The call, lowered and not run: a `jax.stages.Lowered`, as `jax.jit(fn).lower` gives.

        Its `compile()` takes the same arguments, all of which must be arrays.
        """
        return jax.jit(self).lower(*args, **kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """What a call with these arguments does, primitive by primitive, without running it.

        An array may be a `jax.ShapeDtypeStruct`, or a `GridArray` that `gl.put` makes of one, or
        the `gl.Layout` that it is in, where the device grid is known: so devices are not needed.
        """
        args, kwargs = self._described(args, kwargs)
        if (call := self._split(*jax.tree.flatten((args, kwargs)))) is None:
            raise LayoutError("report: no argument is a GridArray, and on_grid was given no device")
        return self._program.report(call[1])

    def draw(self, *args: Any, path: str | Path | None = None, **kwargs: Any) -> Drawing:
        """A drawing of what a call with these arguments does: `report(...).draw(path)`.

        >>> from gridlayout import DeviceGrid, GridLayout
        >>> lifted = on_grid(lambda x: x + x, DeviceGrid((1,)))
        >>> lifted.draw(GridLayout((5, 7), grid=(2, 4))).title
        'a function on the grid'
        """
        return self.report(*args, **kwargs).draw(path)

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

    def _split(self, leaves: Sequence[Any], structure: Any) -> tuple[list[Any], _Static] | None:
        """The arrays and the static rest of a call; None when it is to run as plain JAX."""
        if (device := self._device_of(leaves)) is None:
            return None
        operands, kinds, static = [], [], []
        for i, x in enumerate(leaves):
            if _is_grid(x):
                check_no_stack(x)
                operands.append(x)
                kinds.append(x.layout)
            elif _is_array(x):
                operands.append(automatic(x, device))
                kinds.append(_plain(operands[-1]))
            else:
                _check_static(x)
                static.append((i, x))
        return operands, _Static(
            structure, tuple(static), tuple(kinds), device, self.algorithm, rules_version()
        )

    def _device_of(self, leaves: Sequence[Any]) -> DeviceGrid | None:
        """The device grid of a call; None where a function that is being traced is to just run."""
        found = self.device
        for x in leaves:
            if not _is_grid(x):
                continue
            if _tracing.get():
                raise LayoutError(
                    f"{self!r}: a GridArray inside a function that runs on the grid is one it "
                    "closes over; give it to the function as an argument"
                )
            if found is None:
                found = x.device
            elif x.device is not found and x.device != found:
                raise LayoutError(
                    f"{self!r}: the arrays are on different device grids, {found!r} and "
                    f"{x.device!r}"
                )
        if found is None and not _tracing.get():
            raise LayoutError(
                f"{self!r}: no argument is a GridArray, so there is no device grid: put one with "
                "gl.put, or give gl.on_grid(fn, device=...)"
            )
        return found


class _Program:
    """What is compiled of a function: kept as long as the function, and shared by its `OnGrid`s."""

    def __init__(self, fn: Any, policy: Policy) -> None:
        self.fn, self.policy = fn, policy  # fn: a reference to the function that does not hold it
        self.known: dict[Any, Compiled] = {}  # of calls by their layouts alone
        self.programs: dict[_Static, Compiled] = {}
        self.calls: dict[Any, tuple[GridCall, list[Any], Any]] = {}

    def compiled(self, static: _Static) -> Compiled:
        """The program of calls none of whose operands is traced."""
        if static not in self.programs:
            _remember(self.programs, static, Compiled(self, static))
        return self.programs[static]

    def traced(self, operands: Sequence[Any], static: _Static) -> Any:
        """A call with traced operands, by whichever transformations of JAX."""
        call, consts, structure = self.call(static)
        return jax.tree.unflatten(structure, call(*consts, *operands))

    def report(self, static: _Static) -> Report:
        """What a call does, without running it."""
        call, consts, results = self.call(static)
        fn, leaves = self.fn(), dict(static.leaves)
        names = ["constant"] * len(consts) + [
            name for k, name in enumerate(argument_names(fn, static.structure)) if k not in leaves
        ]
        named = (tuple(names), tuple(result_names(results)), function_name(fn))
        return call.report.named(*named)

    def call(self, static: _Static) -> tuple[GridCall, list[Any], Any]:
        """The call as a primitive, its first operands, and the structure of its results."""
        key = static, _options()
        if (found := self.calls.get(key)) is not None:
            return found
        closed, shapes, env = self.jaxpr(static)
        jaxpr, consts = with_constants_as_operands(closed)
        call = GridCall(env, jaxpr, [spec_of(jax.typeof(x)) for x in consts] + static.specs)
        found = call, consts, jax.tree.structure(shapes)
        if not any(isinstance(x, jax.core.Tracer) for x in consts):
            _remember(self.calls, key, found)
        return found

    def jaxpr(self, static: _Static) -> tuple[Any, Any, Env]:
        """The function on logical shapes: its jaxpr, its results' shapes, and the environment."""
        fn = self.fn()
        templates: dict[tuple[int, ...], Layout] = {}
        for kind in static.kinds:
            if isinstance(kind, Layout):
                templates.setdefault(kind.shape, kind)
        env = Env(static.device, self.policy, tuple(templates.values()), static.algorithm)

        def logical(*arrays: Any) -> Any:
            leaves = list(arrays)
            for i, leaf in static.leaves:
                leaves.insert(i, leaf)
            args, kwargs = jax.tree.unflatten(static.structure, leaves)
            return fn(*args, **kwargs)

        token = _tracing.set(True)
        try:
            with static.device.active():
                avals = map(struct, static.specs)
                closed, shapes = jax.make_jaxpr(logical, return_shape=True)(*avals)
        except Exception as error:  # JAX's own, of logical shapes: say where they come from
            if "passed to shard_map" in str(error):
                raise LayoutError(
                    f"{_name(fn)} calls jax.shard_map, which gl.on_grid does not support: call it "
                    "on x.storage outside, or write the part with gl.map_shards"
                ) from error
            error.add_note(_described(fn, static))
            raise
        finally:
            _tracing.reset(token)
        return closed, shapes, env


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


def _described(fn: Any, static: _Static) -> str:
    """A call as an error's note tells it: logical shapes, and each array's layout."""
    lines = [f"on the grid, {_name(fn)} was called with"]
    for kind in static.kinds:
        dims = f"{kind.dtype.name}[{','.join(map(str, kind.shape))}]"
        laid = f"in {kind!r}" if isinstance(kind, Layout) else ", not laid out"
        lines.append(f"  {dims} {laid}".replace(" ,", ","))
    return "\n".join(lines)


_programs: WeakKeyDictionary[Any, dict[Policy, _Program]] = WeakKeyDictionary()


def _program(fn: Callable[..., Any], policy: Policy) -> _Program:
    try:
        return _programs.setdefault(fn, {}).setdefault(policy, _Program(weakref.ref(fn), policy))
    except TypeError:  # a function that can't be hashed, or not weakly referenced, is not shared
        return _Program(lambda: fn, policy)


def _remember(memory: dict[Any, Any], key: Any, value: Any) -> None:
    """Keep it, with at most so many others."""
    if len(memory) >= _MOST_KEPT:
        memory.clear()
    memory[key] = value


def _options() -> tuple[Any, ...]:
    """The options of JAX that a traced function depends on."""
    return tuple(getattr(jax.config, name) for name in _OPTIONS)


def _plain(x: Any) -> Spec:
    """The spec of an array that is not laid out."""
    return spec_of(x if isinstance(x, jax.ShapeDtypeStruct) else jax.typeof(x))


def _is_grid(x: Any) -> bool:
    return isinstance(x, GridArray)


def _has_no_data(x: Any) -> bool:
    return isinstance(x.storage if type(x) is GridArray else x, jax.ShapeDtypeStruct)


def _is_array(x: Any) -> bool:
    if isinstance(x, (GridArray, jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)):
        return True
    return isinstance(x, (bool, int, float, complex))
