"""`gl.explain` of what is no text: programs, functions with arguments, arrays, trees.

The executable is what Tenstorrent's compiler made of a product of 53x63 and 63x10 for an n150, as
`runtime_executable().serialize()` gave it.
"""

import gzip
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl
from gridlayout.dump.text.sources import ttnn_text

EXECUTABLE = Path(__file__).parent / "dumps" / "levels" / "product.n150.O0.executable.gz"
X, W = np.ones((53, 63), np.float32), np.ones((63, 10), np.float32)


def product(x, w):
    return jnp.tanh(x) @ w


def put(device=(2, 4)):
    return gl.put((X, W), gl.DeviceGrid(device))


# -- functions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [product, jax.jit(product), partial(product)])
def test_a_function_is_what_jit_compiles_of_it(function):
    found = gl.explain(function, X, W)
    expected = gl.explain(jax.jit(product).lower(X, W).compile())
    assert found.kind == "hlo"
    assert found.peaks[0].nbytes == expected.peaks[0].nbytes
    assert [f.layout for f in found.findings] == [f.layout for f in expected.findings]
    assert "product" in found.source


def test_a_function_on_the_grid_is_what_its_devices_run():
    found = gl.explain(gl.on_grid(product), *put())
    assert found.source == "on_grid(product)"
    assert found.collectives
    # One device's part of x: 27x16 elements of 4 bytes.
    assert 27 * 16 * 4 in {f.nbytes for f in found.findings if f.op == "parameter"}


@pytest.mark.few(1)
@pytest.mark.parametrize("function", [product, jax.jit(product), partial(product)])
def test_a_plain_function_of_laid_out_arrays_is_explained_as_a_lifted_one(function):
    x, w = put()
    expected = gl.explain(gl.on_grid(product), x, w)
    for arguments in ((x, w), (x.layout, w.layout), ({"x": x}["x"], w.layout)):
        lifted = gl.on_grid(function, x.device) if arguments[0] is x.layout else function
        found = gl.explain(lifted, *arguments)
        assert [f.layout for f in found.findings] == [f.layout for f in expected.findings]
        assert found.all_collectives == expected.all_collectives
    # Layouts alone are on all devices in a row.
    rows = gl.explain(function, x.layout, w.layout)
    assert (
        rows.findings
        == gl.explain(
            gl.on_grid(function, gl.DeviceGrid((8,))), *(each.layout for each in (x, w))
        ).findings
    )


def test_a_function_of_grid_arrays_is_explained_as_it_is():
    x, w = put()
    found = gl.explain(lambda x, w: gl.relayout(x, x.layout.replace(grid=(8, 1))) @ w, x, w)
    assert found.collectives
    with pytest.raises(gl.LayoutError, match="ZeroDivisionError"):
        gl.explain(lambda x: 1 / 0, x)


def test_arguments_may_be_trees_and_shapes():
    tree = {"x": jax.ShapeDtypeStruct((53, 63), "float32"), "w": [W]}
    found = gl.explain(lambda t: t["x"] @ t["w"][0], tree)
    assert found.peaks[0].arguments == X.nbytes + W.nbytes
    assert found.source == "<lambda>"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((product,), "function product is explained for given arguments"),
        ((jax.jit(product),), "is explained for given arguments"),
        ((product, X), "product can't be compiled for these arguments: TypeError"),
        ((lambda x: 1 / 0, X), "ZeroDivisionError"),
        ((product, "a", W), "can't be compiled"),
        ((int, 3), "is not a function, but arguments follow it"),
        ((X, W), "is not a function, but arguments follow it"),
        (("f32[3]{0}", W), "'f32[3]{0}' is not a function"),
        ((gl.GridLayout((3, 5)), 1), "is not a function"),
    ],
)
def test_what_is_no_function_with_its_arguments(arguments, words):
    with pytest.raises(gl.LayoutError, match=re.escape(words)):
        gl.explain(*arguments)


# -- arrays and trees ------------------------------------------------------------------------------


def test_an_array_on_the_grid_is_its_layouts_summary():
    x, _ = put()
    found = gl.explain(x, chip="wormhole")
    assert str(found) == str(gl.explain(x.layout, chip="wormhole"))
    tall = gl.put(np.ones((1000, 3), np.float32), gl.GridLayout((1000, 3), tile=(32, 32)),
                  gl.DeviceGrid((1,)))  # fmt: skip
    better = gl.explain(tall, plan=True).better
    assert better.nbytes < tall.layout.nbytes


@dataclass
class State:
    x: object
    w: object


jax.tree_util.register_dataclass(State, ("x", "w"), ())


class Model(State):
    """A tree that can be called, as models of some libraries are."""

    def __call__(self, y):
        return y @ self.w


jax.tree_util.register_dataclass(Model, ("x", "w"), ())


def test_a_tree_is_the_table_of_its_arrays():
    x, w = put()
    expected = gl.summary({"x": x, "w": w}, "wormhole")
    found = gl.explain({"x": x, "w": w}, chip="wormhole")
    assert str(found) == str(expected)
    assert [row.path for row in gl.explain([x, (w.layout, 3)]).rows] == ["0", "1/0"]
    for state in (State(x, w), Model(x, w)):
        assert [row.path for row in gl.explain(state).rows] == ["x", "w"]
    # A model and what it is called with is a function.
    assert gl.explain(Model(X, W), X).peaks[0].arguments >= X.nbytes


@pytest.mark.parametrize("array", [X, jnp.asarray(X), jax.ShapeDtypeStruct((53, 63), "float32")])
def test_an_array_without_a_layout_is_a_row(array):
    (row,) = gl.explain(array).rows
    assert (row.shape, row.data_bytes, row.layout) == ((53, 63), X.nbytes, None)


@pytest.mark.parametrize("tree", [{}, {"a": 1}, {"a": [None]}])
def test_a_tree_of_no_arrays(tree):
    with pytest.raises(gl.LayoutError, match="dict without arrays or layouts"):
        gl.explain(tree)


def test_no_plan_for_a_tree():
    with pytest.raises(gl.LayoutError, match="plan is for a dump, a layout or a GridArray"):
        gl.explain([gl.GridLayout((3, 5))], plan=True)


# -- executables of Tenstorrent's platform ---------------------------------------------------------


class Executable:
    def __init__(self, data, platform):
        self.data, self.client = data, type("Client", (), {"platform": platform})

    def serialize(self):
        if isinstance(self.data, Exception):
            raise self.data
        return self.data


class Compiled:
    """As `jax.stages.Compiled`: its text is the HLO that went in, in layouts that nothing has."""

    def __init__(self, data, platform="tt"):
        self.executable = Executable(data, platform)

    def runtime_executable(self):
        return self.executable

    def as_text(self):
        return "%a = f32[53,63]{1,0} parameter(0)"


def executable():
    return gzip.decompress(EXECUTABLE.read_bytes())


@pytest.mark.parametrize("make", [Compiled, bytes, bytearray])
def test_an_executable_gives_its_ttnn_ir(make):
    data = executable()
    found = gl.explain(make(data))
    assert (found.kind, found.chip.name, found.all_unknown) == ("ttnn", "wormhole_b0", 0)
    assert [(f.op, f.name, f.nbytes) for f in sorted(found.findings, key=lambda f: f.line)] == [
        ("func.func", "%arg0", 53 * 63 * 4),
        ("func.func", "%arg1", 63 * 10 * 4),
        ("ttnn.to_layout", "%0", 4 * 4096),
        ("ttnn.to_layout", "%1", 2 * 4096),
        ("ttnn.matmul", "%2", 2 * 4096),
    ]
    assert gl.explain(ttnn_text(data)).findings == found.findings


def test_its_ttnn_ir_runs():
    program = gl.tenstorrent.load(ttnn_text(executable()).decode())
    np.testing.assert_allclose(np.asarray(program(X, W)), X @ W, rtol=1e-5)


def test_other_platforms_are_not_serialized():
    found = gl.explain(Compiled(AssertionError("it was serialized"), "cpu"))
    assert [f.name for f in found.findings] == ["a"]
    # Nor is what has no such thing in it read as one.
    assert [f.name for f in gl.explain(Compiled(b"PJRT")).findings] == ["a"]


@pytest.mark.parametrize("cut", [200, 2000, 5000])
def test_an_executable_that_is_cut_off(cut):
    data = executable()
    assert data.index(b"TTSERv00") < cut < data.index(b"#dram") + len(ttnn_text(data))
    for source in (data[:cut], Compiled(data[:cut])):
        with pytest.raises(gl.LayoutError, match="is truncated"):
            gl.explain(source)


def test_an_executable_that_can_not_be_had():
    with pytest.raises(gl.LayoutError, match="has no text to read: not implemented"):
        gl.explain(Compiled(NotImplementedError("not implemented")))
