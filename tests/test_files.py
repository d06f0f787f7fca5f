"""The opening of files that users name: regular files only, in every reader, without waiting."""

import os
import socket

import numpy as np
import pytest

import gridlayout as gl
from gridlayout.files import opened, read_json

READERS = {
    "explain": gl.explain,
    "compare": lambda path: gl.compare(path, path),
    "open_safetensors": gl.open_safetensors,
    "load_plan": gl.load_plan,
    "Machine.load": gl.Machine.load,
    "load_bytes": gl.load_bytes,
    "open_bytes": gl.open_bytes,
    "restore": lambda path: gl.restore(path, {"w": np.zeros(3)}),
}


@pytest.fixture(params=["pipe", "socket", "device", "folder"])
def irregular(request, tmp_path):
    """A path of something that is no regular file."""
    path = tmp_path / "x"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    elif request.param == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made:
            os.chdir(tmp_path)  # the address of a socket is short
            made.bind("x")
    return path


@pytest.fixture(autouse=True)
def _here():
    before = os.getcwd()
    yield
    os.chdir(before)


@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_what_is_no_file(name, irregular):
    (irregular.parent / "x.json").symlink_to(irregular)  # the place of an image's sidecar
    with pytest.raises(gl.LayoutError, match=r"x|zero"):  # a checkpoint's link is followed
        READERS[name](irregular)


@pytest.mark.parametrize("name", ["gridlayout.json", "gridlayout.sha256.json"])
def test_the_files_of_a_checkpoint_are_files(name, tmp_path):
    path = tmp_path / "a"
    layout = gl.GridLayout((4,), "float32", (2,))
    gl.save(path, {"w": gl.put(np.ones(4, "f4"), layout, gl.DeviceGrid((2,)))})
    (path / "gridlayout.sha256.json").unlink()  # nothing says what the files were
    (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    with pytest.raises(gl.LayoutError, match="is a pipe, not a regular file"):
        gl.restore(path, {"w": layout}, gl.DeviceGrid((2,)))


def test_what_it_is_is_named(irregular):
    kind = r"'.*x' is a (pipe|socket|device|folder), not a regular file"
    with pytest.raises(gl.LayoutError, match=kind):
        opened(irregular)


def test_a_link_to_a_file_is_a_file(tmp_path):
    (tmp_path / "a").write_text("[1]")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with opened(tmp_path / "b") as file:
        assert file.read() == b"[1]"
    with opened(os.fsencode(tmp_path / "a")) as file:
        assert file.read() == b"[1]"
    assert read_json(tmp_path / "b", 3) == [1]
    with pytest.raises(gl.LayoutError, match="a' is larger than 2 B"):
        read_json(tmp_path / "a", 2)


def test_a_pipe_is_read_as_a_stream(tmp_path):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(gl.LayoutError, match="give an open binary stream"):
        gl.explain(tmp_path / "x")
    reader, writer = os.pipe()
    os.write(writer, b"%a = f32[3,5]{1,0:T(8,128)} add(%b)\n")
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert gl.explain(stream).layouts == 1
