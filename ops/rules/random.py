"""Random numbers: each device draws its own part.

Of JAX's default keys, Threefry's, the bits of an element are a hash of the key and of the element's
row-major index (`jax_threefry_partitionable`), so a device makes those of the elements that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.jaxprs import ClosedJaxpr
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import run

# Of each type of keys: JAX's name of its implementation, and the words of a key.
_KEYS = {"key<fry>": ("threefry2x32", 2), "key<rbg>": ("rbg", 4), "key<urbg>": ("unsafe_rbg", 4)}


# Threefry-2x32 with 20 rounds (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011):
# by how much each of eight rounds rotates, and the constant that makes a third word of the key.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
Words = tuple[Any, Any]


def threefry(key: Words, count: Words) -> Words:
    """The two words of Threefry-2x32 for a key and a count, uint32 arrays that broadcast.

    JAX's own runs as a loop on CPUs, which holds four arrays; XLA makes this where it is read.

    >>> key, count = jnp.uint32([0x13198A2E, 0x03707344]), jnp.uint32([0x243F6A88, 0x85A308D3])
    >>> [hex(int(word)) for word in threefry(tuple(key), tuple(count))]  # of the authors' tests
    ['0xc4923a9c', '0x483df7a0']
    """
    keys = (*key, key[0] ^ key[1] ^ np.uint32(_PARITY))
    x, y = count[0] + keys[0], count[1] + keys[1]
    for turn in range(5):
        for by in _ROTATIONS[turn % 2]:
            x = x + y
            y = (y << np.uint32(by)) | (y >> np.uint32(32 - by))
            y = x ^ y
        x = x + keys[(turn + 1) % 3]
        y = y + keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return x, y


def flat_index(index: Sequence[Any], shape: Sequence[int]) -> Words:
    """The row-major index in a shape, as its high and its low word.

    index: an integer array for each dim, that broadcast.

    >>> high, low = flat_index([jnp.array([0, 70000]), jnp.array(69999)], (70001, 70000))
    >>> [(int(h) << 32) + int(w) for h, w in zip(high, low)] == [69999, 70000 * 70000 + 69999]
    True
    """
    words = [lax.convert_element_type(x, np.uint32) for x in index]
    high: Any = np.uint32(0)
    low: Any = np.uint32(0)
    is_long = prod(shape) > 2**32
    for extent, word in zip(shape, words, strict=True):
        if is_long:
            high, low = _times(high, low, extent)
            low, before = low + word, low
            high = high + (low < before).astype(np.uint32)
        else:
            low = low * np.uint32(extent) + word
    return high, low


def _times(high: Any, low: Any, factor: int) -> Words:
    """A number of two words times one of one word, without what is above them."""
    half, mask = np.uint32(16), np.uint32(0xFFFF)
    a, c = np.uint32(factor & 0xFFFF), np.uint32(factor >> 16)
    first, second = low & mask, low >> half
    least, left, right = first * a, first * c, second * a
    middle = (least >> half) + (left & mask) + (right & mask)
    carried = second * c + (left >> half) + (right >> half) + (middle >> half)
    return carried + high * np.uint32(factor), (least & mask) | (middle << half)


def random_bits(b: Builder, op: Op, keys: Value) -> Value | None:
    """Random bits of Threefry, made where they are wanted; None of other keys."""
    if not is_counted(keys):
        return None
    words, lead = key_words(b, keys), keys.ndim
    width, dtype, shape = op.params["bit_width"], op.out.dtype, op.out.shape[lead:]

    def make(b: Builder, place: Place, words: Value) -> Value:
        def run(words: jax.Array) -> list[Any]:
            index = place.index()
            key = words_at(words, index[:lead])
            bits = _in_width(threefry(key, flat_index(index[lead:], shape)), width, dtype)
            return [jnp.broadcast_to(bits, place.local_shape)]

        return b.run(run, [words], [place.spec(dtype)], is_fused=True)[0]

    return b.deferred(make, [words], op.out.shape, dtype)


def _in_width(words: Words, width: int, dtype: Any) -> Any:
    """Bits of a width of the two words of an element."""
    if width == 64:
        high, low = (lax.convert_element_type(word, dtype) for word in words)
        return (high << np.asarray(32, dtype)) | low
    return lax.convert_element_type(words[0] ^ words[1], dtype)


def is_counted(keys: Value) -> bool:
    """Whether the bits of each element are a hash of its index."""
    is_threefry = str(keys.dtype) == "key<fry>" and isinstance(keys.spec, Replicated)
    return is_threefry and bool(jax.config.jax_threefry_partitionable)


def key_words(b: Builder, keys: Value) -> Value:
    """The words of keys, which every device has, along a last dim."""
    _, words = _KEYS[str(keys.dtype)]
    spec = Replicated((*keys.shape, words), jnp.uint32.dtype)
    return b.run(lambda keys: [jax.random.key_data(keys)], [keys], [spec])[0]


def words_at(words: jax.Array, index: Sequence[jax.Array]) -> Words:
    """The two words of the keys at an index."""
    if not index:
        return words[0], words[1]
    first, second = (words[..., k].at[tuple(index)].get(mode="clip") for k in range(2))
    return first, second


def random_gamma(b: Builder, op: Op, keys: Value, alpha: Value) -> Any:
    """Gamma variates: keys are split for the elements of a parameter, of which each draws its own.

    Keys of other types are split whole: None, unless each element has one of its own already.
    """
    if is_counted(keys) and (drawn := _of_own_keys(op)) is not None:
        return _gamma_of_indices(b, drawn, keys, alpha)
    name = str(keys.dtype)
    if name not in _KEYS or keys.layout is not None or keys.shape != alpha.shape:
        return None
    impl, _ = _KEYS[name]
    data = key_words(b, keys)

    def draw(alpha: jax.Array, words: jax.Array) -> list[Any]:
        return op.bind(jax.random.wrap_key_data(words, impl=impl), alpha)

    return run(b, op, [(alpha, ()), (data, (alpha.ndim,))], draw, out_axes=[()])


def _gamma_of_indices(b: Builder, drawn: Any, keys: Value, alpha: Value) -> Value | None:
    """Each element's key is the hash of its index under the key that is split for it."""
    x = b.on_cores(alpha)
    spec = x.spec
    assert isinstance(spec, Sharded)
    if spec.layout.is_scatter:
        return None
    x = b.filled(x, 1)  # any number at which the search for a variate ends
    words, lead, rest = key_words(b, keys), keys.ndim, alpha.shape[keys.ndim :]
    place = Place.part(spec.layout, spec.placement)

    def kernel(part: jax.Array, words: jax.Array) -> list[Any]:
        index = place.index()
        own = threefry(words_at(words, index[:lead]), flat_index(index[lead:], rest))
        data = jnp.stack([jnp.broadcast_to(word, part.shape).ravel() for word in own], -1)
        return [drawn(jax.random.wrap_key_data(data, impl="threefry2x32"), part)]

    return b.run(kernel, [x, words], [spec.with_oob(None)])[0]


def _of_own_keys(op: Op) -> Callable[[Any, jax.Array], jax.Array] | None:
    """What draws each variate of its own key, as JAX does once it has split the keys; else None."""
    draw = partial(op.primitive.impl, **op.params, use_vmap=True)

    def drawn(keys: Any, alpha: jax.Array) -> jax.Array:
        closed = jax.make_jaxpr(draw)(keys, alpha.ravel())
        jaxpr = closed.jaxpr
        first, second, *rest = jaxpr.eqns
        if [first.primitive.name, second.primitive.name] != ["random_split", "reshape"]:
            raise NotImplementedError(f"random_gamma in JAX {jax.__version__}")
        (split,) = second.outvars
        info = core.DebugInfo("gridlayout", "gamma", ("keys", "alpha"), ("variates",))
        own = core.Jaxpr(
            jaxpr.constvars, [split, jaxpr.invars[1]], jaxpr.outvars, rest, jaxpr.effects, info
        )
        (out,) = core.jaxpr_as_fun(ClosedJaxpr(own, closed.consts))(keys, alpha.ravel())
        return out.reshape(alpha.shape)

    one = jax.eval_shape(jax.random.key, 0)
    try:
        jax.eval_shape(
            lambda keys, x: drawn(keys[None], x), one, jax.ShapeDtypeStruct((1,), op.out.dtype)
        )
    except (NotImplementedError, TypeError):
        return None
    return drawn
