"""Pictures as a browser shows them: nothing overprints, clips or leaves the frame, in no theme.

`pictures.py` has the pictures, and the script that measures them in headless Chromium.
"""

import re
from dataclasses import replace

import pytest
import tiers
from browser import needs_chromium
from pictures import LAYOUTS, faults, pictures
from programs import report_of

pytestmark = pytest.mark.filterwarnings("ignore:the default collapse:gridlayout.LayoutWarning")


def broken():
    """(fault, drawing) of a picture that has it."""
    whole = LAYOUTS["16x16 on 4x4"].draw("physical")
    tiles = LAYOUTS["4096x4096"].draw("physical")
    flows = LAYOUTS["rank 4, small"].draw("memory")
    program = report_of("mlp").draw()

    def changed(drawing, pattern, by, count=1):
        svg, n = re.subn(pattern, by, drawing.svg, count=count)
        assert n == count, pattern
        # Its style rules are its own, so it has another id.
        (name,) = re.findall(r'id="(gl\w+)" role', svg)
        return replace(drawing, svg=svg.replace(name, f"{name}-{len(pattern)}-{len(by)}"))

    yield "leaves the frame", changed(whole, r'(<text class="head") x="18"', r'\1 x="-9"')
    yield "leaves the frame", changed(whole, r'(<rect class="swatch c0") x="18"', r'\1 x="-9"')
    yield "overprints", changed(whole, r'(<text class="note" x="18") y="\d+"', r'\1 y="32"')
    yield "stands on a swatch", changed(whole, r'(<text x="38" y="[\d.]+")', r'\1 dx="-16"')
    yield "two panels overlap", changed(whole, r"translate\((?!18 )[\d.]+ ", "translate(30 ")
    yield "stands on a picture", changed(flows, r'(<text class="sub" x="0") y="11"', r'\1 y="70"')
    yield "a label clips", changed(whole, r'(<g class="labels"><text )x', r'\1dx="19" x')
    yield "a line crosses", changed(tiles, r'<g class="plates">.*?</g>', "")
    end = r'(<g class="ticks right">.*?)<text [^>]*>\d+</text></g>'
    yield "an axis has no number at an end", changed(whole, end, r"\1</g>")
    card = r'(<g transform="translate)\([\d.]+ [\d.]+\)("><title>dot_general)'
    yield "two cards overlap", changed(program, card, r"\1(60 60)\2")
    yield (
        "a text leaves its card",
        changed(program, r'(<g class="labels"><text )x', r'\1dx="-120" x'),
    )
    yield "a line crosses a card", changed(program, r'(<path d=")', r"\1M0 0L600 900")
    yield "the legend says a thing twice", changed(whole, r"swatch c1", "swatch c0")
    yield "the legend has what is not drawn", changed(whole, r"swatch c1", "swatch s1")
    yield "a colour has no meaning", changed(whole, r"swatch c1", "swatch s1")
    for light in ("true", "false"):
        rule = rf'(\[data-jp-theme-light="{light}"\][^}}]*--c1:)#\w+'
        yield "two fills are alike", changed(whole, rule, r"\1var(--c0)")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What one browser says of all pictures, and the broken ones that it must tell."""
    wrong = list(broken())
    drawn = [(name, draw()) for name, draw in tiers.few(pictures(), 140)]
    drawn = [(name, drawing) for name, drawing in drawn if drawing is not None]
    every = [*drawn, *((f"broken {k}", drawing) for k, (_, drawing) in enumerate(wrong))]
    return every, wrong, faults(every, tmp_path_factory.mktemp("pictures"))


@needs_chromium
def test_no_picture_overprints_clips_or_misleads(found):
    every, _, faults = found
    assert len(every) > (350 if tiers.ALL else 120)
    assert [fault for fault in faults if not fault[0].startswith("broken ")] == []


@needs_chromium
def test_a_broken_picture_is_told(found):
    _, wrong, faults = found
    for k, (kind, _) in enumerate(wrong):
        assert kind in {fault[1] for fault in faults if fault[0] == f"broken {k}"}, (k, kind)
