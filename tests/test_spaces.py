"""Memory spaces act: a tensor is in one of them, going to another is counted, and it may be cut.

Tensor layout (tt-mlir), "Memory Spaces": "a tensor must belong exclusively to only one of these
memory spaces at a time. For example, in order to stream tensor data from DeviceDRAM to DeviceL1 you
would need to either manually slice the tensor into smaller tensors that do fit in L1 ...".
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from deciding import Traced
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax.sharding import AbstractMesh
from tiers import few

import gridlayout as gl

SPACES = ["system", "mmio", "dram", "l1"]
NAMES = {"System": "system", "SystemMMIO": "mmio", "DeviceDRAM": "dram", "DeviceL1": "l1"}


def layout(space, shape=(5, 7), grid=(2, 4), tile=(2, 2), dtype="float32"):
    return gl.GridLayout(shape, dtype, grid=grid, tile=tile, memory_space=space)


def placed(space, device, shape=(5, 7)):
    values = np.random.default_rng(0).normal(size=shape).astype("float32")
    return gl.put(values, layout(space, shape), device), values


@pytest.fixture
def device():
    return gl.DeviceGrid((2, 4))


def kind(x):
    return x.storage.sharding.memory_kind


def has_host_memory():
    return any(m.kind == "pinned_host" for m in jax.devices()[0].addressable_memories())


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_documents_names_are_read(name):
    found = layout(name)
    assert found == layout(NAMES[name])
    assert found.memory_space == NAMES[name]
    text = str(found).replace(f"memory_space<{NAMES[name]}>", f"memory_space<{name}>")
    assert text != str(found)
    assert gl.parse(text) == found
    assert gl.tenstorrent.metal((64, 64), memory_space=name).memory_space == NAMES[name]


@pytest.mark.parametrize("name", ["L1", "Dram", "devicel1", "", None, 1, ["DeviceL1"]])
def test_other_names_are_refused(name):
    with pytest.raises(gl.LayoutError, match="memory_space"):
        layout(name)


# -- where the bytes are -------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("space", few(SPACES, 2))
def test_system_and_mmio_live_on_the_host(space, device):
    if not has_host_memory():
        pytest.skip("the backend has no host memory apart")
    own = jax.devices()[0].default_memory().kind
    x, values = placed(space, device)
    expected = "pinned_host" if space in ("system", "mmio") else own
    made = {
        "put": x,
        "put of a jax.Array": gl.put(jnp.asarray(values), x.layout, device),
        "from_physical": gl.from_physical(np.asarray(x.physical), x.layout, device),
        "with_oob": x.with_oob(7),
        "elementwise": gl.numpy.sin(x),
        "product": x @ x.T,
        "reduction": gl.numpy.sum(x, axis=0),
        "in jit": jax.jit(gl.on_grid(jnp.sin))(x),
        "gradient": jax.grad(lambda x: gl.on_grid(lambda x: jnp.sum(x * x))(x))(x),
        "map_shards": gl.map_shards(lambda shard: shard + 1, x, out=x.layout),
        "moved": gl.relayout(x, layout(space, grid=(4, 2))),
    }
    for name, y in made.items():
        assert (kind(y), y.layout.memory_space) == (expected, space), name
    for name, y in [("to_logical", x.to_logical()), ("sum", gl.numpy.sum(x))]:
        assert y.sharding.memory_kind == own, name
    np.testing.assert_array_equal(np.asarray(x), values)
    np.testing.assert_array_equal(np.asarray(x.to_logical()), values)
    np.testing.assert_allclose(np.asarray(made["product"]), values @ values.T, rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(made["gradient"]), 2 * values)
    assert x.sharding == device.sharding(x.layout)


@pytest.mark.few(2)
@pytest.mark.parametrize("space", SPACES)
def test_batches_of_vmap_are_in_the_space_too(space, device):
    values = np.random.default_rng(0).normal(size=(3, 5, 7)).astype("float32")
    x = jax.vmap(lambda a: gl.put(a, layout(space), device))(values)
    assert kind(x) == device.sharding(layout(space)).memory_kind
    moved = jax.vmap(lambda x: gl.relayout(gl.on_grid(jnp.sin)(x), layout("mmio")))(x)
    assert kind(moved) == device.sharding(layout("mmio")).memory_kind
    np.testing.assert_allclose(np.asarray(moved), np.sin(values), rtol=1e-6)


@pytest.mark.parametrize("before", SPACES)
@pytest.mark.parametrize("after", SPACES)
def test_a_change_of_space_counts_its_bytes(before, after, device):
    x, values = placed(before, device)
    target = layout(after)
    y = gl.relayout(x, target)
    np.testing.assert_array_equal(np.asarray(y), values)
    assert y.layout.memory_space == after
    assert kind(y) == device.sharding(target).memory_kind
    # Every device's own part, padding included.
    expected = 0 if before == after else target.nbytes
    assert expected in (0, 8 * 32)
    plan = gl.relayout_plan(x, target)
    assert (plan.how, plan.received) == ("copy" if expected else "nothing", expected)
    report = gl.on_grid(lambda x: gl.with_layout(x, target)).report(x)
    assert report.bytes_moved == expected
    assert sum(row.bytes_moved for row in report.rows) == expected
    if expected:
        assert f"copy {before}->{after} 32 B" in str(plan)
        assert f"32 B by copy from {before} to {after}" in str(report)
    # Beside what goes from device to device.
    moving = gl.relayout_plan(x, layout(after, grid=(4, 2)))
    within = gl.relayout_plan(x, layout(before, grid=(4, 2)))
    assert moving.received == within.received + expected
    assert gl.relayout_plan(x.layout, target).received == expected


def test_a_program_goes_through_spaces(device):
    x, values = placed("dram", device)
    near, far = layout("l1"), layout("system")

    def f(x):
        return gl.with_layout(jnp.sin(gl.with_layout(x, near)) * 2, far)

    y = gl.on_grid(f)(x)
    assert (y.layout.memory_space, kind(y)) == ("system", device.sharding(far).memory_kind)
    np.testing.assert_allclose(np.asarray(y), np.sin(values) * 2, rtol=1e-6)
    copies = [str(c) for row in gl.on_grid(f).report(x).rows for c in row.collectives]
    assert copies == ["copy dram->l1 32 B", "copy l1->system 32 B"]
    # A gradient is where its argument is.
    g = jax.grad(lambda x: gl.on_grid(lambda x: jnp.sum(f(x)))(x))(x)
    assert g.layout.memory_space == "dram"
    np.testing.assert_allclose(np.asarray(g), np.cos(values) * 2, rtol=1e-5)


def test_cotangents_go_back_to_the_space_of_what_they_are_of(device):
    x, values = placed("dram", device)

    def f(x):
        return (gl.with_layout(jnp.sin(gl.with_layout(x, layout("l1"))), layout("dram")) * x).sum()

    expected = np.cos(values) * values + np.sin(values)
    for grad in (jax.grad(lambda x: gl.on_grid(f)(x)), gl.on_grid(jax.grad(f))):
        assert grad(x).layout.memory_space == "dram"
        np.testing.assert_allclose(np.asarray(grad(x)), expected, rtol=1e-5, atol=1e-6)
    report = gl.on_grid(jax.grad(f)).report(x)
    copies = [str(c) for row in report.rows for c in row.collectives]
    assert copies == ["copy dram->l1 32 B", "copy l1->dram 32 B"] * 2


def test_tensors_without_elements_have_a_space(device):
    x = gl.put(np.zeros((0, 7), "float32"), layout("dram", (0, 7)), device)
    assert gl.on_grid(lambda x: gl.with_layout(x, layout("l1", (0, 7))))(x).layout.memory == "l1"
    found = gl.slices(layout("l1", (0, 7)), toy(64))
    assert (len(found), found.pieces) == (1, ((slice(0, 0), slice(0, 7)),))
    assert found(lambda x: x.sum(axis=1), x).shape == (0,)


def test_a_loop_keeps_its_space(device):
    x, values = placed("dram", device)

    def f(x):
        step = lambda c, _: (gl.with_layout(c, layout("l1")) * 2, None)  # noqa: E731
        return lax.scan(step, x, length=3)[0]

    report = gl.on_grid(f).report(x)
    found = [str(c) for row in report.rows for c in row.collectives]
    assert found == ["copy dram->l1 32 B x3", "copy l1->dram 32 B x3"]
    y = gl.on_grid(f)(x)
    assert y.layout.memory_space == "dram"
    np.testing.assert_allclose(np.asarray(y), values * 8)


# -- one space at a time -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fn", [jnp.add, jnp.matmul, jnp.maximum, jnp.hypot], ids=lambda f: f.__name__
)
def test_operands_in_different_spaces_are_refused_with_the_fix(fn, device):
    x, values = placed("dram", device, (8, 8))
    y, _ = placed("l1", device, (8, 8))
    with pytest.raises(gl.LayoutError, match="memory spaces dram and l1") as refused:
        gl.on_grid(fn)(x, y)
    assert "gl.relayout(x, x.layout.replace(memory_space='l1'))" in str(refused.value)
    near = gl.relayout(x, x.layout.replace(memory_space="l1"))
    np.testing.assert_allclose(np.asarray(gl.on_grid(fn)(near, y)), fn(values, values), rtol=1e-4)


FUNCTIONS = {
    "elementwise": lambda x: jnp.where(x > 0, jnp.exp(x), -x) + 1,
    "with a constant": lambda x: x + np.arange(8, dtype="float32"),
    "softmax": lambda x: jax.nn.softmax(x, axis=-1),
    "sum": lambda x: x - x.sum(axis=0),
    "argmax": lambda x: jnp.argmax(x, axis=1) + 1,
    "product": lambda x: x @ x.T @ x,
    "contracted": lambda x: jnp.einsum("ij,ij->i", x, x),
    "reshaped": lambda x: x.reshape(4, 16).T.reshape(-1),
    "padded": lambda x: jnp.pad(x, ((1, 2), (0, 3)))[2:, ::2],
    "joined": lambda x: jnp.concatenate([x, x[:, ::-1]], axis=1),
    "sorted": lambda x: jnp.sort(x, axis=0),
    "vector": lambda x: jnp.cumsum(jnp.sort(x.reshape(-1))),
    "cumulated": lambda x: jnp.cumsum(x, axis=1),
    "gathered": lambda x: x[jnp.array([3, 1, 1])],
    "scattered": lambda x: x.at[jnp.array([0, 2]), :].add(x[:2]),
    "element": lambda x: x[3, 4] * x[1],
    "largest": lambda x: lax.top_k(x, 3)[0],
    "Fourier": lambda x: jnp.abs(jnp.fft.fft(x, axis=1)),
    "convolved": lambda x: lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"),
    "pooled": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"),
    "decomposed": lambda x: jnp.linalg.cholesky(x[:, :, None] * x[:, None, :] + 9 * jnp.eye(8)),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x)[1],
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda x: x + 1, lambda x: x.T, x),
    "mapped": lambda x: jax.vmap(lambda r: r * r.sum())(x),
    "gradient": jax.grad(lambda x: jnp.sum(jax.nn.gelu(x @ x.T) ** 2)),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
}


PLACES = [((2, 4), None), ((4, 2), (2, 2)), ((3, 1), None), ((1, 1), None)]


@pytest.mark.few(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_in_the_space_of_their_operands(name, device):
    traced = Traced(FUNCTIONS[name], [np.zeros((8, 8), "float32")])
    turn = list(FUNCTIONS).index(name) % len(PLACES)
    for grid, tile in few(PLACES[turn:] + PLACES[:turn], 2):
        for space in SPACES:
            program = traced.program([layout(space, (8, 8), grid, tile)], device)
            assert [spec.layout.memory for spec in program.results] == [space]
            assert not [c for c in program.collectives if c.kind == "copy"]
    other = gl.tenstorrent.ttnn((8, 8), grid=(2, 1), buffer_type="dram")
    assert [spec.layout.memory for spec in traced.program([other], device).results] == ["dram"]


def test_another_systems_layout_may_say_nothing_of_its_space(device):
    x, values = placed("dram", device)
    y = gl.put(values, gl.megengine.strided((5, 7), (7, 1), "float32"), device)
    np.testing.assert_allclose(np.asarray(x + y), 2 * values)
    assert not any(c.kind == "copy" for c in gl.relayout_plan(x, y.layout).collectives)


def test_a_users_policy_may_choose_the_space(device):
    def in_dram(shape, dtype, like, device):
        return gl.GridLayout(shape, dtype, grid=(2, 4), collapse=[(0, -1)], memory_space="dram")

    x, values = placed("l1", device, (8, 8))
    y = gl.on_grid(lambda x: x.reshape(4, 16).sum(axis=0).reshape(4, 4), policy=in_dram)(x)
    assert y.layout.memory_space == "dram"
    np.testing.assert_allclose(np.asarray(y).ravel(), values.reshape(4, 16).sum(0), rtol=1e-5)


# -- pieces --------------------------------------------------------------------------------------


def toy(l1):
    return gl.Chip("toy", (8, 8), {"l1": l1})


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple),
    st.sampled_from([(1, 1), (2, 2), (3, 1), (1, 4)]),
    st.sampled_from([None, (2, 2), (1, 4)]),
    st.integers(16, 400),
    st.integers(1, 2),
)
def test_pieces_fit_cover_the_tensor_once_and_are_few(shape, grid, tile, room, buffers):
    whole = (
        gl.GridLayout(shape, grid=grid, tile=tile)
        if len(shape) > 1
        else (gl.GridLayout(shape, grid=grid[:1]))
    )
    chip = toy(room)
    try:
        found = gl.slices(whole, chip, buffers=buffers)
    except gl.LayoutError:
        assert whole.replace(shape=(1,) * len(shape)).bytes_per_core * buffers > room
        return
    seen = np.zeros(shape, int)
    for piece in found:
        seen[piece] += 1
        assert found.layout_of(piece).shape == seen[piece].shape
        assert found.layout_of(piece).bytes_per_core * buffers <= room
    assert (seen == 1).all()
    assert (len(found) == 1) == (whole.bytes_per_core * buffers <= room)
    # No dim can be cut into fewer pieces.
    for d in found._cut:
        count = -(-shape[d] // found.size[d])
        larger = -(-shape[d] // (count - 1))
        size = (*found.size[:d], larger, *found.size[d + 1 :])
        assert whole.replace(shape=size).bytes_per_core * buffers > room


def test_a_piece_has_all_rows_of_its_tiles():
    whole = gl.GridLayout((4096, 1 << 20), "bfloat16", grid=(1, 1), tile=(32, 32))
    found = gl.slices(whole, "wormhole")
    assert found.size[0] == 32
    assert len(found) == 128 * found.counts[1]
    assert found.size[1] == gl.slices(whole.replace(shape=(1, 1 << 20)), "wormhole").size[1]


def test_a_function_runs_piece_by_piece(device):
    x, values = placed("dram", device, (9, 10, 7))
    found = gl.slices(layout("l1", (9, 10, 7)), toy(64))
    assert len(found) > 4
    seen = []

    def f(x, scale):
        seen.append(x.shape)
        return {"y": jax.nn.softmax(x, axis=-1) * scale, "z": x.sum(axis=-1)}

    got = found(f, x, 2.0)
    assert len(seen) == len(found)
    assert set(seen) == {found.layout_of(piece).shape for piece in found}
    assert [got[k].layout.memory_space for k in "yz"] == ["dram", "dram"]
    np.testing.assert_allclose(np.asarray(got["y"]), jax.nn.softmax(values) * 2, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(got["z"]), values.sum(-1), rtol=1e-4, atol=1e-5)


def test_the_whole_fits_in_one_piece(device):
    found = gl.slices(layout("l1"), toy(1 << 20))
    x, values = placed("system", device)
    assert (len(found), found.size) == (1, (5, 7))
    np.testing.assert_allclose(np.asarray(found(jnp.sin, x)), np.sin(values), rtol=1e-6)
    assert str(found).startswith("float32[5,7] in 1 piece of up to [5,7]; each fits: 32 B of")


def test_a_chip_without_a_limit_needs_no_pieces():
    assert len(gl.slices(layout("dram", (4096, 4096)), gl.Chip("toy", (2, 4), {"l1": 64}))) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gl.slices(layout("l1"), toy(4)), r"no piece fits: one of \[1, 1\]"),
        (lambda: gl.slices(layout("l1"), "grayskull"), "neither a gl.Chip nor one of wormhole"),
        (lambda: gl.slices(gl.tenstorrent.ttnn((8, 8)), toy(64)), "take a gl.GridLayout"),
        (lambda: gl.slices(layout("l1"), toy(64), dims=(0, 2)), "different dims"),
        (lambda: gl.slices(layout("l1"), toy(64), dims=(0, 0)), "different dims"),
        (lambda: gl.slices(layout("l1"), toy(64), buffers=0), "buffers"),
        (
            lambda: gl.slices(layout("l1", (64, 64)), toy(64), dims=(1,)),
            r"one of \[64, 1\]",
        ),
    ],
)
def test_what_cannot_be_cut(call, words):
    with pytest.raises(gl.LayoutError, match=words):
        call()


def test_pieces_may_be_too_many_to_list():
    found = gl.slices(gl.GridLayout((1 << 40, 8), grid=(2, 2)), toy(64))
    assert len(found) == 1 << 37
    with pytest.raises(gl.LayoutError, match="137438953472 pieces are too many to list"):
        list(found)


def test_a_chips_capacity_is_bytes():
    for wrong in ("64", 6.5, -1, None):
        with pytest.raises(gl.LayoutError, match="capacity of l1"):
            toy(wrong)


def test_what_pieces_cannot_do(device):
    found = gl.slices(layout("l1", (9, 10)), toy(64))
    x, _ = placed("dram", device, (9, 10))
    for f, y, words in [
        (lambda x: x.sum(axis=0), x, "must have the piece's extents"),
        (lambda x: x, placed("dram", device)[0], "not the tensor that was cut"),
        (lambda x: x, np.zeros((9, 10)), "take a GridArray"),
        (lambda x: 3.0, x, "must have the piece's extents"),
        (3, x, "take a function of pieces, not 3"),
    ]:
        with pytest.raises(gl.LayoutError, match=words):
            found(f, y)


def test_spaces_need_no_devices():
    device = gl.DeviceGrid(AbstractMesh((256, 128), ("x", "y")))
    whole = layout("system", (8192, 8192), (256, 128), (32, 32))
    report = gl.on_grid(
        lambda x: gl.with_layout(x, whole.replace(memory_space="l1")), device
    ).report(whole)
    assert report.bytes_moved == whole.nbytes
