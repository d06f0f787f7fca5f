"""`python -m benchmarks.published`: what machines predict against times that others published.

Collectives on lines and rings of Tenstorrent's chips, and matrix products on one chip, in
`tests/published`, where `sources.json` has the repository, path and commit of each file. Of
collectives a machine is fitted on every second row, in order of fabric, kind, devices and bytes,
and predicts the others; then the other way round. Of products nothing is fitted: they are priced as
a compiler's program that states types, math fidelity and memory, and as `jnp.matmul`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gridlayout as gl
from gridlayout.sharding.collectives import ALL_REDUCE, Collective
from gridlayout.sharding.machines.chips import Figure

FACTS = Path(__file__).resolve().parent.parent / "tests" / "published"
CHIPS = {"wormhole": "n150", "blackhole": "p150"}
FABRICS = ("line", "ring")
TOLERANCE, SHARE, RANK = 0.15, 0.90, 0.95

# The figures of `gl.Links` that are fitted: those that any links have, and all.
PLAIN = ("start", "latency", "bandwidth")
ALL = (*PLAIN, "reduce_latency", "pair_bandwidth")
_ENDLESS = 1e30  # bytes a second
_CHIP = gl.Chip("any", (1, 1))


class Timing(NamedTuple):
    """A collective that was measured; nbytes: of the tensor, of all_to_all of a device's."""

    kind: str
    fabric: str
    devices: int
    nbytes: int
    seconds: float

    @property
    def collective(self) -> Collective:
        """As a `gl.Machine` prices it."""
        passes = 2 if self.kind == ALL_REDUCE else 1
        received = passes * self.nbytes * (self.devices - 1) // self.devices
        return Collective(self.kind, ("x",), self.devices, received, self.devices)


Predict = Callable[[Timing], float]
Fit = Callable[[Sequence[Timing]], Predict]


def sources() -> dict[str, Any]:
    """Of each file, where it is from."""
    return json.loads((FACTS / "sources.json").read_text(encoding="utf-8"))


def rows_of(name: str) -> list[list[str]]:
    with (FACTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def timings(chip: str) -> list[Timing]:
    """All of a chip, in order of fabric, kind, devices and bytes."""
    found = [
        Timing(kind, fabric, int(devices), int(nbytes), float(microseconds) * 1e-6)
        for kind, fabric, devices, nbytes, microseconds in rows_of(f"{chip}_collectives")
    ]
    return sorted(found, key=lambda row: (row.fabric, row.kind, row.devices, row.nbytes))


# -- fits ------------------------------------------------------------------------------------------


def least(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """How much of each column makes up the seconds, by least squares of relative errors."""
    from scipy.optimize import nnls

    relative = np.array(columns, float) / np.array(seconds)
    scales = np.maximum(relative.max(axis=1), 1e-300)
    found, _ = nnls((relative / scales[:, None]).T, np.ones(len(seconds)))
    return [float(x) for x in found / scales]


def by_links(links: gl.Links) -> Predict:
    """Seconds on a row of chips with such links."""
    machines = {n: gl.Machine(_CHIP, mesh=(n,), links=links) for n in (2, 4, 8)}
    return lambda row: machines[row.devices].once(row.collective)


def fitted_links(rows: Sequence[Timing], names: Sequence[str] = ALL) -> gl.Links:
    """The links of one fabric. Prices add up: a column is the price with one figure alone."""
    (fabric,) = {row.fabric for row in rows}
    nothing = gl.Links(_ENDLESS, wrap=fabric == "ring")
    if "pair_bandwidth" in names:
        nothing = replace(nothing, pair_bandwidth=_ENDLESS)
    prices = [by_links(replace(nothing, **{name: 1.0})) for name in names]
    columns = [[price(row) for row in rows] for price in prices]
    found = zip(names, least(columns, [row.seconds for row in rows]), strict=True)
    figures = {name: 1 / x if x and "bandwidth" in name else x for name, x in found}
    return replace(nothing, **figures)


def fit_links(names: Sequence[str]) -> Fit:
    """Links of each fabric."""

    def fit(rows: Sequence[Timing]) -> Predict:
        predict = {
            fabric: by_links(fitted_links([row for row in rows if row.fabric == fabric], names))
            for fabric in dict.fromkeys(row.fabric for row in rows)
        }
        return lambda row: predict[row.fabric](row)

    return fit


def fit_figures(rows: Sequence[Timing]) -> Predict:
    """Two figures of each kind and group size on each fabric, as `gl.Machine.measure` finds."""
    curves: dict[tuple[str, str, int], list[Timing]] = {}
    for row in rows:
        curves.setdefault((row.fabric, row.kind, row.devices), []).append(row)
    figures: dict[str, list[Figure]] = {}
    for (fabric, kind, devices), curve in curves.items():
        columns = [[1.0] * len(curve), [row.collective.received_bytes for row in curve]]
        latency, per_byte = least(columns, [row.seconds for row in curve])
        figures.setdefault(fabric, []).append(Figure(kind, devices, latency, 1 / per_byte))
    machines = {fabric: gl.Machine(_CHIP, figures=some) for fabric, some in figures.items()}
    return lambda row: machines[row.fabric].once(row.collective)


def ready(chip: str) -> Predict:
    """By a ready machine, whose links were fitted on all lines."""
    links, count = gl.Machine(CHIPS[chip]).links[0], sources()[f"{chip}_collectives.csv"]["links"]
    bandwidths = (links.bandwidth * count, links.pair_bandwidth * count)
    links = replace(links, bandwidth=bandwidths[0], pair_bandwidth=bandwidths[1])
    predict = {fabric: by_links(replace(links, wrap=fabric == "ring")) for fabric in FABRICS}
    return lambda row: predict[row.fabric](row)


# -- what they predict -----------------------------------------------------------------------------


def errors(predict: Predict, rows: Iterable[Timing]) -> list[float]:
    """How far off predictions are, relative to what was measured."""
    return [predict(row) / row.seconds - 1 for row in rows]


def within(found: Sequence[float]) -> float:
    """The share of errors of at most the tolerance."""
    return sum(abs(error) <= TOLERANCE for error in found) / len(found)


def crossed(fit: Fit, rows: Sequence[Timing]) -> list[list[float]]:
    """The errors of each half of the rows, by a fit of the other half."""
    halves = rows[::2], rows[1::2]
    return [errors(fit(one), other) for one, other in (halves, halves[::-1])]


def between(fit: Fit, rows: Sequence[Timing]) -> float:
    """The share of 4 chips on a line within the tolerance, by a fit of 2 and of 8."""
    line = [row for row in rows if row.fabric == "line"]
    others = [row for row in line if row.devices != 4]
    return within(errors(fit(others), [row for row in line if row.devices == 4]))


# -- products --------------------------------------------------------------------------------------

# The files of machines; element types as tt-mlir writes them.
PRODUCTS = {"n150": "n150", "p150": "p150_10x11", "p150 10x13": "p150_10x13"}
_TYPES = {"bf16": "bf16", "bfp8": "bfp_bf8", "bfp4": "bfp_bf4"}
_TILE = 32


class Product(NamedTuple):
    """A matrix product that was measured: in which math fidelity, where its tensors are.

    config: tuned by hand, or the default.
    """

    m: int
    k: int
    n: int
    type: str
    fidelity: str
    config: str
    in0: str
    in1: str
    out: str
    seconds: float

    @property
    def flops(self) -> float:
        """Floating-point operations."""
        return 2.0 * self.m * self.k * self.n


def products(machine: str) -> list[Product]:
    """All that were measured on a chip."""
    return [
        Product(*map(int, row[:3]), *row[3:-1], float(row[-1]) * 1e-9)
        for row in rows_of(f"{PRODUCTS[machine]}_products")
    ]


def _layout(shape: tuple[int, int], kind: str, memory: str, grid: Sequence[int]) -> str:
    """A tensor's: dealt to DRAM in pages, or in L1, a block a core."""
    where, cores = ("<interleaved>", (1, 1)) if memory == "dram" else ("<block_sharded>", grid)
    rows, columns = (-(-n // (_TILE * c)) for n, c in zip(shape, cores, strict=True))
    return (
        f"#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <{cores[0]}x{cores[1]}>, "
        f"memref<{rows}x{columns}x!ttcore.tile<32x32, {_TYPES[kind]}>, #{memory}>, {where}>"
    )


def program(product: Product, grid: Sequence[int]) -> str:
    """A product as tt-mlir would write it, its blocks in L1 on a grid of cores."""
    m, k, n = product[:3]
    element = "bf16" if product.type == "bf16" else f"!ttcore.tile<32x32, {_TYPES[product.type]}>"
    shapes = {"in0": (m, k), "in1": (k, n), "out": (m, n)}
    layouts = "\n".join(
        f"#{name} = {_layout(shape, product.type, getattr(product, name), grid)}"
        for name, shape in shapes.items()
    )
    a, b, c = (f"tensor<{x}x{y}x{element}, #{name}>" for name, (x, y) in shapes.items())
    config = f"#ttnn.device_compute_kernel_config<math_fidelity = {product.fidelity.lower()}>"
    return f"""#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
{layouts}
func.func @main(%x: {a}, %y: {b}) -> {c} {{
  %z = "ttnn.matmul"(%x, %y) <{{compute_config = {config}, transpose_a = false,
      transpose_b = false}}> : ({a}, {b}) -> {c}
  return %z : {c}
}}
"""


def compiled(product: Product, machine: gl.Machine) -> float:
    """Seconds of a product that the compiler has laid out."""
    text = program(product, machine.chip.grid)
    return gl.simulate(gl.tenstorrent.load(text), machine=machine).time


def traced(product: Product, machine: gl.Machine, planned: bool = False) -> float:
    """Seconds of `jnp.matmul`, core by core, as it is or as it is planned: in bfloat16, HiFi4."""
    import jax
    import jax.numpy as jnp

    shapes = (product.m, product.k), (product.k, product.n)
    args = [jax.ShapeDtypeStruct(shape, "bfloat16") for shape in shapes]
    return (gl.plan if planned else gl.simulate)(jnp.matmul, *args, machine=machine).time


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's, of the ranks."""
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def in_sizes(rows: Sequence[Product], predicted: Sequence[float]) -> float:
    """The mean of the rank correlations of products of one size, which differ in all else."""
    sizes: dict[tuple[int, ...], list[tuple[float, float]]] = {}
    for row, seconds in zip(rows, predicted, strict=True):
        sizes.setdefault(row[:3], []).append((seconds, row.seconds))
    found = [correlation(*zip(*some, strict=True)) for some in sizes.values() if len(some) > 2]
    return sum(found) / len(found)


# -- what is printed -------------------------------------------------------------------------------

FITS = {
    "links, 3 figures a fabric": fit_links(PLAIN),
    "links, 5 figures a fabric": fit_links(ALL),
    "2 figures a kind and group size": fit_figures,
}


def percent(shares: Iterable[float]) -> str:
    return " / ".join(f"{share:.1%}" for share in shares)


def figures(links: gl.Links) -> str:
    times = (links.start, links.latency, links.reduce_latency)
    start, latency, added = (f"{seconds * 1e6:.2f}" for seconds in times)
    both = f"{links.bandwidth / 1e9:.2f} GB/s, a pair {links.pair_bandwidth / 1e9:.2f}"
    return f"all fitted: {both}; us: start {start}, hop {latency}, in reductions {added} more"


def report_collectives(chip: str) -> list[float]:
    """A table of a chip, and the shares that its figures by kind and group size reach."""
    rows = timings(chip)
    print(f"\n{len(rows)} collectives of {chip}: share within {TOLERANCE:.0%}")
    print(f"  {'':34}of half, by the other   of 4 chips, by 2 and 8")
    shares: list[float] = []
    for name, fit in FITS.items():
        shares = [within(found) for found in crossed(fit, rows)]
        print(f"  {name:<34}{percent(shares):<24}{between(fit, rows):.1%}")
    for fabric in FABRICS:
        some = [row for row in rows if row.fabric == fabric]
        reached = within(errors(ready(chip), some))
        print(f"  ready machine, all of a {fabric}: {reached:.1%}   {figures(fitted_links(some))}")
    return shares


def report_missed(chip: str) -> None:
    """The rows that figures by kind and group size miss, the worst first."""
    rows = timings(chip)
    halves = zip((rows[1::2], rows[::2]), crossed(fit_figures, rows), strict=True)
    found = [(e, row) for half, some in halves for e, row in zip(some, half, strict=True)]
    for error, row in sorted(found, key=lambda pair: -abs(pair[0])):
        if abs(error) > TOLERANCE:
            name = f"{row.kind} on a {row.fabric} of {row.devices}"
            print(f"    missed: {name:<30} {row.nbytes:>10,} B  {error:+.0%}")


def report_way(name: str, rows: Sequence[Product], predict: Callable[[Product], float]) -> float:
    """A line of the table, and the rank correlation."""
    predicted, measured = [predict(row) for row in rows], [row.seconds for row in rows]
    rank = correlation(predicted, measured)
    ratios = [b / a for a, b in zip(predicted, measured, strict=True)]
    spread = "".join(f"{x:8.2f}" for x in np.quantile(ratios, (0, 0.25, 0.5, 0.75, 1)))
    print(f"  {name:<40}{len(rows):>5}{rank:>8.3f}{spread}")
    return rank


def report_products(name: str) -> list[float]:
    """The lines of a machine, and their rank correlations."""
    machine, found = gl.Machine(name), products(name)
    own = [row for row in found if (row.type, row.fidelity) == ("bf16", "HiFi4")]
    alone = correlation([row.flops for row in found], [row.seconds for row in found])
    same = in_sizes(found, [compiled(row, machine) for row in found])
    print(f"  {name}: rank by operations alone {alone:.3f}; compiled, of one size, mean {same:.3f}")
    ranks = [
        report_way(f"{name}, compiled, {config}", rows, lambda row: compiled(row, machine))
        for config in ("tuned", "default")
        for rows in [[row for row in found if row.config == config]]
    ]
    for planned, way in ((False, "gl.simulate"), (True, "gl.plan")):
        rank = report_way(
            f"{name}, {way} of jnp.matmul, bf16",
            own,
            lambda row, p=planned: traced(row, machine, p),
        )
        ranks.append(rank)
    return ranks


def main() -> None:
    shares = []
    for chip in CHIPS:
        shares += report_collectives(chip)
        report_missed(chip)
    print(f"\n  {'products':<40} rows    rank measured / predicted: least, quartiles, most")
    ranks = [rank for name in PRODUCTS for rank in report_products(name)]
    for what, reached, target in (
        (f"collectives within {TOLERANCE:.0%}", min(shares), SHARE),
        ("rank correlation of products", min(ranks), RANK),
    ):
        verdict = "yes" if reached >= target else "NO"
        print(f"\n{what}: {reached:.3f} at least, >= {target:.2f}: {verdict}", end="")
    print()


if __name__ == "__main__":
    main()
