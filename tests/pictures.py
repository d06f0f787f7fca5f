"""Pictures of all kinds, and what a browser finds wrong with them: `PICTURES` and `faults`."""

import itertools
from functools import partial

from browser import browse, output
from programs import PROGRAMS, report_of

import gridlayout as gl
from gridlayout.draw.chart import Chart, Curve, Point
from gridlayout.draw.curves import curves
from gridlayout.draw.held import Held, held_over_time
from gridlayout.draw.timeline import Span, Track, timeline
from gridlayout.draw.views import VIEWS

T = gl.tenstorrent
TOY = gl.sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
GRID = gl.GridLayout

# Shapes from a few elements to millions, of rank 1 to 6, on 1 to 4,096 cores, of every system.
LAYOUTS = {
    "5": GRID((5,), grid=(1,)),
    "5 on 2": GRID((5,), "bfloat16", grid=(2,)),
    "4096 on 4096": GRID((4096,), grid=(4096,)),
    "4096 on 9": GRID((4096,), grid=(9,)),
    "10^9 on 1000": GRID((10**9,), "int8", grid=(1000,)),
    "3x5": GRID((3, 5), grid=(1, 1)),
    "5x1": GRID((5, 1), grid=(2, 1)),
    "8x8 on 3x3": GRID((8, 8), "int4", grid=(3, 3)),
    "10x14, faces": GRID((10, 14), grid=(3, 2), tile=(4, 4), face=(2, 2)),
    "16x16 on 4x4": GRID((16, 16), grid=(4, 4), tile=(4, 4)),
    "53x63 on 3x2": GRID((53, 63), grid=(3, 2), tile=(32, 32)),
    "53x63 on 3x2, of 10": GRID((53, 63), grid=(3, 2), tile=(10, 10)),
    "64x96, faces": GRID((64, 96), "bfloat16", tile=(32, 32), face=(16, 16)),
    "100x100 on 9": GRID((100, 100), grid=(9, 1), tile=(8, 8)),
    "1000x3": GRID((1000, 3), grid=(8, 1)),
    "1000x3, tiled": GRID((1000, 3), grid=(8, 1), tile=(32, 32)),
    "3x1000": GRID((3, 1000), grid=(1, 8), tile=(4, 4)),
    "1x4096": GRID((1, 4096), grid=(1, 64)),
    "4096x4096": GRID((4096, 4096), "bfloat16", grid=(8, 8), tile=(32, 32)),
    "4096x4096 on 4096": GRID((4096, 4096), "bfloat16", grid=(64, 64), tile=(32, 32)),
    "4096x4096, one core": GRID((4096, 4096), grid=(1, 1), tile=(32, 32)),
    "4069x4091 on 7x5": GRID((4069, 4091), grid=(7, 5), tile=(32, 32), face=(16, 16)),
    "rank 3": GRID((3, 17, 9), grid=(4, 3), tile=(4, 4)),
    "rank 4": GRID((2, 3, 64, 128), grid=(2, 4), tile=(32, 32)),
    "rank 4, small": GRID((2, 3, 4, 5), "int8", grid=(2, 2), tile=(4, 4)),
    "rank 4, 8x8": GRID((2, 3, 20, 30), grid=(4, 4), tile=(8, 8)),
    "rank 5": GRID((2, 2, 3, 4, 5), grid=(3, 2), tile=(2, 2)),
    "rank 6": GRID((2, 2, 2, 3, 5, 7), grid=(4, 2), tile=(4, 4)),
    "rank 6, large": GRID((4, 4, 4, 16, 64, 64), grid=(16, 4), tile=(32, 32)),
    "flipped": GRID((4, 6), grid=(2, 2), linear="(d0, d1) -> (-d0 + 3, d1 * 2)"),
    "staircase": GRID((4, 6), grid=(3, 2), linear="(d0, d1) -> (d0 + d1, d1)"),
    "three dims of cores": GRID((4, 6, 8), grid=(2, 3, 2), collapse=[]),
    "12 cores": GRID((12, 5), grid=(12, 1)),
    "block format": GRID((33, 40), grid=(1, 2), tile=(32, 32), tile_format="bfp_bf8"),
    "padding of 10^6": GRID((1, 1), grid=(1, 1), shard_shape=(1000, 1000)),
    "ttnn": T.ttnn((12, 12, 16), "bfloat16", grid=(2, 1), tile=(32, 32)),
    "ttnn, 4 of 50": T.ttnn((4, 50, 50), "float32", grid=(8, 2), tile=(32, 32)),
    "ttnn, document": T.ttnn_document((12, 12, 16), "bfloat16", grid=(2, 1), tile=(32, 32)),
    "metal": T.metal((7, 20), "float32", grid=(1, 1), tile=(32, 32)),
    "metal, 3": T.metal((3, 43, 7), "bfloat16", grid=(6, 1), tile=(32, 32)),
    "tt-metal": T.tensor_layout((7, 20), "bfloat16", page="tile"),
    "xla": gl.parse("f32[3,5]{1,0:T(2,2)}"),
    "xla, twice": gl.parse("bf16[4,8]{1,0:T(2,4)(2,1)}"),
    "xla, 1000x3": gl.parse("f32[1000,3]{1,0:T(8,128)}"),
    "xla, 4096x4096": gl.parse("bf16[4096,4096]{1,0:T(8,128)(2,1)}"),
    "xla, rank 4": gl.parse("f32[2,3,20,40]{3,2,1,0:T(8,128)}"),
    "xla, rank 0": gl.parse("f32[]"),
    "xla, empty": gl.parse("f32[0,5]{1,0:T(2,2)}"),
    "sophon": gl.sophon.local((2, 5, 3, 4), "float32", start=1024, chip=TOY),
    "sophon, large": gl.sophon.local((8, 100, 56, 56), "float32"),
    "sophon, 4N": gl.sophon.local((6, 5, 4, 5), "int8", storage="4N", chip=TOY),
    "sophon, 2N": gl.sophon.local((3, 5, 4, 5), "int16", storage="2N", chip=TOY),
    "sophon, matrix": gl.sophon.matrix(2, 40, 15, "float32", chip=TOY),
    "sophon, system": gl.sophon.system((2, 3, 4, 5), "int8"),
    "NCHW4": gl.megengine.format((2, 64, 3, 3), "NCHW4", "int8"),
    "NCHW32": gl.megengine.format((2, 64, 3, 3), "NCHW32", "int8"),
    "CHWN4": gl.megengine.format((8, 64, 30, 30), "CHWN4", "int8"),
    "strided": gl.megengine.strided((3, 4), (-1, 3), "int32"),
    "strided, large": gl.megengine.strided((999, 999), (1000, 1), "int8"),
    "mli": gl.mli.tensor((4, 3, 2), "HWC", "int16", mem_stride=(12, 3, 1)),
    "mli, weights": gl.mli.tensor((3, 3, 2, 8), "HWCN", "int8"),
}
# Devices of a mesh, and grids to move to.
MESHES = {"8": (8,), "2x4": (2, 4), "2x2x2": (2, 2, 2), "1": (1,)}
FOLDED = ("5", "53x63 on 3x2", "16x16 on 4x4", "4096x4096 on 4096", "rank 6", "12 cores")
MOVES = {
    "one core": (GRID((5,), grid=(1,)), GRID((5,), grid=(1,))),
    "one core to two": (GRID((53, 63), grid=(1, 1)), GRID((53, 63), grid=(2, 1))),
    "6 to 6": (LAYOUTS["53x63 on 3x2"], GRID((53, 63), grid=(2, 3))),
    "9 to 9": (GRID((9, 9), grid=(3, 3)), GRID((9, 9), grid=(9, 1))),
    "16 to 12": (GRID((48, 48), grid=(4, 4)), GRID((48, 48), grid=(4, 3))),
    "1 to 40": (GRID((4096, 4096), grid=(1, 1)), GRID((4096, 4096), grid=(8, 5))),
    "4096 to 4096": (GRID((4096, 4096), grid=(64, 64)), GRID((4096, 4096), grid=(4096, 1))),
    "nothing": (GRID((0, 4), grid=(1, 1)), GRID((0, 4), grid=(2, 1))),
    "names of three dims": (
        GRID((40, 60, 80), grid=(2, 3, 2), collapse=[]),
        GRID((40, 60, 80), grid=(4, 3, 1), collapse=[]),
    ),
}


def pictures():
    """(name, function that draws it) of every view of every layout, of folds, flows and maps.

    A function gives None where the layout has no tiles, lanes or slots to show.
    """
    for (name, layout), view in itertools.product(LAYOUTS.items(), VIEWS):
        if view not in ("fold", "flows"):
            yield f"{view} of {name}", partial(_view, layout, view)
    for name in ("16x16 on 4x4", "rank 4, small", "NCHW4", "4096x4096", "sophon, 4N"):
        for view, color in itertools.product(("logical", "memory"), ("offset", 0, 1)):
            yield f"{view} of {name} by {color}", partial(LAYOUTS[name].draw, view, color=color)
    for name, mesh in itertools.product(FOLDED, MESHES):
        device = gl.DeviceGrid(MESHES[mesh])
        yield f"fold of {name} on {mesh}", partial(LAYOUTS[name].draw, "fold", device=device)
    for name, (a, b) in MOVES.items():
        yield f"flows from {name}", partial(a.draw, "flows", to=b)
    for count in (1, 7):
        some = {f"x{k}": TENSOR(start=k * 128) for k in range(count)}
        yield f"map of {count}", gl.sophon.memory_map(some).draw
    for name in PROGRAMS:
        yield f"program of {name}", partial(_program, name)
    strided = {"strides": (3, 13, 26, 78), "chip": TOY}
    apart = {"a": TENSOR(start=0), "b": gl.sophon.local((5, 7, 3, 2), "float32", **strided)}
    yield "map of runs", gl.sophon.memory_map(apart).draw
    yield from TIMELINES.items()


def _span(k, seconds=1e-6, kinds=("compute", "memory")):
    return Span(
        k * 1.2e-6, seconds * (1 + k % 5), ("dot", "all_gather")[k % 2], kinds[k % len(kinds)]
    )


def _tracks(count, spans, *args):
    return [Track(f"chip {k}", [_span(k + n, *args) for n in range(spans)]) for k in range(count)]


def _steps(count, nbytes=2**20):
    return [Held(f"dot_{k}", nbytes * (1 + k * k % 17)) for k in range(count)]


_TIMELINE, _HELD = (partial(draw, "A step", "by rates") for draw in (timeline, held_over_time))
LONG = "a name that is longer than there is room for, <b>marked up</b>"
TIMELINES = {
    "timeline of a step": partial(_TIMELINE, _tracks(3, 40), ["Times are estimates."]),
    "timeline of a span": partial(_TIMELINE, _tracks(1, 1)),
    "timeline of 70 tracks": partial(_TIMELINE, _tracks(70, 9)),
    "timeline of 5000 spans": partial(_TIMELINE, _tracks(2, 5000, 1e-7)),
    "timeline of 12 kinds": partial(
        _TIMELINE, _tracks(2, 24, 2e-7, [f"kind {k}" for k in range(12)])
    ),
    "timeline of long names": partial(_TIMELINE, [Track(LONG, [Span(0, 1, LONG, LONG)])]),
    "timeline of late spans": partial(_TIMELINE, [Track("a", [Span(1.79e9, 2.5, "x", "k")])]),
    "timeline of no spans": partial(_TIMELINE, [Track("a", []), Track("b", [])]),
    "timeline of nothing": partial(_TIMELINE, []),
    "bytes of 60 steps": partial(_HELD, _steps(60), 12 * 2**20, ["Inputs are held throughout."]),
    "bytes of 60 steps that fit": partial(_HELD, _steps(60), 18 * 2**20),
    "bytes far below": partial(_HELD, _steps(60), 2**40),
    "bytes of 3 steps": partial(_HELD, _steps(3, 2**31)),
    "bytes of 10000 steps": partial(_HELD, _steps(10_000), 16 * 2**20),
    "bytes of a long name": partial(_HELD, [Held(LONG, 3), Held("b", 2)], 2),
    "bytes of zero": partial(_HELD, [Held("a", 0)], 0),
    "bytes of nothing": partial(_HELD, []),
}


def _curve(name, values, first=1, is_open=False):
    points = [Point(first * 2**k, value, name, is_open) for k, value in enumerate(values)]
    return Curve(name, points)


_TIMES = {f"way {k}": [1e-3 * 0.9**k / 2 ** (n * k / 12) for n in range(11)] for k in range(12)}
_CURVES = [_curve(name, values, is_open=k % 2) for k, (name, values) in enumerate(_TIMES.items())]
_IDEAL = _curve("ideal", [1e-3 / 2**n for n in range(11)])
_SHARES = [_curve(name, [t / v[0] for t in v]) for name, v in _TIMES.items()]
_DRAWN = partial(curves, "A product", "by machine")
CURVES = {
    "curves of 12 ways": partial(
        _DRAWN, [Chart("time", _CURVES, [_IDEAL]), Chart("share", _SHARES, is_share=True)]
    ),
    "curves with gaps": partial(_DRAWN, [Chart("time", [_curve("a", [1, None, 3, 2, None, 1])])]),
    "curves of long names": partial(_DRAWN, [Chart(LONG, [_curve(LONG, [1, 2])])], LONG, [LONG]),
    "curves of 300 counts": partial(
        _DRAWN,
        [Chart("time", [Curve("a", [Point(k, 1 / k) for k in range(1, 301)])], [_IDEAL])],
    ),
    "curves of a count": partial(_DRAWN, [Chart("time", [_curve("a", [1]), _curve("b", [1.2])])]),
    "curves that are alike": partial(
        _DRAWN, [Chart("time", [_curve(name, [1e-9, 1e-9]) for name in "abc"])]
    ),
    "curves of large numbers": partial(
        _DRAWN, [Chart("time", [_curve("a", [1e-9, 1e9, 1e15], 10**12)])]
    ),
    "curves of nothing": partial(_DRAWN, [Chart("time", [_curve("a", [0, None])])]),
}
TIMELINES |= CURVES

TENSOR = partial(gl.sophon.local, (1, 4, 4, 4), "int8", chip=TOY)


def _view(layout, view):
    try:
        last = {"index": tuple(n - 1 for n in layout.shape)} if view == "element" else {}
        return layout.draw(view, **last)
    except gl.LayoutError:
        return None


def _program(name):
    return report_of(name).draw()


AUDIT = """
const near = 0.75, faults = [];
const FILLED = ".cells rect,.flows path,.bars rect,.plate,.marks path,.marks circle";
const boxOf = (e, frame) => {
  const b = e.getBoundingClientRect();
  return { x0: b.left - frame.left, x1: b.right - frame.left,
    y0: b.top - frame.top, y1: b.bottom - frame.top, e };
};
// What of a text is ink: its line's box is higher than its letters.
const inked = (box) => {
  const cut = (box.y1 - box.y0) * 0.14;
  return { ...box, y0: box.y0 + cut, y1: box.y1 - cut };
};
const crosses = (a, b, by = near) =>
  a.x0 + by < b.x1 && b.x0 + by < a.x1 && a.y0 + by < b.y1 && b.y0 + by < a.y1;
const holds = (a, b) => a.x0 - near <= b.x0 && b.x1 <= a.x1 + near
  && a.y0 - near <= b.y0 && b.y1 <= a.y1 + near;
const across = (boxes, others, report) => {
  const sorted = [...others].sort((a, b) => a.x0 - b.x0);
  for (const a of boxes) {
    for (const b of sorted) {
      if (b.x0 >= a.x1) break;
      if (a.e !== b.e && crosses(a, b)) report(a, b);
    }
  }
};
// The straight lines of a path, as boxes without width or without height, on the page.
function segments(path, frame) {
  const found = [], m = path.getScreenCTM();
  let x = 0, y = 0, from = [0, 0];
  for (const [, kind, rest] of path.getAttribute("d").matchAll(/([MHVCz])([^MHVCz]*)/g)) {
    const n = rest.trim().split(/[ ,]+/).map(Number);
    const [i, j] = [x, y];
    if (kind === "M") { [x, y] = n; from = [x, y]; continue; }
    if (kind === "C") { [x, y] = n.slice(-2); continue; }
    if (kind === "H") x = n[0];
    if (kind === "V") y = n[0];
    if (kind === "z") [x, y] = from;
    found.push({ x0: Math.min(i, x) + m.e - frame.left, x1: Math.max(i, x) + m.e - frame.left,
      y0: Math.min(j, y) + m.f - frame.top, y1: Math.max(j, y) + m.f - frame.top, e: path });
  }
  return found;
}
function audit(svg) {
  const bad = (what, ...said) => faults.push([svg.closest("div").id, what, ...said]);
  const words = (box) => box.e.textContent;
  const frame = svg.getBoundingClientRect();
  const all = (selector, root = svg) => [...root.querySelectorAll(selector)];
  const boxes = (selector, root = svg) => all(selector, root).map((e) => boxOf(e, frame));
  const texts = boxes("text").map(inked);
  const whole = { x0: 0, y0: 0, x1: frame.width, y1: frame.height };
  for (const box of [...texts, ...boxes("text~rect,.cells,.plates,.flows,.bars,.cards,.line2")]) {
    if (!holds(whole, box)) bad("leaves the frame", words(box).slice(0, 40));
  }
  across(texts, texts, (a, b) => {
    if (words(a) < words(b)) bad("overprints", words(a), words(b));
  });
  const swatches = boxes(".swatch");
  across(texts, swatches, (a) => bad("stands on a swatch", words(a)));
  const panels = [...svg.children].filter((e) => e.tagName === "g");
  const tables = panels.flatMap((g) => boxes(".cells", g));
  across(tables, tables, () => bad("two panels overlap"));
  const outside = texts.filter((b) => !b.e.closest(".labels"));
  across(outside, [...tables, ...boxes(".flows path,.bars rect,.marks path,.marks circle")],
    (a) => bad("stands on a picture", words(a)));
  for (const panel of panels) auditPanel(panel, frame, boxes, all, bad);
  for (const panel of panels) auditCards(panel, frame, boxes, all, bad);
  auditLegend(svg, swatches, all, bad);
}
function auditPanel(panel, frame, boxes, all, bad) {
  const cells = boxes(".cells rect", panel);
  if (!cells.length) return;
  const labels = boxes(".labels text", panel).map(inked);
  for (const label of labels) {
    const [x, y] = [(label.x0 + label.x1) / 2, (label.y0 + label.y1) / 2];
    const own = cells.find((c) => c.x0 <= x && x <= c.x1 && c.y0 <= y && y <= c.y1);
    if (!own || !holds(own, label)) bad("a label clips", label.e.textContent);
  }
  const lines = all("path", panel).flatMap((e) => segments(e, frame));
  const plates = boxes(".plates rect", panel);
  for (const label of labels) {
    const bare = !plates.some((plate) => holds(plate, label));
    if (bare && lines.some((line) => crosses(line, label, 0.2))) {
      bad("a line crosses", label.e.textContent);
    }
  }
  const [table] = boxes(".cells", panel);
  const [names, columns, rows] = all(".ticks", panel);
  const ends = (ticks, low, high, first, last) => {
    const found = boxes("text", ticks).map((b) => (b[low] + b[high]) / 2);
    const sizes = cells.map((c) => [c[low], c[high]]);
    // A tick is in the middle of a single position, or of the slots of a device.
    const half = (edge, k) => near + (panel.parentNode.parentNode.id.startsWith("fold")
      ? (last - first) / found.length
      : Math.max(...sizes.filter((s) => Math.abs(s[k] - edge) < near).map((s) => s[1] - s[0]))) / 2;
    if (!found.length) return;
    const [a, b] = [Math.min(...found), Math.max(...found)];
    if (a > first + half(first, 0) || b < last - half(last, 1)) {
      bad("an axis has no number at an end", ticks.textContent);
    }
  };
  ends(columns, "x0", "x1", table.x0, table.x1);
  ends(rows, "y0", "y1", table.y0, table.y1);
}
function auditLegend(svg, swatches, all, bad) {
  const entries = swatches.map((b) => [b.e.getAttribute("class").split(" ")[1],
    b.e.nextElementSibling?.textContent]);
  for (const k of [0, 1]) {
    const seen = entries.map((entry) => entry[k]);
    if (new Set(seen).size !== seen.length) bad("the legend says a thing twice", seen.join("; "));
  }
  const drawn = new Set(all(FILLED).map((e) => fillOf(e)));
  for (const [fill, text] of entries) {
    if (!drawn.has(fill)) bad("the legend has what is not drawn", text);
  }
  const named = new Set(entries.map(([fill]) => fill));
  for (const fill of new Set(all(".cells rect,.plate").map(fillOf))) {
    if (fill !== "paper" && !named.has(fill)) bad("a colour has no meaning", fill);
  }
}
// Cards hold their texts, stand apart, and no line runs through one.
function auditCards(panel, frame, boxes, all, bad) {
  const cards = boxes(".frame", panel);
  across(cards, cards, () => bad("two cards overlap"));
  for (const card of cards) {
    for (const text of boxes("text", card.e.parentNode).map(inked)) {
      if (!holds(card, text)) bad("a text leaves its card", text.e.textContent);
    }
  }
  for (const path of all(".cards>.line1", panel)) {
    const m = path.getScreenCTM(), line = path.cloneNode();
    // One line at a time: to find a point takes as long as the path has parts before it.
    for (const d of path.getAttribute("d").match(/M[^M]*/g)) {
      line.setAttribute("d", d);
      const on = crossed(line, m, frame, cards);
      if (on) bad("a line crosses a card", on.e.parentNode.textContent.slice(0, 40));
    }
  }
}
function crossed(line, m, frame, cards) {
  const length = line.getTotalLength();
  for (let at = 0; at < length; at += 5) {
    const point = line.getPointAtLength(at).matrixTransform(m);
    const [x, y] = [point.x - frame.left, point.y - frame.top];
    const on = cards.find((c) => c.x0 + 2 < x && x < c.x1 - 2 && c.y0 + 2 < y && y < c.y1 - 2);
    if (on) return on;
  }
}
const fillOf = (e) => e.getAttribute("class").split(" ")[0];
// The fills of one drawing, as one theme shows them: the grounds of hatches too.
function auditColours(svg) {
  const shown = new Map();
  const hatched = (fill) => ["pad", "mix"].includes(fill);
  for (const e of svg.querySelectorAll(FILLED)) {
    // Nothing is drawn on paper; stripes of several things are on it too.
    if (fillOf(e) !== "paper" && !shown.has(fillOf(e))) shown.set(fillOf(e), e);
  }
  const seen = new Map();
  for (const [fill, e] of shown) {
    const ground = hatched(fill) ? svg.querySelector(`.${fill}-ground`) : e;
    const colour = getComputedStyle(ground).fill;
    if (seen.has(colour)) faults.push([svg.closest("div").id, "two fills are alike", fill]);
    seen.set(colour, fill);
  }
}
const drawings = document.querySelectorAll("svg");
for (const svg of drawings) audit(svg);
for (const light of ["true", "false"]) {
  document.body.dataset.jpThemeLight = light;
  for (const svg of drawings) auditColours(svg);
}
document.getElementById("output").textContent = JSON.stringify(faults);
for (const svg of drawings) svg.remove();
"""


def faults(drawings, folder):
    """What a browser finds wrong with (name, drawing) pairs: (name, what, texts ...)."""
    shown = "".join(f'<div id="{name}">{drawing.svg}</div>' for name, drawing in drawings)
    style = "<style>svg{max-width:none!important;display:block}</style>"
    script = f'<pre id="output"></pre><script type="module">{AUDIT}</script>'
    page = f'<!doctype html><meta charset="utf-8">{style}<body>{shown}{script}'
    found = output(browse(page, folder, timeout=600))
    return list(dict.fromkeys(map(tuple, found)))
