"""The claims: what each says, its parts, and how many cases are tried of each part."""

from dataclasses import dataclass, replace
from importlib import import_module
from math import ceil

from prove import devices
from prove.mutations_table import MUTATIONS


@dataclass(frozen=True)
class Part:
    """Some of the cases of a claim.

    count: of all cases. size: of the cases of a chunk. seconds: what a chunk takes, about, until
    one has been timed. devices: that JAX emulates.
    """

    name: str
    count: int
    size: int
    seconds: float
    devices: int = 1

    @property
    def chunks(self):
        """The first seed and the number of cases of each chunk."""
        starts = range(0, self.count, self.size)
        return [(start, min(self.size, self.count - start)) for start in starts]

    def scaled(self, scale):
        """The same with a share of the cases, at least one."""
        count = max(1, ceil(self.count * scale))
        return replace(self, count=count, size=min(self.size, count))


@dataclass(frozen=True)
class Claim:
    """What is claimed, and where it is checked: `run(part, seed, count)` of the module of its name.

    unit: what a case is. limit: seconds after which a chunk has failed. together: a seed stands
    for a chunk of cases that Hypothesis draws, and not for a single case.
    """

    name: str
    says: str
    unit: str
    parts: tuple[Part, ...]
    limit: float = 1800.0
    together: bool = False

    def part(self, name):
        """The part of that name; the first if it is None."""
        found = [part for part in self.parts if name in (part.name, None)]
        if not found:
            known = ", ".join(part.name for part in self.parts)
            raise SystemExit(f"{self.name} has no part {name!r}; it has {known}")
        return found[0]

    def scaled(self, scale):
        """The same with a share of the cases of each part."""
        return replace(self, parts=tuple(part.scaled(scale) for part in self.parts))

    def run(self, part, seed, count):
        """The outcome of some cases, in this process."""
        devices.emulate(part.devices)
        return import_module(f"prove.{self.name}").run(part, seed, count)


READERS = (
    *("affine_map", "layout_document", "layout_metal", "layout_ttnn", "layout_xla", "layout_call"),
    *("mlir", "explain", "compare", "ttnn_program", "plan", "machine", "image", "safetensors"),
    "checkpoint",
)


def _parts(size, seconds, **counts):
    return tuple(Part(name, count, size, seconds) for name, count in counts.items())


CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            "layouts",
            "each element is at the position that the document of its system states, and all other "
            "positions are padding; the array program and the gather pack and unpack the same data",
            "random layouts",
            _parts(
                *(500, 70.0),
                **{"document": 5000, "even": 2000, "xla": 3000, "metal": 1500, "ttnn": 1500},
                **{"ttnn_document": 1500, "tt_metal": 1500, "sophon": 1500, "sophon_system": 500},
                **{"megengine": 750, "strided": 750, "mli": 500},
            ),
            together=True,
        ),
        Claim(
            "maps",
            "an affine map prints, evaluates, composes, has the range, the collisions and the "
            "inverse that others compute of its text",
            "random affine maps",
            _parts(1000, 60.0, random=15000, layouts=5000),
        ),
        Claim(
            "programs",
            "a program computes on the grid what it computes in JAX: its value, gradient, jvp and "
            "vmap, whatever the layouts of its operands, with NaN in their padding",
            "random programs",
            tuple(Part(f"devices_{n}", 400, 50, 75.0, n) for n in (1, 4, 8, 16, 64)),
        ),
        Claim(
            "predictions",
            "a program and its gradient are planned, for a machine or for devices: the plan is no "
            "slower than the default by its own prediction, answers for each equation, and runs",
            "random programs",
            (Part("machines", 200, 10, 40.0), Part("devices", 100, 5, 60.0, 8)),
        ),
        Claim(
            "plans",
            "what is planned and lowered for a call depends on its arguments alone: on no cache, "
            "on nothing that was planned before, on no order of hashes",
            "random programs",
            (
                Part("devices_4", 50, 25, 200.0, 4),
                Part("devices_8", 50, 25, 200.0, 8),
                Part("abstract_64", 50, 25, 100.0),
            ),
        ),
        Claim(
            "primitives",
            "JAX's own harnesses of its primitives give on the grid what they give in JAX",
            "harnesses of JAX",
            (Part("all", 2000, 100, 60.0, 8),),
        ),
        Claim(
            "parsers",
            "whatever text or file a reader is given, it gives a result or raises a `LayoutError`, "
            "within limits of time and memory",
            "inputs",
            tuple(Part(name, 20_000, 20_000, 50.0) for name in READERS),
        ),
        Claim(
            "mutations",
            "a small fault in the library makes the test fail that is named for it",
            "faults",
            (Part("all", len(MUTATIONS), 12, 90.0, 8),),
        ),
    )
}
