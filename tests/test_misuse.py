"""What users write who take a `GridArray` for an array, or give `put` something else than one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl

DEVICE = gl.DeviceGrid((2, 2))
LAYOUT = gl.GridLayout((5, 7), grid=(2, 2))
X = np.arange(35, dtype=np.float32).reshape(5, 7)


@pytest.fixture
def gx():
    return gl.put(X, LAYOUT, DEVICE)


# --- functions that are not lifted ---

UNLIFTED = {
    "jnp.sin": jnp.sin,
    "jnp.sum": jnp.sum,
    "jnp.where": lambda x: jnp.where(x, x, x),
    "jnp.concatenate": lambda x: jnp.concatenate([x]),
    "jnp.einsum": lambda x: jnp.einsum("ij->i", x),
    "jnp.linalg.norm": jnp.linalg.norm,
    "jax.nn.relu": jax.nn.relu,
    "jax.nn.softmax": jax.nn.softmax,
    "jax.nn.gelu": jax.nn.gelu,
    "jax.lax.sin": jax.lax.sin,
    "jax.lax.add": lambda x: jax.lax.add(x, x),
    "jit": jax.jit(jnp.sin),
    "grad": jax.grad(jnp.sum),
    "vmap": jax.vmap(jnp.sin),
    "random": lambda x: jax.random.permutation(jax.random.key(0), x),
    "np.sin": np.sin,
    "np.maximum": lambda x: np.maximum(x, 0),
    "np.add.reduce": np.add.reduce,
    "np.add.outer": lambda x: np.add.outer(X, x),
    "in place": lambda x: np.add(X, x, out=X.copy()),
}


@pytest.mark.parametrize("fn", UNLIFTED.values(), ids=UNLIFTED)
def test_what_does_not_take_a_grid_array_says_what_does(gx, fn):
    with pytest.raises((gl.LayoutError, TypeError, ValueError)) as caught:
        fn(gx)
    assert "gl.on_grid" in str(caught.value)
    assert "gl.numpy" in str(caught.value)


def test_numpys_functions_are_refused_by_name(gx):
    with pytest.raises(gl.LayoutError, match=r"np\.sin does not take .*gl\.numpy\.sin computes on"):
        np.sin(gx)
    array = X.copy()
    with pytest.raises(gl.LayoutError, match=r"np\.add into a NumPy array does not take Grid"):
        array += gx


def test_arrays_are_not_changed_in_place(gx):
    with pytest.raises(TypeError, match=r"immutable.* x = x\.at\[index\]\.set\(y\)"):
        gx[3] = 1


METHODS = {
    "argpartition": lambda x: x.argpartition(2, axis=1)[:, 2],
    "argsort": lambda x: x.argsort(axis=0),
    "compress": lambda x: x.compress(np.arange(5) > 1, axis=0),
    "conjugate": lambda x: x.conjugate(),
    "copy": lambda x: x.copy(),
    "diagonal": lambda x: x.diagonal(),
    "ptp": lambda x: x.ptp(axis=1),
    "searchsorted": lambda x: x.sort(axis=1)[0].searchsorted(x[1]),
    "view": lambda x: x.view("int32"),
}


@pytest.mark.parametrize("fn", METHODS.values(), ids=METHODS)
def test_methods_of_jax_arrays_run_on_the_grid(gx, fn):
    found = fn(gx)
    assert isinstance(found, gl.GridArray)
    np.testing.assert_array_equal(found, fn(jnp.asarray(X)))


def test_elements_leave_as_pythons_numbers(gx):
    assert gx.tolist() == X.tolist()
    assert gx.item(3) == X.item(3)
    assert gl.put(X[:1, :1], DEVICE).item() == X[0, 0]


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
    "divmod": lambda a, b: divmod(a, b)[1],
    "@": lambda a, b: a.T @ b,
}


@pytest.mark.parametrize("fn", OPERATORS.values(), ids=OPERATORS)
def test_operators_with_numpy_on_the_left_run_on_the_grid(gx, fn):
    array = np.float32(X % 3 + 1)
    got = fn(array, gl.put(X % 2 + 1, LAYOUT, DEVICE))
    assert isinstance(got, gl.GridArray)
    np.testing.assert_allclose(np.asarray(got), fn(array, X % 2 + 1), rtol=1e-6)
    assert isinstance(np.float32(2) + gx, gl.GridArray)


def test_a_loop_over_the_core_grid_is_refused(gx):
    with pytest.raises(gl.LayoutError, match=r"lax\.scan over GridArrays.*gl\.on_grid\(lambda"):
        jax.lax.scan(lambda carry, row: (carry, row + 1), 0.0, gx, length=5)
    with pytest.raises((gl.LayoutError, ValueError)):  # JAX asks for the length first
        jax.lax.scan(lambda carry, row: (carry, row + 1), 0.0, gx)
    rows = gl.on_grid(jax.vmap(jnp.sum))(gx)  # what the message says to write
    np.testing.assert_allclose(rows.to_logical(), X.sum(axis=1))


# --- what put, pack and from_physical don't take ---

NOT_ONE_ARRAY = {
    "dict": (
        {"w": X, "b": X[0]},
        r"put lays out one array, and a dict holds.*gl\.put\(tree, device, ",
    ),
    "None": (None, r"put lays out one array, and a NoneType holds several, or none"),
    "arrays": ([X, X[0]], "list .* can't be read as an array of float32"),
    "words": ([["a", "b"]], "list .* can't be read as an array of float32"),
    "an object": (object(), "object .* can't be read as an array of float32"),
    "objects": (np.array([[None]]), "ndarray .* is no array of numbers that JAX holds"),
    "a type": (np.float32, "ndarray .*numpy.float32.* is no array of numbers that JAX holds"),
    "dates": (np.zeros((5, 7), "datetime64[s]"), "ndarray .* is no array of numbers"),
    "another shape": (X[0], r"the array has shape \(7,\)"),
}


@pytest.mark.parametrize(("array", "says"), NOT_ONE_ARRAY.values(), ids=NOT_ONE_ARRAY)
def test_put_takes_one_array_of_numbers(array, says):
    with pytest.raises(gl.LayoutError, match=says):
        gl.put(array, LAYOUT, DEVICE)


SWAPPED = {
    "GridLayout": lambda: gl.GridLayout(X),
    "GridLayout, of JAX": lambda: gl.GridLayout(jnp.asarray(X), grid=(2, 2)),
    "put, array second": lambda: gl.put(X, X, DEVICE),
    "put, array last": lambda: gl.put(X, DEVICE, X),
    "put, a tree second": lambda: gl.put(X, {"w": X}, DEVICE),
    "pack": lambda: gl.pack(X, X),
    "relayout": lambda: gl.relayout(gl.put(X, LAYOUT, DEVICE), X),
}


@pytest.mark.parametrize("call", SWAPPED.values(), ids=SWAPPED)
def test_an_array_in_a_wrong_place_is_shown_by_its_shape(call):
    with pytest.raises(gl.LayoutError, match=r"(ndarray|Array) float32\[5,7\]") as caught:
        call()
    assert len(str(caught.value)) < 300
    assert "0., " not in str(caught.value)


@pytest.mark.parametrize("call", [(LAYOUT, X), (LAYOUT, DEVICE, X), (DEVICE, X, LAYOUT)])
def test_put_takes_the_array_first(call):
    with pytest.raises(
        gl.LayoutError, match=r"array comes first: gl\.put\(array, layout, dev"
    ) as e:
        gl.put(*call)
    assert len(str(e.value)) < 300


def test_put_of_all_arguments_names_the_planned_put():
    def loss(p, x, y):
        return jnp.sum((x @ p["w"] - y) ** 2)

    args = {"w": np.ones((7, 3), np.float32)}, X, np.ones((5, 3), np.float32)
    plan = gl.plan(loss, *args)
    with pytest.raises(gl.LayoutError, match=r"plan\.put\(args\) takes all arguments"):
        gl.put(args, DEVICE, plan)


@pytest.mark.parametrize("call", [gl.pack, lambda x, layout: gl.put(x, layout, DEVICE)])
def test_random_keys_are_no_numbers(call):
    keys = jax.random.split(jax.random.key(0), 35).reshape(5, 7)
    layout = gl.GridLayout((5, 7), "uint32", grid=(2, 2))
    says = r"random keys, key<fry>\[5, 7\].*jax\.random\.key_data\(keys\)"
    with pytest.raises(gl.LayoutError, match=says):
        call(keys, layout)
    data = jax.random.key_data(keys)
    laid = gl.put(data, gl.GridLayout(data.shape, "uint32", grid=(2, 2, 1), collapse=[]), DEVICE)
    back = jax.random.wrap_key_data(laid.to_logical())
    assert (back == keys).all()


def test_data_of_another_type_says_its_own():
    layout = gl.GridLayout((2,), "int32", grid=(2,))
    says = (
        r"the array is float64 \(float32 to JAX, as jax_enable_x64 is off\), but the layout int32: "
        r"convert one, e\.g\. x\.astype\('int32'\)"
    )
    with pytest.raises(gl.LayoutError, match=says):
        gl.put(np.array([1.0, 2.0]), layout, DEVICE)
    with pytest.raises(gl.LayoutError, match="the array is float32, but the layout int32"):
        gl.put(jnp.array([1.0, 2.0]), layout, DEVICE)
    assert gl.put([1.0, 2.0], layout, DEVICE).to_logical().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        *(([1.5, 2], "int32"), ([1, 300], "int8"), ([1, -1], "uint8"), ([float("nan"), 1], "int8")),
        *(([1, 8], "int4"), ([1, 2**40], "int32"), ([1, 2], "bool"), ([1j, 1], "float32")),
        *((np.array([1, 2**40]), "int32"), (np.array([-(2**40), 1]), "int32")),
        (np.array([2**40], np.uint64).repeat(2), "uint32"),
    ],
)
def test_integers_are_never_cut(values, dtype):
    layout = gl.GridLayout((2,), dtype, grid=(2,))
    for call in (gl.pack, lambda x, layout: gl.put(x, layout, DEVICE)):
        with pytest.raises(gl.LayoutError, match=f"{dtype}"):
            call(values, layout)


# --- on_grid's own arguments ---


class Unhashable:
    __hash__ = None


def test_on_grid_refuses_what_is_no_device_policy_or_algorithm(gx):
    with pytest.raises(gl.LayoutError, match=r"device 5 must be a gl\.DeviceGrid, such as"):
        gl.on_grid(jnp.sin, device=5)
    with pytest.raises(gl.LayoutError, match="policy 5 must be a function of"):
        gl.on_grid(jnp.sin, policy=5)
    for algorithm in ("fast", 5, ["ring"], {}):
        with pytest.raises(gl.LayoutError, match="is not one of gathered, ring"):
            gl.on_grid(jnp.sin, algorithm=algorithm)
    for static in ({1, 2}, Unhashable(), bytearray(b"x")):
        says = rf"is static, and a {type(static).__name__} can't be hashed.*functools\.partial"
        with pytest.raises(gl.LayoutError, match=says):
            gl.on_grid(lambda x, static: x)(gx, static)
        with pytest.raises(gl.LayoutError, match=says):
            gl.on_grid(lambda x, static: x).report(gx, static=static)


class Elementwise:
    """Like an array, it is compared element by element; and the hash of all is one."""

    def __init__(self, *values):
        self.values = np.array(values)

    def __eq__(self, other):
        return self.values == other.values

    def __hash__(self):
        return 1


def test_on_grid_names_the_leaves_that_cannot_be_static(gx):
    fn = gl.on_grid(lambda x, tree: x)
    says = r"^tree\['names'\]\[1\]: \{'a'\} is no array.*frozenset"
    with pytest.raises(gl.LayoutError, match=says):
        fn(gx, {"names": ["a", {"a"}]})
    assert fn(gx, {"names": ["a", frozenset("a")]}).shape == gx.shape
    assert gl.on_grid(functools.partial(lambda names, x: x, {"a"}))(gx).shape == gx.shape
    one = Elementwise(1, 2)
    for _ in range(2):
        assert fn(gx, one).shape == gx.shape
    for call in (fn, fn.report):
        with pytest.raises(gl.LayoutError, match="is static, and == of two Elementwises must give"):
            call(gx, Elementwise(1, 3))
    assert fn(gx, 1.0).shape == fn(gx, "a").shape == gx.shape
    for leaf in (np.array(["a"]), np.array([None]), np.str_("a"), np.datetime64("2020-01-01")):
        says = r"^tree\['x'\]: .* is no element type of JAX; convert it to a numeric type"
        with pytest.raises(gl.LayoutError, match=says):
            fn(gx, {"x": leaf})


def test_layouts_are_asked_of_layouts():
    for other in (None, 5, "x", (5, 7)):
        with pytest.raises(gl.LayoutError, match=r"must be a gl\.Layout, such as gl\.GridLayout"):
            LAYOUT.same_physical(other)
    for axis in ("0", None, 0.0, True, [0]):
        with pytest.raises(gl.LayoutError, match=r"axis .* must be a whole number"):
            LAYOUT.padding_along(axis)
    assert (LAYOUT.padding_along(-2) == LAYOUT.padding_along(np.int8(0))).all()


def test_a_mesh_of_too_many_devices_is_refused() -> None:
    mesh = jax.sharding.AbstractMesh((2**10, 2**11), ("x", "y"))
    with pytest.raises(
        gl.LayoutError, match=r"mesh of \(1024, 2048\) has more than 2\*\*20 devices"
    ):
        gl.DeviceGrid(mesh)
