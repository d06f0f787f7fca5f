"""Random affine maps: as texts with every operator, and as layouts build them.

Brute force over a box is the judge of ranges, collisions, inverses, preimages and normal forms
(`check_against_brute_force` of `test_affine.py`). MLIR prints, composes and evaluates each map, and
isl computes its range, image and inverse.
"""

import random
import traceback

from test_affine import check_against_brute_force, python_reading, random_map

from gridlayout.affine.map import AffineMap
from gridlayout.errors import LayoutError
from prove.judges.isl import Isl
from prove.judges.mlir import Mlir
from prove.outcome import Outcome

POINTS = 8  # at which a map is evaluated


def run(part, start, count):
    """The maps of the seeds from `start` on; each disagreement has its seed."""
    outcome = Outcome()
    mlir, isl = _judges(outcome)
    for k in range(start, start + count):
        rng = random.Random(f"{part.name} {k}")
        m, box, text = MAPS[part.name](rng)
        try:
            _judged(m, box, text, rng, outcome, mlir, isl)
        except Exception:
            what = f"{text} on the box {box}:\n{traceback.format_exc(limit=-3)}"
            repeat = f"python -m tests.prove maps --part {part.name} --seed {k}"
            outcome.failures.append({"what": what, "repeat": repeat})
    return outcome


def _judges(outcome):
    found = []
    for kind, name in ((Mlir, "MLIR (jaxlib)"), (Isl, "isl (islpy)")):
        try:
            found.append(kind())
        except ImportError as error:
            outcome.missing[name] = str(error)
            found.append(None)
    return found


def _random(rng):
    """A text with every operator, three levels deep, and a small box."""
    rank = rng.randint(1, 3)
    text = random_map(rng, rank, rng.randint(1, 4), divisors=(1, 2, 3, 4, 5, 6, 8))
    box = tuple(rng.randint(1, 6) for _ in range(rank))
    return AffineMap.parse(text), box, text


def _layouts(rng):
    """Dims joined with gaps, then split into digits, as layouts do; some dims walk backwards."""
    rank = rng.randint(1, 4)
    box = tuple(rng.randint(1, 4) for _ in range(rank))
    order = rng.sample(range(rank), rank)
    cut = rng.randint(0, rank)
    results = []
    for group in (order[:cut], order[cut:]):
        terms, span = [str(rng.choice([0, 0, 3]))], 1
        for d in reversed(group):
            flip = rng.random() < 0.15
            terms.append(f"({box[d] - 1} - d{d}) * {span}" if flip else f"d{d} * {span}")
            span = span * box[d] + rng.choice([0, 0, 1, 3])
        shard, tile = rng.randint(1, 8), rng.randint(1, 4)
        joined = f"({' + '.join(terms)})"
        results += [f"{joined} floordiv {shard}", f"({joined} mod {shard}) floordiv {tile}"]
        results.append(f"({joined} mod {shard}) mod {tile}")
    rng.shuffle(results)
    text = f"({', '.join(f'd{k}' for k in range(rank))}) -> ({', '.join(results)})"
    return AffineMap.parse(text), box, text


MAPS = {"random": _random, "layouts": _layouts}


def _judged(m, box, text, rng, outcome, mlir, isl):
    points = [tuple(rng.randint(-50, 50) for _ in box) for _ in range(POINTS)]
    for point in points:
        assert m(*point) == python_reading(text, point), f"at {point}"
    there = check_against_brute_force(m, box, rng, margin=1)
    outcome.cases += 1
    outcome.judged["brute force"] += 1
    if mlir is not None:
        _judged_by_mlir(m, text, points, rng, mlir)
        outcome.judged["MLIR (jaxlib)"] += 1
    if isl is not None:
        _judged_by_isl(m, box, there, isl)
        outcome.judged["isl (islpy)"] += 1


def _judged_by_mlir(m, text, points, rng, mlir):
    printed = mlir.printed(text)
    assert str(m) == printed, f"MLIR prints {printed}"
    again = mlir.printed(printed)
    assert str(AffineMap.parse(printed)) == again, f"read again, MLIR prints {again}"
    found = mlir.values(text, points)
    assert found == [m(*point) for point in points], f"MLIR: {found} at {points}"
    inner = random_map(rng, 2, m.num_dims, depth=2)
    composed = mlir.composed(text, inner)
    ours = str(m.compose(AffineMap.parse(inner)))
    assert ours == composed, f"after {inner}: {ours}; MLIR: {composed}"


def _judged_by_isl(m, box, there, isl):
    relation = isl.relation(m, box)
    image = relation.range()
    for k, (low, high) in enumerate(m.range(box)):
        found = tuple(int(f(k).to_str()) for f in (image.dim_min_val, image.dim_max_val))
        assert found == (low, high), f"result {k}: {(low, high)}; isl: {found}"
    simple = isl.relation(m.simplify(box), box)
    assert simple.is_equal(relation), f"simplified: {m.simplify(box)}"
    try:
        injective = m.is_injective(box)
    except LayoutError:  # undecided, which a large box may be
        return
    assert injective == bool(relation.is_injective()), f"injective: {injective}"
    if there is not None:
        isl.assert_inverse(relation, there)
