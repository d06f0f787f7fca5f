"""What machines predict against times that others published: the facts in `tests/published`."""

import json
import re
from statistics import median

import pytest

import gridlayout as gl
from benchmarks import published, scaling
from gridlayout.sharding.machines.chips import BOARDS

ROWS = {
    "wormhole_collectives": 313,
    "blackhole_collectives": 336,
    "n150_products": 117,
    "p150_10x11_products": 117,
    "p150_10x13_products": 117,
    "megatron_steps": 8,
    "book_gathers": 3,
}
REPOSITORIES = {"tenstorrent/tt-metal", "NVIDIA/Megatron-LM", "jax-ml/scaling-book"}


def test_every_file_of_facts_has_a_source():
    sources = json.loads((published.FACTS / "sources.json").read_text())
    assert {f"{name}.csv" for name in ROWS} == set(sources)
    assert {path.name for path in published.FACTS.glob("*.csv")} == set(sources)
    for name, source in sources.items():
        assert source["repository"] in REPOSITORIES
        assert re.fullmatch("[0-9a-f]{40}", source["commit"])
        assert source["path"].endswith((".md", ".tex"))
        lines = (published.FACTS / name).read_text().splitlines()
        assert len(lines) - 1 == ROWS[name.removesuffix(".csv")] == len(set(lines)) - 1


# -- collectives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", published.CHIPS)
def test_figures_fitted_on_half_of_the_collectives_predict_the_rest(chip):
    rows = published.timings(chip)
    for found in published.crossed(published.fit_figures, rows):
        assert len(found) in (len(rows) // 2, len(rows) - len(rows) // 2)
        assert published.within(found) >= published.SHARE


# What links alone predict: of half of the rows by the other, and of four chips in a line by two and
# eight. Without what reductions and pairs take they predict less.
LINKS = {"wormhole": (0.79, 0.90, 0.49), "blackhole": (0.70, 0.69, 0.53)}


@pytest.mark.parametrize("chip", published.CHIPS)
def test_five_figures_of_links_predict_most_of_the_rest(chip):
    rows = published.timings(chip)
    halves, between, without = LINKS[chip]
    fit, plain = (published.fit_links(names) for names in (published.ALL, published.PLAIN))
    for more, less in zip(*(published.crossed(f, rows) for f in (fit, plain)), strict=True):
        assert published.within(more) >= halves
        assert published.within(less) <= without
    assert published.between(fit, rows) >= between
    assert published.between(plain, rows) <= between - 0.2


@pytest.mark.parametrize("chip", published.CHIPS)
def test_ready_machines_have_the_links_of_the_fit(chip):
    count = published.sources()[f"{chip}_collectives.csv"]["links"]
    lines = [row for row in published.timings(chip) if row.fabric == "line"]
    found = published.fitted_links(lines)
    (links,) = BOARDS[published.CHIPS[chip]].links
    for name in published.ALL:
        figure = getattr(links, name) * (count if "bandwidth" in name else 1)
        assert figure == pytest.approx(getattr(found, name), rel=0.01)
    assert published.within(published.errors(published.ready(chip), lines)) >= LINKS[chip][0]


# -- products --------------------------------------------------------------------------------------

# The median of measured over predicted may be at most so much: of products tuned by hand, and of
# those in the default configuration.
MEDIANS = {"n150": (1.7, 2.4), "p150": (1.25, 1.6), "p150 10x13": (1.25, 1.6)}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", published.PRODUCTS)
def test_compiled_products_are_ranked_and_bounded(name):
    machine, rows = gl.Machine(name), published.products(name)
    predicted = [published.compiled(row, machine) for row in rows]
    measured = [row.seconds for row in rows]
    assert published.correlation(predicted, measured) > published.RANK
    assert published.in_sizes(rows, predicted) > 0.75
    for config, most in zip(("tuned", "default"), MEDIANS[name], strict=True):
        chosen = [k for k, row in enumerate(rows) if row.config == config]
        ranked = [[times[k] for k in chosen] for times in (predicted, measured)]
        assert published.correlation(*ranked) >= published.RANK
        assert median(measured[k] / predicted[k] for k in chosen) <= most
    # No chip does more than its cores and its memory can.
    assert all(p < m for p, m in zip(predicted, measured, strict=True))


def test_operations_alone_do_not_rank_products():
    rows = [row for row in published.products("n150") if row.config == "default"]
    flops = [row.flops for row in rows]
    assert published.correlation(flops, [row.seconds for row in rows]) < published.RANK


def test_products_take_by_their_fidelity_and_memory():
    machine = gl.Machine("n150")
    large = next(
        row for row in published.products("n150") if (row.m, row.fidelity) == (8192, "LoFi")
    )
    took = [
        published.compiled(large._replace(fidelity=fidelity), machine)
        for fidelity in ("LoFi", "HiFi2", "HiFi4")
    ]
    assert took == pytest.approx([took[0] * times for times in (1, 2, 4)])
    small = large._replace(m=32, k=8192, n=8192, type="bf16")
    less = small._replace(type="bfp4")
    # 32 rows: it takes what reading the weights takes.
    few, many = (published.compiled(each, machine) for each in (less, small))
    assert many / few == pytest.approx(2048 / 576, rel=0.01)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", published.PRODUCTS)
def test_traced_products_are_ranked_and_near(name):
    machine = gl.Machine(name)
    rows = [row for row in published.products(name) if row[3:6] == ("bf16", "HiFi4", "tuned")]
    for planned, most in ((False, 1.2), (True, 1.35)):
        predicted = [published.traced(row, machine, planned) for row in rows]
        measured = [row.seconds for row in rows]
        assert published.correlation(predicted, measured) > published.RANK
        ratios = [m / p for m, p in zip(measured, predicted, strict=True)]
        assert 1 < median(ratios) <= most
        assert min(ratios) > 1


# -- scaling ---------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("gpu", ["v100", "a100"])
def test_steps_scale_as_published(gpu):
    """The first step is fitted; the others, on 2, 4 and 8 GPUs, are predicted."""
    (one, fitted), *others = scaling.predicted(gpu)
    assert one.devices == 1
    assert fitted == pytest.approx(one.seconds, rel=0.01)
    assert [step.devices for step, _ in others] == [2, 4, 8]
    for step, seconds in others:
        assert seconds == pytest.approx(step.seconds, rel=0.12), step


def test_a_model_s_step_adds_up_what_megatron_does():
    """Of a layer: two results forward, again when it is computed again, two gradients backward."""
    step = scaling.steps()[3]
    bytes_of_x = 2 * step.batch * scaling.SEQUENCE * step.hidden
    least = 6 * step.layers * bytes_of_x * 2 * (step.devices - 1) // step.devices
    assert least <= scaling.simulated(step, 1.0).received <= 1.4 * least


def test_gathers_take_the_profiled_times_where_bytes_decide():
    *large, few = sorted(scaling.gathers(), key=lambda each: -each.nbytes)
    for gather in large:
        assert gather.predicted == pytest.approx(gather.seconds, rel=0.2)
    assert 0.5 * few.seconds < few.predicted < few.seconds  # 3 hops of 1 us: latency decides
