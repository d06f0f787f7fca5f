"""Names and keywords of JAX, for which the library has others, and what its errors say of them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import gridlayout as gl
from gridlayout.other_words import _NAMES, ARRAY, DEVICES, KEYWORDS, LAYING_OUT, LAYOUT, PLANNING

X = np.ones((5, 7), np.float32)
MESH = jax.make_mesh((1,), ("data",))
LAYOUT_OF_5_BY_7 = gl.GridLayout((5, 7), grid=(1, 1))


@pytest.mark.parametrize("name", _NAMES)
def test_names_of_others_say_what_to_call(name):
    assert name not in gl.__all__
    with pytest.raises(AttributeError, match=re.escape(_NAMES[name])):
        getattr(gl, name)
    for own in re.findall(r"gl\.(\w+)", _NAMES[name]):
        assert hasattr(gl, own)


def test_names_of_jax_numpy_are_in_gl_numpy():
    for name in ("ones", "linalg", "einsum"):
        with pytest.raises(AttributeError, match=rf"on the grid: gl\.numpy\.{name}$"):
            getattr(gl, name)
        assert hasattr(gl.numpy, name)


def test_put_takes_the_keyword_of_device_put():
    x = gl.put(X, device=jax.sharding.NamedSharding(MESH, P("data")))
    assert x.layout == gl.put(X, P("data"), MESH).layout
    assert isinstance(gl.put({"x": X}, device=MESH)["x"], gl.GridArray)


def test_plans_of_relayouts_take_shardings():
    x, spec = gl.put(X, P("data"), MESH), P(None, "data")
    target = gl.relayout(x, spec).layout
    for given in (spec, jax.sharding.NamedSharding(MESH, spec)):
        assert gl.relayout_plan(x, given).target == target
    with pytest.raises(gl.LayoutError, match="relayout to P"):
        gl.relayout_plan(x.layout, spec)


def test_a_misspelt_name_is_met_with_the_nearest():
    with pytest.raises(AttributeError, match=r"did you mean gl\.GridLayout\?"):
        gl.Gridlayout  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'qqqq'$"):
        gl.qqqq  # noqa: B018
    assert not hasattr(gl, "__wrapped__")


@pytest.mark.parametrize(
    ("make", "words"),
    [(lambda: LAYOUT_OF_5_BY_7, LAYOUT), (lambda: gl.put(X, P("data"), MESH), ARRAY)],
    ids=["a layout", "an array"],
)
def test_attributes_of_others_say_what_to_call(make, words):
    has = make()
    of = "layout" if words is LAYOUT else "x"
    for name, said in words.items():
        with pytest.raises(AttributeError, match=re.escape(said)):
            getattr(has, name)
        for own in re.findall(rf"\b{of}\.(\w+)", said):
            assert hasattr(has, own)
        for own in re.findall(r"gl\.(\w+)", said):
            assert hasattr(gl, own)
    assert not hasattr(has, "qqqq")


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords_of_others_say_what_to_do(name):
    with pytest.raises(gl.LayoutError, match=f"gl.put has no keyword {name}: "):
        gl.put(X, **{name: P("data")})
    with pytest.raises(gl.LayoutError, match=f"gl.on_grid has no keyword {name}: "):
        gl.on_grid(jnp.sin, **{name: P("data")})


@pytest.mark.parametrize("name", PLANNING)
@pytest.mark.parametrize("call", [gl.plan, gl.simulate])
def test_plans_say_where_devices_are_given(call, name):
    with pytest.raises(gl.LayoutError, match=rf"no keyword {name}: .*\bmachine="):
        call(jnp.sin, X, **{name: MESH})


@pytest.mark.parametrize(
    ("make", "words"),
    [(gl.GridLayout, LAYING_OUT), (gl.DeviceGrid, DEVICES)],
    ids=["a layout", "a device grid"],
)
def test_constructors_say_what_they_call_it(make, words):
    for name, said in words.items():
        with pytest.raises(gl.LayoutError, match=re.escape(f"has no keyword {name}: {said}")):
            make((1,), **{name: 3})


MISPLACED = {
    "a file for a view": (
        lambda: LAYOUT_OF_5_BY_7.draw("x.svg"),
        r"layout.draw\(\).save\('x.svg'\)",
    ),
    "a path for a view": (lambda: LAYOUT_OF_5_BY_7.draw(path="x.png"), r"draw\(\).save\('x.png'\)"),
    "the mesh first": (lambda: gl.put(MESH, X), "the array comes first"),
    "an axis for a spec": (lambda: gl.put(X, "data", MESH), r"Along an axis of a mesh: P\('data'"),
    "entries for a spec": (lambda: gl.put(X, ("data", None), MESH), r"P\('data'"),
    "the tree first": (lambda: gl.save({"x": X}, "folder"), r"first: gl.save\('folder', tree\)"),
    "the path first": (lambda: gl.save_bytes("file", X), r"save_bytes\(x, layout, path\)"),
}


@pytest.mark.parametrize(("call", "words"), MISPLACED.values(), ids=MISPLACED)
def test_misplaced_arguments(call, words):
    with pytest.raises(gl.LayoutError, match=words):
        call()


def test_collectives_of_one_device_are_not_for_whole_arrays():
    with pytest.raises(NameError) as found:
        gl.on_grid(lambda x: jax.lax.psum(x, "data"), MESH)(X)
    assert any("needs no jax.lax.psum" in " ".join(note.split()) for note in found.value.__notes__)


def test_what_jax_makes_like_a_grid_array_runs_on_the_grid():
    x = gl.put(X, P("data"), MESH)
    for call in (jnp.zeros_like, jax.jit(jnp.zeros_like)):
        with pytest.raises(Exception, match=r"gl\.on_grid\(optimizer\.init\)\(params\)"):
            call(x)
