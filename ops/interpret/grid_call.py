"""`GridCall`: a program as one JAX primitive, with the derivatives of the logical function.

Each of its JAX rules is another call: of the derivative, the transpose or the vmap of its jaxpr on
logical shapes, which is planned like any other jaxpr. So padding takes no part in derivatives,
custom derivative rules apply, and transformations can be nested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import hijax
from jax.extend import core
from jax.extend.core.primitives import convert_element_type_p

from gridlayout.caching import Kept
from gridlayout.errors import LayoutError
from gridlayout.ops.array.checked import numbered, numbered_layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import GridType, grid_type
from gridlayout.ops.array.storage_primitives import Primitive, along
from gridlayout.ops.decisions.env import Env, trace_context
from gridlayout.ops.decisions.jaxprs import equations_of, jaxpr_of
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec
from gridlayout.ops.interpret.gradient import Gradient, loss_of
from gridlayout.ops.interpret.invalid_numbers import check_results
from gridlayout.ops.interpret.logical_jaxpr import logical_jaxpr
from gridlayout.ops.interpret.operands import (
    active_operands,
    applied,
    is_inexact,
    is_nonzero,
    merge,
    operand_lines,
    select,
    struct,
    without_facts,
    zeros,
)
from gridlayout.ops.interpret.program_cache import planned_for
from gridlayout.ops.moves.spaces import in_device_memory, in_layout_memory
from gridlayout.ops.programs.report import Report
from gridlayout.sharding.meshes.mesh_in_use import on_mesh_in_use
from gridlayout.sharding.number_checks import number_checks
from gridlayout.sharding.processes.agreement import joint_call, local_data
from gridlayout.sharding.processes.jaxprs import jaxpr_lines
from gridlayout.sharding.processes.joint import SharedCall

# Whether JAX's rules may return symbolic zeros; JAX 0.10 requires arrays of zeros.
_REPORTS_ZEROS = hasattr(hijax, "HiPrim")
# A call outside of jax.jit that JAX transforms, as messages name it.
_WHAT = "gl.on_grid under a transformation of JAX"


class GridCall(Primitive):  # type: ignore[misc]
    """A closed jaxpr without constants on operands of given specs: `call(*operands)`, a list.

    Operands and results are `GridArray`s if their specs are `Sharded`, else plain arrays.
    result_specs: the requested specs of the first results, None for no request.
    """

    # JAX 0.12 then does not linearize a call whose tangents are all zero.
    skip_linearization_on_zero_tangents = True

    def __init__(
        self, env: Env, jaxpr: Any, specs: Sequence[Spec], result_specs: Sequence[Spec | None] = ()
    ) -> None:
        self.env, self.jaxpr, self.specs = env, jaxpr, tuple(specs)
        self._planned = planned_for(env, jaxpr, self.specs, result_specs)
        self.program = self._planned.program
        self.results: tuple[Spec, ...] = tuple(self.program.results)
        self.in_avals = tuple(self._aval(spec) for spec in self.specs)
        self.out_aval = [self._aval(spec) for spec in self.results]
        self.params: dict[str, Any] = {}
        self.effects = frozenset(jaxpr.effects)
        self._derived_calls: Kept[Any, Any] = Kept()
        super().__init__()

    # Compared by identity: JAX caches compiled programs by call.
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __call__(self, *operands: Any) -> list[Any]:
        """Return the results; operands may be traced by any transformation of JAX."""
        arrays = [as_array(spec, x) for spec, x in zip(self.specs, operands, strict=True)]
        found: list[Any] = super().__call__(*arrays)
        return found

    # -- running -------------------------------------------------------------------------------

    def expand(self, *operands: Any) -> list[Any]:
        """Run the program on the storages of `GridArray`s. JAX lowers the primitive with this."""
        device = self.env.device
        for aval, x in zip(self.in_avals, operands, strict=True):
            if isinstance(x, GridArray) and x.type != aval:
                raise LayoutError(
                    f"an operand is {x.type.str_short()}, and the program takes {aval.str_short()}"
                )
        storages = [
            in_device_memory(storage, spec.layout, device) if isinstance(spec, Sharded) else storage
            for spec, storage in zip(self.specs, map(_lowered, operands), strict=True)
        ]
        arrays = self.on_storages(*storages)
        found = [self._value(spec, a) for spec, a in zip(self.results, arrays, strict=True)]
        check_results(self.jaxpr, operands, found, device)
        return found

    def on_storages(self, *storages: Any) -> list[Any]:
        """Run the program on storages in the devices' memory."""
        device = self.env.device
        arrays = [as_array(spec, x) for spec, x in zip(self.specs, storages, strict=True)]
        with device.active(), joint_call(_WHAT, device, arrays) as call:
            call.agree((), self._lines, owner=self, data=lambda: local_data(arrays))
            if isinstance(call, SharedCall):
                arrays = list(map(device.replicate, arrays))
            # Call the jitted program even under a trace: outside of jit, JAX runs the jaxpr of
            # jax.checkpoint equation by equation, and shard_map would compile each of its steps.
            found = call.ran(self._planned.run(arrays))
        return [_as_weak(spec, a) for spec, a in zip(self.results, found, strict=True)]

    def _lines(self) -> list[str]:
        kinds = [spec.layout if isinstance(spec, Sharded) else spec for spec in self.specs]
        return [*operand_lines(kinds), *jaxpr_lines(self.jaxpr)]

    @cached_property
    def report(self) -> Report:
        """The report of a call, primitive by primitive."""
        return Report.of(self.program)

    def _value(self, spec: Spec, array: Any) -> Any:
        device = self.env.device
        if not isinstance(spec, Sharded):
            return on_mesh_in_use(array)
        layout = spec.layout
        if (checks := number_checks()) is not None:
            array = numbered(array, layout, device, checks)
            layout = numbered_layout(layout, checks)
        return GridArray(in_layout_memory(array, layout, device), layout, device)

    def _aval(self, spec: Spec) -> Any:
        if isinstance(spec, Sharded):
            return grid_type(spec.layout, self.env.device)
        assert isinstance(spec, Replicated)
        return hijax.ShapedArray(spec.shape, spec.dtype, weak_type=spec.weak_type)

    # -- derivatives ---------------------------------------------------------------------------

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Forward mode in one pass: return results and their tangents."""
        outs, second = self.lin(list(map(is_nonzero, tangents)), *primals)[:2]
        return outs, second(*tangents)

    def lin(self, nonzero: Any, *primals: Any) -> Any:
        """Forward mode, first pass: return results, the second pass, and which have tangents."""
        found = self.derived(_Jvp, active_operands(self.specs, nonzero)).forward(primals)
        return found if _REPORTS_ZEROS else found[:2]

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Forward mode, second pass: return the tangents of results."""
        found = residuals(*tangents)
        return found if _REPORTS_ZEROS else list(map(hijax.instantiate_zeros, found))

    def vjp_fwd(self, nonzero: Any, *primals: Any) -> Any:
        """Reverse mode, first pass: return results and residuals."""
        active = active_operands(self.specs, nonzero)
        if (loss := loss_of(self, primals)) is None:
            found = self.in_two_passes(active, primals)
        else:
            found = self.derived(Gradient, loss, active).forward(primals)
        return found if _REPORTS_ZEROS else found[:2]

    def in_two_passes(self, active: tuple[bool, ...], primals: Sequence[Any]) -> Any:
        """Reverse mode with residuals: return results, second pass, which results have tangents."""
        return self.derived(_Vjp, active).forward(primals)

    def with_jaxpr(self, jaxpr: Any, results: Sequence[Spec | None]) -> GridCall:
        """Return a call of another jaxpr on the same operands, with requested results."""
        return GridCall(self.env.now(), jaxpr, self.specs, results)

    def vjp_bwd_retval(self, residuals: Any, cotangents: Any) -> Any:
        """Reverse mode, second pass: return the cotangents of operands."""
        return residuals(*cotangents)

    def transpose(self, cotangents: Any, *operands: Any) -> None:
        """Add the cotangents of the linear operands to their accumulators."""
        linear = tuple(hasattr(type(x), "accum") for x in operands)
        real = tuple(map(is_nonzero, cotangents))
        given = [x for x, yes in zip(operands, linear, strict=True) if not yes]
        given += [c for c, yes in zip(cotangents, real, strict=True) if yes]
        found = self.derived(_transposed, linear, real)(*given)
        accumulators = [x for x, yes in zip(operands, linear, strict=True) if yes]
        for accumulator, cotangent in zip(accumulators, found, strict=True):
            accumulator.accum(cotangent)

    def derived(self, make: Callable[..., Any], *key: Any) -> Any:
        """Return `make(self, *key)`, a call derived from this one, from a cache of this call."""
        cache_key = make, key, trace_context()
        if (found := self._derived_calls.get(cache_key)) is None:
            found = make(self, *key)
            self._derived_calls.add(cache_key, found, found.program)
        return found

    # -- vmap ----------------------------------------------------------------------------------

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        """Return the results for a mapped axis, and the dim of each that is this axis."""
        if all(dim is None for dim in dims):
            return self(*operands), [None] * len(self.results)
        avals = tuple(map(jax.typeof, operands))
        plain = tuple(None if dim is None else int(dim) for dim in dims)
        outs = self.derived(_batched, axis.size, axis.name, plain, avals)(*operands)
        return outs, [
            along(0, x, spec.layout) if isinstance(spec, Sharded) else 0
            for x, spec in zip(outs, self.results, strict=True)
        ]


class _TwoPasses:
    """A derivative in two passes: the first saves residuals, the second is linear.

    residual_specs, residual_tree: the specs and the structure of the residuals. first: the call of
    the first pass, and program: its program. seconds: those of the second pass, by the types of
    (co)tangents.
    """

    def __init__(self, call: GridCall, active: tuple[bool, ...]) -> None:
        self.call, self.active = call, active
        self.residual_tree: Any = None
        traced = logical_jaxpr(self._traced, map(struct, call.specs), call.env.device)
        self.first = call.with_jaxpr(traced, call.results)
        self.residual_specs = self.first.results[len(call.results) :]
        self.program = self.first.program
        self.seconds: Kept[Any, GridCall] = Kept()

    def _traced(self, *given: Any) -> list[Any]:
        logical = applied(self.call.jaxpr, self.active, select(given, self.active, False))
        outs, residuals = self.split(logical, *select(given, self.active))
        leaves, self.residual_tree = jax.tree.flatten(residuals)
        # JAX does not broadcast a GridArray that is not mapped. So `jax.vmap` of the first pass has
        # to map the second one, and there is at least one residual for it to map.
        return [*outs, *(leaves or [jnp.zeros((), bool)])]

    def forward(self, primals: Sequence[Any]) -> Any:
        """Return the results, the second pass, and which results have tangents."""
        found, count = self.first(*primals), len(self.call.results)
        second = jax.tree_util.Partial(self, *found[count:])
        return found[:count], second, list(map(is_inexact, self.call.results))

    def second(
        self, given: Sequence[Any], specs: Sequence[Spec], result_specs: Sequence[Spec]
    ) -> Any:
        """Run the second pass. given: residuals, then values of `specs`, some symbolic zeros."""
        residuals, values = given[: len(self.residual_specs)], given[len(self.residual_specs) :]
        real = tuple(map(is_nonzero, values))
        # By their own types: jax.jvp takes tangents in other layouts than the primals.
        avals = tuple(jax.typeof(x) for x in select(values, real))
        cache_key = real, avals, trace_context()
        if (call := self.seconds.get(cache_key)) is None:
            count = len(self.residual_specs)

            def logical(*arrays: Any) -> list[Any]:
                full = merge(real, arrays[count:], list(map(zeros, select(specs, real, False))))
                leaves = arrays[: self.residual_tree.num_leaves]
                return self.apply_residuals(jax.tree.unflatten(self.residual_tree, leaves), full)

            operands = [*self.residual_specs, *map(spec_of, avals)]
            traced = logical_jaxpr(logical, map(struct, operands), self.call.env.device)
            requested = list(map(without_facts, result_specs))
            call = GridCall(self.call.env.now(), traced, operands, requested)
            self.seconds.add(cache_key, call, call.program)
        return call(*residuals, *select(values, real))

    # The function of JAX that splits a function into two passes, by mode.
    split: Callable[..., Any]

    def apply_residuals(self, residuals: Any, full: Sequence[Any]) -> list[Any]:
        """Apply the linear function of the second pass to tangents or cotangents."""
        raise NotImplementedError


class _Jvp(_TwoPasses):
    """Forward mode."""

    split = staticmethod(jax.linearize)

    def apply_residuals(self, residuals: Any, full: Sequence[Any]) -> list[Any]:
        return [t for t in residuals(*full) if t.dtype != jax.dtypes.float0]

    def __call__(self, *given: Any) -> list[Any]:
        count = len(self.residual_specs)
        tangents = select(given[count:], self.active)
        results = [spec for spec in self.call.results if is_inexact(spec)]
        found = self.second(
            [*given[:count], *tangents], select(self.call.specs, self.active), results
        )
        mine = iter(found)
        return [
            next(mine) if is_inexact(spec) else hijax.Zero(aval.to_tangent_aval())
            for spec, aval in zip(self.call.results, self.call.out_aval, strict=True)
        ]


class _Vjp(_TwoPasses):
    """Reverse mode."""

    split = staticmethod(jax.vjp)

    def apply_residuals(self, residuals: Any, full: Sequence[Any]) -> list[Any]:
        return list(residuals(list(full)))

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        mine = iter(self.second(given, self.call.results, select(self.call.specs, self.active)))
        return tuple(next(mine) if yes else None for yes in self.active)


def _transposed(call: GridCall, linear: tuple[bool, ...], real: tuple[bool, ...]) -> GridCall:
    """Return the transpose of a call in its linear operands.

    Its operands are the other operands, then the cotangents that are not symbolic zeros. real:
    which cotangents these are.
    """
    fixed, linear_specs = select(call.specs, linear, False), select(call.specs, linear)

    def transposed(*arrays: Any) -> list[Any]:
        whole = applied(call.jaxpr, linear, arrays[: len(fixed)])
        back = jax.linear_transpose(lambda *x: select(whole(*x), real), *map(struct, linear_specs))
        return list(back(list(arrays[len(fixed) :])))

    operands = [*fixed, *map(without_facts, select(call.results, real))]
    traced = logical_jaxpr(transposed, map(struct, operands), call.env.device)
    return GridCall(call.env.now(), traced, operands, list(map(without_facts, linear_specs)))


def _batched(call: GridCall, size: int, name: Any, dims: Any, avals: Sequence[Any]) -> GridCall:
    """Return the vmap of a call along these dims of operands and the first dim of results."""
    fn = jax.vmap(core.jaxpr_as_fun(call.jaxpr), dims, axis_name=name, axis_size=size)
    specs = [spec_of(aval) for aval in avals]
    traced = logical_jaxpr(fn, map(struct, specs), call.env.device)
    # A result that is a plain array stays one: the scalars of the batch become a vector.
    result_specs = [
        None if isinstance(spec, Sharded) else Replicated(aval.shape, aval.dtype)
        for spec, aval in zip(call.results, traced.out_avals, strict=True)
    ]
    return GridCall(call.env.now(), traced, specs, result_specs)


def with_constants_as_operands(closed: Any) -> tuple[Any, list[Any]]:
    """Return the jaxpr with its constants as its first operands, and these constants.

    They may be tracers of an outer differentiation.
    """
    outer = closed.jaxpr
    operands = [*outer.constvars, *outer.invars]
    return jaxpr_of(operands, equations_of(closed), outer.outvars, outer), list(closed.consts)


# -- values and specs ------------------------------------------------------------------------------


def spec_of(aval: Any) -> Spec:
    """Return the spec of an operand of a type; a plain array is replicated."""
    if isinstance(aval, GridType):
        return Sharded(aval.layout, aval.device.placement(aval.layout))
    return Replicated(tuple(aval.shape), aval.dtype, bool(getattr(aval, "weak_type", False)))


def as_array(spec: Spec, x: Any) -> Any:
    """Return an operand as an array."""
    if isinstance(x, (GridArray, jax.Array)):
        return x
    return lax.convert_element_type(x, spec.dtype)


def _as_weak(spec: Spec, array: Any) -> Any:
    """Return a result, weakly typed if the spec is."""
    if not (isinstance(spec, Replicated) and spec.weak_type) or jax.typeof(array).weak_type:
        return array
    return convert_element_type_p.bind(array, new_dtype=spec.dtype, weak_type=True, sharding=None)


def _lowered(x: Any) -> Any:
    return x.storage if isinstance(x, GridArray) else x
