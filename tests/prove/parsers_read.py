"""The readers under test, by name: how each reads bytes, and what its inputs look like."""

import tempfile
from functools import cache
from pathlib import Path

import gridlayout as gl
from prove import growing_texts

HERE = Path(__file__).parents[1]


@cache
def scratch():
    """A folder for the files that are read."""
    return Path(tempfile.mkdtemp(prefix="gridlayout-prove-"))


def text(read):
    """A reader of text, given bytes."""
    return lambda data: read(data.decode("utf-8", "replace"))


def file(read, name, folder=False):
    """A reader of a file of that name, or of the folder with it."""

    def found(data):
        path = scratch() / name
        path.write_bytes(data)
        return read(path.parent if folder else path)

    return found


def _image(data):
    """An image's sidecar, which is read before any bytes."""
    (scratch() / "x.bin").write_bytes(bytes(48))
    (scratch() / "x.bin.json").write_bytes(data)
    return gl.load_bytes(scratch() / "x.bin")


def _records(folder):
    from gridlayout.ops.checkpoints.record import read_records

    return read_records(folder)


def _record_name():
    from gridlayout.ops.checkpoints.record import RECORD

    return RECORD


def _compare(given):
    first, _, second = given.partition("\0")
    return gl.compare(first, second)


def _program(given):
    """A compiled program: its ops with all calls written out, its times, and its report."""
    program = gl.tenstorrent.load(given)
    return repr(program), program.layouts, str(program.simulated()), str(program.report())


def _explained(given):
    found = gl.explain(given.split("\n"), plan=True)
    return str(found), found.to_json(), found.to_html()


def _mlir(given):
    from gridlayout.mlir.program import read_module

    return read_module(given)


READERS = {
    "affine_map": text(gl.AffineMap.parse),
    "layout_document": text(gl.parse),
    "layout_metal": text(gl.parse),
    "layout_ttnn": text(gl.parse),
    "layout_xla": text(gl.parse),
    "layout_call": text(gl.parse),
    "mlir": text(_mlir),
    "explain": text(_explained),
    "compare": text(_compare),
    "ttnn_program": text(_program),
    "plan": file(gl.load_plan, "plan.json"),
    "machine": file(gl.Machine.load, "machine.json"),
    "image": _image,
    "safetensors": file(gl.open_safetensors, "x.safetensors"),
    "checkpoint": lambda data: file(_records, _record_name(), folder=True)(data),
}


# The texts of any length that attack each reader, as `growing_texts` makes them.
GROWING = {
    "affine_map": growing_texts.MAPS,
    "layout_call": growing_texts.LAYOUTS,
    "mlir": growing_texts.LOADED,
    "explain": growing_texts.EXPLAINED,
    "ttnn_program": growing_texts.LOADED,
    **dict.fromkeys(("plan", "machine", "image", "checkpoint"), growing_texts.RECORDS),
}


def _written(write, name):
    path = scratch() / name
    write(path)
    return path.read_bytes()


def _plan():
    import jax

    x = jax.ShapeDtypeStruct((8, 8), "float32")
    return [_written(gl.plan(lambda x: x @ x, x, machine="v5e 4x4").save, "plan.json")]


def _image_seed():
    import numpy as np

    layout = gl.GridLayout((4, 6), "int16", grid=(2, 2), oob=-1)
    x = np.arange(24, dtype="int16").reshape(4, 6)
    # Not where `_image` writes what it is given: those are no images, and not replaced.
    gl.save_bytes(x, layout, scratch() / "seed.bin")
    return [(scratch() / "seed.bin.json").read_bytes()]


def _checkpoint():
    from gridlayout.ops.checkpoints import record

    made = {"format": record._FORMAT, "version": record._VERSION, "arrays": {}}
    import json

    return [json.dumps(made).encode()]


def _dumps(pattern):
    return [path.read_bytes()[:6000] for path in sorted((HERE / "dumps").rglob(pattern))]


# XLA's short form, in which `t#1` is a part of a tuple; and its other files on memory.
_SHORT = """    HloModule m, is_scheduled=true, num_partitions=8
    \x1b[1mENTRY main (t: (f32[8], f32[8,4])) -> f32[8] {\x1b[0m
      t = (f32[8]{0}, f32[8,4]{1,0}) parameter(0), sharding={{replicated}, {unreduced}}
      c = f32[8,4]{0,1} copy(t#1)
      r = f32[8]{0} all-reduce(t#0), replica_groups=mesh['a'=4], device_ids=([2,2]T(1,0)) {'a'}
      ROOT s = f32[8]{0} all-reduce(r), replica_groups={{0,1,2},{3,4,5,6,7}}
    }
"""
_TOTALS = """Memory Space: default (color=0)
Total bytes: 3468 (3.4KiB)
       960B(100%);       960B;            0;                2; 2×f32[12,20]
Total bytes used: 12 (12B)
<3 a{1} @0>
 from instruction: %a = (f32[4]{0}, f32[8]{0}) sort(%b, %c), dimensions={0}
Ran out of memory in memory space smem. Used 1.5K of 1.0K smem.
  1. Size: 512B
     Entry Parameter Subshape: f32[96]
#s = #sdy.sharding<mesh<["x"=2], device_ids=[1, 0]>, [{"x"}]>
func.func @f(%a: tensor<8xf32> {sdy.sharding = #s}) {
"""


def _logs():
    """What running systems print, as its tests have it."""
    from test_dump_logs import ASSIGNMENT, OOM, STATE
    from test_dump_sharded import PARTITIONED

    sharded = PARTITIONED.format(header="", suffix="_spmd", tiled="{devices=[8,1]<=[8]}")
    axes = """sdy.mesh @m = <["<data>"=2, "a, b"=4]>
%0 = sdy.reshard %a <@m, [{"<data>"}, {"a, b":(1)2}]> : tensor<8x8xf32>
%c = f32[8]{0} all-reduce(%p), replica_groups=mesh['q"u'=2,'y'=4] {'y':(2)2}
"""
    texts = (ASSIGNMENT, OOM, STATE.format("DRAM", 8, 0.5), sharded, axes, _SHORT, _TOTALS)
    return [each.encode() for each in texts]


def _layouts(*words):
    from test_systems import four_dims

    found = [str(each) for each in four_dims("float32").values()]
    return [each.encode() for each in found if any(word in each for word in words)]


def _safetensors():
    header = b'{"w": {"dtype": "I16", "shape": [2, 2], "data_offsets": [0, 8]}}'
    return [len(header).to_bytes(8, "little") + header + bytes(range(8))]


def _document():
    from test_text import VALID

    return [each.encode() for each in VALID]


def _maps():
    from test_affine import PRINTED

    return [each.encode() for each in PRINTED]


def _machines():
    return [_written(gl.Machine(name).save, "machine.json") for name in ("v5e 4x4", "wormhole 2x4")]


SEEDS = {
    "affine_map": _maps,
    "layout_document": _document,
    "layout_metal": lambda: _layouts("logical_shape"),
    "layout_ttnn": lambda: _layouts("#ttnn.ttnn_layout"),
    "layout_xla": lambda: _layouts("f32["),
    "layout_call": lambda: _layouts("(("),
    "mlir": lambda: _dumps("*.mlir"),
    "explain": lambda: _dumps("*.mlir")[:6] + _dumps("*.txt") + _logs(),
    "compare": lambda: [a + b"\0" + a for a in _dumps("*.mlir")[:4]],
    "ttnn_program": lambda: _dumps("*.mlir"),
    "plan": _plan,
    "machine": _machines,
    "image": _image_seed,
    "safetensors": _safetensors,
    "checkpoint": _checkpoint,
}


def seeds(name):
    """Inputs that the reader reads."""
    return SEEDS[name]()
