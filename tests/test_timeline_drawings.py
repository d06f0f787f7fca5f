"""Timelines and bytes held over time: what is drawn of the numbers given, and how much of it."""

import math
import re
import xml.etree.ElementTree as ET
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from browser import needs_chromium
from pictures import TIMELINES, faults

import gridlayout as gl
from gridlayout.draw.held import Held, held_over_time
from gridlayout.draw.letters import lines_of, mono_lines, mono_width, text_width
from gridlayout.draw.timeline import MAX_RECTS, MAX_TRACKS, Span, Track, timeline
from gridlayout.draw.units import (
    TIMES,
    binary_steps,
    bytes_text,
    fitting,
    round_steps,
    time_text,
)
from gridlayout.errors import LayoutError
from gridlayout.ops.planning.events import Event, sent_in_words

SVG = "{http://www.w3.org/2000/svg}"
US = 1e-6
SAID = re.compile(r"^([\d,]+) spans \((.*)\): ([\d.,]+) (ns|us|ms|s) in all, from ")


def rects(drawing, group="bars"):
    """(fill, x, y, width, height, hover) of each span or bar that is drawn."""
    root = ET.fromstring(drawing.svg)
    found = [
        r for g in root.iter(f"{SVG}g") if g.get("class") == group for r in g.iter(f"{SVG}rect")
    ]
    sizes = [tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in found]
    return [
        (r.get("class"), *size, r.find(f"{SVG}title").text)
        for r, size in zip(found, sizes, strict=True)
    ]


def hovers(drawing):
    """The distinct texts that hover, in order: the rectangles of a bar share theirs."""
    return list(dict.fromkeys(hover for *_, hover in rects(drawing)))


def texts(drawing, group=None):
    root = ET.fromstring(drawing.svg)
    groups = [g for g in root.iter(f"{SVG}g") if group is None or g.get("class") == group]
    return list(dict.fromkeys(t.text for g in groups for t in g.iter(f"{SVG}text")))


def legend(drawing):
    root = ET.fromstring(drawing.svg)
    every = list(root)
    return {
        every[k + 1].text: e.get("class").split()[1]
        for k, e in enumerate(every)
        if "swatch" in (e.get("class") or "")
    }


def told(drawing):
    """How many spans hover, of which kinds, and how many seconds they take in all."""
    count, kinds, seconds, units = 0, Counter(), 0.0, dict(TIMES)
    for hover in hovers(drawing):
        if found := SAID.match(hover):
            number, named, time, unit = found.groups()
            count += int(number.replace(",", ""))
            kinds.update(
                {w.split()[1]: int(w.split()[0].replace(",", "")) for w in named.split(", ")}
            )
        else:
            time, unit = re.match(r".*: ([\d.,]+) (ns|us|ms|s), from ", hover).groups()
            count += 1
        seconds += float(time.replace(",", "")) * units[unit]
    return count, kinds, seconds


# -- simulations -----------------------------------------------------------------------------------


def test_a_timeline_says_what_is_sent_of_what_and_how_many_bytes():
    x, w = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((530, 633), (633, 300)))
    found = gl.simulate(lambda x, w: jnp.tanh(x @ w).sum(0), x, w, machine="v5e 4x4")
    drawing, sent = found.timeline(), Counter()
    for each in found.events:
        if each.nbytes:
            sent[each.track, f"{each.kind} of {each.of}", each.equation] += each.nbytes
    assert any(kind == "all-gather of w" for _, kind, _ in sent)
    lines = [f"{at}: {what}, {n:,} B, for {name}" for (at, what, name), n in sent.most_common()]
    shown = [t.text for t in ET.fromstring(drawing.svg).iter(f"{SVG}text")]
    start = shown.index("A device receives:")
    assert shown[start + 1 :] == lines


def test_wide_spans_have_their_bytes_beside_them():
    x, w = (jax.ShapeDtypeStruct(shape, "bfloat16") for shape in ((8192, 4096), (4096, 4096)))
    slope = jax.grad(lambda w, x: jnp.mean(jax.nn.relu(x @ w) @ w.T))
    found = gl.simulate(slope, w, x, machine="v5e 4x4")
    widest = max((e for e in found.events if e.nbytes), key=lambda e: e.seconds)
    words = f"{widest.words}, {widest.nbytes:,} B"
    assert any(each.endswith(words) for each in texts(found.timeline(), "labels"))


def test_a_timeline_is_read_on_a_narrow_page():
    drawing = timeline("t", "", [Track("a", [Span(0.0, 1.0, "s", "compute")])])
    width = float(ET.fromstring(drawing.svg).get("width"))
    assert 11 * 400 / width >= 7  # pixels of the letters where the drawing is 400 pixels wide


def test_of_many_transfers_the_largest_are_listed():
    events = [Event(k, 1, f"dot:{k}", "permute", "links x", "x", 10 + k) for k in range(9)]
    head, *lines, more = sent_in_words(events)
    assert head == "A device receives:"
    assert [int(re.search(r"(\d+) B", line)[1]) for line in lines] == [18, 17, 16, 15, 14, 13]
    assert more == "... and 3 more transfers."
    assert sent_in_words([Event(0, 1, "dot:0", "compute", "compute")]) == []


# -- timelines -------------------------------------------------------------------------------------


def test_spans_are_where_and_as_long_as_their_times():
    spans = [Span(0, 10 * US, "dot", "compute"), Span(20 * US, 20 * US, "add", "memory")]
    drawing = timeline(
        "t", "", [Track("core", spans), Track("link", [Span(10 * US, 10 * US, "", "links")])]
    )
    (dot, x0, y0, w0, *_), (add, x1, _, w1, *_), (link, x2, y2, w2, *_) = rects(drawing)
    assert legend(drawing) == {"compute": dot, "memory": add, "links": link}
    assert w1 == pytest.approx(2 * w0, abs=2)
    assert w2 == pytest.approx(w0, abs=0.2)
    assert x1 - x0 == pytest.approx(2 * (x2 - x0), abs=0.2)
    assert y2 > y0
    assert hovers(drawing) == [
        "dot: 10.0 us, from 0.0 us",
        "add: 20.0 us, from 20.0 us",
        ": 10.0 us, from 10.0 us",
    ]
    assert texts(drawing, "labels") == ["dot", "add"]
    core, link = "core: 2 spans, busy 30.0 us (75%)", "link: 1 span, busy 10.0 us (25%)"
    assert drawing.description == f"2 tracks over 40.0 us. {core}; {link}."
    assert "25% busy" in texts(drawing)


@pytest.mark.parametrize(
    ("seconds", "unit", "last"),
    [
        (4e-9, "ns", "4.0 ns"),
        (44e-6, "us", "40 us"),
        (1.5e-3, "ms", "1.4 ms"),
        (1.2e3, "s", "1,200 s"),
    ],
)
def test_ticks_are_round_numbers_in_the_unit_that_fits(seconds, unit, last):
    drawing = timeline("t", "", [Track("a", [Span(0, seconds, "x", "k")])])
    ticks = texts(drawing, "ticks middle")
    assert {t.split()[1] for t in ticks} == {unit}
    assert ticks[-1] == last
    assert 4 <= len(ticks) <= 11


def test_a_name_is_inside_its_span_only_where_it_fits():
    spans = [Span(0, 1, "a_name_of_thirty_letters_or_so", "k"), Span(1, 30, "wide", "k")]
    assert texts(timeline("t", "", [Track("a", spans)]), "labels") == ["wide"]


def test_times_that_begin_late_are_drawn_from_there():
    spans = [Span(1.79e9 + k, 0.5, f"x{k}", "k") for k in range(5)]
    drawing = timeline("t", "", [Track("a", spans)])
    assert hovers(drawing)[3] == "x3: 500.0 ms, from 1,790,000,003.0 s"
    assert len({x for _, x, *_ in rects(drawing)}) == 5
    assert drawing.description.startswith("1 track over 4.5 s, from 1,790,000,000.0 s. a: 5 spans")


MANY = {
    "one kind": lambda k: Span(k * 1e-8, 0.5e-8, f"s{k}", "compute"),
    "three kinds": lambda k: Span(k * 1e-8, (0.2 + k % 7 / 10) * 1e-8, f"s{k}", "abc"[k % 3]),
    "runs of kinds": lambda k: Span(k * 1e-8, 1e-8, f"s{k}", "abc"[k // 500 % 3]),
    "overlapping": lambda k: Span(k * 1e-8, (1 + k % 50) * 1e-8, f"s{k}", "ab"[k % 2]),
    "all at once": lambda k: Span(0, 1e-8, f"s{k}", "ab"[k % 2]),
    "no time": lambda k: Span(k % 10 * 1e-8, 0, f"s{k}", "a"),
    "a long one among short ones": lambda k: Span(
        k * 1e-8, 1e-5 if k % 999 == 0 else 1e-8, "s", "a"
    ),
    "backwards": lambda k: Span((5000 - k) * 1e-8, 1e-8, f"s{k}", "ab"[k % 2]),
}


@pytest.mark.parametrize("count", [700, 5000])
@pytest.mark.parametrize("name", MANY)
def test_many_spans_are_few_rectangles_that_tell_of_all(name, count):
    spans = [MANY[name](k) for k in range(count)]
    drawing = timeline("t", "", [Track("a", spans)])
    assert len(rects(drawing)) <= MAX_RECTS
    assert len(drawing.svg) < 100_000
    number, kinds, seconds = told(drawing)
    assert number == count
    assert seconds == pytest.approx(sum(s.seconds for s in spans), rel=0.05)
    if not any(len(hover.split(" spans (")) < 2 for hover in hovers(drawing)):
        assert kinds == Counter(s.kind for s in spans)
    assert "share a rectangle" in drawing.svg


def test_neighbours_narrower_than_a_pixel_are_one_rectangle():
    long = Span(1e-3, 1e-3, "long", "compute")
    narrow = [Span(k * 1e-7, 1e-7, f"s{k}", "compute") for k in range(3)]
    other = Span(3e-7, 1e-7, "other", "memory")
    drawing = timeline("t", "", [Track("a", [*narrow, other, long])])
    assert hovers(drawing) == [
        "3 spans (3 compute): 300.0 ns in all, from 0.0 ms to 0.0 ms; the longest is s0: 100.0 ns",
        "other: 100.0 ns, from 0.0 ms",
        "long: 1.0 ms, from 1.0 ms",
    ]


def test_spans_drawn_together_are_as_high_as_their_share_of_the_time():
    spans = [Span(k * 1e-8, (0.3e-8, 0.1e-8)[k % 2], "s", "ab"[k % 2]) for k in range(5000)]
    whole = rects(timeline("t", "", [Track("a", [Span(0, 1, "x", "a")])]))[0][4]
    drawing = timeline("t", "", [Track("a", spans)])
    high = Counter()
    for fill, x, _, _, height, _ in rects(drawing):
        high[x, fill] += height
    fills = legend(drawing)
    for x, fill in list(high)[:-4]:
        assert high[x, fills["a"]] == pytest.approx(0.15 * whole, abs=0.3), (x, fill)
        assert high[x, fills["b"]] == pytest.approx(0.05 * whole, abs=0.3)


def test_overlapping_spans_have_rows_of_their_own():
    spans = [Span(k, 1.5, f"s{k}", "k") for k in range(6)]
    found = rects(timeline("t", "", [Track("a", spans), Track("b", spans[:1])]))
    assert len(found) == 7
    for k, (_, x0, y0, w0, h0, _) in enumerate(found):
        for _, x1, y1, w1, h1, _ in found[:k]:
            assert x0 >= x1 + w1 or x1 >= x0 + w0 or y0 >= y1 + h1 or y1 >= y0 + h0
    # More at once than a track has rows: nothing is lost.
    crowd = timeline("t", "", [Track("a", [Span(k, 100, f"s{k}", "k") for k in range(40)])])
    assert told(crowd)[0] == 40


def test_tracks_beyond_the_most_are_named_in_a_note():
    tracks = [Track(f"chip {k}", [Span(k, 1, "x", "k")] * 2) for k in range(MAX_TRACKS + 6)]
    drawing = timeline("t", "", tracks)
    note = f"The first {MAX_TRACKS} of {MAX_TRACKS + 6} tracks are drawn; the others have 12 spans."
    assert note in drawing.svg
    assert drawing.description.endswith(note)
    assert f">chip {MAX_TRACKS - 1}<" in drawing.svg
    assert f"chip {MAX_TRACKS}" not in drawing.svg
    assert "tracks are drawn" not in timeline("t", "", tracks[:MAX_TRACKS]).svg


def test_the_largest_drawing_is_bounded():
    spans = [Span(k, 1, "&" * 500, "<kind>" * (1 + k % 12)) for k in range(2000)]
    drawing = timeline("t", "", [Track("'" * 500, spans)] * (80 if tiers.ALL else 20))
    assert len(rects(drawing)) <= 8000
    assert len(drawing.svg) < 12_000_000


def test_more_kinds_than_colours_share_one():
    spans = [Span(k, 1, "x", f"kind {k}") for k in range(12)]
    found = legend(timeline("t", "", [Track("a", spans)]))
    assert [*found] == [*(f"kind {k}" for k in range(7)), "5 other kinds"]
    assert len(set(found.values())) == 8
    eight = legend(timeline("t", "", [Track("a", spans[:8])]))
    assert [*eight] == [f"kind {k}" for k in range(8)]


# -- bytes held ------------------------------------------------------------------------------------

STEPS = [Held(f"op{k}", (k % 7 + 1) * 2**20) for k in range(60)]


def columns(drawing):
    """(x, width, hover) of what hovers over each column."""
    root = ET.fromstring(drawing.svg)
    (group,) = (g for g in root.iter(f"{SVG}g") if g.get("fill") == "transparent")
    return [(float(r.get("x")), float(r.get("width")), r.find(f"{SVG}title").text) for r in group]


def outlines(drawing):
    """{fill: the heights of an area's columns, from the top}."""
    found = re.findall(r'<path class="(c\d)" d="M[\d.]+ ([\d.]+)(.*?)V[\d.]+z"', drawing.svg)
    return {
        fill: np.array([float(low) - float(y) for y in re.findall(r"V([\d.]+)H", path)])
        for fill, low, path in found
    }


def test_columns_are_as_high_as_their_bytes():
    (heights,) = outlines(held_over_time("t", "", STEPS)).values()
    nbytes = np.array([step.nbytes for step in STEPS])
    np.testing.assert_allclose(heights, heights.max() * nbytes / nbytes.max(), atol=0.1)
    assert heights.max() > 150


def test_each_column_tells_its_step():
    found = columns(held_over_time("t", "", STEPS))
    assert [hover for *_, hover in found[:2]] == ["step 0, op0: 1.0 MiB", "step 1, op1: 2.0 MiB"]
    assert len(found) == 60


def test_the_peak_is_marked_and_told():
    drawing = held_over_time("t", "", STEPS)
    assert "peak 7.0 MiB: op6" in texts(drawing)
    assert drawing.description == "60 steps. The peak is 7.0 MiB, in step 6, op6."
    dot = re.search(r'<circle class="bar" cx="([\d.]+)"', drawing.svg)
    x, width, hover = columns(drawing)[6]
    assert hover.startswith("step 6, ")
    assert float(dot[1]) == pytest.approx(x + width / 2, abs=0.1)


def test_the_capacity_is_a_line_and_what_is_above_it_has_a_colour():
    drawing = held_over_time("t", "", STEPS, limit=5 * 2**20)
    assert "capacity 5.0 MiB" in texts(drawing)
    assert 'class="inner"' in drawing.svg
    assert [*legend(drawing)] == ["held", "above the capacity"]
    below, above = outlines(drawing).values()
    assert np.count_nonzero(above) == sum(step.nbytes > 5 * 2**20 for step in STEPS) == 16
    np.testing.assert_allclose(
        below + above, outlines(held_over_time("t", "", STEPS))["c5"], atol=0.2
    )
    assert drawing.description.endswith("The capacity is 5.0 MiB; 16 steps hold more.")
    fits = held_over_time("t", "", STEPS, limit=7 * 2**20)
    assert fits.description.endswith("The capacity is 7.0 MiB; no steps hold more.")
    assert legend(fits) == {}
    assert "capacity" not in held_over_time("t", "", STEPS).svg


def test_a_capacity_far_above_leaves_the_shape_readable():
    near, far = (held_over_time("t", "", STEPS, limit=k * 7 * 2**20) for k in (2, 1000))
    assert "capacity 6.8 GiB, far above" in texts(far)
    assert "stroke-dasharray" in far.svg
    assert "stroke-dasharray" not in near.svg
    assert outlines(far)["c5"].max() > 150
    assert outlines(near)["c5"].max() == pytest.approx(100, abs=0.2)


def test_many_steps_are_columns_of_the_most():
    steps = [Held(f"op{k}", (k * 7919) % 10007) for k in range(10_000)]
    drawing = held_over_time("t", "", steps)
    found = columns(drawing)
    assert len(found) <= 700
    assert len(drawing.svg) < 150_000
    seen = 0
    for *_, hover in found:
        step, name, first, last = re.match(
            r"step ([\d,]+), (\w+): .*, the most of steps ([\d,]+) to ([\d,]+)$", hover
        ).groups()
        step, first, last = (int(n.replace(",", "")) for n in (step, first, last))
        assert first == seen
        assert steps[step].nbytes == max(s.nbytes for s in steps[first : last + 1])
        assert name == f"op{step}"
        seen = last + 1
    assert seen == 10_000
    assert "several steps" in drawing.svg


@pytest.mark.parametrize("count", [1, 2, 3, 14, 59, 699, 700, 701, 1399, 5003])
def test_every_count_of_steps_is_drawn(count):
    steps = [Held(f"an op of a long name {k}", k) for k in range(count)]
    drawing = held_over_time("t", "", steps)
    widths = [width for _, width, _ in columns(drawing)]
    assert sum(widths) == pytest.approx(max(320, min(700, 48 * count)), rel=0.06)
    dot = float(re.search(r'<circle class="bar" cx="([\d.]+)"', drawing.svg)[1])
    x, width, _ = columns(drawing)[-1]
    assert x - 0.1 <= dot <= x + width + 0.1
    assert ("0" in texts(drawing, "ticks middle")) == (count > 2)


def test_names_of_few_steps_stand_below_them():
    steps = [Held("load", 4096), Held("dot", 12288), Held("add", 8192)]
    drawing = held_over_time("t", "", steps)
    assert texts(drawing, "ticks middle") == ["load", "dot", "add"]
    assert texts(drawing, "ticks right")[-1] == "12 KiB"


# -- both ------------------------------------------------------------------------------------------

BAD = [-1, -1e-30, math.nan, math.inf, -math.inf, 10**400, "3", None, 1j, np.float32(np.nan)]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: repr(bad)[:12])
def test_numbers_that_are_no_amounts_are_refused(bad):
    shown = "above 2**1024" if isinstance(bad, int) and bad > 0 else str(bad)
    for draw in (
        lambda: timeline("t", "", [Track("core", [Span(bad, 1, "dot", "k")])]),
        lambda: timeline("t", "", [Track("core", [Span(1, bad, "dot", "k")])]),
        lambda: timeline("t", "", [Track("a", [])] * 99 + [Track("b", [Span(1, bad, "dot", "k")])]),
        lambda: held_over_time("t", "", [Held("dot", bad)]),
    ):
        with pytest.raises(LayoutError, match="dot") as raised:
            draw()
        assert f" {shown} is not a finite number >= 0" in str(raised.value)
    if bad is not None:
        with pytest.raises(LayoutError, match="the capacity"):
            held_over_time("t", "", STEPS, limit=bad)


def test_times_without_a_finite_end_or_sum_are_refused():
    with pytest.raises(LayoutError, match=r"the end of 'x' on track 'a', 1e\+308 \+ 1e\+308"):
        timeline("t", "", [Track("a", [Span(1e308, 1e308, "x", "k")])])
    with pytest.raises(LayoutError, match="the times on track 'a' have no finite sum"):
        timeline("t", "", [Track("a", [Span(0, 1e308, "x", "k")] * 2)])


def test_numbers_of_other_types_are_taken():
    spans = [Span(np.float32(1), np.int64(2), "x", "k")]
    assert hovers(timeline("t", "", [Track("a", spans)])) == ["x: 2.0 s, from 1.0 s"]
    assert "2.0 KiB" in held_over_time("t", "", [Held("x", np.int64(2048))]).description


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-12, 1e-6, 1, 1e6, 1e15, 1e300])
def test_any_magnitude_is_drawn(scale):
    spans = [Span(k * scale, scale, f"s{k}", "k") for k in range(6)]
    steps = [Held(f"s{k}", k * scale) for k in range(6)]
    for drawing in (
        timeline("t", "", [Track("a", spans)]),
        held_over_time("t", "", steps, limit=3 * scale),
    ):
        ET.fromstring(drawing.svg)
        assert not re.search(r"\b(nan|inf)\b", drawing.svg)
        assert len(drawing.svg) < 12_000


def test_nothing_gives_a_small_drawing():
    for drawing, words in (
        (timeline("t", "", []), "There are no tracks."),
        (held_over_time("t", "", [], limit=5), "There are no steps."),
    ):
        assert drawing.description == words
        assert f">{words}<" in drawing.svg
    assert "a: no spans" in timeline("t", "", [Track("a", [])]).description
    assert hovers(timeline("t", "", [Track("a", [Span(0, 0, "x", "k")])])) == [
        "x: 0 s, from 0.0 ns"
    ]
    assert "peak 0 B: x" in texts(held_over_time("t", "", [Held("x", 0)], limit=0))


def test_words_become_no_markup():
    evil = '<script>alert("1")</script>&\x00'
    spans = [Span(0, 1, evil, evil), *(Span(1 + k / 1e5, 1e-5, evil, evil) for k in range(9))]
    for drawing in (
        timeline(evil, evil, [Track(evil, spans)], [evil]),
        held_over_time(evil, evil, [Held(evil, 1)], 1, [evil]),
    ):
        assert "<script" not in drawing.svg
        root = ET.fromstring(drawing.svg)
        assert any("<script>" in (e.text or "") for e in root.iter(f"{SVG}title"))


WIDE = "層正規化の計算"  # letters of 11 pixels in any font of 11 pixels


def test_wide_letters_have_room():
    assert mono_width(WIDE, 11) == pytest.approx(11 * len(WIDE))
    assert text_width(WIDE, 12) == pytest.approx(12 * len(WIDE))
    assert mono_width("🚀⚡", 10) >= 25
    drawing = timeline("t", "", [Track(WIDE, [Span(0, 1, "a", "k")])])
    assert rects(drawing)[0][1] >= 11 * len(WIDE)
    for lines in (lines_of(WIDE * 9, 100, 10), mono_lines(WIDE * 9, 100, 10)):
        assert max(map(len, lines)) == 10


def test_long_words_are_cut_quickly():
    for lines in (lines_of("x" * 100_000, 480, 12), mono_lines("x" * 100_000, 480, 12)):
        assert "".join(lines) == "x" * 100_000


def test_notes_and_titles_are_drawn():
    for drawing in (
        timeline("A title", "below it", [Track("a", [])], ["One note."]),
        held_over_time("A title", "below it", STEPS, notes=["One note."]),
    ):
        assert drawing.title == "A title"
        for words in ("A title", "below it", "One note."):
            assert f">{words}<" in drawing.svg


def test_units():
    assert [time_text(n) for n in (0, 1e-9, 12.34e-6, 999.94e-6, 999.96e-6, 7200)] == (
        ["0 s", "1.0 ns", "12.3 us", "999.9 us", "1.0 ms", "7,200.0 s"]
    )
    assert [bytes_text(n) for n in (0, 0.25, 1023, 1023.9, 2**20 - 1, 2.5 * 2**30, 2**60)] == (
        ["0 B", "0.25 B", "1023 B", "1,023.9 B", "1.0 MiB", "2.5 GiB", "1,024.0 PiB"]
    )
    assert fitting(0.99996e-3, TIMES)[0] == "ms"
    assert round_steps(4.5, 5.6, 1) == ([4.5], 0)
    assert binary_steps(0, 6) == [0]


@needs_chromium
def test_no_drawing_overprints_clips_or_misleads(tmp_path):
    drawings = [(name, draw()) for name, draw in TIMELINES.items()]
    assert len(drawings) > 10
    assert faults(drawings, tmp_path) == []
    wrong = dict(drawings)["timeline of a step"]
    moved = wrong.svg.replace('<text x="0"', '<text x="60"', 1)
    assert moved != wrong.svg
    broken = [("broken", type(wrong)(moved, "", ""))]
    assert {fault[1] for fault in faults(broken, tmp_path)} == {"stands on a picture"}
