"""CuTe's layouts (pycute): shapes and strides, and their division into cores and tiles."""

from importlib import import_module

from prove.judges import Judge
from prove.judges.einops import of_grid


def strides_of(layout):
    """The strides of a layout that is a sum of them, and where it begins; None for others."""
    name = type(layout).__name__
    if name == "XlaLayout" and not layout.tiles:
        found, step = [0] * len(layout.shape), 1
        for d in layout.minor_to_major:
            found[d], step = step, step * layout.shape[d]
        return tuple(found), 0
    if name == "StridedLayout":
        return layout.strides, layout.start
    if hasattr(layout, "mem_stride"):
        return layout.mem_stride, layout.start
    if name == "SystemLayout" and layout.lanes == 1:
        return layout.strides, 0
    return None


def row_major(shape):
    """The strides of an array without gaps."""
    found, step = [], 1
    for n in reversed(shape):
        found.insert(0, step)
        step *= n
    return tuple(found)


class LayoutJudge(Judge):
    """CuTe computes the same positions, from strides or by dividing the tensor."""

    name = "CuTe (pycute)"
    systems = (
        "document",
        "even",
        "xla",
        "strided",
        "mli",
        "sophon_system",
    )

    def __init__(self):
        self.cute = import_module("pycute")

    def ask(self, layout, holders):
        if not layout.size or not layout.shape:
            return False
        if (found := strides_of(layout)) is not None:
            strides, start = found
            theirs = self.cute.Layout(layout.shape, tuple(map(int, strides)))
            for (_, position), elements in holders.items():
                for index in elements:
                    at = start + theirs(*index)
                    assert at == position, f"CuTe: {index} is at {at}"
            return True
        if type(layout).__name__ != "GridLayout" or layout.face or of_grid(layout) is None:
            return False
        self._divided(layout, holders)
        return True

    def _divided(self, layout, holders):
        """The tensor divided by shards, the shard divided by tiles."""
        whole = self.cute.Layout(layout.shape, row_major(layout.shape))
        shards, cores = self.cute.zipped_divide(whole, layout.shard_shape)
        inside, tiles = self.cute.zipped_divide(shards, layout.padded_tile)
        strides = row_major(layout.shape)
        for (core, position), (index, *_) in holders.items():
            local = []
            for n in reversed((*layout.tile_counts, *layout.padded_tile)):
                position, i = divmod(position, n)
                local.insert(0, i)
            rank = len(layout.shape)
            found = cores(*core) + tiles(*local[:rank]) + inside(*local[rank:])
            wanted = sum(i * s for i, s in zip(index, strides, strict=True))
            assert found == wanted, f"CuTe: core {core} position {local} holds element {found}"
