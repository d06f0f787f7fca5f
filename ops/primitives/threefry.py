"""Threefry, the hash behind JAX's default random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from jax import lax

# Threefry-2x32 with 20 rounds (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011):
# the rotation in each of eight rounds, and the constant that gives the third word of the key.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
Words = tuple[Any, Any]


def threefry(key: Words, count: Words) -> Words:
    """Return the two words of Threefry-2x32 for a key and a count, uint32 arrays that broadcast.

    JAX's own is a loop on CPUs, which holds four arrays; XLA fuses this one into its consumers.

    >>> import jax.numpy as jnp
    >>> key, count = jnp.uint32([0x13198A2E, 0x03707344]), jnp.uint32([0x243F6A88, 0x85A308D3])
    >>> [hex(int(word)) for word in threefry(tuple(key), tuple(count))]  # from the authors' tests
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
    """Return the row-major index in a shape, as its high and its low word.

    index: one integer array per dim; they broadcast.

    >>> import jax.numpy as jnp
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
    """Return a two-word number times a one-word number, modulo 2**64."""
    half, mask = np.uint32(16), np.uint32(0xFFFF)
    a, c = np.uint32(factor & 0xFFFF), np.uint32(factor >> 16)
    first, second = low & mask, low >> half
    least, left, right = first * a, first * c, second * a
    middle = (least >> half) + (left & mask) + (right & mask)
    carried = second * c + (left >> half) + (right >> half) + (middle >> half)
    return carried + high * np.uint32(factor), (least & mask) | (middle << half)
