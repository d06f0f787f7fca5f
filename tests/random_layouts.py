"""Random layouts for Hypothesis: pairs of a brute-force reading and the constructor's arguments."""

from math import prod

from brute import Brute, Sum, Term, indices, joined
from hypothesis import assume
from hypothesis import strategies as st

# Bits an element takes in memory, from MLIR's names of the types (i4, bf16, ...).
BITS = {
    **{"bool": 8, "int4": 4, "uint4": 4, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16},
    **{"int32": 32, "uint32": 32, "int64": 64, "uint64": 64, "float8_e4m3fn": 8},
    **{"int2": 2, "uint2": 2, "float4_e2m1fn": 4},
    **{
        "float8_e5m2": 8,
        "float8_e8m0fnu": 8,
        "float16": 16,
        "bfloat16": 16,
        "float32": 32,
        "float64": 64,
    },
    **{"complex64": 64, "complex128": 128},
}
# The most physical positions of a random layout: each of them is asked for by itself.
MAX_VOLUME = 700


@st.composite
def collapse_intervals(draw, rank):
    """Disjoint half-open intervals, ends written from either side, in any order."""
    ends = sorted(draw(st.sets(st.integers(0, rank), max_size=4)))
    pairs = list(zip(ends[::2], ends[1::2], strict=False))
    written = [
        (
            a - rank if a < rank and draw(st.booleans()) else a,
            b - rank if b < rank and draw(st.booleans()) else b,
        )
        for a, b in pairs
    ]
    return draw(st.permutations(written))


@st.composite
def nested_sums(draw, shape, grid_rank):
    """Each dim in one result, strides with gaps and either sign."""
    order = draw(st.permutations(range(len(shape))))
    home = [draw(st.integers(0, grid_rank - 1)) for _ in order]
    sums = []
    for k in range(grid_rank):
        terms, span = [], 1
        for d in (d for d, h in zip(order, home, strict=True) if h == k):
            stride = span + draw(st.integers(0, 2))
            terms.append(Term(draw(st.sampled_from([1, 1, -1])) * stride, d))
            span += stride * (max(shape[d], 1) - 1)
        sums.append(Sum(tuple(draw(st.permutations(terms)))))
    return sums


@st.composite
def free_sums(draw, shape, grid_rank):
    """Any terms: dims twice, not at all, strides that overlap, floordiv and mod."""
    terms = st.builds(
        Term,
        st.sampled_from([1, 1, 2, 3, 5, -1, -2, 0]),
        st.integers(0, len(shape) - 1) if shape else st.nothing(),
        st.sampled_from(["", "", "", "floordiv", "mod"]),
        st.integers(1, 4),
    )
    each = st.lists(terms, max_size=3 if shape else 0)
    return [Sum(tuple(draw(each))) for _ in range(grid_rank)]


def lifted(sums, shape, extra):
    """The sums with offsets that keep every collapsed index at 0 or more."""
    box = [max(n, 1) for n in shape]
    lows = [min(s.value(index) for index in indices(box)) for s in sums]
    return tuple(Sum(s.terms, e - low) for s, low, e in zip(sums, lows, extra, strict=True))


@st.composite
def cases(draw, stated=True):
    """A brute-force reading and the arguments that build the library's layout of it.

    stated: with shards that are stated among them.
    """
    rank = draw(st.integers(0, 4))
    extent = st.sampled_from([1, 2, 2, 3, 3, 4, 5, 7] if rank < 3 else [1, 2, 2, 3, 3, 4])
    shape = tuple(draw(st.lists(extent, min_size=rank, max_size=rank)))
    kind = draw(st.sampled_from(["default", "intervals", "nested", "nested", "free"]))
    # Not with free sums: whether `d0 - d0` reads an empty d0 is a question without an answer.
    if rank and kind != "free" and draw(st.integers(0, 15)) == 0:
        shape = (*shape[:-1], 0)[:: draw(st.sampled_from([1, -1]))]
    grid_rank = draw(st.integers(1, 4))
    grid = tuple(draw(st.lists(st.integers(1, 3), min_size=grid_rank, max_size=grid_rank)))
    arguments = {"shape": shape, "grid": grid}
    if kind in ("default", "intervals"):
        pairs = [(0, -1)] if kind == "default" else draw(collapse_intervals(rank))
        sums = joined(shape, pairs if rank else [], grid_rank)
        assume(sums is not None)
        if kind == "intervals":
            arguments["collapse"] = pairs
    else:
        sums = draw((nested_sums if kind == "nested" else free_sums)(shape, grid_rank))
        extra = draw(
            st.lists(st.sampled_from([0, 0, 1, 3]), min_size=grid_rank, max_size=grid_rank)
        )
        sums = lifted(sums, shape, extra)
    tile = face = None
    if draw(st.booleans()):
        # Tiles as (faces, extent of a face), so that faces divide them.
        digits = st.tuples(st.sampled_from([1, 2]), st.integers(1, 3))
        digits = draw(st.lists(digits, min_size=1, max_size=grid_rank))
        tile = tuple(a * b for a, b in digits)
        face = tuple(b for _, b in digits) if draw(st.booleans()) else None
    arguments |= {"tile": tile, "face": face, "dtype": draw(st.sampled_from(sorted(BITS)))}
    more = ()
    if stated and draw(st.integers(0, 3)) == 0:
        each = st.sampled_from([0, 0, 1, 2, 5])
        more = tuple(draw(st.lists(each, min_size=grid_rank, max_size=grid_rank)))
    bits, row_bits = BITS[arguments["dtype"]], 1
    if stated and draw(st.integers(0, 3)) == 0:
        arguments["row_alignment"] = draw(st.sampled_from([1, 2, 8, 16]))
        # What is less than an element asks for nothing.
        row_bits = max(8 * arguments["row_alignment"], bits)
        assume(tile is None or prod(tile) * bits % row_bits == 0)
    brute = Brute(shape, grid, sums, tile, face, bits, more, row_bits)
    if more:
        arguments["shard_shape"] = brute.shard_shape
    if "collapse" not in arguments and kind != "default":
        arguments["linear"] = brute.text
    assume(prod(brute.physical_shape) <= MAX_VOLUME and prod(brute.collapsed_shape) <= MAX_VOLUME)
    return brute, arguments
