"""What the README and the pages of the site show is what their programs print.

A page's `python` blocks are one program. The `text` block after one of them is what that block
prints; without such a block it prints nothing. `console` blocks hold commands and their output.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from statistics import geometric_mean
from xml.etree import ElementTree

import pytest
import tiers
from processes import run_alone
from readme import README, ROOT, blocks, commands, session_fails

from gridlayout import palette
from gridlayout.__main__ import main

UNEVEN = "uneven sizes, GSPMD's padded by hand"
BETWEEN = "\x00between two blocks\n"


def pages(kind):
    found = [README, *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        pytest.param(p, id=str(p.relative_to(ROOT).with_suffix("")))
        for p in found
        if blocks(p, kind)
    ]


def printed(*arguments):
    run = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


# Those that take longest.
SLOW = ("docs/how-to/plan", "docs/how-to/models")


@pytest.mark.few(9)
@pytest.mark.parametrize(
    "page", [page for page in pages("python") if tiers.ALL or page.id not in SLOW]
)
def test_programs_print_what_is_shown(page):
    found = blocks(page, "python", "text")
    assert found[0][0] == "python"
    programs = [text for kind, text in found if kind == "python"]
    shown = []
    for kind, text in found:
        if kind == "python":
            shown.append("")
        else:
            assert not shown[-1], "two text blocks after one program"
            shown[-1] = text
    done = run_alone(f"print({BETWEEN!r}, end='')\n".join(programs))
    assert done.code == 0, done.err[-2000:]
    found = done.out.split(BETWEEN)
    for program, expected, actual in zip(programs, shown, found, strict=True):
        assert actual == expected, program


@pytest.mark.few(2)
@pytest.mark.parametrize("page", pages("console"))
def test_commands_print_what_is_shown(page):
    for arguments, shown in commands(page):
        assert printed(*arguments) == shown


@pytest.mark.parametrize("page", [*pages("sh"), pytest.param(README, id="README")])
def test_commands_with_no_output_shown_run(page, tmp_path, monkeypatch, capfd):
    lines = [line for _, text in blocks(page, "", "sh") for line in text.splitlines()]
    found = [line for line in lines if line.startswith("gridlayout ")]
    assert found
    monkeypatch.chdir(tmp_path)
    for line in found:
        assert main(shlex.split(line)[1:]) == 0
    assert len([*tmp_path.iterdir()]) == sum(" -o " in line for line in found)


def test_the_readme_has_one_program_of_about_twenty_lines():
    (_, program), _ = blocks(README, "python", "text")
    assert 15 <= len([line for line in program.splitlines() if line.strip()]) <= 22


def test_the_readme_has_a_picture_and_an_example_for_each_reader():
    text = README.read_text()
    order = [
        *("<picture>", "## Install", "## Train on", "```python", "## Describe", "```pycon"),
        *("## See what", "```console", "## What it is measured to do", "## Where next"),
    ]
    assert sorted(order, key=text.index) == order
    assert len(text.split()) <= 900
    ((_, session),) = blocks(README, "pycon")
    assert session.count(">>> ") == 5
    assert session_fails(README) == 0


def test_what_the_index_shows_fits_its_page():
    # Code has 100 columns there.
    shown = [text for _, text in blocks(README, "pycon", "text", "")]
    assert max(len(line) for text in shown for line in text.splitlines()) <= 100


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["grid", "speed"])
def test_pictures_are_of_one_theme(name, theme):
    path = ROOT / "docs" / "static" / f"{name}-{theme}.svg"
    root = ElementTree.fromstring(path.read_text())
    (style,) = (e.text for e in root.iter("{http://www.w3.org/2000/svg}style"))
    assert "prefers-color-scheme" not in style
    assert f"static/{path.name}" in README.read_text()
    papers = re.findall(r"#gl\w+ \.paper\{fill:(#\w+)\}", style)
    assert papers == [palette.colours(theme == "dark")["paper"]]


def test_the_ratios_are_those_that_were_measured():
    found = json.loads((ROOT / "benchmarks" / "measured.json").read_text())
    page = (ROOT / "docs" / "speed.md").read_text()
    rows = re.findall(r"^\| (.*) \| ([0-9.]+)x \| (.*): (.*) \|$", page, re.MULTILINE)
    names = ("what", "ratio", "against", "of")
    assert rows == [
        tuple(f"{r[n]:.2f}" if n == "ratio" else r[n] for n in names) for r in found["ratios"]
    ]
    said = " ".join(README.read_text().split("## What it is measured to do")[1].split())
    for words in (found["when"], found["steps_when"]):
        assert words in said
        assert words.split(" and ")[-1] in page
    steps = {row["what"]: row for row in found["steps"]}
    first, *_, other, calls = steps.values()
    numbers = [f"{row['ratio']:.2f} times" for row in (first, other, steps[UNEVEN], calls)]
    assert all(number in page for number in numbers)
    assert all(number.split()[0] in said for number in numbers)
    assert f"({first['least']:.2f} to {first['most']:.2f} times)" in said
    for theme in ("light", "dark"):
        svg = (ROOT / "docs" / "static" / f"speed-{theme}.svg").read_text()
        texts = ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter()]
        for row in found["steps"] + found["ratios"]:
            assert row["what"] in texts
            assert f"{row['ratio']:.2f}x" in texts
        # Whole steps come first.
        assert texts.index(found["steps"][-1]["what"]) < texts.index(found["ratios"][0]["what"])


def test_the_means_of_steps_are_those_of_the_page():
    """The numbers of the picture's whole steps are in the tables of docs/speed.md."""
    found = json.loads((ROOT / "benchmarks" / "measured.json").read_text())["steps"]
    page = (ROOT / "docs" / "speed.md").read_text()
    pattern = r"^\| .* \| [\d.]+ ms \| ([\d.]+) times \| \d+, \d+ \| ([\d.]+) times \|$"
    rows = [tuple(map(float, row)) for row in re.findall(pattern, page, re.MULTILINE)]
    first, *others, kinds, calls = found
    assert first["what"].startswith(f"{len(rows)} steps ")
    for row, values in zip((first, calls), zip(*rows, strict=True), strict=True):
        assert row["ratio"] == pytest.approx(geometric_mean(values), abs=0.005)
        assert (row["least"], row["most"]) == (min(values), max(values))
    for row in others:
        words = f"{row['ratio']:.2f} times | {row['least']:.2f} to {row['most']:.2f} |"
        (line,) = [line for line in page.splitlines() if words in line]
        assert line.startswith(f"| {row['what'].split(',')[0]}")
    assert f"The geometric mean is {kinds['ratio']:.2f} times" in page


def test_the_site_has_programs_on_its_pages():
    ids = {parameter.id for parameter in pages("python")}
    assert "docs/tutorial" in ids
    for folder in ("how-to", "coming-from"):
        for page in (ROOT / "docs" / folder).glob("*.md"):
            assert f"docs/{folder}/{page.stem}" in ids


def test_what_the_documents_say_is_what_their_calls_give():
    page = ROOT / "docs" / "documents.md"
    (_, program), *more = blocks(page, "python")
    assert not more
    cells = [
        line.strip("|").split(" | ") for line in page.read_text().splitlines() if "` |" in line
    ]
    calls, shown = zip(*((row[2].strip(" `"), row[3].strip(" `")) for row in cells), strict=True)
    assert len(calls) > 50
    prints = "".join(f"print(({call}), end={BETWEEN!r})\n" for call in calls)
    *found, end = printed("-c", program + prints).split(BETWEEN)
    assert not end
    for call, expected, actual in zip(calls, shown, found, strict=True):
        assert actual == expected, call


def test_every_document_has_its_sections():
    text = (ROOT / "docs" / "documents.md").read_text()
    assert re.findall(r"^## (.*) \((.*)\)$", text, flags=re.MULTILINE) == [
        ("Tensor Layout", "tt-mlir"),
        ("Tiled layout", "XLA"),
        ("Tensor in local memory", "Sophon"),
        ("Tensor memory layout", "MegEngine"),
        ("Data Layouts", "embARC MLI"),
    ]
