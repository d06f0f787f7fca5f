"""IREE: `linalg.pack` and `linalg.unpack`, compiled and run; once for the cores, once for tiles."""

from importlib import import_module

import numpy as np

from gridlayout.layouts.program import pack_host
from prove.judges import Judge

AT_MOST = 24  # layouts of a chunk: compiling takes a second or two
FILL = -77


def text_of(shape):
    """A tensor type."""
    return "tensor<" + "".join(f"{n}x" for n in shape) + "i32>"


def pack(name, source, tiles, first):
    """The operation that packs the dims from `first` on; its lines and the resulting shape."""
    shape = source[1]
    dims = range(first, first + len(tiles))
    outer = [-(-n // tiles[d - first]) if d in dims else n for d, n in enumerate(shape)]
    result = (*outer, *tiles)
    attributes = (
        f"inner_dims_pos = [{', '.join(map(str, dims))}] "
        f"inner_tiles = [{', '.join(map(str, tiles))}]"
    )
    lines = [
        f"  %e{name} = tensor.empty() : {text_of(result)}",
        f"  %{name} = linalg.pack {source[0]} padding_value(%z : i32) {attributes} into "
        f"%e{name} : {text_of(shape)} -> {text_of(result)}",
    ]
    return lines, (f"%{name}", result), attributes


def unpack(name, source, target, attributes):
    """The operation back."""
    return [
        f"  %e{name} = tensor.empty() : {text_of(target)}",
        f"  %{name} = linalg.unpack {source[0]} {attributes} into %e{name} : "
        f"{text_of(source[1])} -> {text_of(target)}",
    ]


def functions(k, layout):
    """A function that packs, and one that unpacks."""
    rank = len(layout.shape)
    shard = tuple(n * t for n, t in zip(layout.tile_counts, layout.padded_tile, strict=True))
    tile = layout.tile or ()
    start = ("%x", layout.shape)
    there, cores, by_shard = pack("p", start, shard, 0)
    if tile:
        more, packed, by_tile = pack("t", cores, tile, 2 * rank - len(tile))
        there += more
        back = unpack("q", ("%x", packed[1]), cores[1], by_tile)
        back += unpack("u", ("%q", cores[1]), layout.shape, by_shard)
    else:
        packed = cores
        back = unpack("u", ("%x", packed[1]), layout.shape, by_shard)
    one, two = text_of(layout.shape), text_of(packed[1])
    lines = [
        f"func.func @pack{k}(%x: {one}) -> {two} {{",
        f"  %z = arith.constant {FILL} : i32",
        *there,
        f"  return {packed[0]} : {two}",
        "}",
        f"func.func @unpack{k}(%x: {two}) -> {one} {{",
        *back,
        f"  return %u : {one}",
        "}",
    ]
    return "\n".join(lines)


def is_packed(layout):
    """Whether two packs make it: one dim of the tensor for each of the grid, no idle core."""
    if type(layout).__name__ != "GridLayout" or not layout.size or not layout.shape:
        return False
    if layout.face or str(layout.linear) != str(layout.linear.identity(len(layout.shape))):
        return False
    if layout.row_alignment not in (None, 1):
        return False
    shard = [n * t for n, t in zip(layout.tile_counts, layout.padded_tile, strict=True)]
    if shard != list(layout.shard_shape):
        return False  # the tile pads inside a core: a pack pads at the end only
    cores = [-(-n // s) for n, s in zip(layout.shape, shard, strict=True)]
    return cores == list(layout.grid)


class LayoutJudge(Judge):
    """What IREE packs is what the layout packs, and it unpacks what the layout packed."""

    name = "IREE (linalg.pack)"
    systems = (
        "document",
        "even",
    )

    def __init__(self):
        self.compiler = import_module("iree.compiler")
        self.runtime = import_module("iree.runtime")
        self.layouts = []

    def ask(self, layout, holders):
        if len(self.layouts) < AT_MOST and is_packed(layout):
            self.layouts.append(layout)
        return False  # counted by `finish`

    def finish(self):
        if not self.layouts:
            return 0
        text = "\n".join(functions(k, layout) for k, layout in enumerate(self.layouts))
        binary = self.compiler.compile_str(text, target_backends=["vmvx"])
        context = self.runtime.SystemContext(config=self.runtime.Config("local-sync"))
        context.add_vm_module(self.runtime.VmModule.copy_buffer(context.instance, binary))
        for k, layout in enumerate(self.layouts):
            plain = layout.with_dtype("int32", oob=FILL)
            x = np.arange(layout.size, dtype=np.int32).reshape(layout.shape)
            packed = np.ascontiguousarray(pack_host(x, plain))
            there = context.modules.module[f"pack{k}"](x).to_host()
            same = np.array_equal(there, packed)
            assert same, f"IREE packs {layout!r} otherwise"
            back = context.modules.module[f"unpack{k}"](packed).to_host()
            assert np.array_equal(back, x), f"IREE unpacks {layout!r} otherwise"
        return len(self.layouts)
