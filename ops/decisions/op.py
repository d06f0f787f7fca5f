"""`Op`: a primitive, its parameters, and the types of its operands and results.

Rules take an `Op` instead of a jaxpr equation, so that one rule can call another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.ops.decisions.jaxprs import ClosedJaxpr
from gridlayout.ops.decisions.requested import Requested, RequestedLoop
from gridlayout.ops.decisions.stated import CONSTRAINTS

# Parameters of JAX's own sharding of the logical array. They are read only of primitives that do
# nothing but state it; the graph adds such ones (`stating_equation`).
NOT_READ = ("sharding", "out_sharding")


@dataclass(frozen=True)
class Aval:
    """Shape and dtype of a logical array, like `jax.core.ShapedArray`."""

    shape: Shape
    dtype: Any
    weak_type: bool = False

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @classmethod
    def of(cls, aval: Any) -> Aval:
        """Return the `Aval` of a JAX type; `LayoutError` for an array that changes in place."""
        if hasattr(aval, "inner_aval"):
            raise LayoutError(
                f"{aval}: an array that changes in place stays in the function that makes it: pass "
                "its value, ref[...], make another one inside, jax.new_ref(x), and return its value"
            )
        return cls(tuple(aval.shape), aval.dtype, bool(getattr(aval, "weak_type", False)))


def bits_of(param: Any, of_jaxpr: Callable[[Any], Hashable] | None = None) -> Hashable:
    """Return a key that is equal for parameters of equal types and bits.

    It tells 1 from True and 0.0 from -0.0. of_jaxpr: returns the key of a jaxpr; by default the
    jaxpr is its own key.
    """
    if isinstance(param, (tuple, list)):
        return type(param), *(bits_of(each, of_jaxpr) for each in param)
    if isinstance(param, (float, complex, np.generic)):
        return type(param), np.asarray(param).tobytes()
    if of_jaxpr is not None and isinstance(param, (ClosedJaxpr, core.Jaxpr)):
        return of_jaxpr(param)
    return type(param), param


@dataclass(frozen=True, eq=False)
class Op:
    """A primitive applied to operands of given types.

    permutation: the order of the transpose of the single result, if that is fused with the op.
    layout: the layout to which the consumers of the single result relay it out, if there is one.
    requested: the placements of operands and result that a planned program requests.
    loop: the placements of carried and scanned values that it requests of a loop.
    equation: the equation of the jaxpr, if the op comes from one. Rules of users get it.
    """

    primitive: Any
    params: Mapping[str, Any]
    ins: tuple[Aval, ...]
    outs: tuple[Aval, ...]
    permutation: Shape | None = None
    layout: GridLayout | None = None
    requested: Requested | None = None
    loop: RequestedLoop | None = None
    equation: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, eqn: Any) -> Op:
        """Return the op of an equation."""
        is_read = eqn.primitive.name in CONSTRAINTS
        ignored = {name: None for name in NOT_READ if name in eqn.params and not is_read}
        return cls(
            eqn.primitive,
            {**eqn.params, **ignored} if ignored else eqn.params,
            tuple(Aval.of(atom.aval) for atom in eqn.invars),
            tuple(Aval.of(var.aval) for var in eqn.outvars),
            equation=eqn,
        )

    def placed(
        self,
        follower: Op | None = None,
        layout: GridLayout | None = None,
        requested: Requested | RequestedLoop | None = None,
    ) -> Op:
        """Return this op with requests, fused with `follower`, a transpose of its result."""
        if follower is None and layout is None and requested is None:
            return self
        return Op(
            *(self.primitive, self.params, self.ins),
            self.outs if follower is None else follower.outs,
            None if follower is None else tuple(follower.params["permutation"]),
            layout,
            None if isinstance(requested, RequestedLoop) else requested,
            requested if isinstance(requested, RequestedLoop) else None,
            self.equation,
        )

    @classmethod
    def made(cls, primitive: Any, params: Mapping[str, Any], *ins: Any) -> Op:
        """Return the op of a primitive on operands like `ins`; JAX infers the result types."""
        avals = tuple(Aval(tuple(x.shape), x.dtype) for x in ins)
        given = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        outs = jax.eval_shape(lambda *xs: primitive.bind(*xs, **params), *given)
        many = outs if primitive.multiple_results else [outs]
        return cls(primitive, params, avals, tuple(Aval(out.shape, out.dtype) for out in many))

    @property
    def name(self) -> str:
        """The primitive's name."""
        return str(self.primitive.name)

    @property
    def title(self) -> str:
        """The name in reports: the primitive's, or that of the only one that `views` stands for."""
        members: Any = self.params["members"] if self.name == "views" else ()
        return self.name if len(members) != 1 else str(members[0][0].name)

    @property
    def out(self) -> Aval:
        """The type of the first result."""
        return self.outs[0]

    @cached_property
    def _key(self) -> Any:
        params = tuple((name, bits_of(self.params[name])) for name in sorted(self.params))
        more = self.permutation, self.layout, self.requested, self.loop
        return self.primitive, params, self.ins, self.outs, *more

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Op) and self._hash == other._hash and self._key == other._key

    def bind(self, *arrays: Any, **changes: Any) -> list[Any]:
        """Apply the primitive to arrays, with `changes` of its parameters; return a list."""
        out = self.primitive.bind(*arrays, **{**self.params, **changes})
        return list(out) if self.primitive.multiple_results else [out]

    def bound(self, **changes: Any) -> Callable[..., list[Any]]:
        """Return `bind` with these parameter changes, as a function of arrays."""
        return lambda *arrays: self.bind(*arrays, **changes)

    def on_logical(self, *values: Any) -> list[Any]:
        """Apply the primitive to logical arrays, converted to its operand types; return a list."""
        given = []
        for aval, value in zip(self.ins, values, strict=True):
            is_key = jnp.issubdtype(aval.dtype, jax.dtypes.extended)
            given.append(value if is_key else jnp.asarray(value, aval.dtype))
        return self.bind(*given)
