"""torch's DTensor: the part of a dim that each device holds (`Shard`, as `torch.chunk`)."""

from importlib import import_module

from prove.judges import Judge


class LayoutJudge(Judge):
    """The grid divides as DTensor does: rounded up, so that the last cores hold less or nothing."""

    name = "torch (DTensor)"
    systems = (
        "document",
        "even",
    )

    def __init__(self):
        tensor = import_module("torch.distributed.tensor")
        self.rule = tensor.Shard.local_shard_size_and_offset

    def ask(self, layout, holders):
        if type(layout).__name__ != "GridLayout" or not layout.size or not layout.shape:
            return False
        if str(layout.linear) != str(layout.linear.identity(len(layout.shape))):
            return False
        sizes = zip(layout.shape, layout.grid, strict=True)
        if [-(-n // g) for n, g in sizes] != list(layout.shard_shape):
            return False  # a stated shard
        held = [{} for _ in layout.grid]
        for (core, _), (index, *_) in holders.items():
            for k, c in enumerate(core):
                held[k].setdefault(c, set()).add(index[k])
        for k, (n, g) in enumerate(zip(layout.shape, layout.grid, strict=True)):
            for c in range(g):
                size, offset = self.rule(n, g, c)
                wanted = set(range(offset, offset + size))
                assert held[k].get(c, set()) == wanted, f"DTensor: core {c} of dim {k}: {wanted}"
        return True
