"""Programs in logs, and reports of memory: what running systems print."""

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


def test_a_report_of_a_gpu_has_its_own_totals():
    text = """BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    1.00KiB
                 total allocation:    3.00KiB
Peak buffers:
	Buffer 1:
		Size: 2.00KiB
		XLA Label: fusion
		Shape: f32[512]{0}
		==========================
"""
    found = gl.explain(text)
    assert [(p.memory, p.nbytes, p.at_least) for p in found.peaks] == [("memory", 3072, False)]
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
    ],
)
def test_hostile_logs_are_passed_over(text):
    found = gl.explain(text.split("\n"), plan=True)
    for printed in (str(found), found.to_html(), found.to_json()):
        assert len(printed) < 1 << 18
