"""Images in files: what is refused, and what is left of files when something goes wrong."""

import errno
import json
import os
import shutil
import tracemalloc
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

import gridlayout as gl
from gridlayout.core_files import windows
from gridlayout.core_files.staged import Staged

LAYOUT = gl.GridLayout((4, 6), "int16", grid=(2, 2), oob=-1)
X = np.arange(24, dtype=np.int16).reshape(4, 6)


@pytest.fixture(params=[False, True], ids=["one file", "a file a core"])
def saved(request, tmp_path):
    """The bytes of X in files; their path is followed by whether it is of a file a core."""
    path = tmp_path / "x.bin"
    gl.save_bytes(X, LAYOUT, path, per_core=request.param)
    return path, request.param


def file_of(saved):
    """The file that holds the last core's bytes."""
    path, per_core = saved
    return path / "core_1_1.bin" if per_core else path


def everything(folder):
    """All files below a folder, and what they hold."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def read_all(path):
    """Every way to read the bytes."""
    yield lambda: gl.load_bytes(path)
    yield lambda: gl.open_bytes(path).check()
    yield lambda: gl.open_bytes(path)[3, 5]
    yield lambda: gl.open_bytes(path).core((1, 1))


# -- bytes -----------------------------------------------------------------------------------------


def test_bits_that_flipped_are_refused_where_they_are_read(saved):
    file = file_of(saved)
    data = bytearray(file.read_bytes())
    data[-1] ^= 16
    file.write_bytes(data)
    for read in read_all(saved[0]):
        words = "the checksum of the bytes of core \\(1, 1\\) differs"
        with pytest.raises(gl.LayoutError, match=words) as error:
            read()
        assert repr(str(file)) in str(error.value)
    opened = gl.open_bytes(saved[0])
    np.testing.assert_array_equal(opened[:2], X[:2])  # other cores are as they were
    assert gl.open_bytes(saved[0], check=False)[3, 5] == X[3, 5] ^ (16 << 8)
    with pytest.raises(gl.LayoutError, match="the checksum of the bytes"):
        gl.open_bytes(saved[0], check=False).check()


@pytest.mark.parametrize("size", [0, 1, 11, 13, 47, 49, 1000])
def test_files_of_another_size_are_refused_when_they_are_opened(saved, size):
    file = file_of(saved)
    file.write_bytes((file.read_bytes() * 99)[:size])
    with pytest.raises(
        gl.LayoutError, match=rf"has {size} B, but the layout in .* takes (48|12) B"
    ) as error:
        gl.open_bytes(saved[0])
    assert repr(str(file)) in str(error.value)


def test_files_that_are_missing_or_no_files(saved):
    file = file_of(saved)
    file.unlink()
    with pytest.raises(gl.LayoutError, match="can't be read") as error:
        gl.load_bytes(saved[0])
    assert str(file) in str(error.value)
    file.mkdir()
    with pytest.raises(gl.LayoutError, match=file.name):
        gl.load_bytes(saved[0])
    file.rmdir()
    os.mkfifo(file)  # reading one would wait for ever
    with pytest.raises(gl.LayoutError, match=file.name):
        gl.load_bytes(saved[0])


def test_a_file_may_be_a_link(saved, tmp_path):
    file = file_of(saved)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    np.testing.assert_array_equal(gl.load_bytes(saved[0]), X)
    gl.save_bytes(X + 1, LAYOUT, saved[0], per_core=saved[1])  # the link is replaced
    assert not file.is_symlink()
    np.testing.assert_array_equal(gl.load_bytes(saved[0]), X + 1)
    assert elsewhere.stat().st_size in (12, 48)


def test_sidecars_and_bytes_of_different_tensors_are_refused(saved, tmp_path):
    path, per_core = saved
    other = tmp_path / "y.bin"
    gl.save_bytes(X + 1, LAYOUT, other, per_core=per_core)
    shutil.copy(other.with_name("y.bin.json"), path.with_name("x.bin.json"))
    for read in read_all(path):
        with pytest.raises(gl.LayoutError, match=r"x\.bin.*the checksum of the bytes"):
            read()
    gl.save_bytes(X, LAYOUT.replace(grid=(4, 2)), other, per_core=per_core)
    shutil.copy(other.with_name("y.bin.json"), path.with_name("x.bin.json"))
    with pytest.raises(gl.LayoutError, match=r"x\.bin"):
        gl.load_bytes(path)


def test_cores_that_changed_places_are_refused(saved):
    path, per_core = saved
    if per_core:
        (path / "core_0_0.bin").rename(path / "z")
        (path / "core_1_1.bin").rename(path / "core_0_0.bin")
        (path / "z").rename(path / "core_1_1.bin")
    else:
        data = path.read_bytes()
        path.write_bytes(data[36:] + data[12:36] + data[:12])
    with pytest.raises(gl.LayoutError, match=r"checksum of the bytes of core \(0, 0\) differs"):
        gl.load_bytes(path)


# -- sidecars --------------------------------------------------------------------------------------

HUGE = "strided.layout((4194304, 1048576), (0, 0), 'int16', size=24)"
HOSTILE = {
    "another format": {"format": "npy"},
    "another version": {"version": 2},
    "a version that is no number": {"version": [1]},
    "no layout": {"layout": None},
    "a layout that is no text": {"layout": 5},
    "a text of no layout": {"layout": "f32[3"},
    "code": {"layout": "__import__('os').system('false')"},
    "a larger layout": {"layout": str(LAYOUT.replace(shape=(400, 600)))},
    "a view": {"layout": HUGE, "shape": [1 << 22, 1 << 20], "cores": [], "bytes_per_core": 48},
    "many cores": {"layout": "GridLayout((4, 6), 'int16', grid=(1073741824, 1073741824))"},
    "another shape": {"shape": [4, 7]},
    "a huge shape": {"shape": [1 << 62, 1 << 62]},
    "a shape that is no list": {"shape": 24},
    "another dtype": {"dtype": "uint16"},
    "big-endian": {"byte_order": "big"},
    "other cores": {"cores": [4]},
    "more bytes": {"bytes_per_core": 1 << 60},
    "fewer bytes": {"bytes_per_core": -1},
    "the checksum of the bytes": {"checksum": "crc32"},
    "no truth": {"per_core": 1},
    "a path": {"per_core": "../../etc/passwd"},
    "no checksums": {"checksums": []},
    "one checksum": {"checksums": ["0" * 64]},
    "checksums that are a text": {"checksums": "0000"},
    "checksums that are no texts": {"checksums": [1, 2, 3, 4]},
    "checksums of another length": {"checksums": ["0"] * 4},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_sidecars_that_do_not_hold_together(name, saved):
    sidecar = saved[0].with_name("x.bin.json")
    record = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**record, **HOSTILE[name]}))
    tracemalloc.start()
    try:
        with pytest.raises(gl.LayoutError, match=r"x\.bin\.json"):
            gl.open_bytes(saved[0])
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("key", ["format", "version", "layout", "shape", "per_core", "checksums"])
def test_sidecars_without_a_key(key, saved):
    sidecar = saved[0].with_name("x.bin.json")
    record = json.loads(sidecar.read_text())
    del record[key]
    sidecar.write_text(json.dumps(record))
    with pytest.raises(gl.LayoutError, match=f"x.bin.json.*{key}|x.bin.json.*layout"):
        gl.open_bytes(saved[0])


TEXTS = {
    "nothing": b"",
    "no JSON": b"{",
    "no object": b"[1, 2]",
    "deep": b"[" * 100_000,
    "no UTF-8": b'{"format": "\xff"}',
    "zeros": bytes(1000),
    "a number of many digits": b'{"version": ' + b"9" * 10_000 + b"}",
    "noise": np.random.default_rng(0).bytes(1000),
}


@pytest.mark.parametrize("name", TEXTS)
def test_files_that_are_no_sidecars(name, saved):
    sidecar = saved[0].with_name("x.bin.json")
    sidecar.write_bytes(TEXTS[name])
    with pytest.raises(gl.LayoutError, match=r"x\.bin\.json' is not a sidecar"):
        gl.load_bytes(saved[0])
    before = everything(saved[0].parent)
    with pytest.raises(
        gl.LayoutError, match=r"is not a sidecar of gl\.save_bytes: give another path"
    ):
        gl.save_bytes(X, LAYOUT, saved[0], per_core=saved[1])
    assert everything(saved[0].parent) == before


def test_a_sidecar_that_is_too_large_is_not_read(saved):
    os.truncate(saved[0].with_name("x.bin.json"), 1 << 40)
    tracemalloc.start()
    with pytest.raises(gl.LayoutError, match="larger than"):
        gl.open_bytes(saved[0])
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_bytes_changed_anywhere_in_a_sidecar_never_read_wrong(saved):
    sidecar = saved[0].with_name("x.bin.json")
    text, rng = sidecar.read_bytes(), np.random.default_rng(1)
    for _ in range(150):
        changed = bytearray(text)
        changed[rng.integers(len(text))] = rng.integers(256)
        sidecar.write_bytes(changed)
        with suppress(gl.LayoutError):
            np.testing.assert_array_equal(gl.load_bytes(saved[0]), X)


# -- writing ---------------------------------------------------------------------------------------


def test_bytes_are_replaced_by_others(saved):
    path, per_core = saved
    before = gl.open_bytes(path)
    gl.save_bytes(X + 1, LAYOUT, path, per_core=per_core)
    np.testing.assert_array_equal(gl.load_bytes(path), X + 1)
    if not per_core:  # what was mapped is as it was
        np.testing.assert_array_equal(before[:], X)
    assert not [name for name in everything(path.parent) if name.endswith(".tmp")]


FAILURES = {
    "progress": lambda patch: {"progress": fail},
    "no room": lambda patch: patch.setattr(os, "fsync", fail_with(errno.ENOSPC)) or {},
    "no write": lambda patch: patch.setattr(Staged, "open", fail_with(errno.EACCES)) or {},
}


def fail(*_):
    raise KeyboardInterrupt


def fail_with(number):
    def failing(*_):
        raise OSError(number, os.strerror(number))

    return failing


@pytest.mark.parametrize("name", FAILURES)
def test_an_error_leaves_everything_as_it_was(name, saved, monkeypatch):
    path, per_core = saved
    before = everything(path.parent)
    options = FAILURES[name](monkeypatch)
    with pytest.raises((gl.LayoutError, KeyboardInterrupt)):
        gl.save_bytes(X + 1, LAYOUT, path, per_core=per_core, **options)
    new = path.with_name("new")
    with pytest.raises((gl.LayoutError, KeyboardInterrupt)):
        gl.save_bytes(X + 1, LAYOUT, new, per_core=per_core, **options)
    assert not new.exists()
    assert everything(path.parent) == before


def test_what_a_block_format_cannot_encode_leaves_everything_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "ELEMENTS", 1024)
    layout = gl.GridLayout((64, 64), "float32", (2, 2), (32, 32), tile_format="bfp_bf8")
    x = np.ones((64, 64), np.float32)
    gl.save_bytes(x, layout, tmp_path / "x")
    before = everything(tmp_path)
    x[63, 63] = np.nan
    with pytest.raises(gl.LayoutError, match="infinities or NaN"):
        gl.save_bytes(x, layout, tmp_path / "x")
    assert everything(tmp_path) == before


def test_when_names_can_not_be_given_there_are_no_bytes(saved, monkeypatch):
    monkeypatch.setattr(os, "replace", fail_with(errno.EPERM))
    with pytest.raises(gl.LayoutError, match=r"x\.bin' can't be written"):
        gl.save_bytes(X + 1, LAYOUT, saved[0], per_core=saved[1])
    with pytest.raises(gl.LayoutError, match=r"x\.bin' holds no bytes of cores: .*x\.bin\.json"):
        gl.open_bytes(saved[0])


def test_files_of_others_are_not_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("b")
    (tmp_path / "c.json").write_text("{}")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "notes").write_text("d")
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "core_0_0.bin").mkdir()
    os.mkfifo(tmp_path / "f")
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "cores").mkdir()
    (tmp_path / "cores" / "core_0_0.bin").write_text("of another program")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    before = everything(tmp_path)
    for name, per_core, words in (
        ("a", False, "not a regular file"),
        ("b", True, "not a folder"),
        ("c", False, r"c\.json' exists and is not a sidecar"),
        ("c", True, r"c\.json' exists and is not a sidecar"),
        ("d", True, "holds 'notes', which gl.save_bytes did not write"),
        ("e", True, "holds 'core_0_0.bin', which gl.save_bytes did not write"),
        ("f", False, "not a regular file"),
        (
            "notes.txt",
            False,
            r"gl.save_bytes did not write it, because it has no sidecar 'notes\.txt\.json'",
        ),
        ("cores", True, r"gl.save_bytes did not write it, because it has no sidecar 'cores\.json'"),
        ("link", False, r"gl.save_bytes did not write it, because it has no sidecar 'link\.json'"),
        ("b/x", False, "can't be written"),
        ("no/x", True, "can't be written"),
        ("n" * 300, False, "can't be written"),
    ):
        with pytest.raises(gl.LayoutError, match=words):
            gl.save_bytes(X, LAYOUT, tmp_path / name, per_core=per_core)
    assert everything(tmp_path) == before
    gl.save_bytes(X, LAYOUT, tmp_path / "a", per_core=True)  # an empty folder is as good as none
    np.testing.assert_array_equal(gl.load_bytes(tmp_path / "a"), X)
    (tmp_path / "b").write_text("")  # and so is an empty file
    gl.save_bytes(X, LAYOUT, tmp_path / "b")
    np.testing.assert_array_equal(gl.load_bytes(tmp_path / "b"), X)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write and read everything")
def test_folders_and_files_without_permission(saved):
    path, per_core = saved
    path.parent.chmod(0o500)
    with pytest.raises(gl.LayoutError, match="can't be written"):
        gl.save_bytes(X, LAYOUT, path.with_name("y"), per_core=per_core)
    path.parent.chmod(0o700)
    file_of(saved).chmod(0)
    with pytest.raises(gl.LayoutError, match="can't be read"):
        gl.load_bytes(path)


STEPS = gl.Layout((4, 6), "int16", (), (1, 0))
PARTLY = SimpleNamespace(shape=(4, 6), dtype=X.dtype, is_fully_addressable=False)
REFUSED = {
    "no path": (lambda path: gl.save_bytes(X, LAYOUT), "needs a path"),
    "no layout": (lambda path: gl.save_bytes(X, path=path), "ndarray has no layout"),
    "the order of arguments": (lambda path: gl.save_bytes(X, path, LAYOUT), "must be a gl.Layout"),
    "no name": (lambda path: gl.save_bytes(X, LAYOUT, "/"), "no file name"),
    "a folder above": (lambda path: gl.save_bytes(X, LAYOUT, ".."), "no file name"),
    "bytes": (lambda path: gl.save_bytes(X, LAYOUT, b"x"), "a str or a pathlib.Path"),
    "a null": (lambda path: gl.save_bytes(X, LAYOUT, "a\0b"), "a str or a pathlib.Path"),
    "another shape": (lambda path: gl.save_bytes(X.T, LAYOUT, path), r"has shape \(6, 4\)"),
    "another dtype": (lambda path: gl.save_bytes(X * 1.0, LAYOUT, path), "is float64"),
    "steps": (lambda path: gl.save_bytes(X, STEPS, path), "has no text that gl.parse reads"),
    "many cores": (
        lambda path: gl.save_bytes(X, LAYOUT.replace(grid=(1 << 10, 1 << 10)), path),
        "1048576 cores; files of bytes hold at most 524288",
    ),
    "a view": (
        lambda path: gl.save_bytes(X, gl.strided.layout((4, 6), (0, 1), "int16"), path),
        "read-only view",
    ),
    "parts elsewhere": (
        lambda path: gl.save_bytes(PARTLY, LAYOUT, path),
        r"full = x.to_logical\(\) in every process",
    ),
    "a GridArray with parts elsewhere": (
        lambda path: gl.save_bytes(SimpleNamespace(storage=PARTLY, layout=LAYOUT), path=path),
        r"full = x.to_logical\(\) in every process",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name, tmp_path):
    call, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        call(tmp_path / "x")
    assert not list(tmp_path.iterdir())
