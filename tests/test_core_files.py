"""`gl.save_bytes`, `gl.load_bytes`, `gl.open_bytes`: against `gl.to_bytes`, judged by `locate`."""

import hashlib
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import laid_out
import numpy as np
import pytest
import tiers
from core_layouts import SHAPE, bits_of_elements, example, systems
from laid_out import indices

import gridlayout as gl
from gridlayout.core_files import windows
from gridlayout.dtypes import BLOCK_FORMATS, MLIR_NAMES

pytestmark = pytest.mark.filterwarnings("ignore:format .* is made for:gridlayout.LayoutWarning")

# Some of every array's parts: along each dim, forwards and backwards, nothing at all.
PARTS = {
    4: (np.s_[1], np.s_[..., -1], np.s_[1:, ::-2, 0:2, 3], np.s_[:, 5:5], np.s_[2, 5, 2, 3]),
    3: (np.s_[-1], np.s_[1:3, :, ::3]),
    2: (np.s_[1:4, 2:], np.s_[::-1, 0], np.s_[1, ...]),
    1: (np.s_[::2], np.s_[-1], ...),
    0: ((), ...),
}


@pytest.fixture
def small_windows(monkeypatch):
    """So small that every core is cut, inside of tiles, bytes and pages too."""
    monkeypatch.setattr(windows, "ELEMENTS", 120)


def files_of(path):
    """All bytes of the files, in the order of the files' names."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


def assert_round_trip(x, layout, path, per_core, expected=None):
    """What is written is `gl.to_bytes`, and what is read, in whole and in part, is that."""
    gl.save_bytes(x, layout, path, per_core=per_core)
    held, expected = gl.to_bytes(x, layout), x if expected is None else expected
    if per_core:
        named = {"_".join(map(str, ("core", *core))): core for core in indices(layout.core_shape)}
        assert {file.stem for file in files_of(path)} == set(named)
        for file in files_of(path):
            assert file.read_bytes() == bytes(held[named[file.stem]])
    else:
        assert path.read_bytes() == bytes(held)
    opened = gl.open_bytes(path)
    assert (opened.layout, opened.shape, opened.dtype) == (layout, x.shape, x.dtype)
    for core in list(indices(layout.core_shape))[:3]:
        assert bytes(opened.core(core)) == bytes(held[core])
    for part in PARTS[x.ndim] if x.size else ():
        found = opened[part]
        assert (found.shape, found.dtype) == (np.shape(expected[part]), x.dtype), part
        assert found.tobytes() == expected[part].tobytes(), part
    found = gl.load_bytes(path)
    assert (found.shape, found.dtype) == (x.shape, x.dtype)
    assert found.tobytes() == expected.tobytes()


# -- round trips -----------------------------------------------------------------------------------

# Types that are saved in every layout; the others take turns.
EVERYWHERE = ("int4", "bfloat16")


@pytest.mark.few(10)
@pytest.mark.parametrize("dtype", MLIR_NAMES)
def test_every_system_and_type(dtype, tmp_path, small_windows):
    turn, apart = [*MLIR_NAMES].index(dtype), 4 if tiers.ALL else 8
    some = slice(None) if dtype in EVERYWHERE else slice(turn % apart, None, apart)
    for n, (name, layout) in enumerate([*systems(dtype).items()][some]):
        try:
            assert_round_trip(example(SHAPE, dtype), layout, tmp_path / str(n), n % 3 == 0)
        except AssertionError as error:
            raise AssertionError(name) from error


@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 4, 5)])
def test_every_kind_of_collapse_grid_and_map(shape, tmp_path, small_windows):
    x = example(shape, "float32")
    for n, layout in enumerate(laid_out.layouts(shape).values()):
        assert_round_trip(x, layout.with_oob(-7), tmp_path / str(n), n % 2 == 0)


def test_several_cores_a_window_and_one_window_for_all(tmp_path, monkeypatch):
    x = example((37, 53), "bfloat16")
    for n, most in enumerate((40, 300, 1 << 17)):
        monkeypatch.setattr(windows, "ELEMENTS", most)
        for k, grid in enumerate(((1, 1), (3, 5), (37, 4))):
            layout = gl.GridLayout(x.shape, "bfloat16", grid, oob=float("nan"))
            assert_round_trip(x, layout, tmp_path / f"{n}{k}", most == 300)


@pytest.mark.parametrize("tile_format", BLOCK_FORMATS)
def test_block_formats_are_encoded_and_decoded(tile_format, tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(70, 131)).astype(np.float32)
    tensor_layout, options = gl.tenstorrent.tensor_layout, {"tile_format": tile_format}
    layouts = [
        gl.GridLayout(x.shape, "float32", (2, 3), (32, 32), oob=2.5, **options),
        gl.GridLayout(x.shape, "float32", (1, 1), (32, 32), face=(8, 4), **options),
        tensor_layout(x.shape, "float32", tile_order="swizzled", **options),
        tensor_layout(x.shape, "float32", tile_order="transposed", **options),
        tensor_layout(x.shape, "float32", page_alignment=512, shard_shape=(32, 96), **options),
    ]
    for n, layout in enumerate(layouts):
        expected = gl.from_bytes(gl.to_bytes(x, layout), layout)
        assert not np.array_equal(expected, x)
        for most in (400, 2000, 1 << 17):
            monkeypatch.setattr(windows, "ELEMENTS", most)
            assert_round_trip(x, layout, tmp_path / f"{n} {most}", most == 2000, expected)


def test_tiles_are_decoded_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("gridlayout.core_files.elements._TILES", 2)
    x = np.random.default_rng(0).normal(size=(70, 131)).astype(np.float32)
    layout = gl.GridLayout(x.shape, "float32", (1, 1), (32, 32), tile_format="bfp_bf8")
    expected = gl.from_bytes(gl.to_bytes(x, layout), layout)
    assert_round_trip(x, layout, tmp_path / "x", False, expected)


def test_a_map_without_an_inverse_is_packed_whole(tmp_path, small_windows):
    layout = gl.GridLayout((60,), "int16", (2, 3), linear="(d0) -> (d0 mod 4, d0 mod 15)", oob=9)
    with pytest.raises(gl.LayoutError, match="no closed form"):
        layout.inverse_in_bounds  # noqa: B018
    x = example((60,), "int16")
    for big_endian in (x, x.astype(">i2")):
        gl.save_bytes(big_endian, layout, tmp_path / "x")
        assert (tmp_path / "x").read_bytes() == bytes(gl.to_bytes(x, layout))
    assert_round_trip(x, layout, tmp_path / "y", True)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["bool", "int4", "float32"])
def test_what_is_no_element_is_never_read(dtype, tmp_path, small_windows):
    for n, layout in enumerate(systems(dtype).values()):
        x, path = example(SHAPE, dtype), tmp_path / str(n)
        mask = bits_of_elements(layout, dtype)
        gl.save_bytes(x, layout, path, per_core=n % 2 == 0)
        for file, core in zip(files_of(path), mask.reshape(len(files_of(path)), -1), strict=True):
            file.write_bytes(bytes(np.frombuffer(file.read_bytes(), np.uint8) | ~core))
        assert gl.open_bytes(path, check=False)[...].tobytes() == x.tobytes()
        assert gl.open_bytes(path, check=False)[1:, 2].tobytes() == x[1:, 2].tobytes()


def test_nan_in_the_padding_of_arrays_on_devices_is_not_written(tmp_path):
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for device in (gl.DeviceGrid((len(jax.devices()),)), gl.DeviceGrid((1,))):
        for layout in (gl.GridLayout((5, 7), grid=(2, 3), tile=(2, 2)), gl.parse("f32[5,7]{0,1}")):
            laid = laid_out.poisoned(x, layout, device)
            gl.save_bytes(laid, path=tmp_path / "x")
            assert (tmp_path / "x").read_bytes() == bytes(gl.to_bytes(x, layout))
            gl.save_bytes(laid, None, tmp_path / "y")
            assert (tmp_path / "y").read_bytes() == bytes(gl.to_bytes(x, layout))
            other = gl.GridLayout((5, 7), grid=(3, 1), oob=-1)
            gl.save_bytes(laid, other, tmp_path / "z")
            assert gl.open_bytes(tmp_path / "z").layout == other
            assert (tmp_path / "z").read_bytes() == bytes(gl.to_bytes(x, other))


def test_arrays_of_any_kind(tmp_path, small_windows):
    layout = gl.GridLayout((12, 15), "int16", grid=(2, 2), oob=-1)
    x = np.arange(180, dtype=np.int16).reshape(12, 15)
    np.save(tmp_path / "x.npy", x)
    wide = np.zeros((24, 45), np.int16)
    wide[::2, ::-3] = x
    for other in (
        *(np.load(tmp_path / "x.npy", mmap_mode="r"), jnp.asarray(x), x.tolist()),
        *(x.astype(">i2"), np.asfortranarray(x), wide[::2, ::-3]),
    ):
        gl.save_bytes(other, layout, str(tmp_path / "x"))
        assert (tmp_path / "x").read_bytes() == bytes(gl.to_bytes(x, layout))


@pytest.mark.parametrize("shape", [(0, 5), (0,), (), (0, 200), (200, 0)])
def test_nothing_and_scalars(shape, tmp_path, small_windows):
    for n, layout in enumerate(
        (
            gl.GridLayout(shape or (1,), "int4", grid=(2,) * len(shape) or (1,)),
            gl.xla.layout(shape, "int4", element_bits=4),
            gl.xla.layout(shape, "float32"),
        )
    ):
        x = np.ones(layout.shape, layout.dtype)
        for per_core in (False, True):
            assert_round_trip(x, layout, tmp_path / f"{n}{per_core}", per_core)
    assert gl.open_bytes(tmp_path / "2False").core().size == layout.nbytes
    if not shape:
        with pytest.raises(TypeError, match="0-d"):
            len(gl.open_bytes(tmp_path / "2False"))


def test_an_open_file_is_read_like_an_array(tmp_path):
    layout = gl.GridLayout((4, 6), "int16", grid=(2, 2))
    x = np.arange(24, dtype=np.int16).reshape(4, 6)
    gl.save_bytes(x, layout, tmp_path / "x.bin")
    opened = gl.open_bytes(tmp_path / "x.bin")
    assert repr(opened) == f"BytesFile({str(tmp_path / 'x.bin')!r}, int16[4,6], 4 cores of 12 B)"
    assert (opened.nbytes, opened.ndim, len(opened)) == (48, 2, 4)
    np.testing.assert_array_equal(np.asarray(opened), x)
    np.testing.assert_array_equal(np.asarray(opened, np.float64), x)
    np.testing.assert_array_equal(list(opened), x)
    np.testing.assert_array_equal(opened.read((slice(1, 3), 2)), x[1:3, 2])
    core = opened.core((1, 0))
    assert isinstance(core, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        core[0] = 1
    opened[:].sort()  # a copy, which may be written to
    for wrong in (4, (0, 6), (0, 0, 0), (..., ...), None, 1.5, True, "x", [0], slice("a")):
        with pytest.raises(gl.LayoutError, match="index"):
            opened[wrong]
    with pytest.raises(gl.LayoutError, match="several"):
        opened[..., ...]
    with pytest.raises(gl.LayoutError, match="core"):
        opened.core((2, 0))


def test_a_sidecar_says_what_the_bytes_are(tmp_path):
    layout = gl.parse("bf16[3,5]{1,0:T(2,4)}")
    gl.save_bytes(np.ones((3, 5), "bfloat16"), layout, tmp_path / "x.bin")
    assert sorted(os.listdir(tmp_path)) == ["x.bin", "x.bin.json"]
    data = (tmp_path / "x.bin").read_bytes()
    assert json.loads((tmp_path / "x.bin.json").read_text()) == {
        "format": "gridlayout image",
        "version": 1,
        "layout": "bf16[3,5]{1,0:T(2,4)}",
        "shape": [3, 5],
        "dtype": "bfloat16",
        "byte_order": "little",
        "cores": [],
        "bytes_per_core": len(data),
        "per_core": False,
        "checksum": "sha256",
        "checksums": [hashlib.sha256(data).hexdigest()],
    }


def test_progress_is_told_of_every_byte(tmp_path, small_windows):
    layout = gl.GridLayout((12, 15), "int16", grid=(2, 2))
    x, told = np.ones((12, 15), np.int16), []
    gl.save_bytes(x, layout, tmp_path / "x", progress=told.append)
    assert sum(told) == layout.nbytes
    assert len(told) > 1
    told.clear()
    gl.load_bytes(tmp_path / "x", progress=told.append)
    assert sum(told) == layout.nbytes + x.nbytes


# -- sizes -----------------------------------------------------------------------------------------

# 64 MiB are saved from a map of a file and read in parts, by a process that may have 24 MiB more.
BOUNDED = """
import resource, sys, tracemalloc
import numpy as np
import gridlayout as gl

source, path, text = sys.argv[1:]
layout = gl.parse(text)
x = np.load(source, mmap_mode="r")
gl.save_bytes(np.zeros((2, 2)), gl.GridLayout((2, 2), "float64"), path)  # what is imported and kept
gl.open_bytes(path)[:]
tracemalloc.start()
with open("/proc/self/status") as status:
    held = next(int(line.split()[1]) for line in status if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, ((held + (24 << 10)) << 10,) * 2)
gl.save_bytes(x, layout, path)
opened = gl.open_bytes(path)
for first in range(0, len(x), 512):
    found = opened[first : first + 512]
    assert (found == x[first : first + 512]).all() or layout.tile_format
assert tracemalloc.get_traced_memory()[1] < 24 << 20, tracemalloc.get_traced_memory()
try:
    np.ones(32 << 20, np.uint8)
except MemoryError:
    print("bounded")
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "x.npy"
    x = np.lib.format.open_memmap(path, "w+", np.float32, (8192, 2048))
    row = np.random.default_rng(0).random(2048, np.float32)
    for first in range(0, len(x), 512):
        x[first : first + 512] = row + np.arange(first, first + 512, dtype=np.float32)[:, None]
    del x
    yield path
    path.unlink()


LARGE = {
    "document": gl.GridLayout((8192, 2048), "float32", (8, 8), (32, 32)),
    "block format": gl.GridLayout((8192, 2048), "float32", (8, 8), (32, 32), tile_format="bfp_bf8"),
    "xla": gl.parse("f32[8192,2048]{0,1:T(8,128)}"),
    "pages": gl.tenstorrent.tensor_layout(
        *((8192, 2048), "float32", "row_major"), shard_shape=(64, 61), cores=64, page_alignment=64
    ),
}


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("name", LARGE)
def test_large_tensors_need_little_memory(name, large, tmp_path):
    arguments = [large, tmp_path / "x.bin", str(LARGE[name])]
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    (tmp_path / "x.bin").unlink(missing_ok=True)
    assert done.stdout.split() == ["bounded"], done.stderr


def test_no_jax_is_needed(tmp_path):
    program = (
        "import sys, numpy as np, gridlayout as gl; path = sys.argv[1];"
        "gl.save_bytes(np.ones(3), gl.GridLayout((3,), 'float64', grid=(2,)), path);"
        "assert gl.load_bytes(path).tolist() == [1, 1, 1]; assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "x"], check=True, timeout=120)
