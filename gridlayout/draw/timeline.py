"""Draws a timeline: one row per track, with one rectangle per span, coloured by kind.

The size of the drawing is bounded for any number of spans: narrow spans are drawn together, and the
hover text states their number and total time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, isfinite, log10
from typing import NamedTuple

from gridlayout.draw.letters import mono_width
from gridlayout.draw.logical import short
from gridlayout.draw.panels import Picture, figure
from gridlayout.draw.ticks import SIZE, Ticks
from gridlayout.draw.units import TIMES, amount, fitting, number_text, round_steps, time_text
from gridlayout.errors import LayoutError
from gridlayout.palette import HUES
from gridlayout.svg import Drawing, escape, tag

MAX_TRACKS, MAX_RECTS = 64, 300  # most tracks that are drawn, and most rectangles per track
_ALL_RECTS, _FEWEST = 8000, 100  # most rectangles of a drawing, but at least _FEWEST per track
_LANES = 4  # most rows of a track whose spans overlap
_LONG, _ROW, _HIGH, _TOP = 420.0, 20, 15, 20  # pixels: of the axis, a row, a span, the ticks
_LABEL = 11  # font size in pixels
_NAME, _HOVER, _KINDS = 26, 120, 4  # most letters of a track's name, and in a hover text; kinds
_TOGETHER = 3.0  # most pixels of spans drawn together, if that gives few enough rectangles
_NEAR = 0.05  # pixels by which adjacent spans may overlap
_OUTLINED = 4.0  # least width in pixels of a span with an outline
# The fills of kinds, in the order of their first spans; the most visible in both themes come first.
_ORDER = ("c1", "c3", "c6", "c2", "c5", "c4", "c7", "c0")
_NARROW = (
    "Spans too narrow to draw share a rectangle: a kind that has a third of their time fills a "
    "third of its height."
)
_OVERLAP = "A track whose spans overlap in time has several rows."


class Span(NamedTuple):
    """A span of time in seconds. kind: determines its colour; the legend lists the kinds.

    short: shorter names, of which the first that fits is written in its rectangle.
    """

    start: float
    seconds: float
    name: str
    kind: str
    short: tuple[str, ...] = ()


class Track(NamedTuple):
    """A row of a timeline; its spans may be in any order."""

    name: str
    spans: Sequence[Span]


def timeline(
    title: str, subtitle: str, tracks: Sequence[Track], notes: Sequence[str] = ()
) -> Drawing:
    """Draw one row per track, with its share of busy time; time runs from left to right.

    Of more than `MAX_TRACKS` tracks the first are drawn, and a note says so. Raises `LayoutError`
    for times that are negative or not finite.

    >>> spans = [Span(0, 3e-6, "dot", "compute"), Span(3e-6, 1e-6, "add", "compute")]
    >>> print(timeline("A step", "", [Track("core", spans), Track("link", [])]).description)
    2 tracks over 4.0 us. core: 2 spans, busy 4.0 us (100%); link: no spans.
    """
    every = [Track(track.name, _checked(track)) for track in tracks]
    if not every:
        nothing = "There are no tracks."
        return figure(title, subtitle, nothing, [], notes=[*notes, nothing])
    drawn = every[:MAX_TRACKS]
    spans = [span for track in drawn for span in track.spans]
    time, fills = _time(spans), _fills(spans)
    legend = list(_legend(fills))
    budget = min(MAX_RECTS, max(_FEWEST, _ALL_RECTS // len(drawn)))
    rows = [_row(track.spans, time, fills, budget) for track in drawn]
    bars = [bar for lanes in rows for lane in lanes for bar in lane]
    all_notes = [
        *notes,
        *([_NARROW] if any(len(bar.spans) > 1 for bar in bars) else []),
        *([_OVERLAP] if any(len(lanes) > 1 for lanes in rows) else []),
        *([_left_out(every)] if len(every) > MAX_TRACKS else []),
    ]
    panel = _picture(drawn, rows, time, fills)
    return figure(title, subtitle, _in_words(every, time), [panel], legend, all_notes)


def _checked(track: Track) -> tuple[Span, ...]:
    """Return the spans of a track sorted by start. Raises `LayoutError` for invalid times."""
    spans = []
    for span in track.spans:
        what = f"of {short(span.name, 60)!r} on track {short(track.name, 60)!r}"
        start, seconds = (
            amount(span.start, f"the start {what}"),
            amount(span.seconds, f"the time {what}"),
        )
        if not isfinite(start + seconds):
            raise LayoutError(f"the end {what}, {start:g} + {seconds:g} seconds, is not finite")
        spans.append(span._replace(start=start, seconds=seconds))
    if not isfinite(sum(span.seconds for span in spans)):
        raise LayoutError(f"the times on track {short(track.name, 60)!r} have no finite sum")
    return tuple(sorted(spans, key=lambda span: (span.start, -span.seconds)))


# -- time ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Time:
    """The axis of time, in seconds."""

    low: float
    high: float

    def at(self, seconds: float) -> float:
        """Return the pixel of a time."""
        length = self.high - self.low
        return (seconds - self.low) / length * _LONG if length else 0.0

    @cached_property
    def _decimals(self) -> int:
        """The number of decimals, in the axis' unit, that resolves a thousandth of the axis."""
        least = (self.high - self.low) / fitting(self.high, TIMES)[1] / 1000
        return min(max(ceil(-log10(least)), 1), 9) if least else 1

    def text(self, seconds: float) -> str:
        """Return a time as text, in the unit of the axis."""
        name, unit = fitting(self.high, TIMES)
        number = number_text(seconds / unit, self._decimals)
        if "." in number and "e" not in number:
            whole, _, part = number.partition(".")
            number = f"{whole}.{part.rstrip('0') or '0'}"
        return f"{number} {name}"

    def ticks(self) -> Ticks:
        """Return ticks at round numbers, as many as have room."""
        name, unit = fitting(self.high, TIMES)
        for most in (10, 8, 6, 4, 2, 1):
            numbers, decimals = round_steps(self.low / unit, self.high / unit, most)
            texts = [f"{number_text(n, decimals)} {name}" for n in numbers]
            ticks = Ticks([(self.at(n * unit), t) for n, t in zip(numbers, texts, strict=True)])
            if (ticks.width + 12) * most < _LONG:
                break
        return ticks


def _time(spans: Sequence[Span]) -> _Time:
    """Return the axis from 0 to the last end; from the first start if that is past the middle."""
    low = min((span.start for span in spans), default=0.0)
    high = max((span.start + span.seconds for span in spans), default=0.0)
    return _Time(low if low > high / 2 else 0.0, high)


def _busy(spans: Iterable[Span]) -> float:
    """Return the seconds in which at least one span runs. spans: sorted by start."""
    busy = end = 0.0
    for span in spans:
        busy += max(span.start + span.seconds - max(span.start, end), 0.0)
        end = max(end, span.start + span.seconds)
    return busy


# -- spans and rectangles --------------------------------------------------------------------------


@dataclass
class _Bar:
    """One span from pixel x to `right`, or several sorted by start, drawn together.

    joined: the width in pixels up to which more spans may join it; 0 if none may.
    """

    x: float
    right: float
    spans: list[Span]
    joined: float = 0.0


def _row(
    spans: Sequence[Span], time: _Time, fills: Mapping[str, str], budget: int
) -> list[list[_Bar]]:
    """Return the bars of a track by lane, with at most `budget` rectangles.

    There is one lane if no spans overlap.
    """
    lanes: list[list[_Bar]] = []
    for span in spans:
        bar = _Bar(time.at(span.start), time.at(span.start + span.seconds), [span])
        free = (lane for lane in lanes if lane[-1].right <= bar.x + _NEAR)
        if (lane := next(free, None)) is not None:
            lane.append(bar)
        elif len(lanes) < _LANES:
            lanes.append([bar])
        else:
            min(lanes, key=lambda lane: lane[-1].right).append(bar)
    return [_few(lane, fills, budget // len(lanes)) for lane in lanes]


def _few(bars: Sequence[_Bar], fills: Mapping[str, str], budget: int) -> list[_Bar]:
    """Return bars with at most `budget` rectangles.

    Narrow neighbours of one kind are joined first, then those of any kinds.
    """
    least, found = 1.0, list[_Bar]()
    while least <= 4 * _LONG:
        for mixed in (False, True):
            found = _together(bars, least, mixed)
            if sum(len(_shares(bar, fills)) for bar in found) <= budget:
                return found
        least *= 2
    return found


def _together(bars: Sequence[_Bar], least: float, mixed: bool) -> list[_Bar]:
    """Join bars narrower than `least` pixels with narrow neighbours, and bars that overlap."""
    found: list[_Bar] = []
    for bar in bars:
        last = found[-1] if found else None
        narrow = bar.right - bar.x < least
        if last is not None and (
            bar.x < last.right - _NEAR
            or (
                narrow
                and last.joined
                and bar.x - last.right < least
                and bar.right - last.x <= last.joined
                and (mixed or bar.spans[0].kind == last.spans[-1].kind)
            )
        ):
            last.spans += bar.spans
            last.right = max(last.right, bar.right)
        else:
            room = max(_TOGETHER, least) if narrow else 0.0
            found.append(_Bar(bar.x, bar.right, list(bar.spans), room))
    return found


# -- colours and words -----------------------------------------------------------------------------


def _fills(spans: Sequence[Span]) -> dict[str, str]:
    """Return the fill of each kind: one each for the first kinds, one for all others."""
    kinds = list(dict.fromkeys(span.kind for span in spans))
    own = len(kinds) if len(kinds) <= HUES else HUES - 1
    return {kind: _ORDER[min(k, own)] for k, kind in enumerate(kinds)}


def _legend(fills: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for fill, count in Counter(fills.values()).items():
        kind = next(kind for kind in fills if fills[kind] == fill)
        yield fill, f"{count:,} other kinds" if count > 1 else short(kind, 40) or "no kind"


def _shares(bar: _Bar, fills: Mapping[str, str]) -> dict[str, float]:
    """Return the share of each fill in the time of a bar's spans."""
    seconds: dict[str, float] = {}
    for span in bar.spans:
        seconds[fills[span.kind]] = seconds.get(fills[span.kind], 0.0) + span.seconds
    every = sum(seconds.values())
    return {fill: n / every if every else 1 / len(seconds) for fill, n in seconds.items()}


def _hover(bar: _Bar, time: _Time) -> str:
    """Return name and time of a span; for several, the count, total time and the longest one."""
    first, seconds = bar.spans[0], sum(span.seconds for span in bar.spans)
    if len(bar.spans) == 1:
        name = short(first.name, _HOVER)
        return f"{name}: {time_text(seconds)}, from {time.text(first.start)}"
    kinds = Counter(span.kind for span in bar.spans).most_common()
    named = [f"{count:,} {short(kind, 40)}" for kind, count in kinds[:_KINDS]]
    more = [f"{sum(n for _, n in kinds[_KINDS:]):,} of other kinds"] if kinds[_KINDS:] else []
    end = max(span.start + span.seconds for span in bar.spans)
    longest = max(bar.spans, key=lambda span: span.seconds)
    return (
        f"{len(bar.spans):,} spans ({', '.join([*named, *more])}): {time_text(seconds)} in all, "
        f"from {time.text(first.start)} to {time.text(end)}; the longest is "
        f"{short(longest.name, _HOVER)}: {time_text(longest.seconds)}"
    )


def _count(spans: int) -> str:
    return f"{spans:,} span{'' if spans == 1 else 's'}" if spans else "no spans"


def _left_out(tracks: Sequence[Track]) -> str:
    spans = sum(len(track.spans) for track in tracks[MAX_TRACKS:])
    return (
        f"The first {MAX_TRACKS} of {len(tracks):,} tracks are drawn; the others have "
        f"{_count(spans)}."
    )


def _in_words(tracks: Sequence[Track], time: _Time) -> str:
    texts, length = [], time.high - time.low
    for track in tracks[:MAX_TRACKS]:
        share = f", busy {time_text(_busy(track.spans))}" if track.spans else ""
        share += f" ({_busy(track.spans) / length:.0%})" if track.spans and length else ""
        texts.append(f"{short(track.name, _HOVER)}: {_count(len(track.spans))}{share}")
    more = f" {_left_out(tracks)}" if len(tracks) > MAX_TRACKS else ""
    count = f"{len(tracks):,} track{'' if len(tracks) == 1 else 's'}"
    since = f", from {time.text(time.low)}" if time.low else ""
    return f"{count} over {time_text(length)}{since}. {'; '.join(texts)}.{more}"


# -- the picture -----------------------------------------------------------------------------------


def _picture(
    tracks: Sequence[Track], rows: Sequence[list[list[_Bar]]], time: _Time, fills: Mapping[str, str]
) -> Picture:
    names = [short(track.name, _NAME) for track in tracks]
    ticks, length = time.ticks(), time.high - time.low
    left = max(*(mono_width(name, _LABEL) + 10 for name in names), ticks.width / 2)
    grounds, bars, labels, words = [], [], [], []
    y, right = float(_TOP), max(left + _LONG, left + ticks.end)
    for track, name, lanes in zip(tracks, names, rows, strict=True):
        high = _ROW * max(len(lanes), 1)
        whole = {"x": left, "y": y, "width": _LONG, "height": high - _ROW + _HIGH}
        grounds.append(tag("rect", fill="var(--pad)", **whole))
        words.append(tag("text", escape(name), x=0, y=y + 11.5))
        if length:
            share = f"{_busy(track.spans) / length:.0%} busy"
            words.append(tag("text", escape(share), x=left + _LONG + 8, y=y + 11.5))
            right = max(right, left + _LONG + 8 + mono_width(share, _LABEL))
        for k, lane in enumerate(lanes):
            for bar in lane:
                bars.append(_rects(bar, left, y + k * _ROW, time, fills))
                labels.append(_label(bar, left, y + k * _ROW))
        y += high
    low = y - _ROW + _HIGH
    lines = "".join(f"M{left + x:.1f} {_TOP}V{low:g}" for x, _ in ticks.marks)
    grid = tag("path", d=lines, stroke="var(--hatch)", stroke_opacity=0.5, pointer_events="none")
    numbers = ticks.above(left, _TOP - 6)
    if y > 24 * _ROW:
        numbers += ticks.above(left, low + SIZE + 4)
        low += SIZE + 6
    spans = tag("g", "".join(bars), class_="bars", stroke_width=0.6)
    inside = tag("g", "".join(labels), class_="labels")
    return Picture(right, low, "".join([*grounds, grid, *words, numbers, spans, inside]))


def _place(bar: _Bar) -> tuple[float, float]:
    """Return start and width of a bar: at least one pixel, with a gap before the next bar."""
    wide = bar.right - bar.x
    width = max(wide - min(1.0, wide / 4), 1.0)
    return min(bar.x, _LONG - width), width


def _rects(bar: _Bar, left: float, y: float, time: _Time, fills: Mapping[str, str]) -> str:
    """Return the rectangle of a span; for several, one per fill with its share of the height."""
    x, width = _place(bar)
    length = max(span.start + span.seconds for span in bar.spans) - bar.spans[0].start
    busy = _busy(bar.spans) / length if length and len(bar.spans) > 1 else 1.0
    hover, high, low = tag("title", escape(_hover(bar, time))), _HIGH * max(busy, 0.2), y + _HIGH
    outlined = len(bar.spans) == 1 and width >= _OUTLINED
    stroke = {"stroke": "var(--line)"} if outlined else {}
    rects = []
    for fill, share in _shares(bar, fills).items():
        place = {"x": left + x, "y": low - high * share, "width": width, "height": high * share}
        rects.append(tag("rect", hover, class_=fill, **place, **stroke))
        low -= high * share
    return "".join(rects)


def _label(bar: _Bar, left: float, y: float) -> str:
    """Return the name of a span inside its rectangle, or a shorter one, if it fits."""
    (x, width), span = _place(bar), bar.spans[0]
    fit = (name for name in (span.name, *span.short) if mono_width(name, _LABEL) + 6 <= width)
    name = next(filter(str.strip, fit), "")
    if len(bar.spans) > 1 or not name:
        return ""
    return tag("text", escape(name), x=left + x + width / 2, y=y + _HIGH / 2)
