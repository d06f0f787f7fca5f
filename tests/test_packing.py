"""pack and unpack: the array program, the gather and a loop over `locate` move the same bits."""

import re

import chex
import einops
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import mapped
from hlo import operations
from hypothesis import given, settings
from hypothesis import strategies as st
from laid_out import indices, layouts, optimized, packed, padding
from tiers import examples, few

import gridlayout as gl
from gridlayout.layouts.program import pack_host

TABLE = [
    pytest.param(layout, id=f"{len(shape)}d {name}")
    for shape in ((7,), (5, 7), (2, 5, 7))
    for name, layout in layouts(shape).items()
]
PATHS = ("program", "gather")


@st.composite
def random_layouts(draw):
    """Ranks 1 to 4, extents 1 to 6; intervals or strided maps with gaps, reversals and repeats."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    rank = len(shape)
    linear = collapse = None
    if draw(st.booleans()):
        collapse = [(0, cut := draw(st.integers(1, rank)))]
        grid_rank = rank - cut + 1
    else:
        # Every dim goes to one collapsed dim, major ones above all that lies below them.
        grid_rank = draw(st.integers(1, min(rank, 3)))
        rows = [[] for _ in range(grid_rank)]
        for d in draw(st.permutations(range(rank))):
            rows[draw(st.integers(0, grid_rank - 1))].append(d)
        exprs = []
        for row in rows:
            terms, span = [str(draw(st.integers(0, 2)))], 1
            for d in row:
                stride = span + draw(st.integers(0, 2))
                if draw(st.booleans()):
                    terms += [f"{stride * (shape[d] - 1)}", f"d{d} * -{stride}"]
                else:
                    terms += [f"d{d} * {stride}"]
                span += stride * (shape[d] - 1)
            exprs.append(" + ".join(terms))
        if draw(st.booleans()):
            exprs.append(f"d{draw(st.integers(0, rank - 1))}")
            grid_rank += 1
        linear = f"({', '.join(f'd{d}' for d in range(rank))}) -> ({', '.join(exprs)})"
    grid = tuple(draw(st.integers(1, 4)) for _ in range(grid_rank))
    tiled = draw(st.integers(0, grid_rank))
    tile = tuple(draw(st.integers(1, 4)) for _ in range(tiled)) or None
    oob = draw(st.sampled_from([None, 0, 7, -3]))
    return gl.GridLayout(shape, "int32", grid, tile, collapse, linear, oob)


def numbered(layout):
    return np.arange(1, layout.size + 1, dtype=layout.dtype).reshape(layout.shape)


def assert_packs(layout):
    """program == gather == loop, forward and backward, whatever the padding holds."""
    x = numbered(layout)
    expected = packed(x, layout, layout.oob or 0)
    garbage = packed(x, layout, -99)
    for path in PATHS:
        found = gl.pack(x, layout, path=path)
        assert found.dtype == layout.dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(gl.unpack(garbage, layout, path=path), x)


@settings(max_examples=examples(40))
@given(random_layouts())
def test_random_layouts_pack_as_their_elements_are_located(layout):
    assert_packs(layout)


JITTED = {case.values[0] for case in few(TABLE, 8)}


@pytest.mark.few(18)
@pytest.mark.parametrize("layout", TABLE)
def test_every_kind_of_layout_packs_as_its_elements_are_located(layout):
    x = numbered(layout)
    np.testing.assert_array_equal(pack_host(x, layout), packed(x, layout, 0))
    if layout in JITTED:
        assert_packs(layout.with_dtype("int32", oob=5))
    np.testing.assert_array_equal(layout.padding_mask(), padding(layout))
    for index in indices(layout.shape):
        where = layout.locate(index)
        assert layout.index_map(*index) == (*where.core, *where.local)
        assert layout.logical_index((*where.core, *where.local)) == index


# -- einops, which knows nothing of layouts ---------------------------------------------------

EINOPS = [
    # layout arguments, einops pattern, its sizes
    (dict(shape=(6, 8), grid=(2, 4)), "(g s) (h t) -> g h s t", dict(g=2, h=4)),
    (
        dict(shape=(12, 8), grid=(3, 2), tile=(2, 2)),
        "(g s a) (h t b) -> g h s t a b",
        dict(g=3, h=2, a=2, b=2),
    ),
    (
        dict(shape=(2, 3, 4, 8), grid=(2, 4), tile=(3, 2)),
        "n c (i a) (h t b) -> (n c i a) (h t b)",
        dict(h=4, b=2, a=1),
    ),
    (
        dict(shape=(4, 6), grid=(3, 2), linear="(d0, d1) -> (d1, d0)"),
        "(h t) (g s) -> g h s t",
        dict(g=3, h=2),
    ),
    (
        dict(shape=(8, 8), grid=(1, 2), tile=(4, 4), face=(2, 2)),
        "(s i a) (h t j b) -> 1 h s t i j a b",
        dict(h=2, s=2, t=1, a=2, b=2),
    ),
    (
        dict(shape=(2, 3, 8), grid=(3,), tile=(4,), collapse=[(0, 3)]),
        "n c (w) -> (n c w)",
        dict(),
    ),
]


def einops_packed(x, layout, pattern, sizes):
    """By einops; patterns that only collapse are finished by the plain tiling pattern."""
    found = einops.rearrange(x, pattern, **sizes)
    if found.ndim == len(layout.physical_shape):
        return found
    rank = len(layout.grid)
    names = [(f"g{k}", f"s{k}", f"t{k}") for k in range(rank)]
    left = " ".join(f"({g} {s} {t})" for g, s, t in names)
    right = " ".join(name for level in zip(*names, strict=True) for name in level)
    tiling = dict(zip((n[0] for n in names), layout.grid, strict=True))
    tiling |= dict(zip((n[2] for n in names), layout.padded_tile, strict=True))
    return einops.rearrange(found, f"{left} -> {right}", **tiling)


@pytest.mark.parametrize(("arguments", "pattern", "sizes"), EINOPS)
def test_an_even_tiling_is_what_einops_makes_of_it(arguments, pattern, sizes):
    layout = gl.GridLayout(dtype="int32", **arguments)
    x = numbered(layout)
    expected = einops_packed(x, layout, pattern, sizes)
    assert expected.shape == layout.physical_shape
    np.testing.assert_array_equal(gl.pack(x, layout), expected)
    np.testing.assert_array_equal(gl.unpack(expected, layout), x)


# -- bits -------------------------------------------------------------------------------------

DTYPES = [
    "bool",
    "int4",
    "uint4",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
]
BIT_LAYOUTS = {
    "pads": dict(grid=(3, 2)),
    "tiles": dict(grid=(2, 3), tile=(5, 4)),
    "flips and gaps": dict(grid=(2, 2), linear="(d0, d1) -> (-d0 + 15, d1 * 2)"),
    "scatters": dict(grid=(2, 2, 2), linear="(d0, d1) -> (d0, d0, d1)"),
}


def bits(x):
    """The bits of each element, and nothing that could change them."""
    x = np.ascontiguousarray(x)
    size = min(x.dtype.itemsize, 4)
    return x.view(np.uint8).reshape(*x.shape[:-1], -1) if size == 1 else x.view(f"u{size}")


def every_value(dtype):
    """A (16, 16) array: all values of small types; NaNs, zeros and denormals of floats."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return (np.arange(256) % 3 == 0).reshape(16, 16)
    if dtype.itemsize == 1:
        # Of types of less than a byte, the low bits of one.
        count = 16 if dtype.name in ("int4", "uint4", "float4_e2m1fn") else 256
        return (np.arange(256) % count).astype(np.uint8).view(dtype).reshape(16, 16)
    word = min(dtype.itemsize, 4)
    random = np.random.default_rng(0).integers(0, 256, 256 * dtype.itemsize, np.uint8)
    raw = random.view(f"u{word}")
    special = {
        # -0.0, inf, -inf, the least denormals, quiet and signalling NaNs of either sign
        "float16": [0x8000, 0x7C00, 0xFC00, 1, 0x8001, 0x03FF, 0x7E01, 0xFE01, 0x7C01, 0xFC01],
        "bfloat16": [0x8000, 0x7F80, 0xFF80, 1, 0x8001, 0x007F, 0x7FC1, 0xFFC1, 0x7F81, 0xFF81],
        "float32": [
            *(0x80000000, 0x7F800000, 0xFF800000, 1, 0x80000001, 0x007FFFFF),
            *(0x7FC00001, 0xFFC12345, 0x7F800001, 0xFF812345),
        ],
    }
    special["complex64"] = special["float32"]
    values = special.get(dtype.name, [])
    raw[: len(values)] = values
    return raw.view(dtype).reshape(16, 16)


# Each dtype in every kind of layout, or in one whose turn it is.
BITS = [
    (dtype, name)
    for k, dtype in enumerate(DTYPES)
    for name in few([*BIT_LAYOUTS][k % 4 :] + [*BIT_LAYOUTS][: k % 4], 1)
]


@pytest.mark.few(7)
@pytest.mark.parametrize(("dtype", "name"), BITS)
def test_bits_survive_packing_and_placing(dtype, name):
    layout = gl.GridLayout((16, 16), dtype, **BIT_LAYOUTS[name])
    device = mapped((2, 4), BITS.index((dtype, name)), layout.core_shape)
    x = every_value(dtype)
    # Undef padding is 0, which of a type that has none is NaN.
    expected = bits(packed(x, layout, np.zeros(()).astype(dtype)[()]))

    @optimized
    def both(x, physical):
        return [
            (gl.pack(x, layout, path=path), gl.unpack(physical, layout, path=path))
            for path in PATHS
        ]

    for physical, found in both(x, packed(x, layout, np.zeros(()).astype(dtype)[()])):
        np.testing.assert_array_equal(bits(physical), expected)
        np.testing.assert_array_equal(bits(found), bits(x))
    put = gl.put(x, layout, device)
    np.testing.assert_array_equal(bits(put.physical), expected)
    np.testing.assert_array_equal(bits(np.asarray(put)), bits(x))


KINDS = ["bool", "int4", "float4_e2m1fn", "float8_e5m2", "bfloat16", "float32"]


@pytest.mark.parametrize("dtype", few(KINDS, 2))
def test_bits_survive_a_put_on_the_devices_and_a_relayout(dtype):
    layout = gl.GridLayout((16, 16), dtype, **BIT_LAYOUTS["flips and gaps"])
    other = gl.GridLayout((16, 16), dtype, **BIT_LAYOUTS["scatters"])
    device = mapped((2, 4), KINDS.index(dtype) + 4, layout.core_shape, other.core_shape)
    x = every_value(dtype)
    put = optimized(lambda x: gl.put(x, layout, device))(jnp.asarray(x))
    np.testing.assert_array_equal(bits(np.asarray(put)), bits(x))
    found = optimized(lambda x: gl.relayout(x, other))(put)
    np.testing.assert_array_equal(bits(np.asarray(found)), bits(x))
    found = optimized(lambda x: x.to_logical())(found)
    np.testing.assert_array_equal(bits(np.asarray(found)), bits(x))


def test_every_value_holds_the_awkward_ones():
    # The test above means something only if its data does.
    for dtype in ("float16", "bfloat16", "float32"):
        x = every_value(dtype)
        values = x.astype(np.float32)
        assert np.isnan(values).sum() > 3
        assert (np.signbit(values) & (values == 0)).any()
        assert len(np.unique(bits(x)[np.isnan(values)])) > 3


# -- transformations --------------------------------------------------------------------------

EXAMPLES = [
    gl.GridLayout((5, 7), "float32", (2, 4)),
    gl.GridLayout((5, 7), "float32", (3, 2), (4, 4), oob=1),
    gl.GridLayout((5, 7), "float32", (2, 2), linear="(d0, d1) -> (-d0 + 4, d1 * 3)"),
    gl.GridLayout((5, 7), "float32", (2, 2, 2), linear="(d0, d1) -> (d0, d0, d1)"),
]
VIEWS = [
    # (the map, two indices that collide): a broadcast stride 0, windows that overlap
    ("(d0, d1) -> (0, d1)", (2, 3)),
    ("(d0, d1) -> (0, d0 + d1)", (3, 3)),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("layout", EXAMPLES, ids=repr)
def test_unpack_is_the_transpose_of_pack(layout, path):
    # <pack(x), p> = <x, unpack(p)>, the padding of both at 0: each is the other's derivative.
    rng = np.random.default_rng(0)
    x = rng.normal(size=layout.shape).astype("f4")
    p = rng.normal(size=layout.physical_shape).astype("f4")

    @jax.jit
    def derivatives(x, p):
        _, of_pack = jax.vjp(lambda x: gl.pack(x, layout, path=path), x)
        _, of_unpack = jax.vjp(lambda p: gl.unpack(p, layout, path=path), p)
        _, tangent = jax.jvp(lambda x: gl.pack(x, layout, path=path), (x,), (x,))
        return of_pack(p)[0], of_unpack(x)[0], tangent

    unpacked, *same = derivatives(x, p)
    np.testing.assert_array_equal(unpacked, gl.unpack(p, layout))
    for found in same:
        np.testing.assert_array_equal(found, packed(x, layout, 0))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e5m2"])
def test_narrow_floats_have_the_same_derivative(dtype):
    layout = gl.GridLayout((5,), dtype, (2,), oob=2)
    x, p = jnp.arange(5, dtype=dtype), jnp.arange(6, dtype=dtype).reshape(2, 3)
    _, pull = jax.vjp(lambda x: gl.pack(x, layout), x)
    (found,) = pull(p)
    assert found.dtype == x.dtype
    assert found.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("layout", few(EXAMPLES[::-1], 1), ids=repr)
def test_gradients_agree_with_differences(layout):
    x = np.random.default_rng(1).normal(size=layout.shape).astype("f4")
    chex.assert_numerical_grads(
        jax.jit(lambda x: jnp.sum(jnp.sin(gl.pack(x, layout)) ** 2)),
        (x,),
        order=2,
        atol=2e-2,
        rtol=2e-2,
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("layout", EXAMPLES, ids=repr)
def test_pack_and_unpack_map_over_a_batch(layout, path):
    x = np.random.default_rng(2).normal(size=(3, *layout.shape)).astype("f4")
    fill = layout.oob or 0
    expected = np.stack([packed(row, layout, fill) for row in x])
    found = jax.vmap(lambda row: gl.pack(row, layout, path=path))(x)
    np.testing.assert_array_equal(found, expected)
    back = jax.vmap(lambda row: gl.unpack(row, layout, path=path), in_axes=-1, out_axes=1)
    np.testing.assert_array_equal(back(np.moveaxis(expected, 0, -1)), np.moveaxis(x, 0, 1))


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", EXAMPLES, ids=repr)
def test_pack_and_unpack_jit_with_a_static_layout(layout):
    x = np.random.default_rng(3).normal(size=layout.shape).astype("f4")
    pack = jax.jit(gl.pack, static_argnames=("layout", "path"))
    unpack = jax.jit(gl.unpack, static_argnames=("layout", "path"))
    for path in PATHS:
        physical = pack(x, layout, path=path)
        np.testing.assert_array_equal(physical, gl.pack(x, layout))
        np.testing.assert_array_equal(unpack(physical, layout, path=path), x)


def test_equal_layouts_share_one_program():
    layout = gl.GridLayout((4, 6), "float32", (2, 3))
    traced = chex.assert_max_traces(n=1)(lambda x, layout: gl.pack(x, layout))
    pack = jax.jit(traced, static_argnums=1)
    chex.clear_trace_counter()
    for same in (layout, layout.replace(), gl.parse(str(layout))):
        assert pack(jnp.ones((4, 6)), same).shape == (2, 3, 2, 2)


def test_a_donated_buffer_is_used_up():
    layout = gl.GridLayout((4, 6), "float32", (2, 3))
    x = jnp.arange(24, dtype="float32").reshape(4, 6)
    expected = packed(np.asarray(x), layout, 0)
    physical = jax.jit(gl.pack, static_argnums=1, donate_argnums=0)(x, layout)
    np.testing.assert_array_equal(physical, expected)
    assert x.is_deleted()
    back = jax.jit(gl.unpack, static_argnums=1, donate_argnums=0)(physical, layout)
    assert physical.is_deleted()
    np.testing.assert_array_equal(back, np.arange(24).reshape(4, 6))


def test_pack_leaves_its_argument_alone():
    layout = gl.GridLayout((4, 6), "float32", (2, 3))
    host = np.arange(24, dtype="float32").reshape(4, 6)
    x = jnp.asarray(host)
    gl.pack(x, layout)
    gl.put(host, layout, gl.DeviceGrid((2, 4)))
    np.testing.assert_array_equal(x, np.arange(24).reshape(4, 6))
    np.testing.assert_array_equal(host, np.arange(24).reshape(4, 6))


# -- what is read and refused -----------------------------------------------------------------


@pytest.mark.parametrize(("linear", "shape"), VIEWS)
def test_a_view_that_is_not_injective_is_read_only(linear, shape):
    view = gl.GridLayout(shape, "int32", (1, 2), linear=linear)
    physical = np.arange(np.prod(view.physical_shape), dtype="int32").reshape(view.physical_shape)
    expected = np.empty(shape, "int32")
    for index in indices(shape):
        where = view.locate(index)
        expected[index] = physical[(*where.core, *where.local)]
    for path in PATHS:
        np.testing.assert_array_equal(gl.unpack(physical, view, path=path), expected)
        with pytest.raises(gl.LayoutError) as refused:
            gl.pack(expected, view, path=path)
        # It names two indices, and they do collide.
        pairs = re.findall(r"\((\d+(?:, \d+)+)\)", str(refused.value))
        one, two = ([int(i) for i in pair.split(", ")] for pair in pairs[-2:])
        assert one != two
        assert view.locate(one) == view.locate(two)
    with pytest.raises(gl.LayoutError, match="read-only"):
        gl.put(expected, view, gl.DeviceGrid((2, 4)))


def test_a_read_of_a_view_has_the_summing_derivative():
    view = gl.GridLayout((2, 3), "float32", (1, 1), linear="(d0, d1) -> (0, d1)")
    p = jnp.ones(view.physical_shape)
    (found,) = jax.vjp(lambda p: gl.unpack(p, view), p)[1](jnp.arange(6.0).reshape(2, 3))
    assert found.ravel().tolist() == [3, 5, 7]


LAYOUT = gl.GridLayout((5, 7), "float32", (2, 4))
REFUSED = {
    "shape": (lambda: gl.pack(jnp.zeros((7, 5)), LAYOUT), r"\(7, 5\).*\(5, 7\)"),
    "rank": (lambda: gl.pack(jnp.zeros(35), LAYOUT), r"\(35,\).*\(5, 7\)"),
    "dtype": (lambda: gl.pack(jnp.zeros((5, 7), "int32"), LAYOUT), "int32.*float32.*astype"),
    "narrower": (lambda: gl.pack(np.zeros((5, 7), "float16"), LAYOUT), "float16.*float32"),
    "physical shape": (
        lambda: gl.unpack(jnp.zeros((5, 7)), LAYOUT),
        r"\(5, 7\).*\(2, 4, 3, 2\)",
    ),
    "physical dtype": (lambda: gl.unpack(jnp.zeros((2, 4, 3, 2), bool), LAYOUT), "bool.*float32"),
    "path": (lambda: gl.pack(jnp.zeros((5, 7)), LAYOUT, path="loop"), "loop.*gather"),
    "64 bits": (
        lambda: gl.pack(jnp.zeros(3), gl.GridLayout((3,), "float64", (1,))),
        "float64.*jax_enable_x64",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_value_and_the_rule(call, message):
    with pytest.raises(gl.LayoutError, match=message):
        call()


def test_untyped_data_takes_the_layouts_dtype():
    layout = gl.GridLayout((2, 2), "bfloat16", (1, 1))
    found = gl.pack([[1, 2], [3, 4]], layout)
    assert found.dtype == jnp.bfloat16
    assert found.ravel().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), ()])
def test_empty_and_scalar_tensors_pack(shape):
    layout = gl.GridLayout(shape, "float32", (2, 2))
    x = np.full(shape, 5, "float32")
    for path in PATHS:
        physical = gl.pack(x, layout, path=path)
        assert physical.shape == layout.physical_shape
        found = gl.unpack(physical, layout, path=path)
        assert found.shape == shape
        np.testing.assert_array_equal(found, x)


def test_64_bit_types_pack_where_jax_has_them():
    layout = gl.GridLayout((5, 7), "float64", (2, 2, 2), linear="(d0, d1) -> (d0, d0, d1)")
    with jax.enable_x64(True):
        x = np.random.default_rng(4).normal(size=(5, 7))
        physical = gl.pack(x, layout)
        assert physical.dtype == np.float64
        np.testing.assert_array_equal(physical, packed(x, layout, 0))
        np.testing.assert_array_equal(gl.unpack(physical, layout), x)


def test_the_table_has_every_kind():
    kinds = [param.values[0] for param in TABLE]
    assert len(set(kinds)) == len(kinds) > 30
    for has in (
        lambda layout: layout.is_scatter,
        lambda layout: not layout.is_scatter,
        lambda layout: layout.face is not None,
        lambda layout: layout.tile is not None and len(layout.tile) < len(layout.grid),
        lambda layout: len(layout.grid) > layout.ndim,
        lambda layout: len(layout.grid) < layout.ndim,
    ):
        assert any(map(has, kinds))


@pytest.mark.parametrize(
    ("shape", "grid", "whole", "split"),
    [((256, 256), (2, 2), (256, 256), (2, 4, 32)), ((229, 251), (1, 1), (256, 256), (1, 8, 32))],
)
def test_packing_compiles_to_the_program_written_by_hand(shape, grid, whole, split):
    """So it is as fast, even or not: one loop that pads and transposes."""

    def by_hand(x):
        x = jnp.pad(x, [(0, w - n) for w, n in zip(whole, shape, strict=True)])
        return x.reshape(*split, *split).transpose(0, 3, 1, 4, 2, 5)

    layout = gl.GridLayout(shape, "float32", grid=grid, tile=(32, 32))
    x = jnp.arange(np.prod(shape), dtype=jnp.float32).reshape(shape)
    found = operations(lambda x: gl.pack(x, layout), x)
    assert found.count("fusion") == 1
    assert found == operations(by_hand, x)
    assert (gl.pack(x, layout) == by_hand(x)).all()
