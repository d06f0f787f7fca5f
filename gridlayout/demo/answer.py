"""The results of the demo, in lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from textwrap import wrap
from typing import Any

import jax

import gridlayout as gl
from gridlayout.demo.training import Result
from gridlayout.layouts.memory import size

ACCURACY, LOSS_TOLERANCE = 0.95, 1e-3
_LARGEST = 5


def lines(found: Result) -> Iterator[str]:
    """Yield the lines of all results."""
    yield from _padding(found)
    yield from _moves(found.report)
    yield ""
    apart = abs(found.grid.loss - found.plain.loss)
    yield f"test accuracy {found.accuracy:.1%} on {found.images} images"
    yield (
        f"final loss {found.grid.loss:.6f} on the grid, {found.plain.loss:.6f} in "
        f"plain JAX: {apart:.1e} apart"
    )
    yield from _speed(found)
    yield ""
    yield "next: python -m gridlayout demo --full    every layout, the step op by op"
    yield "      docs/tutorial.md                    from a first layout to a training step"
    yield "      python -m gridlayout explain DUMP   what a compiler's layouts waste"


def failure(found: Result) -> str:
    """Return the requirements if they are not met, else an empty text."""
    apart = abs(found.grid.loss - found.plain.loss)
    if found.accuracy >= ACCURACY and apart <= LOSS_TOLERANCE:
        return ""
    return f"FAILED: required are accuracy >= {ACCURACY:.0%} and losses within {LOSS_TOLERANCE}"


def arrays(found: Result) -> dict[str, Any]:
    """Return the arrays that training always holds, by name."""
    held = {
        "images": found.data[0],
        "labels": found.data[1],
        "weights": found.params,
        "optimizer": found.state,
    }
    leaves = jax.tree_util.tree_leaves_with_path(held, is_leaf=_is_laid_out)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): x
        for path, x in leaves
        if _is_laid_out(x)
    }


def _is_laid_out(x: Any) -> bool:
    return isinstance(x, gl.GridArray)


def _padding(found: Result) -> Iterator[str]:
    held = {name: x.layout for name, x in arrays(found).items()}
    yield f"Memory of {len(held)} arrays on {found.device.size} devices"
    name, worst = max(held.items(), key=lambda item: item[1].padding_share)
    answer = gl.explain(worst, plan=True)
    yield (
        f"  worst padding  {name}, {worst.dtype.name}{list(worst.shape)}: "
        f"{worst.padding_share:.1%}, {size(worst.nbytes)} for {size(worst.data_bytes)}"
    )
    if answer.better is not None:
        new = answer.better
        yield (
            f"  better         grid {new.core_shape}, tile {new.tile}: "
            f"{size(new.nbytes)}, {worst.nbytes / new.nbytes:.0f} times less"
        )
    better = {layout: gl.explain(layout, plan=True).better or layout for layout in held.values()}
    now = sum(layout.nbytes for layout in held.values())
    then = sum(better[layout].nbytes for layout in held.values())
    yield f"  all arrays     {size(now)} now, {size(then)} in the better layout of each"


def _moves(report: Any) -> Iterator[str]:
    sent = [(each, row.primitive) for row in report.rows for each in row.collectives]
    sent.sort(key=lambda item: -item[0].total_bytes)
    yield f"The largest of {len(sent)} moves of a step: what each device receives"
    for each, primitive in sent[:_LARGEST]:
        yield from wrap(f"  {primitive:<13}  {each.words}", 80, subsequent_indent=" " * 19)
    yield (
        f"  total {size(report.bytes_moved)}; {len(report.rows)} primitives, "
        f"{len(report.fallbacks)} fallbacks"
    )


def _speed(found: Result) -> Iterator[str]:
    grid, plain = found.grid.seconds, found.plain.seconds
    if not grid or not plain:
        return
    ratio = grid / plain
    words = f"{ratio:.1f} times slower" if ratio > 1 else f"{1 / ratio:.1f} times faster"
    sent = [each for row in found.report.rows for each in row.collectives]
    count = round(sum(each.count / each.together for each in sent))  # combined ones count once
    yield f"{1 / grid:,.0f} steps per second on the grid, {1 / plain:,.0f} in plain JAX: {words}"
    yield (
        f"  reason: a step waits for {count} collectives of at least "
        f"{found.exchange * 1e3:.2f} ms each"
    )
    yield (
        f"  that is at least {count * found.exchange * 1e3:.1f} of {grid * 1e3:.1f} ms; plain "
        f"JAX takes {plain * 1e3:.1f} ms on one device"
    )
    planned = found.planned.seconds
    if planned:
        more = grid / planned
        words = f"{more:.1f} times as many" if more >= 1 else f"{1 / more:.1f} times fewer"
        yield f"  with the layouts of gl.plan: {1 / planned:,.0f} steps per second, {words}"
        yield f"  there {_grids(found.plan)}, and the loss is {found.planned.loss:.6f}"


def _grids(plan: gl.Plan) -> str:
    """Return how many arguments a plan replicates, in words."""
    laid = [layout for layout in plan.layouts.values() if layout is not None]
    whole = sum(prod(layout.core_shape) == 1 for layout in laid)
    return f"{whole} of {len(laid)} arrays are replicated"
