"""Attention: of all rows, of one row while text is generated, and its gradient.

Source: the descriptions of the ops in `TTIROps.td` and `TTNNOps.td` of tt-mlir.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from gridlayout.ops.tenstorrent.operation import Function, Op


def attention(op: Op) -> Function:
    """softmax(q @ k.T * scale + mask) @ v; a head of k and v may serve several of q.

    `is_causal`, which is the default, lets a row see itself and those before it, with a
    `sliding_window_size` of N only the last N of them.
    """
    has_mask = op.present(4)[3]
    causal, window = _causal(op, has_mask), _window(op)
    if window and not causal:
        op.fail("a sliding window is known of causal attention only")
    scale = op.number("scale", None)

    def run(q: Any, k: Any, v: Any, *mask: Any) -> Any:
        seen = _before(q.shape[-2], k.shape[-2], window) if causal else None
        return _attended(q, k, v, scale, mask[0] if has_mask else None, seen)

    return run


def _causal(op: Op, has_mask: bool) -> bool:
    causal = op.flag("is_causal", True)
    if causal and has_mask:
        op.fail("is_causal, which is true by default, and an attention mask exclude each other")
    return causal


def _window(op: Op) -> int | None:
    window = op.integer("sliding_window_size", None)
    if window is not None and window < 1:
        op.fail(f"sliding_window_size = {window} must be >= 1")
    return None if window is None else int(window)


def _before(rows: int, columns: int, window: int | None) -> Any:
    """Return which columns each row sees: those up to its own, at most `window` of them."""
    back = jnp.arange(rows)[:, None] - jnp.arange(columns)
    return (back >= 0) if window is None else (back >= 0) & (back < window)


def _attended(q: Any, k: Any, v: Any, scale: float | None, mask: Any, seen: Any) -> Any:
    """Return the attention of (batch, heads, rows, width). seen: what a row sees; None for all."""
    k, v = (jnp.repeat(each, q.shape[-3] // k.shape[-3], -3) for each in (k, v))
    scores = q @ jnp.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + mask
    if seen is not None:
        scores = jnp.where(seen, scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


def decode(op: Op) -> Function:
    """Attention of one row, (1, users, heads, width), on the rows that each user has so far.

    k and v are (users, heads, rows, width). If it is causal, a user sees the rows up to the place
    in the operand of positions; else all rows, with a mask. Paged k and v are (pages, heads, rows
    of a page, width), and the table has the pages of each user in order.
    """
    is_paged = op.name.startswith("paged_")
    first = 3 + is_paged + (is_paged and op.dialect == "ttir")  # TTIR has an operand for the result
    if not op.has("operandSegmentSizes"):
        op.fail("operandSegmentSizes must say which operands are given")
    has_mask, has_places = op.present(first + 2)[first:]
    causal, window, scale = _causal(op, has_mask), _window(op), op.number("scale", None)
    if causal and not has_places:
        op.fail("causal attention needs the operand of positions")
    if window and not causal:
        op.fail("a sliding window is known of causal attention only")
    if op.inputs[0].shape[:1] != (1,):
        op.fail(f"the first dim of the query {op.inputs[0].shape} must be 1")

    def run(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        if is_paged:
            k, v = (_of_pages(each, rest[0]) for each in (k, v))
        others = list(rest[first - 3 :])
        mask = jnp.swapaxes(others.pop(0), 1, 2) if has_mask else None
        seen = None
        if causal:
            back = others.pop(0)[:, None, None, None] - jnp.arange(k.shape[-2])
            seen = (back >= 0) if window is None else (back >= 0) & (back < window)
        made = _attended(q[0][:, :, None], k, v, scale, mask, seen)
        return made[None, :, :, 0]

    return run


def _of_pages(pages: Any, table: Any) -> Any:
    """Return the rows of each user: (users, heads, rows, width)."""
    users, count = table.shape
    found = jnp.moveaxis(pages[table], 2, 1)  # users, heads, pages, rows, width
    return jnp.reshape(found, (users, pages.shape[1], count * pages.shape[2], pages.shape[3]))


def forward(op: Op) -> Function:
    """Attention of training, with a mask of the kind `mask_type`, without dropout."""
    has_mask, causal = _mask_type(op, op.present(4)[3], "causal")
    if op.flag("return_intermediates", False):
        op.fail("the intermediates, whose layout is not described, are not known")

    def run(q: Any, k: Any, v: Any, *mask: Any) -> Any:
        seen = _before(q.shape[-2], k.shape[-2], None) if causal else None
        return _attended(q, k, v, None, mask[0] if has_mask else None, seen)

    return run


def backward(op: Op) -> Function:
    """The gradients of q, k and v. The output and the intermediates are computed again."""
    has_mask, causal = _mask_type(op, op.present(7)[6], "arbitrary")

    def run(grad: Any, _: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        def attended(q: Any, k: Any, v: Any) -> Any:
            seen = _before(q.shape[-2], k.shape[-2], None) if causal else None
            return _attended(q, k, v, None, rest[1] if has_mask else None, seen)

        return jax.vjp(attended, q, k, v)[1](grad)

    return run


def _mask_type(op: Op, has_mask: bool, default: str) -> tuple[bool, bool]:
    """Return whether there is a mask operand, and whether a row sees those before it only."""
    kind = op.word("mask_type", default)
    if kind not in ("none", "causal", "arbitrary") or has_mask != (kind == "arbitrary"):
        op.fail(f"mask_type = {kind} does not fit {len(op.inputs)} operands")
    if op.number("dropout_probability", 0):
        op.fail("dropout_probability must be 0: dropout is random")
    return has_mask, kind == "causal"


FUNCTIONS = {
    "scaled_dot_product_attention": attention,
    "scaled_dot_product_attention_decode": decode,
    "paged_scaled_dot_product_attention_decode": decode,
    "sdpa_fw": forward,
    "sdpa_bw": backward,
}
