"""`Compiled`: a call of a function with arrays that nothing traces, through `jax.jit`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import jax

from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray, check_no_stack
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.interpret.static import Results
from gridlayout.ops.moves.spaces import brought_back, fetched
from gridlayout.sharding.device_grid import DeviceGrid

if TYPE_CHECKING:
    from gridlayout.ops.interpret.function import Function, Signature

_LEAF = jax.tree.structure(0)


class Compiled:
    """One call of a function, compiled by `jax.jit`: of storages and other arrays.

    function: what makes a `GridCall` of a call's signature.
    """

    def __init__(self, function: Function, signature: Signature) -> None:
        self.function, self.signature, self.device = function, signature, signature.device
        self.run = jax.jit(self._traced)
        layouts = [kind if isinstance(kind, Layout) else None for kind in signature.kinds]
        self.fetched: list[Layout | None] = [
            x if x is not None and self.device.memory_kind(x) else None for x in layouts
        ]
        self.is_moved = any(x is not None for x in self.fetched)

    def __call__(self, storages: Sequence[Any]) -> Any:
        """The function's results, where they belong."""
        device = self.device
        if self.is_moved:
            storages = [
                x if layout is None else fetched(x, layout, device)
                for x, layout in zip(storages, self.fetched, strict=True)
            ]
        if jax.sharding.get_abstract_mesh().empty:
            outs = self.run(*storages)
        else:
            with device.active():
                outs = self.run(*storages)
        return outs.kind.result(outs.arrays)

    def _traced(self, *storages: Any) -> _Outs:
        signature = self.signature
        for x, kind in zip(storages, signature.kinds, strict=True):
            if isinstance(kind, Layout) and x.ndim > len(kind.physical_shape):
                check_no_stack(GridArray(x, kind, signature.device))
        call, consts, results = self.function.call(signature)
        if any(isinstance(x, jax.core.Tracer) for x in consts):
            # Of an outer transformation, which takes its derivative of the whole call.
            operands = [
                placed(x, kind, signature.device) if isinstance(kind, Layout) else x
                for x, kind in zip(storages, signature.kinds, strict=True)
            ]
            found = [x.storage if isinstance(x, GridArray) else x for x in call(*consts, *operands)]
        else:
            found = call.on_storages(*consts, *storages)
        return _Outs(_Kind(call.results, results, signature.device), found)


class _Kind:
    """What the results of a program are."""

    def __init__(self, specs: Sequence[Spec], results: Results, device: DeviceGrid) -> None:
        self.device = device
        self.unflatten = results.unflatten if results.static else results.structure.unflatten
        self.layouts = [spec.layout if isinstance(spec, Sharded) else None for spec in specs]
        # Whether all results are laid out, in the devices' own memory; and whether it is one array.
        self.is_plain = bool(specs) and not any(
            x is None or device.memory_kind(x) for x in self.layouts
        )
        self.is_one = results.structure == _LEAF

    def result(self, arrays: Sequence[Any]) -> Any:
        """The function's results: what is laid out as `GridArray`s, in the memory of its layout."""
        layouts: Any = self.layouts
        device = self.device
        if self.is_plain and not isinstance(arrays[0], jax.core.Tracer):
            if self.is_one:
                return GridArray(arrays[0], layouts[0], device)
            return self.unflatten(map(GridArray, arrays, layouts, repeat(device)))
        return self.unflatten(
            device.on_mesh_in_use(array)
            if layout is None
            else placed(brought_back(array, layout, device), layout, device)
            for array, layout in zip(arrays, layouts, strict=True)
        )


class _Outs:
    """What a program gives across our own jit: storages and arrays, and what they are."""

    __slots__ = "arrays", "kind"

    def __init__(self, kind: _Kind, arrays: Any) -> None:
        self.kind, self.arrays = kind, arrays


jax.tree_util.register_pytree_node(_Outs, lambda x: (x.arrays, x.kind), _Outs)
