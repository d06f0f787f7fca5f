"""Arguments that a public function, constructor or method does not take: what its error says."""

import inspect
import re
from types import FunctionType, ModuleType

import numpy as np
import pytest

import gridlayout as gl
from gridlayout.errors import ArgumentsError
from gridlayout.public import public

LAYOUT = gl.GridLayout((53, 63), grid=(3, 2))
# Programs of these names are JAX's, and what these classes hold is made by the library alone.
LIFTED = ("nn", "numpy", "scipy")
MADE_ONLY = ("AffineExpr", "Fit", "GridArray", "Location", "OnGrid")


def surface():
    """Every public function and class, by the name that users call it by."""
    for name in gl.__all__:
        value = getattr(gl, name)
        if not isinstance(value, ModuleType):
            yield name, value
        elif name not in LIFTED:
            own = getattr(value, "__all__", [each for each in dir(value) if each[0] != "_"])
            yield from ((f"{name}.{each}", getattr(value, each)) for each in own)


FUNCTIONS = {name: value for name, value in surface() if isinstance(value, FunctionType)}
CLASSES = {name: value for name, value in surface() if inspect.isclass(value)}
METHODS = {
    f"{name}.{each}": inspect.getattr_static(value, each)
    for name, value in CLASSES.items()
    if value.__name__ not in MADE_ONLY and not issubclass(value, BaseException)
    for each in dir(value)
    if not each.startswith("_")
}
METHODS = {
    name: getattr(value, "__func__", value)
    for name, value in METHODS.items()
    if isinstance(getattr(value, "__func__", value), FunctionType)
}


def takes_any(fn):
    kinds = [each.kind for each in inspect.signature(fn).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


def test_every_function_and_method_refuses_an_unknown_keyword():
    assert len(FUNCTIONS) > 80
    assert len(METHODS) > 300
    for name, fn in {**FUNCTIONS, **METHODS}.items():
        if takes_any(fn):
            continue
        with pytest.raises(ArgumentsError, match="has no keyword qqqq"):
            fn(object(), qqqq=1) if name in METHODS else fn(qqqq=1)


CALLS = {
    "several numbers": (lambda: LAYOUT.locate(4, 6), r"give one sequence, locate\(\(4, 6\)\)"),
    "nothing": (lambda: LAYOUT.locate(), r"GridLayout\.locate needs index; .* as in locate\("),
    "no keyword at all": (lambda: gl.GridLayout(cores=(3, 2)), "cores: grid= is the grid of cores"),
    "a misspelt keyword": (lambda: gl.GridLayout((5, 7), tiles=(2, 2)), "did you mean tile="),
    "a text": (lambda: gl.AffineMap("(d0) -> (d0)"), r"AffineMap\.parse\(text\) reads a text"),
    "numbers of devices": (lambda: gl.DeviceGrid(2, 4), r"DeviceGrid\(\(2, 4\)\)"),
    "names of axes": (lambda: gl.DeviceGrid((2,), axis_names=("x",)), "jax.make_mesh"),
    "of a static method": (lambda: gl.AffineMap.parse(), r"^AffineMap\.parse needs text;"),
    "one twice": (lambda: gl.parse("f32[3]", text="f32[3]"), "text twice"),
    "by name only": (lambda: gl.map_shards(np.sin, LAYOUT), "gl.map_shards also needs out="),
    "too many": (lambda: gl.DeviceGrid((1,), None), "by name, core_map=, machine="),
    "of a system": (lambda: gl.sophon.local((1, 2, 3, 4)), "gl.sophon.local also needs dtype"),
    "of an array": (
        lambda: gl.put(np.ones(3, "f4"), gl.DeviceGrid((1,))).locate(1, 2),
        r"GridArray\.locate takes 1 positional argument, and 2 are given",
    ),
    "of an update": (
        lambda: gl.put(np.ones(3, "f4"), gl.DeviceGrid((1,))).at[1].set(),
        r"Places\.set needs values|set needs values",
    ),
}


@pytest.mark.parametrize(("call", "words"), CALLS.values(), ids=CALLS)
def test_arguments_that_do_not_fit(call, words):
    with pytest.raises(gl.LayoutError, match=words) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_type_error_of_the_function_itself_stays():
    @public
    def fn(x):
        return x + None

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        fn(3)
    assert not isinstance(caught.value, ArgumentsError)


def test_the_signature_is_that_of_the_function():
    assert list(inspect.signature(gl.convert).parameters) == ["layout", "to"]
    assert re.match(r"\(shape", str(inspect.signature(gl.GridLayout)))
