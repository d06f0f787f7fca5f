"""Dumps: what `gl.explain` and `python -m gridlayout explain` say of a compiler's text.

Numbers are worked out by hand from the layouts' rules; where a program is the judge, it is another
one: `Layout.locate` for what moves, `collections.Counter` for what is counted.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import pytest
from browser import browse, needs_chromium, output
from hypothesis import given, settings
from jax.sharding import AbstractMesh
from tiers import examples

import gridlayout as gl
from gridlayout.__main__ import main
from gridlayout.costs import fit_of
from gridlayout.dump.moves.move import moved
from gridlayout.dump.pages.page import _SCRIPT
from gridlayout.dump.plan import THRESHOLD, allocated, propose
from gridlayout.dump.text.lines import PIECE
from gridlayout.dump.text.mlir import defines_alias
from gridlayout.dump.values.type_texts import _remembered
from gridlayout.mlir.aliases import MAX_ALIAS_CHARACTERS, MAX_ALIASES, Aliases
from gridlayout.tables.html import html_table
from gridlayout.tables.words import plain
from gridlayout.tenstorrent import BLACKHOLE, WORMHOLE

DUMPS = Path(__file__).parent / "dumps"
ROOT = DUMPS.parents[1]
KIB = 1024


def finding(found, line, op, layout_start=""):
    """The one finding of a line's op whose layout's text begins so."""
    matches = [
        f
        for f in found.findings
        if (f.line, f.op) == (line, op) and str(f.layout).startswith(layout_start)
    ]
    assert len(matches) == 1, matches
    return matches[0]


# -- golden dumps ----------------------------------------------------------------------------------


def test_todays_layouts():
    found = gl.explain(DUMPS / "today.mlir")
    text = (
        "tensor<8x1x96x32xf32, #ttcore.metal_layout<logical_shape = 9x43x7, "
        "dim_alignments = 256x32x32, collapsed_intervals = dense<[[0, 2], [2, 3]]> : "
        "tensor<2x2xi64>, l1, sharded>>"
    )
    worst = found.findings[0]
    assert worst.layout == gl.parse(text)
    assert (worst.line, worst.op, worst.name, worst.count) == (20, "d2m.empty", "%4", 1)
    # 768 x 32 elements of 4 bytes for 9 x 43 x 7 of them.
    assert worst.layout.nbytes == 768 * 32 * 4
    assert worst.data_bytes == 9 * 43 * 7 * 4
    assert worst.wasted_bytes == 98304 - 10836
    assert worst.padding_share == pytest.approx(1 - 2709 / 24576)
    assert worst.expansion_factor == pytest.approx(24576 / 2709)
    assert worst.fit.space == "l1"
    assert worst.fit.free == 1499136 - 1024 - 96 * 32 * 4
    waste = [f.wasted_bytes for f in found.findings]
    assert waste == sorted(waste, reverse=True)
    assert waste[2] == (128 * 128 - 96 * 128) * 4


def test_todays_aliases_names_and_counts():
    found = gl.explain(DUMPS / "today.mlir")
    host, device = (f for f in found.findings if f.line == 15)
    assert (device.name, device.count, device.fit.capacity) == ("%arg1", 1, 12 << 30)
    assert (host.name, host.count, host.last) == ("%arg0", 2, 16)  # made, and read once
    assert host.layout.buffer_type == "system_memory"
    assert host.fit.space == "system"
    assert host.fit.free is None
    device = finding(found, 22, "d2m.empty")
    assert device.layout.grid == (3, 4)
    assert device.layout.bytes_per_core == 4 * KIB
    # Line 24: an alias that nothing defines, after a grid that does not divide its tiles, of which
    # the buffers are known all the same.
    (unknown,) = found.unknown
    assert (unknown.line, unknown.count, found.all_unknown) == (24, 1, 1)
    assert "'#nope" in unknown.reason


def test_todays_moves():
    moves = {m.line: m for m in gl.explain(DUMPS / "today.mlir").moves}
    assert sorted(moves) == [16, 17, 18, 23, 25]
    assert (moves[16].where, moves[16].elements) == ("system to dram", 64 * 128)
    assert (moves[17].where, moves[17].moved_bytes) == ("dram to l1", 32 * KIB)
    # Of 2x4 tiles, those of cores (0, 0) and (1, 0) stay.
    assert (moves[18].elements, moves[18].moved_bytes) == (6 * 1024, 24 * KIB)
    # 64x64 on 2x2 to 32x32 on 3x4: only the first tile is where it was.
    assert moves[23].elements == 96 * 128 - 32 * 32
    assert moves[25].permutation == (1, 0)


def test_documents_layouts():
    found = gl.explain(DUMPS / "document.mlir")
    twice, tiles = found.findings[:2]
    assert (twice.line, twice.layout.nbytes) == (11, 4 * 384 * 96 * 16 * 4)
    assert twice.expansion_factor == 96
    assert not twice.fit
    assert twice.fit.free == 1499136 - 103840 - 384 * 96 * 16 * 4
    # bfp_bf8: 1088 bytes a tile of 1024; 53 * 63 elements would take 3548 of them.
    assert (tiles.line, tiles.layout.bytes_per_core, tiles.layout.nbytes) == (10, 1088, 6528)
    assert tiles.data_bytes == -(-53 * 63 * 1088 // 1024)
    over_lines = finding(found, 3, "func.func")
    assert (over_lines.name, over_lines.layout.tile) == ("%arg0", None)
    assert over_lines.layout.bytes_per_core == 18 * 32 * 4
    (move,) = found.moves
    assert (move.line, move.elements, move.where) == (10, 0, "inside each core")
    assert found.all_unknown == 0


def test_tpus_layouts():
    found = gl.explain(DUMPS / "tpu.hlo.txt")
    fused = finding(found, 10, "fusion")
    assert fused.layout == gl.parse("f32[1000,3]{0,1:T(4,128)}")
    assert (fused.name, fused.count, fused.last, fused.nbytes) == ("fusion", 2, 11, 4 * 1024 * 4)
    wide = finding(found, 9, "parameter")
    assert (wide.count, wide.last, wide.nbytes) == (3, 15, 1000 * 128 * 4)
    assert (wide.function, wide.data_bytes) == ("main", 12000)
    # Fusion bodies and the module's header hold nothing; a view is no row.
    assert {f.line for f in found.findings} == {9, 10, 11, 13, 15}
    assert [(m.op, m.elements, m.where) for m in found.moves] == [
        ("copy-start", 3000, "memory 0 to memory 1"),
        ("transpose", 0, "nothing"),
    ]
    assert [u.text for u in found.unknown] == ["f6e3m2fn[8]{0}"]
    assert all(f.fit is None for f in found.findings)


def test_jax_dump():
    found = gl.explain(DUMPS / "jax_cpu.hlo.txt")
    text = (DUMPS / "jax_cpu.hlo.txt").read_text()
    inside = text[text.index("%fused_computation ") :]
    assert found.mentions == len(re.findall(r"f32\[[0-9,]*\]\{[0-9,]*\}", inside))
    # The entry computation's instructions, one row each, but for bitcasts and tuples.
    entry = text[text.index("ENTRY") :]
    made = re.findall(r"%(\S+) = \S+ (?!bitcast|tuple|get-tuple)[a-z]", entry)
    assert {f.name for f in found.findings} <= set(made)
    assert found.layouts == len(found.findings) == 13
    assert found.nbytes == found.data_bytes
    assert found.moves == ()


def test_dump_of_this_jax():
    import jax
    import jax.numpy as jnp

    lowered = jax.jit(lambda x: jnp.sin(x).T).lower(jax.ShapeDtypeStruct((8, 12), "float32"))
    found = gl.explain(lowered.compile().as_text())
    assert {f.layout.shape for f in found.findings} == {(8, 12), (12, 8)}
    assert found.all_unknown == 0
    # StableHLO states no layouts: nothing found, and nothing that looks like one.
    plain_text = gl.explain(lowered.as_text().splitlines())
    assert (plain_text.layouts, plain_text.all_unknown) == (0, 0)
    assert "read as StableHLO, which states no layouts" in plain_text.note
    assert plain_text.note in str(plain_text)


@pytest.mark.parametrize("name", sorted(path.name for path in DUMPS.iterdir() if path.is_file()))
def test_the_same_from_every_source(name, tmp_path):
    path = DUMPS / name
    found = gl.explain(path)
    with open(path, "rb") as stream:
        of_stream = gl.explain(stream)
    with open(path) as lines:
        of_lines = gl.explain(lines)
    of_text = gl.explain(path.read_text())
    windows = tmp_path / name
    windows.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    of_crlf = gl.explain(windows)
    for other in (of_stream, of_lines, of_text, of_crlf):
        assert other.findings == found.findings
        assert other.moves == found.moves
        assert [u.count for u in other.unknown] == [u.count for u in found.unknown]


def test_every_system_by_its_own_text():
    texts = [
        "f32[3,5]{1,0:T(2,2)}",
        "s32[7]",
        "sophon.local((2, 3, 4, 5), 'float32', layout='compact')",
        "mli.tensor((4, 5, 3), 'HWC', 'int8', mem_stride=None)",
        str(gl.GridLayout((53, 63), grid=(3, 2))),
    ]
    found = gl.explain(texts)
    assert {f.line: f.layout for f in found.findings} == {
        k: gl.parse(text) for k, text in enumerate(texts, 1)
    }
    assert {(f.op, f.name) for f in found.findings} == {("", "")}


# -- aliases ---------------------------------------------------------------------------------------

TTNN = (
    "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, "
    "memref<{}x1x!ttcore.tile<32x32, f32>, #m>, <interleaved>>"
)


def test_aliases_change_from_module_to_module():
    use = "%0 = a.b() : tensor<{}x32xf32, #l>"
    lines = [
        *("#m = #ttnn.buffer_type<l1>", f"#l = {TTNN.format(2)}", use.format(64)),
        *("#m = #ttnn.buffer_type<dram>", f"#l = {TTNN.format(3)}", use.format(96)),
        use.format(64),
    ]
    found = gl.explain(lines)
    # The last line's shape contradicts its alias: what is known are the buffers, 96 rows of them.
    assert {(f.line, f.layout.shape, f.layout.memory, f.nbytes) for f in found.findings} == {
        (3, (64, 32), "l1", 8192),
        (6, (96, 32), "dram", 12288),
        (7, (64, 32), "dram", 12288),
    }


def test_an_alias_that_stops_being_a_layout_is_forgotten():
    use = "%0 = a.b() : tensor<64x32xf32, #l>"
    lines = ["#m = #ttnn.buffer_type<l1>", f"#l = {TTNN.format(2)}", use, "#l = #other.x<1>", use]
    found = gl.explain(lines)
    assert (found.layouts, [(u.line, u.count) for u in found.unknown]) == (1, [(5, 1)])


def test_aliases_that_grow_are_not_followed():
    # Each names the one before it eight times: 8**20 characters if it were written out.
    lines = ["#a0 = #ttcore.x"]
    lines += [f"#a{k} = #ttcore.y<{', '.join([f'#a{k - 1}'] * 8)}>" for k in range(1, 21)]
    found = gl.explain([*lines, "%0 = x.y() : tensor<4xf32, #a20>"])
    assert (found.layouts, found.all_unknown) == (0, 1)


# -- counting --------------------------------------------------------------------------------------


@settings(max_examples=examples(30), deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 40)), max_size=120),
    limit=st.integers(1, 12),
)
def test_the_worst_are_kept_with_exact_counts(rows, limit):
    lines = [f"  %v{k} = f32[{n},3]{{1,0:T(8,128)}} {op}(%p)" for k, (op, n) in enumerate(rows)]
    # Every third value is read by the line after all.
    uses = [f"  %t = token[] after-all({', '.join(f'%v{k}' for k in range(0, len(rows), 3))})"]
    found = gl.explain([*lines, *uses], limit=limit)
    waste = [-(-n // 8) * 8 * 128 * 4 - n * 12 for _, n in rows]
    held = [-(-n // 8) * 8 * 128 * 4 for _, n in rows]
    order = sorted(range(len(rows)), key=lambda k: (-waste[k], -held[k], k))[:limit]
    assert [(f.op, f.layout.shape[0], f.name, f.line, f.count) for f in found.findings] == [
        (*rows[k], f"v{k}", k + 1, 1 + (k % 3 == 0)) for k in order
    ]
    assert (found.layouts, found.mentions) == (len(rows), len(rows))
    assert found.left_out == len(rows) - len(order)
    assert (found.nbytes, found.data_bytes) == (sum(held), sum(n * 12 for _, n in rows))


@settings(max_examples=examples(30), deadline=None)
@given(rows=st.lists(st.integers(1, 9), max_size=60), limit=st.integers(1, 9))
def test_types_alone_are_counted(rows, limit):
    found = gl.explain([f"f32[{n},3]{{1,0:T(1,128)}}" for n in rows], limit=limit)
    counts = Counter(rows)
    assert [(f.layout.shape[0], f.count) for f in found.findings] == [
        (n, counts[n]) for n in sorted(counts, reverse=True)[:limit]
    ]
    assert found.left_out == len(rows) - sum(f.count for f in found.findings)


def test_long_lines_lose_no_type(tmp_path):
    # One line of over three pieces, so that types lie across every cut.
    hlo, mlir = tmp_path / "a", tmp_path / "b"
    kind = "f32[1000,3]{1,0:T(8,128)}"
    times = 3 * PIECE // len(kind)
    hlo.write_text(f"%a = ({', '.join([kind] * times)}) tuple(%b)\n%c = f32[8]{{0}} add(%a)\n")
    found = gl.explain(hlo)
    assert (found.mentions, found.lines, found.all_unknown) == (times + 1, 2, 0)
    assert (found.findings[-1].line, found.findings[-1].op) == (2, "add")
    for layout in (gl.GridLayout((53, 63), grid=(3, 2)), gl.tenstorrent.metal((53, 63))):
        times = 2 * PIECE // len(str(layout))
        mlir.write_text(f"%0 = x.y(%1) : {', '.join([str(layout)] * times)}")
        found = gl.explain(mlir)
        assert (found.mentions, found.all_unknown, found.lines) == (times, 0, 1)


def test_long_lines_of_buffers_lose_no_type():
    kind = "memref<2x4x1x1x!ttcore.tile<32x32, f32>, #ttcore.shard<4096x4096, 1>, {}>"
    kind = kind.format("#ttcore.memory_space<l1>")
    times = 2 * PIECE // len(kind)
    found = gl.explain(f"%0 = x.y(%1) : {', '.join([kind] * times)}")
    assert (found.mentions, found.all_unknown) == (times, 0)


@pytest.mark.parametrize(
    "text",
    [
        '"' + "//" * 100_000,
        "a" + "//" * 100_000,
        "func.func @f(" + "%a: tensor<1xi1,#l>, " * 20_000,
        "func.func @f(" + "%a: memref<1xi1,#l>, " * 20_000,
        'sdy.mesh @m = <["x"=2]>\n%0 = sdy.all_gather ' + "sdy.a[" * 40_000 + " : tensor<8xf32>",
    ],
)
def test_time_grows_with_the_length_of_a_line(text):
    start = time.process_time()
    gl.explain(text.split("\n"))
    assert time.process_time() - start < 8  # a quadratic reader took a minute


def test_memory_does_not_grow_with_the_dump(tmp_path):
    def peak(mebibytes):
        path = tmp_path / f"{mebibytes}.txt"
        with open(path, "w") as out:
            for k in itertools.count():
                kind = f"f32[{k * 7919 % 3000 + 1},{k % 3 + 1}]{{1,0:T(8,128)}}"
                out.write(f"  %fusion.{k} = {kind} copy({kind} %p.{k}), metadata={{{'x' * 200}}}\n")
                if out.tell() > mebibytes << 20:
                    break
        gl.explain(path)  # fills the cache of layouts, which takes long under tracemalloc
        tracemalloc.start()
        try:
            found = gl.explain(path)
            return tracemalloc.get_traced_memory()[1], found.layouts
        finally:
            tracemalloc.stop()

    (small, few), (large, many) = peak(1), peak(5)
    assert many > 4 * few
    assert large < small + (1 << 19)
    assert large < 8 << 20
    assert _remembered.cache_info().currsize <= 8192


# -- hostile text ----------------------------------------------------------------------------------

SEEDS = [path.read_bytes() for path in sorted(DUMPS.glob("*.*"))]


@st.composite
def mutated(draw):
    """A golden dump, or a part of it, with bytes cut out, repeated and put in."""
    data = draw(st.sampled_from(SEEDS))
    start = draw(st.integers(0, len(data) - 1))
    data = data[start : start + draw(st.integers(1, 3000))]
    for _ in range(draw(st.integers(1, 6))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 40))
        new = draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from(
                    [b"<", b">", b"->", b"tensor<", b"#", b"\n", b"\0", b"99999999999"]
                ),
                st.just(data[at : at + length] * 3),
            )
        )
        data = data[:at] + new + data[at + length :]
    return data


@settings(max_examples=examples(150), deadline=None)
@given(mutated())
def test_no_dump_makes_it_fail(data):
    found = gl.explain(data.split(b"\n"), plan=True, limit=5)
    assert found.layouts == found.left_out + sum(f.values for f in found.findings)
    assert found.nbytes >= 0
    json.loads(found.to_json())
    for text in (str(found), found.to_html()):
        assert all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize(
    "text",
    [
        "tensor<" * 20000,
        "%0 = x : tensor<4xf32, #" + "<" * 50000,
        "\n".join(["%0 = x : tensor<4xf32, #l<"] * 3000),
        "f32[" * 20000 + "]{",
        "f32[1,1]{" * 20000,
        "%a = f32[99999999999999999999]{0} add(%b)",
        "#a = #ttcore.metal_layout<" + "#a" * 30000,
        "dim0 = 1 " * 20000 + "#: tensor<",
        "\0" * 100000,
        f"%{'a' * 500000} = x.y : tensor<4xf32, #l>",
        f"%0 = {'a.' * 300000}b : tensor<4xf32, #l>",
    ],
)
def test_hostile_text_is_passed_over(text):
    found = gl.explain(text.split("\n"), plan=True)
    assert found.layouts == 0


def test_hostile_layouts_are_cheap():
    # Legal, and enormous: nothing may be allocated or listed by the numbers in a text.
    lines = [
        str(gl.GridLayout((2**20, 2**20), grid=(2**20, 2**20), tile=(32, 32))),
        "tensor<1024x1024x1024xf32, #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 1024 + d1, d1, d2), "
        "undef, <1x1x1>, memref<1048576x1024x1024xf32, #ttcore.memory_space<l1>>>>",
        "%a = f32[1048576,1048576,1048576]{2,1,0:T(8,128)} copy(%a)",
    ]
    found = gl.explain(lines, plan=True)
    assert found.layouts == 3
    assert found.findings[0].padding_share > 0.99


def test_aliases_are_bounded():
    text = f"#ttcore.x<{'x' * 60000}>"
    aliases = Aliases()
    for k in range(700):
        defines_alias(f"#a{k} = {text}", aliases)
    for k in range(20000):
        defines_alias(f"  #b{k} = #ttcore.y", aliases)
    assert aliases.characters == sum(map(len, aliases.texts.values()))
    assert MAX_ALIAS_CHARACTERS - 60100 < aliases.characters <= MAX_ALIAS_CHARACTERS
    assert len(aliases.texts) <= MAX_ALIASES
    assert aliases.dropped > 100
    # A name that no longer fits must not keep the meaning it had.
    defines_alias(f"#a0 = {text}{text}", aliases)
    assert "#a0" not in aliases.texts


def test_more_aliases_than_sixteen_thousand_are_read():
    lines = [f"  #l{k} = {TTNN.format(2)}" for k in range(20000)]
    lines += ["#m = #ttnn.buffer_type<l1>"]
    lines = [lines[-1], *lines[:-1], "%0 = a.b() : tensor<64x32xf32, #l19999>"]
    found = gl.explain(lines)
    assert (found.layouts, found.all_unknown) == (1, 0)


# -- moves -----------------------------------------------------------------------------------------

CHIP = gl.Chip("toy", (4, 4))
GRIDS = [
    gl.GridLayout((6, 10), grid=(2, 3)),
    gl.GridLayout((6, 10), grid=(3, 2), tile=(2, 2)),
    gl.GridLayout((6, 10), grid=(4, 4), tile=(1, 4)),
    gl.tenstorrent.ttnn((6, 10), grid=(3, 1)),
    gl.tenstorrent.metal((6, 10), dim_alignments=(1, 1), grid=(3, 2)),
]


@pytest.mark.parametrize("before", GRIDS)
@pytest.mark.parametrize("after", GRIDS)
def test_what_moves_is_counted_element_by_element(before, after):
    indices = itertools.product(range(6), range(10))
    expected = sum(before.locate(i).core != after.locate(i).core for i in indices)
    assert moved(before, after, (), CHIP)[0] == expected


def test_a_move_and_a_plan_of_its_relayout_count_alike():
    device = gl.DeviceGrid(AbstractMesh((4, 4), ("x", "y")))
    linears = ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1, d0)", "(d0, d1) -> (d0, d1 + 5)"]
    layouts = [gl.GridLayout((12, 36), grid=(4, 4), linear=linear) for linear in linears]
    for before, after in itertools.permutations(layouts, 2):
        elements, _ = moved(before, after, (), CHIP)
        assert 4 * elements == gl.relayout_plan(before, after, device).moved > 0


def test_permuted_moves_are_counted_element_by_element():
    before = gl.GridLayout((4, 6, 5), grid=(2, 3))
    after = gl.GridLayout((5, 4, 6), grid=(3, 2))  # dims (2, 0, 1) of the operand
    expected = sum(
        before.locate((a, b, c)).core != after.locate((c, a, b)).core
        for a, b, c in itertools.product(range(4), range(6), range(5))
    )
    assert moved(before, after, (2, 0, 1), CHIP)[0] == expected > 0


def test_virtual_grids_are_folded_onto_the_chip():
    # 1x16 fills a 4x4 chip row by row: core k is (k // 4, k % 4).
    line, plane = gl.GridLayout((4, 4), grid=(1, 16)), gl.GridLayout((4, 4), grid=(4, 4))
    expected = sum(
        divmod(line.locate(i).core[1], 4) != plane.locate(i).core
        for i in itertools.product(range(4), range(4))
    )
    assert moved(line, plane, (), CHIP)[0] == expected


def test_what_cant_be_told_is_said():
    wide = gl.GridLayout((64, 64), grid=(1, 37))  # 37 cores make no rectangle of a 4x4 chip
    assert moved(wide, gl.GridLayout((64, 64)), (), CHIP) == (None, "too many cores or indices")
    pages = gl.tenstorrent.ttnn((64, 64), tile=(32, 32))
    # Which bank is next to which core no dump says: all of it moves.
    shards = gl.tenstorrent.ttnn((64, 64), grid=(2, 2))
    assert moved(pages, shards, (), CHIP) == (4096, "between banks and shards")
    rows = gl.tenstorrent.ttnn((64, 64))
    assert moved(pages, rows, (), CHIP) == (4096, "between banks")
    assert moved(rows, gl.tenstorrent.ttnn((64, 64), buffer_type="l1_small"), (), CHIP)[0] == 0


# -- plans -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        # 3x2 cores hold a tile each; 27x32 of 53x63 needs but 2x2 of them.
        (
            gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32)),
            gl.GridLayout((53, 63), grid=(2, 2), tile=(32, 32)),
        ),
        # 16 rows of a core fill a tile of 16 rows.
        (
            gl.GridLayout((64, 64), grid=(4, 2), tile=(32, 32)),
            gl.GridLayout((64, 64), grid=(4, 2), tile=(16, 32)),
        ),
        # 53 rows on 3 cores are 22, 22 and 9, a tile each; 64 padded rows are 2 tiles.
        (
            gl.tenstorrent.ttnn((53, 63), grid=(3, 2), tile=(32, 32)),
            gl.tenstorrent.ttnn((53, 63), grid=(2, 2), tile=(32, 32)),
        ),
        (gl.parse("f32[1000,3]{1,0:T(8,128)}"), gl.parse("f32[1000,3]{0,1:T(4,128)}")),
        (
            gl.tenstorrent.ttnn_document((53, 63), grid=(3, 2), tile=(32, 32)),
            gl.tenstorrent.ttnn_document((53, 63), grid=(2, 2), tile=(32, 32)),
        ),
        # Alignment to 256 rows is for a grid of 8; 32 make 3 tiles a core of 3x1.
        (
            gl.tenstorrent.metal((96, 32), dim_alignments=(256, 32), grid=(8, 1), tile=(32, 32)),
            gl.tenstorrent.metal((96, 32), dim_alignments=(32, 32), grid=(3, 1), tile=(32, 32)),
        ),
    ],
)
def test_plans(layout, expected):
    found = propose(layout)
    assert found.layout == expected
    assert found.saved_bytes == layout.nbytes - expected.nbytes > 0
    assert gl.parse(str(found)) == found.layout


@settings(max_examples=examples(60), deadline=None)
@given(
    shape=st.lists(st.integers(1, 100), min_size=1, max_size=4),
    grid=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    system=st.sampled_from(["document", "ttnn", "metal", "xla"]),
    tiled=st.booleans(),
)
def test_plans_never_cost_more(shape, grid, system, tiled):
    tile = (32, 32) if tiled else None
    if system == "xla":
        layout = gl.xla.layout(shape, tiles=[(8, 128)] if tiled else [])
    elif system == "metal":
        alignments = gl.tenstorrent.grid_aware_alignments(shape, (8, 8))
        layout = gl.tenstorrent.metal(shape, dim_alignments=alignments, tile=tile)
    elif system == "ttnn":
        layout = gl.tenstorrent.ttnn(shape, grid=grid, tile=tile)
    else:
        layout = gl.GridLayout(shape, grid=grid, tile=tile)
    found = propose(layout)
    if layout.padding_share < THRESHOLD:
        assert found is None
    if found is None:
        return
    new = found.layout
    assert (type(new), new.shape, new.dtype) == (type(layout), layout.shape, layout.dtype)
    assert new.num_cores <= layout.num_cores
    assert found.bytes_per_core <= allocated(layout)[0]
    assert found.nbytes <= allocated(layout)[1]
    assert found.saved_bytes + found.saved_per_core > 0
    new.check_invertible()
    assert (new.tile is None) == (layout.tile is None) if system != "xla" else True


TOY_CHIP = gl.Chip("toy", (4, 4), {"l1": 4096})


@pytest.mark.parametrize(
    ("layout", "grid"),
    [
        (gl.GridLayout((4096, 4096), tile=(32, 32)), (8, 8)),
        (gl.GridLayout((2, 2048, 4096), grid=(2, 1, 1), tile=(32, 32), collapse=[]), (2, 4, 8)),
        (gl.GridLayout((2**24,), grid=(1,), collapse=[]), (64,)),
        (gl.tenstorrent.ttnn((4096, 4096), grid=(1, 2), tile=(32, 32)), (8, 8)),
        (gl.tenstorrent.metal((4096, 4096), tile=(32, 32)), (8, 8)),
        (gl.tenstorrent.ttnn_document((4096, 4096), tile=(32, 32)), (8, 8)),
        # 32 rows are one tile high: a virtual grid.
        (gl.GridLayout((32, 2**19), tile=(32, 32)), (1, 64)),
    ],
)
def test_what_does_not_fit_is_spread_over_the_chip(layout, grid):
    """Concerns: "By and large the heuristic we'll be following is just max the grid"."""
    assert propose(layout) is None
    found = propose(layout, WORMHOLE)
    assert found.layout.core_shape == grid
    assert fit_of(found.layout, WORMHOLE)
    assert not fit_of(layout, WORMHOLE)
    assert found.saved_per_core > 0
    made = gl.explain(str(layout), plan=True, chip=WORMHOLE)
    assert made.findings[0].proposal.layout.core_shape == grid
    assert "layouts that waste less, or hold less per core on more cores" in str(made)
    assert "<h2>Layouts that waste less, or hold less per core on more cores</h2>" in made.to_html()


NOT_SPREAD = [
    gl.GridLayout((32, 32), tile=(32, 32)),  # it fits
    gl.GridLayout((4096, 4096), tile=(32, 32), memory_space="dram"),  # which all cores share
    gl.tenstorrent.ttnn((4096, 4096), tile=(32, 32)),  # whose pages are on all cores already
    gl.GridLayout((4096, 4096), grid=(4, 4), tile=(32, 32)),  # there are no more cores
]


@pytest.mark.parametrize("layout", NOT_SPREAD)
def test_what_more_cores_do_not_help(layout):
    assert propose(layout, TOY_CHIP) is None


@settings(max_examples=examples(60), deadline=None)
@given(
    shape=st.lists(st.integers(1, 100), min_size=1, max_size=4),
    grid=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    system=st.sampled_from(["document", "ttnn", "ttnn_document", "metal"]),
    tiled=st.booleans(),
)
def test_plans_for_a_chip_never_hold_more_on_a_core(shape, grid, system, tiled):
    tile = (32, 32) if tiled else None
    if system == "metal":
        layout = gl.tenstorrent.metal(shape, tile=tile)
    elif system == "ttnn":
        layout = gl.tenstorrent.ttnn(shape, grid=grid, tile=tile)
    elif system == "ttnn_document":
        layout = gl.tenstorrent.ttnn_document(shape, grid=grid, tile=tile)
    else:
        layout = gl.GridLayout(shape, grid=grid, tile=tile)
    found = propose(layout, TOY_CHIP)
    if found is None or fit_of(layout, TOY_CHIP):
        free = propose(layout)
        assert found == free or not free.layout.can_be_on(TOY_CHIP)
        return
    new = found.layout
    assert (type(new), new.shape, new.dtype) == (type(layout), layout.shape, layout.dtype)
    assert new.can_be_on(TOY_CHIP)
    assert new.num_cores <= max(layout.num_cores, 16)
    assert found.bytes_per_core <= allocated(layout)[0]
    assert found.saved_per_core > 0 or found.saved_bytes > 0
    new.check_invertible()


# -- memory and chips ------------------------------------------------------------------------------


def test_chip_of_the_dump_and_of_the_caller():
    dump = DUMPS / "today.mlir"
    assert gl.explain(dump).chip.capacity == {"l1": 1498112, "dram": 12 << 30}
    assert gl.explain(dump, chip=BLACKHOLE).chip is BLACKHOLE
    assert gl.explain(DUMPS / "document.mlir").chip is WORMHOLE
    grid = "ttcore.device @d = <workerGrid = #ttcore.grid<7x8, (d0, d1) -> (0, d0, d1)>>"
    assert gl.explain([grid]).chip.grid == (7, 8)
    for broken in ("arch = <x>", "arch = <x>, grid = 0x8", "arch = <x>, grid = 8x8, l1_size = 1"):
        assert gl.explain([f"#s = #ttcore.system_desc<[{{{broken}}}]>"]).chip is WORMHOLE


def test_interleaved_tensors_fit_by_their_share():
    # 4096x4096 f32 is 64 MiB in 16384 tiles: 256 tiles, 1 MiB, on each of 64 cores.
    layout = gl.tenstorrent.ttnn((4096, 4096), tile=(32, 32))
    (found,) = gl.explain(str(layout)).findings
    assert found.fit.needed == 256 * 4096
    assert found.fit
    assert found.layout.bytes_per_core == 64 << 20
    # 4-bit scalars: 1000 over 64 cores are 16 each, in 8 bytes.
    (found,) = gl.explain(str(gl.tenstorrent.ttnn((1000,), "int4"))).findings
    assert found.fit.needed == 8


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("no/such.mlir", "neither a file nor a text with a layout"),
        ("", "neither a file nor a text"),
        ("f32[3,5]{0,0}", "minor_to_major"),
        ("a\0b", "neither a file"),
        ("x" * 100000, "neither a file"),
        (Path("no/such.mlir"), "can't be read: No such file"),
        (str(DUMPS), "is a folder, not a regular file"),
    ],
)
def test_what_is_no_dump(source, words):
    with pytest.raises(gl.LayoutError, match=re.escape(words)):
        gl.explain(source)


@pytest.mark.parametrize("limit", [0, -1, 1 << 17, 2.5, True, None])
def test_limit_is_checked(limit):
    with pytest.raises(gl.LayoutError, match="limit"):
        gl.explain("f32[3]{0}", limit=limit)


# -- output ----------------------------------------------------------------------------------------


def run(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "gridlayout", "explain", *map(str, arguments)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment,
        timeout=60,
        **options,
    )


def test_table(capfdbinary):
    assert main(["explain", str(DUMPS / "document.mlir"), "--plan", "--chip", "blackhole"]) == 0
    out = capfdbinary.readouterr().out.decode()
    assert "\x1b" not in out
    lines = out.splitlines()
    assert "chip Blackhole, 10x13 cores" in lines[0]
    assert lines[2].split()[:5] == ["line", "count", "op", "value", "tensor"]
    assert "96.00x" in lines[3]
    assert "NO: l1" in lines[3]
    assert lines[2].index("tensor") == lines[3].index("f32[8,96,32]")
    assert "layouts that waste less" in lines


def test_json():
    made = run(DUMPS / "tpu.hlo.txt", "--json", "--limit", "2", "--plan")
    assert (made.returncode, made.stderr) == (0, b"")
    record = json.loads(made.stdout)
    assert [f["line"] for f in record["findings"]] == [9, 15]
    worst = record["findings"][0]
    assert worst["layout"] == "f32[1000,3]{1,0:T(8,128)}"
    assert (worst["bytes"], worst["data_bytes"], worst["fit"]) == (512000, 12000, None)
    assert worst["proposal"]["layout"] == "f32[1000,3]{0,1:T(4,128)}"
    assert worst["proposal"]["saved_bytes"] == 512000 - 16384
    assert record["left_out"] == record["layouts"] - 2
    assert record["peaks"][0]["nbytes"] == sum(
        record["peaks"][0][part] for part in ("arguments", "results", "temporary")
    )
    assert record["all_unknown"] == 1


def test_standard_input():
    data = (DUMPS / "jax_cpu.hlo.txt").read_bytes()
    made = run("-", input=data)
    assert made.returncode == 0
    assert made.stdout.startswith(b"<stdin>: 13 layouts in 146 lines hold")
    nothing = run("-", input=b"\xfe\0\n\x80")
    assert nothing.returncode == 1
    assert b"2 lines; no layout found: it was read as binary data" in nothing.stdout


def test_an_empty_input_is_no_success():
    made = run("-", input=b"")
    assert made.returncode == 1
    assert b"0 lines; no layout found: it was read as an empty text" in made.stdout
    assert run("-", "--json", input=b"\n\n").returncode == 1


def test_advice_on_the_command_line_names_options():
    passes = "\n".join(f"HloModule m\n%a = f32[{n}]{{0}} add(%b)" for n in (3, 5)).encode()
    made = run("-", input=passes)
    assert b"(--pass ... chooses another)" in made.stdout
    assert "(pass_name=... chooses another)" in str(gl.explain(passes))
    assert "(--pass ... chooses another)" in gl.explain(passes).to_html()
    assert "(pass_name=... chooses another)" in gl.explain(passes)._repr_html_()
    ranges = {"memory_layout": "width_sharded", "core_ranges": [((0, 0), (10, 0))]}
    wide = str(gl.tenstorrent.ttnn((64, 352), grid=(1, 11), **ranges)).encode()
    made = run("-", input=wide)
    assert b"a Blackhole has 10x13: give --chip blackhole" in made.stdout
    assert b"give --chip" not in run("-", "--chip", "blackhole", input=wide).stdout
    assert b"--limit 0 must be" in run("-", "--limit", "0", input=wide).stderr


def test_cores_of_another_chip_are_said():
    def ttnn(shape, grid, kind, ranges=None):
        options = {"tile": (32, 32), "memory_layout": kind, "core_ranges": ranges}
        return str(gl.tenstorrent.ttnn(shape, grid=grid, **options))

    wide = ttnn((64, 352), (1, 11), "width_sharded", [((0, 0), (10, 0))])
    found = gl.explain([wide])
    assert found.advice == (
        "layouts are on 1x11 cores, in core ranges (0,0)-(10,0), but a Wormhole, which is assumed, "
        'has 8x8; a Blackhole has 10x13: give chip="blackhole"'
    )
    assert found.advice in str(found)
    assert gl.explain([str(gl.GridLayout((300, 400), grid=(9, 13)))]).advice.startswith(
        "layouts are on 9x13 cores, but a Wormhole"
    )
    assert found.advice in json.loads(found.to_json())["advice"]
    assert gl.explain([wide], chip=WORMHOLE).advice == ""  # as it was stated
    assert gl.explain([wide], chip=BLACKHOLE).advice == ""
    assert gl.explain([ttnn((64, 256), (1, 8), "width_sharded")]).advice == ""
    assert gl.explain([ttnn((640, 640), (20, 20), "block_sharded")]).advice == ""


def test_rows_of_hlo_have_its_names_of_types():
    found = str(gl.explain("%a = s32[4]{0} add(pred[4]{0} %b, u8[4]{0} %c)"))
    assert "s32[4]" in found
    assert "i32[4]" not in found
    assert "pred[4]" in str(gl.explain("%a = pred[4]{0} add(%b)"))
    sharded = "%a = s32[8,4]{1,0} copy(%b), sharding={devices=[4,1]<=[4]}"
    (row,) = (line for line in str(gl.explain(sharded)).splitlines() if "{devices=" in line)
    assert "s32[8,4]" in row
    mlir = '%0 = sdy.reshard %a <@m, [{"x"}]> : tensor<8xi32>'
    assert "i32[8]" in str(gl.explain(['sdy.mesh @m = <["x"=4]>', mlir]))


def test_missing_file():
    made = run("no/such/dump.mlir")
    assert (made.returncode, made.stdout) == (2, b"")
    assert made.stderr.startswith(b"gridlayout explain: 'no/such/dump.mlir' is neither a")
    assert b"Traceback" not in made.stderr


def test_a_reader_that_goes_away_is_no_error():
    made = subprocess.run(
        f"{sys.executable} -m gridlayout explain {DUMPS / 'today.mlir'} --html | head -c 1",
        shell=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert made.stderr == b""


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_on_a_terminal(no_color, coloured):
    pty = pytest.importorskip("pty")
    terminal, inside = pty.openpty()
    code = (
        "import sys; from gridlayout.__main__ import main; "
        "sys.exit(main(['explain', 'f32[1000,3]{1,0:T(8,128)}']))"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        stdout=inside,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": no_color},
        timeout=60,
    )
    os.close(inside)
    out = os.read(terminal, 1 << 16)
    os.close(terminal)
    assert (b"\x1b[31m" in out) == coloured
    assert b"97.7%" in out


def test_words_of_the_dump_are_made_harmless():
    bad = "\x1b]0;pwned\x07<script>alert(1)</script>\u202e&"
    found = gl.explain([f"%{bad} = q9[4]{{0}} add(%b)", f"%0 = a : tensor<4xf32, #{bad}"])
    assert found.all_unknown == 2
    assert "\x1b" not in str(found)
    assert "\u202e" not in str(found)
    page = found.to_html()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert plain("a\tb\x7f\x9b") == r"a\tb\x7f\x9b"


def test_page_is_whole_and_shows_every_row():
    from html.parser import HTMLParser

    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.cells, self.numbers = [], [], []

        def handle_starttag(self, tag, attrs):
            if tag == "meta":
                return
            self.open.append(tag)
            self.numbers += [float(value) for name, value in attrs if name == "data-n"]
            if tag == "td":
                self.cells.append("")

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_data(self, data):
            if self.open and self.open[-1] == "td":
                self.cells[-1] += data

    found = gl.explain(DUMPS / "today.mlir", plan=True)
    reader = Reader()
    reader.feed(found.to_html())
    reader.close()
    assert reader.open == []
    for made in found.findings:
        assert str(made.line) in reader.cells
        assert made.wasted_bytes in reader.numbers
        assert made.proposal is None or str(made.proposal) in reader.cells
    assert "http" not in found.to_html()
    assert found._repr_html_() in found.to_html()


def test_a_page_starts_with_what_costs_most():
    page = gl.explain("notebooks/06_dump.mlir", plan=True).to_html()
    head = page[page.index("What costs most") : page.index("Layouts, the worst first")]
    assert re.findall("<li>(.*?)</li>", head) == [
        "%arg1 of line 8, f32[8,96,32], holds 9.0 MiB for 96.0 KiB of data: 99% is padding. It "
        "does not fit on the chip. Another layout saves 8.9 MiB.",
        "%0 of line 9, the result of ttir.to_layout, f32[53,63], holds 24.0 KiB for 13.0 KiB of "
        "data: 46% is padding. Another layout saves 8.0 KiB.",
        "ttir.to_layout of line 10 moves 6.4 KiB of f32[53,63] (to another core), to change its "
        "layout.",
    ]
    reduced = [
        'sdy.mesh @m = <["data"=2, "model"=4]>',
        "%a = f32[64]{0} all-reduce(%b), replica_groups={{0,1,2,3},{4,5,6,7}}",
        "%c = f32[32]{0} all-reduce(%a), replica_groups={}",
    ]
    page = gl.explain(reduced).to_html()
    assert re.findall("<li>(.*?)</li>", page) == [
        "all-reduce of line 2: each device receives 384 B, in groups of 4 devices along model=4.",
        "all-reduce of line 3: each device receives 224 B, in groups of 8 devices along "
        "data=2*model=4.",
    ]
    assert "model=4" in str(gl.explain(reduced))
    assert "What costs most" not in gl.explain("%a = f32[8]{0} add(%b)").to_html()


def test_large_counts_are_sorted_as_numbers():
    found = gl.explain(["%a = f32[8]{0} add(%b)"] + ["%c = f32[4]{0} add(%a)"] * 1200)
    cells = re.findall(r'<td[^>]* data-n="1201"[^>]*data-name="count">1,201</td>', found.to_html())
    assert len(cells) == 1


@needs_chromium
def test_columns_are_sorted_by_number(tmp_path):
    rows = [["1,234", "a"], ["5", "b"], ["40", "c"], ["-2.0 KiB", "d"], ["-1.0 KiB", "e"]]
    data = [{}, {}, {}, {"saves": -2048}, {"saves": -1024}]
    table = html_table(["saves", "op"], rows, data, ["op"])
    script = f"{_SCRIPT} document.querySelector('th').click();"
    after = (
        "document.getElementById('output').textContent = JSON.stringify("
        "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[1].textContent));"
    )
    page = (
        f'<!doctype html><pre id="output"></pre><div class="gl-dump">{table}</div>'
        f"<script>{script}{after}</script>"
    )
    assert output(browse(page, tmp_path)) == ["a", "c", "b", "e", "d"]


# What of a page is wider than there is room, and what its help leaves out.
MEASURE = """
for (const details of document.querySelectorAll("details")) details.open = true;
const found = [];
for (const frame of document.querySelectorAll("[data-page]")) {
  const right = frame.getBoundingClientRect().right + 0.5;
  for (const e of frame.querySelectorAll("*")) {
    if (e.getBoundingClientRect().right > right) found.push([frame.dataset.page, e.tagName,
      e.textContent.slice(0, 30)]);
  }
  const heads = new Set([...frame.querySelectorAll("th")].map((e) => e.textContent));
  const known = new Set([...frame.querySelectorAll("dt")].map((e) => e.textContent));
  if (heads.symmetricDifference(known).size) found.push([frame.dataset.page, "help"]);
  const title = frame.querySelector("[role=heading]");
  if (!title.textContent.startsWith("Layouts of ")) found.push([frame.dataset.page, "title"]);
}
document.getElementById("output").textContent = JSON.stringify(found);
"""


@needs_chromium
def test_a_page_fits_its_width(tmp_path):
    names = ("today.mlir", "tpu.hlo.txt", "mlp.n300.O0.ttnn.mlir", "jax_cpu.hlo.txt")
    texts = {name: gl.explain(DUMPS / name, plan=True, limit=12) for name in names}
    texts["short"] = gl.explain("f32[1000,3]{1,0:T(8,128)}")
    shown = "".join(
        f'<div data-page="{name} at {width}" style="width: {width}px">{found._repr_html_()}</div>'
        for name, found in texts.items()
        for width in (380, 700, 900, 1130, 1300, 1600)
    )
    end = f'<pre id="output"></pre><script type="module">{MEASURE}</script>'
    page = f'<!doctype html><meta charset="utf-8"><body style="margin: 0">{shown}{end}'
    assert output(browse(page, tmp_path)) == []
    broken = page.replace("@container (max-width: 70em)", "@container (max-width: 1em)")
    assert output(browse(broken, tmp_path)) != []
