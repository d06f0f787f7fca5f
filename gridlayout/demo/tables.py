"""The demo's output for `--full`: the layouts of all tensors, and the primitives of the step."""

from __future__ import annotations

from typing import Any

import jax

import gridlayout as gl
from gridlayout.demo import network, training
from gridlayout.demo.network import Arrays
from gridlayout.demo.training import Result


def describe(name: str, x: Any, device: Any) -> str:
    """Return a tensor's layout as text, with its shard, padding, bytes and devices."""
    layout = x.layout
    shard = "x".join(map(str, layout.shard_shape))
    return (
        f"{name}\n  {layout}\n"
        f"  shard {shard} elements, {layout.padding_share:.1%} padding, "
        f"{layout.bytes_per_core:,} bytes per core, cores on devices by "
        f"{device.core_map(layout.grid)}"
    )


def show(found: Result) -> None:
    """Print the layouts of all tensors of the training, including activations and gradients."""

    def on_cores(params: Arrays, images: Any, labels: Any) -> dict[str, Any]:
        hidden, logits = network.forward(params, images)
        return {
            "hidden": hidden,
            "logits": logits,
            "gradient": jax.grad(network.loss_fn)(params, images, labels),
        }

    shown = {
        "data": {"images": found.data[0], "labels": found.data[1]},
        "weights": found.params,
        "activations": gl.on_grid(on_cores)(found.params, *found.data),
        "optimizer": found.state,
    }
    leaves = jax.tree_util.tree_leaves_with_path(
        shown, is_leaf=lambda x: isinstance(x, gl.GridArray)
    )
    print(f"\n{found.device}, virtual grid {training.GRID} of {training.TILE} tiles\n")
    for path, x in leaves:
        if isinstance(x, gl.GridArray):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            print(describe(name, x, found.device))
    print(f"\nThe primitives of the training step\n{found.report}\n")
