"""Layouts of every kind over small shapes, and arrays in them whose padding is poisoned.

The judge of the tests that run on devices: it asks a layout only for the text of its index map,
which NumPy evaluates here, and never for its array program, its inverse or its masks.
"""

import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import gridlayout as gl
from gridlayout.ops.interpret.grid_call import GridCall

# What each linear map is a case of, by rank of the tensor. `{n}` is filled in with an extent.
LINEAR = {
    1: {
        "twice": "(d0) -> (d0, d0)",
        "gap": "(d0) -> (d0 * 2 + 3)",
        "digits": "(d0) -> (d0 floordiv 3, d0 mod 3)",
        "reversed": "(d0) -> (-d0 + {0})",
    },
    2: {
        "transposed": "(d0, d1) -> (d1, d0)",
        "bumped stride": "(d0, d1) -> (d0 * ({1} + 3) + d1)",
        "gap": "(d0, d1) -> (d0 * 2 + 1, d1)",
        "flip and gap": "(d0, d1) -> (-d0 + {0}, d1 * 3)",
        "twice": "(d0, d1) -> (d0, d0, d1)",
        "documented twice": "(d0, d1) -> (d0 * {1} + d1, d1)",
        "digits": "(d0, d1) -> (d1 floordiv 4, d0 * 4 + d1 mod 4)",
        "staircase": "(d0, d1) -> (d0 + d1, d1)",
    },
    3: {
        "joined": "(d0, d1, d2) -> (d0 * {1} + d1, d2)",
        "joined across": "(d0, d1, d2) -> (d1, d0 * ({2} + 1) + d2)",
        "joined swapped": "(d0, d1, d2) -> (d1 * {0} + d0, d2)",
        "documented twice": "(d0, d1, d2) -> (d0 * {1} + d1, d1, d2)",
    },
}

# Grids and tiles for collapse intervals, by rank of the tensor: (grid, tile, face, intervals).
INTERVALS = {
    1: [
        ((2, 4), None, None, None),
        ((3,), None, None, []),
        ((2,), (2,), None, []),
        ((1, 3), (4, 4), None, None),
    ],
    2: [
        ((2, 4), None, None, None),
        ((3, 2), (4, 4), None, None),
        ((1, 1), (8, 4), None, None),
        ((3,), None, None, [(0, 2)]),
        ((3,), (4,), None, [(0, 2)]),
        ((2, 3, 2), None, None, []),
        ((2, 1), (4, 8), (2, 4), None),
        ((8, 8), None, None, None),
        ((3, 2), (4,), None, None),
    ],
    3: [
        ((2, 4), None, None, None),
        ((3, 2), (4, 4), None, None),
        ((3,), None, None, [(0, 3)]),
        ((2, 2, 2), None, None, []),
        ((2, 3, 2), (2, 4), None, []),
        ((1, 4), None, None, [(1, 3)]),
    ],
}


# XLA's defaults, where the whole suite is compiled without them (tests/conftest.py).
OPTIMIZED = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
}
if jax.__version_info__ < (0, 11):  # gone in later XLA
    OPTIMIZED["xla_cpu_use_fusion_emitters"] = True


def optimized(fn):
    """A function compiled as users' are: optimizations of machine code may lose bits."""
    return jax.jit(fn, compiler_options=OPTIMIZED)


@cache
def layouts(shape, dtype="float32"):
    """One layout of every kind for a shape of rank 1 to 3, by name."""
    found = {}
    for grid, tile, face, intervals in INTERVALS[len(shape)]:
        name = f"grid {grid} tile {tile} face {face} collapse {intervals}"
        found[name] = gl.GridLayout(shape, dtype, grid, tile, intervals, face=face)
    # Cores that hold more than their share, so that the last ones hold less, or nothing.
    grid, tile, _, intervals = INTERVALS[len(shape)][0]
    plain = gl.GridLayout(shape, dtype, grid, tile, intervals)
    shard = tuple(n + k + 1 for k, n in enumerate(plain.shard_shape))
    stated = plain.replace(shard_shape=shard)
    if len(shape) == 1:
        found["stated shard, aligned rows"] = stated.replace(row_alignment=16)
    else:
        found["aligned rows"] = plain.replace(row_alignment=16)
        found |= {"stated shard": stated, "stated shard, tiled": stated.replace(tile=(2, 4))}
    for name, text in LINEAR[len(shape)].items():
        text = text.format(*shape)
        rank = gl.AffineMap.parse(text).results.__len__()
        found[name] = gl.GridLayout(shape, dtype, (2,) * rank, linear=text)
        if rank == 2:
            found[f"{name}, tiled"] = found[name].replace(tile=(2, 4), grid=(3, 2))
    return found


def choices(shapes, count, seed):
    """`count` tuples of layouts for the shapes; over all seeds every layout has its turn."""
    tables = [list(layouts(shape).values()) for shape in shapes]
    for n in range(count):
        step = seed * count + n
        # Different strides through the tables, so that pairs of layouts differ from turn to turn.
        yield tuple(
            table[(step * (2 * k + 1) + 5 * k) % len(table)] for k, table in enumerate(tables)
        )


def indices(shape):
    return itertools.product(*map(range, shape))


class Indices(np.ndarray):
    """Indices along a dim, in a text where `@`, which binds as `*` does, stands for ceildiv."""

    def __matmul__(self, divisor):
        return -(-self // divisor)


@cache
def positions(layout):
    """The physical index of every element, by the text of the index map, as an index of arrays."""
    text = str(layout.index_map).split(" -> ")[1]
    for word, operator in (("floordiv", "//"), ("ceildiv", "@"), ("mod", "%")):
        text = text.replace(word, operator)
    dims = {f"d{k}": at.view(Indices) for k, at in enumerate(np.indices(layout.shape))}
    found = eval(f"({text[1:-1]},)" if text != "()" else "()", dims)
    return tuple(np.array(np.broadcast_to(at, layout.shape)) for at in found)


def packed(array, layout, fill):
    """The physical array; `fill` where no element lives."""
    physical = np.full(layout.physical_shape, fill, array.dtype)
    physical[positions(layout)] = array
    return physical


def padding(layout):
    """True at the physical indices that no element lives at, element by element."""
    return packed(np.zeros(layout.shape, bool), layout, True)


def poison(dtype):
    """A value that no operation forgives: NaN, or a number unlike all others in the tests."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return True
    return np.nan if jnp.issubdtype(dtype, jnp.inexact) else 77


def poisoned(array, layout, device, fill=None):
    """The array laid out, with poison, or `fill`, in its padding and in idle slots."""
    array = np.asarray(array)
    layout = layout.with_dtype(array.dtype)
    fill = poison(array.dtype) if fill is None else fill
    storage = np.full(device.storage_shape(layout), fill, array.dtype)
    storage[tuple(map(slice, layout.physical_shape))] = packed(array, layout, fill)
    return gl.GridArray(jax.device_put(storage, device.sharding(layout)), layout, device)


def read(x):
    """The logical array, each element from where it lives."""
    return np.asarray(x.storage)[positions(x.layout)] if is_grid(x) else np.asarray(x)


def is_grid(x):
    return isinstance(x, gl.GridArray)


def leaves(tree):
    return jax.tree.leaves(tree, is_leaf=is_grid)


def wide(x):
    """As NumPy numbers that hold every value of the small types exactly."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def assert_claim_holds(x):
    """What a `GridArray`'s layout says of its padding is true, in idle slots too."""
    if not is_grid(x) or x.layout.oob is None:
        return
    storage = np.asarray(x.storage)
    rank = len(x.layout.physical_shape)
    outside = np.ones(storage.shape[storage.ndim - rank :], bool)
    outside[tuple(slice(n) for n in x.layout.physical_shape)] = padding(x.layout)
    held = wide(storage[..., outside])
    np.testing.assert_array_equal(held, np.full_like(held, x.layout.oob), err_msg=repr(x.layout))


def assert_same(found, expected, rtol=1e-5, atol=1e-6):
    """A result on the grid is JAX's: structure, shape, dtype, values; and its claims hold."""
    assert jax.tree.structure(found, is_leaf=is_grid) == jax.tree.structure(expected)
    for f, w in zip(leaves(found), jax.tree.leaves(expected), strict=True):
        assert f.shape == w.shape
        assert f.dtype == w.dtype
        assert is_grid(f) == (f.ndim > 0)
        np.testing.assert_allclose(wide(read(f)), wide(w), rtol=rtol, atol=atol)
        assert_claim_holds(f)


def assert_goes_round(layout):
    """Data goes into a layout and back: on the host by both paths, on devices, by a relayout."""
    x = np.arange(layout.size, dtype=np.float32).reshape(layout.shape)
    for path in ("program", "gather"):
        held = np.array(gl.pack(x, layout, path=path))
        assert held.shape == layout.physical_shape
        held[padding(layout)] = np.nan
        np.testing.assert_array_equal(held, packed(x, layout, np.nan))
        np.testing.assert_array_equal(gl.unpack(held, layout, path=path), x)
    laid = gl.put(x, layout, gl.DeviceGrid((2, 4)))
    np.testing.assert_array_equal(np.asarray(laid), x)
    if x.ndim > 1 and x.size:
        back = gl.relayout(laid, gl.GridLayout(x.shape, "float32", (2, 4)))
        np.testing.assert_array_equal(np.asarray(back), x)
        np.testing.assert_array_equal(np.asarray(gl.relayout(back, layout)), x)


def equations(jaxpr):
    """The equations of a jaxpr, and of the jaxprs in its calls.

    JAX traces a call of a lifted function as one primitive, if the program has imported checkify.
    """
    for eqn in jaxpr.eqns:
        yield eqn
        if isinstance(call := eqn.params.get("_prim"), GridCall):
            storages = [getattr(aval, "lo_ty", lambda a=aval: [a])()[0] for aval in call.in_avals]
            yield from equations(jax.make_jaxpr(call.on_storages)(*storages).jaxpr)
            continue
        for value in jax.tree.leaves(eqn.params, is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from equations(inner)
