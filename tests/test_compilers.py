"""Plans beside what Tenstorrent's compiler made, priced by one machine.

`dumps/levels` and `dumps/chips` are programs of ours as the compiler made them for a p150 at three
levels of optimization, and for an n150 at the lowest.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import SINGLE
from tiers import ALL

import gridlayout as gl
from benchmarks import compilers
from gridlayout.errors import LayoutError
from gridlayout.ops.planning.kinds import COMPUTED, MOVES, PRODUCTS

QUICK = ("chain", "layer_norm", "matmul_odd", "mlp_large", "movement")

MACHINE = gl.Machine("n150")


def kind(dtype, memory="dram", grid=(1, 1)):
    """The type of 256x256: pages in DRAM, or a block of tiles on each core."""
    corner = f"({grid[1] - 1},{grid[0] - 1})"
    how = "<interleaved>"
    if memory == "l1":
        how = f"<block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), {corner}>]>"
    return (
        f"tensor<256x256x{dtype}, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <{grid[0]}x{grid[1]}>, "
        f"memref<{8 // grid[0]}x{8 // grid[1]}x!ttcore.tile<32x32, {dtype}>, "
        f"#ttnn.buffer_type<{memory}>>, {how}>>"
    )


def one_op(op, count, type_of):
    """A program of one op whose operands and result are of one type."""
    names = [f"%a{k}" for k in range(count)]
    return (
        f"func.func @main({', '.join(f'{name}: {type_of}' for name in names)}) -> {type_of} {{\n"
        f'  %0 = "ttnn.{op}"({", ".join(names)}) : ({", ".join([type_of] * count)}) -> {type_of}\n'
        f"  return %0 : {type_of}\n}}"
    )


def plan_of(name, chip="p150", **options):
    fn, shapes = SINGLE[name]
    args = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    return gl.plan(fn, *args, machine=chip, **options)


def dump_of(name, level, chip="p150"):
    return compilers.text_of(name, chip, level)


# -- one price -------------------------------------------------------------------------------------

OPS = {
    "add": (2, jnp.add),
    "exp": (1, jnp.exp),
    "tanh": (1, jnp.tanh),
    "gelu": (1, jax.nn.gelu),
    "relu": (1, jax.nn.relu),
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("short", "dtype"), [("f32", "float32"), ("bf16", "bfloat16")])
def test_an_op_takes_as_long_in_a_dump_as_in_a_report(op, short, dtype):
    count, fn = OPS[op]
    layout = gl.GridLayout((256, 256), dtype, grid=(8, 8), tile=(32, 32))
    program = gl.tenstorrent.load(one_op(op, count, kind(short, "l1", (8, 8))))
    theirs = gl.simulate(program, machine="n150")
    ours = gl.simulate(fn, *[layout] * count, machine="n150")
    assert theirs.time == pytest.approx(ours.time) != 0


def test_a_product_from_dram_takes_as_long_in_a_dump_as_in_a_plan():
    x = jax.ShapeDtypeStruct((256, 256), "bfloat16")
    ours = gl.plan(jnp.matmul, x, x, machine="n150", memory_space="dram")
    program = gl.tenstorrent.load(one_op("matmul", 2, kind("bf16")))
    theirs = gl.simulate(program, machine="n150")
    assert theirs.time == pytest.approx(ours.time)
    assert theirs.equations[0].limit == ours.simulation.equations[0].limit == "dram"
    # Each core gets 8 tiles of both operands over the network; all write the result to DRAM.
    least = 2 * 8 * 2048 / MACHINE.rates.noc + 2 * 256**2 / MACHINE.rates.memory
    assert ours.time == pytest.approx(least)


def test_a_large_product_is_limited_by_multiplying_in_both():
    plan = plan_of("matmul_square", "n150", memory_space="dram")
    theirs = gl.simulate(gl.tenstorrent.load(dump_of("matmul_square", 0, "n150")), machine="n150")
    (product,) = (e for e in theirs.equations if e.name.startswith("matmul"))
    assert product.seconds == pytest.approx(plan.time)
    assert plan.time == pytest.approx(2 * 2048**3 / MACHINE.rates.flops)


# -- no slower -------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SINGLE if ALL else QUICK)
def test_plans_are_no_slower_than_the_compilers_programs(name):
    found = list(compilers.rows(names=(name,)))
    assert {row.chip for row in found} == {"p150", "n150"}
    assert {level for row in found for level in row.levels} >= {0, 1}
    for row in found:
        assert not any(map(row.is_slower, row.levels))
        assert row.time <= row.whole * (1 + 1e-9)


def test_every_dump_has_a_program():
    folders = (compilers.DUMPS / "levels", compilers.DUMPS / "chips")
    names = {path.name.split(".")[0] for folder in folders for path in folder.glob("*.ttnn.mlir*")}
    assert names == {*SINGLE}


# -- what a compiled program takes -----------------------------------------------------------------


def test_a_compiled_program_is_simulated_op_by_op():
    program = gl.tenstorrent.load(dump_of("block", 2))
    found = gl.simulate(program, machine="p150")
    assert found.time == pytest.approx(sum(e.compute + e.movement for e in found.equations))
    limits = {e.limit for e in found.equations if e.seconds}
    assert {"dram", "links", "memory"} <= limits <= {"dram", "links", "memory", "products"}
    assert found.memory().svg.count("<rect") > 5
    assert "time " in str(found)


def test_memory_over_time_is_drams_where_all_is_there():
    found = gl.simulate(gl.tenstorrent.load(dump_of("mlp", 0)), machine="p150")
    assert found.peak_bytes == 0
    most = max(nbytes for _, nbytes in found.in_dram)
    assert most >= 4 * (359 * 64 + 359 * 128)
    assert "DRAM" in found.memory().svg


def test_what_the_host_does_has_no_price():
    found = gl.simulate(gl.tenstorrent.load(dump_of("conv", 2)), machine="p150")
    host = [e.name for e in found.equations if e.how.startswith("host")]
    assert host == ["from_device:0", "prepare_conv2d_weights:0"]


def test_reshapes_that_keep_their_tiles_take_nothing():
    found = gl.simulate(gl.tenstorrent.load(dump_of("layer_norm", 2)), machine="p150")
    (reshape,) = (e for e in found.equations if e.name.startswith("reshape"))
    assert reshape.shape == (1, 300)
    assert reshape.seconds == 0


ON_CORES = kind("f32", "l1", (8, 8))  # a tile on each core
EXP, NEG = (f'"ttnn.{op}"(%{{}}) : ({ON_CORES}) -> {ON_CORES}' for op in ("exp", "neg"))
CALL = f"call @f(%{{}}) : ({ON_CORES}) -> {ON_CORES}"


def function_on_cores(name, lines, *returned):
    """A function of %a; the lines make %0, %1 and so on."""
    types = ", ".join([ON_CORES] * len(returned))
    body = "".join(f"  %{k} = {line}\n" for k, line in enumerate(lines))
    names = ", ".join(f"%{name}" for name in returned)
    return (
        f"func.func {name}(%a: {ON_CORES}) -> ({types}) {{\n{body}  return {names} : {types}\n}}\n"
    )


@pytest.mark.parametrize(
    ("lines", "returned", "tiles"),
    [
        ([EXP.format("a"), NEG.format("0")], [1], [2, 2]),
        # Results are live to the end.
        ([EXP.format("a"), NEG.format("a")], [0, 1], [2, 3]),
        ([EXP.format("a"), NEG.format("0"), EXP.format("1")], [0, 2], [2, 2, 3]),
        # A function's arguments and results are values of its caller.
        ([CALL.format("a")], [0], [2, 2, 1]),
        ([CALL.format("a"), NEG.format("0"), CALL.format("1")], [2], [2, 2, 1, 2, 2, 2, 1]),
    ],
)
def test_values_are_live_until_the_last_op_that_needs_them(lines, returned, tiles):
    called = function_on_cores("private @f", [EXP.format("a"), NEG.format("0")], 1)
    program = gl.tenstorrent.load(
        called + function_on_cores("@main", lines, *returned), function="main"
    )
    found = gl.simulate(program, machine="n150")
    assert [nbytes / 4096 for _, nbytes in found.held] == tiles
    assert found.peak_bytes == max(tiles) * 4096


def test_operands_of_branches_are_live_in_all_of_them():
    branches = [function_on_cores(f"private @{name}", [EXP.format("a")], 0) for name in "gh"]
    case = (
        '"ttcore.case"(%n, %a) <{branch_programs = [@g, @h]}> : '
        f"(tensor<i32>, {ON_CORES}) -> {ON_CORES}"
    )
    main = function_on_cores("@main", [case, NEG.format("a")], 0, 1)
    text = "".join(branches) + main.replace("(%a:", "(%n: tensor<i32>, %a:")
    found = gl.simulate(gl.tenstorrent.load(text, function="main"), machine="n150")
    assert [nbytes / 4096 for _, nbytes in found.held] == [2, 2, 2, 3]


# -- side by side ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan():
    return plan_of("mlp")


@pytest.fixture(scope="module")
def found(plan):
    return gl.compare(plan, *(dump_of("mlp", k) for k in range(3)), names=["plan", "0", "1", "2"])


def test_a_plan_is_compared_with_dumps(plan, found):
    assert isinstance(found, gl.results.TimeComparison)
    for program, level in zip(found.programs[1:], range(3), strict=True):
        loaded = gl.tenstorrent.load(dump_of("mlp", level))
        assert program.simulation.time == gl.simulate(loaded, machine="p150").time == program.whole
    assert found.programs[0].whole == plan.time + plan.carried
    assert found.saved == found.programs[-1].whole - found.programs[0].whole > 0
    for k, program in enumerate(found.programs):
        total = sum(seconds[k] for seconds in found.by_kind.values())
        assert total == pytest.approx(program.simulation.time)
    assert found.by_kind[MOVES][0] == 0
    assert found.by_kind[PRODUCTS][0] > 0
    assert found.by_kind[COMPUTED][3] > 0


def test_rows_are_ordered_by_their_difference(found):
    differences = [row.difference for row in found.rows]
    assert differences == sorted(differences, reverse=True)
    product = next(row for row in found.rows if row.word == "product" and row.shape == (359, 128))
    assert product.is_in_all
    assert [each.place.split()[0] for each in product.equations] == ["l1", "dram", "dram", "l1"]
    softmax = next(row for row in found.rows if row.word == "softmax")
    assert softmax.equations[0] is None
    assert softmax.seconds[0] == 0 < softmax.seconds[3]


def test_all_outputs_have_the_same_numbers(found):
    text = str(found)
    assert max(map(len, text.splitlines())) <= 100
    assert "only in some" in text
    page = found.to_html()
    for words in ("from DRAM to DRAM", "softmax", "l1 height 12x1", "products"):
        assert words in text
        assert words in page
    record = json.loads(found.to_json())
    assert [x["name"] for x in record["programs"]] == ["plan", "0", "1", "2"]
    assert len(record["equations"]) == len(found.rows)
    assert "time" in found.draw().description


def test_plans_programs_and_simulations_are_compared(plan, tmp_path):
    program = gl.tenstorrent.load(dump_of("mlp", 2))
    path = tmp_path / "mlp.O2.ttnn.mlir"
    path.write_text(dump_of("mlp", 2))
    simulation = gl.simulate(program, machine="p150")
    made = gl.compare(plan, plan, program, path, simulation)
    names = [each.name for each in made.programs]
    assert names == ["plan 1", "plan 2", "program", "mlp.O2.ttnn.mlir", "simulation"]
    assert len({each.simulation.time for each in made.programs[2:]}) == 1
    same = gl.compare(plan, plan)
    assert {row.difference for row in same.rows} == {0.0}


def test_what_can_not_be_compared_is_refused(plan):
    text, program = dump_of("mlp", 0), gl.tenstorrent.load(dump_of("mlp", 0))
    other = plan_of("mlp", "n150")
    refused = {
        "state no machine": (program, program),
        "2 to 8 programs": (plan,),
        "for a chip of 10x11 cores, the plan for one of 8x8": (other, text),
        "two machines": (plan, other),
        "which has no time": (plan, 3),
        "is Explanation": (plan, gl.explain(text)),
        "it is not a compiled program": (plan, "module {}"),
    }
    for why, programs in refused.items():
        with pytest.raises(LayoutError, match=why):
            gl.compare(*programs)
    with pytest.raises(LayoutError, match="apply to dumps only"):
        gl.compare(plan, text, chip="blackhole")
    with pytest.raises(LayoutError, match="must be 2 strings"):
        gl.compare(plan, text, names=["one"])


# -- where arguments and results are ---------------------------------------------------------------

RATES = gl.Machine("n150").rates
TOY = gl.Machine(
    gl.Chip("toy", (2, 4), {"l1": 1 << 20, "dram": 1 << 30}, ((32, 32),)),
    (1,),
    gl.Links(1e9),
    rates=RATES,
)
X = np.random.default_rng(0).normal(size=(3, 70, 70)).astype(np.float32)


@pytest.mark.parametrize(
    "fn", [lambda x: jax.nn.softmax(x, -1), lambda x: x.transpose(1, 0, 2) + 1]
)
def test_plans_run_with_idle_cores_and_from_dram(fn, tmp_path):
    expected = fn(X)
    for space in (None, "dram"):
        plan = gl.plan(fn, X, machine=TOY, memory_space=space)
        np.testing.assert_allclose(np.asarray(plan.run(X)), expected, rtol=1e-4, atol=1e-5)
        plan.save(tmp_path / "plan.json")
        again = gl.load_plan(tmp_path / "plan.json", fn)
        assert gl.simulate(fn, X, plan=again).time == pytest.approx(plan.time)


def test_rows_of_cores_that_have_nothing_are_used_where_it_is_faster():
    x = jax.ShapeDtypeStruct((7, 130, 70), "float32")
    plan = gl.plan(lambda x: jax.nn.softmax(x, -1), x, machine="p150")
    assert plan.layouts["x"].grid[0] > 7  # a row of tiles on one core, and some have none
    assert plan.bound <= plan.time


def test_arguments_and_results_are_in_dram_where_that_is_asked():
    x = jax.ShapeDtypeStruct((2048, 512), "bfloat16")
    plan = gl.plan(lambda x, y: x + y, x, x, machine="n150", memory_space="dram")
    assert {layout.memory for layout in (*plan.layouts.values(), *plan.results.values())} == {
        "dram"
    }
    assert plan.carried == 0
    assert plan.time == pytest.approx(3 * 2 * 2048 * 512 / RATES.memory)
    there = gl.plan(lambda x, y: x + y, x, x, machine="n150", memory_space="l1")
    assert there.carried == pytest.approx(plan.time)
    with pytest.raises(LayoutError, match="chips have cores"):
        gl.plan(jnp.tanh, x, machine="v5e 4x4", memory_space="dram")
    with pytest.raises(LayoutError, match="memory_space"):
        gl.plan(jnp.tanh, x, machine="n150", memory_space="system")
