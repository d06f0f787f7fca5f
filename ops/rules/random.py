"""Random numbers whose parameters lie on cores: each device draws its own part."""

from __future__ import annotations

from typing import Any

import jax

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import run

# Of each type of keys: JAX's name of its implementation, and the words of a key.
_KEYS = {"key<fry>": ("threefry2x32", 2), "key<rbg>": ("rbg", 4), "key<urbg>": ("unsafe_rbg", 4)}


def random_gamma(b: Builder, op: Op, keys: Value, alpha: Value) -> Any:
    """Gamma variates, each of a key and a parameter of its own."""
    name = str(keys.dtype)
    if name not in _KEYS or keys.layout is not None or keys.shape != alpha.shape:
        return None
    impl, words = _KEYS[name]
    spec = Replicated((*keys.shape, words), jax.numpy.uint32.dtype)
    (data,) = b.run(lambda keys: [jax.random.key_data(keys)], [keys], [spec])

    def draw(alpha: jax.Array, words: jax.Array) -> list[Any]:
        return op.bind(jax.random.wrap_key_data(words, impl=impl), alpha)

    return run(b, op, [(alpha, ()), (data, (alpha.ndim,))], draw, out_axes=[()])
