"""`python -m benchmarks.scaling`: how steps scale over devices, predicted and as others published.

Megatron-LM's weak scaling on nodes of V100s and A100s: `gl.simulate` of its training step in its
own placement, on machines whose FLOPs are fitted on one GPU alone. And the all-gathers that the
scaling book profiled, on ready machines. `tests/published/sources.json` has the sources.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import gridlayout as gl
from benchmarks.published import rows_of
from gridlayout.sharding.collectives import Collective

SEQUENCE, VOCABULARY = 1024, 51200

# Peak FLOPs of half precision with tensor cores, bytes a second of memory, and of NVLink in one
# direction: NVIDIA's data sheets of V100 SXM3 and A100 SXM4. Of NVLink's, NCCL reaches the share
# that it reaches on H100 nodes (scaling book, chapter on GPUs).
_GPUS = {"v100": (125e12, 900e9, 150e9), "a100": (312e12, 1555e9, 300e9)}
_NCCL = 320 / 450


class Step(NamedTuple):
    """A training step that was measured: gradients of a GPT model, divided over `devices` GPUs."""

    gpu: str
    hidden: int
    heads: int
    layers: int
    devices: int
    batch: int
    seconds: float


def steps() -> list[Step]:
    """All that were published, those of one GPU kind in order of devices."""
    return [
        Step(gpu, *map(int, counts), float(milliseconds) * 1e-3)
        for gpu, *counts, milliseconds in rows_of("megatron_steps")
    ]


# -- the model, as Megatron-LM divides it ----------------------------------------------------------


def parameters(step: Step, mesh: AbstractMesh) -> dict[str, gl.GridLayout]:
    """Heads and hidden units are divided over the GPUs, and so is the vocabulary."""
    hidden, heads, layers = step.hidden, step.heads, step.layers
    head = hidden // heads
    sizes = {
        "embedding": ((VOCABULARY, hidden), P("model")),
        "positions": ((SEQUENCE, hidden), P()),
        "scale_in": ((layers, hidden), P()),
        "qkv": ((layers, hidden, 3, heads, head), P(None, None, None, "model")),
        "out": ((layers, heads, head, hidden), P(None, "model")),
        "scale_mlp": ((layers, hidden), P()),
        "up": ((layers, hidden, 4 * hidden), P(None, None, "model")),
        "down": ((layers, 4 * hidden, hidden), P(None, "model")),
    }
    return {
        name: gl.GridLayout.of(shape, NamedSharding(mesh, spec), "float16")
        for name, (shape, spec) in sizes.items()
    }


def _replicated(x: jax.Array) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, P())


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Layer normalisation in float32; every GPU computes all of it, and of its gradient."""
    wide = x.astype("float32")
    wide = wide - wide.mean(-1, keepdims=True)
    wide *= jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    return _replicated((wide * scale).astype(x.dtype))


def _layer(x: jax.Array, w: dict[str, jax.Array]) -> tuple[jax.Array, None]:
    """A transformer layer; only the results of `out` and `down` are summed over the GPUs."""
    q, k, v = jnp.einsum("bsh,hknd->kbnsd", _norm(x, w["scale_in"]), w["qkv"])
    scores = jnp.einsum("bnsd,bntd->bnst", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tri(SEQUENCE, dtype=bool), scores, -1e4)
    shares = jax.nn.softmax(scores.astype("float32"), -1).astype(x.dtype)
    seen = jnp.einsum("bnst,bntd->bnsd", shares, v)
    x = _replicated(x + _replicated(jnp.einsum("bnsd,ndh->bsh", seen, w["out"])))
    units = jax.nn.gelu(jnp.einsum("bsh,hf->bsf", _norm(x, w["scale_mlp"]), w["up"]))
    return _replicated(x + _replicated(jnp.einsum("bsf,fh->bsh", units, w["down"]))), None


def loss(parameters: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """The mean cross entropy of the next tokens; layers are computed again for their gradients."""
    layers = dict(parameters)
    table, positions = layers.pop("embedding"), layers.pop("positions")
    x = _replicated(table[tokens]) + positions
    x, _ = jax.lax.scan(jax.checkpoint(_layer), x, layers)
    logits = jnp.einsum("bsh,vh->bsv", x, table).astype("float32")
    found = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.roll(tokens, -1)[..., None], -1)
    return -found.mean()


# -- predictions -----------------------------------------------------------------------------------


def simulated(step: Step, share: float) -> gl.results.Simulation:
    """A step on GPUs that reach a share of their peak FLOPs."""
    flops, memory, link = _GPUS[step.gpu]
    machine = gl.Machine(
        gl.Chip(step.gpu, (1, 1)),
        mesh=(step.devices,),
        links=gl.Links(link * _NCCL, latency=1e-6, start=5e-6),
        rates=gl.Rates(flops * share, memory, memory / 2),
    )
    mesh = AbstractMesh((step.devices,), ("model",))
    shape = (step.batch, SEQUENCE)
    tokens = gl.GridLayout.of(shape, NamedSharding(mesh, P()), "int32")
    return gl.simulate(jax.grad(loss), parameters(step, mesh), tokens, machine=machine)


def fitted_share(step: Step) -> float:
    """The share of the peak FLOPs with which a step takes as long as was measured."""
    least, most = 0.1, 1.0
    while most - least > 1e-3:
        share = (least + most) / 2
        is_slower = simulated(step, share).time > step.seconds
        least, most = (share, most) if is_slower else (least, share)
    return most


def predicted(gpu: str) -> list[tuple[Step, float]]:
    """Each step of a kind of GPU and its predicted seconds; the first is fitted."""
    found = [step for step in steps() if step.gpu == gpu]
    share = fitted_share(found[0])
    return [(step, simulated(step, share).time) for step in found]


class Gather(NamedTuple):
    """An all-gather along one axis of a mesh, of a tensor of so many bytes."""

    machine: str
    mesh: tuple[int, ...]
    axis: int
    nbytes: int
    seconds: float

    @property
    def predicted(self) -> float:
        """Seconds on the ready machine."""
        names = tuple("xyz"[: len(self.mesh)])
        machine = gl.Machine(self.machine, mesh=self.mesh, axes=names)
        n, name = self.mesh[self.axis], names[self.axis]
        received = self.nbytes * (n - 1) // n
        return machine.once(Collective("all_gather", (name,), n, received, n))


def gathers() -> list[Gather]:
    """All that the scaling book profiled."""
    return [
        Gather(name, tuple(map(int, mesh.split("x"))), int(axis), int(nbytes), float(us) * 1e-6)
        for name, mesh, axis, nbytes, us in rows_of("book_gathers")
    ]


def main() -> None:
    print("weak scaling of Megatron-LM's step    GPUs  measured  predicted  error")
    for gpu in _GPUS:
        for step, seconds in predicted(gpu):
            name = f"{gpu}, hidden size {step.hidden}, {step.layers} layers"
            error = f"{seconds / step.seconds - 1:+7.0%}" if step.devices > 1 else " fitted"
            print(f"{name:<38}{step.devices:>4}{step.seconds * 1e3:>7,.0f} ms"
                  f"{seconds * 1e3:>8,.0f} ms{error}")  # fmt: skip
    print("\nall-gathers that were profiled                measured  predicted  error")
    for gather in gathers():
        name = f"{gather.nbytes:,} B on {gather.machine}, axis {gather.axis} of {gather.mesh}"
        seconds = gather.predicted
        print(f"{name:<46}{gather.seconds * 1e6:>5,.0f} us{seconds * 1e6:>8,.0f} us"
              f"{seconds / gather.seconds - 1:+7.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
