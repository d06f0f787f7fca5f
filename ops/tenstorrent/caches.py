"""Ops that change an operand in place: the caches of keys and values of a transformer.

A function returns the operand's new value. `IN_PLACE` names the operands that an op changes, whose
names mean the new values from there on (`linking.py`).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from gridlayout.arguments import Shape
from gridlayout.ops.tenstorrent.operation import Function, Op


def fill(op: Op) -> Function:
    """The cache (users, heads, rows, width) with its first rows overwritten, from a user on."""
    first = op.integer("batch_offset", 0)
    (users, heads, rows, width), new = op.inputs[0].shape, op.inputs[1].shape
    if not 0 <= first <= users - new[0] or new[1::2] != (heads, width) or new[2] > rows:
        op.fail(f"an input {new} at user {first} is not inside the cache {op.inputs[0].shape}")
    last = first + new[0]
    return lambda cache, x: cache.at[first:last, :, : new[2]].set(x.astype(cache.dtype))


def update(op: Op) -> Function:
    """The cache with one row of each user overwritten; the input is (1, heads, users, width)."""
    first = op.integer("batch_offset", 0)
    (users, heads, _, width), new = op.inputs[0].shape, op.inputs[1].shape
    if new[:2] != (1, heads) or new[3] != width or not 0 <= first <= users - new[2]:
        op.fail(f"an input {new} at user {first} is not inside the cache {op.inputs[0].shape}")

    def run(cache: Any, x: Any, at: Any) -> Any:
        rows = jnp.swapaxes(x[0], 0, 1).astype(cache.dtype)
        place = jnp.ravel(at)[0].astype(jnp.int32)
        return cache.at[first : first + new[2], :, place].set(rows, mode="drop")

    return run


def paged_update(op: Op) -> Function:
    """The cache with one row of each user overwritten, at the user's index; below 0, none.

    The cache is (blocks, heads, rows of a block, width), and the page table names the blocks of
    each user. Without a table, a user has one block. The input is (1, users, heads or more, width).
    """
    op.flag("share_cache", False)
    _, heads, size, width = _blocks(op)
    new = op.inputs[1].shape
    if new[0] != 1 or new[2] < heads or new[3] != width:
        op.fail(f"an input {new} does not fit into the cache {op.inputs[0].shape}")

    def run(cache: Any, x: Any, at: Any, *table: Any) -> Any:
        at = jnp.ravel(at).astype(jnp.int32)
        blocks = jnp.arange(new[1])
        if table:
            pages = table[0].astype(jnp.int32)
            each = jnp.clip(at // size, 0, pages.shape[1] - 1)[:, None]
            blocks, at = (
                jnp.ravel(jnp.take_along_axis(pages, each, 1)),
                jnp.where(at < 0, at, at % size),
            )
        return _with_rows(cache, blocks, at, x[0, :, :heads])

    return run


def paged_fill(op: Op) -> Function:
    """The cache with the first rows of some users overwritten: (users, heads, rows, width).

    The page table names the blocks of each user. The last operand names the users; without it,
    there is one, the first.
    """
    _, heads, size, width = _blocks(op)
    new, pages = op.inputs[1].shape, op.inputs[2].shape
    count = len(pages) == 2 and pages[1] * size
    if new[1::2] != (heads, width) or new[2] > count or (new[0] > 1 and len(op.inputs) < 4):
        op.fail(f"an input {new} does not fit into the pages {pages} of {size} rows")

    def run(cache: Any, x: Any, table: Any, *users: Any) -> Any:
        rows = jnp.arange(new[2])
        which = jnp.ravel(users[0]).astype(jnp.int32) if users else jnp.arange(new[0])
        own = jnp.take(table.astype(jnp.int32), which, 0, mode="clip")
        blocks = jnp.take(own, rows // size, 1, mode="clip")
        places = jnp.broadcast_to(rows % size, blocks.shape)
        values = jnp.reshape(jnp.swapaxes(x, 1, 2), (-1, heads, width))
        return _with_rows(cache, jnp.ravel(blocks), jnp.ravel(places), values)

    return run


def _blocks(op: Op) -> Shape:
    """Return the shape of a cache in blocks: (blocks, heads, rows of a block, width)."""
    op.integers("operandSegmentSizes", None)
    shape = op.inputs[0].shape
    if len(shape) != 4 or shape[0] * shape[2] >= 2**31:
        op.fail(f"a cache {shape} must have 4 dims, and fewer than 2**31 rows in all blocks")
    return shape


def _with_rows(cache: Any, blocks: Any, places: Any, values: Any) -> Any:
    """Return the cache with rows (heads, width) at places of blocks; negative places are none."""
    count, heads, size, width = cache.shape
    rows = jnp.reshape(jnp.swapaxes(cache, 1, 2), (count * size, heads, width))
    outside = (places < 0) | (places >= size) | (blocks < 0)
    where = jnp.where(outside, count * size, blocks * size + places)
    rows = rows.at[where].set(values.astype(cache.dtype), mode="drop")
    return jnp.swapaxes(jnp.reshape(rows, (count, size, heads, width)), 1, 2)


FUNCTIONS = {
    "fill_cache": fill,
    "paged_fill_cache": paged_fill,
    "paged_update_cache": paged_update,
    "update_cache": update,
}
IN_PLACE = dict.fromkeys(FUNCTIONS, (0,))
