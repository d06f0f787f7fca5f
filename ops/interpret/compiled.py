"""`Compiled`: a function compiled by `jax.jit` for calls with concrete arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Protocol, TypeVar

import jax

from gridlayout.caching import trim
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray, check_no_stack
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.interpret.grid_call import GridCall
from gridlayout.ops.interpret.logical_jaxpr import is_traced
from gridlayout.ops.interpret.static import Results
from gridlayout.ops.moves.spaces import in_device_memory, in_layout_memory
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.mesh_in_use import on_mesh_in_use
from gridlayout.sharding.processes.programs import agreed_jit

_LEAF = jax.tree.structure(0)


class Signature(Protocol):
    """What a program needs to know of the call that it is for."""

    @property
    def kinds(self) -> tuple[Any, ...]:
        """For each array: its layout if it is a `GridArray`, else its spec."""

    @property
    def device(self) -> DeviceGrid:
        """The device grid of the arrays."""


Signed = TypeVar("Signed", bound=Signature, contravariant=True)


class Compiled:
    """A function compiled by `jax.jit` for one signature; it takes storages and other arrays.

    call: returns the `GridCall` of a signature, its first operands, and what its results become.
    held_bytes: an estimate of what it takes on the host; of a program that is not traced yet, 0.
    is_traced_as_call: whether a trace around a call has to see a `GridCall`.
    """

    is_traced_as_call: ClassVar[bool] = False

    def __init__(
        self, call: Callable[[Signed], tuple[GridCall, list[Any], Results]], signature: Signed
    ) -> None:
        self.call = partial(call, signature)
        self.held_bytes = 0
        self.signature: Signature = signature
        self.device = signature.device
        self.run = agreed_jit(self._traced, self.device)
        layouts = [kind if isinstance(kind, Layout) else None for kind in signature.kinds]
        self.in_host_memory: list[Layout | None] = [
            x if x is not None and self.device.memory_kind(x) else None for x in layouts
        ]
        self.is_moved = any(x is not None for x in self.in_host_memory)

    def __call__(self, storages: Sequence[Any]) -> Any:
        """Run the function on storages and other arrays, and return its results."""
        if jax.debug_nans.value or jax.debug_infs.value:  # as in `number_checks`
            return self._as_call(storages)
        if self.is_traced_as_call and is_traced():
            return self._as_call(storages)
        device = self.device
        if self.is_moved:
            storages = [
                x if layout is None else in_device_memory(x, layout, device)
                for x, layout in zip(storages, self.in_host_memory, strict=True)
            ]
        if jax.sharding.get_abstract_mesh().empty:
            outs = self.run(*storages)
        else:
            with device.active():
                outs = self.run(*storages)
        return outs.kind.result(outs.arrays)

    def _as_call(self, storages: Sequence[Any]) -> Any:
        """Run the function as one primitive, which JAX's transformations and checks see."""
        call, consts, results = self.call()
        return results.unflatten(call(*consts, *self._operands(storages)))

    def _operands(self, storages: Sequence[Any]) -> list[Any]:
        kinds = self.signature.kinds
        return [
            placed(x, kind, self.device) if isinstance(kind, Layout) else x
            for x, kind in zip(storages, kinds, strict=True)
        ]

    def _traced(self, *storages: Any) -> _Outs:
        signature = self.signature
        for x, kind in zip(storages, signature.kinds, strict=True):
            if isinstance(kind, Layout) and x.ndim > len(kind.physical_shape):
                check_no_stack(GridArray(x, kind, signature.device))
        call, consts, results = self.call()
        self.held_bytes = call.program.held_bytes
        trim()
        if any(isinstance(x, jax.core.Tracer) for x in consts):
            # Tracers of an outer transformation, which has to see one call of all operands.
            outs = call(*consts, *self._operands(storages))
            found = [x.storage if isinstance(x, GridArray) else x for x in outs]
        else:
            found = call.on_storages(*consts, *storages)
        return _Outs(_Kind(call.results, results, signature.device), found)


class _Kind:
    """The types of a program's results."""

    def __init__(self, specs: Sequence[Spec], results: Results, device: DeviceGrid) -> None:
        self.device = device
        self.unflatten = results.unflatten if results.static else results.structure.unflatten
        self.layouts = [spec.layout if isinstance(spec, Sharded) else None for spec in specs]
        # Whether all results are laid out in the devices' own memory, and if there is only one.
        self.is_plain = bool(specs) and not any(
            x is None or device.memory_kind(x) for x in self.layouts
        )
        self.is_one = results.structure == _LEAF

    def result(self, arrays: Sequence[Any]) -> Any:
        """Return the function's results, laid-out ones as `GridArray`s in their layouts' memory."""
        layouts: Any = self.layouts
        device = self.device
        if self.is_plain and not isinstance(arrays[0], jax.core.Tracer):
            if self.is_one:
                return GridArray(arrays[0], layouts[0], device)
            return self.unflatten(map(GridArray, arrays, layouts, repeat(device)))
        return self.unflatten(
            on_mesh_in_use(array)
            if layout is None
            else placed(in_layout_memory(array, layout, device), layout, device)
            for array, layout in zip(arrays, layouts, strict=True)
        )


class _Outs:
    """The results of a jitted program as a pytree: storages and arrays, and their types."""

    __slots__ = "arrays", "kind"

    def __init__(self, kind: _Kind, arrays: Any) -> None:
        self.kind, self.arrays = kind, arrays


jax.tree_util.register_pytree_node(_Outs, lambda x: (x.arrays, x.kind), _Outs)
