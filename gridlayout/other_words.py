"""What this library calls that which users of JAX and NumPy know by other words, for errors."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import numpy as np

# Names that users try in `gl.`, and what they are looking for.
_OF_JAX = "gl.put takes jax.sharding's NamedSharding and PartitionSpec"
_NAMES = {
    "NamedSharding": _OF_JAX,
    "P": _OF_JAX,
    "PartitionSpec": _OF_JAX,
    "Sharding": _OF_JAX,
    "tree": "gl.put, gl.relayout and gl.on_grid take pytrees, and jax.tree.map maps over arrays",
    "Mesh": "a jax.sharding.Mesh is taken wherever a gl.DeviceGrid is",
    "array": "gl.put(array, layout, device) lays out an array",
    "asarray": "gl.put(array, layout, device) lays out an array",
    "device_get": "np.asarray(x) is the array on the host",
    "device_put": "gl.put(x, sharding) takes what jax.device_put does",
    "distribute_tensor": "gl.put(x, sharding) places an array on devices",
    "from_numpy": "gl.put(array, layout, device) lays out an array",
    "grad": "gl.on_grid(jax.grad(fn)) and jax.grad(gl.on_grid(fn)) take the gradient on the grid",
    "jit": "gl.on_grid(fn) runs a function on the grid, and compiles it",
    "jnp": "gl.numpy is jax.numpy on the grid",
    "lax": "gl.on_grid(fn) runs functions of jax.lax on the grid",
    "load": "gl.restore(path) reads what gl.save wrote",
    "make_mesh": "gl.DeviceGrid((2, 4)) is a mesh of devices, and jax.make_mesh makes one",
    "pjit": "gl.on_grid(fn) runs a function on the grid, and compiles it",
    "put_tree": "gl.put(tree, device, layouts) lays out a tree",
    "plot": "layout.draw() and x.draw() make pictures",
    "random": "gl.on_grid(fn) runs functions that draw from jax.random on the grid",
    "report": "gl.on_grid(fn).report(*arrays) lists what devices do and send",
    "reshard": "gl.relayout(x, layout) takes shardings, too",
    "shard": "gl.put(x, sharding) takes what jax.device_put does",
    "shard_map": "gl.map_shards(fn, ...) runs a function on each core's buffer",
    "show": "layout.draw() and x.draw() make pictures",
    "vmap": "gl.on_grid(jax.vmap(fn)) and jax.vmap(gl.on_grid(fn)) map over a dim",
    "with_sharding_constraint": "gl.with_layout(x, PartitionSpec(...)) takes specs",
}
# The same for attributes of a `GridArray`.
ARRAY = {
    "full_tensor": "x.to_logical() is the whole array",
    "gather": "x.to_logical() is the whole array",
    "numpy": "np.asarray(x) is the array on the host",
    "plot": "x.draw() is a picture",
    "relayout": "gl.relayout(x, layout) moves it",
    "reshard": "gl.relayout(x, layout) moves it, and takes shardings, too",
    "redistribute": "gl.relayout(x, layout) moves it, and takes shardings, too",
    "show": "x.draw() is a picture",
    "to_local": "x.local(box) is a box of what this process holds",
    "to_numpy": "np.asarray(x) is the array on the host",
    "with_layout": "gl.with_layout(x, layout) requests a layout in a function",
}
# And of a `Layout`.
LAYOUT = {
    "cores": "layout.num_cores counts them, and layout.core_shape is their grid",
    "grid_shape": "layout.core_shape is the grid of cores",
    "itemsize": "layout.stored_bits counts the bits of an element",
    "pack": "gl.pack(x, layout) is the array in this layout",
    "plot": "layout.draw() is a picture",
    "put": "gl.put(x, layout, device) places an array on devices",
    "rank": "layout.ndim counts the dims",
    "sharding": "layout.named_sharding(device) is the nearest sharding of JAX",
    "shards": "layout.num_cores counts them, and layout.local_shape is the shape of one",
    "show": "layout.draw() is a picture",
    "to_mlir": "str(layout) is the layout as text",
    "unpack": "gl.unpack(x, layout) is the logical array",
}
# Keywords of functions of JAX, and what to do instead of them.
KEYWORDS = {
    "donate_argnums": "jax.jit(gl.on_grid(fn), donate_argnums=...) donates arguments",
    "in_shardings": "gl.put(x, sharding) states the layouts of arguments",
    "in_specs": "gl.put(x, sharding) states the layouts of arguments",
    "mesh": "give the mesh as device=",
    "out_shardings": "gl.with_layout(result, PartitionSpec(...)) in the function states its layout",
    "out_specs": "gl.with_layout(result, PartitionSpec(...)) in the function states its layout",
    "sharding": "give the sharding as the second argument",
    "spec": "give the spec as the second argument",
}
_DEVICES = (
    "the devices are those of machine=, of gl.on_grid(fn, device), of the arrays, or of the mesh "
    "that jax.set_mesh(mesh) has set"
)
PLANNING = {
    **{"chip": "machine= is a chip with its mesh", "device": _DEVICES},
    **{"devices": _DEVICES, "mesh": _DEVICES},
}
_OF_SHARDING = "gl.GridLayout.of(shape, sharding) is the layout of a sharding of JAX"
LAYING_OUT = {
    "cores": "grid= is the grid of cores",
    "mesh": _OF_SHARDING,
    "order": "linear= is a map that may order dims",
    "padding": "oob= is the value of the padding",
    "sharding": _OF_SHARDING,
    "spec": _OF_SHARDING,
}
DEVICES = {
    "axis_names": "jax.make_mesh(shape, names) names the axes, and its mesh is taken",
    "devices": "jax.sharding.Mesh(devices, names) is a mesh of some devices, and is taken",
    "shape": "the number of devices along each axis comes first, without a name",
}


def name_words(name: str, own: list[str]) -> str:
    """Return what an error says of an unknown name of the library; empty if nothing is near.

    >>> name_words("array", []), name_words("GridLayuot", ["GridLayout", "put"])
    (': gl.put(array, layout, device) lays out an array', ': did you mean gl.GridLayout?')
    >>> name_words("linalg", ["scaling"])
    ': gl.numpy has what jax.numpy has, on the grid: gl.numpy.linalg'
    """
    if name not in _NAMES and hasattr(np, name):  # JAX need not start for an error
        return f": gl.numpy has what jax.numpy has, on the grid: gl.numpy.{name}"
    return _words(name, _NAMES, own, "gl.")


def layout_words(name: str, own: list[str]) -> str:
    """The same for an unknown attribute of a `Layout`.

    >>> layout_words("show", []), layout_words("nbyte", ["nbytes"])
    (': layout.draw() is a picture', ': did you mean layout.nbytes?')
    """
    return _words(name, LAYOUT, own, "layout.")


def _words(name: str, words: Mapping[str, str], own: list[str], of: str) -> str:
    if name in words:
        return f": {words[name]}"
    near = get_close_matches(name, own, 1)
    return f": did you mean {of}{near[0]}?" if near else ""
