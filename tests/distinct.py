"""Dumps of distinct layouts only, as long as asked: what a reader can't answer from memory."""

from itertools import count

MODULE = "HloModule jit_f, is_scheduled=true\n\nENTRY %main (x: f32[4]) -> f32[4] {\n"
FUNCTION = "module {\n  func.func @main(%arg0: f32) {\n"
TTNN = (
    "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<{rows}x{columns}x!ttcore.tile<32x32, "
    "f32>, #ttnn.buffer_type<dram>>, <interleaved>>"
)
METAL = (
    "tensor<1x1x{rows}x{columns}x!ttcore.tile<32x32, f32>, #ttcore.metal_layout<logical_shape = "
    "{a}x{b}, dim_alignments = 32x32, collapsed_intervals = dense<[[0, 1], [1, 2]]> : "
    "tensor<2x2xi64>, l1, sharded>>"
)
DOCUMENT = (
    "tensor<{a}x{b}xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <1x1>, "
    "memref<{rows}x{columns}x!ttcore.tile<32x32, f32>, #ttcore.memory_space<l1>>>>"
)
BUFFER = "memref<1x1x{a}x{b}xf32, #ttcore.shard<{bytes}x4, 1>, #ttcore.memory_space<l1>>"
TILED = "bf16[{a},{b},{c}]{{2,1,0:T(8,128)(2,1)}}"
TURNED = "bf16[{a},{b},{c}]{{1,2,0:T(8,128)(2,1)}}"
# The kinds of text: what begins each, the types of a line, the line, what ends it.
KINDS = {
    "hlo": (MODULE, (TILED, TILED), "  %f.{k} = {1} fusion({0} %f.{j}), kind=kLoop\n", "}\n"),
    "copies": (MODULE, (TILED, TURNED), "  %f.{k} = {1} copy({0} %p.{j})\n", "}\n"),
    "ttnn": (
        FUNCTION,
        ("tensor<{a}x{b}xf32, " + TTNN + ">",) * 2,
        '    %{k} = "ttnn.relu"(%{j}) : ({0}) -> {1}\n',
        "  }\n}\n",
    ),
    **{
        name: (FUNCTION, (kind, kind), '    %{k} = "d2m.f"(%{j}) : ({0}) -> {1}\n', "  }\n}\n")
        for name, kind in (("metal", METAL), ("document", DOCUMENT), ("buffers", BUFFER))
    },
}
# For a program that measures itself: the KiB that it had at most. What getrusage tells begins with
# that of the process before it.
MOST = r"""
import re
def most():
    return int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1])
"""


def types_of(kind, k):
    """The types of line k, which no other line has."""
    a, b, c = k % 3001 + 1, k // 3001 + 1, k % 7 + 1
    sizes = {"a": a, "b": b, "c": c, "rows": -(-a // 32), "columns": -(-b // 32), "bytes": 4 * b}
    return [text.format(**sizes) for text in KINDS[kind][1]]


def lines(kind, nbytes):
    """The text of so many bytes, a line at a time."""
    start, _, line, end = KINDS[kind]
    yield start
    for k in count(1):
        text = line.format(*types_of(kind, k), k=k, j=k - 1)
        nbytes -= len(text)
        if nbytes < 0:
            break
        yield text
    yield end


def aliased(values):
    """TTNN IR whose every value has a layout of its own, by an alias."""
    sizes = [(k % 3001 + 1, k // 3001 + 1) for k in range(1, values)]
    for k, (a, b) in enumerate(sizes, 1):
        yield f"#layout{k} = {TTNN.format(rows=-(-a // 32), columns=-(-b // 32))}\n"
    yield FUNCTION
    for k, (a, b) in enumerate(sizes, 1):
        kind = f"tensor<{a}x{b}xf32, #layout{k}>"
        yield f'    %{k} = "ttnn.relu"(%{k - 1}) : ({kind}) -> {kind}\n'
    yield "  }\n}\n"
