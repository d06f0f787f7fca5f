"""einops: a layout without padding is one `rearrange`."""

from importlib import import_module

import numpy as np

from gridlayout.layouts.program import pack_host
from prove.judges import Judge

BLOCK = {"NCHW4": 4, "NCHW8": 8, "NCHW32": 32, "NCHW64": 64, "NCHW44": 4, "NCHW88": 8}
BLOCK |= {"CHWN4": 4, "NHWCD4": 4}
FORMATS = {"CHWN4": "c h w n b", "NHWCD4": "n h c w b"}


def of_grid(layout):
    """The pattern of a `GridLayout` that pads nothing and collapses nothing; None for others."""
    rank = len(layout.shape)
    if str(layout.linear) != str(layout.linear.identity(rank)):
        return None
    counts, tile = layout.tile_counts, layout.padded_tile
    sizes = [layout.grid, counts, tile]
    if layout.face:
        faces = (1,) * (rank - len(layout.face)) + layout.face
        sizes[2:] = [tuple(t // f for t, f in zip(tile, faces, strict=True)), faces]
    if tuple(np.prod(sizes, axis=0)) != layout.shape:
        return None
    names = [[f"{level}{k}" for k in range(rank)] for level in "gsft"[: len(sizes)]]
    untiled = rank - len(layout.tile or ())
    kept = [(name, level, k) for level, row in enumerate(names) for k, name in enumerate(row)]
    kept = [(name, level, k) for name, level, k in kept if level < 2 or k >= untiled]
    left = (" ".join(name for name, _, d in kept if d == k) for k in range(rank))
    right = " ".join(name for name, _, _ in kept)
    found = {name: int(sizes[level][k]) for name, level, k in kept}
    return f"{' '.join(f'({each})' for each in left)} -> {right}", found


def of_xla(layout):
    """The pattern of an XLA layout of one tile, or of none, that divides its dims."""
    rank, order = len(layout.shape), layout.minor_to_major[::-1]
    tile = layout.tiles[0] if layout.tiles else ()
    if len(layout.tiles) > 1 or len(tile) > rank or -1 in tile:
        return None
    tiled = dict(zip(order[rank - len(tile) :], tile, strict=True))
    if any(layout.shape[d] % n for d, n in tiled.items()):
        return None
    left = " ".join(f"(d{d} t{d})" if d in tiled else f"d{d}" for d in range(rank))
    right = " ".join([*(f"d{d}" for d in order), *(f"t{d}" for d in tiled)])
    return f"{left} -> {right}", {f"t{d}": int(n) for d, n in tiled.items()}


def of_format(layout):
    """The pattern of a MegEngine format whose blocks are full."""
    name, channels = layout.format, layout.shape[1]
    if name in ("NCHW", "NHWC"):
        return f"n c h w -> {' '.join(name.lower())}", {}
    block = BLOCK[name]
    if channels // layout.channel_groups % block:
        return None
    return f"n (c b) h w -> {FORMATS.get(name, 'n c h w b')}", {"b": block}


PATTERNS = {"GridLayout": of_grid, "XlaLayout": of_xla, "FormatLayout": of_format}


class LayoutJudge(Judge):
    """The packed array is what einops makes of the logical one."""

    name = "einops"
    systems = (
        "document",
        "even",
        "xla",
        "megengine",
    )

    def __init__(self):
        self.rearrange = import_module("einops").rearrange

    def ask(self, layout, holders):
        pattern = PATTERNS.get(type(layout).__name__, lambda _: None)
        if not layout.size or not layout.shape or (found := pattern(layout)) is None:
            return False
        x = np.arange(layout.size).reshape(layout.shape).astype(layout.dtype)
        theirs = self.rearrange(x, found[0], **found[1])
        packed = pack_host(x, layout)
        same = np.array_equal(theirs.ravel().view(np.uint8), packed.ravel().view(np.uint8))
        assert same, f"einops: {found[0]} with {found[1]} packs otherwise"
        return True
