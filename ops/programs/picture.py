"""A report's graph as a drawing: one card per step, with moves on the lines between cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gridlayout.draw.cards import Card, Chart
from gridlayout.draw.folded import folded
from gridlayout.layouts.memory import number
from gridlayout.ops.programs.graph import OPERAND, Body, Graph, Node, Source
from gridlayout.ops.programs.groups import Group, Item, items_of, span
from gridlayout.ops.programs.texts import (
    LEGEND,
    constant_card,
    end_card,
    group_card,
    move_card,
    operands_card,
    step_card,
)
from gridlayout.svg import Drawing

MOST_CARDS = 1000  # the most cards of all charts of a drawing
_MOST_ENTRIES = 6  # an item's own operands have one card each, unless there are more


def draw_graph(graph: Graph, words: str) -> Drawing:
    """Return the drawing of a program's graph. words: a sentence that states its costs."""
    charts = _Charts()
    chart = charts.whole("", graph)
    name = graph.title or "a program"
    notes = []
    if charts.left:
        notes.append(f"{number(charts.left, 'step')} not drawn: there are too many for a page")
    description = f"A graph of the steps of {name}, and the values between them. {words}."
    return folded(f"{name} on the grid", words, description, chart, LEGEND, notes)


@dataclass
class _Charts:
    """The state shared by all charts of a drawing: the number of cards, and of omitted steps."""

    cards: int = 0
    left: int = 0
    consumers: dict[int, dict[Source, list[int]]] = field(default_factory=dict)

    def whole(self, title: str, graph: Graph, at: str = "") -> Chart:
        """Return the chart of a graph and its parts; at: the prefix of its parts' numbers."""
        shown = range(len(graph.nodes))
        return _Drawn(self, graph, items_of(graph), shown, at).chart(title)

    def consumers_of(self, graph: Graph) -> dict[Source, list[int]]:
        """Return the nodes that read each value; a result is read by number `len(nodes)`."""
        if id(graph) not in self.consumers:
            found: dict[Source, list[int]] = {}
            for n, node in enumerate(graph.nodes):
                for read in node.reads:
                    found.setdefault(read.source, []).append(n)
            for source in graph.results:
                if source is not None:
                    found.setdefault(source, []).append(len(graph.nodes))
            self.consumers[id(graph)] = found
        return self.consumers[id(graph)]


@dataclass
class _Drawn:
    """A chart under construction: some items of a graph, which are the nodes `shown`.

    cells: the (card, cell) of each value; moved: the card of each move.
    """

    charts: _Charts
    graph: Graph
    items: Sequence[Item]
    shown: range
    at: str
    cards: list[Card] = field(default_factory=list)
    lines: dict[tuple[int, int, int], None] = field(default_factory=dict)
    parts: list[Chart] = field(default_factory=list)
    cells: dict[Source, tuple[int, int]] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)

    def chart(self, title: str) -> Chart:
        """Return the whole chart."""
        self._entries()
        own = {item for item in self.items if isinstance(item, int)}
        for item in self.items:
            if isinstance(item, int):
                self._step(item, own)
            else:
                self._group(item)
        self._results()
        self.charts.cards += len(self.cards)
        return Chart(title, tuple(self.cards), tuple(self.lines), tuple(self.parts))

    @property
    def _is_whole(self) -> bool:
        return len(self.shown) == len(self.graph.nodes)

    def _add(self, card: Card, reads: Iterable[tuple[int, int]], makes: Iterable[Source]) -> int:
        """Add a card, the lines to it, and the values in its cells; return its number."""
        at = len(self.cards)
        self.cards.append(card)
        self.lines.update(dict.fromkeys((*start, at) for start in reads))
        self.cells.update({source: (at, k) for k, source in enumerate(makes)})
        return at

    # -- ends ----------------------------------------------------------------------------------

    def _entries(self) -> None:
        """Add cards of unused operands, and one card for many operands of a single item."""
        if self._is_whole and not self.at:
            consumers = self.charts.consumers_of(self.graph)
            for k in range(len(self.graph.operands)):
                if (OPERAND, k) not in consumers:
                    self._entry((OPERAND, k))
        for item in self.items:
            alone = [source for source in self._outside(span(item)) if self._is_alone(source, item)]
            if len(alone) > _MOST_ENTRIES:
                tensors = [self.graph.tensor(source) for source in alone]
                at = self._add(operands_card(list(map(self._name, alone)), tensors), [], [])
                self.cells.update(dict.fromkeys(alone, (at, 0)))

    def _outside(self, nodes: range) -> list[Source]:
        """Return the values that nodes read but do not make."""
        reads = (read.source for n in nodes for read in self.graph.nodes[n].reads)
        return list(dict.fromkeys(source for source in reads if source[0] not in nodes))

    def _is_alone(self, source: Source, item: Item) -> bool:
        """Return whether nothing else in this chart makes or reads a value."""
        if source[0] in self.shown:
            return False
        own = span(item)
        return all(
            n in own or n not in self.shown for n in self.charts.consumers_of(self.graph)[source]
        )

    def _name(self, source: Source) -> str:
        node, k = source
        if node != OPERAND:
            return f"from {self.graph.nodes[node].row.primitive}"
        return self.graph.names[k] if k < len(self.graph.names) else f"operand {k}"

    def _entry(self, source: Source) -> tuple[int, int]:
        """Return where the lines of a value start; a value from elsewhere gets its own card."""
        if source not in self.cells:
            self._add(end_card(self._name(source), self.graph.tensor(source)), [], [source])
        return self.cells[source]

    def _results(self) -> None:
        """Add cards that say where the chart's values go."""
        if not self._is_whole:
            for source in self._read_elsewhere(self.shown):
                self._add(end_card("read by later steps"), [self.cells[source]], [])
            return
        names = self.graph.result_names
        for k, found in enumerate(self.graph.results):
            name = names[k] if k < len(names) else f"result {k}"
            if found is None:
                self._add(constant_card(name), [], [])
            else:
                self._add(end_card(name), [self._entry(found)], [])

    def _read_elsewhere(self, nodes: range) -> Iterator[Source]:
        """Yield the values that these nodes make and other nodes read."""
        consumers = self.charts.consumers_of(self.graph)
        for n in nodes:
            for k in range(len(self.graph.nodes[n].results)):
                if any(consumer not in nodes for consumer in consumers.get((n, k), ())):
                    yield n, k

    # -- steps ---------------------------------------------------------------------------------

    def _step(self, n: int, own: set[int]) -> None:
        node = self.graph.nodes[n]
        starts = [self._start(read.source, read.move, own) for read in node.reads]
        below = [words for body in node.bodies for words in self._body(node, body)]
        makes = [(n, k) for k in range(len(node.results))]
        self._add(step_card(node, below, n in self.graph.unread), starts, makes)

    def _start(self, source: Source, move: int | None, own: set[int]) -> tuple[int, int]:
        """Return where the line of an operand starts: at its value, or at its move's card."""
        start = self._entry(source)
        if move is None or self.graph.moves[move].node not in own:
            return start
        if move not in self.moved:
            found = self.graph.moves[move]
            before = self._start(source, found.before, own)
            self.moved[move] = self._add(move_card(found, self.graph), [before], [])
        return self.moved[move], 0

    def _body(self, node: Node, body: Body) -> Iterator[str]:
        """Yield the lines about a program inside a step, and where it is drawn."""
        words = [body.title, f"{body.times:,} times" if body.times > 1 else "", body.note]
        title = ", ".join(filter(None, words))
        yield title
        if at := self._number(len(body.graph.nodes)):
            title = title.replace(body.title, f"{at} {body.title} of {node.row.primitive}", 1)
            self.parts.append(self.charts.whole(title, body.graph, at))
            yield _below(at)

    def _group(self, group: Group) -> None:
        nodes = span(group)
        starts = [self._entry(source) for source in self._outside(nodes)]
        makes = list(self._read_elsewhere(nodes))
        rows = Graph((), self.graph.nodes[nodes.start : nodes.stop], (), ()).rows
        lines = [f"{sum(row.bytes_moved for row in rows):,} B moved over all devices"]
        if group.times == 1 and not group.title.startswith("steps "):
            lines.insert(0, number(len(nodes), "step"))
        if at := self._number(len(group.shown)):
            title = f"{at} {group.title}"
            if group.times > 1:
                title += ", the first time"
            drawn = _Drawn(self.charts, self.graph, group.items, group.shown, at)
            self.parts.append(drawn.chart(title))
            lines.append(_below(at))
        tensors = [self.graph.tensor(source) for source in makes]
        self._add(group_card(group.title, lines, tensors), starts, makes)

    def _number(self, steps: int) -> str:
        """Return the number of the next part; empty if there are too many cards already."""
        if self.charts.cards + len(self.cards) > MOST_CARDS:
            self.charts.left += steps
            return ""
        return f"{self.at}{len(self.parts) + 1}."


def _below(at: str) -> str:
    return f"drawn below as {at.rstrip('.')}"
