"""The device grids that tables of tests take in turns: one of five states where cores are placed.

A stated map (transposed, reversed, folded, offset) places grids of its rank otherwise than the rule
does, and those of other ranks by the rule: what assumes that both are placed alike is wrong there.
"""

from functools import cache
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


def chosen(number, plain, stated):
    """The device grid of a case, by its number: every fifth has a stated map; all of `--all-cases`
    that are even do.
    """
    every = list(stated) if (number % 2 == 0 if tiers.ALL else number % 5 == 2) else []
    return every[number // (2 if tiers.ALL else 5) % len(every)] if every else plain


def turn(device, number):
    """The device grid of a case, or in its turn one of as many devices with a map."""
    return chosen(number, device, [each for each in STATED if each.size == device.size] or STATED)


@cache
def grids_of(mesh, machine):
    """This mesh as a device grid, and with each map."""
    plain = gl.DeviceGrid(mesh, machine=machine)
    maps = map(gl.AffineMap.parse, MAPS.get(plain.shape, []))
    return plain, {gl.DeviceGrid(mesh, core_map=each, machine=machine): each for each in maps}


def mapped(mesh, number, *grids, machine=None):
    """The device grid of a case on this mesh; a map is one that places some of the grids."""
    plain, maps = grids_of(mesh, machine)
    placing = (
        device for device, each in maps.items() if any(device.core_map(g) == each for g in grids)
    )
    return chosen(number, plain, placing)
