"""Whatever a public function is given in place of an argument, it works or raises `LayoutError`.

Every argument of every call in `CALLS` takes each of `ANYTHING` in turn: values of wrong types, and
of the right type that no layout has. `test_public.py` gives too few, too many, and unknown names.
"""

import inspect
import tempfile
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from machines import measured

import gridlayout as gl
from gridlayout.sharding.collectives import ALL_GATHER

DEVICE = gl.DeviceGrid((2, 2))
SHARDING = jax.sharding.NamedSharding(DEVICE.mesh, jax.sharding.PartitionSpec("x"))
ONE = gl.DeviceGrid((1,))
MACHINE = Path(tempfile.mkdtemp()) / "machine.json"
gl.Machine("n300").save(MACHINE)
LAYOUT = gl.GridLayout((4, 6), grid=(2, 2))
ARRAY = np.ones((4, 6), np.float32)
GX = gl.put(ARRAY, LAYOUT, DEVICE)
MAP = gl.AffineMap.parse("(d0, d1) -> (d0, d1)")
NCHW = (2, 3, 4, 5)
LOCAL, SYSTEM = gl.sophon.local(NCHW, "float32"), gl.sophon.system(NCHW, "float32")
IMAGE = gl.mli.tensor((8, 8, 4), "HWC", "int8")
WEIGHTS = gl.mli.tensor((3, 3, 4, 5), "HWCN", "int8")
SEQUENCE = gl.put(
    np.ones((4, 1, 2), np.float32), gl.GridLayout((4, 1, 2), grid=(2, 1, 1), collapse=[]), DEVICE
)
SLICES = gl.slices(LAYOUT, "wormhole")
PLAN = gl.plan(lambda x: x @ x.T, ARRAY, machine=gl.Machine("v5e 4x4", mesh=(2, 2)))
PLANNED = Path(tempfile.mkdtemp()) / "plan.json"
PLAN.save(PLANNED)
IMAGES = Path(tempfile.mkdtemp())
gl.save_bytes(ARRAY, LAYOUT, IMAGES / "x.bin")
STEP = Path(tempfile.mkdtemp()) / "step"
gl.save(STEP, {"w": GX, "n": 3})
SAFETENSORS = Path(tempfile.mkdtemp()) / "empty.safetensors"
SAFETENSORS.write_bytes((2).to_bytes(8, "little") + b"{}")

ANYTHING = {
    **{repr(x): x for x in (None, True, 5, -1, 2.5, 1j, "x", "", "\ud800", b"x", ..., (), [], {})},
    **{"NaN": float("nan"), "infinity": float("inf"), "2**100": 2**100, "-2**63": -(2**63)},
    **{"nested": [[]], "[None]": [None], "['x']": ["x"], "[2**100]": [2**100], "[True]": [True]},
    **{"(NaN,)": (float("nan"),), "{'a': 1}": {"a": 1}, "set": {1}, "slice": slice(None)},
    **{"int32": np.int32(3), "float32": np.float32(2.5), "0-d": np.array(3), "NumPy": ARRAY},
    **{"objects": np.array([None]), "JAX": jnp.ones(3), "JAX scalar": jnp.float32(1)},
    **{"object": object(), "type": int, "layout": LAYOUT, "device": DEVICE, "map": MAP},
    **{"GridArray": GX, "range": range(3), "chip": gl.sophon.BM1684, "local": LOCAL},
}


def inside(fn):
    """`fn` called where it may be, inside `gl.map_shards`, with `shard` for an argument."""

    def call(**arguments):
        def run(shard):
            return shard + sum(map(jnp.size, jax.tree.leaves(fn(shard, **arguments))))

        return gl.map_shards(run, GX, out=LAYOUT)

    call.__signature__ = inspect.Signature(list(inspect.signature(fn).parameters.values())[1:])
    return call


def measured_alone(device):
    """`gl.Machine.measure` of one collective; several devices take long even so."""
    return device is DEVICE or measured(device, [ALL_GATHER])


def limited(limit):
    """`gl.caches.limit` with the old limit afterwards."""
    before = gl.caches.limit()
    try:
        return gl.caches.limit(limit)
    finally:
        gl.caches.limit(before)


# A call, and those of its arguments that it can't do without; the others take anything too.
CALLS = {
    "GridLayout": (gl.GridLayout, {"shape": (4, 6), "grid": (2, 2)}),
    "replace": (
        lambda shape=(4, 6), dtype="int8", grid=(2, 2), tile=None, linear=None, collapse=None: (
            LAYOUT.replace(shape=shape, dtype=dtype, grid=grid, tile=tile, collapse=collapse)
        ),
        {},
    ),
    "Layout": (gl.Layout, {"shape": (4, 6), "dtype": "float32", "steps": (), "order": (0, 1)}),
    "AffineMap": (gl.AffineMap, {"num_dims": 2, "results": MAP.results}),
    "AffineMap.parse": (gl.AffineMap.parse, {"text": "(d0) -> (d0)"}),
    "AffineMap.compose": (MAP.compose, {"other": MAP}),
    "AffineMap.identity": (gl.AffineMap.identity, {"count": 2}),
    "AffineMap()": (lambda index: MAP(index, 0), {"index": 0}),
    "results.AffineSet": (
        gl.results.AffineSet,
        {"num_dims": 2, "constraints": [(MAP.results[0], True)]},
    ),
    "plan": (
        lambda fn, x, machine="n300", fixed=None, trips=None, seconds=1, memory_space=None: gl.plan(
            *(fn, x),
            machine=machine,
            fixed=fixed,
            trips=trips,
            seconds=seconds,
            memory_space=memory_space,
        ),
        {"fn": jnp.tanh, "x": ARRAY},
    ),
    "simulate": (
        lambda fn, x, machine="n300", plan=None, algorithm=None: gl.simulate(
            fn, x, machine=machine, plan=plan, algorithm=algorithm
        ),
        {"fn": jnp.tanh, "x": ARRAY},
    ),
    "scaling": (
        lambda fn, x, machine="v5e 4x4", devices=(1, 2), **rest: gl.scaling(
            fn, x, machine=machine, devices=devices, **rest
        ),
        {"fn": jnp.tanh, "x": ARRAY, "weak": False, "ways": ["default"], "seconds": 1},
    ),
    "compare plans": (
        lambda program, names=None, chip=None, pass_name=None, function=None: gl.compare(
            *(PLAN, program), names=names, chip=chip, pass_name=pass_name, function=function
        ),
        {"program": PLAN},
    ),
    "load_plan": (gl.load_plan, {"path": PLANNED}),
    "Plan.why": (PLAN.why, {"equation": "dot_general:0"}),
    "Plan.diff": (PLAN.diff, {"other": PLAN}),
    "Plan.put": (PLAN.put, {"args": (ARRAY,)}),
    "Plan.run": (lambda x: PLAN.run(x), {"x": ARRAY}),
    "Plan.shardings": (
        lambda mesh, x, strict=True: PLAN.shardings(mesh, x, strict=strict),
        {"mesh": DEVICE.mesh, "x": ARRAY},
    ),
    "Plan.constrained": (
        lambda mesh, x, strict=True: PLAN.constrained(mesh, strict=strict)(x),
        {"mesh": DEVICE.mesh, "x": ARRAY},
    ),
    "Chip": (gl.Chip, {"name": "toy", "grid": (2, 2)}),
    "parse": (gl.parse, {"text": "f32[3]"}),
    "explain": (gl.explain, {"source": "f32[3,5]{1,0:T(2,2)}"}),
    "to_bytes": (gl.to_bytes, {"x": ARRAY, "layout": LAYOUT}),
    "from_bytes": (gl.from_bytes, {"data": gl.to_bytes(ARRAY, LAYOUT), "layout": LAYOUT}),
    "save_bytes": (
        lambda x, layout, path, per_core=False, progress=None: gl.save_bytes(
            x,
            layout,
            IMAGES / path if isinstance(path, str) else path,
            per_core=per_core,
            progress=progress,
        ),
        {"x": ARRAY, "layout": LAYOUT, "path": IMAGES / "saved"},
    ),
    "open_bytes": (gl.open_bytes, {"path": IMAGES / "x.bin"}),
    "load_bytes": (gl.load_bytes, {"path": IMAGES / "x.bin"}),
    "BytesFile.core": (gl.open_bytes(IMAGES / "x.bin").core, {"coordinates": (0, 0)}),
    "BytesFile.read": (gl.open_bytes(IMAGES / "x.bin").read, {"box": ...}),
    "BytesFile.check": (gl.open_bytes(IMAGES / "x.bin").check, {}),
    "summary": (LAYOUT.summary, {"chip": "wormhole"}),
    "convert": (gl.convert, {"layout": LAYOUT, "to": "xla"}),
    "fits": (LAYOUT.fits, {"chip": "wormhole"}),
    "padding_along": (LAYOUT.padding_along, {"axis": 0}),
    "axis_dims": (LAYOUT.axis_dims, {"k": 0}),
    "draw": (LAYOUT.draw, {"view": "logical"}),
    "draw fold": (lambda device: LAYOUT.draw("fold", device=device), {"device": DEVICE}),
    "draw element": (
        lambda index, device: LAYOUT.draw("element", index=index, device=device),
        {"index": (1, 2), "device": DEVICE},
    ),
    "draw flows": (lambda to: LAYOUT.draw("flows", to=to), {"to": LAYOUT}),
    # tenstorrent
    "metal": (gl.tenstorrent.metal, {"shape": (4, 6)}),
    "ttnn": (gl.tenstorrent.ttnn, {"shape": (4, 6)}),
    "tensor_layout": (
        gl.tenstorrent.tensor_layout,
        {"shape": (64, 64), "shard_shape": (32, 32), "cores": 4},
    ),
    "compare": (gl.tenstorrent.compare, {"shape": (4, 6)}),
    "as_2d": (gl.tenstorrent.as_2d, {"layout": gl.tenstorrent.tensor_layout((32, 32))}),
    "device_map": (gl.tenstorrent.device_map, {"grid": (2, 2)}),
    "dram_map": (gl.tenstorrent.dram_map, {"banks": 2, "page_bytes": 64}),
    "face_of": (gl.tenstorrent.face_of, {"tile": (32, 32)}),
    "from_document": (gl.tenstorrent.from_document, {"layout": LAYOUT}),
    "lower_to_mesh": (gl.tenstorrent.lower_to_mesh, {"layout": LAYOUT}),
    "alignments": (gl.tenstorrent.grid_aware_alignments, {"shape": (64, 64), "grid": (2, 2)}),
    "tile_alignments": (gl.tenstorrent.tile_alignments, {"shape": (4, 6)}),
    "host_strides": (gl.tenstorrent.host_strides, {"shape": (4, 6), "dim_alignments": (32, 32)}),
    "interleaved": (gl.tenstorrent.interleaved_shard_shape, {"shape": (4, 6), "grid": (1, 1)}),
    "physical_grid": (gl.tenstorrent.physical_grid, {"cores": 4}),
    "squeeze_rank": (gl.tenstorrent.squeeze_rank, {"tensor": (1, 4, 6), "shard": (1, 2, 3)}),
    "tile_map": (gl.tenstorrent.tile_map, {}),
    **{
        name: (
            getattr(gl.tenstorrent, name),
            {"shape": (64, 64), "dtype": "float32", "cores": (2, 2)},
        )
        for name in ("height_sharded", "width_sharded", "block_sharded")
    },
    "sharded_across": (
        gl.tenstorrent.sharded_across,
        {"shape": (64, 64), "dtype": "float32", "dims": (0,), "cores": 2},
    ),
    "bfp.encode": (
        gl.tenstorrent.bfp.encode,
        {"tiles": np.ones((32, 32), np.float32), "tile_format": "bfp_bf8"},
    ),
    "bfp.decode": (
        gl.tenstorrent.bfp.decode,
        {"data": np.zeros(1088, np.uint8), "tile_format": "bfp_bf8"},
    ),
    # sophon
    "sophon.Chip": (gl.sophon.Chip, {"npus": 4, "npu_bytes": 1024, "alignment": 128}),
    "sophon.local": (gl.sophon.local, {"shape": NCHW, "dtype": "float32"}),
    "sophon.matrix": (gl.sophon.matrix, {"rows": 4, "cols": 6, "width": 3, "dtype": "float32"}),
    "sophon.system": (gl.sophon.system, {"shape": NCHW, "dtype": "float32"}),
    "sophon.best_width": (gl.sophon.best_width, {"rows": 4, "cols": 6, "dtype": "float32"}),
    "sophon.copy": (gl.sophon.copy, {"source": LOCAL, "destination": SYSTEM}),
    "sophon.memory_map": (gl.sophon.memory_map, {"tensors": {"a": LOCAL}}),
    "sophon.empty_bytes": (gl.sophon.memory_map({"a": LOCAL}).empty_bytes, {"name": "a"}),
    "sophon.overlap": (gl.sophon.overlap, {"first": LOCAL, "second": LOCAL}),
    "sophon.reuse": (gl.sophon.reuse, {"tensor": LOCAL, "other": LOCAL}),
    "sophon.split": (gl.sophon.BM1684.split, {"address": 0}),
    "sophon.bank": (gl.sophon.BM1684.bank, {"address": 0}),
    # xla, megengine, mli
    "xla.layout": (gl.xla.layout, {"shape": (3, 5)}),
    "xla.from_jax": (gl.xla.from_jax, {"jax_layout": None, "shape": (3, 5), "dtype": "float32"}),
    "xla.tpu_tiles": (gl.xla.tpu_tiles, {"shape": (3, 5), "dtype": "float32"}),
    "strided": (gl.megengine.strided, {"shape": (4, 6), "strides": (6, 1), "dtype": "float32"}),
    "contiguous": (gl.megengine.contiguous, {"shape": (4, 6), "dtype": "float32"}),
    "is_contiguous": (gl.megengine.contiguous((4, 6), "float32").is_contiguous, {}),
    "image2d": (
        gl.megengine.image2d,
        {"shape": (3, 5, 8), "dtype": "float32", "axis": 2, "align": 4},
    ),
    "padded_channels": (gl.megengine.padded_channels, {"channels": 4, "dtype": "int8"}),
    "format": (gl.megengine.format, {"shape": (1, 6, 1, 2), "name": "NCHW4", "dtype": "int8"}),
    "mli.tensor": (gl.mli.tensor, {"shape": (4, 5, 3), "layout": "HWC", "dtype": "int8"}),
    **{
        f"mli.{name}": (getattr(gl.mli, name), {"x": IMAGE, "weights": WEIGHTS})
        for name in ("conv2d", "group_conv2d", "depthwise_conv2d", "transpose_conv2d")
    },
    "mli.fully_connected": (gl.mli.fully_connected, {"x": IMAGE, "weights": WEIGHTS}),
    "mli.pool2d": (gl.mli.pool2d, {"x": IMAGE, "kernel": (2, 2)}),
    "mli.mov": (gl.mli.mov, {"source": IMAGE}),
    # What needs JAX.
    "put": (gl.put, {"array": ARRAY, "layout": LAYOUT, "device": DEVICE}),
    "put_local": (
        gl.put_local,
        {"pieces": ARRAY, "layout": LAYOUT, "device": DEVICE, "progress": False},
    ),
    "local": (GX.local, {"box": (slice(0, 2), slice(0, 3))}),
    "to_logical": (GX.to_logical, {"sharding": DEVICE.replicated}),
    "open_safetensors": (gl.open_safetensors, {"path": SAFETENSORS}),
    "pack": (gl.pack, {"x": ARRAY, "layout": LAYOUT}),
    "unpack": (gl.unpack, {"physical": gl.pack(ARRAY, LAYOUT), "layout": LAYOUT}),
    "from_physical": (
        gl.from_physical,
        {"physical": gl.pack(ARRAY, LAYOUT), "layout": LAYOUT, "device": DEVICE},
    ),
    "put a tree": (gl.put, {"array": {"w": ARRAY}, "device": DEVICE, "layouts": {"w": LAYOUT}}),
    "relayout": (gl.relayout, {"x": GX, "layout": LAYOUT}),
    "relayout a tree": (gl.relayout, {"x": {"w": GX, "n": 3}, "layout": {"w": LAYOUT}}),
    "zeros_like": (gl.zeros_like, {"x": GX}),
    "summary of a tree": (
        lambda tree, chip=None: str(gl.summary(tree, chip)),
        {"tree": {"w": GX}},
    ),
    "fill_devices": (
        gl.fill_devices,
        {"shape": (4, 6), "dtype": "float32", "like": None, "device": DEVICE},
    ),
    "save": (  # to no path but this one
        lambda tree, wait=True: gl.save(STEP.with_name("other"), tree, wait=wait).wait(),
        {"tree": {"w": GX, "n": 3}},
    ),
    "restore": (
        lambda path, like_or_device, layouts=None: gl.restore(path, like_or_device, layouts),
        {"path": STEP, "like_or_device": DEVICE},
    ),
    "relayout_plan": (gl.relayout_plan, {"source": LAYOUT, "target": LAYOUT}),
    "slices": (gl.slices, {"layout": LAYOUT, "chip": "wormhole"}),
    "layout_of": (SLICES.layout_of, {"piece": SLICES.pieces[0]}),
    "Slices()": (lambda x: SLICES(lambda x: x, x), {"x": GX}),
    "on_grid": (gl.on_grid, {"fn": jnp.sin}),
    "GridLayout.of": (gl.GridLayout.of, {"shape": (4, 6), "sharding": SHARDING}),
    "named_sharding": (LAYOUT.named_sharding, {"device": DEVICE}),
    "with_layout": (gl.with_layout, {"value": jnp.ones((4, 6)), "layout": LAYOUT}),
    "with_oob": (GX.with_oob, {"oob": 0}),
    "DeviceGrid": (gl.DeviceGrid, {"mesh": (2, 2)}),
    "Links": (gl.Links, {"bandwidth": 1e9}),
    "Rates": (gl.Rates, {"flops": 1e9, "memory": 1e9}),
    "Machine": (gl.Machine, {"chip": "n300"}),
    "Machine.measure": (measured_alone, {"device": ONE}),
    "Machine.load": (gl.Machine.load, {"path": MACHINE}),
    "core_map": (DEVICE.core_map, {"grid": (2, 2)}),
    "placement": (DEVICE.placement, {"grid": (2, 2)}),
    "emulate_devices": (gl.emulate_devices, {"count": 8}),
    "caches.limit": (limited, {"limit": 1 << 30}),
    "def_rule": (gl.def_rule, {"primitive": "cos"}),
    "map_shards": (
        lambda x, out, padding=None, mask=False: gl.map_shards(
            *(lambda s, *_: s, GX, x), out=out, padding=padding, mask=mask
        ),
        {"x": 1, "out": LAYOUT},
    ),
    "core_index": (inside(lambda _, dim: gl.cores.core_index(dim)), {"dim": 0}),
    "psum": (inside(lambda _, x, dim: gl.cores.psum(x, dim)), {"x": 1.0, "dim": 0}),
    "shift": (
        inside(
            lambda x, offset, dim, wrap, fill: gl.cores.shift(x, offset, dim, wrap=wrap, fill=fill)
        ),
        {"offset": 1, "dim": 0, "wrap": True, "fill": 0},
    ),
    "all_gather": (inside(lambda x, dim: gl.cores.all_gather(x, dim)), {"dim": 0}),
    "ring_attention": (gl.ring_attention, {"query": SEQUENCE, "key": SEQUENCE, "value": SEQUENCE}),
}
# Layouts answer alike, whatever their system.
for _layout in (
    *(LAYOUT, LOCAL, SYSTEM, IMAGE, gl.xla.layout((4, 6)), gl.tenstorrent.ttnn((4, 6))),
    *(gl.tenstorrent.metal((32, 32)), gl.tenstorrent.tensor_layout((32, 32))),
    *(gl.megengine.format((1, 4, 2, 2), "NCHW4", "int8"), gl.megengine.contiguous((4, 6), "int8")),
):
    _zero, _name = (0,) * _layout.ndim, type(_layout).__name__
    CALLS |= {
        f"{_name}.locate": (_layout.locate, {"index": _zero}),
        f"{_name}.logical_index": (
            _layout.logical_index,
            {"physical": (0,) * len(_layout.physical_shape)},
        ),
        f"{_name}.with_oob": (_layout.with_oob, {"oob": 0}),
        f"{_name}.with_dtype": (_layout.with_dtype, {"dtype": _layout.dtype}),
        f"{_name}.same_physical": (_layout.same_physical, {"other": _layout}),
        f"{_name}.traffic": (_layout.traffic, {"to": _layout}),
        f"{_name}.byte_of": (_layout.byte_of, {"offset": 0}),
        f"{_name}.bit_of": (_layout.bit_of, {"offset": 0}),
    }


def arguments_of(call, given):
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [p.name for p in inspect.signature(call).parameters.values() if p.kind in kinds]
    return sorted({*named, *given})


@pytest.mark.few(70)
@pytest.mark.parametrize("name", CALLS)
def test_anything_works_or_is_a_layout_error(name):
    call, given = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name not in REFUSED:
            call(**given)
        for k, argument in enumerate(arguments_of(call, given)):
            # Without --all-cases every second of them, others for the next argument.
            turn = (list(CALLS).index(name) + k) % 2
            for what, value in tiers.few([*ANYTHING.items()][turn:], len(ANYTHING) // 2):
                try:
                    call(**{**given, argument: value})
                except gl.LayoutError:
                    continue
                except Exception as error:
                    pytest.fail(f"{name}({argument}={what}): {type(error).__name__}: {error}")


# Calls of which the given arguments don't fit each other: what they refuse is tried all the same.
REFUSED = (
    *("mli.group_conv2d", "mli.depthwise_conv2d", "mli.transpose_conv2d", "mli.fully_connected"),
    *("lower_to_mesh", "xla.from_jax"),
)


def test_every_public_function_is_called():
    """Of each module's public names, those that users call and that are no results of calls."""
    called = {getattr(call, "__name__", "") for call, _ in CALLS.values()} | {*CALLS}
    made = {"Cost", "GridArray", "LayoutError", "LayoutWarning", "explore"}
    alike = {"pmax": "psum", "pmin": "psum"}
    missing = {
        name
        for door in (gl, gl.cores)
        for name in door.__all__
        if callable(getattr(door, name)) and name not in called and alike.get(name) not in called
    }
    assert missing == made
    assert all(isinstance(getattr(gl.results, name), type) for name in gl.results.__all__)


X = gl.put(np.ones((5, 7), np.float32), gl.GridLayout((5, 7), grid=(1, 2)), gl.DeviceGrid((1, 2)))


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: gl.GridLayout((53, 63), grid=6), "give a grid of rank 2"),
        (lambda: gl.GridLayout((53, 63), grid="3x2"), r"grid '3x2' .* such as \(3, 2\)"),
        (lambda: gl.GridLayout((53, 63), (3, 2)), r"as in grid=\(3, 2\)"),
        (lambda: gl.convert("f32[3,5]{1,0}", to="xla"), "gl.parse"),
        (lambda: gl.load_plan("no/such/plan.json"), "can be read: No such file"),
        (lambda: gl.save_bytes(X.to_logical(), X.layout, "no/such/x.bin"), "written: No such file"),
        (lambda: X.tobytes(), r"np.asarray\(x\).tobytes"),
        (lambda: gl.compare(jnp.sin, jnp.cos), r"gl.explain\(function, \*arguments\)"),
    ],
)
def test_errors_say_what_to_give(call, fix):
    with pytest.raises((gl.LayoutError, AttributeError), match=fix):
        call()


def test_results_are_read_where_they_are_printed():
    report = gl.on_grid(jnp.exp).report(X)
    assert repr(X.layout.summary()) == str(X.layout.summary())
    assert repr(gl.summary({"x": X})) == str(gl.summary({"x": X}))
    assert repr(report) == f"Report({str(report).splitlines()[-1]})"
    found = gl.simulate(jnp.exp, X.layout, machine="n150")
    assert repr(found).startswith("Simulation(exp, r=8, c=8: ")
