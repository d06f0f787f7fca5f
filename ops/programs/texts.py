"""The texts and colours of the cards in a report's drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gridlayout.caching import cached
from gridlayout.draw.cards import SENT, Card, Cell
from gridlayout.draw.logical import short
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import size
from gridlayout.layouts.padding import bounded_share
from gridlayout.layouts.reader import dims_text
from gridlayout.ops.decisions.decision import FALLBACK, RULE, VIEW
from gridlayout.ops.decisions.specs import Replicated, is_laid_out
from gridlayout.ops.programs.graph import Graph, Move, Node, Tensor
from gridlayout.ops.programs.program import RELAYOUT
from gridlayout.sharding.collectives import Collective, in_words

_MOST_SENT = 4  # the most collectives that a card names
_REPLICATED, _INNER, _END = "c4", "c3", "paper"
_FILLS = {RULE: "c0", VIEW: "c2", FALLBACK: "c6"}
LEGEND = (
    ("c0", "computed by each device on its part"),
    ("c2", "the same data, seen in another shape"),
    ("c6", "no rule: every device takes the full operands"),
    (_REPLICATED, "no layout: every device does all of it"),
    (_INNER, "several steps, drawn below"),
    (SENT, "what each device receives"),
    ("pad", "share of padding"),
)


def step_card(node: Node, below: Sequence[str], is_unread: bool) -> Card:
    """Return the card of a step; below: the lines about programs inside it."""
    row, cells = node.row, tuple(map(_cell, node.results))
    if row.primitive == RELAYOUT:
        return Card("moved", SENT, _sent(node.collectives), cells=cells, hover=_hover(node))
    fill = _INNER if node.bodies else _REPLICATED if _is_replicated(node) else _FILLS[row.how]
    skipped = "nothing reads it: not run" if is_unread and not node.is_run else ""
    lines = tuple(filter(None, (node.note, *below, skipped)))
    return Card(row.primitive, fill, lines, _sent(node.collectives), cells, _hover(node))


def _is_replicated(node: Node) -> bool:
    """Return whether every device does all of a step."""
    if not node.is_listed:
        return True
    row, decision = node.row, node.row.decision
    return (
        row.how == RULE
        and not row.collectives
        and not any(map(is_laid_out, decision.operands))
        and all(isinstance(spec, Replicated) for spec in decision.results)
    )


def move_card(move: Move, graph: Graph) -> Card:
    """Return the card of a relayout for a step that reads the value."""
    words = _sent(move.collectives)
    if move.to is not None and move.to.core_shape:
        words = (*words, f"to {_cores(move.to)}")
    elif move.held:
        words = (*words, move.held)
    before = graph.tensor(move.source).layout
    ways = [text for text in (before, move.to) if text is not None]
    return Card("moved", SENT, words, hover="\n→ ".join(short(repr(way)) for way in ways))


def group_card(title: str, lines: Sequence[str], results: Sequence[Tensor]) -> Card:
    """Return one card for several steps."""
    return Card(title, _INNER, tuple(lines), cells=tuple(map(_cell, results)))


def operands_card(names: Sequence[str], tensors: Sequence[Tensor]) -> Card:
    """Return one card for many operands of a step."""
    kinds = Counter(tensor.dtype for tensor in tensors)
    held = [tensor.layout for tensor in tensors if tensor.layout is not None]
    words = ", ".join(f"{n} of {dtype}" for dtype, n in kinds.most_common(3))
    nbytes, data = (sum(getattr(x, name) for x in held) for name in ("nbytes", "data_bytes"))
    share = 1 - data / nbytes if nbytes else 0.0
    lines = [words] if len(kinds) <= 3 else [f"{words} ..."]
    if held:
        lines.append(f"{size(nbytes)} on cores")
    if share > 0:
        lines.append(_padding(share))
    ends = f"{short(names[0], 30)} ... {short(names[-1], 30)}"
    cell = Cell(tuple(lines), max(share, 0.0), short(", ".join(names), 2000))
    return Card(f"{len(names)} values", _END, (ends,), cells=(cell,))


def end_card(name: str, tensor: Tensor | None = None) -> Card:
    """Return the card of an operand, or of where a value goes."""
    return Card(short(name, 60), _END, cells=() if tensor is None else (_cell(tensor),))


def constant_card(name: str) -> Card:
    """Return the card of a result that depends on no operand."""
    return Card(short(name, 60), _END, ("a constant",))


def _cell(tensor: Tensor) -> Cell:
    lines = [f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]"]
    layout = tensor.layout
    if layout is None:
        # The place of a scalar is not shown: it is on every device.
        return Cell((*lines, tensor.held) if tensor.shape and tensor.held else tuple(lines))
    lines.append(_cores(layout))
    share = _share(layout)
    if share:
        lines.append(_padding(share))
    bytes_ = f"{layout.nbytes:,} B in all, {size(layout.bytes_per_core)} a core"
    return Cell(tuple(lines), share, f"{short(repr(layout))}\n{bytes_}")


def _padding(share: float) -> str:
    return f"{share:.1%} padding" if share >= 0.001 else "under 0.1% padding"


def _cores(layout: Layout) -> str:
    """Return the grid as text, with the tile and the memory where they are unusual."""
    cores = "core" if layout.num_cores == 1 else "cores"
    words = [f"{dims_text(layout.core_shape)} {cores}" if layout.core_shape else "one buffer"]
    if layout.tile is not None:
        words.append(f"tiles of {dims_text(layout.tile)}")
    if isinstance(layout.memory, str) and layout.memory != "l1":
        words.append(layout.memory)
    return ", ".join(words)


@cached(entries=4096)
def _share(layout: Layout) -> float:
    return bounded_share(layout)


def _sent(collectives: Sequence[Collective]) -> tuple[str, ...]:
    """Return what each device receives, as texts."""
    # Keep a number and its noun on one line.
    words = [each.replace(" device", "\N{NO-BREAK SPACE}device") for each in in_words(collectives)]
    more = [f"and {len(words) - _MOST_SENT} more"] if len(words) > _MOST_SENT else []
    return (*words[:_MOST_SENT], *more)


def _hover(node: Node) -> str:
    row = node.row
    facts = [
        f"{row.flops:,} operations" if row.flops else "",
        f"{row.bytes_moved:,} B received over all devices" if row.bytes_moved else "",
        f"{row.masks} masks" if row.masks else "",
        f"{size(row.peak_bytes)} held by a core" if row.peak_bytes else "",
    ]
    return "\n".join([f"{row.primitive}: {row.how}", *filter(None, facts)])
