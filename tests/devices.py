"""The device grids that tables of tests take in turns: one of five states where cores are placed.

A stated map (transposed, reversed, folded, offset) places grids of its rank otherwise than the rule
does, and those of other ranks by the rule: what assumes that both are placed alike is wrong there.
"""

from math import prod

import jax
import tiers

import gridlayout as gl

COUNT = len(jax.devices())
# By the mesh's sizes: maps from a core's coordinates to the device's, then the core inside it.
TRANSPOSED = "(d0, d1) -> (d1, d0)"
MAPS = {
    (2, 4): [
        TRANSPOSED,
        "(d0, d1) -> (-d0 + 1, -d1 + 3)",
        "(d0, d1) -> (d0 + 1, d1)",
        "(d0, d1) -> (d1 floordiv 4, d0, d1 mod 4)",
        "(d0) -> (d0 mod 2, d0 floordiv 2)",
    ],
    (8,): ["(d0, d1) -> (-d1 + 7, d0)", "(d0) -> (-d0 + 7)", "(d0, d1) -> (d0 + 2, d1)"],
    (2, 2, 2): [
        "(d0, d1, d2) -> (d2, d1, d0)",
        "(d0, d1) -> (d1, d0, 0)",
        "(d0, d1) -> (-d0 + 1, d1 mod 2, d1 floordiv 2)",
    ],
    (2, 2): [TRANSPOSED, "(d0, d1) -> (d1 floordiv 2, d0, d1 mod 2)"],
    (4,): ["(d0) -> (-d0 + 3)", "(d0, d1) -> (d1, d0)"],
}
DEVICES = {mesh: gl.DeviceGrid(mesh) for mesh in [(2, 4), (8,), (2, 2, 2)] if prod(mesh) <= COUNT}
STATED = [
    gl.DeviceGrid(mesh, core_map=text)
    for mesh, texts in MAPS.items()
    if prod(mesh) <= COUNT
    for text in texts
]


def turn(device, number):
    """The device grid of a case, by its number: every fifth has a stated map; all of `--all-cases`
    that are even do.
    """
    every = [each for each in STATED if each.size == device.size] or STATED
    stated = number % 2 == 0 if tiers.ALL else number % 5 == 2
    return every[number // (2 if tiers.ALL else 5) % len(every)] if stated and every else device
