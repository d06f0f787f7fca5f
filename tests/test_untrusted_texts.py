"""Texts that nobody trusts: what reading one takes is in proportion to its length.

Lines of Python and bytes are counted (`prove/growth.py`), so a busy machine changes nothing.
"""

import pytest
import tiers
from prove import growing_texts
from prove.growth import excess
from prove.parsers_read import GROWING, READERS

import gridlayout as gl
from gridlayout.mlir.program import MAX_RESULTS
from gridlayout.ops.tenstorrent.linking import MAX_DEPTH, MAX_OPS, MAX_OPS_PER_OP

pytestmark = pytest.mark.usefixtures("frozen")  # each case empties the caches
# Those that take seconds are left to `make test-all`.
SLOW = ("relayouts", "chain_of_ops", "tree_of_ops", "constants", "long_alias_of_equal_types")
CASES = [
    (name, text_of)
    for name in GROWING
    for text_of in GROWING[name]
    if tiers.ALL or text_of.__name__ not in SLOW
]
TENSOR = growing_texts.TENSOR


@pytest.mark.few(16)
@pytest.mark.parametrize(
    ("name", "text_of"), CASES, ids=[f"{name}-{text_of.__name__}" for name, text_of in CASES]
)
def test_the_cost_of_a_text_is_in_proportion_to_its_length(name, text_of):
    assert not excess(lambda given: READERS[name](given.encode()), text_of)


def test_a_cost_out_of_proportion_is_told():
    def text_of(length):
        return "a" * length

    assert "lines" in excess(lambda text: [0 for _ in range(len(text) ** 2 // 100)], text_of)
    assert "run over" in excess(lambda text: [0 for _ in range(10**9)], text_of)
    assert "bytes" in excess(lambda text: bytes(len(text) ** 2 // 4), text_of)
    assert not excess(lambda text: [0 for _ in text], text_of)


def called(depth, times, op='"ttir.neg"'):
    """Functions, each of which calls the one before it so many times; the first computes an op."""
    functions = [f"  %0 = {op}(%a) : ({TENSOR}) -> {TENSOR}\n"]
    for k in range(depth - 1):
        call = f"= call @f{k}(%a) : ({TENSOR}) -> {TENSOR}\n"
        functions.append("".join(f"  %{n} {call}" for n in range(times)))
    return "".join(
        f"func.func @f{k}(%a: {TENSOR}) -> {TENSOR} {{\n{body}  return %0 : {TENSOR}\n}}\n"
        for k, body in enumerate(functions)
    )


def test_calls_are_written_out_up_to_a_number_of_ops():
    program = gl.tenstorrent.load(called(11, 2))
    assert len(program.operations) == 2**10 + sum(2**k for k in range(1, 11))
    text = called(14, 2)
    most = MAX_OPS + MAX_OPS_PER_OP * text.count("\n  ")
    with pytest.raises(gl.LayoutError, match=rf"@f\d+ runs \d+ ops, .*; at most {most} are"):
        gl.tenstorrent.load(text)


def test_functions_call_each_other_up_to_a_depth():
    program = gl.tenstorrent.load(called(MAX_DEPTH, 1))
    assert len(program.operations) == MAX_DEPTH
    assert "neg" in str(program.report())
    for depth in (MAX_DEPTH + 1, 400):
        with pytest.raises(
            gl.LayoutError, match=f"over {MAX_DEPTH} functions that call each other"
        ):
            gl.tenstorrent.load(called(depth, 1))


def test_the_depth_counts_calls_of_functions_that_are_linked_already():
    text = called(MAX_DEPTH + 1, 1)
    calls = "".join(
        f"  %{k} = call @f{k}(%a) : ({TENSOR}) -> {TENSOR}\n" for k in range(MAX_DEPTH + 1)
    )
    text += f"func.func @main(%a: {TENSOR}) -> {TENSOR} {{\n{calls}  return %0 : {TENSOR}\n}}\n"
    with pytest.raises(gl.LayoutError, match="functions that call each other"):
        gl.tenstorrent.load(text)


def test_packs_of_results_are_bounded_together():
    names = ", ".join(f"%r{k}:{MAX_RESULTS // 2}" for k in range(3))
    text = (
        f'func.func @main(%a: {TENSOR}) {{\n  {names} = "ttir.neg"(%a) : () -> ()\n  return\n}}\n'
    )
    with pytest.raises(gl.LayoutError, match=f"line 2: %r2 has {MAX_RESULTS // 2} results"):
        gl.tenstorrent.load(text)


@pytest.mark.parametrize(
    ("mesh", "words"),
    [("1x" * 8 + "2", "at most 8 axes"), ("4001x" * 3 + "4096", "1024"), ("1x1025", "1024")],
)
def test_meshes_of_chips_are_bounded(mesh, words):
    module = f'module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh}>]>}} {{\n'
    with pytest.raises(gl.LayoutError, match=words):
        gl.tenstorrent.load(f"{module}{called(1, 1)}}}\n")


def test_a_loop_names_its_function():
    loop = called(1, 1, '"ttcore.while_loop"').replace(
        "(%a) :",
        "(%a) <{body_program = 1, state_count = 1 : i64, output_indices = array<i64: 0>}> :",
    )
    with pytest.raises(gl.LayoutError, match="body_program = 1 must name one function"):
        gl.tenstorrent.load(loop)


def test_types_that_are_not_written_out_are_told():
    (unread,) = gl.explain(growing_texts.long_alias(40_000).split("\n")).unknown
    assert "its alias was not written out" in unread.reason


def test_groups_are_those_of_the_mesh_whatever_their_number():
    lines = [
        'sdy.mesh @m = <["x"=7, "y"=30000]>',
        "HloModule m, num_partitions=210000",
        "ENTRY %e (p: f32[4]) -> f32[4] {",
        "  %a = f32[4]{0} all-reduce(%p), replica_groups=[7,30000]<=[7,30000]",
        "  %b = f32[5]{0} all-reduce(%p), replica_groups=[30000,7]<=[7,30000]T(1,0)",
        "  %c = f32[6]{0} all-reduce(%p), replica_groups={}",
        "  %d = f32[7]{0} all-reduce(%p), replica_groups=[70000,3]<=[7,30000]T(1,0)",
        "  %e = f32[8]{0} collective-permute(%p), source_target_pairs={{0,30000},{30000,0}}",
        "  %f = f32[9]{0} collective-permute(%p), source_target_pairs={{0,1},{0,30000}}",
        "}",
    ]
    found = {each.name: each for each in gl.explain(lines).collectives}
    expected = {
        "a": (7, 30000, ("y",)),
        "b": (30000, 7, ("x",)),
        "c": (1, 210000, ("x", "y")),
        "d": (70000, 3, ()),
        "e": (2, 2, ("x",)),
        "f": (2, 2, ()),
    }
    assert expected == {n: (x.groups, x.group_size, x.axes) for n, x in found.items()}


def test_devices_on_a_diagonal_are_along_no_axis():
    lines = [
        'sdy.mesh @m = <["x"=2, "y"=4]>',
        "  %a = f32[4]{0} all-reduce(%p), replica_groups={{0,5},{1,4}}",
        "  %b = f32[5]{0} all-reduce(%p), replica_groups={{5,1},{0,4}}",
    ]
    found = gl.explain(lines).collectives
    assert {each.name: each.axes for each in found} == {"a": (), "b": ("x",)}


def test_numbers_of_any_size_can_be_shown():
    found = gl.explain(growing_texts.enormous_arrays(40_000).split("\n"))
    assert found.all_collectives == 4
    assert "all-reduce" in str(found)
    assert found.to_json()
    assert found.to_html()


def test_a_tile_without_elements_is_unread():
    kind = growing_texts.LAYOUT.replace("32x32", "0x32").replace("#dram", "#ttnn.buffer_type<dram>")
    found = gl.explain([f'%0 = "ttnn.full"() : () -> tensor<4x4xf32, {kind}>'])
    assert "tile" in found.unknown[0].reason


def test_elements_that_share_places_are_counted_up_to_a_number():
    text = growing_texts.document("(d0) -> (d0 floordiv 4611686018427387904, d0 mod 4)", 2**40)
    layout = gl.parse(text.replace("64x64xf32, #ttcore.mem", "1x4xf32, #ttcore.mem"))
    assert gl.explain(layout, plan=True).layout == layout
