"""Programs side by side: `gl.compare`, `Explanation.diff` and `python -m gridlayout compare`.

The judges: hand-counted lines, and a second count of the corpus by `counted`, which knows nothing
but where a line's types stand. `dumps/levels` are programs of ours as Tenstorrent's compiler made
them for a p150 at three levels of optimization.
"""

import gzip
import io
import json
import random
import re
from math import prod
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from browser import browse, needs_chromium, output
from compiled import mlp
from pictures import faults

import gridlayout as gl
from gridlayout.__main__ import main
from gridlayout.draw.bars import Measure, bars
from gridlayout.dump.comparing.matching import Value, matched
from gridlayout.tables.names import MAX_PROGRAMS

LEVELS = Path(__file__).parent / "dumps" / "levels"
NAMES = sorted({path.name.split(".")[0] for path in LEVELS.glob("*.ttnn.mlir*")})
TILE = 4096
CHIP = gl.Chip("toy", (4, 4), {"l1": 1 << 20, "dram": 1 << 30}, banks=4)


def text_of(name, level):
    path = LEVELS / f"{name}.p150.O{level}.ttnn.mlir"  # those of docs/ are not compressed
    if path.exists():
        return path.read_text()
    return gzip.decompress(Path(f"{path}.gz").read_bytes()).decode()


def levels(name, count=3):
    return gl.compare(*(text_of(name, k) for k in range(count)), names=["O0", "O1", "O2"][:count])


def kind(rows, columns, memory="dram", grid=(1, 1)):
    """The type of so many tiles: interleaved in DRAM, or a block a core in L1."""
    shard = rows // grid[0], columns // grid[1]
    corner = f"({grid[1] - 1},{grid[0] - 1})"
    sharded = f"<block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), {corner}>]>"
    word = "<interleaved>" if memory == "dram" else sharded
    return (
        f"tensor<{32 * rows}x{32 * columns}xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), "
        f"<{grid[0]}x{grid[1]}>, memref<{shard[0]}x{shard[1]}x!ttcore.tile<32x32, f32>, "
        f"#ttnn.buffer_type<{memory}>>, {word}>>"
    )


def line(name, op, operands, types, result, attributes=""):
    return (
        f'  %{name} = "ttnn.{op}"({", ".join(operands)}){attributes} : '
        f"({', '.join(types)}) -> {result}"
    )


DRAM, QUARTERS, HALVES = kind(2, 2), kind(2, 2, "l1", (2, 2)), kind(2, 2, "l1", (1, 2))
BEFORE = [
    f"func.func @main(%a: {DRAM}, %b: {DRAM}) -> {DRAM} {{",
    line(0, "multiply", ["%a", "%b"], [DRAM, DRAM], DRAM),
    line(1, "relu", ["%0"], [DRAM], DRAM),
    "}",
]
AFTER = [
    f"func.func @main(%a: {DRAM}, %b: {DRAM}) -> {DRAM} {{",
    line(0, "to_memory_config", ["%a"], [DRAM], QUARTERS),
    line(1, "to_memory_config", ["%b"], [DRAM], QUARTERS),
    line(2, "multiply", ["%0", "%1"], [QUARTERS, QUARTERS], QUARTERS),
    line(3, "to_memory_config", ["%2"], [QUARTERS], HALVES),
    line(4, "relu", ["%3"], [HALVES], HALVES),
    line(5, "to_memory_config", ["%4"], [HALVES], DRAM),
    "}",
]


# -- counted by hand -------------------------------------------------------------------------------


def test_costs_counted_by_hand():
    before, after = (gl.explain(lines, chip=CHIP).costs for lines in (BEFORE, AFTER))
    tensor = 4 * TILE
    # multiply reads two and writes one, relu reads one and writes one.
    assert (before.ops, before.relayouts, before.dram_bytes, before.l1_bytes) == (
        2,
        0,
        5 * tensor,
        0,
    )
    assert (before.relayout_bytes, before.chip_bytes, before.cores) == (0, 0, None)
    assert (before.results_known, before.results) == (0, 2)
    # %a, %b are read and the result is written; in L1 are 2 + 3 + 2 + 2 + 1 more.
    assert (after.ops, after.relayouts) == (6, 4)
    assert (after.dram_bytes, after.l1_bytes) == (3 * tensor, 10 * tensor)
    # From 2x2 cores to 1x2: the lower two tiles go up.
    assert after.relayout_bytes == 2 * TILE
    assert (after.cores, after.results_known, after.results) == (3.0, 2, 2)  # 4 and 2 cores
    assert after.core_bytes is None
    # One tile a core of %0, %1 and %2; then %2 and %3, of two tiles; then %3 and %4.
    assert (before.l1_peak, after.l1_peak) == (0, 4 * TILE)
    assert (before.dram_peak, after.dram_peak) == (3 * tensor, 2 * tensor)
    assert (after.values, after.held_bytes, after.padding_bytes) == (8, 8 * tensor, 0)


def test_what_is_read_and_written_is_counted_whole_with_its_padding():
    odd = DRAM.replace("64x64xf32", "33x63xf32")
    lines = [line(0, "relu", ["%a"], [odd], odd), line(1, "empty", [], [], odd)]
    lines += [line(2, "full", ["%d"], ["!ttnn.device"], odd)]
    lines += [f'  "ttnn.deallocate"(%0) : ({odd}) -> ()', f"  return %2 : {odd}"]
    found = gl.explain(lines, chip=CHIP).costs
    # relu reads and writes, full writes; what is only allocated, freed or returned does neither.
    assert found.dram_bytes == 3 * 4 * TILE
    assert found.padding_bytes == 3 * (4 * TILE - 33 * 63 * 4)
    assert found.padding_share == pytest.approx(1 - 33 * 63 * 4 / (4 * TILE))


CONFIG = (
    " <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<"
    "compute_with_storage_grid_size = #ttnn.core_coord<%d, %d>, in0_block_w = 1, "
    "per_core_m = %d, per_core_n = %d>}>"
)


@pytest.mark.parametrize(
    ("config", "cores"),
    [
        ((8, 8, 1, 1), 12),
        ((8, 8, 2, 1), 6),
        ((8, 8, 3, 3), 2),
        ((2, 2, 1, 1), 4),
        ((8, 8, 9, 9), 1),
    ],
)
def test_a_products_config_says_on_how_many_cores_it_is_made(config, cores):
    a, b, c = kind(4, 2), kind(2, 3), kind(4, 3)
    found = gl.explain([line(0, "matmul", ["%a", "%b"], [a, b], c, CONFIG % config)]).costs
    assert (found.cores, found.results_known) == (cores, 1)


def test_shards_say_it_themselves():
    a = kind(4, 4, "l1", (4, 2))
    text = line(0, "matmul", ["%a", "%a"], [a, a], a, CONFIG % (8, 8, 1, 1))
    assert gl.explain([text]).costs.cores == 8


def test_what_chips_receive_is_unknown_if_not_all_collectives_are_stored():
    line = "%a{0} = f32[{0}]{{0}} all-gather(%b), replica_groups={{{{0,1}}}}"
    few, many = ([line.format(2 * n) for n in range(1, count + 1)] for count in (512, 513))
    assert gl.explain(few).costs.chip_bytes == sum(4 * n for n in range(1, 513))
    assert gl.explain(many).costs.chip_bytes is None


def test_what_chips_receive_is_counted():
    mesh = '#m = #ttcore.meshes<[<"mesh" = 1x4>]>\nmodule attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x4>]>} {'  # noqa: E501
    a, b = kind(1, 1), kind(1, 4)
    gather = line(
        0, "all_gather", ["%a"], [a], b, " <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>"
    )
    found = gl.explain([*mesh.splitlines(), gather]).costs
    assert found.chip_bytes == 3 * TILE
    assert found.dram_bytes == 5 * TILE
    # Without the mesh nobody knows how many chips there are.
    assert gl.explain([gather]).costs.chip_bytes is None


# -- the corpus ------------------------------------------------------------------------------------

ALIAS = re.compile(
    r"^#(\w+) = #ttnn\.ttnn_layout<.*?, <(\d+)x(\d+)>, memref<([\dx]+)x"
    r"(!ttcore\.tile<32x32, \w+>|\w+), #(\w+)>(?:, <(\w+)>)?",
    re.MULTILINE,
)
BYTES = {"f32": 4, "si32": 4, "u32": 4, "bf16": 2, "u16": 2, "u8": 1}


def counted(text):
    """Ops, bytes touched in DRAM and in L1, once more: by the aliases on each op's line."""
    aliases = {name: rest for name, *rest in ALIAS.findall(text)}
    ops, touched = 0, {"dram": 0, "l1": 0, "system_memory": 0}
    for each in re.findall(r'^\s+%\d+ = "ttnn\.(?!get_device|empty)(.*)$', text, re.MULTILINE):
        ops += 1
        for dims, name in re.findall(r"tensor<([0-9x]+x)?[a-z]+\d+, #(\w+)>", each):
            rows, columns, counts, element, memory, word = aliases[name]
            tiled = element.startswith("!")
            size = BYTES[element[:-1].split(", ")[1] if tiled else element]
            if word in ("interleaved", ""):  # of the worker grid only a core's part is stated
                shape = [int(n) for n in (dims or "").split("x") if n]
                if tiled:
                    shape = [1, *shape] if len(shape) < 2 else shape
                    shape[-2:] = [-(-n // 32) * 32 for n in shape[-2:]]
                touched[memory] += prod(shape) * size
            else:
                shard = prod(map(int, counts.split("x"))) * (1024 if tiled else 1)
                touched[memory] += int(rows) * int(columns) * shard * size
    return ops, touched["dram"], touched["l1"]


@pytest.mark.parametrize("level", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_counted_twice(name, level):
    text = text_of(name, level)
    costs = gl.explain(text).costs
    assert (costs.ops, costs.dram_bytes, costs.l1_bytes) == counted(text)
    found = gl.explain(text, limit=1)
    assert found.costs == costs
    assert costs.l1_peak == max((p.nbytes for p in found.peaks if p.memory == "l1"), default=0)
    assert len(found.values) == found.layouts


@pytest.mark.parametrize("name", NAMES)
def test_three_levels_side_by_side(name):
    found = levels(name)
    costs = [program.costs for program in found.programs]
    # Level 0 has all in DRAM; what level 2 reads and writes there is never more.
    assert costs[0].l1_bytes == costs[0].l1_peak == 0
    assert costs[2].dram_bytes <= costs[0].dram_bytes
    assert costs[2].l1_bytes > 0
    assert found.saved["dram_bytes"] == costs[0].dram_bytes - costs[2].dram_bytes
    # Arguments lie alike at every level; what is in all is made by one op in one shape.
    assert not any(match.op == "func.func" for match in found.rows)
    for match in found.values:
        own = [value for value in match.values if value is not None]
        assert {(value.op, value.layout.shape) for value in own} == {(match.op, match.shape)}
    for k in range(3):
        names = [(match.values[k].function, match.values[k].name) for match in found.values
                 if match.values[k] is not None]  # fmt: skip
        assert len(names) == len(set(names)) == costs[k].values
    assert max(map(len, str(found).splitlines())) <= 100


def test_what_the_optimizer_changed():
    found = levels("chain")
    assert [(match.op, match.values[0] is None) for match in found.rows] == [
        ("ttnn.to_memory_config", True),
        ("ttnn.to_memory_config", True),
        ("ttnn.multiply", False),
        ("ttnn.add", False),
        ("ttnn.subtract", False),
        ("ttnn.to_memory_config", True),
    ]
    multiply = found.rows[2]
    assert [value.layout.memory for value in multiply.values] == ["dram", "dram", "l1"]
    assert multiply.values[2].layout.grid == (9, 10)
    words = str(found)
    assert "DRAM read and written" in words
    assert "16.9 MiB -42%" in words
    assert "l1 block 9x10" in words


# -- diff ------------------------------------------------------------------------------------------


def test_diff_is_the_comparison_of_two():
    a, b = text_of("mlp", 0), text_of("mlp", 2)
    found = gl.explain(a).diff(gl.explain(b))
    assert str(found) == str(gl.explain(a).diff(b)) == str(gl.compare(a, b))
    assert [program.name for program in found.programs] == ["1", "2"]
    assert found.saved == {k: -v for k, v in gl.explain(b).diff(a).saved.items()}
    assert found.saved["dram_bytes"] > 0 > found.saved["l1_bytes"]
    same = gl.explain(a).diff(a)
    assert same.rows == ()
    assert set(same.saved.values()) == {0}
    assert "14 values with equal layouts, 0 with different ones" in str(same)


def test_diff_does_not_depend_on_the_rows_that_are_shown():
    a, b = text_of("block", 0), text_of("block", 2)
    few = gl.explain(a, limit=1).diff(gl.explain(b, limit=1))
    assert str(few) == str(gl.explain(a).diff(b))
    assert few.left_out == 0


def test_diff_of_hlo():
    def compiled(f):
        shape = jax.ShapeDtypeStruct((64, 64), "float32")
        return gl.explain(f, shape)

    found = compiled(lambda x: jnp.sort(x @ x @ x, 0)).diff(compiled(lambda x: jnp.sort(x, 0)))
    assert found.saved["memory_peak"] > 0
    assert found.programs[0].costs.dram_bytes is None
    assert "memory peak of a device" in str(found)
    assert "DRAM" not in str(found)


def test_diff_of_stablehlo_tells_nothing():
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    with pytest.raises(gl.LayoutError, match="StableHLO, which states no layouts"):
        gl.explain(lowered).diff(lowered)
    with pytest.raises(gl.LayoutError, match="can't be compared with Summary"):
        gl.explain(BEFORE).diff(gl.GridLayout((3, 5)))


# -- matching --------------------------------------------------------------------------------------


def value(op, k, dims=8, function="main"):
    return Value(function, f"%{k}", k, op, f"f32[{dims}]{{0:T({k + 1})}}")


def test_values_match_by_op_shape_and_order():
    first = [value("add", 1), value("add", 2), value("mul", 3)]
    second = [value("add", 4), value("copy", 5), value("mul", 6), value("add", 7), value("copy", 8)]
    found = [(m.op, *(v and v.line for v in m.values)) for m in matched([first, second])]
    assert found == [
        ("add", 1, 4), ("copy", None, 5), ("add", 2, 7), ("copy", None, 8), ("mul", 3, 6),
    ]  # fmt: skip


def test_shapes_and_functions_keep_values_apart():
    one, other = value("add", 1), value("add", 1, dims=9)
    assert len(matched([[one], [other]])) == 2
    assert len(matched([[one], [value("add", 1, function="g")]])) == 2
    # XLA numbers its computations anew.
    assert (
        len(matched([[value("add", 1, function="main.4")], [value("add", 2, function="main.7")]]))
        == 1
    )


def test_an_element_type_that_changes_is_a_change():
    other = [text.replace("xf32", "xbf16").replace(", f32>", ", bf16>") for text in BEFORE]
    found = gl.compare(BEFORE, other)
    assert [match.is_changed for match in found.values] == [True] * 4
    assert "bf16 dram tiles" in str(found)


def test_cores_alone_are_a_change_that_is_shown():
    ranged = QUARTERS.replace("(0,0), (1,1)", "(1,1), (2,2)")
    lines = [text.replace(QUARTERS, ranged) for text in AFTER]
    found = gl.compare(AFTER, lines)
    assert {match.op for match in found.rows} == {"ttnn.to_memory_config", "ttnn.multiply"}
    cells = next(text for text in str(found).splitlines() if "multiply" in text).split("  ")
    assert [cell.strip() for cell in cells[-2:]] == [
        "l1 block 2x2 (0,0)-(1,1)", "l1 block 2x2 (1,1)-(2,2)",
    ]  # fmt: skip


# -- reports ---------------------------------------------------------------------------------------

SHAPES = [(359, 64), (64, 128), (128,), (128, 10), (10,)]


def report(mesh=(10, 11)):
    cores = gl.DeviceGrid(jax.sharding.AbstractMesh(mesh, ("x", "y")[: len(mesh)]))
    arguments = gl.put([jax.ShapeDtypeStruct(shape, "float32") for shape in SHAPES], cores)
    return gl.on_grid(mlp).report(*arguments)


def test_on_grid_beside_the_compiler():
    ours = report()
    found = gl.compare(text_of("mlp", 0), text_of("mlp", 2), ours)
    assert [program.name for program in found.programs] == ["1", "2", "on_grid"]
    costs = found.programs[2].costs
    assert costs == ours.costs
    assert (costs.dram_bytes, costs.relayout_bytes, costs.relayouts) == (0, None, None)
    assert costs.core_bytes == ours.bytes_moved > 0
    assert costs.l1_peak == ours.core_peak_bytes
    assert found.dumps == (0, 1)
    assert "to other cores, by all ops" in str(found)
    assert max(map(len, str(found).splitlines())) <= 100


def test_the_costs_of_a_report_counted_by_hand():
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((4,), ("x",)))
    layout = gl.GridLayout((6, 8), grid=(4, 1))  # 2 rows a core, the last has none
    found = gl.on_grid(lambda x: jnp.exp(x) * x).report(described(layout, device))
    costs = found.costs
    tensor = 4 * 2 * 8 * 4
    # exp reads one and writes one, the product reads two and writes one.
    assert (costs.ops, costs.l1_bytes, costs.dram_bytes) == (2, 5 * tensor, 0)
    assert (costs.values, costs.held_bytes, costs.data_bytes) == (3, 3 * tensor, 3 * 6 * 8 * 4)
    assert (costs.cores, costs.results_known, costs.results) == (3.0, 2, 2)
    assert (costs.core_bytes, costs.chip_bytes) == (0, None)


def described(layout, device):
    return gl.put(jax.ShapeDtypeStruct(layout.shape, layout.dtype), layout, device)


def test_what_runs_again_counts_again():
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2,), ("x",)))
    x = described(gl.GridLayout((4, 4), grid=(2, 1)), device)

    def times(n):
        found = gl.on_grid(lambda x: jax.lax.fori_loop(0, n, lambda _, x: jnp.sin(x), x)).report(x)
        return found.costs.l1_bytes

    assert times(6) - times(5) == times(5) - times(4) == 2 * 64


# -- refusals --------------------------------------------------------------------------------------

OTHER = [line(0, "relu", ["%a"], [kind(3, 3)], kind(3, 3))]
REPORT = object()
HLO = ["HloModule a", "ENTRY %m {", "  ROOT %a = f32[64,64]{1,0} parameter(0)", "}"]


@pytest.mark.parametrize(
    ("programs", "options", "words"),
    [
        ((), {}, "2 to 8 programs are compared, not 0"),
        ((BEFORE,), {}, "2 to 8 programs are compared, not 1"),
        ((BEFORE,) * 9, {}, "2 to 8 programs are compared, not 9"),
        ((BEFORE, HLO), {}, "1 is ttnn and 2 is hlo, which count memory differently"),
        ((HLO, BEFORE), {}, "1 is hlo and 2 is ttnn"),
        ((HLO, REPORT), {}, "lines is hlo and on_grid is report"),
        ((BEFORE, OTHER), {}, "1 and 2 have no common value"),
        ((BEFORE, BEFORE, OTHER), {}, "1 and 3 have no common value"),
        ((BEFORE, ["hello"]), {}, "2: no layout found: it was read as text"),
        ((BEFORE, gl.GridLayout((3, 5))), {}, "program 2 must be a dump, but it is a Summary"),
        ((BEFORE, [gl.GridLayout((3, 5))]), {}, "must be a dump, but it is a TreeSummary"),
        ((BEFORE, "no/such.mlir"), {}, "neither a file nor a text"),
        ((BEFORE, None), {}, "must be a path"),
        ((BEFORE, AFTER), {"names": "ab"}, "names 'ab' must be a sequence of 2 strings"),
        ((BEFORE, AFTER), {"names": ["a"]}, "names ['a'] must be 2 strings"),
        ((BEFORE, AFTER), {"names": ["a", ""]}, "must be 2 strings"),
        ((BEFORE, AFTER), {"names": ["a", 3]}, "must be 2 strings"),
        ((BEFORE, AFTER), {"names": ["a", "a"]}, "names ['a', 'a'] must differ"),
        ((BEFORE, AFTER), {"names": 3}, "names 3 must be"),
        ((BEFORE, AFTER), {"function": "f"}, "the dump has no function 'f'"),
        ((BEFORE, AFTER), {"chip": "abacus"}, "is neither a gl.Chip nor one of"),
    ],
)  # fmt: skip
def test_what_can_not_be_compared(programs, options, words):
    programs = [report((2,)) if each is REPORT else each for each in programs]
    with pytest.raises(gl.LayoutError, match=re.escape(words)):
        gl.compare(*programs, **options)


@pytest.mark.parametrize("seed", range(40))
def test_garbled_dumps_are_compared_or_refused(seed):
    chance = random.Random(seed)
    name = chance.choice(NAMES)
    letters = list(text_of(name, 2))
    for _ in range(chance.randrange(1, 60)):
        at = chance.randrange(len(letters))
        letters[at] = chance.choice(["", letters[at] * 9, *"0123456789x<>,#%()-"])
    cut = chance.randrange(len(letters) // 2, len(letters) + 1)
    try:
        found = gl.compare(text_of(name, 0), "".join(letters[:cut]).encode(), chip="blackhole")
    except gl.LayoutError:
        return
    assert max(map(len, str(found).splitlines())) <= 100
    assert json.loads(found.to_json())
    assert found.to_html()


def test_other_chips_are_refused_but_where_one_is_given():
    text = text_of("matmul_odd", 0)
    other = text.replace("l1_size = 1572864", "l1_size = 1499136")
    assert other != text
    with pytest.raises(
        gl.LayoutError, match=r"1 is for blackhole \(10x11 cores, 1,461,760 B of l1"
    ):
        gl.compare(text, other)
    found = gl.compare(text, other, chip="wormhole")
    assert found.rows == ()
    assert found.programs[0].chip.name == "Wormhole"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("a/mlp.O0.mlir", "a/mlp.O2.mlir"), ["O0", "O2"]),
        (("a/x.mlir", "b/x.mlir"), ["a", "b"]),
        (("old.mlir", "new.mlir"), ["old", "new"]),
        (("a/b.mlir", "a/b.O1.mlir"), ["b", "b.O1"]),
        (("x.mlir", "x.mlir"), ["1", "2"]),
    ],
)
def test_programs_are_called_what_tells_them_apart(tmp_path, monkeypatch, paths, names):
    monkeypatch.chdir(tmp_path)
    for path in paths:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("\n".join(BEFORE))
    assert [program.name for program in gl.compare(*paths).programs] == names
    ours = gl.compare(paths[0], report((2,)), report((2,)))
    assert [program.name for program in ours.programs][1:] == ["on_grid 1", "on_grid 2"]


# -- output ----------------------------------------------------------------------------------------


def test_many_long_names_stay_within_100_columns():
    names = [f"{'a long name of a program '}{k}" for k in range(MAX_PROGRAMS)]
    found = gl.compare(*[BEFORE, AFTER] * 4, names=names)
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum("ops that make values" in text for text in lines) > 1
    assert sum(text.count("l1 block 2x2") for text in lines) == 4 * 3


def test_more_values_than_are_shown():
    many = [line(k, "relu", [f"%{k - 1}"], [DRAM], DRAM) for k in range(80)]
    other = [text.replace(DRAM, QUARTERS) for text in many]
    found = gl.compare(many, other)
    assert len(found.rows) == 80
    assert "and 30 more whose layouts differ" in str(found)
    assert str(found).count("ttnn.relu") == 50


def test_values_that_were_not_kept_are_named():
    many = [line(k, "relu", [f"%{k - 1}"], [DRAM], DRAM) for k in range(1100)]
    found = gl.compare(many, many)
    assert found.left_out == 2 * (1100 - 512)
    assert "1,176 values with less waste are not compared" in str(found)
    assert max(map(len, str(found).splitlines())) <= 100
    whole = gl.explain(many, limit=1100)
    assert whole.diff(whole).left_out == 0
    # Totals are of all.
    assert found.programs[0].costs == whole.costs


def test_json_has_what_the_text_has():
    found = levels("mlp")
    data = json.loads(found.to_json())
    assert [each["name"] for each in data["programs"]] == ["O0", "O1", "O2"]
    assert data["programs"][2]["dram_bytes"] == found.programs[2].costs.dram_bytes
    assert data["saved"]["dram_bytes"] == found.saved["dram_bytes"]
    assert len(data["values"]) == len(found.rows)
    relu = next(each for each in data["values"] if each["op"] == "ttnn.relu")
    assert [each["memory"] for each in relu["in"]] == ["dram", "dram", "l1"]


def test_names_stay_escaped():
    bad = "<script>alert(1)</script>"
    lines = [text.replace("@main", f'@"{bad}"') for text in BEFORE]
    other = [text.replace(DRAM, QUARTERS) for text in lines]
    page = gl.compare(lines, other, names=[bad, "padding"]).to_html()
    assert "<script>alert" not in page
    assert "width=device-width" in page
    assert 'data-name="padding"' in page  # what a cell is called where a row is a block
    assert "<svg" in page
    assert "\x1b" not in str(gl.compare(BEFORE, AFTER, names=["a\x1b[31m", "b"]))


def test_the_command(tmp_path, capfdbinary, monkeypatch):
    paths = []
    for k in (0, 2):
        path = tmp_path / f"mlp.O{k}.mlir"
        path.write_text(text_of("mlp", k))
        paths.append(str(path))
    expected = gl.compare(*paths)
    assert main(["compare", *paths]) == 0
    assert capfdbinary.readouterr().out.decode() == f"{expected}\n"
    assert main(["compare", *paths, "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == json.loads(expected.to_json())
    assert main(["compare", *paths, "--html", "--function", "main"]) == 0
    assert capfdbinary.readouterr().out.decode().startswith("<!doctype html>")
    with open(paths[1], "rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        assert main(["compare", paths[0], "-"]) == 0
    assert "DRAM read and written" in capfdbinary.readouterr().out.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{}"], "2 to 8 programs are compared, not 1"),
        (["-", "-"], "standard input is one dump: give - once"),
        (["{}", "nowhere.mlir"], "neither a file nor a text"),
        (["{}", "{}", "--function", "nope"], "no function 'nope'"),
    ],
)
def test_the_command_refuses(tmp_path, capfd, arguments, words):
    path = tmp_path / "a.mlir"
    path.write_text("\n".join(BEFORE))
    assert main(["compare", *(word.format(path) for word in arguments)]) == 2
    out, error = capfd.readouterr()
    assert error.startswith("gridlayout compare: ")
    assert words in error
    assert not out


# -- drawings --------------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_numbers():
    found = levels("chain").draw()
    panel = re.search(r">DRAM read and written<.*?(?=class=\"sub\"|$)", found.svg)
    assert panel
    drawn = bars("t", "", ["a", "b", "c"], [Measure("m", [4, 1, None], ["4", "1", "-"])])
    widths = [float(w) for w in re.findall(r'class="c\d" [^>]*width="([\d.]+)"', drawn.svg)]
    assert widths[0] == pytest.approx(4 * widths[1], rel=0.01)
    assert len(widths) == 2
    assert drawn.description == "m: a 4, b 1, c -."
    assert "O0 29.2 MiB" in found.description


@needs_chromium
def test_no_drawing_overprints_clips_or_misleads(tmp_path):
    long = [f"{'program ' * 3}{k}" for k in range(MAX_PROGRAMS)]
    drawings = [
        *((name, levels(name).draw()) for name in NAMES),
        ("with a report", gl.compare(text_of("mlp", 0), text_of("mlp", 2), report()).draw()),
        ("many", gl.compare(*[BEFORE, AFTER] * 4, names=long).draw()),
        ("two", gl.compare(BEFORE, BEFORE).draw()),
    ]
    assert faults(drawings, tmp_path) == []
    broken = drawings[0][1].svg.replace('class="sub" x="0"', 'class="sub" x="-40"', 1)
    wrong = [("broken", type(drawings[0][1])(broken, "", ""))]
    assert {fault[1] for fault in faults(wrong, tmp_path)} == {"leaves the frame"}


NARROW = """<pre id="output"></pre><script type="module">
const parts = [...document.querySelectorAll(".gl-dump > *:not(style)")];
const wide = parts.filter((e) => e.getBoundingClientRect().right > 400.5).map((e) => e.tagName);
document.getElementById("output").textContent = JSON.stringify([parts.length, ...wide]);
</script>"""


@needs_chromium
def test_the_page_is_no_wider_than_a_narrow_window(tmp_path):
    page = levels("block").to_html()
    page = page.replace("<body>", '<body style="margin: 0; width: 400px">')
    count, *wide = output(browse(page.replace("</body>", f"{NARROW}</body>"), tmp_path))
    assert count >= 4
    assert wide == []


def test_memories_have_the_names_of_the_chip():
    chip = gl.Chip("mine", (8, 8), {"scratchpad": 2**20, "dram": 2**30})
    labels = [label for label, _, _ in gl.compare(BEFORE, AFTER, chip=chip).measures]
    assert "scratchpad peak of one core" in labels
    assert not [label for label in labels if "L1" in label]
