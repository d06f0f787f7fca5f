"""Random numbers: each device draws its own part.

With JAX's default keys, the bits of an element are a hash of the key and of the element's row-major
index (`jax_threefry_partitionable`). So a device can draw the numbers of its own elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import THROUGH, Factors, Numbering
from gridlayout.ops.decisions.flops import per_result
from gridlayout.ops.decisions.jaxprs import equations_of, jaxpr_of
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import run
from gridlayout.ops.primitives.keys import (
    KEYS,
    is_hashed_by_index,
    key_source,
    key_words,
    keys_in,
    words_at,
)
from gridlayout.ops.primitives.threefry import Words, flat_index, threefry


def random_bits(b: Builder, op: Op, keys: Value) -> Value | None:
    """Return deferred random bits, each device drawing its own; None unless keys are Threefry."""
    if not is_hashed_by_index(keys):
        return None
    source, lead = key_source(b, keys), keys.ndim
    # XLA for CPUs draws them again in each kernel that reads them, one by one if it branches.
    is_stored = b.device.platform == "cpu"
    width, dtype, shape = op.params["bit_width"], op.out.dtype, op.out.shape[lead:]

    def make(b: Builder, place: Place, source: Value) -> Value:
        keys, words = keys_in(b, source, place, lead)

        def run(keys: jax.Array) -> list[Any]:
            index = place.index()
            bits = threefry(words(keys, index), flat_index(index[lead:], shape))
            found = jnp.broadcast_to(_in_width(bits, width, dtype), place.local_shape)
            return [lax.optimization_barrier(found) if is_stored else found]

        return b.run(run, [keys], [place.spec(dtype)], is_fused=not is_stored)[0]

    return b.deferred(make, [source], op.out.shape, dtype)


def _in_width(words: Words, width: int, dtype: Any) -> Any:
    """Return random bits of a width from the two words of an element."""
    if width == 64:
        high, low = (lax.convert_element_type(word, dtype) for word in words)
        return (high << np.asarray(32, dtype)) | low
    return lax.convert_element_type(words[0] ^ words[1], dtype)


def random_gamma(b: Builder, op: Op, keys: Value, alpha: Value) -> Any:
    """Return gamma variates; keys are split so that each element of `alpha` draws with its own.

    Keys of other types can't be split in parts: None, unless there is one key per element already.
    """
    keys = b.replicated(keys)
    if is_hashed_by_index(keys) and (drawn := _of_own_keys(op)) is not None:
        return _gamma_of_indices(b, drawn, keys, alpha)
    name = str(keys.dtype)
    if name not in KEYS or keys.layout is not None or keys.shape != alpha.shape:
        return None
    impl, _ = KEYS[name]
    data = key_words(b, keys)

    def draw(alpha: jax.Array, words: jax.Array) -> list[Any]:
        return op.bind(jax.random.wrap_key_data(words, impl=impl), alpha)

    return run(b, op, [(alpha, ()), (data, (alpha.ndim,))], draw, out_axes=[()])


def _gamma_of_indices(b: Builder, drawn: Any, keys: Value, alpha: Value) -> Value | None:
    """Return variates whose keys are hashes of the elements' indices under the split keys."""
    x = b.as_sharded(alpha)
    spec = x.spec
    assert isinstance(spec, Sharded)
    if spec.layout.is_scatter:
        return None
    x = b.with_padding(x, 1)  # any number for which the search for a variate ends
    words, lead, rest = key_words(b, keys), keys.ndim, alpha.shape[keys.ndim :]
    place = Place.part(spec.layout, spec.placement)

    def kernel(part: jax.Array, words: jax.Array) -> list[Any]:
        index = place.index()
        own = threefry(words_at(words, index[:lead]), flat_index(index[lead:], rest))
        data = jnp.stack([jnp.broadcast_to(word, part.shape).ravel() for word in own], -1)
        return [drawn(jax.random.wrap_key_data(data, impl="threefry2x32"), part)]

    return b.run(kernel, [x, words], [spec.with_oob(None)])[0]


def _of_own_keys(op: Op) -> Callable[[Any, jax.Array], jax.Array] | None:
    """Return a function that draws each variate from its own key, else None.

    It is the part of JAX's implementation after the split of keys; None if JAX's has another form.
    """
    draw = partial(op.primitive.impl, **op.params, use_vmap=True)

    def drawn(keys: Any, alpha: jax.Array) -> jax.Array:
        closed = jax.make_jaxpr(draw)(keys, alpha.ravel())
        jaxpr = closed.jaxpr
        first, second, *rest = equations_of(closed)
        if [first.primitive.name, second.primitive.name] != ["random_split", "reshape"]:
            raise NotImplementedError(f"random_gamma in JAX {jax.__version__}")
        (split,) = second.outvars
        operands = [*jaxpr.constvars, split, jaxpr.invars[1]]
        own = core.jaxpr_as_fun(jaxpr_of(operands, rest, jaxpr.outvars, jaxpr))
        (out,) = own(*closed.consts, keys, alpha.ravel())
        return out.reshape(alpha.shape)

    one = jax.eval_shape(jax.random.key, 0)
    try:
        jax.eval_shape(
            lambda keys, x: drawn(keys[None], x), one, jax.ShapeDtypeStruct((1,), op.out.dtype)
        )
    except (NotImplementedError, TypeError):
        return None
    return drawn


def _own(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of random numbers: devices draw those of their own elements."""
    made = Numbering(ins, outs)
    for d in range(len(outs[0])):
        given = [(k, d) for k, shape in enumerate(ins) if k and len(shape) == len(outs[0])]
        made.add(THROUGH, *given, (len(ins), d))
    return made.factors()


RANDOM: dict[str, Record] = {
    "random_gamma": Record((random_gamma,), per_result, _own, takes_keys=True),
    # Positions and random bits have no rule: they are deferred.
    "random_bits": Record(factors=_own, is_made_in_place=True),
    "iota": Record(factors=_own, is_made_in_place=True, is_fused=True, takes_fused=True),
}
