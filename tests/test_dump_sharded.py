"""Random programs on random meshes: what `gl.explain` reads off their texts, before and after XLA.

The judges: `NamedSharding.shard_shape` of what JAX was asked for, the devices along the axes of a
mesh, and XLA's `memory_analysis()`. Names of axes are any strings, as JAX allows.
"""

import random
from itertools import accumulate
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from tiers import few

import gridlayout as gl

NAMES = [
    "x",
    "data-parallel",
    "a:0",
    "fsdp/dp",
    "tp 1",
    'q"u',
    "<axis> d",
    "b.c",
    "axis_0",
    "a, b",
    "{[%p]->}",
    "(1)2",
    "//",
]
SIZES = [(2, 4), (4, 2), (8,), (2, 2, 2), (1, 8), (2, 3), (6,), (3, 1, 2), (5,), (2, 1, 4)]


def drawn(seed):
    """A random mesh, in a random order of devices, and a source of randomness."""
    rng = random.Random(seed)
    sizes = rng.choice(SIZES)
    devices = np.array(jax.devices()[: prod(sizes)])
    if rng.random() < 0.3:
        devices = devices[rng.sample(range(len(devices)), len(devices))]
    names = tuple(rng.sample(NAMES, len(sizes)))
    mesh = Mesh(devices.reshape(sizes), names, axis_types=(AxisType.Auto,) * len(sizes))
    return rng, mesh


def spec_of(rng, mesh, rank):
    """A random spec of `rank` dims: each axis divides a dim, or none."""
    dims = [[] for _ in range(rank)]
    for name in rng.sample(mesh.axis_names, len(mesh.axis_names)):
        if rng.random() < 0.7:
            rng.choice(dims).append(name)
    return PartitionSpec(*(tuple(dim) if dim else None for dim in dims))


def whole(rng, mesh, spec):
    """A random shape that the spec divides, as JAX asks of arguments."""
    size = {None: 1} | dict(mesh.shape)
    named = [(dim,) if isinstance(dim, str) else dim or () for dim in spec]
    parts = [prod(size[name] for name in dim) for dim in named]
    return tuple(n * rng.randint(1, 5) for n in parts)


def step(x, w):
    """A function of two arrays of any shapes."""
    y = jnp.tanh(x) * w.sum() + jnp.roll(x, 1, 0)
    return {"y": y, "s": y.sum(axis=-1), "w": jnp.sort(w, axis=0)}


@pytest.mark.parametrize("seed", few(range(40), 4))
def test_shapes_are_divided_once(seed):
    rng, mesh = drawn(seed)
    specs = [spec_of(rng, mesh, rng.choice((1, 2, 3))) for _ in range(2)]
    shapes = [whole(rng, mesh, spec) for spec in specs]
    places = [NamedSharding(mesh, spec) for spec in specs]
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    lowered = jax.jit(step, in_shardings=places).lower(*arguments)
    compiled = lowered.compile()
    right = [place.shard_shape(shape) for place, shape in zip(places, shapes, strict=True)]
    for text in (lowered.as_text(), lowered.as_text("hlo"), compiled.as_text()):
        found = gl.explain(text)
        assert not found.all_unknown, found.unknown
        shardings = [each for each in found.shardings if each.op in ("func.func", "parameter")]
        if "is_scheduled" not in text:  # newer texts of compiled programs state no shardings
            assert sum(each.count for each in shardings) == 2
        for each in shardings:
            assert each.shard_shape in right, (each, right)
            assert each.shape in shapes, (each, shapes)
    (peak,) = gl.explain(lowered.as_text("hlo")).peaks
    sharded = any(place.shard_shape(s) != s for place, s in zip(places, shapes, strict=True))
    assert peak.memory == ("whole-array memory" if sharded else "memory")
    (peak,) = gl.explain(compiled).peaks
    memory = compiled.memory_analysis()
    known = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    assert peak.memory == "memory"
    assert peak.arguments == memory.argument_size_in_bytes == sum(4 * prod(each) for each in right)
    assert abs(peak.nbytes - known) <= max(0.05 * known, 1024), (peak, memory)


PARTITIONED = """HloModule m, {header}num_partitions=8

%body{suffix} (p: (f32[], f32[2,16])) -> (f32[], f32[2,16]) {{
  ROOT %p = (f32[], f32[2,16]{{1,0}}) parameter(0), sharding={{{{replicated}}, {tiled}}}
}}

ENTRY %main.2{suffix} (x: f32[2,16]) -> f32[2,16] {{
  %i = u32[] partition-id()
  %x = f32[2,16]{{1,0}} parameter(0), sharding={{devices=[8,1]<=[8]}}
  %w = (f32[], f32[2,16]{{1,0}}) while((f32[], f32[2,16]) %t), condition=%c, body=%body{suffix}
  ROOT %y = f32[2,16]{{1,0}} copy(%x), sharding={{devices=[1,8]<=[8]}}
}}
"""


@pytest.mark.parametrize(
    ("header", "suffix", "is_part"),
    [
        ("is_scheduled=true, ", "", True),  # what runs
        ("is_scheduled=true, ", "_spmd", True),
        ("", "_spmd", True),  # a dump of a pass after the partitioner
        ("", "_spmd.1.clone", True),
        ("", "", False),  # of one before: there are partitions and `partition-id` too
        ("", "_spmdx", False),
    ],
)
def test_partitioned_hlo_states_parts(header, suffix, is_part):
    found = gl.explain(
        PARTITIONED.format(header=header, suffix=suffix, tiled="{devices=[8,1]<=[8]}")
    )
    of = {each.op: each for each in found.shardings if each.shape}
    assert [each.states_part for each in found.shardings] == [is_part] * 3
    x, y = of["parameter"], of["copy"]
    if is_part:
        assert (x.shape, x.shard_shape, x.device_bytes) == ((16, 16), (2, 16), 128)
        assert (y.shape, y.shard_shape, y.device_bytes) == ((2, 128), (2, 16), 128)
        assert x.padding_share is None
        assert found.peaks[0].memory == "memory"
    else:
        assert (x.shape, x.shard_shape, x.padding_share) == ((2, 16), (1, 16), 0.75)
        assert found.peaks[0].memory == "whole-array memory"
    assert sum(each.count for each in found.shardings if each.op == "parameter") == 3
    for text in (str(found), found.to_html(), found.to_json()):
        assert "whole-array memory per device" not in text


def along(mesh, axes):
    """The groups of positions in the mesh along some of its axes."""
    at = np.arange(mesh.size).reshape(mesh.devices.shape)
    order = [k for k, name in enumerate(mesh.axis_names) if name not in axes]
    inner = [k for k, name in enumerate(mesh.axis_names) if name in axes]
    size = prod(mesh.shape[name] for name in axes)
    return at.transpose(order + inner).reshape(-1, size)


@pytest.mark.parametrize("seed", few(range(100, 140), 4))
def test_groups_are_those_of_the_axes(seed):
    rng, mesh = drawn(seed)
    axes = tuple(rng.sample(mesh.axis_names, rng.randint(1, len(mesh.axis_names))))
    every = PartitionSpec(mesh.axis_names)
    kind = rng.choice(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"))

    def body(x):
        if kind == "all_reduce":
            return jax.lax.psum(x, axes)
        if kind == "all_gather":
            return jax.lax.all_gather(x, axes, tiled=True)
        if kind == "reduce_scatter":
            return jax.lax.psum_scatter(x, axes, tiled=True)
        return jax.lax.all_to_all(x, axes, 0, 1, tiled=True)

    n = mesh.size
    x = jax.ShapeDtypeStruct((n * n, 3 * n), jnp.float32)
    of = jax.shard_map(body, mesh=mesh, in_specs=every, out_specs=every, check_vma=False)
    lowered = jax.jit(of).lower(x)
    groups = along(mesh, axes)
    sized = {name for name in axes if mesh.shape[name] > 1}
    for text in (lowered.as_text(), lowered.as_text("hlo"), lowered.compile().as_text()):
        found = [each for each in gl.explain(text).collectives if each.kind == kind]
        if len(groups) == n and not found:
            continue  # XLA removes a collective of one device
        (each,) = found
        assert (each.groups, each.group_size) == groups.shape, (each, groups)
        if "sdy.mesh" in text or "groups=mesh[" in text:
            assert {name for name in each.axes if mesh.shape[name] > 1} == sized, each


def parted(rng):
    """A mesh, and for each part of an axis its text, its place in a finer mesh, and its size."""
    mesh, finer = {}, {}
    for name in rng.sample(NAMES, rng.randint(1, 3)):
        parts = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 3))]
        mesh[name] = prod(parts)
        before = [1, *accumulate(parts, lambda a, b: a * b)]
        whole = len(parts) == 1
        for low, size in zip(before, parts, strict=False):
            finer[(name, low, size)] = ("", size) if whole else (f":({low}){size}", size)
    return mesh, finer


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_axes_are_axes_of_a_finer_mesh(seed):
    rng = random.Random(seed)
    mesh, finer = parted(rng)
    names = {part: f"a{k}" for k, part in enumerate(finer)}
    dims = [[] for _ in range(rng.randint(1, 3))]
    for part in rng.sample(list(finer), len(finer)):
        if rng.random() < 0.7:
            rng.choice(dims).append(part)
    shape = tuple(prod(finer[part][1] for part in dim) * rng.randint(1, 4) for dim in dims)
    fine = AbstractMesh(tuple(size for _, size in finer.values()), tuple(names.values()))
    spec = PartitionSpec(*(tuple(names[part] for part in dim) or None for dim in dims))
    right = NamedSharding(fine, spec).shard_shape(shape)

    def written(quote, parts):
        return ", ".join(f"{quote}{part[0]}{quote}{finer[part][0]}" for part in parts)

    tensor = "x".join(map(str, shape))
    axes = ", ".join(f'"{name.replace(chr(34), chr(92) + "22")}"={n}' for name, n in mesh.items())
    shardy = ", ".join(f"{{{written(chr(34), dim)}}}" for dim in dims)
    shardy = shardy.replace('q"u', r"q\22u")
    array = f"f32[{','.join(map(str, shape))}]{{{','.join(map(str, range(len(shape))))}}}"
    hlo = ", ".join(f"{{{written(chr(39), dim)}}}" for dim in dims)
    sizes = ",".join(f"'{name}'={n}" for name, n in mesh.items())
    used = [part for dim in dims for part in dim]
    text = (
        f"  sdy.mesh @m = <[{axes}]>\n"
        f"  func.func @f(%arg0: tensor<{tensor}xf32> {{sdy.sharding = "
        f"#sdy.sharding<@m, [{shardy}]>}}) {{\n",
        f"HloModule m\n\nENTRY e {{\n  %p = {array} parameter(0), "
        f"sharding={{mesh[{sizes}], [{hlo}]}}\n}}\n",
    )
    for each in text:
        found = gl.explain(each)
        (sharding,) = found.shardings
        assert not found.all_unknown
        assert (sharding.shard_shape, sharding.shape) == (right, shape), each
        assert sharding.copies * prod(sharding.parts) == prod(mesh.values())
    if used:
        groups = f"mesh[{sizes}] {{{written(chr(39), used)}}}"
        (op,) = gl.explain([f"%a = {array} all-reduce(%b), replica_groups={groups}"]).collectives
        size = prod(finer[part][1] for part in used)
        assert (op.groups, op.group_size) == (prod(mesh.values()) // size, size)
        assert set(op.axes) == {part[0] for part in used}
