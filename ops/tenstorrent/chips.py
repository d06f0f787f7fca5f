"""Programs of several chips: a value is one array of all chips' tensors, with leading mesh dims.

Ops run chip by chip, mapped over the mesh dims; ops between chips (ccl) move tensors along them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import dims_text
from gridlayout.mlir.program import Module
from gridlayout.ops.tenstorrent.operation import Function, Op
from gridlayout.ops.tenstorrent.spread import Cut

MAX_CHIPS, MAX_AXES = 1 << 10, 8


def mesh_of(module: Module) -> Shape:
    """Return the mesh of chips that a program is for: `ttcore.meshes`, or 1x1 without it."""
    found = re.findall(
        r"= *([0-9]{1,4}(?:x[0-9]{1,4})*)>", module.attributes.get("ttcore.meshes", "")
    )
    if len(found) > 1:
        raise LayoutError(f"the program is for {len(found)} meshes; only one can be run")
    mesh = tuple(map(int, found[0].split("x"))) if found else (1, 1)
    if len(mesh) > MAX_AXES or not 1 <= prod(mesh) <= MAX_CHIPS:
        raise LayoutError(
            f"a mesh of {dims_text(mesh)[:80]} chips can't be run: give 1 to {MAX_CHIPS}, along at "
            f"most {MAX_AXES} axes"
        )
    return mesh


def mapped(function: Function, mesh: Shape) -> Function:
    """Return a function of all chips' tensors that applies a function of one chip's tensors."""

    def run(*arrays: Any) -> list[Any]:
        if not arrays:
            return [jnp.broadcast_to(x, (*mesh, *x.shape)) for x in function()]
        return reduce(lambda made, _: jax.vmap(made), mesh, function)(*arrays)

    return run


# -- between chips ---------------------------------------------------------------------------------


def _axis(op: Op, mesh: Shape) -> int:
    axis = op.integer("cluster_axis")
    if not 0 <= axis < len(mesh):
        op.fail(f"cluster_axis = {axis} is no axis of the mesh {mesh}")
    op.facts["axis"] = axis
    return axis


def _dim(op: Op, key: str, mesh: Shape) -> int:
    """Return the dim that an attribute names, in an array with leading mesh dims."""
    dim = op.axis(key)
    op.facts["dims"] = (dim,)
    return dim + len(mesh)


def all_gather(op: Op, mesh: Shape) -> Function:
    """Every chip along `cluster_axis` gets the tensors of all, concatenated."""
    axis, dim = _axis(op, mesh), _dim(op, "all_gather_dim", mesh)

    def run(x: Any) -> Any:
        each = [jnp.take(x, jnp.asarray([k]), axis) for k in range(mesh[axis])]
        return _to_all(jnp.concatenate(each, dim), axis, mesh)

    return run


def _to_all(x: Any, axis: int, mesh: Shape) -> Any:
    """Return what one chip along a mesh axis has, on all chips along it."""
    return jnp.broadcast_to(x, (*x.shape[:axis], mesh[axis], *x.shape[axis + 1 :]))


_REDUCED: dict[str, Function] = {
    "sum": jnp.sum,
    "max": jnp.max,
    "min": jnp.min,
    "prod": jnp.prod,
    "mean": jnp.mean,
}


def _reduced(op: Op, axis: int) -> Function:
    how = op.word("reduce_type", "sum")
    if how not in _REDUCED:
        op.fail(f"reduce_type = {how} is not known")
    return lambda x: _REDUCED[how](x, axis, keepdims=True)


def all_reduce(op: Op, mesh: Shape) -> Function:
    """Every chip along `cluster_axis` gets the reduction of all their tensors."""
    axis = _axis(op, mesh)
    reduced = _reduced(op, axis)
    return lambda x: _to_all(reduced(x), axis, mesh)


def _parts(x: Any, axis: int, dim: int, count: int) -> list[Any]:
    """Return for each chip along a mesh axis its part of its tensor, cut along `dim`."""
    one = x.shape[axis] == 1
    return [
        jnp.take(part, jnp.asarray([0 if one else k]), axis)
        for k, part in enumerate(jnp.split(x, count, dim))
    ]


def reduce_scatter(op: Op, mesh: Shape) -> Function:
    """Each chip along `cluster_axis` gets its part of the reduction, cut along `scatter_dim`."""
    axis, dim = _axis(op, mesh), _dim(op, "scatter_dim", mesh)
    reduced = _reduced(op, axis)
    _check_even(op, dim, mesh)
    return lambda x: jnp.concatenate(_parts(reduced(x), axis, dim, mesh[axis]), axis)


def _check_even(op: Op, dim: int, mesh: Shape) -> None:
    size, count = op.inputs[0].shape[dim - len(mesh)], mesh[op.facts["axis"]]
    if size % count:
        op.fail(f"a dim of {size} can't be cut for {count} chips")


def mesh_partition(op: Op, mesh: Shape) -> Function:
    """Each chip along `cluster_axis` keeps its part of its tensor, cut along `dim`."""
    axis, dim = _axis(op, mesh), _dim(op, "dim", mesh)
    _check_even(op, dim, mesh)
    return lambda x: jnp.concatenate(_parts(x, axis, dim, mesh[axis]), axis)


def mesh_shard(op: Op, mesh: Shape) -> Function:
    """A full tensor cut for the chips along `shard_dims`, or put together from their parts.

    `shard_dims` has the dim that each mesh axis cuts, -1 for none; `shard_shape` repeats in how
    many parts each dim is cut.
    """
    divides = op.word("shard_direction") == "full_to_shard"
    kind, dims = op.word("shard_type"), op.integers("shard_dims")
    op.integers("shard_shape", None)
    rank = len(op.inputs[0].shape)
    if kind in ("replicate", "manual", "identity"):
        dims = ()
    elif kind != "devices" or len(dims) > len(mesh) or not all(-1 <= d < rank for d in dims):
        op.fail(f"shard_type = {kind} along dims {dims} of the mesh {mesh} is not known")
    places = [(axis, d) for axis, d in enumerate(dims) if d >= 0]
    cuts: list[list[Cut]] = [[] for _ in range(rank)]
    for axis, d in places if divides else ():
        cuts[d].append(Cut(axis, 1, op.outputs[0].shape[d]))
    op.facts["cuts"] = tuple(map(tuple, cuts))
    op.facts["joined"] = frozenset(() if divides else (axis for axis, _ in places))

    def run(x: Any) -> Any:
        for axis, d in places:
            at = d + len(mesh)
            if divides:
                x = jnp.concatenate(_parts(x, axis, at, mesh[axis]), axis)
            else:
                x = _to_all(_side_by_side(x, axis, at), axis, mesh)
        return x

    return run


def all_to_all(op: Op, mesh: Shape) -> Function:
    """Each chip of a group gets one part of every chip's tensor, cut along `split_dim`.

    The parts are concatenated along `concat_dim`.
    """
    concat, split = (_dim(op, key, mesh) for key in ("concat_dim", "split_dim"))
    axis = op.facts["axis"] = _axis_of_groups(op, mesh)
    _check_even(op, split, mesh)
    op.facts["dims"] = split - len(mesh), concat - len(mesh)
    if op.integer("split_count") != mesh[axis]:
        op.fail(f"split_count must be the number of chips in a group, {mesh[axis]}")

    def run(x: Any) -> Any:
        parts = jnp.split(x, mesh[axis], split)
        return jnp.concatenate([_side_by_side(part, axis, concat) for part in parts], axis)

    return run


def _side_by_side(x: Any, axis: int, dim: int) -> Any:
    """Return the tensors of all chips along a mesh axis, concatenated along `dim`."""
    shape = list(x.shape)
    shape[dim] *= shape[axis]
    shape[axis] = 1
    return jnp.reshape(jnp.moveaxis(x, axis, dim - 1), shape)


def _axis_of_groups(op: Op, mesh: Shape) -> int:
    """Return the mesh axis whose groups of chips, in row-major order, are `replica_groups`."""
    text = op.text("replica_groups")
    stated = [int(n) for n in re.findall(r"[0-9]{1,4}", text.partition(":")[0])]
    chips = np.arange(np.prod(mesh)).reshape(mesh)
    for axis, count in enumerate(mesh):
        groups = np.moveaxis(chips, axis, -1).reshape(-1, count)
        if groups.ravel().tolist() == stated and f"x{count}xi" in text:
            return axis
    op.fail(f"replica_groups = {text[:60]} are not those along one axis of the mesh {mesh}")


def point_to_point(op: Op, mesh: Shape) -> Function:
    """The receiver gets the sender's tensor; others get the second operand, or keep the first."""
    places = []
    for key in ("sender_coord", "receiver_coord"):
        place = op.integers(key)
        if len(place) != len(mesh) or any(
            not 0 <= k < n for k, n in zip(place, mesh, strict=False)
        ):
            op.fail(f"{key} = {place} is no place in the mesh {mesh}")
        places.append(place)
    sender, receiver = places
    is_receiver = np.zeros(mesh, bool)
    is_receiver[receiver] = True

    def run(x: Any, *buffer: Any) -> Any:
        sent = x[tuple(slice(k, k + 1) for k in sender)]
        others = (1,) * (x.ndim - len(mesh))
        return jnp.where(is_receiver.reshape(*mesh, *others), sent, *(buffer or (x,)))

    return run


def collective_permute(op: Op, mesh: Shape) -> Function:
    """Each target of `source_target_pairs` gets its source's tensor; other chips get zeros.

    Chips are numbered in row-major order.
    """
    text, count = op.text("source_target_pairs"), int(np.prod(mesh))
    numbers = [int(n) for n in re.findall(r"-?[0-9]{1,9}", text.partition(":")[0])]
    sources, targets = numbers[::2], numbers[1::2]
    known = all(0 <= n < count for n in numbers) and len(set(targets)) == len(targets)
    if len(sources) != len(targets) or not known or len(set(sources)) != len(sources):
        op.fail(f"source_target_pairs = {text[:60]} are no pairs of chips of the mesh {mesh}")
    op.facts["moved"] = frozenset(axis for axis, extent in enumerate(mesh) if extent > 1)
    from_chip = np.zeros(count, int)
    from_chip[targets] = sources
    gets = np.isin(np.arange(count), targets)

    def run(x: Any) -> Any:
        x = jnp.broadcast_to(x, (*mesh, *x.shape[len(mesh) :]))
        each = jnp.reshape(x, (count, *x.shape[len(mesh) :]))
        moved = jnp.take(each, jnp.asarray(from_chip), 0)
        mask = gets.reshape(count, *[1] * (each.ndim - 1))
        return jnp.reshape(jnp.where(mask, moved, 0), x.shape).astype(x.dtype)

    return run


BETWEEN: dict[str, Callable[[Op, Shape], Function]] = {
    "all_gather": all_gather,
    "all_reduce": all_reduce,
    "all_to_all": all_to_all,
    "collective_permute": collective_permute,
    "mesh_partition": mesh_partition,
    "mesh_shard": mesh_shard,
    "point_to_point": point_to_point,
    "reduce_scatter": reduce_scatter,
}
