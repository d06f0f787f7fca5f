"""How a tensor of one chip is a part of a whole one: by dim, the mesh axes that divide it.

The text says what each chip holds and not of what. Of an argument it follows from the sizes of the
array that is given; from there it is followed from op to op up to the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import jax.numpy as jnp

from gridlayout.arguments import Shape, as_items, as_shape
from gridlayout.errors import LayoutError
from gridlayout.ops.tenstorrent import elementwise
from gridlayout.ops.tenstorrent.linking import Call, Case, Linked, Loop, Step
from gridlayout.ops.tenstorrent.shapes import SAME
from gridlayout.tenstorrent.tensor_type import TensorType


class Cut(NamedTuple):
    """A mesh axis divides `extent` elements of a dim, of which there are `before` such runs.

    A dim of 50 that two dims of 2 and 25 were joined to, of which the second was divided, has
    before 2, extent 25.
    """

    axis: int
    before: int
    extent: int


# The cuts of each dim of a chip's tensor, the major one first.
Spread = tuple[tuple[Cut, ...], ...]

_LIKE_FIRST = (
    *(*SAME, *elementwise.UNARY, "clamp_scalar", "leaky_relu", "pow_scalar", "softmax", "cumsum"),
    *("layer_norm", "rms_norm", "sort", "topk", "pad", "repeat", "all_reduce"),
    *("repeat_interleave", "rotary_embedding", "reduce_precision", "bitcast_convert"),
    *("cumprod", "cumulative"),
)
_MERGED = (*elementwise.BINARY, "where", "clamp_tensor", "concat", "point_to_point")
_ALONG = (
    *("sum", "mean", "max", "min", "prod", "argmax", "argmin"),
    *("reduce_bitwise_and", "reduce_bitwise_or", "reduce_bitwise_xor"),
)

# What makes chips differ that held the same.
_PARTING = ("mesh_partition", "reduce_scatter", "point_to_point")


def spread_of(whole: Shape, local: Shape, mesh: Shape, what: str) -> Spread:
    """How an array of the shape `whole` is divided so that each chip has one of `local`.

    >>> spread_of((8, 6), (2, 6), (2, 4), "argument %arg0")
    ((Cut(axis=1, before=1, extent=2),), ())
    """
    if len(whole) != len(local) or any(w % max(1, n) for w, n in zip(whole, local, strict=False)):
        raise LayoutError(f"{what} has shape {whole}; each of {mesh} chips holds {local} of it")
    ratios = [w // n if n else 1 for w, n in zip(whole, local, strict=True)]
    ways = _ways(ratios, tuple(range(len(mesh))), mesh)
    if len(ways) != 1:
        word = "no way" if not ways else "more than one way"
        raise LayoutError(
            f"{what} has shape {whole}; there is {word} in which each chip of {mesh} holds {local} "
            "of it: give in_specs, for each array the mesh axes that divide each dim"
        )
    return cuts_of(ways[0], local)


def cuts_of(axes: Sequence[Sequence[int]], local: Shape) -> Spread:
    """The cuts that mesh axes make of a chip's tensor, dim by dim."""
    pairs = zip(axes, local, strict=True)
    return tuple(tuple(Cut(axis, 1, n) for axis in some) for some, n in pairs)


def _ways(ratios: Sequence[int], free: Shape, mesh: Shape) -> list[tuple[Shape, ...]]:
    if not ratios:
        return [()]
    found = []
    for count in range(len(free) + 1):
        for axes in combinations([a for a in free if mesh[a] > 1], count):
            if prod(mesh[a] for a in axes) == ratios[0]:
                rest = tuple(a for a in free if a not in axes)
                found += [(axes, *way) for way in _ways(ratios[1:], rest, mesh)]
    return found


def joined(x: Any, spread: Spread, mesh: Shape) -> Any:
    """The whole array of all chips' tensors; of those that are copies, the first is taken."""
    cut = [entry.axis for entries in spread for entry in entries]
    rank = len(mesh)
    x = x[tuple(slice(None) if a in cut else slice(0, 1) for a in range(rank))]
    order = [a for a in range(rank) if a not in cut]
    sizes, shape = list(x.shape[:rank]), []
    for n, entries in zip(x.shape[rank:], spread, strict=True):
        places = sorted({1, *(entry.before for entry in entries)})
        for place, after in zip(places, [*places[1:], n], strict=True):
            order += [entry.axis for entry in entries if entry.before == place]
            order.append(len(sizes))
            sizes.append(after // place)
        shape.append(n * prod(mesh[entry.axis] for entry in entries))
    return jnp.reshape(jnp.transpose(jnp.reshape(x, sizes), order), shape)


def divided(x: Any, spread: Spread, local: Shape, mesh: Shape, what: str) -> Any:
    """The whole array as all chips' tensors: shape (mesh, local)."""
    ratios = [prod(mesh[cut.axis] for cut in cuts) for cuts in spread]
    if x.shape != tuple(n * ratio for n, ratio in zip(local, ratios, strict=True)):
        raise LayoutError(f"{what} has shape {x.shape}; each chip holds {local}, divided {ratios}")
    sizes: list[int] = []
    places: dict[int, int] = {}
    rest = []
    for n, cuts in zip(x.shape, spread, strict=True):
        for entry in cuts:
            places[entry.axis] = len(sizes)
            sizes.append(mesh[entry.axis])
        rest.append(len(sizes))
        sizes.append(n // prod(mesh[entry.axis] for entry in cuts))
    missing = [axis for axis in range(len(mesh)) if axis not in places]
    made = jnp.reshape(x, (*(1 for _ in missing), *sizes))
    at = {axis: k for k, axis in enumerate(missing)}
    at |= {axis: place + len(missing) for axis, place in places.items()}
    order = [at[axis] for axis in range(len(mesh))] + [k + len(missing) for k in rest]
    made = jnp.transpose(made, order)
    return jnp.broadcast_to(made, (*mesh, *made.shape[len(mesh) :]))


def read_specs(
    specs: Any, kinds: Sequence[TensorType], mesh: Shape, what: str
) -> tuple[Spread, ...] | None:
    """What users say of arguments or results: for each, and each dim, the mesh axes."""
    if specs is None:
        return None
    arrays = as_items(specs, what, "one for each array")
    of_dim = f"the mesh axes of a dim in {what}"
    found = [[as_shape(axes, of_dim) for axes in as_items(one, what, "dims")] for one in arrays]
    if len(found) != len(kinds):
        raise LayoutError(f"{what} speaks of {len(found)} arrays; there are {len(kinds)}")
    for one, kind in zip(found, kinds, strict=True):
        used = [axis for axes in one for axis in axes]
        is_once = len(set(used)) == len(used) and all(axis < len(mesh) for axis in used)
        if len(one) != len(kind.shape) or not is_once:
            raise LayoutError(
                f"{what} {one} of an array {kind.shape}: for each dim the axes of the mesh {mesh} "
                "that divide it, each axis once"
            )
    return tuple(cuts_of(one, kind.shape) for one, kind in zip(found, kinds, strict=True))


# -- followed from op to op ------------------------------------------------------------------------


class _Held(NamedTuple):
    """How a value is spread, and over which mesh axes it differs without being divided."""

    cuts: Spread
    varies: frozenset[int] = frozenset()

    @property
    def axes(self) -> frozenset[int]:
        """The mesh axes along which chips hold different values."""
        return self.varies | {cut.axis for cuts in self.cuts for cut in cuts}


def followed(linked: Linked, arguments: Sequence[Spread]) -> list[Spread | None]:
    """How each result is spread; None where that does not follow, or is no division of a whole."""
    found = _followed(linked, [_Held(spread) for spread in arguments])
    return [None if held is None or held.varies else held.cuts for held in found]


def _followed(linked: Linked, arguments: Sequence[_Held | None]) -> list[_Held | None]:
    known = dict(zip((name for name, _ in linked.arguments), arguments, strict=True))
    makers: dict[str, Step] = {}
    for step in linked.steps:
        operands = [known[name] for name in step.operands]
        made: list[_Held | None]
        if step.control is not None:
            made = _controlled(step.control, operands)
        elif _is_same(operands) and step.name not in _PARTING:
            made = [_Held(((),) * len(kind.shape)) for kind in step.outputs]
        else:
            made = [_held(step, operands, k, makers) for k in range(len(step.results))]
        known |= zip(step.results, made, strict=True)
        makers |= dict.fromkeys(step.results, step)
    return [known[name] for name in linked.returned]


def _is_same(operands: Sequence[_Held | None]) -> bool:
    """Whether all chips hold the same values, and so compute the same."""
    return all(held is not None and not held.axes for held in operands)


def _controlled(
    control: Call | Case | Loop, operands: Sequence[_Held | None]
) -> list[_Held | None]:
    """How the results of functions are spread: all branches' alike, and a loop's as its state."""
    if isinstance(control, Call):
        return _followed(control.callee, operands)
    if isinstance(control, Case):
        ways = [_followed(branch, operands[1:]) for branch in control.branches]
        is_one = _is_same(operands[:1])
        alike = [is_one and len(set(found)) == 1 for found in zip(*ways, strict=True)]
        return [held if same else None for held, same in zip(ways[0], alike, strict=True)]
    state = [operands[place] for place in control.places]
    found = _followed(control.body, operands)
    return [new if new == old else None for new, old in zip(found, state, strict=True)]


def _held(
    step: Step, operands: list[_Held | None], number: int, makers: dict[str, Step]
) -> _Held | None:
    if any(held is None for held in operands):
        return None
    found = [held for held in operands if held is not None]
    cuts = _after(step, [held.cuts for held in found], number, makers)
    if cuts is None:
        return None
    varies = frozenset[int]().union(*(held.axes for held in found)) - _Held(cuts).axes
    if step.name in ("all_gather", "all_reduce"):
        varies -= {step.facts["axis"]}
    return _Held(cuts, varies)


def _after(
    step: Step, spreads: list[Spread], number: int, makers: dict[str, Step]
) -> Spread | None:
    """How a result is spread, of operands that are; None where that is not known."""
    shape, name = step.outputs[number].shape, step.name
    shapes = [kind.shape for kind in step.inputs]
    if not spreads:
        return ((),) * len(shape)
    first = spreads[0]
    if name == "slice_static":  # of a dim that is divided, what is left divides no whole one
        pairs = zip(first, shapes[0], shape, strict=True)
        return tuple(cuts if old == new else () for cuts, old, new in pairs)
    if name == "concat" and (found := _exchanged(step, first, makers)) is not None:
        return found
    if name in _LIKE_FIRST:
        return _resized(first, shapes[0], shape)
    if name in _MERGED:
        return _merged(spreads, shapes, shape)
    if name in _ALONG:
        dims, keep = step.facts["dims"], len(shape) == len(first)
        kept = [() if k in dims else cuts for k, cuts in enumerate(first)]
        return tuple(cuts for k, cuts in enumerate(kept) if keep or k not in dims)
    if name in ("reshape", "concatenate_heads"):
        return _reshaped(first, shapes[0], shape)
    if name in ("permute", "transpose"):
        return tuple(first[k] for k in step.facts["dims"])
    if name in ("matmul", "linear"):
        return _product(spreads, shapes, step.facts["flips"], shape)
    if name in ("conv2d", "max_pool2d", "avg_pool2d"):
        # Whole images, or nothing is known; channels as the kernel's.
        channels = spreads[1][0] if name == "conv2d" and spreads[1] else first[-1]
        rows = _resized(first[-2:-1], shapes[0][-2:-1], shape[-2:-1])
        return None if rows is None else ((), (), rows[0], channels)
    if name == "conv1d":
        return None if any(first[:-1]) else ((), (), (), spreads[1][0])
    if name == "conv3d":
        kept = _resized(first[:-1], shapes[0][:-1], shape[:-1])
        return None if kept is None else (*kept, spreads[1][-1])
    if name in ("all_gather", "reduce_scatter", "mesh_partition"):
        return _between(step, first, shape)
    return None


def _resized(spread: Spread, before: Shape, after: Shape) -> Spread | None:
    """Where a dim has another size: only the whole of it is still known to be divided."""
    made = []
    for cuts, old, new in zip(spread, before, after, strict=True):
        if old != new and any(cut.before != 1 for cut in cuts):
            return None
        made.append(cuts if old == new else tuple(cut._replace(extent=new) for cut in cuts))
    return tuple(made)


def _merged(spreads: list[Spread], shapes: list[Shape], shape: Shape) -> Spread | None:
    """Dim by dim, from the right, the cuts of the first operand that has some."""
    made: list[tuple[Cut, ...]] = [()] * len(shape)
    for spread, dims in zip(spreads, shapes, strict=True):
        after = shape[len(shape) - len(dims) :]
        if (found := _resized(spread, dims, after)) is None:
            return None
        for k, cuts in enumerate(found):
            at = len(shape) - len(dims) + k
            made[at] = made[at] or cuts
    taken: set[int] = set()
    for k, cuts in enumerate(made):  # an axis divides one dim at most
        made[k] = tuple(cut for cut in cuts if cut.axis not in taken)
        taken |= {cut.axis for cut in cuts}
    return tuple(made)


def _product(
    spreads: list[Spread], shapes: list[Shape], flips: tuple[bool, bool], shape: Shape
) -> Spread | None:
    (x, y), (rows, columns) = spreads[:2], (-1 if flips[0] else -2, -2 if flips[1] else -1)
    if min(len(x), len(y)) < 2:
        return None
    batch = _merged([x[:-2], y[:-2]], [dims[:-2] for dims in shapes[:2]], shape[:-2])
    return None if batch is None else (*batch, x[rows], y[columns])


def _exchanged(step: Step, first: Spread, makers: dict[str, Step]) -> Spread | None:
    """Parts that chips sent each other, put together: the dim they were cut along is divided now.

    None where none of what is concatenated was sent.
    """
    dim, sliced, is_sent = step.facts["dims"][0], None, False
    for name in step.operands:
        maker = makers.get(name)
        while maker is not None and maker.name != "slice_static":
            if maker.name != "point_to_point" and maker.name not in SAME:
                return None
            is_sent = is_sent or maker.name == "point_to_point"
            maker = makers.get(maker.operands[0])
        if maker is not None:
            pairs = zip(maker.inputs[0].shape, maker.outputs[0].shape, strict=True)
            sliced = next((k for k, (old, new) in enumerate(pairs) if old != new), None)
    if not is_sent or sliced is None or sliced == dim:
        return None
    extent = step.outputs[0].shape[sliced]
    made = list(first)
    made[sliced] = (*made[sliced], *(cut._replace(before=1, extent=extent) for cut in made[dim]))
    made[dim] = ()
    return tuple(made)


def _reshaped(spread: Spread, before: Shape, after: Shape) -> Spread | None:
    """The same cuts among the elements in row-major order."""
    made: list[list[Cut]] = [[] for _ in after]
    for k, cuts in enumerate(spread):
        for cut in cuts:
            start = prod(before[:k]) * cut.before
            found = _place(start, cut.extent, after)
            if found is None:
                return None
            place, inside, extent = found
            made[place].append(Cut(cut.axis, inside, extent))
    return tuple(map(tuple, made))


def _place(start: int, extent: int, shape: Shape) -> tuple[int, int, int] | None:
    """The dim, what is before in it, and the extent there of elements with `start` before them."""
    # A dim of one element that was divided goes on as one, where there is one.
    alone = [d for d in range(len(shape)) if prod(shape[:d]) == start and shape[d] == extent == 1]
    if alone:
        return alone[0], 1, 1
    for d in reversed(range(len(shape))):
        outside = prod(shape[:d])
        if outside <= start and start % outside == 0 and outside * shape[d] > start:
            inside = start // outside
            room = shape[d] // inside
            if shape[d] % inside == 0 and (room % extent == 0 or extent % room == 0):
                return d, inside, min(room, extent)
    return None


def _between(step: Step, first: Spread, shape: Shape) -> Spread | None:
    dim, axis = step.facts["dims"][0], step.facts["axis"]
    others = tuple(tuple(cut for cut in cuts if cut.axis != axis) for cuts in first)
    made = _resized(others, step.inputs[0].shape, shape)
    if made is None or step.name == "all_gather":
        return made
    cut = (*made[dim], Cut(axis, 1, shape[dim]))
    return (*made[:dim], cut, *made[dim + 1 :])
