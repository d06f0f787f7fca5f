"""What this library calls that which users of JAX and NumPy know by other words, for errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from gridlayout.errors import LayoutError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Names that users try in `gl.`, and what they are looking for.
_NAMES = {
    "Mesh": "a jax.sharding.Mesh is taken wherever a gl.DeviceGrid is",
    "array": "gl.put(array, layout, device) lays out an array",
    "asarray": "gl.put(array, layout, device) lays out an array",
    "device_get": "np.asarray(x) is the array on the host",
    "device_put": "gl.put(x, sharding) takes what jax.device_put does",
    "from_numpy": "gl.put(array, layout, device) lays out an array",
    "jit": "gl.on_grid(fn) runs a function on the grid, and compiles it",
    "jnp": "gl.numpy is jax.numpy on the grid",
    "lax": "gl.on_grid(fn) runs functions of jax.lax on the grid",
    "load": "gl.restore(path) reads what gl.save wrote",
    "pjit": "gl.on_grid(fn) runs a function on the grid, and compiles it",
    "put_tree": "gl.put(tree, device, layouts) lays out a tree",
    "random": "gl.on_grid(fn) runs functions that draw from jax.random on the grid",
    "reshard": "gl.relayout(x, layout) takes shardings, too",
    "shard": "gl.put(x, sharding) takes what jax.device_put does",
    "shard_map": "gl.map_shards(fn, ...) runs a function on each core's buffer",
    "with_sharding_constraint": "gl.with_layout(x, PartitionSpec(...)) takes specs",
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
    "static_argnames": "arguments that are no arrays are static",
    "static_argnums": "arguments that are no arrays are static",
}
_DEVICES = (
    "the devices are those of machine=, of gl.on_grid(fn, device), of the arrays, or of the mesh "
    "that jax.set_mesh(mesh) has set"
)
PLANNING = {"device": _DEVICES, "devices": _DEVICES, "mesh": _DEVICES}


def name_words(name: str, own: list[str]) -> str:
    """Return what an error says of an unknown name of the library; empty if nothing is near.

    >>> name_words("array", []), name_words("GridLayuot", ["GridLayout", "put"])
    (': gl.put(array, layout, device) lays out an array', ': did you mean gl.GridLayout?')
    """
    if name in _NAMES:
        return f": {_NAMES[name]}"
    near = get_close_matches(name, own, 1)
    return f": did you mean gl.{near[0]}?" if near else ""


def knows_keywords(
    words: Mapping[str, str],
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Decorate a function: for these keywords it raises a `LayoutError` that says what to do.

    >>> knows_keywords({"mesh": "give the mesh as device="})(lambda x, device=None: x)(3, mesh=4)
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: gl.<lambda> has no keyword mesh: give the mesh as device=
    """

    def decorate(fn: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @wraps(fn)
        def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            for name in kwargs:
                if name in words:
                    said = words[name]
                    raise LayoutError(f"gl.{fn.__name__} has no keyword {name}: {said}")
            return fn(*args, **kwargs)

        return call

    return decorate
