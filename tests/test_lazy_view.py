"""`LazyView` against NumPy: reshapes and transposes in a row, made at once."""

from math import prod

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gridlayout.ops.moves.lazy_view import LazyView

FACTORS = st.lists(st.sampled_from([1, 1, 2, 2, 3, 4, 5]), min_size=1, max_size=6)


@st.composite
def chains(draw):
    """A shape, and what is done with it: a reshape to a shape, or a transpose by an order."""
    factors = draw(FACTORS)
    first = shape = tuple(factors)
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        if draw(st.booleans()):
            order = tuple(draw(st.permutations(range(len(shape)))))
            steps.append(("transpose", order))
            shape = tuple(shape[d] for d in order)
        else:
            pieces = list(draw(st.permutations(factors)))
            joins = draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
            shape = (pieces[0],)
            for piece, join in zip(pieces[1:], joins, strict=False):
                shape = (*shape[:-1], shape[-1] * piece) if join else (*shape, piece)
            steps.append(("reshape", shape))
    return first, steps


@given(chains())
def test_a_chain_is_what_numpy_makes_of_it(chain):
    shape, steps = chain
    expected = np.arange(prod(shape)).reshape(shape)
    seen = LazyView.of(jax.numpy.asarray(expected))
    for name, argument in steps:
        if name == "transpose":
            expected, seen = expected.transpose(argument), seen.transpose(argument)
        else:
            expected, seen = expected.reshape(argument), seen.reshape(*argument)
        assert seen.shape == expected.shape
    np.testing.assert_array_equal(seen.materialize(), expected)


def operations(fn, shape):
    text = jax.make_jaxpr(fn)(np.zeros(shape))
    return [eqn.primitive.name for eqn in text.eqns]


def test_few_operations_are_made():
    def there_and_back(x):
        return (
            LazyView.of(x).reshape(2, 3, 4).transpose((2, 0, 1)).transpose((1, 2, 0)).materialize()
        )

    assert operations(there_and_back, (6, 4)) == ["reshape"]

    def merged(x):  # dims 0 and 1 stay neighbours, so two dims change places
        seen = LazyView.of(x).transpose((2, 0, 1)).reshape(5, 6).transpose((1, 0))
        return seen.reshape(6, 5).transpose((1, 0)).materialize()

    assert operations(merged, (2, 3, 5)) == ["reshape", "transpose"]

    def of_batches(x):  # so that the elements of a batch are found by the positions in it
        return LazyView.of(x).transpose((0, 1, 3, 2, 4)).reshape(2, 6, 35).materialize()

    turned = jax.make_jaxpr(of_batches)(np.zeros((2, 2, 5, 3, 7))).eqns[0]
    assert turned.outvars[0].aval.shape == (2, 2, 3, 5, 7)
    ones = lambda x: LazyView.of(x).transpose((0, 3, 1, 2)).materialize()  # noqa: E731
    assert operations(ones, (1, 4, 1, 6)) == ["transpose"]
    assert operations(lambda x: LazyView.of(x).transpose((1, 0, 2)).materialize(), (1, 4, 6)) == [
        "reshape"
    ]


def test_a_dim_that_ends_inside_a_digit_is_made_first():
    x = np.arange(12).reshape(3, 4)
    seen = LazyView.of(jax.numpy.asarray(x)).transpose((1, 0)).reshape(2, 6).transpose((1, 0))
    np.testing.assert_array_equal(seen.materialize(), x.T.reshape(2, 6).T)
    crossed = LazyView.of(jax.numpy.asarray(x)).transpose((1, 0)).reshape(6, 2).transpose((1, 0))
    np.testing.assert_array_equal(crossed.materialize(), x.T.reshape(6, 2).T)


def test_arrays_without_elements():
    seen = LazyView.of(jax.numpy.zeros((0, 3, 4))).transpose((1, 0, 2)).reshape(4, 0, 3, 1)
    assert seen.transpose((2, 1, 0, 3)).materialize().shape == (3, 0, 4, 1)
    assert LazyView.of(jax.numpy.ones((2, 3))).reshape(-1, 2).shape == (3, 2)
    assert LazyView.of(jax.numpy.ones((2, 3))).first(2, 1).materialize().shape == (2, 2)
    assert LazyView.of(jax.numpy.ones((2, 3, 4))).moved(2, 0).materialize().shape == (4, 2, 3)


def test_a_view_that_is_made_wider_is_padded_without_a_pad():
    def wider(high):
        return np.pad(np.ones((2, 3, 4)), [(0, n) for n in high], constant_values=7)

    view = LazyView.of(np.ones((2, 3, 4)), wider).reshape(1, 2, 3, 2, 2)
    made = view.padded((0,) * 5, (0, 0, 5, 0, 0))
    assert made is not None
    expected = np.full((1, 2, 8, 2, 2), 7.0)
    expected[:, :, :3] = 1
    np.testing.assert_array_equal(made.materialize(), expected)
    assert view.padded((0,) * 5, (0, 0, 0, 1, 0)) is None  # a part of a dim
    assert view.padded((0, 0, 1, 0, 0), (0,) * 5) is None
    assert view.exact.padded((0,) * 5, (0, 0, 5, 0, 0)) is None
    assert view.transpose((0, 2, 1, 3, 4)).padded((0,) * 5, (0, 5, 0, 0, 0)) is None
