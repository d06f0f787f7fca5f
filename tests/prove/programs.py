"""Random programs on the grid are JAX's: values, gradients, jvps, vmaps, on meshes of five sizes.

Operands are in random layouts of all systems, with NaN (or a number unlike all others) in their
padding. JAX's transformations are inside of `on_grid` in half of the programs, else outside.
"""

import traceback

import jax
import jax.numpy as jnp
import numpy as np

from prove.outcome import Outcome

MESHES = {1: [(1,)], 4: [(4,), (2, 2)], 8: [(2, 4), (8,), (2, 2, 2)]}
MESHES |= {16: [(4, 4), (2, 8), (16,)], 64: [(8, 8), (4, 4, 4), (2, 32)]}

COARSE, FINE = 0.06, 3e-4  # relative errors, with and without bfloat16


def run(part, start, count):
    """The programs of the seeds from `start` on, on meshes of the part's devices."""
    outcome = Outcome()
    for seed in range(start, start + count):
        from prove.programs_random import drawn

        rng = np.random.default_rng([seed, part.devices])
        program = drawn(rng)
        places, device = placed(program, rng, part.devices)
        try:
            assert_jaxs(program, places, device, inside=seed % 2 == 0, rng=rng)
        except Exception:
            repeat = f"python -m tests.prove programs --part {part.name} --seed {seed}"
            text = "\n".join([program.source, f"on {device}", *map(repr, places[1])])
            what = f"{text}\n{traceback.format_exc()[-1500:]}"
            outcome.failures.append({"what": what, "repeat": repeat})
        else:
            outcome.cases += 1
            outcome.judged["JAX, on one device"] += 1
    return outcome


def placed(program, rng, devices):
    """The operands, and a batch of the first; their layouts; the device grid."""
    import gridlayout as gl

    first = program.operands[0]
    batch = np.stack([first, first * np.float32(0.5)])
    arrays = [*program.operands, batch]
    layouts = [_layout(x, rng) for x in arrays]
    meshes = MESHES[devices]
    return (arrays, layouts), gl.DeviceGrid(meshes[rng.integers(len(meshes))])


def _layout(x, rng):
    """A random layout of any system that can hold the array."""
    from test_primitives import drawn as random_layout

    import gridlayout as gl

    while True:
        try:
            return random_layout(x.shape, rng).with_dtype(x.dtype)
        except gl.LayoutError:  # its strides are no whole bytes in a type of 4 bits
            continue


def drawn_weights(program, rng):
    """Weights of the results that are floats, and None for the others."""
    outs = jax.eval_shape(program.function, *program.operands)
    return [np.float32(rng.uniform(0.5, 1.5)) if is_float(out) else None for out in outs]


def weighted_sum(fn, weights):
    """The sum of the results of a function, each times its weight, without those that have none."""

    def total(*args):
        terms = zip(fn(*args), weights, strict=True)
        return sum((out.astype("float32") * w).sum() for out, w in terms if w is not None)

    return total


def floats_of(program):
    """The numbers of the operands that a derivative is of."""
    return tuple(k for k, x in enumerate(program.operands) if is_float(x))


def everything(fn, floats, weights):
    """A function of operands and a batch: value, gradient, jvp and vmap of `fn`.

    floats: the operands that a derivative is of. weights: of the results in the sum that the
    gradient is of, None of those that are no floats.
    """

    total = weighted_sum(fn, weights)

    def found(*given):
        *args, batch = given
        chosen = [args[k] for k in floats]

        def of_floats(*some):
            full = list(args)
            for k, x in zip(floats, some, strict=True):
                full[k] = x
            outs = zip(fn(*full), weights, strict=True)
            return [out for out, w in outs if w is not None]

        return {
            "value": fn(*args),
            "gradient": jax.grad(total, floats)(*args),
            "jvp": jax.jvp(of_floats, chosen, chosen)[1],
            "vmap": jax.vmap(fn, in_axes=(0, *[None] * (len(args) - 1)))(batch, *args[1:]),
        }

    return found


def is_float(x):
    """Whether a derivative is of it: cotangents in floats of 8 bits say little."""
    return jnp.issubdtype(x.dtype, jnp.floating) and x.dtype.itemsize > 1


def assert_jaxs(program, places, device, inside, rng):
    """What the grid computes is what JAX computes of plain arrays."""
    from laid_out import poisoned

    import gridlayout as gl

    arrays, layouts = places
    fn = program.function
    floats, weights = floats_of(program), drawn_weights(program, rng)
    plain = everything(fn, floats, weights)
    wanted = jax.jit(plain)(*arrays)
    laid = [poisoned(x, layout, device) for x, layout in zip(arrays, layouts, strict=True)]
    lifted = gl.on_grid(plain) if inside else everything(gl.on_grid(fn), floats, weights)
    found = jax.jit(lifted)(*laid)
    for what in wanted:
        compare(what, found[what], wanted[what])


def compare(what, found, wanted):
    """Results are equal up to rounding, relative to the largest of their array."""
    from laid_out import leaves, read, wide

    precision = COARSE if what_is_coarse(wanted) else FINE
    for f, w in zip(leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (f.shape, f.dtype) == (w.shape, w.dtype), f"{what}: {f.shape} {f.dtype}"
        f, w = wide(read(f)), wide(w)
        scale = np.abs(w[np.isfinite(w)]).max(initial=1.0)
        np.testing.assert_allclose(f, w, rtol=precision, atol=precision * scale, err_msg=what)


def what_is_coarse(tree):
    """Whether bfloat16 is among the results."""
    return any(x.dtype == jnp.bfloat16 for x in jax.tree.leaves(tree))
