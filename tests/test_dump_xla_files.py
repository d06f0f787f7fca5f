"""The files that `xla_dump_to` writes, of a program on a mesh.

Each says of memory, parts and groups what `memory_analysis()` and `shard_shape` say. XLA's short
form writes `state#1` for a part of a tuple.
"""

import re

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import gridlayout as gl

MESH = '  sdy.mesh @m = <["x"=2, "y"=4]>'


def _scanned(x, w):
    def body(c, _):
        return jnp.tanh(c @ w), c.sum()

    return jax.lax.scan(body, x, None, length=7)


def _chained(x, w):
    return jnp.tanh(x @ w) @ w.T


@pytest.fixture(scope="module", params=[_scanned, _chained])
def dumped(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dumped")
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    places = [NamedSharding(mesh, PartitionSpec(*spec)) for spec in (("x", None), (None, "y"))]
    shapes = [(24, 48), (48, 48)]
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    lowered = jax.jit(request.param, in_shardings=tuple(places)).lower(*arguments)
    options = {
        **{"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True},
        "xla_dump_hlo_pass_re": ".*partitioning.*",
    }
    compiled = lowered.compile(compiler_options=options)
    parts = {(shape, place.shard_shape(shape)) for shape, place in zip(shapes, places, strict=True)}
    name = f"jit_{request.param.__name__}"
    paths = [path for path in folder.glob("*.txt") if re.search(rf"{name}\b", path.name)]
    return paths, compiled.memory_analysis(), parts


def _one(paths, end):
    (path,) = (path for path in paths if path.name.endswith(end))
    return gl.explain(path)


def test_no_file_states_other_parts_than_jax(dumped):
    paths, _, parts = dumped
    texts = 0
    for path in paths:
        found = gl.explain(path)
        assert found.all_unknown == 0, (path, found.unknown)
        read = {(s.shape, s.shard_shape) for s in found.shardings if s.op == "parameter"}
        texts += bool(read)
        if "after_spmd" in path.name or "cpu_after" in path.name:
            assert read <= parts, path
        elif "before_optimizations" in path.name:
            assert read == parts
    assert texts >= 2


def test_the_program_that_ran_has_the_memory_that_xla_states(dumped):
    paths, memory, _ = dumped
    (peak,) = _one(paths, "cpu_after_optimizations.txt").peaks
    assert (peak.arguments, peak.results) == (
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes,
    )
    assert abs(peak.temporary - memory.temp_size_in_bytes) <= 64


def test_totals_of_all_files_are_equal(dumped):
    paths, _, _ = dumped
    (peak,) = _one(paths, "-buffer-assignment.txt").peaks
    assert peak.memory == "assigned memory"
    (report,) = _one(paths, "-memory-usage-report.txt").peaks
    assert (report.memory, report.nbytes) == (peak.memory, peak.nbytes)
    values = _one(paths, "-buffer-assignment-values.txt")
    assert [(p.memory, p.nbytes) for p in values.peaks] == [
        ("assigned memory of all spaces", peak.nbytes)
    ]
    assert not values.collectives
    assert not values.shardings
    assert values.layouts == _one(paths, "-buffer-assignment.txt").layouts > 4


def test_each_memory_space_of_a_report_has_its_total():
    text = """Memory Space: default (color=0)
Total bytes: 3468 (3.4KiB)
  cumulative_size;       size;       offset; used_by_n_values; shapes_list
  ------------------------------------------------------------
       960B(100%);       960B;            0;                2; 2×f32[12,20]

Memory Space: host (color=5)
Total bytes: 70 (70B)
"""
    for prefix in ("", "12:03:01 | "):
        lines = [prefix + line for line in text.splitlines()]
        found = gl.explain(lines)
        assert [(p.memory, p.nbytes, p.line) for p in found.peaks] == [
            ("assigned memory", 3468, 2),
            ("assigned memory 5", 70, 8),
        ]


LONG = """HloModule m, is_scheduled=true

%fused (p: f32[6,10], q: f32[6,10]) -> f32[6,10] {
  %p = f32[6,10]{1,0} parameter(0)
  %q = f32[6,10]{1,0} parameter(1)
  ROOT %s = f32[6,10]{1,0} add(%p, %q)
}

ENTRY %main (t: (s32[], f32[6,10], f32[6,10])) -> (f32[6,10], f32[6,10]) {
  %t = (s32[], f32[6,10]{1,0}, f32[6,10]{1,0}) parameter(0)
  %t1 = f32[6,10]{1,0} get-tuple-element(%t), index=1
  %t2 = f32[6,10]{1,0} get-tuple-element(%t), index=2
  %f = f32[6,10]{1,0} fusion(%t1, %t2), kind=kLoop, calls=%fused
  %g = f32[6,10]{1,0} add(%f, %t1)
  %c = f32[6,10]{0,1} copy(%t2)
  %u = (f32[6,10]{1,0}, f32[6,10]{0,1}) tuple(%g, %c)
  %b = (f32[6,10]{1,0}, f32[6,10]{0,1}) opt-barrier(%u)
  %b0 = f32[6,10]{1,0} get-tuple-element(%b), index=0
  %b1 = f32[6,10]{0,1} get-tuple-element(%b), index=1
  ROOT %r = (f32[6,10]{1,0}, f32[6,10]{0,1}) tuple(%b0, %b1)
}
"""


@pytest.mark.parametrize("percent", ["%", ""])
def test_parts_of_tuples_are_read_alike_in_the_short_form(percent):
    def short(found):
        return f"%{found[1]}#{found[2]}"

    parts = dict(re.findall(r"%(\w+) = \S+ get-tuple-element\((.+)\n", LONG))
    text = re.sub(r"  %\w+ = \S+ get-tuple-element.*\n", "", LONG)
    for name, written in parts.items():
        part = re.sub(r"%(\w+)\), index=(\d)", short, written)
        text = re.sub(rf"%{name}\b(?! =)", part, text)
    assert text.count("#") == 6
    assert "get-tuple-element" not in text
    found, other = gl.explain(LONG), gl.explain(text.replace("%", percent))
    (peak,), (same,) = found.peaks, other.peaks
    assert (same.arguments, same.results, same.temporary) == (
        (peak.arguments, peak.results, peak.temporary)
    )
    # Both results, with two pointers; `f` is in the place of `g`.
    assert (same.arguments, same.results, same.temporary) == (484, 496, 0)
    assert [(m.op, m.moved_bytes) for m in other.moves] == [
        (m.op, m.moved_bytes) for m in found.moves
    ]
    assert len(found.moves) == 1


@pytest.mark.parametrize(
    ("groups", "expected", "received"),
    [
        # iota(8) as 2x4, transposed, is [[0,4],[1,5],[2,6],[3,7]]: its rows are groups along b.
        ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}", (4, 2, ("b",), (2,)), 240),
        ("mesh['a'=4,'b'=2], device_ids=(7,6,5,4,3,2,1,0) {'a'}", (2, 4, ("a",), (4,)), 360),
        ("mesh['a'=4,'b'=2] {'b','a'}", (1, 8, ("b", "a"), (2, 4)), 420),
        ("mesh['a'=4,'b'=2] {'b','c'}", (0, 0, ("b", "c"), ()), None),
        ("{{0,1,2},{3,4,5,6,7}}", (2, 5, (), ()), 384),
        ("{{5},{3,4,0,6,7}}", (2, 5, (), ()), 384),
    ],
)
def test_groups_of_hlo(groups, expected, received):
    line = f"  %r = f32[6,10]{{1,0}} all-reduce(%p), replica_groups={groups}, to_apply=%add"
    (found,) = gl.explain([line]).collectives
    assert (found.groups, found.group_size, found.axes, found.axis_sizes) == expected
    assert found.received_bytes == received
    assert (gl.explain([line]).costs.chip_bytes) == received


def test_the_order_of_a_mesh_gives_groups_no_wrong_axes():
    group = "dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>"
    line = (
        f'  %0 = "stablehlo.all_gather"(%a) <{{replica_groups = {group}}}>'
        " : (tensor<3x4xf32>) -> tensor<6x4xf32>"
    )
    order = "device_ids=[0, 2, 4, 6, 1, 3, 5, 7]"
    meshes = [
        f'sdy.mesh @m = <["x"=2, "y"=4], {order}>',
        f'"sdy.mesh"() <{{mesh = #sdy.mesh<["x"=2, "y"=4], {order}>, sym_name = "m"}}> : () -> ()',
    ]
    for mesh in meshes:
        kind = 'tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}'
        found = gl.explain([mesh, f"func.func @f(%a: {kind}) {{", line])
        assert [(c.groups, c.group_size, c.axes) for c in found.collectives] == [(4, 2, ())]
        assert [s.parts for s in found.shardings] == [(2, 4)]
    found = gl.explain([MESH, line])
    assert [c.axes for c in found.collectives] == [("x",)]


def test_unequal_groups_of_stablehlo_are_filled_up():
    line = (
        '  %0 = "stablehlo.all_gather"(%a) <{replica_groups = dense<[[0, 1, -1], [3, 4, 5]]> : '
        "tensor<2x3xi64>}> : (tensor<3x4xf32>) -> tensor<9x4xf32>"
    )
    (found,) = gl.explain([line]).collectives
    assert (found.groups, found.group_size, found.received_bytes) == (2, 3, 96)


@pytest.mark.parametrize(
    ("written", "out", "expected"),
    [
        ('{"x"}', '<mesh<["x"=4, "z"=2]>, [{}, {}]>', (2, 4, ("x",), (4,))),
        ('{"x"}', "<@m, [{}, {}]>", (4, 2, ("x",), (2,))),
        ('{"x", "w"}', "<@m, [{}, {}]>", (0, 0, ("x", "w"), ())),
        ('{"x"}', "<@other, [{}, {}]>", (0, 0, ("x",), ())),
    ],
)
def test_groups_of_shardy_are_of_the_mesh_that_is_stated(written, out, expected):
    line = f"  %1 = sdy.all_reduce {written} %0 out_sharding={out} : tensor<8x8xf32>"
    (found,) = gl.explain([MESH, line]).collectives
    assert (found.groups, found.group_size, found.axes, found.axis_sizes) == expected
    assert (found.received_bytes is None) == (expected[0] == 0)


def test_ops_that_keep_no_dims_are_no_reshards():
    a, b, c = (f"{{devices=[{n}]<=[8]}}" for n in ("8,1", "1,8", "4,2"))
    square = "f32[24,24]{1,0}"
    both = f"({square}, {square})"
    text = f"""HloModule m, num_partitions=8

ENTRY %main (p: (f32[24,24], f32[24,24])) -> (f32[24,24], f32[24,24]) {{
  %p = {both} parameter(0), sharding={{{a}, {b}}}
  %g = {square} get-tuple-element(%p), index=0, sharding={a}
  %h = {square} get-tuple-element(%p), index=1, sharding={b}
  %t = {square} transpose(%g), dimensions={{1,0}}, sharding={b}
  %d = {square} dot(%g, %h), lhs_contracting_dims={{1}}, sharding={{devices=[2,4]<=[8]}}
  %n = {square} negate(%d), sharding={c}
  ROOT %r = {both} tuple(%t, %n), sharding={{{b}, {c}}}
}}
"""
    found = gl.explain(text)
    assert [s.name for s in found.shardings if s.op == "parameter"] == ["p", "p#1"]
    assert [(r.name, r.before.parts, r.after.parts) for r in found.reshards] == [
        ("n", (2, 4), (4, 2))
    ]


def test_other_axes_of_equal_sizes_are_a_reshard():
    lines = [
        'sdy.mesh @s = <["x"=2, "y"=2]>',
        'func.func @f(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@s, [{"x"}, {}]>}) {',
        '  %0 = sdy.reshard %a <@s, [{"y"}, {}]> : tensor<8x8xf32>',
        '  %1 = sdy.sharding_constraint %0 <@s, [{"y", ?}, {?}]> : tensor<8x8xf32>',
        "  %2 = stablehlo.transpose %1, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<"
        '[<@s, [{}, {"y"}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>',
    ]
    assert [each.name for each in gl.explain(lines).reshards] == ["%0"]


@pytest.mark.parametrize(
    ("sharding", "parts"),
    [
        ('#sdy.sharding<@m, [{"x"}, {"y"}]>', (2, 4)),
        ("#sdy.sharding<mesh<[], device_ids=[3]>, []>", (1, 1)),
        ('#sdy.sharding<mesh<["x"=3], device_ids=[2, 0, 1]>, [{}, {"x"}]>', (1, 3)),
    ],
)
def test_a_sharding_may_have_an_alias(sharding, parts):
    lines = [MESH, "func.func @f(%a: tensor<24x24xf32> {sdy.sharding = #s.1}) {"]
    for text in ([f"#s.1 = {sharding}", *lines], [lines[0], lines[1].replace("#s.1", sharding)]):
        (found,) = gl.explain(text).shardings
        assert found.parts == parts


def test_addends_are_whole_and_an_unknown_sharding_is_not_read():
    line = "  %p = f32[24,48]{{1,0}} parameter(0), sharding={{{}}}"
    header = "HloModule m, num_partitions=8"
    (found,) = gl.explain([header, line.format("unreduced")]).shardings
    assert (found.parts, found.copies) == ((1, 1), 8)
    found = gl.explain([header, line.format("unknown")])
    assert found.shardings == ()
    assert "unknown" in found.unknown[0].reason


def test_an_unread_sharding_is_the_reason_of_the_refusal():
    kind = 'tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"w"}]>}'
    with pytest.raises(gl.LayoutError, match="mesh axis 'w' has no size"):
        gl.explain(f"{MESH}\nfunc.func @f(%a: {kind}) {{")


def test_a_donated_argument_that_is_returned_is_subtracted_once():
    text = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY %main (a: f32[6,10], b: f32[6,10]) -> (f32[6,10], f32[6,10], f32[6,10]) {
  %a = f32[6,10]{1,0} parameter(0)
  %b = f32[6,10]{1,0} parameter(1)
  %c = f32[6,10]{1,0} copy(%b)
  %n = f32[6,10]{1,0} negate(%b)
  ROOT %r = (f32[6,10]{1,0}, f32[6,10]{1,0}, f32[6,10]{1,0}) tuple(%a, %c, %n)
}
"""
    (peak,) = gl.explain(text).peaks
    assert (peak.arguments, peak.results, peak.temporary) == (480, 2 * 240 + 3 * 8, 0)


@pytest.mark.parametrize("dims", ['{"w":(1)2}, {}', '{"y":(1)3}, {}', '{"x"}, {"x", "y"}'])
def test_a_part_of_an_axis_that_the_mesh_lacks_is_not_read(dims):
    kind = f"tensor<24x24xf32> {{sdy.sharding = #sdy.sharding<@m, [{dims}]>}}"
    found = gl.explain([MESH, f"func.func @f(%a: {kind}) {{"])
    assert found.shardings == ()
    assert found.all_unknown == 1
    line = '  %1 = sdy.all_reduce {"w":(1)2} %0 out_sharding=<@m, [{}]> : tensor<8xf32>'
    (op,) = gl.explain([MESH, line]).collectives
    assert (op.groups, op.group_size, op.received_bytes) == (0, 0, None)


@pytest.mark.parametrize(
    "line",
    [
        "  %a = f6e9m9[24]{0} all-reduce(%p), replica_groups=[1,8]<=[8], to_apply=%add",
        "  %a = (f6e9m9[24]{0}, f32[8]{0}) all-to-all(%p, %q), replica_groups=[1,8]<=[8]",
        '  %0 = "stablehlo.all_gather"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>'
        " : (tensor<?x4xf32>) -> tensor<?x4xf32>",
        '  %0 = "ttir.all_gather"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : '
        "(tensor<3x!quant.uniform<i8:f32, 0.1>>) -> tensor<6x!quant.uniform<i8:f32, 0.1>>",
    ],
)
def test_a_collective_of_unread_types_receives_unknown_bytes(line):
    found = gl.explain([line])
    (op,) = found.collectives
    assert (op.result_bytes, op.received_bytes) == (None, None)
    assert op.group_size > 1
    assert found.costs.chip_bytes is None
    assert str(found).splitlines()[-1].split()[-2:] == ["?", "?"] or found.unknown
    assert "receives" not in found.to_html().partition("<table")[0]


def test_shardings_of_a_tuple_belong_to_its_arrays_in_order():
    text = """HloModule m, num_partitions=8

ENTRY %main (p: (f32[<=8,4], token[], f32[16])) -> f32[16] {
  %p = (f32[<=8,4]{1,0}, token[], f32[16]{0}) parameter(0), sharding={{devices=[2,4]<=[8]}, {maximal device=0}, {devices=[8]<=[8]}}
}
"""  # noqa: E501
    found = gl.explain(text)
    assert [(s.name, s.shape, s.parts) for s in found.shardings] == [
        ("p", (8, 4), (2, 4)),
        ("p#2", (16,), (8,)),
    ]
    assert found.all_unknown == 0
    for dims in ("3,,4", ",3", "3,", "9" * 40):
        line = f"  %p = f32[{dims}]{{1,0}} parameter(0), sharding={{devices=[2,4]<=[8]}}"
        assert gl.explain([line]).shardings == ()


def test_parts_of_a_tuple_have_their_number_and_their_uses():
    text = """HloModule m

ENTRY main {
  t = (f32[8]{0}, s32[], f32[16]{0}) custom-call(), custom_call_target="f"
  a = f32[8]{0} negate(t#0)
  b = f32[16]{0} negate(t#2)
  ROOT c = f32[16]{0} add(b, t#2)
}
"""
    found = {each.name: each.count for each in gl.explain(text).findings}
    assert found == {"t": 2, "t#2": 3, "a": 1, "b": 2, "c": 1}
