"""The demo's answer: what was found, in lines of 80 columns."""

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
    """The whole answer, a line at a time."""
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
    """What was wanted and not reached; nothing where all was."""
    apart = abs(found.grid.loss - found.plain.loss)
    if found.accuracy >= ACCURACY and apart <= LOSS_TOLERANCE:
        return ""
    return f"FAILED: wanted accuracy >= {ACCURACY:.0%} and losses within {LOSS_TOLERANCE}"


def arrays(found: Result) -> dict[str, Any]:
    """What training holds all the time, by name."""
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
    yield f"What {len(held)} arrays take on {found.device.size} devices"
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
        f"  in all {size(report.bytes_moved)}; {len(report.rows)} primitives, "
        f"{len(report.fallbacks)} fallbacks"
    )


def _speed(found: Result) -> Iterator[str]:
    grid, plain = found.grid.seconds, found.plain.seconds
    if not grid or not plain:
        return
    ratio = grid / plain
    words = f"{ratio:.1f} times slower" if ratio > 1 else f"{1 / ratio:.1f} times faster"
    sent = [each for row in found.report.rows for each in row.collectives]
    count = round(sum(each.count / each.together for each in sent))  # joined ones are one
    yield f"{1 / grid:,.0f} steps a second on the grid, {1 / plain:,.0f} in plain JAX: {words}"
    yield (
        f"  why: a step waits for {count} collectives, of which the least takes "
        f"{found.exchange * 1e3:.2f} ms"
    )
    yield (
        f"  here: {count * found.exchange * 1e3:.1f} of its {grid * 1e3:.1f} ms at least; plain "
        f"JAX takes {plain * 1e3:.1f} ms on one device"
    )
    planned = found.planned.seconds
    if planned:
        more = grid / planned
        words = f"{more:.1f} times as many" if more >= 1 else f"{1 / more:.1f} times fewer"
        yield f"  in the layouts that gl.plan chooses: {1 / planned:,.0f} steps a second, {words}"
        yield f"  there {_grids(found.plan)}, and the loss is {found.planned.loss:.6f}"


def _grids(plan: gl.Plan) -> str:
    """How many arguments a plan replicates, and how many it divides."""
    laid = [layout for layout in plan.layouts.values() if layout is not None]
    whole = sum(prod(layout.core_shape) == 1 for layout in laid)
    return f"{whole} of {len(laid)} arrays are replicated"
