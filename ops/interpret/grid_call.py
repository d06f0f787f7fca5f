"""`GridCall`: a program as one primitive of JAX, with the derivatives of the logical function.

Every rule of it is another call: of the derivative of the jaxpr on logical shapes, of its transpose
or of its vmap, planned by the same rules. So padding takes no part in any of them, custom
derivative rules hold, and each may be taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import hijax
from jax.extend import core
from jax.extend.core.primitives import convert_element_type_p

from gridlayout.errors import LayoutError
from gridlayout.ops.array.crossing import Primitive
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import GridType, grid_type
from gridlayout.ops.array.mapped import along
from gridlayout.ops.decisions.env import Env, trace_context
from gridlayout.ops.decisions.jaxprs import ClosedJaxpr
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec
from gridlayout.ops.interpret.alike import program_of
from gridlayout.ops.moves.spaces import brought_back, fetched
from gridlayout.ops.programs.report import Report

# Whether JAX asks which results have no tangents: JAX 0.10 takes zeros of all of them.
_TELLS_ZEROS = hasattr(hijax, "HiPrim")


class GridCall(Primitive):  # type: ignore[misc]
    """A closed jaxpr without constants on operands of these specs: `call(*operands)`, a list.

    Operands and results are `GridArray`s where their specs are `Sharded`, else plain arrays.
    wanted: specs that the first results are to have, None for what they come in.
    """

    # What JAX 0.12 need not linearize.
    skip_linearization_on_zero_tangents = True

    def __init__(
        self, env: Env, jaxpr: Any, specs: Sequence[Spec], wanted: Sequence[Spec | None] = ()
    ) -> None:
        self.env, self.jaxpr, self.specs = env, jaxpr, tuple(specs)
        self.program, self._run = program_of(env, jaxpr, self.specs, wanted)
        self.results: tuple[Spec, ...] = tuple(self.program.results)
        self.in_avals = tuple(self._aval(spec) for spec in self.specs)
        self.out_aval = [self._aval(spec) for spec in self.results]
        self.params: dict[str, Any] = {}
        self.effects = frozenset(jaxpr.effects)
        self._made: dict[Any, Any] = {}
        super().__init__()

    # What is compiled of a call is kept with it.
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __call__(self, *operands: Any) -> list[Any]:
        """The results; operands may be traced by any transformation of JAX."""
        arrays = [as_array(spec, x) for spec, x in zip(self.specs, operands, strict=True)]
        found: list[Any] = super().__call__(*arrays)
        return found

    # -- running -------------------------------------------------------------------------------

    def expand(self, *operands: Any) -> list[Any]:
        """JAX's lowering: the program on the storages of `GridArray`s."""
        device = self.env.device
        for aval, x in zip(self.in_avals, operands, strict=True):
            if isinstance(x, GridArray) and x.type != aval:
                raise LayoutError(f"{x.type.str_short()} stands where {aval.str_short()} belongs")
        storages = [
            fetched(storage, spec.layout, device) if isinstance(spec, Sharded) else storage
            for spec, storage in zip(self.specs, map(_lowered, operands), strict=True)
        ]
        arrays = self.on_storages(*storages)
        return [self._value(spec, a) for spec, a in zip(self.results, arrays, strict=True)]

    def on_storages(self, *storages: Any) -> list[Any]:
        """The program on storages in the devices' memory."""
        arrays = [as_array(spec, x) for spec, x in zip(self.specs, storages, strict=True)]
        with self.env.device.active():
            # One call, also where it is traced: what jax.checkpoint traced is run step by step
            # outside of jit, and a shard_map then compiles each of its steps.
            found = self._run(arrays)
        return [_as_weak(spec, a) for spec, a in zip(self.results, found, strict=True)]

    @cached_property
    def report(self) -> Report:
        """What a call does, primitive by primitive."""
        return Report.of(self.program)

    def _value(self, spec: Spec, array: Any) -> Any:
        device = self.env.device
        if not isinstance(spec, Sharded):
            return device.on_mesh_in_use(array)
        return GridArray(brought_back(array, spec.layout, device), spec.layout, device)

    def _aval(self, spec: Spec) -> Any:
        if isinstance(spec, Sharded):
            return grid_type(spec.layout, self.env.device)
        assert isinstance(spec, Replicated)
        return hijax.ShapedArray(spec.shape, spec.dtype, weak_type=spec.weak_type)

    # -- derivatives ---------------------------------------------------------------------------

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Forward mode: the linear function of the tangents, at once."""
        outs, second = self.lin(list(map(_is_nonzero, tangents)), *primals)[:2]
        return outs, second(*tangents)

    def lin(self, nonzero: Any, *primals: Any) -> Any:
        """Forward mode, first pass: results, the second pass, and what has tangents."""
        found = self._derived(_Linearized, _active(self.specs, nonzero)).forward(primals)
        return found if _TELLS_ZEROS else found[:2]

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Forward mode, second pass."""
        found = residuals(*tangents)
        return found if _TELLS_ZEROS else list(map(hijax.instantiate_zeros, found))

    def vjp_fwd(self, nonzero: Any, *primals: Any) -> Any:
        """Reverse mode, first pass."""
        found = self._derived(_PulledBack, _active(self.specs, nonzero)).forward(primals)
        return found if _TELLS_ZEROS else found[:2]

    def vjp_bwd_retval(self, residuals: Any, cotangents: Any) -> Any:
        """Reverse mode, second pass."""
        return residuals(*cotangents)

    def transpose(self, cotangents: Any, *operands: Any) -> None:
        """The cotangents of operands that it is linear in, added to what they have."""
        linear = tuple(hasattr(type(x), "accum") for x in operands)
        real = tuple(map(_is_nonzero, cotangents))
        given = [x for x, yes in zip(operands, linear, strict=True) if not yes]
        given += [c for c, yes in zip(cotangents, real, strict=True) if yes]
        found = self._derived(_transposed, linear, real)(*given)
        accumulators = [x for x, yes in zip(operands, linear, strict=True) if yes]
        for accumulator, cotangent in zip(accumulators, found, strict=True):
            accumulator.accum(cotangent)

    def _derived(self, make: Callable[..., Any], *key: Any) -> Any:
        """Another call made of this one, remembered: what is compiled of it is kept with it."""
        asked = make, key, trace_context()
        if asked not in self._made:
            self._made[asked] = make(self, *key)
        return self._made[asked]

    # -- vmap ----------------------------------------------------------------------------------

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        """The call for all of a mapped axis at once, and which dims of its results that is."""
        if all(dim is None for dim in dims):
            return self(*operands), [None] * len(self.results)
        avals = tuple(map(jax.typeof, operands))
        plain = tuple(None if dim is None else int(dim) for dim in dims)
        outs = self._derived(_mapped, axis.size, axis.name, plain, avals)(*operands)
        return outs, [
            along(0, x, spec.layout) if isinstance(spec, Sharded) else 0
            for x, spec in zip(outs, self.results, strict=True)
        ]


class _Linear:
    """A first pass, and the linear function of tangents or cotangents that it leaves behind."""

    def __init__(self, call: GridCall, active: tuple[bool, ...]) -> None:
        self.call, self.active = call, active
        self.after: Any = None  # the structure of what is left behind
        traced = jax.make_jaxpr(self._traced)(*map(struct, call.specs))
        self.first = GridCall(call.env.now(), traced, call.specs, call.results)
        self.left = self.first.results[len(call.results) :]
        self.seconds: dict[Any, GridCall] = {}

    def _traced(self, *given: Any) -> list[Any]:
        def logical(*x: Any) -> list[Any]:
            merged = _merged(self.active, x, _chosen(given, self.active, False))
            return list(core.jaxpr_as_fun(self.call.jaxpr)(*merged))

        outs, after = self.split(logical, *_chosen(given, self.active))
        leaves, self.after = jax.tree.flatten(after)
        return [*outs, *leaves]

    def forward(self, primals: Sequence[Any]) -> Any:
        """The results, the second pass, and which results it speaks of."""
        found, count = self.first(*primals), len(self.call.results)
        second = jax.tree_util.Partial(self, *found[count:])
        return found[:count], second, list(map(_is_inexact, self.call.results))

    def second(self, given: Sequence[Any], specs: Sequence[Spec], wanted: Sequence[Spec]) -> Any:
        """The second pass: of what is left behind and then values of `specs`, zeros among them."""
        left, values = given[: len(self.left)], given[len(self.left) :]
        real = tuple(map(_is_nonzero, values))
        # As they are: jax.jvp takes tangents in other layouts than the primals.
        avals = tuple(jax.typeof(x) for x in _chosen(values, real))
        asked = real, avals, trace_context()
        if asked not in self.seconds:
            count = len(self.left)

            def logical(*arrays: Any) -> list[Any]:
                zeros = [_zeros(spec) for spec in _chosen(specs, real, False)]
                full = _merged(real, arrays[count:], zeros)
                return self.joined(jax.tree.unflatten(self.after, arrays[:count]), full)

            operands = [*self.left, *map(spec_of, avals)]
            traced = jax.make_jaxpr(logical)(*map(struct, operands))
            wants = list(map(_unknown, wanted))
            self.seconds[asked] = GridCall(self.call.env.now(), traced, operands, wants)
        return self.seconds[asked](*left, *_chosen(values, real))

    # What the two modes differ in.
    split: Callable[..., Any]

    def joined(self, after: Any, full: Sequence[Any]) -> list[Any]:
        """What the function left behind makes of tangents, or of cotangents."""
        raise NotImplementedError


class _Linearized(_Linear):
    """Forward mode."""

    split = staticmethod(jax.linearize)

    def joined(self, after: Any, full: Sequence[Any]) -> list[Any]:
        return [t for t in after(*full) if t.dtype != jax.dtypes.float0]

    def __call__(self, *given: Any) -> list[Any]:
        count = len(self.left)
        tangents = _chosen(given[count:], self.active)
        results = [spec for spec in self.call.results if _is_inexact(spec)]
        found = self.second(
            [*given[:count], *tangents], _chosen(self.call.specs, self.active), results
        )
        mine = iter(found)
        return [
            next(mine) if _is_inexact(spec) else hijax.Zero(aval.to_tangent_aval())
            for spec, aval in zip(self.call.results, self.call.out_aval, strict=True)
        ]


class _PulledBack(_Linear):
    """Reverse mode."""

    split = staticmethod(jax.vjp)

    def joined(self, after: Any, full: Sequence[Any]) -> list[Any]:
        return list(after(list(full)))

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        mine = iter(self.second(given, self.call.results, _chosen(self.call.specs, self.active)))
        return tuple(next(mine) if yes else None for yes in self.active)


def _transposed(call: GridCall, linear: tuple[bool, ...], real: tuple[bool, ...]) -> GridCall:
    """The cotangents of linear operands, of the other operands and of those that are no zeros."""
    fixed, wanted = _chosen(call.specs, linear, False), _chosen(call.specs, linear)

    def back(*arrays: Any) -> list[Any]:
        def forward(*x: Any) -> list[Any]:
            merged = _merged(linear, x, arrays[: len(fixed)])
            return list(_chosen(core.jaxpr_as_fun(call.jaxpr)(*merged), real))

        return list(jax.linear_transpose(forward, *map(struct, wanted))(list(arrays[len(fixed) :])))

    operands = [*fixed, *map(_unknown, _chosen(call.results, real))]
    traced = jax.make_jaxpr(back)(*map(struct, operands))
    return GridCall(call.env.now(), traced, operands, list(map(_unknown, wanted)))


def _mapped(call: GridCall, size: int, name: Any, dims: Any, avals: Sequence[Any]) -> GridCall:
    """The call for so many at a time, along these dims of operands and the first of results."""
    fn = jax.vmap(core.jaxpr_as_fun(call.jaxpr), dims, axis_name=name, axis_size=size)
    specs = [spec_of(aval) for aval in avals]
    traced = jax.make_jaxpr(fn)(*map(struct, specs))
    # What is a plain array stays one: the scalars of all of them.
    wanted = [
        None if isinstance(spec, Sharded) else Replicated(aval.shape, aval.dtype)
        for spec, aval in zip(call.results, traced.out_avals, strict=True)
    ]
    return GridCall(call.env.now(), traced, specs, wanted)


def with_constants_as_operands(closed: Any) -> tuple[Any, list[Any]]:
    """The jaxpr with its constants as its first operands, and these constants.

    They may be tracers of an outer differentiation.
    """
    outer = closed.jaxpr
    operands = [*outer.constvars, *outer.invars]
    names = ("x",) * len(operands), ("",) * len(outer.outvars)
    info = core.DebugInfo("gridlayout", "program", *names)
    jaxpr = core.Jaxpr((), operands, outer.outvars, outer.eqns, outer.effects, info)
    return ClosedJaxpr(jaxpr, ()), list(closed.consts)


# -- values and specs ------------------------------------------------------------------------------


def spec_of(aval: Any) -> Spec:
    """The spec of an operand of this type, which every device has if it is a plain array."""
    if isinstance(aval, GridType):
        return Sharded(aval.layout, aval.device.placement(aval.layout.core_shape))
    return Replicated(tuple(aval.shape), aval.dtype, bool(getattr(aval, "weak_type", False)))


def as_array(spec: Spec, x: Any) -> Any:
    """An operand as JAX takes it."""
    if isinstance(x, (GridArray, jax.Array)):
        return x
    return lax.convert_element_type(x, spec.dtype)


def _as_weak(spec: Spec, array: Any) -> Any:
    """A result as JAX has it, which is weakly typed where the function's is."""
    if not (isinstance(spec, Replicated) and spec.weak_type) or jax.typeof(array).weak_type:
        return array
    return convert_element_type_p.bind(array, new_dtype=spec.dtype, weak_type=True, sharding=None)


def struct(spec: Spec) -> Any:
    """The logical array that a spec is of, as a shape."""
    weak = isinstance(spec, Replicated) and spec.weak_type
    return jax.ShapeDtypeStruct(spec.shape, spec.dtype, weak_type=weak)


def _lowered(x: Any) -> Any:
    return x.storage if isinstance(x, GridArray) else x


def _unknown(spec: Spec) -> Spec:
    """A tangent's: laid out like its primal, but nothing is known of its padding."""
    if isinstance(spec, Sharded):
        return spec.with_oob(None)
    return Replicated(spec.shape, spec.dtype)


def _zeros(spec: Spec) -> Any:
    if not _is_inexact(spec):  # a cotangent that is no array
        return np.zeros(spec.shape, jax.dtypes.float0)
    return jnp.zeros(spec.shape, spec.dtype)


def _is_inexact(spec: Spec) -> bool:
    return bool(jnp.issubdtype(spec.dtype, np.inexact))


def _is_nonzero(x: Any) -> bool:
    return not isinstance(x, hijax.Zero) and x.dtype != jax.dtypes.float0


def _active(specs: Sequence[Spec], nonzero: Sequence[bool]) -> tuple[bool, ...]:
    """The operands with tangents."""
    return tuple(bool(yes) and _is_inexact(spec) for spec, yes in zip(specs, nonzero, strict=True))


def _chosen(values: Sequence[Any], which: Sequence[bool], wanted: bool = True) -> list[Any]:
    return [x for x, yes in zip(values, which, strict=True) if yes == wanted]


def _merged(which: Sequence[bool], yes: Sequence[Any], no: Sequence[Any]) -> list[Any]:
    """Both, as `which` deals them out."""
    mine, others = iter(yes), iter(no)
    return [next(mine) if one else next(others) for one in which]
