"""Drawings of programs: what is in the graph, what is drawn of it, and how it is shown."""

import itertools
import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from browser import CHROMIUM, browse, needs_chromium, output
from programs import DEVICE, PROGRAMS, on, report_of
from test_primitives import CALLS

import gridlayout as gl
from gridlayout.draw.layered import Link, placed
from gridlayout.ops.programs.graph import OPERAND
from gridlayout.ops.programs.groups import Group, items_of, span
from gridlayout.ops.programs.picture import MOST_CARDS
from gridlayout.ops.programs.texts import LEGEND, step_card
from gridlayout.palette import fixed
from gridlayout.sharding.collectives import total_bytes

SVG = "{http://www.w3.org/2000/svg}"


def counted(graph):
    """A graph and those of the bodies that are counted."""
    yield graph
    for node in graph.nodes:
        for body in node.bodies:
            if body.is_counted:
                yield from counted(body.graph)


def texts(drawing):
    """The lines of text of each card."""
    root = ET.fromstring(drawing.svg)
    cards = [g for g in root.iter(f"{SVG}g") if g.find(f"{SVG}rect[@class='frame']") is not None]
    return [["".join(t.itertext()) for t in g.iter(f"{SVG}text")] for g in cards]


# -- the graph -------------------------------------------------------------------------------------


def wiring(jaxpr, given):
    """(primitive, what makes its operands) of each equation that an operand leads to, in order."""
    found = []

    def run(jaxpr, given):
        env = dict(zip(jaxpr.invars, given, strict=True))
        read = lambda atom: None if hasattr(atom, "val") else env.get(atom)  # noqa: E731
        for eqn in jaxpr.eqns:
            values = [read(atom) for atom in eqn.invars]
            if eqn.primitive.name in CALLS:
                inner = eqn.params[CALLS[eqn.primitive.name]]
                outs = run(getattr(inner, "jaxpr", inner), values)
            elif any(value is not None for value in values):
                outs = [(len(found), k) for k in range(len(eqn.outvars))]
                reads = dict.fromkeys(value for value in values if value is not None)
                found.append((eqn.primitive.name, tuple(reads)))
            else:
                outs = [None] * len(eqn.outvars)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    outs = run(jaxpr, given)
    return found, outs


@pytest.mark.parametrize("name", ["mlp", "nested", "uneven", "transformer", "chain", "nothing"])
def test_the_graph_is_the_jaxpr_s(name):
    fn, given = PROGRAMS[name]
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), given)
    closed = jax.make_jaxpr(fn)(*shapes)
    operands = [(OPERAND, k) for k in range(len(closed.jaxpr.invars))]
    known, outs = wiring(closed.jaxpr, operands)
    graph = report_of(name).graph
    nodes = [
        (n.row.primitive, tuple(dict.fromkeys(r.source for r in n.reads))) for n in graph.nodes
    ]
    if name == "transformer":  # a transpose that follows a product is done with it
        assert sum(p == "dot_general" for p, _ in nodes) == sum(
            p == "dot_general" for p, _ in known
        )
    else:
        assert nodes == known
        assert list(graph.results) == outs
    types = [(t.dtype, t.shape) for t in graph.operands]
    assert types == [("f32", x.shape) for x in jax.tree.leaves(shapes)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_byte_that_is_received_is_in_one_place(name):
    report = report_of(name)
    found = 0
    for graph in counted(report.graph):
        found += sum(total_bytes(move.collectives) for move in graph.moves)
        found += sum(total_bytes(node.collectives) for node in graph.nodes)
        for n, node in enumerate(graph.nodes):
            own = [move for move in graph.moves if move.node == n]
            assert total_bytes(node.row.collectives) == total_bytes(
                (*node.collectives, *(c for move in own for c in move.collectives))
            )
            read = {r.move for r in node.reads} | {move.before for move in graph.moves}
            assert {graph.moves.index(move) for move in own} <= read
    assert found == report.bytes_moved
    assert tuple(report.graph.rows) == report.rows


def test_a_move_stands_on_the_line_of_its_operand():
    a, b = on((8, 8), (2, 4)), on((8, 8), (4, 2))
    graph = gl.on_grid(lambda a, b: a + b, DEVICE).report(a, b).graph
    (move,), (add,) = graph.moves, graph.nodes
    assert [(r.source, r.move) for r in add.reads] == [((OPERAND, 0), None), ((OPERAND, 1), 0)]
    assert (move.source, move.to.core_shape) == ((OPERAND, 1), (2, 4))
    assert total_bytes(move.collectives) == add.row.bytes_moved > 0
    assert add.collectives == ()


def test_steps_that_read_what_was_moved_before_share_the_move():
    a, b = on((8, 8), (2, 4)), on((8, 8), (4, 2))
    fn = gl.on_grid(lambda a, b: (a + b) / (a * b), DEVICE)
    graph = fn.report(a, b).graph
    assert len(graph.moves) == 1
    reads = [[r.move for r in node.reads] for node in graph.nodes]
    assert reads == [[None, 0], [None, 0], [None, None]]
    drawn = texts(fn.draw(a, b))
    assert sum(card[0] == "moved" for card in drawn) == 1


def test_loops_and_branches_have_graphs_of_their_own():
    (loop,) = report_of("while and cond").graph.nodes
    test, body = loop.bodies
    assert (test.title, body.title) == ("test", "body")
    assert [node.row.primitive for node in test.graph.nodes][-1] == "lt"
    (switch,) = (node for node in body.graph.nodes if node.bodies)
    titles = [(b.title, b.is_counted) for b in switch.bodies]
    assert titles == [("branch 0", False), ("branch 1", True), ("branch 2", False)]
    (scan,) = report_of("scan").graph.nodes
    assert [(b.times, b.graph.names) for b in scan.bodies] == [(8, ("carry", "slice"))]


def test_what_nothing_reads_is_said_to_be_not_run():
    def fn(x):
        jnp.sin(jnp.exp(x))
        return jnp.cos(x)

    report = gl.on_grid(fn, DEVICE).report(on((8, 8), (2, 4)))
    cards = {card[0]: card for card in texts(report.draw())}
    said = {name for name, card in cards.items() if any("not run" in line for line in card)}
    assert said == {"exp", "sin"}


def test_steps_that_every_device_does_have_their_own_colour():
    constant = jnp.ones((8, 8))
    inner = jax.jit(lambda: jnp.exp(constant))
    graph = gl.on_grid(lambda x: x + inner(), DEVICE).report(on((8, 8), (2, 4))).graph
    words = dict(LEGEND)
    found = {node.row.primitive: words[step_card(node, [], False).fill] for node in graph.nodes}
    assert found == {
        "exp": "no layout: every device does all of it",
        "add": "computed by each device on its part",
    }


# -- groups ----------------------------------------------------------------------------------------


def test_layers_are_one_group():
    graph = report_of("transformer").graph
    (group,) = items_of(graph)
    assert (group.times, span(group)) == (16, range(len(graph.nodes)))
    assert len(group.shown) * 16 == len(graph.nodes)


def test_a_called_function_is_a_group_by_its_name():
    items = items_of(report_of("nested").graph)
    (group,) = (item for item in items if isinstance(item, Group))
    assert group.title == "inner"
    assert len(span(group)) >= 3


def test_layers_that_are_wired_in_other_ways_are_apart():
    def fn(is_alike, x):
        for k in range(8):
            a, b = jnp.sin(x), jnp.cos(x)
            x = a - b if is_alike or k % 2 else b - b
        return x

    def times(is_alike):
        graph = gl.on_grid(partial(fn, is_alike), DEVICE).report(on((8, 8), (2, 4))).graph
        return [item.times for item in items_of(graph) if isinstance(item, Group)]

    assert times(True) == [8]
    assert max(times(False), default=0) < 8


@pytest.mark.parametrize("name", PROGRAMS)
def test_items_are_all_nodes_in_order(name):
    graph = report_of(name).graph
    covered = [n for item in items_of(graph) for n in span(item)]
    assert covered == list(range(len(graph.nodes)))


# -- drawings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_drawing_is_whole(name):
    drawing = report_of(name).draw()
    cards = texts(drawing)
    assert cards
    names = {line for card in cards for line in card}
    if name not in ("transformer",):
        assert {*report_of(name).graph.names} <= names
    report = report_of(name)
    assert f"{report.bytes_moved:,} B" in drawing.description
    assert re.search(rf"\b{len(report.rows):,} primitives?, ", drawing.description)
    ET.fromstring(drawing.html)  # as XML too
    assert not re.search(r"<script|(?:src|href)=|url\((?!#)|@import", drawing.html)


def test_cards_say_shape_type_grid_and_padding():
    cards = texts(report_of("mlp").draw())
    assert ["x", "f32[53,63]", "3x2 cores, tiles of 32x32", "45.7% padding"] in cards
    (product, *_) = (card for card in cards if card[0] == "dot_general")
    assert "1.9% padding" in product


def test_shares_of_padding_are_drawn_true():
    drawing = report_of("one").draw()
    layout = on((53, 63), (3, 2))
    root = ET.fromstring(drawing.svg)
    bars = [
        (float(pad.get("width")), float(g.findall(f"{SVG}rect")[0].get("width")))
        for g in root.iter(f"{SVG}g")
        for pad in g.findall(f"{SVG}rect[@class='pad plate']")
    ]
    share = 1 - layout.data_bytes / layout.nbytes
    assert len(bars) == 2
    for pad, whole in bars:
        assert pad / whole == pytest.approx(share, abs=0.002)


def test_names_and_layouts_become_no_markup():
    drawing = report_of("nested").draw()
    assert "result['<a>']" in {line for card in texts(drawing) for line in card}
    assert "<a>" not in drawing.svg + drawing.html


def test_a_program_is_drawn_from_the_function_and_saved(tmp_path):
    fn, given = PROGRAMS["one"]
    drawing = gl.on_grid(fn, DEVICE).draw(*given, path=tmp_path / "one.svg")
    assert drawing == report_of("one").draw()
    assert (tmp_path / "one.svg").read_text("utf-8") == fixed(drawing.svg)
    gl.on_grid(fn, DEVICE).draw(*given, path=str(tmp_path / "one.HTML"))
    page = (tmp_path / "one.HTML").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert drawing.html in page
    assert "<title>exp on the grid</title>" in page
    assert report_of("one")._repr_html_() == drawing.html


def test_parts_fold():
    html = report_of("while and cond").draw().html
    titles = re.findall(r"<details><summary [^>]*>(.*?)</summary>", html)
    assert titles == [
        "1. test of while, per trip",
        "2. body of while, per trip",
        "2.1. remainder",
        "2.2. branch 0 of cond, not counted",
        "2.3. branch 1 of cond, the costliest branch",
        "2.4. branch 2 of cond, not counted",
    ]
    assert html.count("<details") == html.count("</details>") == len(titles)


def test_long_programs_are_drawn_in_parts_and_huge_ones_say_what_is_left_out():
    steps = [jnp.sin, jnp.cos, jnp.tanh, jnp.exp, jnp.abs, jnp.sign]

    def long(n, x):
        pick = random.Random(5)
        for _ in range(n):
            x = pick.choice(steps)(x)
        return x

    x = on((8, 8), (2, 4))
    drawing = gl.on_grid(partial(long, 300), DEVICE).report(x).draw()
    assert "steps 1 to 40" in drawing.svg
    assert "not drawn" not in drawing.svg
    drawing = gl.on_grid(partial(long, 4 * MOST_CARDS), DEVICE).report(x).draw()
    left = re.search(r"([\d,]+) steps not drawn: there are too many for a page", drawing.html)
    assert int(left[1].replace(",", "")) > 2 * MOST_CARDS
    assert len(texts(drawing)) < 2 * MOST_CARDS


def test_a_report_of_a_compiled_program_is_drawn():
    text = (Path(__file__).parent / "dumps/ttnn/mlp.p150.O2.mlir").read_text("utf-8")
    program = gl.tenstorrent.load(text, gl.DeviceGrid((1,)))
    assert "with_layout" in program.report().draw().svg


# -- where boxes stand -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_boxes_stand_apart_and_lines_lead_down(seed):
    pick = random.Random(seed)
    count = pick.randint(1, 40)
    sizes = [(pick.choice([40, 90, 200]), pick.choice([20, 60, 110])) for _ in range(count)]
    links = [
        Link(pick.randrange(k), k, pick.choice([0.0, 10.0]))
        for k in range(1, count)
        for _ in range(pick.randint(0, 3))
    ]
    found = placed(sizes, links)
    boxes = [
        (x - w / 2, x + w / 2, y, y + h)
        for (w, h), x, y in zip(sizes, found.xs, found.ys, strict=True)
    ]
    for a, b in itertools.combinations(boxes, 2):
        assert a[1] <= b[0] or b[1] <= a[0] or a[3] < b[2] or b[3] < a[2]
    for link in links:
        assert boxes[link.start][3] < boxes[link.end][2]
    assert min(box[0] for box in boxes) >= -0.01
    assert max(box[1] for box in boxes) <= found.width + 0.01
    assert max(box[3] for box in boxes) <= found.height + 0.01
    assert placed(sizes, links) == found
    assert len(found.ends) == len({(link.start, link.end, link.port) for link in links})


def test_a_chain_is_straight():
    found = placed([(50, 20)] * 12, [Link(k, k + 1) for k in range(11)])
    assert len(set(found.xs)) == 1


# -- in a browser ----------------------------------------------------------------------------------

MEASURE = """
const said = (e) => e.textContent.replace(/\\s+/g, " ").slice(0, 60);
const faults = [];
for (const details of document.querySelectorAll("details")) details.open = true;
for (const frame of document.querySelectorAll("[data-name]")) {
  const bad = (what, e) => faults.push([frame.dataset.name, what, said(e)]);
  const room = frame.getBoundingClientRect();
  for (const e of frame.querySelectorAll("p, summary, details, div, span")) {
    const box = e.getBoundingClientRect();
    if (box.right > room.right + 0.5 || box.left < room.left - 0.5) bad("is too wide", e);
    if (!box.height) bad("has no height", e);
  }
  for (const svg of frame.querySelectorAll("svg[role=img]")) {
    const own = svg.getBoundingClientRect();
    if (Math.abs(own.width - svg.getAttribute("width")) > 1) bad("is shrunk", svg);
    for (const e of svg.querySelectorAll("text, rect")) {
      const box = e.getBoundingClientRect();
      if (box.left < own.left - 0.5 || box.right > own.right + 0.5) bad("leaves its picture", e);
      if (box.top < own.top - 0.5 || box.bottom > own.bottom + 0.5) bad("leaves its picture", e);
    }
  }
  const fills = new Set();
  for (const light of ["true", "false"]) {
    document.body.dataset.jpThemeLight = light;
    const swatches = [...frame.querySelectorAll(".swatch")].map((e) => getComputedStyle(e).fill);
    if (new Set(swatches).size !== swatches.length) bad("has two colours alike", frame);
    const chart = getComputedStyle(frame.firstElementChild);
    fills.add(chart.backgroundColor);
    if (chart.backgroundColor === chart.color) bad("can't be read", frame);
  }
  if (fills.size !== 2) bad("has one theme", frame);
}
document.getElementById("output").textContent = JSON.stringify(
  { faults, wide: document.documentElement.scrollWidth });
"""


@needs_chromium
def test_a_narrow_page_holds_what_notebooks_show(tmp_path):
    assert CHROMIUM
    shown = "".join(
        f'<div data-name="{name}">{report_of(name)._repr_html_()}</div>' for name in PROGRAMS
    )
    style = "<style>body{margin:0;width:400px}</style>"
    script = f'<pre id="output"></pre><script type="module">{MEASURE}</script>'
    markup = f'<!doctype html><meta charset="utf-8">{style}<body>{shown}{script}'
    found = output(browse(markup, tmp_path))
    assert found["faults"] == []
    broken = markup.replace("max-width: none", "width: 90px", 1)
    assert {"is shrunk"} <= {fault[1] for fault in output(browse(broken, tmp_path))["faults"]}


def test_the_same_drawing_has_the_same_text_again():
    report = report_of("nested")
    assert report.draw() == report.draw()
    other = replace(report, graph=replace(report.graph, title="another"))
    ids = [set(re.findall(r'id="(gl\w{10})"', r.draw().html)) for r in (report, other)]
    assert not ids[0] & ids[1]
