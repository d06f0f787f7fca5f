"""JAX's own harnesses of its primitives, on the grid.

JAX tests each primitive by harnesses: functions with operands of many shapes, types and parameters
(`jax._src.internal_test_util.test_harnesses`, part of JAX's wheel). Their operands are placed in
random layouts of all systems, with NaN or a number unlike all others in the padding.
"""

import random
import traceback
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from prove.outcome import Outcome

# Results that are not unique: signs and orders of vectors, and whatever random bits are made of.
NOT_UNIQUE = {"eig", "eigh", "svd", "qr", "schur", "approx_top_k"}
# The part of a result that a primitive defines; what LAPACK leaves in the rest differs.
DEFINED = {"cholesky": np.tril}
LARGEST = 20_000  # elements of an operand


@cache
def harnesses():
    """All harnesses that JAX runs on the CPU, in an order that mixes the primitives."""
    from jax._src.internal_test_util.test_harnesses import all_harnesses

    found = sorted((h for h in all_harnesses if h.filter("cpu")), key=lambda h: h.fullname)
    random.Random(0).shuffle(found)
    return found


def run(part, start, count):
    """The harnesses of these numbers."""
    outcome = Outcome()
    for k, harness in list(enumerate(harnesses()))[start : start + count]:
        refused = _refused(harness)
        if refused is None:
            try:
                refused = _tried(harness, k)
            except Exception:
                repeat = f"python -m tests.prove primitives --seed {k}"
                what = f"{harness.fullname}\n{traceback.format_exc()[-2500:]}"
                outcome.failures.append({"what": what, "repeat": repeat})
                continue
        if refused is None:
            outcome.cases += 1
            outcome.judged["JAX, on one device"] += 1
        else:
            outcome.refused[refused] += 1
    return outcome


def _refused(harness):
    """Why a harness can't be compared, or None."""
    if harness.group_name in NOT_UNIQUE:
        return f"results of {harness.group_name} are not unique"
    given = harness.params
    is_sort = harness.group_name == "sort"
    if is_sort and not given["is_stable"] and given["num_keys"] < given["num_arrays"]:
        return "the order of equal keys is not unique"
    return None


def _operands(harness, seed):
    """The operands, in types that JAX has without 64 bits."""
    return [_without_64_bits(x) for x in harness.dyn_args_maker(np.random.RandomState(seed))]


def _without_64_bits(x):
    if not isinstance(x, (np.ndarray, jax.Array)) or jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return x
    return np.asarray(x, jax.dtypes.canonicalize_dtype(x.dtype))


def _tried(harness, seed):
    """Compare a harness on the grid with JAX's; why it can't be, or None."""
    from laid_out import poisoned
    from test_primitives import DEVICE
    from test_primitives import drawn as random_layout

    import gridlayout as gl

    operands = _operands(harness, seed)
    try:
        wanted = jax.jit(harness.dyn_fun)(*operands)
    except Exception:
        return "JAX refuses"
    rng, laid, placed = np.random.default_rng(seed), [], 0
    for x in operands:
        if isinstance(x, np.ndarray) and x.ndim and 0 < x.size <= LARGEST:
            layout = random_layout(x.shape, rng).with_dtype(x.dtype)
            x, placed = poisoned(x, layout, DEVICE), placed + 1
        laid.append(x)
    if not placed:
        return "no operand is an array with elements"
    try:
        found = jax.jit(gl.on_grid(harness.dyn_fun))(*laid)
    except TypeError:
        if _is_refused_in_a_shard_map(harness, operands):
            return "JAX refuses it in a shard_map"
        raise
    if (part := DEFINED.get(harness.group_name)) is not None:
        found, wanted = part(np.asarray(found)), part(np.asarray(wanted))
    compare(found, wanted)
    return None


def _is_refused_in_a_shard_map(harness, operands):
    """Whether JAX has no rule for the function on each device, whose operands are not divided.

    A harness binds `reduce_max` without a parameter that JAX's rule for this has no default of.
    """
    from test_primitives import DEVICE

    whole = jax.sharding.PartitionSpec()
    each = jax.shard_map(
        harness.dyn_fun, mesh=DEVICE.fine, in_specs=whole, out_specs=whole, check_vma=False
    )
    try:
        jax.jit(each)(*operands)
    except TypeError:
        return True
    return False


def compare(found, wanted):
    """Equal up to rounding, in the type of each result, relative to the largest of its array."""
    from laid_out import leaves, read, wide

    for f, w in zip(leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (f.shape, f.dtype) == (w.shape, w.dtype), f"{f.shape} {f.dtype}"
        if jnp.issubdtype(w.dtype, jax.dtypes.prng_key):
            f, w = jax.random.key_data(f), jax.random.key_data(w)
        inexact = jnp.issubdtype(w.dtype, jnp.inexact)
        precision = 50 * float(jnp.finfo(w.dtype).eps) if inexact else 0
        f, w = wide(read(f)), wide(w)
        scale = np.abs(w[np.isfinite(w)]).max(initial=1.0)
        np.testing.assert_allclose(f, w, rtol=precision, atol=precision * scale)
