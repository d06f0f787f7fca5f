"""Explain a program that Tenstorrent's compiler made, then run it in the layouts it chose.

    python examples/run_dump.py

softmax.mlir is TTNN IR for a Blackhole chip, as tt-mlir prints it for `jax.nn.softmax` of a
7x130x70 tensor: out of DRAM into tiles, onto 35 cores, and back.
"""

import math
from pathlib import Path

import gridlayout as gl

gl.emulate_devices(4)  # leave it out where there are real devices

import jax
import numpy as np

DUMP = Path(__file__).with_name("softmax.mlir")

# What each value takes, what of that is padding, and what the program moves.
found = gl.explain(DUMP, chip="blackhole")
print(found)
worst = found.findings[0]
print(f"\nmost waste: {worst.name} on line {worst.line}, {worst.wasted_bytes:,} bytes of padding")

# The same text as a function. NaN in all padding: results that are numbers have read none of it.
program = gl.tenstorrent.load(DUMP.read_text(), gl.DeviceGrid((4,)), oob=math.nan)
for name, layout in program.layouts.items():
    print(f"{name:6} {layout.memory:4} on {layout.num_cores} cores")

x = np.random.default_rng(0).normal(size=(7, 130, 70)).astype(np.float32)
result = program(x)
print(result)
np.testing.assert_allclose(np.asarray(result), jax.nn.softmax(x), rtol=1e-5, atol=1e-7)
print("equal to jax.nn.softmax")

print()
print(program.report())
