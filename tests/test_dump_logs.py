"""Programs in logs, and reports of memory: what running systems print."""

import bz2
import gzip
import lzma
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import gridlayout as gl

NEG = "tensor<32x32xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<dram>>, <interleaved>>>"  # noqa: E501
PREFIXES = [
    *("            RuntimeTTNN |    DEBUG | Executing operation: ", "2026-05-27 10:11:12 | "),
    *("> ", "E   ", "[info] ", "12: ", "    Executing: ", "a/b.py:7: INFO "),
]
LOGGED = [
    [
        "module @m {",
        "  func.func @main(%arg0: NEG) -> NEG {",
        '    %0 = "ttnn.neg"(%arg0) : (NEG) -> NEG',
        '    %1, %2 = "ttnn.topk"(%0) : (NEG) -> (NEG, NEG)',
        '    "ttnn.deallocate"(%0) : (NEG) -> ()',
        "    return %1 : NEG",
        "  }",
        "  func.func @other(%arg0: NEG) {",
        "  }",
        "}",
    ],
    [
        "HloModule m, is_scheduled=true",
        "ENTRY %main (p: f32[1024]) -> f32[1024] {",
        "  %p = f32[1024]{0} parameter(0)",
        "  %s = (f32[1024]{0:S(5)}, f32[1024]{0}, u32[]) copy-start(%p)",
        "  %d = f32[1024]{0:S(5)} copy-done(%s)",
        "  ROOT %r = f32[1024]{0} negate(%p)",
        "}",
    ],
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("lines", LOGGED)
def test_a_program_behind_a_prefix_is_read_as_without(lines, prefix):
    lines = [line.replace("NEG", NEG) for line in lines]
    plain, found = gl.explain(lines), gl.explain([prefix + line for line in lines])
    for name in ("peaks", "findings", "moves", "values", "all_unknown", "nbytes", "note"):
        assert getattr(found, name) == getattr(plain, name), name
    assert plain.peaks
    # A prefix whose digits and length change, and lines of other kinds in between.
    mixed = [part for n, line in enumerate(lines) for part in (f"{n}: {prefix}", f"{n} | {line}")]
    assert gl.explain(mixed).nbytes == plain.nbytes


STATE = (
    "Always | INFO | Device {} memory state: MemoryView{{numBanks: {}, totalBytesPerBank: 4075.422 "
    "MB, "
    "totalBytesAllocatedPerBank: {} MB, totalBytesFreePerBank: 4075.339 MB}}"
)


def test_memory_states_of_a_log_are_peaks():
    op = f'Executing operation: %0 = "ttnn.neg"(%arg0) : ({NEG}) -> {NEG}'
    states = [("DRAM", 8, 0.5), ("DRAM", 8, 1.5), ("DRAM", 8, 0.25), ("L1", 64, 0.125)]
    found = gl.explain([op, *(STATE.format(*each) for each in states)])
    peaks = {peak.memory: peak for peak in found.peaks}
    assert (peaks["measured dram"].nbytes, peaks["measured dram"].line) == (12 << 20, 3)
    assert peaks["measured l1"].nbytes == 1 << 17  # of one core
    assert (peaks["dram"].nbytes, peaks["dram"].at_least) == (4096, True)  # %arg0 is not known
    assert "measured l1 per core" in str(found)


def test_memory_states_of_a_log_are_a_curve():
    states = [("DRAM", 8, 0.5), ("DRAM", 8, 1.5), ("DRAM", 8, 0.25)]
    found = gl.explain([STATE.format(*each) for each in states])
    assert found.peaks[0].curve == ((1, 4 << 20), (2, 12 << 20), (3, 2 << 20))
    assert "▃█▂" in str(found)
    assert "▃█▂" in found.to_html()
    # A long log has few points, of which one is the peak.
    sizes = [(n * 7919) % 1000 for n in range(5000)]
    found = gl.explain([STATE.format("L1", 64, n) for n in sizes])
    (peak,) = found.peaks
    assert peak.nbytes == 999 << 20
    assert (peak.line, peak.nbytes) in peak.curve
    assert len(peak.curve) < 96
    assert list(peak.curve) == sorted(peak.curve)


ASSIGNMENT = """BufferAssignment:
allocation 0: size 1024, parameter 0, shape |f32[8,32]| at ShapeIndex {}:
 value: <281 p @0> (size=1024,offset=0): f32[8,32]{1,0}
allocation 1: size 512, parameter 1, maybe-live-out:
 value: <282 q @0> (size=512,offset=0): f32[128]{0}
allocation 2: size 96, maybe-live-out:
 value: <283 t{} @0> (size=16,offset=0): (f32[8,3], f32[4])
 value: <284 r{1} @0> (size=96,offset=0): f32[8,3]{0,1:T(4,128)}
 value: <285 r{1} (phi) @0> (size=96,offset=0): f32[8,3]{0,1:T(4,128)}
allocation 3: size 32, constant:
allocation 4: size 1000, page 0, preallocated-temp:
 value: <286 a @0> (size=256,offset=0): f32[64]{0}
 value: <287 b @0> (size=256,offset=0): f32[64]{0}
 value: <288 c @0> (size=512,offset=256): f32[128]{0}
allocation 5: size 4, thread-local:
allocation 6: size 64, color 5, maybe-live-out:
 value: <289 h @0> (size=64,offset=0): f32[16]{0:S(5)}

HloLiveRange (max 9):
  InstructionSequence:
    0:p
    1:a
  BufferLiveRange:
    p{}:0-9
    a{}:1-3
    b{}:3-5
    c{}:4-6
    h{}:5-9
"""


@pytest.mark.parametrize("prefix", ["", "I0101 a.cc:7] "])
def test_an_assignment_of_buffers_has_its_own_totals(prefix):
    text = "\n".join(prefix + line for line in ASSIGNMENT.splitlines())
    found = gl.explain(text)
    peaks = {peak.memory: peak for peak in found.peaks}
    assert set(peaks) == {"assigned memory", "assigned memory 5", "live memory", "live memory 5"}
    own = peaks["assigned memory"]
    assert (own.nbytes, own.arguments, own.results, own.temporary) == (2668, 1536, 96, 1000)
    assert [span.name for span in own.alive][:2] == ["allocation 0", "allocation 4"]
    assert peaks["assigned memory 5"].nbytes == 64
    live = peaks["live memory"]
    # `b` takes the place of `a`, and counts once with it.
    assert live.curve == ((0, 1024), (1, 1280), (4, 1792), (6, 1536), (7, 1024), (10, 0))
    assert (live.nbytes, [span.name for span in live.alive]) == (1792, ["p", "c", "b"])
    assert text.splitlines()[live.line - 5].endswith("0:p")  # instruction 4 is 4 lines further
    assert not live.at_least
    assert next(f.name for f in found.findings) == "r"  # it alone wastes bytes
    assert {f.name for f in found.findings} == {"p", "q", "r", "a", "b", "c", "h"}


def test_live_ranges_of_unknown_values_are_at_least():
    found = gl.explain(ASSIGNMENT + "    x{}:0-9\n")
    assert {p.memory: p.at_least for p in found.peaks}["live memory"]


def test_live_ranges_alone_have_the_peak_that_they_state():
    text = """HloLiveRange (max 9):
  InstructionSequence:
    0:p
    1:a
  Live ranges at 1 (peak):
    p{}: 1024 bytes (cumulative: 1024 bytes)
    a{1}: 256 bytes (cumulative: 1280 bytes)
"""
    (peak,) = gl.explain(text).peaks
    assert (peak.memory, peak.nbytes, peak.line) == ("live memory", 1280, 4)
    assert [span.name for span in peak.alive] == ["p", "a"]


def _scanned(x, w):
    def body(c, _):
        return jnp.tanh(c @ w) @ w.T, c.sum()

    return jax.lax.scan(body, x, None, length=5), jnp.sort(x, 0)


def _chained(x, w):
    return (jnp.tanh(x @ w) @ w.T).sum(0), jnp.argsort(w, 1)


@pytest.mark.parametrize(
    ("function", "donated"), [(_scanned, ()), (_scanned, (0,)), (_chained, ())]
)
def test_an_assignment_of_this_xla_is_memory_analysis(function, donated, tmp_path):
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((64, 32), (32, 48))]
    lowered = jax.jit(function, donate_argnums=donated).lower(*arguments)
    options = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True}
    memory = lowered.compile(compiler_options=options).memory_analysis()
    (path,) = tmp_path.glob(f"*jit_{function.__name__}*buffer-assignment.txt")
    (peak,) = gl.explain(path).peaks
    assert peak.arguments == memory.argument_size_in_bytes
    assert peak.temporary == memory.temp_size_in_bytes
    # A donated argument is also a result.
    assert peak.results == memory.output_size_in_bytes - memory.alias_size_in_bytes
    ranges = tmp_path.glob(f"*jit_{function.__name__}*live-range.txt")
    found = gl.explain(path.read_text() + "".join(each.read_text() for each in ranges))
    live = {each.memory: each for each in found.peaks}["live memory"]
    assert not live.at_least
    assert peak.arguments < live.nbytes <= peak.nbytes


OOM = """RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 9.00K of 4.00K hbm.

Total hbm usage >= 9.00K:
    reserved        1.00K
    arguments            0B

  1. Size: 4.0K
     Operator: op_name="jit(f)/add"
     Shape: f32[3,5]{1,0:T(8,128)}
     Unpadded size: 60B
     XLA label: %add.7 = f32[3,5]{1,0:T(8,128)} add(f32[3,5]{0,1:T(8,128)} %a, f32[3,5]{1,0} %b)
     Allocation type: HLO temp
     ==========================

  2. Size: 2.0K
     Shape: f32[512]{0}
     XLA label: %copy.4 = f32[512]{0} copy(f32[512]{0:T(1024)} %c)
"""


@pytest.mark.parametrize("prefix", ["", "E   ", "> "])
def test_a_report_of_memory_that_ran_out_has_its_own_totals(prefix):
    found = gl.explain("\n".join(prefix + line for line in OOM.splitlines()))
    assert [(f.name, f.op, f.nbytes) for f in found.findings] == [
        ("add.7", "add", 4096), ("copy.4", "copy", 2048),
    ]  # fmt: skip
    assert (found.layouts, found.nbytes, found.all_unknown) == (2, 6144, 0)
    (peak,) = found.peaks
    assert (peak.memory, peak.nbytes, peak.at_least) == ("hbm", 9216, True)
    assert [(span.name, span.nbytes) for span in peak.alive] == [("add.7", 4096), ("copy.4", 2048)]


def test_a_report_of_another_memory_and_one_that_comes_again():
    smem = """Ran out of memory in memory space smem. Used 1.5K of 1.0K smem. Exceeded smem capacity
Program smem requirement 1.5K:
  1. Size: 512B
     XLA label: custom-call
     ==========================
"""
    found = gl.explain("\n".join((OOM, smem, OOM, smem)))
    assert (found.layouts, found.nbytes) == (2, 6144)
    assert [(p.memory, p.nbytes, p.at_least) for p in found.peaks] == [
        ("hbm", 9216, True), ("smem", 1536, False),
    ]  # fmt: skip
    assert [[s.name for s in p.alive] for p in found.peaks] == [
        ["add.7", "copy.4"],
        ["custom-call"],
    ]


def test_a_report_of_a_gpu_has_its_own_totals():
    text = """BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    1.00KiB
              constant allocation:         0B
        maybe_live_out allocation:      512B
     preallocated temp allocation:    1.50KiB
                 total allocation:    3.00KiB
              total fragmentation:         0B (0.00%)
Peak buffers:
	Buffer 1:
		Size: 2.00KiB
		XLA Label: fusion
		Shape: f32[512]{0}
		==========================

	Buffer 2:
		Size: 384B
		Entry Parameter Subshape: f32[96]
		==========================
"""
    found = gl.explain(text)
    (peak,) = found.peaks
    assert (peak.memory, peak.nbytes, peak.at_least) == ("memory", 3072, False)
    assert (peak.arguments, peak.results, peak.temporary) == (1024, 512, 1536)
    assert [(s.name, s.nbytes) for s in peak.alive] == [("fusion", 2048), ("parameter", 384)]
    assert [(f.name, f.nbytes) for f in found.findings] == [("fusion", 2048)]


@pytest.mark.parametrize(
    "text",
    [
        "Total hbm usage >= 99999999999999999999999999G",
        "Total hbm usage >= 999999999999999999.999999T:\n  1. Size: 999999999999999999T\n" * 400,
        "Total x usage >= 1G\n" + "Size: 1G\nShape: f32[\n" * 4000,
        "Device DRAM memory state: MemoryView{numBanks: 999999, totalBytesAllocatedPerBank: "
        "999999999999.999999 MB",
        " memory state: " * 20000,
        "> " * 100000 + "%a = f32[4]",
        ("%a, " * 200000) + "= x",
        ("a: %b = " * 50000),
        "Shape: " + "f32[1]{0}" * 50000,
        "BufferAssignment:\nallocation 0: size " + "9" * 18 + ", color 999999999:\n" * 3,
        "BufferAssignment:\n" + "allocation 7: size 999999999999999999:\n" * 3000,
        "BufferAssignment:\n value: <1 a @0> (size=1,offset=0): f32[" + "9," * 30000,
        "HloLiveRange (max 9):\n" + "".join(f"a{n}{{}}:0-999999999\n" for n in range(3000)),
        "BufferAssignment:\n value: <" + " value: <1 a" * 40000,
    ],
)
def test_hostile_logs_are_passed_over(text):
    found = gl.explain(text.split("\n"), plan=True)
    for printed in (str(found), found.to_html(), found.to_json()):
        assert len(printed) < 1 << 18


HLO = (Path(__file__).parent / "dumps" / "jax_cpu.hlo.txt").read_text()
COLOURS = "\x1b[2m2026-05-27T10:11:12Z\x1b[0m \x1b[32mINFO\x1b[0m "


@pytest.mark.parametrize(
    "prefix", ["    ", "\t", "+", "worker-{} | ", "[{:.3f}] ", COLOURS, "\x1b[1m", "{} > "]
)
def test_computations_of_hlo_may_be_indented_coloured_or_behind_any_words(prefix):
    words = [10**k for k in range(4)]  # of different lengths
    lines = [
        f"{prefix.format(words[k % 4])}{line}\x1b[0m" for k, line in enumerate(HLO.split("\n"))
    ]
    found, other = gl.explain(HLO), gl.explain("\n".join(lines))
    assert (other.nbytes, other.layouts) == (found.nbytes, found.layouts)
    assert [p.nbytes for p in other.peaks] == [p.nbytes for p in found.peaks] != []


def test_a_program_that_is_cut_says_so():
    whole = gl.explain(HLO)
    (peak,) = whole.peaks
    assert not peak.at_least
    assert whole.advice == ""
    (cut,) = gl.explain(HLO[: HLO.rindex("ROOT")]).peaks
    assert cut.at_least
    assert cut.nbytes <= peak.nbytes
    early = gl.explain(HLO[: HLO.index("ENTRY")])
    assert early.peaks == ()
    assert "cut before its ENTRY" in str(early)


@pytest.mark.parametrize("end", ["}", '} loc("f":1:2)'])
def test_a_function_that_is_cut_says_so(end):
    kind = (
        "tensor<64x64xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile"
        "<32x32, f32>, #ttnn.buffer_type<dram>>, <interleaved>>>"
    )
    lines = [
        f"func.func @f(%a: {kind}) -> {kind} {{",
        f'  %0 = "ttnn.neg"(%a) : ({kind}) -> {kind}',
    ]
    for text, at_least in ((lines, True), ([*lines, "  return %0", end], False)):
        assert [(p.nbytes, p.at_least) for p in gl.explain(text).peaks] == [(32768, at_least)]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_file_is_to_be_unpacked(pack):
    assert "unpack it first" in gl.explain(pack(HLO.encode())).note
