"""The explorer: its page's arithmetic, run by a real browser, against the library; and the page.

The page says of a few hundred random layouts where every element lies and what every position
holds. The library's index map, padding, bytes and text judge it.
"""

import html
import itertools
import json
import random
import re
import shutil
import subprocess
import warnings
from importlib.resources import files

import numpy as np
import pytest
import tiers
from browser import CHROMIUM, browse, needs_chromium, output
from hypothesis import HealthCheck, Phase, given, settings
from random_layouts import BITS, cases

import gridlayout as gl
from gridlayout.dtypes import has_zero
from gridlayout.explorer import page
from gridlayout.explorer.parameters import MAX_TABLE, facts, parameters_of

# The document's default collapse, whatever it wastes, is among what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:the default collapse:gridlayout.LayoutWarning")

NODE = shutil.which("node")
needs_engine = pytest.mark.skipif(
    not (CHROMIUM or NODE), reason="neither Chromium nor Node is there to run the page's arithmetic"
)
TOY = gl.sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
DOCUMENT = gl.GridLayout((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32))

# What the harness asks of each layout: everything where it is small, else some places.
HARNESS = """
function all(given) {
  const layout = layoutOf(given.parameters, { ...known, given: given.oob });
  const count = (n) => Array.from({ length: n }, (_, k) => k);
  const total = layout.physicalShape.reduce((a, b) => a * b, 1);
  const indices = given.indices ?? count(layout.size).map((n) => unflat(n, layout.shape));
  const physical = given.physical ?? count(total).map((n) => unflat(n, layout.physicalShape));
  const cores = given.indices ? [] : count(layout.cores);
  return {
    physicalShape: layout.physicalShape,
    text: layout.text,
    python: layout.python,
    bytesPerCore: layout.bytesPerCore,
    nbytes: layout.nbytes,
    padding: layout.padding,
    clash: layout.clash,
    paddingPerCore: cores.map((core) => layout.paddingOf(unflat(core, layout.coreShape))),
    located: indices.map((index) => layout.locate(index)),
    held: physical.map((position) => layout.logicalIndex(position)),
  };
}
function answer(given) {
  try {
    return all(given);
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    return { error: error.message, field: error.field };
  }
}
const answers = JSON.stringify(asked.map(answer));
"""


def ask(asked, folder):
    """What the page's arithmetic answers, in Chromium, or in Node where there is none."""
    data = f"const known = {json.dumps(facts(DOCUMENT))}, asked = {json.dumps(asked)};"
    assert page.SCRIPTS[-4:] == ("picture.js", "fields.js", "summary.js", "form.js")
    names = page.SCRIPTS[:-4]
    return run(names, f"{data}\n{HARNESS}", folder)


def run(names, script, folder):
    """The JSON text `answers` that a script leaves after the page's files of these names."""
    texts = [files("gridlayout.explorer").joinpath(name).read_text("utf-8") for name in names]
    program = "\n".join([*texts, script])
    if not CHROMIUM:
        path = folder / "harness.mjs"
        path.write_text(f"{program}\nconsole.log(answers);", encoding="utf-8")
        done = subprocess.run([NODE, path], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    show = "document.getElementById('output').textContent = answers;"
    script = f'<script type="module">{program}\n{show}</script>'
    return output(browse(f'<!doctype html><pre id="output"></pre>{script}', folder))


# -- random layouts --------------------------------------------------------------------------------


def with_padding_value(layout, rng):
    kind = layout.dtype.kind
    values = [None, None, "zero", "one", "inf", "neginf"]
    if not has_zero(layout.dtype):
        values.remove("zero")
    values += [7, -1] if kind == "i" else [0.1, float("nan"), -0.0] if kind == "f" else []
    return layout.with_oob(rng.choice(values))


def grid_layouts(count):
    """(layout, its collapse intervals or None), the map's terms in the order of the dims."""
    found = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def collect(case):
        _, arguments = case
        layout = gl.GridLayout(**arguments)
        if layout.linear.is_linear():
            rows = layout.linear.coefficients()
            dims = ", ".join(f"d{d}" for d in range(layout.ndim))
            sums = [
                " + ".join([*(f"d{d} * {s}" for d, s in enumerate(strides)), str(offset)])
                for strides, offset in rows
            ]
            layout = layout.replace(linear=f"({dims}) -> ({', '.join(sums)})")
            found.append((layout, arguments.get("collapse")))

    collect()
    return found


def sophon_layout(rng):
    """A tensor over few NPUs; user strides may overlap."""
    npus = rng.randint(1, 5)
    chip = gl.sophon.Chip(npus, 1024, rng.choice([16, 64, 128]), rng.choice([None, 4]))
    shape = [rng.randint(1, 6), rng.randint(1, 7), rng.randint(1, 4), rng.randint(1, 4)]
    arguments = {"start": rng.randrange(npus) * 1024 + rng.randrange(3) * 128, "chip": chip}
    if rng.random() < 0.5:
        arguments["layout"] = rng.choice(["aligned", "compact", "line_aligned"])
    else:
        arguments["strides"] = [rng.choice(some) for some in ([0, 24, 60], [0, 12, 5], [4, 3], [1])]
        extents = (shape[0], 0, *shape[2:])  # 99 where the stride makes no sense
        pairs = zip(arguments["strides"], extents, strict=True)
        arguments["strides"] = [99 if n == 1 else stride for stride, n in pairs]
    dtype, modes = rng.choice(
        [("int8", ["4N"]), ("int16", ["2N"]), ("float32", ["2IC"]), (rng.choice([*BITS]), [])]
    )
    storage = rng.choice([None, *modes])
    lanes = rng.choice([None, None, 2]) if storage is None else None
    arguments["allocation"] = rng.choice([None, None, 12000])
    return gl.sophon.local(shape, dtype, storage=storage, lanes=lanes, **arguments)


def shape_of(rng, most=6):
    return tuple(rng.choice([0, 1, 2, 3, 5, most]) or 1 for _ in range(rng.randint(0, 4)))


def tile_of(rng):
    return rng.choice([None, None, (1, 2), (2, 4), (4, 4), (3, 5)])


def aligned(rng, make, **arguments):
    """With an alignment of rows, where the tile allows it."""
    for row_alignment in (rng.choice([1, 2, 8, 16]), None):
        try:
            return make(**arguments, row_alignment=row_alignment)
        except gl.LayoutError:
            pass
    raise AssertionError(arguments)


def ttnn_layout(rng):
    grid = (rng.choice([1, 2, 3, 13]), rng.choice([1, 2, 3]))
    return aligned(
        rng,
        gl.tenstorrent.ttnn,
        shape=shape_of(rng),
        dtype=rng.choice([*BITS]),
        grid=grid,
        tile=tile_of(rng),
        buffer_type=rng.choice(["l1", "l1_small", "trace"]),
    )


def document_layout(rng):
    shape = shape_of(rng)
    width, rows, stride = (*shape, 1)[-1 if not shape else len(shape) - 1], 1, [1]
    width += rng.choice([0, 0, 2])
    for n in reversed(shape[:-1]):
        stride.insert(0, rows * width)
        rows = rows * n + rng.choice([0, 0, 3])
    arguments = {"shape": shape, "dtype": rng.choice([*BITS]), "tile": tile_of(rng)}
    if shape and rng.random() < 0.6:
        arguments["stride"] = stride
    if rng.random() < 0.6:
        arguments["grid"] = (rng.randint(1, 4), rng.randint(1, 3))
    else:
        arguments["shard_shape"] = (rng.randint(1, 9), rng.randint(1, 6))
    return aligned(rng, gl.tenstorrent.ttnn_document, **arguments)


def metal_layout(rng):
    """With alignments that its grid divides, in some random intervals."""
    shape, tile = shape_of(rng), tile_of(rng)
    rank = len(shape)
    intervals = rng.choice([None, [], [(0, rank)], [(0, 1)], [(0, -1)]]) if rank > 2 else None
    spans = gl.tenstorrent.metal(shape, collapsed_intervals=intervals).collapsed_intervals
    alignments = list(gl.tenstorrent.tile_alignments(shape, spans, tile or (1, 1)))
    for d in range(rank):
        if rng.random() < 0.3:
            alignments[d] *= rng.choice([1, 2, 3])
    made = {"dim_alignments": alignments, "collapsed_intervals": intervals, "tile": tile}
    for grid in (tuple(rng.choice([1, 1, 2, 3]) for _ in range(max(rank, 2))), None):
        try:
            return gl.tenstorrent.metal(shape, rng.choice([*BITS]), grid=grid, **made)
        except gl.LayoutError:
            continue
    return gl.tenstorrent.metal(shape, collapsed_intervals=intervals)


def xla_layout(rng):
    shape = shape_of(rng)
    order = rng.sample(range(len(shape)), len(shape))
    tiles = []
    for _ in range(rng.randint(0, 2)):
        sizes = [rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(1, 3))]
        if len(sizes) > 1 and rng.random() < 0.3:
            sizes[0] = gl.xla.COMBINE
        tiles.append(sizes)
    more = {"tail_alignment": rng.choice([1, 1, 7]), "memory_space": rng.choice([0, 0, 2])}
    more |= {"element_bits": rng.choice([0, 0, 4]), "index_type": rng.choice([None, "u32"])}
    return gl.xla.layout(shape, rng.choice([*BITS]), order, tiles, **more)


MAKERS = (ttnn_layout, document_layout, metal_layout, xla_layout)


@pytest.fixture(scope="module")
def layouts():
    rng = random.Random(4)
    found = [(with_padding_value(layout, rng), c) for layout, c in grid_layouts(330)]
    found += [(with_padding_value(sophon_layout(rng), rng), None) for _ in range(150)]
    for make in MAKERS:
        found += [(with_padding_value(make(rng), rng), None) for _ in range(120)]
    assert sum(isinstance(layout, gl.GridLayout) for layout, _ in found) > 200
    assert sum(layout.is_scatter for layout, _ in found) > 40
    assert sum("allocation=" in str(layout) for layout, _ in found) > 30
    return tiers.few(found, 300)


def asked_of(layout, **more):
    oob = facts(layout)["given"]
    return {"parameters": parameters_of(layout), "oob": oob, **more}


def check_sizes(layout, answer):
    assert "error" not in answer, (layout, answer)
    assert tuple(answer["physicalShape"]) == layout.physical_shape
    assert answer["bytesPerCore"] == layout.bytes_per_core
    assert answer["nbytes"] == layout.nbytes
    assert answer["text"] == str(layout)
    assert gl.parse(answer["text"]) == layout
    assert answer["python"].startswith("gl.")
    assert eval(answer["python"], {"gl": gl}) == layout


def check_location(layout, index, found):
    where = layout.locate(index)
    assert tuple(found["core"]) == where.core
    assert tuple(found["local"]) == where.local
    assert (found["offset"], found["byte"]) == (where.offset, where.byte)
    assert tuple(found["physical"]) == where.core + where.local


@needs_engine
def test_the_page_counts_as_the_library_does(layouts, tmp_path):
    answers = ask([asked_of(layout) for layout, _ in layouts], tmp_path)
    clashes = 0
    for (layout, _), answer in zip(layouts, answers, strict=True):
        check_sizes(layout, answer)
        assert answer["paddingPerCore"] == layout.padding_per_core().ravel().tolist()
        assert answer["padding"] == int(layout.padding_mask().sum())
        indices = list(itertools.product(*map(range, layout.shape)))
        columns = np.array(indices, np.int64).reshape(len(indices), layout.ndim).T
        mapped = np.broadcast_arrays(*layout.index_map(*columns), np.empty(len(indices)))[:-1]
        rank = len(layout.physical_shape)
        mapped = np.array(mapped, np.int64).reshape(rank, len(indices))
        places = [tuple(p) for p in mapped.T.tolist()]
        assert [tuple(found["physical"]) for found in answer["located"]] == places
        for index, found in list(zip(indices, answer["located"], strict=True))[::17]:
            check_location(layout, index, found)
        holders = {}
        for index, place in zip(indices, places, strict=True):
            holders.setdefault(place, []).append(index)
        positions = itertools.product(*map(range, layout.physical_shape))
        for position, held in zip(positions, answer["held"], strict=True):
            assert held is None if position not in holders else tuple(held) in holders[position]
        assert (answer["clash"] is None) == (len(holders) == len(indices))
        if answer["clash"]:
            clashes += 1
            one, other = map(tuple, answer["clash"])
            assert one != other
            assert layout.locate(one) == layout.locate(other)
    assert clashes > (20 if tiers.ALL else 7)


@needs_engine
def test_collapse_intervals_give_the_same_layout(layouts, tmp_path):
    chosen = [(layout, pairs) for layout, pairs in layouts if pairs is not None]
    assert len(chosen) > (30 if tiers.ALL else 15)
    asked = [asked_of(layout, indices=[], physical=[]) for layout, _ in chosen]
    for question, (_, pairs) in zip(asked, chosen, strict=True):
        question["parameters"].update(rows=None, collapse=pairs)
    for (layout, _), answer in zip(chosen, ask(asked, tmp_path), strict=True):
        check_sizes(layout, answer)


LARGE = [
    gl.GridLayout((4096, 3001), "bfloat16", grid=(7, 5), tile=(32, 32), face=(16, 16)),
    gl.GridLayout((70000, 90001), "float32", grid=(64, 48), tile=(32, 32), tile_format="bfp_bf8"),
    gl.GridLayout((12, 700, 900), "int4", grid=(5, 6), linear="(d0,d1,d2)->(d0*777+d1,-d2+899)"),
    gl.GridLayout((3, 2**20, 2**25), "uint8", grid=(3, 7, 11), collapse=[], memory_space="dram"),
    gl.sophon.local((300, 1000, 70, 90), "int8", storage="4N", start=5 * 2**19),
    gl.sophon.local((40, 333, 56, 57), "float64", "line_aligned", chip=gl.sophon.BM1688),
    gl.GridLayout((90001, 7001), "bfloat16", grid=(7, 5), shard_shape=(13000, 1500)),
    gl.GridLayout((90001, 7001), "bfloat16", grid=(7, 5), row_alignment=64),
    gl.tenstorrent.ttnn((7, 4097, 3001), "float32", grid=(13, 1), tile=(32, 32)),
    gl.tenstorrent.ttnn_document((7, 4000, 3001), stride=(2**24, 4096, 1), grid=(8, 8)),
    gl.tenstorrent.metal((7, 4097, 3001), grid=(7, 1), tile=(32, 32), tile_format="bfp_bf8"),
    gl.parse("bf16[7,4097,3001]{1,2,0:T(8,128)(2,1)L(4096)}"),
]


@needs_engine
def test_large_layouts_are_counted_exactly(tmp_path):
    rng = random.Random(5)
    asked = []
    for layout in LARGE:
        some = [[rng.randrange(n) for n in layout.shape] for _ in range(20)]
        places = [[rng.randrange(n) for n in layout.physical_shape] for _ in range(20)]
        last = [n - 1 for n in layout.shape]
        asked.append(asked_of(layout, indices=[*some, last], physical=places))
    for layout, question, answer in zip(LARGE, asked, ask(asked, tmp_path), strict=True):
        check_sizes(layout, answer)
        assert answer["padding"] == np.prod(layout.physical_shape) - layout.size
        for index, found in zip(question["indices"], answer["located"], strict=True):
            check_location(layout, index, found)
        for position, held in zip(question["physical"], answer["held"], strict=True):
            expected = layout.logical_index(position)
            assert held is None if expected is None else tuple(held) == expected


@needs_engine
def test_numbers_are_rounded_as_in_python(tmp_path):
    shares = [100 * (k / total) for total in (64, 2000, 3001) for k in range(total)]
    asked = json.dumps([[n, d] for n in shares for d in (1, 2)])
    script = f"const answers = JSON.stringify({asked}.map(([n, d]) => rounded(n, d)));"
    found = run(["summary.js"], script, tmp_path)
    assert found == [f"{n:.{d}f}" for n in shares for d in (1, 2)]


GRID, LOCAL = DOCUMENT, gl.sophon.local((2, 3, 4, 5), "int8", chip=TOY)
TTNN = gl.tenstorrent.ttnn((12, 12, 16), grid=(2, 1), tile=(32, 32))
STRIDED = gl.tenstorrent.ttnn_document((12, 12, 16), grid=(2, 1), tile=(32, 32))
METAL = gl.tenstorrent.metal((3, 43, 7), grid=(6, 1), tile=(32, 32))
XLA = gl.parse("f32[3,5]{1,0:T(2,2)}")
REFUSED = {
    "grid 0": (GRID, {"grid": [0, 2]}, "grid"),
    "grid rank": (
        *(GRID, {"rows": None, "collapse": [[0, -1]], "grid": [2], "tile": None}),
        "collapse",
    ),
    "rows of another rank": (GRID, {"grid": [2], "tile": None}, "strides"),
    "tile 0": (GRID, {"tile": [0, 2]}, "tile"),
    "tile rank": (GRID, {"tile": [2, 2, 2]}, "tile"),
    "face": (GRID, {"face": [5, 16]}, "face"),
    "tile format": (GRID, {"tile": [16, 16], "tile_format": "bfp_bf4"}, "tile_format"),
    "interval": (GRID, {"rows": None, "collapse": [[0, 3]]}, "collapse"),
    "overlap": (GRID, {"rows": None, "collapse": [[0, 2], [1, 2]]}, "collapse"),
    "negative": (GRID, {"rows": [{"strides": [-1, 1], "offset": 3}] * 2}, "strides"),
    "oob": (GRID, {"oob": "seven"}, "oob"),
    "inherited name": (GRID, {"oob": "toString"}, "oob"),
    "oob of a type": (LOCAL, {"oob": "128"}, "oob"),
    "rank": (LOCAL, {"shape": [2, 3, 4]}, "shape"),
    "extent": (LOCAL, {"shape": [2, 3, 4, 0]}, "shape"),
    "start NPU": (LOCAL, {"npu": 4}, "npu"),
    "start": (LOCAL, {"offset": 1024}, "offset"),
    "alignment": (LOCAL, {"offset": 64}, "offset"),
    "storage": (LOCAL, {"storage": "2N"}, "storage"),
    "strides": (LOCAL, {"layout": None, "strides": [1, 2]}, "strides"),
    "shard": (GRID, {"shard": [17, 32]}, "shard"),
    "shard rank": (GRID, {"shard": [18]}, "shard"),
    "row alignment": (GRID, {"row_alignment": 3}, "row_alignment"),
    "row alignment of a tile": (GRID, {"tile": [3, 3], "row_alignment": 16}, "row_alignment"),
    "ttnn, grid": (TTNN, {"grid": [2, 1, 1]}, "grid"),
    "ttnn, tile": (TTNN, {"tile": [32]}, "tile"),
    "ttnn, tile format": (TTNN, {"tile": None, "tile_format": "bfp_bf8"}, "tile_format"),
    "ttnn, interleaved": (TTNN, {"memory_layout": "interleaved"}, "memory_layout"),
    "ttnn, width": (TTNN, {"memory_layout": "width_sharded"}, "memory_layout"),
    "ttnn, host": (TTNN, {"buffer_type": "system_memory"}, "buffer_type"),
    "ttnn, dram": (
        *(TTNN, {"memory_layout": "block_sharded", "buffer_type": "dram"}),
        "memory_layout",
    ),
    "document, stride": (STRIDED, {"stride": [100, 16, 1]}, "stride"),
    "document, row": (STRIDED, {"stride": [200, 16, 1]}, "stride"),
    "document, last stride": (STRIDED, {"stride": [400, 32, 2]}, "stride"),
    "document, shard": (STRIDED, {"shard": [71, 16]}, "shard"),
    "document, shard of 0": (STRIDED, {"grid": None, "shard": [0, 16]}, "shard"),
    "metal, grid": (METAL, {"grid": [4, 1]}, "grid"),
    "metal, grid rank": (METAL, {"grid": [6]}, "grid"),
    "metal, tile": (METAL, {"alignments": [1, 1, 1]}, "alignments"),
    "metal, alignments": (METAL, {"alignments": [1, 32]}, "alignments"),
    "metal, lost dim": (METAL, {"intervals": [[1, 3]]}, "intervals"),
    "metal, overlap": (METAL, {"intervals": [[0, 2], [1, 3]]}, "intervals"),
    "metal, interleaved": (METAL, {"memory_layout": "interleaved"}, "memory_layout"),
    "xla, order": (XLA, {"order": [0, 0]}, "order"),
    "xla, tail": (XLA, {"tail_alignment": 0}, "tail_alignment"),
    "too large": (GRID, {"shape": [2**40, 2**30]}, None),
    "overlap, large": (
        *(LOCAL, {"shape": [MAX_TABLE + 1, 1, 1, 1], "layout": None, "strides": [0] * 4}),
        "strides",
    ),
}


@needs_engine
def test_the_page_says_what_is_wrong_and_where(tmp_path):
    asked = [
        {"parameters": parameters_of(layout) | change, "oob": None, "indices": [], "physical": []}
        for layout, change, _ in REFUSED.values()
    ]
    answers = ask(asked, tmp_path)
    for (name, (*_, field)), answer in zip(REFUSED.items(), answers, strict=True):
        assert answer.get("error"), name
        assert answer.get("field") == field, (name, answer)


# -- the page --------------------------------------------------------------------------------------

# Uses the page by its fields, keys and pointer, and notes what it shows.
USE = """
const $ = (id) => document.getElementById(id);
const seen = {};
const note = (name) => (seen[name] = {
  readout: $("readout").textContent, logical: $("logical").value, physical: $("physical").value,
  text: $("text").textContent, python: $("python").textContent, error: $("error").textContent,
  sizes: $("sizes").textContent, stale: $("results").className,
  invalid: [...document.querySelectorAll("[aria-invalid]")].map((field) => field.id),
  memory: $("memory-caption").textContent + " " + $("memory-note").textContent,
  padding: $("memory").querySelectorAll("rect.pad").length,
  cells: $("tensor").querySelectorAll(".cells rect").length,
});
const type = (field, value) => {
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
const press = (id, ...keys) => keys.forEach((key) =>
  $(id).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
note("start");
press("tensor", "ArrowDown", "ArrowRight", "ArrowRight"); note("arrows");
press("tensor", "End"); note("end");
press("memory", "PageDown", "Home", "ArrowDown"); note("memory");
press("memory", "End"); note("padding");
type($("logical"), "20, 40"); note("typed");
type($("logical"), "20, 63"); note("outside");
type($("physical"), "2, 1, 0, 0, 31, 31"); note("physical");
const cell = $("tensor").querySelectorAll(".cells rect")[5].getBoundingClientRect();
$("tensor").dispatchEvent(new PointerEvent("pointermove",
  { clientX: cell.x + cell.width / 2, clientY: cell.y + cell.height / 2 })); note("pointed");
type($("grid"), "3, 0"); note("refused");
type($("grid"), "2, 2"); note("regrid");
type($("rows").querySelector("input"), "2"); note("bumped");
type($("collapse"), "0:-1"); note("back");
type($("shape"), "0, 5"); press("tensor", "ArrowDown"); press("memory", "End"); note("empty");
type($("shape"), "4096, 5000"); note("large");
for (const name of ["ttnn", "ttnn_document", "metal", "xla", "sophon"]) {
  const chosen = document.querySelector(`input[value="${name}"]`);
  chosen.checked = true; chosen.dispatchEvent(new Event("input", { bubbles: true }));
  note(name);
}
type($("npu"), "3"); press("tensor", "PageDown"); note("npu");
Object.defineProperty(navigator, "clipboard",
  { value: { writeText: async (text) => { seen.copied = text; } } });
document.querySelector('[data-copies="python"]').click();
const unnamed = [...document.querySelectorAll("input, select, svg[tabindex]")]
  .filter((e) => !e.labels?.length && !e.ariaLabel && !e.getAttribute("aria-labelledby"));
seen.unnamed = unnamed.map((e) => e.outerHTML);
const pre = document.createElement("pre");
pre.id = "output";
pre.textContent = JSON.stringify(seen);
document.body.append(pre);
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    if not CHROMIUM:
        pytest.skip("there is no Chromium")
    script = f'<script type="module">{USE}</script></body>'
    markup = gl.explore(DOCUMENT, open_browser=False).html.replace("</body>", script)
    return output(browse(markup, tmp_path_factory.mktemp("use")))


def test_the_page_shows_its_layout(seen):
    start = seen["start"]
    assert start["text"] == str(DOCUMENT)
    assert start["python"] == f"gl.{DOCUMENT!r}"
    assert "2,048 B" in start["sizes"]
    assert "2,805 elements, 45.7%" in start["sizes"]
    assert start["cells"] == DOCUMENT.size
    assert start["padding"] == DOCUMENT.padding_per_core()[0, 0]
    assert (start["error"], start["invalid"], start["stale"]) == ("", [], "")


def test_keys_and_pointer_move_the_index_in_both_directions(seen):
    def at(name):
        return tuple(map(int, seen[name]["logical"].split(", ")))

    assert at("arrows") == (1, 2)
    assert at("end") == (1, 62)
    # Element (1, 62) is on core (0, 1); the next core's second row of 32 comes then.
    assert seen["memory"]["physical"] == "1, 0, 0, 0, 1, 0"
    assert at("memory") == DOCUMENT.logical_index((1, 0, 0, 0, 1, 0))
    assert seen["padding"]["physical"] == "1, 0, 0, 0, 31, 31"
    assert seen["padding"]["logical"] == "padding"
    assert "is padding" in seen["padding"]["readout"]
    assert "core (1, 1), offset 72, byte 144" in seen["typed"]["readout"]
    assert seen["outside"]["readout"] == "logical index (20, 63) is outside (53, 63)"
    assert seen["outside"]["invalid"] == ["logical"]
    assert seen["physical"]["logical"] == "padding"
    assert at("pointed") == (0, 5)


def test_fields_change_the_layout_and_refusals_name_the_field(seen):
    refused = seen["refused"]
    assert refused["error"] == "grid: 0 must be >= 1"
    assert (refused["invalid"], refused["stale"]) == (["grid"], "stale")
    layout = DOCUMENT.replace(grid=(2, 2))
    assert (seen["regrid"]["text"], seen["regrid"]["stale"]) == (str(layout), "")
    bumped = layout.replace(linear="(d0, d1) -> (d0 * 2, d1)")
    assert seen["bumped"]["text"] == str(bumped)
    assert seen["back"]["text"] == str(layout)
    assert seen["empty"]["readout"] == "The tensor is empty: every position is padding."
    assert seen["large"]["text"] == str(layout.replace(shape=(4096, 5000), linear=layout.linear))
    assert 0 < seen["large"]["cells"] <= 64 * 64
    assert gl.parse(seen["sophon"]["text"]).start_npu == 1
    moved = gl.parse(seen["npu"]["text"])
    assert moved.start_npu == 3
    assert tuple(map(int, seen["npu"]["physical"].split(", "))) == (
        *moved.locate((0, 1, 0, 0)).core,
        moved.locate((0, 1, 0, 0)).offset,
    )


def test_the_tool_is_for_ttnn_tensor_layout_too():
    """Walkthrough: "this tool was created for TTNN tensor layout"."""
    for layout in (TTNN, STRIDED, METAL, XLA):
        data = re.search(
            r'id="parameters">(.*?)</script>',
            gl.explore(layout, open_browser=False).html,
            re.DOTALL,
        )[1]
        known = json.loads(data)
        assert known["start"] == json.loads(json.dumps(parameters_of(layout)))
        model = known["start"]["model"]
        assert f'name="model" value="{model}"' in files("gridlayout.explorer").joinpath(
            "page.html"
        ).read_text("utf-8")
        assert model in {start["model"] for start in known["facts"]["starts"]}


def test_every_model_has_a_form(seen):
    for name, made in (
        ("ttnn", gl.tenstorrent.TtnnLayout),
        ("ttnn_document", gl.tenstorrent.TtnnDocument),
        ("metal", gl.tenstorrent.MetalLayout),
        ("xla", gl.xla.XlaLayout),
        ("sophon", gl.sophon.LocalLayout),
    ):
        assert isinstance(gl.parse(seen[name]["text"]), made)
        assert seen[name]["error"] == ""


def test_python_is_copied(seen):
    assert seen["copied"] == seen["npu"]["python"]


def test_every_field_has_a_name(seen):
    assert seen["unnamed"] == []


@pytest.mark.skipif(not NODE, reason="there is no Node to read the script")
def test_the_files_of_the_page_are_one_module(tmp_path):
    """Each name is declared in one file only."""
    path = tmp_path / "page.mjs"
    path.write_text("\n".join(map(page._read, page.SCRIPTS)), encoding="utf-8")
    done = subprocess.run([NODE, "--check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_needs_nothing_beside_itself(tmp_path):
    path = tmp_path / "page.html"
    explorer = gl.explore(DOCUMENT, path, open_browser=False)
    text = path.read_text(encoding="utf-8")
    assert explorer.html == text
    assert not re.findall(r"""(?:src|href)=|@import|https?://|\bimport[ (]|fetch\(""", text)
    assert "default-src 'none'" in text
    assert not re.findall(r"\{(?:colours|style|script|parameters)\}", text)


def test_no_text_of_a_layout_becomes_markup():
    name = "</script><script>alert(1)</script><!--{script}&'\""
    layout = gl.sophon.local((2, 3, 4, 5), "int8", chip=gl.sophon.Chip(4, 1024, 128, name=name))
    markup = gl.explore(layout, open_browser=False).html
    assert markup.count("<script") == markup.count("</script>") == 2
    assert "alert(1)</" not in markup
    data = re.search(r'id="parameters">(.*?)</script>', markup, re.DOTALL)[1]
    assert json.loads(data)["start"]["chip"]["name"] == repr(name)


FRAMED = [
    gl.GridLayout((), grid=(1,)),
    gl.GridLayout((11,), "int4", grid=(2,), oob=3),
    gl.GridLayout((0, 4), grid=(2, 2)),
    gl.GridLayout((4, 6), grid=(3, 2), linear="(d0, d1) -> (d0 + d1, d1)"),
    gl.GridLayout((64, 96), tile=(32, 32), tile_format="bfp_bf8", oob=-0.0, memory_space="dram"),
    gl.sophon.local((2, 3, 4, 5), "int32", strides=(0, 20, 5, 1), chip=TOY, lanes=2, oob="neginf"),
    gl.GridLayout((5, 7), grid=(3, 2), shard_shape=(2, 5), row_alignment=32),
    gl.tenstorrent.ttnn((3, 5), "bfloat16", row_alignment=16, oob=0),
    gl.tenstorrent.ttnn((3, 5), memory_layout="height_sharded"),
    gl.tenstorrent.ttnn_document((12, 12, 16), stride=(512, 16, 1), grid=(4, 1), tile=(32, 32)),
    gl.tenstorrent.metal((2, 2, 50, 50), collapsed_intervals=[], tile=(32, 32)),
    gl.parse("bf16[4,8]{0,1:T(2,4)(2,1)S(2)}"),
    gl.parse("f32[6,3,4]{2,1,0:T(*,4)}"),
    gl.parse("f32[]"),
    gl.GridLayout((64, 96), "bfloat16", grid=(2, 2), tile=(32, 32), face=(16, 16)),
    gl.GridLayout((53, 63), "float32", grid=(3, 2), tile=(10, 10), shard_shape=(20, 40)),
    gl.GridLayout((1000, 1290), grid=(8, 9), memory_space="dram"),
    gl.tenstorrent.ttnn((4, 50, 50), "float32", grid=(8, 2), tile=(32, 32)),
    gl.tenstorrent.ttnn((64, 64), tile=(32, 32), buffer_type="dram"),
    gl.tenstorrent.metal((7, 20), "float32", grid=(1, 1), tile=(32, 32)),
    gl.sophon.local((6, 5, 4, 5), "int8", storage="4N", chip=TOY),
    gl.parse("f32[1000,3]{1,0:T(8,128)}"),
    gl.parse("f32[3,5]{0,1}"),
]


@needs_chromium
def test_frames_of_one_notebook_show_their_own_layouts(tmp_path):
    frames = "".join(gl.explore(layout, open_browser=False)._repr_html_() for layout in FRAMED)
    read = """addEventListener("load", () => {
        const texts = [...document.querySelectorAll("iframe")].map((frame) => {
          const $ = (id) => frame.contentDocument.getElementById(id);
          const [summary] = $("results").querySelectorAll("section, dl");
          const rows = [...summary.querySelectorAll("dt, dd")].map((e) => e.textContent);
          return [$("text").textContent, summary.querySelector("h2").textContent, rows];
        });
        document.getElementById("output").textContent = JSON.stringify(texts);
      });"""
    markup = f'<!doctype html>{frames}<pre id="output"></pre><script>{read}</script>'
    known = []
    for layout in FRAMED:
        summary = layout.summary()
        # What fits which chip is asked of the library.
        told = [(name, text) for name, text in summary.rows.items() if name != "fits"]
        known.append([str(layout), summary.title, [word for row in told for word in row]])
    assert output(browse(markup, tmp_path)) == known


PICTURED = {
    "rank 4": gl.GridLayout((2, 3, 64, 128), grid=(2, 4), tile=(32, 32)),
    "4096x4096": gl.GridLayout((4096, 4096), "bfloat16", grid=(8, 8), tile=(32, 32)),
    "16 cores": gl.GridLayout((16, 16), grid=(4, 4), tile=(4, 4)),
    "two tiles": gl.GridLayout((8, 4), grid=(1, 1), tile=(4, 4)),
    "1000x3": gl.GridLayout((1000, 3), grid=(8, 1), tile=(32, 32)),
}
# What a frame shows: numbers, lines, legend, notes, and whether it is as high as its page.
READ_FRAMES = """addEventListener("load", () => {
  const read = (frame) => {
    const $ = (id) => frame.contentDocument.getElementById(id);
    const all = (id, what) => [...$(id).querySelectorAll(what)];
    const classes = (id, what) => [...new Set(all(id, what).map((e) => e.getAttribute("class")))];
    const picture = (id) => ({
      rows: all(id, ".tick.right").map((e) => e.textContent),
      columns: all(id, ".tick:not(.right)").map((e) => e.textContent),
      lines: all(id, ".line").map((e) => e.getAttribute("d")).join(""),
      height: Number($(id).querySelector(".cells rect").getAttribute("height")),
      fills: classes(id, ".cells rect"),
      numbers: all(id, "text:not(.tick)").length,
      note: $(id + "-note").textContent,
    });
    return {
      tensor: picture("tensor"), memory: picture("memory"),
      legend: all("legend", "rect").map((e) =>
        [e.getAttribute("class"), e.closest("span").textContent]),
      words: frame.contentDocument.querySelector("main").textContent,
      hidden: frame.contentDocument.documentElement.scrollHeight - frame.offsetHeight,
    };
  };
  document.getElementById("output").textContent =
    JSON.stringify([...document.querySelectorAll("iframe")].map(read));
});"""


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    if not CHROMIUM:
        pytest.skip("there is no Chromium")
    frames = "".join(
        gl.explore(layout, open_browser=False)._repr_html_() for layout in PICTURED.values()
    )
    style = "<style>body{width:760px}</style>"
    markup = f'<!doctype html>{style}{frames}<pre id="output"></pre><script>{READ_FRAMES}</script>'
    shown = output(browse(markup, tmp_path_factory.mktemp("pictured")))
    return dict(zip(PICTURED, shown, strict=True))


def test_lines_of_the_memory_are_between_tiles(pictured):
    def places(name):
        memory = pictured[name]["memory"]
        found = [float(y) for y in re.findall(r"M48 ([\d.]+)h", memory["lines"])]
        return [(y - 18) / memory["height"] for y in found]

    # 192 rows of 32 in cells of 3 rows; a tile has 32 rows.
    assert places("rank 4") == pytest.approx([32 * k / 3 for k in range(1, 6)])
    assert places("two tiles") == [4]
    assert places("4096x4096") == []  # between 256 tiles they would touch


def test_numbers_stand_at_both_ends_of_the_pictures(pictured):
    def ends(name, picture):
        sides = (pictured[name][picture][side] for side in ("rows", "columns"))
        return [(side[0], side[-1]) for side in sides]

    assert ends("4096x4096", "tensor") == [("0", "4096")] * 2
    assert ends("4096x4096", "memory") == [("0", "8192"), ("0", "31")]
    assert ends("1000x3", "tensor") == [("0", "1000"), ("0", "2")]
    assert ends("16 cores", "tensor") == [("0", "15")] * 2
    assert ends("rank 4", "tensor") == [("0", "63"), ("0", "128")]


def test_the_legend_names_what_is_drawn_and_each_colour_once(pictured):
    for name, seen in pictured.items():
        drawn = {*seen["tensor"]["fills"], *seen["memory"]["fills"]}
        assert {fill for fill, _ in seen["legend"]} == drawn, name
        assert len({text for _, text in seen["legend"]}) == len(drawn), name
    assert dict(pictured["16 cores"]["legend"])["c1"] == "cores (0, 2:4)"
    assert pictured["16 cores"]["tensor"]["lines"]  # between cores of one colour
    assert dict(pictured["4096x4096"]["legend"])["c7"] == "cores (7, :)"


def test_notes_are_of_what_the_pictures_show(pictured):
    for name, seen in pictured.items():
        for picture, words in (("tensor", "are offsets"), ("memory", "are logical indices")):
            assert (words in seen[picture]["note"]) == (seen[picture]["numbers"] > 0), name
        some = ["of them, with its corners" in seen[each]["note"] for each in ("tensor", "memory")]
        assert any(some) == (name in ("4096x4096", "1000x3")), name


def test_a_frame_hides_nothing(pictured):
    assert [name for name, seen in pictured.items() if seen["hidden"] > 0] == []


def test_a_notebook_shows_a_frame_of_the_whole_page():
    explorer = gl.explore(DOCUMENT, open_browser=False)
    shown = explorer._repr_html_()
    (source,) = re.findall(r'^<iframe srcdoc="([^"]*)" [^<>]*></iframe>$', shown)
    assert html.unescape(source) == explorer.html
    assert len(repr(explorer)) < 200


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (gl.mli.tensor((4, 4), "HW", "int8"), "layout.draw() draws every layout"),
        (gl.parse("f32[6,5]{1,0:SC(0:3)}"), "an XLA layout with splits (SC) can't be explored"),
        (gl.sophon.matrix(2, 40, 15, "float32"), "a sophon.matrix can't be explored"),
        (gl.GridLayout((6,), grid=(3,), linear="(d0) -> (d0 mod 3)"), "whose map divides"),
        (gl.GridLayout((2**30, 2**26), grid=(1, 1)), "over 2**53"),
        # XLA stores an int4 in a byte, and aligns the end.
        (gl.xla.layout((2**50,), "int4"), "over 2**53"),
        (gl.xla.layout((8,), "int8", tail_alignment=2**51), "over 2**53"),
        (gl.GridLayout((MAX_TABLE + 1,), grid=(2, 1), linear="(d0) -> (d0, d0)"), "overlap"),
        ("f32[3]", "str can't be explored"),
    ],
)
def test_what_can_not_be_explored_is_refused(layout, words):
    with pytest.raises(gl.LayoutError, match=re.escape(words)):
        gl.explore(layout, open_browser=False)


@pytest.mark.parametrize(
    ("opens", "display", "answer", "opened", "warned"),
    [
        (None, True, True, 1, 0),
        (None, False, True, 0, 0),
        (False, True, True, 0, 0),
        (True, False, True, 0, 1),  # a browser for terminals would wait for keys
        (True, True, False, 1, 1),
    ],
)
def test_a_browser_opens_where_there_is_one(
    monkeypatch, tmp_path, opens, display, answer, opened, warned
):
    calls = []
    monkeypatch.setattr(page, "has_display", lambda: display)
    monkeypatch.setattr(page.webbrowser, "open", lambda url: calls.append(url) or answer)
    monkeypatch.setattr(page.tempfile, "tempdir", str(tmp_path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explorer = gl.explore(DOCUMENT, open_browser=opens)
    assert (len(calls), len(caught)) == (opened, warned)
    assert (explorer.path is not None) == bool(opened or warned)
    if explorer.path:
        assert explorer.path.read_text(encoding="utf-8") == explorer.html
        assert str(explorer.path) in repr(explorer)


def test_a_browser_that_raises_is_no_error(monkeypatch, tmp_path):
    def fail(url):
        raise page.webbrowser.Error("none")

    monkeypatch.setattr(page, "has_display", lambda: True)
    monkeypatch.setattr(page.webbrowser, "open", fail)
    with pytest.warns(UserWarning, match="no browser opened"):
        gl.explore(DOCUMENT, tmp_path / "page.html", open_browser=True)
