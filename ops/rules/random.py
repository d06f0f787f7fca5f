"""Random numbers: each device draws its own part.

Of JAX's default keys, Threefry's, the bits of an element are a hash of the key and of the element's
row-major index (`jax_threefry_partitionable`), so a device makes those of the elements that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import Replicated
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import run

# Of each type of keys: JAX's name of its implementation, and the words of a key.
_KEYS = {"key<fry>": ("threefry2x32", 2), "key<rbg>": ("rbg", 4), "key<urbg>": ("unsafe_rbg", 4)}


# Threefry-2x32 with 20 rounds: by how much each of eight rounds rotates, and the constant that makes
# a third word of the key (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
Words = tuple[Any, Any]


def threefry(key: Words, count: Words) -> Words:
    """The two words of Threefry-2x32 for a key and a count, uint32 arrays that broadcast.

    JAX's own runs as a loop on CPUs, which holds four arrays; XLA makes this where it is read.

    >>> key, count = (jnp.uint32([k, k]) for k in (0x13198A2E, 0x243F6A88))
    >>> [hex(int(word)) for word in threefry((key[0], np.uint32(0x03707344)), (count[0], np.uint32(0x85A308D3)))]
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
    if not _is_counted(keys):
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


def _is_counted(keys: Value) -> bool:
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
    """Gamma variates, each of a key and a parameter of its own."""
    name = str(keys.dtype)
    if name not in _KEYS or keys.layout is not None or keys.shape != alpha.shape:
        return None
    impl, _ = _KEYS[name]
    data = key_words(b, keys)

    def draw(alpha: jax.Array, words: jax.Array) -> list[Any]:
        return op.bind(jax.random.wrap_key_data(words, impl=impl), alpha)

    return run(b, op, [(alpha, ()), (data, (alpha.ndim,))], draw, out_axes=[()])
