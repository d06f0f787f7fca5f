"""Random keys. If there are many, each device computes only the keys that it draws with.

A Threefry key has two words. The keys that are split from a key are hashes of it and of their
row-major indices (`jax_threefry_partitionable`), so a device can compute any of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.arguments import Shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.reshapes import at_place
from gridlayout.ops.decisions.specs import Replicated, is_indexed, is_of_keys
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.threefry import Words, flat_index, threefry

# For each key type: JAX's name of its implementation, and the number of words of a key.
KEYS = {"key<fry>": ("threefry2x32", 2), "key<rbg>": ("rbg", 4), "key<urbg>": ("unsafe_rbg", 4)}
_THREEFRY = "key<fry>"


def is_threefry(dtype: Any) -> bool:
    """Whether keys of a type are hashed by index, as Threefry's are."""
    return str(dtype) == _THREEFRY and bool(jax.config.jax_threefry_partitionable)


def is_hashed_by_index(keys: Value) -> bool:
    """Whether random bits from these keys are, for each element, a hash of its index."""
    is_known = isinstance(keys.spec, Replicated) or is_indexed(keys.spec)
    return is_known and is_threefry(keys.dtype)


def key_words(b: Builder, keys: Value) -> Value:
    """Return the words of keys as a replicated array, with the words along a new last dim."""
    _, words = KEYS[str(keys.dtype)]
    spec = Replicated((*keys.shape, words), jnp.uint32.dtype)
    return b.run(lambda keys: [jax.random.key_data(keys)], [keys], [spec])[0]


def words_at(words: jax.Array, index: Sequence[jax.Array]) -> Words:
    """Return the two words of the keys at an index."""
    if not index:
        return words[0], words[1]
    first, second = (words[..., k].at[tuple(index)].get(mode="clip") for k in range(2))
    return first, second


# -- keys in a place -------------------------------------------------------------------------------


def key_source(b: Builder, keys: Value) -> Value:
    """Return the operand that `keys_in` needs: deferred keys, or the words of replicated ones."""
    return keys if is_of_keys(keys.spec) and is_indexed(keys.spec) else key_words(b, keys)


def keys_in(
    b: Builder, source: Value, place: Place, lead: int
) -> tuple[Value, Callable[[jax.Array, Sequence[jax.Array]], Words]]:
    """Return the keys at the first `lead` indices of a place, and a function for their words.

    source: from `key_source`. The function takes the array of the keys and the place's index.
    """
    if not is_of_keys(source.spec):
        return source, lambda words, index: words_at(words, index[:lead])
    keys = at_place(b, source, place.reindexed(_first(place, lead)))
    return keys, lambda keys, _: _words(keys)


def _first(place: Place, count: int) -> AffineMap:
    return AffineMap(len(place.map.results), tuple(map(dim, range(count))))


def _words(keys: jax.Array) -> Words:
    words = jax.random.key_data(keys)
    return words[..., 0], words[..., 1]


# -- many keys -------------------------------------------------------------------------------------


def many_keys(b: Builder, op: Op, *values: Value) -> Value | None:
    """Return deferred keys; None if there are few, or if they are not Threefry's."""
    (key,) = op.outs
    if not is_threefry(key.dtype) or not is_large(b, key.shape):
        return None
    rule = _RULES.get(op.name)
    return None if rule is None else rule(b, op, *values)


def is_large(b: Builder, shape: Shape) -> bool:
    """Whether there are too many keys in a shape for every device to compute all of them."""
    return b.env.is_large(Replicated((*shape, 2), jnp.uint32.dtype))


def _keys_of_words(b: Builder, place: Place, op: Op, run: Any, *operands: Value) -> Value:
    """Return the keys in a place, from the two words that `run` returns.

    A barrier separates them from their users. Without it XLA would compute them again for each
    number that is drawn, and would take minutes to compile hashes of hashes.
    """
    spec = place.spec(op.out.dtype)

    def kernel(*arrays: jax.Array) -> list[Any]:
        words = [jnp.broadcast_to(word, spec.shape) for word in run(*arrays)]
        words = lax.optimization_barrier(words)
        return [jax.random.wrap_key_data(jnp.stack(words, -1), impl=KEYS[_THREEFRY][0])]

    return b.run(kernel, operands, [spec])[0]


def _split(b: Builder, op: Op, keys: Value) -> Value | None:
    """Return split keys: each is the hash of its index under the key that is split."""
    if not is_hashed_by_index(keys):
        return None
    source, lead = key_source(b, keys), keys.ndim
    shape = op.out.shape[lead:]

    def make(b: Builder, place: Place, source: Value) -> Value:
        keys, words = keys_in(b, source, place, lead)

        def run(keys: jax.Array) -> Words:
            index = place.index()
            return threefry(words(keys, index), flat_index(index[lead:], shape))

        return _keys_of_words(b, place, op, run, keys)

    return b.deferred(make, [source], op.out.shape, op.out.dtype)


def _fold_in(b: Builder, op: Op, keys: Value, data: Value) -> Value | None:
    """Return folded keys: each is the hash of a number under its key."""
    shape = op.out.shape
    if (
        not is_hashed_by_index(keys)
        or keys.shape not in ((), shape)
        or data.shape not in ((), shape)
    ):
        return None
    source, lead = key_source(b, keys), keys.ndim

    def make(b: Builder, place: Place, source: Value, data: Value) -> Value:
        keys, words = keys_in(b, source, place, lead)
        numbers = at_place(b, data, place)

        def run(keys: jax.Array, data: jax.Array) -> Words:
            low = lax.convert_element_type(_thin(data, place), jnp.uint32)
            return threefry(words(keys, place.index()), (jnp.zeros_like(low), low))

        return _keys_of_words(b, place, op, run, keys, numbers)

    return b.deferred(make, [source, data], shape, op.out.dtype)


def _wrap(b: Builder, op: Op, data: Value) -> Value | None:
    """Return the keys of deferred words, deferred too; None for other words."""
    if not is_indexed(data.spec):
        return None

    def make(b: Builder, place: Place, data: Value) -> Value:
        rank = len(place.map.results)
        halves = [
            at_place(
                b, data, place.reindexed(AffineMap(rank, (*map(dim, range(rank)), constant(k))))
            )
            for k in range(2)
        ]
        return _keys_of_words(
            b, place, op, lambda *words: [_thin(x, place) for x in words], *halves
        )

    return b.deferred(make, [data], op.out.shape, op.out.dtype)


def _seed(b: Builder, op: Op, seeds: Value) -> Value | None:
    """Return the keys of deferred seeds, deferred too; None for other seeds."""
    if not is_indexed(seeds.spec):
        return None

    def make(b: Builder, place: Place, seeds: Value) -> Value:
        def run(seeds: jax.Array) -> Words:
            return _words(op.bind(_thin(seeds, place))[0])

        return _keys_of_words(b, place, op, run, at_place(b, seeds, place))

    return b.deferred(make, [seeds], op.out.shape, op.out.dtype)


def unwrapped(b: Builder, op: Op, keys: Value) -> Value | None:
    """Return the words of deferred keys, deferred too; None for other keys."""
    if not is_indexed(keys.spec) or not is_threefry(keys.dtype):
        return None
    lead = keys.ndim

    def make(b: Builder, place: Place, keys: Value) -> Value:
        part, words = keys_in(b, keys, place, lead)

        def run(part: jax.Array) -> list[Any]:
            index = place.index()
            word = jnp.where(index[lead] == 0, *words(part, index))
            return [jnp.broadcast_to(word, place.local_shape)]

        return b.run(run, [part], [place.spec(op.out.dtype)], is_fused=True)[0]

    return b.deferred(make, [keys], op.out.shape, op.out.dtype)


def _thin(x: Any, place: Place) -> Any:
    """Return an array of a place with extent 1 along dims that the value's index does not use."""
    shape = jnp.shape(x)
    if place.layout is None or not shape:
        return x
    pairs = zip(shape, place.extents, strict=True)
    return x[tuple(slice(None) if n == e else slice(0, 1) for n, e in pairs)]


_RULES: dict[str, Callable[..., Value | None]] = {
    "random_seed": _seed,
    "random_split": _split,
    "random_fold_in": _fold_in,
    "random_wrap": _wrap,
}
