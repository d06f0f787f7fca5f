"""Plans of large models beside the divisions that experts state.

`python -m benchmarks.planning --models` prints them. Each array of a model has a role for each of
its dims: `b` batch, `s` sequence or height of an image, `d` the width of the model, `m` what tensor
parallelism divides (heads, hidden units, the vocabulary), `e` experts. An expert's division is the
number of parts of each role, and states the layouts of all arguments, by `fixed=`: `{"b": 8}` is
data parallel, `{"b": 8, "d": 8}` fully sharded.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, process_time
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import gridlayout as gl

Parts = Mapping[str, int]
ROLES = {
    "emb": "md", "out": "dm", "gf": "", "g1": "", "g2": "", "wq": "dm", "wk": "dm", "wv": "dm",
    "wo": "md", "w1": "dm", "w3": "dm", "w2": "md", "gate": "d", "up": "edm", "down": "emd",
    "tokens": "bs", "labels": "bs", "token": "b", "k": "bsm", "v": "bsm",
    "images": "bs", "classes": "b", "first": "...m", "conv": "..dm", "head": "dm",
}  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A function, and the shapes of its arguments."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]

    def fixed(self, parts: Parts) -> dict[str, Any]:
        """Return the layouts of all arguments in which dims have these parts, by their roles."""
        found = {}
        names = self.fn.__code__.co_varnames[: len(self.args)]
        for at, leaf in jax.tree_util.tree_leaves_with_path(
            dict(zip(names, self.args, strict=True))
        ):
            keys = [str(getattr(key, "key", getattr(key, "idx", ""))) for key in at]
            roles, shape = (
                next((ROLES[key] for key in reversed(keys) if key in ROLES), ""),
                leaf.shape,
            )
            if not shape:
                continue
            if "layers" in keys and not any(key.isdigit() for key in keys):  # stacked for a scan
                roles = f".{roles}"
            grid = tuple(parts.get(r, 1) for r in roles.ljust(len(shape), "."))
            found["/".join(keys)] = gl.GridLayout(shape, leaf.dtype, grid=grid, collapse=[])
        return found


# -- models ----------------------------------------------------------------------------------------


def shaped(*shape: int, dtype: str = "bfloat16") -> jax.ShapeDtypeStruct:
    """Return an array's shape."""
    return jax.ShapeDtypeStruct(shape, dtype)


def norm(x: Any, g: Any) -> Any:
    """Divide rows by their root mean square."""
    y = x.astype(jnp.float32)
    y = y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5)
    return y.astype(x.dtype) * g


def heads(x: Any, p: Any, width: int) -> list[Any]:
    """Return queries, keys and values by heads of a width."""
    return [(x @ p[n]).reshape(*x.shape[:-1], -1, width) for n in ("wq", "wk", "wv")]


def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Attend to all keys that the mask allows."""
    scores = jnp.einsum("bqhe,bkhe->bhqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9).astype(jnp.float32), -1)
    return jnp.einsum("bhqk,bkhe->bqhe", weights.astype(v.dtype), v)


def dense(x: Any, p: Any) -> Any:
    """Apply the gated feed-forward layer of Llama."""
    return (jax.nn.silu(x @ p["w1"]) * (x @ p["w3"])) @ p["w2"]


def mixture(x: Any, p: Any) -> Any:
    """Send each token to its best two experts, with a capacity for each, as GShard does."""
    experts, rows = p["gate"].shape[1], x.shape[1]
    capacity = -(-2 * rows // experts)
    gates = jax.nn.softmax((x @ p["gate"]).astype(jnp.float32), -1)
    best, which = lax.top_k(gates, 2)
    chosen = jax.nn.one_hot(which, experts).sum(-2)
    place = jnp.cumsum(chosen, 1) * chosen - 1
    sent = jax.nn.one_hot(place.astype(jnp.int32), capacity, dtype=x.dtype)
    inputs = jnp.einsum("btec,btd->ebcd", sent, x)
    hidden = jax.nn.silu(jnp.einsum("ebcd,edf->ebcf", inputs, p["up"]))
    made = jnp.einsum("ebcf,efd->ebcd", hidden, p["down"])
    weights = (gates * chosen / best.sum(-1, keepdims=True)).astype(x.dtype)
    return jnp.einsum("ebcd,btec,bte->btd", made, sent, weights)


def block(x: Any, p: Any, width: int) -> Any:
    """One layer of a transformer."""
    q, k, v = heads(norm(x, p["g1"]), p, width)
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    x = x + attention(q, k, v, mask).reshape(x.shape) @ p["wo"]
    y = norm(x, p["g2"])
    return x + (mixture(y, p) if "gate" in p else dense(y, p))


def weights(
    d: int, f: int, vocabulary: int, layers: int, experts: int = 0, scan: bool = False
) -> Any:
    """Return the shapes of a transformer's weights."""
    more = {"w1": (d, f), "w3": (d, f), "w2": (f, d)}
    if experts:
        more = {"gate": (d, experts), "up": (experts, d, f), "down": (experts, f, d)}
    own = {"wq": (d, d), "wk": (d, d), "wv": (d, d), "wo": (d, d), "g1": (d,), "g2": (d,), **more}
    if scan:
        every: Any = {name: shaped(layers, *shape) for name, shape in own.items()}
    else:
        every = [{name: shaped(*shape) for name, shape in own.items()} for _ in range(layers)]
    ends = {"emb": shaped(vocabulary, d), "gf": shaped(d), "out": shaped(d, vocabulary)}
    return {**ends, "layers": every}


def adamw(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a training step with AdamW for a loss of weights and two arrays of data."""

    def step(params: Any, m: Any, v: Any, tokens: Any, labels: Any) -> Any:
        value, g = jax.value_and_grad(loss)(params, tokens, labels)
        g = jax.tree.map(lambda a: a.astype(jnp.float32), g)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.95 * a + 0.05 * b * b, v, g)

        def new(p: Any, a: Any, b: Any) -> Any:
            p32 = p.astype(jnp.float32)
            return (p32 * (1 - 1e-4) - 3e-4 * a / (jnp.sqrt(b) + 1e-8)).astype(p.dtype)

        return jax.tree.map(new, params, m, v), m, v, value

    return step


def moments(params: Any) -> Any:
    """Return the shapes of AdamW's moments."""
    return jax.tree.map(lambda x: shaped(*x.shape, dtype="float32"), params)


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Return the mean of the negative log of each label's probability."""
    logits = logits.astype(jnp.float32)
    own = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - own)


def training(
    name: str, batch: int, rows: int, width: int, *sizes: int, scan: bool = False, experts: int = 0
) -> Model:
    """A transformer's training step; width: of a head, sizes: d, f, vocabulary, layers."""
    params = weights(*sizes, experts, scan)

    def loss(params: Any, tokens: Any, labels: Any) -> Any:
        x = params["emb"][tokens]
        if scan:
            x, _ = lax.scan(lambda x, p: (block(x, p, width), None), x, params["layers"])
        else:
            for p in params["layers"]:
                x = block(x, p, width)
        return cross_entropy(norm(x, params["gf"]) @ params["out"], labels)

    tokens = shaped(batch, rows, dtype="int32")
    return Model(name, adamw(loss), (params, moments(params), moments(params), tokens, tokens))


def prefill(name: str, batch: int, rows: int, width: int, *sizes: int) -> Model:
    """The first pass of a language model: the logits after the prompt, and the cache."""

    def run(params: Any, tokens: Any) -> Any:
        x, cache = params["emb"][tokens], []
        mask = jnp.tril(jnp.ones((tokens.shape[1], tokens.shape[1]), bool))
        for p in params["layers"]:
            q, k, v = heads(norm(x, p["g1"]), p, width)
            x = x + attention(q, k, v, mask).reshape(x.shape) @ p["wo"]
            x = x + dense(norm(x, p["g2"]), p)
            cache.append({"k": k, "v": v})
        return norm(x[:, -1], params["gf"]) @ params["out"], cache

    return Model(name, run, (weights(*sizes), shaped(batch, rows, dtype="int32")))


def decoding(name: str, batch: int, rows: int, width: int, *sizes: int) -> Model:
    """One token of a language model, which attends to a cache and writes it."""
    d, _, _, layers = sizes

    def run(params: Any, cache: Any, token: Any, at: Any) -> Any:
        x, new = params["emb"][token][:, None], []
        mask = jnp.arange(rows) <= at
        for p, own in zip(params["layers"], cache, strict=True):
            q, k, v = heads(norm(x, p["g1"]), p, width)
            k = lax.dynamic_update_slice_in_dim(own["k"], k, at, 1)
            v = lax.dynamic_update_slice_in_dim(own["v"], v, at, 1)
            x = x + attention(q, k, v, mask).reshape(x.shape) @ p["wo"]
            x = x + dense(norm(x, p["g2"]), p)
            new.append({"k": k, "v": v})
        return norm(x[:, 0], params["gf"]) @ params["out"], new

    one = {n: shaped(batch, rows, d // width, width) for n in ("k", "v")}
    args = weights(*sizes), [one] * layers, shaped(batch, dtype="int32"), shaped(dtype="int32")
    return Model(name, run, args)


def convolutions(name: str, batch: int, size: int, channels: int, layers: int, kinds: int) -> Model:
    """A training step of a residual network of images."""
    params = {
        "first": shaped(3, 3, 3, channels),
        "layers": [{"conv": shaped(3, 3, channels, channels)} for _ in range(layers)],
        "head": shaped(channels, kinds),
    }

    def conv(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(params: Any, images: Any, classes: Any) -> Any:
        x = jax.nn.relu(conv(images, params["first"]))
        for p in params["layers"]:
            x = x + jax.nn.relu(conv(x, p["conv"]))
        return cross_entropy(x.mean((1, 2)) @ params["head"], classes)

    step = adamw(loss)

    def run(params: Any, m: Any, v: Any, images: Any, classes: Any) -> Any:
        return step(params, m, v, images, classes)

    data = shaped(batch, size, size, 3), shaped(batch, dtype="int32")
    return Model(name, run, (params, moments(params), moments(params), *data))


# -- experts ---------------------------------------------------------------------------------------


def experts(model: Model, mesh: tuple[int, ...]) -> dict[str, Parts]:
    """Return the divisions that experts state for a model on a mesh, by their names.

    Mixtures divide data along the first axis of a mesh of two unequal axes.
    """
    n = 1
    for size in mesh:
        n *= size
    found: dict[str, Parts] = {
        "data": {"b": n},
        "fully sharded": {"b": n, "d": n},
        "tensor": {"m": n},
        "sequence": {"s": n},
    }
    if len(mesh) == 2 and mesh[0] != mesh[1]:
        data, tensor = mesh
        found |= {
            "data x tensor": {"b": data, "m": tensor},
            "fully sharded x tensor": {"b": data, "d": data, "m": tensor},
            "data x sequence": {"b": data, "s": tensor},
        }
    if any("gate" in str(at) for at, _ in jax.tree_util.tree_leaves_with_path(model.args)):
        found["data and experts"] = {"b": n, "e": n}
        if len(mesh) == 2 and mesh[0] != mesh[1]:
            found["data x experts"] = {"b": mesh[0], "e": mesh[1]}
            found["fully sharded x experts"] = {"b": mesh[0], "d": mesh[0], "e": mesh[1]}
    return found


# -- the table -------------------------------------------------------------------------------------

BATCH, ROWS = 64, 2048


def large(layers: int) -> dict[str, Model]:
    """Return models of the sizes of Llama 7B, with so many layers, and a network of images."""
    sizes = 128, 4096, 11008, 32000, layers
    return {
        "training": training("training", BATCH, ROWS, *sizes),
        "training, scanned": training("training, scanned", BATCH, ROWS, *sizes, scan=True),
        "experts": training("experts", BATCH, ROWS, *sizes, experts=8),
        "prefill": prefill("prefill", BATCH, ROWS, *sizes),
        "decoding": decoding("decoding", BATCH, ROWS, *sizes),
        "convolutions": convolutions("convolutions", 1024, 56, 256, layers, 1000),
    }


def machines() -> dict[str, gl.Machine]:
    """Return the machines of the table, as meshes of two unequal axes, for mixtures."""
    v5p, v5e = gl.Machine("v5p 4x4x4"), gl.Machine("v5e 16x16")
    return {
        "8 H100": gl.Machine("h100").on((2, 4)),
        "64 v5p": v5p.on((16, 4)),
        "256 v5e": v5e.on((32, 8)),
        "4096 v5p": v5p.on((256, 16)),
    }


def table(
    names: Sequence[str], layers: int, seconds: float, among: Mapping[str, gl.Machine] | None = None
) -> None:
    """Print a line for each model and machine whose names hold one of these, all without any."""
    for name, model in large(layers).items():
        for where, machine in (machines() if among is None else among).items():
            if not names or any(each in f"{name} on {where}" for each in names):
                print(line(model, where, machine, seconds), flush=True)


def line(model: Model, where: str, machine: gl.Machine, seconds: float) -> str:
    """Plan a model freely and as each expert divides it; return what was found as a text."""
    began, used = monotonic(), process_time()
    plan = gl.plan(model.fn, *model.args, machine=machine, seconds=seconds)
    taken, cpu = monotonic() - began, process_time() - used
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    times: dict[str, float] = {}
    assert machine.mesh is not None
    for name, parts in experts(model, machine.mesh).items():
        try:
            fixed = model.fixed(parts)
            own = gl.plan(model.fn, *model.args, machine=machine, fixed=fixed, seconds=seconds)
        except gl.LayoutError:  # it does not fit the memory, or the mesh
            continue
        times[name] = own.time
    best = min(times, key=times.__getitem__, default="none fits")
    text = f"{best} {times[best] * 1e3:.4g} ms, {plan.time / times[best]:.2f}x" if times else best
    return (
        f"{model.name:18} {where:9} {plan.time * 1e3:9.4g} ms  gap {plan.gap:6.1%}  "
        f"planned in {taken:5.1f} s, {cpu:5.1f} s of CPU, {most:.2f} GB   best expert: {text}"
    )
