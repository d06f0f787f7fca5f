"""Propagation of spreads: how each op's results are divided over chips, given its operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from gridlayout.arguments import Shape
from gridlayout.ops.tenstorrent import elementwise
from gridlayout.ops.tenstorrent.linking import Call, Case, Linked, Loop, Step
from gridlayout.ops.tenstorrent.shapes import SAME
from gridlayout.ops.tenstorrent.spread import Cut, Spread

_LIKE_FIRST = (
    *(*SAME, *elementwise.UNARY, "clamp_scalar", "leaky_relu", "pow_scalar", "softmax", "cumsum"),
    *("layer_norm", "rms_norm", "sort", "topk", "pad", "repeat", "all_reduce"),
    *("repeat_interleave", "rotary_embedding", "reduce_precision", "bitcast_convert"),
    *("moreh_cumsum", "cumprod", "cumulative", "broadcast", "batch_norm_inference", "selu"),
    "collective_permute",
)
_MERGED = (*elementwise.BINARY, "where", "clamp_tensor", "concat", "point_to_point")
_ALONG = (
    *("sum", "mean", "max", "min", "prod", "argmax", "argmin"),
    *("reduce_bitwise_and", "reduce_bitwise_or", "reduce_bitwise_xor", "reduce_and", "reduce_or"),
)

_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "max_pool2d", "avg_pool2d")
# Ops after which chips that held the same tensor hold different ones.
_PARTING = (
    *("mesh_partition", "mesh_shard", "reduce_scatter", "point_to_point", "all_to_all"),
    "collective_permute",
)


class _Divided(NamedTuple):
    """How a value is divided over chips. varies: the other mesh axes along which chips differ."""

    cuts: Spread
    varies: frozenset[int] = frozenset()

    @property
    def axes(self) -> frozenset[int]:
        """The mesh axes along which chips hold different tensors."""
        return self.varies | {cut.axis for cuts in self.cuts for cut in cuts}


def propagated(linked: Linked, arguments: Sequence[Spread]) -> list[Spread | None]:
    """Return how each result is divided.

    None where that is unknown, or chips hold no parts of one array.
    """
    # A divided dim of extent 1 may correspond to any of several dims, the first or the last. If
    # both give the same result, these dims have been joined again.
    ways = [
        _propagated(linked, [_Divided(spread) for spread in arguments], pick) for pick in (0, -1)
    ]
    pairs = zip(*ways, strict=True)
    return [
        None if value is None or value.varies or value != other else value.cuts
        for value, other in pairs
    ]


def _propagated(
    linked: Linked, arguments: Sequence[_Divided | None], pick: int
) -> list[_Divided | None]:
    known = dict(zip((name for name, _ in linked.arguments), arguments, strict=True))
    makers: dict[str, Step] = {}
    for step in linked.steps:
        operands = [known[name] for name in step.operands]
        made: list[_Divided | None]
        if step.control is not None:
            made = _controlled(step.control, operands, pick)
        elif _is_same(operands) and step.name not in _PARTING:
            made = [_Divided(((),) * len(kind.shape)) for kind in step.outputs]
        else:
            made = [_result(step, operands, k, makers, pick) for k in range(len(step.results))]
        known |= zip(step.results, made, strict=True)
        makers |= dict.fromkeys(step.results, step)
    return [known[name] for name in linked.returned]


def _is_same(operands: Sequence[_Divided | None]) -> bool:
    """Return whether all chips hold the same tensors, and so compute the same."""
    return all(value is not None and not value.axes for value in operands)


def _controlled(
    control: Call | Case | Loop, operands: Sequence[_Divided | None], pick: int
) -> list[_Divided | None]:
    """Return how results of called functions are divided; None unless branches or rounds agree."""
    if isinstance(control, Call):
        return _propagated(control.callee, operands, pick)
    if isinstance(control, Case):
        ways = [_propagated(branch, operands[1:], pick) for branch in control.branches]
        is_one = _is_same(operands[:1])
        agrees = [is_one and len(set(found)) == 1 for found in zip(*ways, strict=True)]
        return [value if same else None for value, same in zip(ways[0], agrees, strict=True)]
    state = [operands[place] for place in control.places]
    found = _propagated(control.body, operands, pick)
    return [new if new == old else None for new, old in zip(found, state, strict=True)]


def _result(
    step: Step, operands: list[_Divided | None], number: int, makers: dict[str, Step], pick: int
) -> _Divided | None:
    if any(value is None for value in operands):
        return None
    found = [value for value in operands if value is not None]
    cuts = _result_spread(step, [value.cuts for value in found], number, makers, pick)
    if cuts is None:
        return None
    varies = frozenset[int]().union(*(value.axes for value in found)) - _Divided(cuts).axes
    if step.name in ("all_gather", "all_reduce"):
        varies -= {step.facts["axis"]}
    if step.name == "mesh_shard":
        varies -= step.facts["joined"]
    if step.name == "collective_permute":  # among chips that held the same tensor, too
        varies |= step.facts["moved"] - _Divided(cuts).axes
    return _Divided(cuts, varies)


def _result_spread(
    step: Step, spreads: list[Spread], number: int, makers: dict[str, Step], pick: int
) -> Spread | None:
    """Return how a result is divided, given the operands; None where that is unknown."""
    shape, name = step.outputs[number].shape, step.name
    shapes = [kind.shape for kind in step.inputs]
    if not spreads:
        return ((),) * len(shape)
    first = spreads[0]
    if name == "reverse" and not any(first[k] for k in step.facts["dims"]):
        return first
    if name in _INDEXED:
        return _INDEXED[name](step, spreads)
    if name in ("slice_static", "slice_dynamic"):  # a slice of a divided dim is no division
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
    if name in ("reshape", "concatenate_heads", "squeeze", "unsqueeze"):
        return _reshaped(first, shapes[0], shape, pick)
    if name in ("permute", "transpose"):
        return tuple(first[k] for k in step.facts["dims"])
    if name == "dot_general":
        return _contracted(step, spreads)
    if name in ("matmul", "linear"):
        return _product(spreads, shapes, step.facts["flips"], shape)
    if "image" in step.facts or name in _CONVOLUTIONS:
        return _convolved(step, spreads, shape)
    if name == "mesh_shard":
        return _sharded(step, first, shape)
    if name in ("all_gather", "all_to_all", "reduce_scatter", "mesh_partition"):
        return _between(step, first, shape)
    return None


def _convolved(step: Step, spreads: list[Spread], shape: Shape) -> Spread | None:
    """Return the division of a convolution's result, or None.

    Channels are divided as the kernel's, other dims as the image's.
    """
    first, before, name = spreads[0], step.inputs[0].shape, step.name
    if "image" in step.facts:  # in TTIR, images have all their dims
        at, kernel = step.facts["image"]
        channels = first[at] if kernel is None else spreads[1][kernel]
        kept = _resized((*first[:at], (), *first[at + 1 :]), before, shape)
        return None if kept is None else (*kept[:at], channels, *kept[at + 1 :])
    if name == "conv1d":
        return None if any(first[:-1]) else ((), (), (), spreads[1][0])
    if name == "conv3d":
        kept = _resized(first[:-1], before[:-1], shape[:-1])
        return None if kept is None else (*kept, spreads[1][-1])
    channels = spreads[1][0] if name == "conv2d" and spreads[1] else first[-1]
    rows = _resized(first[-2:-1], before[-2:-1], shape[-2:-1])
    return None if rows is None else ((), (), rows[0], channels)


def _resized(spread: Spread, before: Shape, after: Shape) -> Spread | None:
    """Return the division after dims were resized; None where only a part of one was divided.

    Dims may be added before the first one.
    """
    added = len(after) - len(before)
    spread, before = (*((),) * added, *spread), (*(1,) * added, *before)
    made = []
    for cuts, old, new in zip(spread, before, after, strict=True):
        if old != new and any(cut.before != 1 for cut in cuts):
            return None
        made.append(cuts if old == new else tuple(cut._replace(extent=new) for cut in cuts))
    return tuple(made)


def _merged(spreads: list[Spread], shapes: list[Shape], shape: Shape) -> Spread | None:
    """Return for each dim, aligned at the right, the cuts of the first operand that has some."""
    made: list[tuple[Cut, ...]] = [()] * len(shape)
    for spread, dims in zip(spreads, shapes, strict=True):
        after = shape[len(shape) - len(dims) :]
        if (found := _resized(spread, dims, after)) is None:
            return None
        for k, cuts in enumerate(found):
            at = len(shape) - len(dims) + k
            made[at] = made[at] or cuts
    taken: set[int] = set()
    for k, cuts in enumerate(made):  # an axis divides at most one dim
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


def _contracted(step: Step, spreads: list[Spread]) -> Spread:
    """Return the division of batch dims, then of each operand's remaining dims."""
    made = [spreads[0][k] for k in step.facts["batch"][0]]
    pairs = zip(spreads, step.facts["contract"], step.facts["batch"], strict=True)
    for spread, contract, batch in pairs:
        made += [cuts for k, cuts in enumerate(spread) if k not in (*contract, *batch)]
    return tuple(made)


def _embedded(step: Step, spreads: list[Spread]) -> Spread | None:
    """Return the division of the indices' dims, then of a row."""
    indices, table = spreads
    made = (*indices, table[-1])
    return made if len(made) == len(step.outputs[0].shape) else None


def _along_indices(step: Step, spreads: list[Spread]) -> Spread | None:
    """Return the division of a gather or scatter, if its dim is not divided; else None."""
    axis, is_gather = step.facts["dims"][0], step.name == "gather"
    if spreads[0][axis] or len({len(spread) for spread in spreads}) > 1:
        return None
    made = [next((cuts for cuts in some if cuts), ()) for some in zip(*spreads, strict=True)]
    made[axis] = spreads[1][axis] if is_gather else ()
    return tuple(made)


def _of_rows(step: Step, spreads: list[Spread]) -> Spread | None:
    """Return the division of gathered rows (batch, number of rows, row).

    Batch and row are divided as the data, the number of rows as the indices. Where chips hold parts
    of the indexed dims, each chip makes a result of its own, with zeros for rows on other chips.
    """
    data, indices = spreads
    window, batch = step.facts["window"], step.facts["batch"]
    if window is None or batch != step.inputs[0].shape[0] or indices[0] or indices[1]:
        return None
    many = tuple(cut._replace(extent=cut.extent * window) for cut in indices[2])
    made = (data[0], many, *data[2:])
    return made if len(made) == len(step.outputs[0].shape) else None


_INDEXED = {
    "embedding": _embedded,
    "gather": _along_indices,
    "scatter": _along_indices,
    "rows_gather": _of_rows,
}


def _exchanged(step: Step, first: Spread, makers: dict[str, Step]) -> Spread | None:
    """Return the division of exchanged parts that are concatenated, or None.

    The dim that the parts were cut along becomes divided. None where no part was sent.
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


def _reshaped(spread: Spread, before: Shape, after: Shape, pick: int) -> Spread | None:
    """Return the same cuts of the elements in row-major order; none for a scalar."""
    if not after:
        return ()
    made: list[list[Cut]] = [[] for _ in after]
    for k, cuts in enumerate(spread):
        for cut in cuts:
            start = prod(before[:k]) * cut.before
            found = _place(start, cut.extent, after, pick)
            if found is None:
                return None
            place, inside, extent = found
            made[place].append(Cut(cut.axis, inside, extent))
    return tuple(map(tuple, made))


def _place(start: int, extent: int, shape: Shape, pick: int) -> tuple[int, int, int] | None:
    """Return (dim, elements before it inside the dim, extent) for elements at `start`, or None."""
    # A divided dim of extent 1 stays one, if there is such a dim.
    alone = [d for d in range(len(shape)) if prod(shape[:d]) == start and shape[d] == extent == 1]
    if alone:
        return alone[pick], 1, 1
    for d in reversed(range(len(shape))):
        outside = prod(shape[:d])
        if outside <= start and start % outside == 0 and outside * shape[d] > start:
            inside = start // outside
            room = shape[d] // inside
            if shape[d] % inside == 0 and (room % extent == 0 or extent % room == 0):
                return d, inside, min(room, extent)
    return None


def _sharded(step: Step, first: Spread, shape: Shape) -> Spread | None:
    """Return the division after chips cut a tensor further, or put it together."""
    joined, own = step.facts["joined"], step.facts["cuts"]
    others = tuple(tuple(cut for cut in cuts if cut.axis not in joined) for cuts in first)
    kept = _resized(others, step.inputs[0].shape, shape)
    cut = {each.axis for cuts in own for each in cuts}
    if kept is None or cut & {each.axis for cuts in kept for each in cuts}:
        return None
    return tuple((*before, *new) for before, new in zip(kept, own, strict=True))


def _between(step: Step, first: Spread, shape: Shape) -> Spread | None:
    dim, axis = step.facts["dims"][0], step.facts["axis"]
    others = tuple(tuple(cut for cut in cuts if cut.axis != axis) for cuts in first)
    made = _resized(others, step.inputs[0].shape, shape)
    if step.name == "all_to_all" and first[step.facts["dims"][1]] == others[step.facts["dims"][1]]:
        return None  # the dim that is concatenated was not divided
    if made is None or step.name == "all_gather":
        return made
    cut = (*made[dim], Cut(axis, 1, shape[dim]))
    return (*made[:dim], cut, *made[dim + 1 :])
