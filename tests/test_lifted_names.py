"""Every public function of `jax.numpy`, `jax.nn` and `jax.scipy`: called on the grid, or listed.

The tables have all names of JAX's newest version; in others, the names that it has.
"""

import importlib
import pkgutil
import types

import jax
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np
import pytest
from tiers import few

import gridlayout as gl
from gridlayout.ops.user.lifted import Lifted, Submodule

DEVICE = gl.DeviceGrid((2, 2))
RNG = np.random.default_rng(0)


def random(*shape):
    """Numbers between 0.1 and 0.9, where most functions are defined."""
    return (RNG.random(shape) * 0.8 + 0.1).astype("f4")


X, Y, V, W, U = random(5, 6), random(5, 6), random(7), np.sort(random(7)), random(5)
S = random(5, 5)
S = S @ S.T + 5 * np.eye(5, dtype="f4")
L = np.linalg.cholesky(S)
I, J = RNG.integers(0, 7, (5, 6), "i4"), RNG.integers(1, 3, (5, 6), "i4")  # noqa: E741
IV, BYTES = RNG.integers(0, 4, 7, "i4"), RNG.integers(0, 200, (5, 8), "u1")
Q = random(2, 5, 4, 4)
# The arguments that a word of `CALLS` stands for.
ARGUMENTS = {
    **{"x": X, "y": Y, "spd": S, "v": V, "sorted": W, "u": U, "i": I, "j": J, "t": X.T.copy()},
    **{"iv": IV, "bytes": BYTES, "q": Q, "c": S[:, 0], "r": S[0]},
}

# The functions of each library, by their arguments.
CALLS = {
    "numpy": {
        "x": (
            "abs absolute acos acosh all amax amin angle any arccos arccosh arcsin arcsinh "
            "arctan arctanh argmax argmin argsort argwhere around array asarray asin asinh "
            "atan atanh atleast_1d atleast_2d atleast_3d average block broadcast_arrays "
            "cbrt ceil clip column_stack concat concatenate conj conjugate copy corrcoef "
            "cos cosh count_nonzero cov cumprod cumsum deg2rad degrees diag diagflat "
            "diagonal diff dstack ediff1d empty_like exp exp2 expm1 fabs flatnonzero flip "
            "fliplr flipud floor frexp gradient histogram histogram_bin_edges histogramdd "
            "hstack i0 imag iscomplex iscomplexobj isfinite isinf isnan isneginf isposinf "
            "isreal isrealobj isscalar iterable lexsort log log10 log1p log2 logical_not "
            "matrix_transpose max mean median min minmax modf nan_to_num nanargmax "
            "nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd "
            "nansum nanvar negative nonzero ones_like positive prod ptp rad2deg radians "
            "ravel real reciprocal result_type rint rot90 round sign signbit sin sinc sinh "
            "sort sort_complex spacing sqrt square squeeze stack std sum tan tanh trace "
            "transpose trapezoid tril tril_indices_from trim_zeros triu triu_indices_from "
            "trunc unique unique_all unique_counts unique_inverse unique_values unstack "
            "unwrap var vstack where zeros_like"
        ),
        "x y": (
            "add allclose append arctan2 array_equal array_equiv atan2 can_cast copysign "
            "divide divmod equal extract float_power floor_divide fmax fmin fmod full_like "
            "geomspace greater greater_equal heaviside hypot inner intersect1d isclose "
            "isdtype isin issubdtype kron less less_equal linspace logaddexp logaddexp2 "
            "logical_and logical_or logical_xor logspace matvec maximum minimum mod "
            "multiply nextafter not_equal outer polyadd polysub polyval pow power "
            "promote_types remainder select setdiff1d setxor1d subtract tensordot "
            "true_divide union1d vdot vecdot"
        ),
        "v 2": "argpartition pad partition resize top_k",
        "i j": (
            "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd "
            "lcm ldexp left_shift right_shift take take_along_axis"
        ),
        "i": "bitwise_count bitwise_invert bitwise_not invert packbits",
        "v sorted": (
            "compress convolve correlate digitize dot histogram2d matmul nanpercentile "
            "nanquantile percentile polydiv polymul quantile roll searchsorted "
            "unravel_index"
        ),
        "v": "cumulative_prod cumulative_sum ix_ meshgrid polyder polyint vander",
        "spd": "diag_indices_from poly",
        "x (6, 5)": "einsum reshape",
        "x 2": "expand_dims",
        "x 1": "rollaxis",
        "bytes": "unpackbits",
        "spd spd": "vecmat",
    },
    "numpy.linalg": {
        "spd": "cholesky det eig eigh eigvals eigvalsh inv slogdet",
        "x": (
            "cond diagonal matrix_norm matrix_rank matrix_transpose norm pinv qr svd "
            "svdvals trace vector_norm"
        ),
        "x y": "lstsq tensordot vecdot",
        "v sorted": "matmul outer",
        "spd u": "solve tensorsolve",
    },
    "numpy.fft": {
        "x": (
            "fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 "
            "irfftn rfft rfft2 rfftn"
        ),
    },
    "nn": {
        "x": (
            "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity "
            "leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish relu "
            "relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid "
            "squareplus standardize swish tanh"
        ),
        "x x y": "dot_product_attention",
        "v 2": "one_hot",
    },
    "scipy.special": {
        "x y": (
            "beta betaln boxcox boxcox1p comb expn gammainc gammaincc kl_div owens_t poch "
            "rel_entr xlog1py xlogy zeta"
        ),
        "x y j": "betainc hyp1f1",
        "x": (
            "dawsn digamma entr erf erfc erfcinv erfcx erfinv exp1 expi expit factorial "
            "fresnel gamma gammaln gammasgn i0 i0e i1 i1e log_ndtr log_softmax loggamma "
            "logit logsumexp ndtr ndtri sici softmax spence wofz"
        ),
        "x x x y": "hyp2f1",
        "v 2": "multigammaln",
        "i j": "polygamma",
    },
    "scipy.linalg": {
        "x": (
            "block_diag circulant companion fiedler fiedler_companion hankel lu lu_factor "
            "qr svd toeplitz"
        ),
        "spd": "cholesky det eigh expm hessenberg inv polar schur sqrtm",
        "v 2": "convolution_matrix",
        "spd spd": "expm_frechet rsf2csf",
        "spd u": "qr_multiply solve solve_triangular",
        "q q q": "solve_sylvester",
    },
    "scipy.fft": {
        "x": "dct dctn idct idctn",
    },
    "scipy.signal": {
        "x y": "convolve convolve2d correlate correlate2d csd fftconvolve",
        "x": "detrend istft stft welch",
    },
    "scipy.integrate": {
        "x": "trapezoid",
    },
    "scipy.cluster.vq": {
        "x y": "vq",
    },
    "scipy.sparse.linalg": {
        "spd u": "bicgstab cg gmres",
    },
    "scipy.stats": {
        "x": "mode rankdata sem",
    },
}


def _away(x):
    return ((x - 1) ** 2).sum()


# Calls that take other arguments, by library: positional ones, then keywords.
OWN = {
    "numpy": {
        "apply_along_axis": ((jnp.cumsum, 0, X), {}),
        "apply_over_axes": ((jnp.sum, X, [0]), {}),
        "array_repr": ((IV,), {}),
        "array_split": ((X, 2), {}),
        "array_str": ((IV,), {}),
        "astype": ((X, "int32"), {}),
        "bincount": ((IV,), {}),
        "broadcast_shapes": (((5, 1), (1, 6)), {}),
        "broadcast_to": ((X, (2, 5, 6)), {}),
        "can_cast": (("int32", "float16"), {}),
        "choose": ((IV, [V, W, V, W]), {"mode": "clip"}),
        "cross": ((X[:, :3], Y[:, :3]), {}),
        "delete": ((X, 1, 0), {}),
        "dsplit": ((Q, 2), {}),
        "einsum_path": (("ij,kj->ik", X, Y), {}),
        "fill_diagonal": ((S, 2.0), {"inplace": False}),
        "get_printoptions": ((), {}),
        "hsplit": ((X, 2), {}),
        "insert": ((V, 2, 1.5), {}),
        "interp": ((V, W, V), {}),
        "isdtype": ((np.dtype("float32"), "real floating"), {}),
        "issubdtype": ((np.dtype("float32"), jnp.integer), {}),
        "moveaxis": ((X, 0, 1), {}),
        "ndim": ((X,), {}),
        "permute_dims": ((X, (1, 0)), {}),
        "piecewise": ((X, [X > 0.5], [jnp.sin, jnp.cos]), {}),
        "place": ((X, X > 0.5, V), {"inplace": False}),
        "polyfit": ((W, V, 2), {}),
        "promote_types": (("int32", "bfloat16"), {}),
        "put": ((X, IV[:1], 2.0), {"inplace": False}),
        "put_along_axis": ((X, IV[None, :1], 2.0, 0), {"inplace": False}),
        "ravel_multi_index": (((IV, IV), (4, 4)), {"mode": "clip"}),
        "repeat": ((X, 2), {}),
        "roots": ((V,), {}),
        "set_printoptions": ((), {"precision": 8}),
        "shape": ((X,), {}),
        "size": ((X,), {}),
        "split": ((X.T, 2), {}),
        "swapaxes": ((X, 0, 1), {}),
        "tile": ((X, (2, 1)), {}),
        "vsplit": ((X.T, 2), {}),
    },
    "numpy.linalg": {
        "cross": ((X[:, :3], Y[:, :3]), {}),
        "matrix_power": ((S, 3), {}),
        "multi_dot": (([X, X.T, S],), {}),
        "tensorinv": ((S.reshape(5, 5, 1),), {"ind": 1}),
    },
    "nn": {
        "one_hot": ((IV, 4), {}),
        "scaled_dot_general": ((X, X.T, (((1,), (0,)), ((), ()))), {}),
    },
    "scipy.signal": {"stft": ((X,), {"nperseg": 4})},
    "scipy.ndimage": {"map_coordinates": ((X, [V, W]), {"order": 1})},
    "scipy.special": {
        "bessel_jn": ((V,), {"v": 2}),
        "sph_harm_y": ((IV, IV, V, V), {"n_max": 4}),
    },
    "scipy.linalg": {
        "cho_solve": (((L, True), U), {}),
        "eigh_tridiagonal": ((V, V[:-1]), {"eigvals_only": True}),
        "funm": ((S, jnp.sin), {"disp": True}),
        "leslie": ((V, V[1:]), {}),
        "lu_solve": (((S, np.arange(5, dtype="i4")), U), {}),
    },
    "scipy.optimize": {
        "minimize": ((_away, U), {"method": "BFGS"}),
    },
}

NO_ARRAY = "makes an array without one, so no device grid is known: gl.on_grid(fn, device=...)"
OF_BUFFERS = "reads files or the buffers of other libraries: gl.put of what JAX's own returns"
OF_FUNCTIONS = "makes a function of a function: gl.on_grid of what JAX's own returns"
TO_FILES = "writes whole arrays to files: gl.save"


def listed(reason, names):
    """The names, each with this reason."""
    return dict.fromkeys(names.split(), reason)


# What is not supported, and why.
UNSUPPORTED = {
    "numpy": {
        **listed(
            NO_ARRAY,
            "arange bartlett blackman diag_indices empty eye fromfunction full hamming hanning "
            "identity indices kaiser mask_indices ones tri tril_indices triu_indices zeros",
        ),
        **listed(OF_BUFFERS, "from_dlpack frombuffer fromfile fromiter fromstring load"),
        **dict.fromkeys(("frompyfunc", "vectorize"), OF_FUNCTIONS),
        **dict.fromkeys(("save", "savez"), TO_FILES),
        "printoptions": "a context manager of settings, which is JAX's own",
    },
    "numpy.fft": dict.fromkeys(("fftfreq", "rfftfreq"), NO_ARRAY),
    "nn": {
        "get_scaled_dot_general_config": "makes a configuration",
        "scaled_matmul": "a kernel for block formats of one GPU, which JAX has no rule to divide",
    },
    "scipy.special": {"bernoulli": NO_ARRAY},
    "scipy.linalg": {
        **listed(NO_ARRAY, "dft hadamard helmert hilbert invhilbert invpascal pascal"),
        "cho_factor": "its flag becomes an array, which cho_solve refuses: gl.on_grid of both",
    },
}
# Submodules that are not lifted, and why.
SUBMODULES = {
    "nn": {"initializers": "they draw random numbers, and take no arrays"},
    "scipy": {
        **dict.fromkeys(("interpolate", "spatial"), "have classes only: gl.on_grid of their use"),
    },
}


def functions(path):
    """The names of the functions of a module of JAX."""
    module = importlib.import_module(f"jax.{path}")
    kinds = (types.ModuleType, type)
    names = [name for name in dir(module) if not name.startswith("_")]
    values = {name: getattr(module, name) for name in names}
    return {n for n, x in values.items() if callable(x) and not isinstance(x, kinds)}


def calls(path):
    """The arguments of each call in the tables, by the function's name."""
    found = {}
    for words, names in CALLS.get(path, {}).items():
        special = {"x (6, 5)": [X, (6, 5)], "[x y]": [[X, Y]]}
        values = special.get(words) or [
            int(word) if word.isdigit() else ARGUMENTS[word] for word in words.split()
        ]
        found |= {name: (tuple(values), {}) for name in names.split()}
    return found | OWN.get(path, {})


PATHS = sorted({*CALLS, *OWN})
CASES = [(path, name) for path in PATHS for name in sorted(calls(path)) if name in functions(path)]


@pytest.mark.parametrize("path", PATHS)
def test_every_function_is_called_or_listed_with_its_reason(path):
    unsupported = UNSUPPORTED.get(path, {})
    known = {*calls(path), *unsupported}
    assert functions(path) - known == set()
    assert not {*calls(path)} & {*unsupported}
    if jax.__version_info__ >= (0, 12):
        assert known - functions(path) == set()


def of_arrays(arguments, change):
    """Arguments with their arrays changed; what is in lists and tuples of arrays too."""
    return jax.tree.map(lambda x: change(x) if isinstance(x, np.ndarray) else x, arguments)


def laid(x):
    grid = (2, 2, 1, 1)[: x.ndim]
    return gl.put(x, gl.GridLayout(x.shape, x.dtype, grid=grid, collapse=[]), DEVICE)


def lifted_module(path):
    own = gl
    for part in path.split("."):
        own = getattr(own, part)
    return own


@pytest.mark.parametrize(("path", "name"), few(CASES, 12))
def test_a_lifted_function_returns_what_jaxs_own_does(path, name):
    arguments, keywords = calls(path)[name]
    own = getattr(importlib.import_module(f"jax.{path}"), name)
    expected = own(*of_arrays(arguments, jnp.asarray), **keywords)
    found = getattr(lifted_module(path), name)(*of_arrays(arguments, laid), **keywords)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if not isinstance(y, jax.Array):
            assert (type(x), str(x)) == (type(y), str(y))
            continue
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype.kind in "fcV":
            kind = np.result_type(x.dtype, np.float32)
            np.testing.assert_allclose(x.astype(kind), y.astype(kind), rtol=2e-3, atol=2e-4)
        else:
            np.testing.assert_array_equal(x, y)


ONE_SIZE = ["arange", "bartlett", "blackman", "eye", "hanning", "identity", "ones", "tri", "zeros"]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ONE_SIZE)
def test_what_makes_arrays_without_one_is_refused(name):
    assert UNSUPPORTED["numpy"][name] == NO_ARRAY
    with pytest.raises(gl.LayoutError, match="no argument is a GridArray"):
        getattr(gl.numpy, name)(5)
    made = gl.on_grid(lambda: getattr(jnp, name)(5), DEVICE)()
    np.testing.assert_allclose(np.asarray(made), getattr(jnp, name)(5), rtol=1e-6)


@pytest.mark.parametrize("path", ["numpy", "nn", "scipy"])
def test_every_submodule_is_lifted_or_listed_with_its_reason(path):
    module = importlib.import_module(f"jax.{path}")
    found = {each.name for each in pkgutil.iter_modules(module.__path__)}
    names = {name for name in found if not name.startswith("_")}
    others = {*SUBMODULES.get(path, {})}
    own = lifted_module(path)
    for name in names - others:
        assert isinstance(getattr(own, name), Submodule), name
        assert getattr(own, name) is getattr(own, name)
        assert dir(getattr(own, name)) == dir(getattr(module, name))
    assert others <= names
    for name in others:
        assert not isinstance(getattr(own, name, None), Submodule)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["norm", "gamma", "beta"])
def test_densities_are_lifted(name):
    own, plain = getattr(gl.scipy.stats, name), getattr(jax.scipy.stats, name)
    arguments = () if name == "norm" else (2.0,) if name == "gamma" else (2.0, 3.0)
    assert isinstance(own.logpdf, Lifted)
    found = own.logpdf(laid(X), *arguments)
    assert isinstance(found, gl.GridArray)
    np.testing.assert_allclose(np.asarray(found), plain.logpdf(X, *arguments), rtol=1e-4)


def test_a_factorization_and_its_solution_are_lifted():
    solve = lambda s, u: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(s), u)  # noqa: E731
    factor = gl.scipy.linalg.cho_factor(laid(S))
    assert factor[1] is jax.scipy.linalg.cho_factor(S)[1]
    for found in (gl.scipy.linalg.cho_solve(factor, laid(U)), gl.on_grid(solve)(laid(S), laid(U))):
        np.testing.assert_allclose(np.asarray(found), solve(S, U), 1e-4)


def test_shapes_and_types_are_asked_inside_of_functions_too():
    x = laid(X)
    fn = lambda x: x * gl.numpy.shape(x)[0] + gl.numpy.ndim(x)  # noqa: E731
    for call in (fn, jax.jit(fn), gl.on_grid(fn)):
        np.testing.assert_allclose(np.asarray(call(x)), X * 5 + 2, rtol=1e-6)
    assert gl.numpy.size(x, axis=1) == 6
    assert gl.numpy.issubdtype(x.dtype, jnp.floating)


def test_names_that_are_not_there_are_refused():
    with pytest.raises(AttributeError, match=r"has cluster, fft, .* no 'spatial'"):
        gl.scipy.spatial  # noqa: B018
    with pytest.raises(AttributeError):
        gl.numpy.linalg.nothing  # noqa: B018
