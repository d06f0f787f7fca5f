"""`on_grid`: any JAX function on laid-out arrays.

A call is split into its arrays and its signature: layouts, devices, and all static arguments. The
compiled program of each signature is cached with the function (`function.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh

from gridlayout.arguments import one_of, shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import (
    GridArray,
    check_has_data,
    check_no_stack,
    check_same_devices,
)
from gridlayout.ops.array.placing import described
from gridlayout.ops.array.policy import Policy, same_grid_and_tile
from gridlayout.ops.choose.chosen import Stated
from gridlayout.ops.decisions.specs import Spec
from gridlayout.ops.interpret.agreeing import AgreedProgram, agreed_call
from gridlayout.ops.interpret.compiled import Compiled
from gridlayout.ops.interpret.function import Signature, function_of
from gridlayout.ops.interpret.grid_call import spec_of
from gridlayout.ops.interpret.logical_jaxpr import is_tracing
from gridlayout.ops.interpret.names import argument_names
from gridlayout.ops.interpret.static import (
    StaticArguments,
    StaticLeaf,
    bare,
    check_static,
    is_array,
)
from gridlayout.ops.moves.packing import with_auto_axes
from gridlayout.ops.primitives.table import rules_version
from gridlayout.ops.products.algorithms import ALGORITHMS
from gridlayout.ops.programs.report import Report
from gridlayout.other_words import KEYWORDS
from gridlayout.public import public
from gridlayout.sharding.device_argument import as_device, default_device, device_in_use
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.svg import Drawing

_NONE = StaticArguments()
_UNSTATED: Any = object()  # no function: `on_grid` is called with options alone


@overload
def on_grid(
    fn: Callable[..., Any],
    device: DeviceGrid | Mesh | AbstractMesh | None = None,
    policy: Policy | Any | None = None,
    algorithm: str | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> OnGrid: ...


@overload
def on_grid(
    *,
    device: DeviceGrid | Mesh | AbstractMesh | None = None,
    policy: Policy | Any | None = None,
    algorithm: str | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[[Callable[..., Any]], OnGrid]: ...


@public(words=KEYWORDS)
def on_grid(
    fn: Any = _UNSTATED,
    device: DeviceGrid | Mesh | AbstractMesh | None = None,
    policy: Policy | Any | None = None,
    algorithm: str | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Lift a plain JAX function to run on `GridArray`s.

    fn: written for logical arrays; or a pytree of `GridArray`s that is callable, such as an Equinox
    model or one of its methods, which then becomes an argument too; or a lifted function, whose
    device, policy and algorithm hold where none is given here. Without one, the result is a
    decorator: `@gl.on_grid(algorithm="ring")`. device: the device grid of
    plain arrays if no argument is a `GridArray`. policy: chooses layouts
    (`gridlayout.ops.array.policy`); or a plan of `gl.plan`, whose choices for this program and mesh
    are taken. algorithm: the algorithm of all products, a name in `gl.ALGORITHMS`; by default the
    cheapest for each. Arguments may be pytrees. Plain arrays among them are laid out by the policy,
    scalars stay as they are, and leaves that are not arrays are static: there is one program per
    value. Python's bools, such as the flags of a model, are static; its other numbers are traced,
    unless static_argnums or static_argnames state their argument, as those of `jax.jit` do.
    Results of rank 1 and more are `GridArray`s, scalars are `jax.Array`s, and leaves that are not
    arrays, and Python's bools in objects of a user's class such as a model, are returned as they
    are.
    `LayoutError` if there is no device grid, or more than one. Inside of another lifted function,
    it is a part of that one: it runs on its device grid, by its choices.

    >>> import jax.numpy as jnp, numpy as np
    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> x = put(np.arange(35.0).reshape(5, 7), GridLayout((5, 7), grid=(2, 4)), DeviceGrid((1,)))
    >>> on_grid(lambda x: jnp.sum(x * 2, axis=1))(x).to_logical().tolist()
    [42.0, 140.0, 238.0, 336.0, 434.0]

    >>> @on_grid(algorithm="ring")
    ... def gram(x):
    ...     return x.T @ x
    >>> gram(x).shape
    (7, 7)
    """
    if fn is _UNSTATED:
        _check_options(device, policy, algorithm)
        stated = {"static_argnums": static_argnums, "static_argnames": static_argnames}
        return partial(on_grid, device=device, policy=policy, algorithm=algorithm, **stated)
    static = StaticArguments.of(fn, static_argnums, static_argnames)
    if not isinstance(fn, OnGrid):
        fn, first = _unbound(fn)
        return OnGrid(fn, device, policy, algorithm, first, static)
    device, algorithm = fn.device if device is None else device, algorithm or fn.algorithm
    policy, static = fn.policy if policy is None else policy, static if any(static) else fn.static
    return OnGrid(fn.fn, device, policy, algorithm, fn.first, static)


class OnGrid:
    """A function lifted to the grid; see `gl.on_grid`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        device: DeviceGrid | Mesh | AbstractMesh | None,
        policy: Policy | Any | None,
        algorithm: str | None = None,
        first: tuple[Any, ...] = (),
        static: StaticArguments = _NONE,
    ) -> None:
        if not callable(fn):
            raise LayoutError(
                f"on_grid takes a function, not {type(fn).__name__}, which can't be called: pass "
                "a function or a callable model, and call the result with the arrays; as a "
                "decorator it takes keywords, @gl.on_grid(device=device)"
            )
        _check_options(device, policy, algorithm)
        self.fn, self.algorithm, self.first, self.static = fn, algorithm, first, static
        self.device = None if device is None else as_device(device)
        self.policy = policy
        self.plan: Any = policy if _is_plan(policy) else None
        self.__wrapped__ = partial(fn, *first) if first else fn  # without `self`, for `signature`
        chooses = policy if self.plan is None else getattr(policy, "stated", None)
        self._function = function_of(fn, chooses or same_grid_and_tile)

    def __reduce__(self) -> Any:
        # Compiled programs stay behind.
        return OnGrid, (
            *(self.fn, self.device, self.policy, self.algorithm, self.first, self.static),
        )

    def __repr__(self) -> str:
        name = getattr(self.fn, "__name__", repr(self.fn))
        if name == "__call__" and self.first:
            name = type(self.first[0]).__name__
        return f"on_grid({name})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on the grid."""
        args, kwargs = self.held((*self.first, *args), kwargs)
        # Positional arguments that are all arrays need no flattening.
        same, flat = None if kwargs else self._by_layouts(args, len(args)), None
        if same is None:
            flat = jax.tree.flatten((args, kwargs))
            same = self._by_layouts(*flat)
        if same is not None and not is_tracing():
            key, storages, plain = same
            known = self._function.known.get(key)
            if known is not None:
                for k in plain:
                    storages[k] = key[2].replicate(storages[k])
                try:
                    return known(storages)
                except TypeError:  # an array without data, which is refused below
                    if jax.ShapeDtypeStruct not in set(map(type, storages)):
                        raise
        if (split := self._split(*(flat or jax.tree.flatten((args, kwargs))))) is None:
            return self.fn(*map(bare, args), **{name: bare(x) for name, x in kwargs.items()})
        operands, signature = split
        (device := signature.device).check_has_devices(repr(self))
        for x in operands:
            check_has_data(x, repr(self))
        if any(isinstance(x, jax.core.Tracer) for x in operands):
            return self._function.traced(operands, signature)
        run: Compiled | AgreedProgram
        with agreed_call(self, self._function, operands, signature) as call:
            run = compiled = self._function.compiled(signature)
            storages = [x.storage if _is_grid(x) else device.replicate(x) for x in operands]
            found = call.ran(compiled(storages))
        if same is not None:
            if len(device.processes) > 1:
                run = AgreedProgram(repr(self), self._function, signature, compiled)
            self._function.known.add(same[0], run, compiled)
        return found

    def held(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return all arguments, of which those that are static are one leaf each."""
        return self.static.held(args, kwargs, len(self.first))

    def _by_layouts(
        self, leaves: Sequence[Any], structure: Any
    ) -> tuple[Any, list[Any], list[int]] | None:
        """Return a call's cache key, its storages, and which of these are plain arrays.

        None unless all leaves are GridArrays, or arrays that are replicated, or on no device by
        request.
        """
        device = self.device
        kinds: list[Any] = []
        storages: list[Any] = []
        plain: list[int] = []
        for x in leaves:
            if type(x) is GridArray:
                if x.device is not device and device is not None:
                    return None
                device = x.device
                kinds.append(x.layout)
                storages.append(x.storage)
                continue
            if not isinstance(x, np.ndarray | np.number | jax.Array) or isinstance(
                x, jax.core.Tracer
            ):
                return None
            plain.append(len(storages))
            kinds.append((x.shape, x.dtype, getattr(x, "weak_type", False)))
            storages.append(x)
        if device is None:
            return None
        if plain:
            if len(device.processes) != 1:
                return None
            some = [storages[k] for k in plain if getattr(storages[k], "committed", False)]
            if any(x.sharding != device.replicated for x in some):
                return None
        return (structure, tuple(kinds), device, self.algorithm, rules_version()), storages, plain

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower a call without running it; return a `jax.stages.Lowered`, as `jax.jit(fn).lower`.

        Arguments are arrays, or what `report` takes. The compiled function takes arrays like them.
        """
        on, args, kwargs = self._described(args, kwargs)
        numbers, names = sorted(self.static.numbers), sorted(self.static.names)
        return jax.jit(on, static_argnums=numbers, static_argnames=names).lower(*args, **kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Return what a call with these arguments does, primitive by primitive; nothing runs.

        Instead of an array, an argument may be a `jax.ShapeDtypeStruct`, a `gl.Layout`, or a
        `GridArray` that `gl.put` returns for a struct. So no devices are needed. Where neither the
        function nor an argument has a device grid, it is that of the mesh that `jax.set_mesh` has
        set, or else of all devices of JAX in a row, as in `gl.simulate`.
        """
        on, args, kwargs = self._described(args, kwargs)
        split = on._split(*jax.tree.flatten(on.held(on.first + args, kwargs)))
        assert split is not None, f"{self!r}.report in a function that is traced for the grid"
        return self._function.report(split[1])

    def draw(self, *args: Any, path: str | Path | None = None, **kwargs: Any) -> Drawing:
        """Return a drawing of a call with these arguments: `report(...).draw(path)`.

        >>> from gridlayout import DeviceGrid, GridLayout
        >>> lifted = on_grid(lambda x: x + x, DeviceGrid((1,)))
        >>> lifted.draw(GridLayout((5, 7), grid=(2, 4))).title
        'a function on the grid'
        """
        return self.report(*args, **kwargs).draw(path)

    def _described(self, args: Any, kwargs: Any) -> Any:
        """Return the function with a device grid, and arguments without data instead of layouts."""
        is_leaf = lambda x: _is_grid(x) or isinstance(x, Layout)  # noqa: E731
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=is_leaf)
        laid = filter(_is_grid, [*leaves, *jax.tree.leaves(self.first)])
        found = [self.device, self.plan and self.plan.devices, *(x.device for x in laid)]
        device = next((each for each in found if each is not None), None)
        on = self
        if device is None:
            device = default_device()
            on = on_grid(self, device)
        made = [described(x, device) if isinstance(x, Layout) else x for x in leaves]
        return on, *jax.tree.unflatten(structure, made)

    def _split(self, leaves: Sequence[Any], structure: Any) -> tuple[list[Any], Signature] | None:
        """Return the arrays and the signature of a call; None if it is to run as plain JAX."""
        if (device := self._device_of(leaves)) is None:
            return None
        operands, kinds, static = [], [], []
        for i, x in enumerate(leaves):
            if _is_grid(x):
                check_no_stack(x)
                operands.append(x)
                kinds.append(x.layout)
            elif is_array(x):
                operands.append(with_auto_axes(x, device))
                kinds.append(_plain(operands[-1], partial(self._name_of, structure, i)))
            else:
                check_static(x, partial(self._name_of, structure, i))
                static.append(StaticLeaf(i, x))
        return operands, Signature(
            structure, tuple(static), tuple(kinds), device, self.algorithm, rules_version()
        )

    def _name_of(self, structure: Any, number: int) -> str:
        """Return the name of a leaf of the arguments, for errors."""
        return argument_names(self.fn, structure)[number]

    def _device_of(self, leaves: Sequence[Any]) -> DeviceGrid | None:
        """Return the device grid of a call; None inside a function that is traced for the grid."""
        found = None if is_tracing() else self.device  # the function around it has one
        for x in leaves:
            if not _is_grid(x):
                continue
            if is_tracing():
                raise LayoutError(
                    f"{self!r}: it is called inside a function that runs on the grid, with a "
                    "GridArray that this function closes over; pass it as an argument instead, "
                    "or lift the model that holds it itself: gl.on_grid(model), and for a batch "
                    "jax.vmap(gl.on_grid(model))"
                )
            if found is None:
                found = x.device
            check_same_devices(x, found, repr(self))
        if found is None and self.plan is not None and not is_tracing():
            found = self.plan.devices
        if found is None and not is_tracing() and (found := device_in_use()) is None:
            raise LayoutError(
                f"{self!r}: no argument is a GridArray, so there is no device grid: make one with "
                "gl.put, pass gl.on_grid(fn, device=...), or set a mesh with jax.set_mesh(mesh)"
            )
        return found


def _check_options(device: Any, policy: Any, algorithm: Any) -> None:
    if device is not None:
        as_device(device)
    if policy is not None and not _is_plan(policy) and not callable(policy):
        raise LayoutError(
            f"policy {shown(policy)} must be a function of (shape, dtype, template, device) that "
            "gives a layout, a plan of gl.plan, or None"
        )
    if algorithm is not None:
        one_of(algorithm, ALGORITHMS, "algorithm")


def _is_plan(policy: Any) -> bool:
    return isinstance(getattr(policy, "stated", None), Stated)


def _plain(x: Any, name: Callable[[], str]) -> Spec:
    """Return the spec of an array that is not laid out; `LayoutError` if its dtype is not JAX's."""
    try:
        return spec_of(x if isinstance(x, jax.ShapeDtypeStruct) else jax.typeof(x))
    except TypeError:
        raise LayoutError(
            f"{name()}: {x.dtype} is no element type of JAX; convert it to a numeric type, or pass "
            "Python's own strings and objects, which are static"
        ) from None


def _unbound(fn: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function, and as its first arguments the tree of `GridArray`s that it belongs to.

    That is the `self` of a method, or `fn` itself; none for other functions.
    """
    method, owner = getattr(fn, "__func__", None), getattr(fn, "__self__", None)
    if callable(method) and _has_grids(owner) and not _is_grid(owner):
        return method, (owner,)
    if callable(fn) and _has_grids(fn):
        return type(fn).__call__, (fn,)
    return fn, ()


def _has_grids(tree: Any) -> bool:
    return any(map(_is_grid, jax.tree.leaves(tree)))


def _is_grid(x: Any) -> bool:
    return isinstance(x, GridArray)
