"""Factors: the dims of an equation's operands and results that are divided together.

As in Shardy's sharding rules, every dim of an operand or result is one factor of the equation, or
must not be divided. A factor is *parallel* if a result has it. Otherwise it is *summed*: devices
that divide it have partial results. `estimate.py` and `ways.py` price the ways to divide the
factors of an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, cast

from gridlayout.ops.decisions.blocks import dim_groups
from gridlayout.ops.primitives.elementwise import ELEMENTWISE

Shape = tuple[int, ...]
Dims = tuple[int | None, ...]  # the factor of each dim; None where it must not be divided


@dataclass(frozen=True)
class Factors:
    """The factors of an equation, by number.

    ins, outs: the factor of each dim of each operand and result. sizes: their extents. summed: the
    factors that no result has. exact: the factors that can be divided only evenly.
    """

    ins: tuple[Dims, ...]
    outs: tuple[Dims, ...]
    sizes: Shape
    summed: frozenset[int] = frozenset()
    exact: frozenset[int] = frozenset()

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The factors that an operand or a result has."""
        dims = {f for each in (*self.ins, *self.outs) for f in each}
        return tuple(f for f in range(len(self.sizes)) if f in dims)

    def fits(self, factor: int, parts: int, idle: bool = False) -> bool:
        """Return whether a factor can be divided into `parts`.

        Its extent must be at least `parts`; if the factor is exact, a multiple of it. idle: whether
        more than half of `parts` is enough for a factor that is not exact.
        """
        size = self.sizes[factor]
        if factor not in self.used:
            return False
        return size % parts == 0 if factor in self.exact else fits(size, parts, idle)


def fits(size: int, parts: int, idle: bool) -> bool:
    """Return whether an extent is at least `parts`; idle: more than half of that is enough.

    >>> fits(7, 10, False), fits(7, 10, True), fits(5, 10, True)
    (False, True, False)
    """
    return 2 * size > parts if idle else size >= parts


def factors_of(eqn: Any) -> Factors | None:
    """Return the factors of an equation; None for primitives without a rule for factors."""
    name = eqn.primitive.name
    ins = [tuple(atom.aval.shape) for atom in eqn.invars]
    outs = [tuple(var.aval.shape) for var in eqn.outvars]
    if any(0 in shape for shape in (*ins, *outs)):
        return None
    if name in ELEMENTWISE:
        return _elementwise(ins, outs) if len(outs) == 1 else None
    rule = _RULES.get(name)
    return None if rule is None else rule(eqn.params, ins, outs)


def _elementwise(ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    (out,) = outs

    def dims(shape: Shape) -> Dims:
        if len(shape) != len(out):
            return (None,) * len(shape)
        return tuple(d if n == out[d] and n > 1 else None for d, n in enumerate(shape))

    return Factors(tuple(map(dims, ins)), (dims(out),), out)


def _dot(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    left: list[int | None] = [None] * len(ins[0])
    right: list[int | None] = [None] * len(ins[1])
    sizes: list[int] = []

    def new(shape: Shape, d: int) -> int:
        sizes.append(shape[d])
        return len(sizes) - 1

    for a, b in zip((*lb, *lc), (*rb, *rc), strict=True):
        left[a] = right[b] = new(ins[0], a)
    summed = {left[a] for a in lc}
    free = []
    for own, shape, taken in ((left, ins[0], (*lb, *lc)), (right, ins[1], (*rb, *rc))):
        for d in range(len(shape)):
            if d not in taken:
                own[d] = new(shape, d)
                free.append(own[d])
    out = (*(left[a] for a in lb), *free)
    return Factors(
        (tuple(left), tuple(right)),
        (out,),
        tuple(sizes),
        frozenset(f for f in summed if f is not None),
    )


def _reduction(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    axes, (shape,) = set(params["axes"]), ins
    own: Dims = tuple(d if n > 1 else None for d, n in enumerate(shape))
    out = tuple(own[d] for d in range(len(shape)) if d not in axes)
    return Factors((own,), (out,), shape, frozenset(d for d in axes if shape[d] > 1))


def _arg(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    return _undivided_along(set(params["axes"]), ins, outs, keep_dims=False)


def _undivided_along(
    axes: set[int], ins: Sequence[Shape], outs: Sequence[Shape], keep_dims: bool = True
) -> Factors:
    """Return factors where dims `axes` are not divided and the other dims stay as they are."""
    shape = ins[0]
    own: Dims = tuple(None if d in axes or n == 1 else d for d, n in enumerate(shape))
    out = own if keep_dims else tuple(own[d] for d in range(len(shape)) if d not in axes)
    fits = [own if len(x) == len(shape) else (None,) * len(x) for x in ins]
    return Factors(tuple(fits), tuple(out for _ in outs), shape)


def _transpose(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    (shape,), order = ins, params["permutation"]
    own: Dims = tuple(d if n > 1 else None for d, n in enumerate(shape))
    return Factors((own,), (tuple(own[d] for d in order),), shape)


def _broadcast(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    out, at = outs[0], params["broadcast_dimensions"]
    own: Dims = tuple(d if n > 1 else None for d, n in enumerate(out))
    first = tuple(own[at[i]] if n == out[at[i]] else None for i, n in enumerate(ins[0]))
    return Factors((first, *((),) * (len(ins) - 1)), (own,), out)


def _reshape(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors | None:
    if params.get("dimensions") is not None:
        return None
    before, after = ins[0], outs[0]
    left: list[int | None] = [None] * len(before)
    right: list[int | None] = [None] * len(after)
    sizes: list[int] = []
    exact = set()
    for some, others in dim_groups(before, after):
        wide = [d for d in some if before[d] > 1], [d for d in others if after[d] > 1]
        if not wide[0]:
            continue
        a, b = wide[0][0], wide[1][0]
        left[a] = right[b] = len(sizes)
        if len(wide[0]) > 1 or len(wide[1]) > 1:
            exact.add(len(sizes))
        sizes.append(gcd(before[a], after[b]))
    return Factors((tuple(left),), (tuple(right),), tuple(sizes), exact=frozenset(exact))


def _squeeze(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    (shape,) = ins
    gone = {d % len(shape) for d in params["dimensions"]}
    own: Dims = tuple(d if n > 1 else None for d, n in enumerate(shape))
    return Factors((own,), (tuple(own[d] for d in range(len(shape)) if d not in gone),), shape)


def _changed(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors | None:
    """Return factors where dims whose extent changes are not divided."""
    shape, out = ins[0], outs[0]
    if len(shape) != len(out):
        return None
    axes = {d for d, n in enumerate(shape) if out[d] != n}
    return _undivided_along(axes, ins, outs)


def _updated(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return factors of an update in place; the update is not divided where it is smaller."""
    shape, new = ins[0], ins[1]
    own: Dims = tuple(d if n > 1 else None for d, n in enumerate(shape))
    update = tuple(own[d] if n == shape[d] else None for d, n in enumerate(new))
    return Factors((own, update, *((),) * (len(ins) - 2)), (own,), shape)


def _gathered(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return factors of a gather: indices' dims, and the array's dims that slices span."""
    numbers, sizes, shape = params["dimension_numbers"], params["slice_sizes"], ins[0]
    batch = numbers.operand_batching_dims
    gone = (*numbers.collapsed_slice_dims, *batch)
    windows = [d for d in range(len(shape)) if d not in gone]
    own: list[int | None] = [None] * len(shape)
    at: list[int | None] = [None] * len(ins[1])
    out: list[int | None] = [None] * len(outs[0])
    for to, d in zip(numbers.offset_dims, windows, strict=True):
        if sizes[d] == shape[d] > 1:
            own[d] = out[to] = to
    places = [d for d in range(len(outs[0])) if d not in numbers.offset_dims]
    for d, to in enumerate(places):
        at[d] = out[to] = to if outs[0][to] > 1 else None
    for d, i in zip(batch, numbers.start_indices_batching_dims, strict=True):
        own[d] = at[i]
    return Factors((tuple(own), tuple(at)), (tuple(out),), outs[0])


def _added(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return factors of a scatter-add: those of the gather that it transposes.

    Devices that divide the indices' dims have partial sums.
    """
    numbers, (shape, starts, new) = params["dimension_numbers"], ins
    batch = numbers.operand_batching_dims
    gone = (*numbers.inserted_window_dims, *batch)
    windows = [d for d in range(len(shape)) if d not in gone]
    own: list[int | None] = [None] * len(shape)
    at: list[int | None] = [None] * len(starts)
    update: list[int | None] = [None] * len(new)
    for to, d in zip(numbers.update_window_dims, windows, strict=True):
        if new[to] == shape[d] > 1:
            own[d] = update[to] = to
    places = [d for d in range(len(new)) if d not in numbers.update_window_dims]
    for d, to in enumerate(places):
        at[d] = update[to] = to if new[to] > 1 else None
    for d, i in zip(batch, numbers.scatter_indices_batching_dims, strict=True):
        own[d] = at[i]
    summed = frozenset(f for f in at if f is not None and f not in own)
    return Factors((tuple(own), tuple(at), tuple(update)), (tuple(own),), new, summed)


def _concatenate(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    return _undivided_along({params["dimension"]}, ins, outs)


def _along(name: str) -> Callable[..., Factors]:
    def rule(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
        return _undivided_along({params[name] % len(ins[0])}, ins, outs)

    return rule


def _unstacked(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return factors of an array that is unstacked along a dim, which is not divided."""
    return _undivided_along({params["axis"] % len(ins[0])}, ins, outs, keep_dims=False)


def _convolution(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors | None:
    """Return factors of batch and features; dims that windows move along are not divided."""
    numbers = params["dimension_numbers"]
    left, right, made = (cast(list[int | None], [None] * len(ins[0])) for _ in range(3))
    sizes: list[int] = []
    alone = params["feature_group_count"] == params["batch_group_count"] == 1

    def new(size: int, *places: tuple[list[int | None], int]) -> None:
        if size > 1:
            for dims, at in places:
                dims[at] = len(sizes)
            sizes.append(size)

    (batch, feature), (out, inner) = numbers.lhs_spec[:2], numbers.rhs_spec[:2]
    if params["batch_group_count"] == 1:
        new(ins[0][batch], (left, batch), (made, numbers.out_spec[0]))
    if alone:
        new(ins[1][out], (right, out), (made, numbers.out_spec[1]))
        new(ins[0][feature], (left, feature), (right, inner))
    summed = frozenset({left[feature]} - {None}) if alone else frozenset[int]()
    return Factors((tuple(left), tuple(right)), (tuple(made),), tuple(sizes), summed)


def _pooled(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors | None:
    """Return factors where dims that windows move along are not divided."""
    names = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
    given = [params[name] for name in names if name in params]
    shape = outs[0]
    own: Dims = tuple(
        d if n > 1 and all(sizes[d] == 1 for sizes in given) else None for d, n in enumerate(shape)
    )
    ranked = [own if len(x) == len(shape) else (None,) * len(x) for x in ins]
    return Factors(tuple(ranked), tuple(own for _ in outs), shape)


_RULES: dict[str, Callable[..., Factors | None]] = {
    "dot_general": _dot,
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), _reduction),
    **dict.fromkeys(("reduce_and", "reduce_or"), _reduction),
    **dict.fromkeys(("argmax", "argmin"), _arg),
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _squeeze,
    **dict.fromkeys(("slice", "pad", "dynamic_slice"), _changed),
    "concatenate": _concatenate,
    "dynamic_update_slice": _updated,
    "gather": _gathered,
    "scatter-add": _added,
    "split": _along("axis"),
    "unstack": _unstacked,
    **{f"cum{name}": _along("axis") for name in ("sum", "prod", "max", "min", "logsumexp")},
    "sort": _along("dimension"),
    "conv_general_dilated": _convolution,
    **dict.fromkeys((f"reduce_window_{name}" for name in ("sum", "max", "min")), _pooled),
    **dict.fromkeys(("select_and_scatter_add", "select_and_gather_add"), _pooled),
}
