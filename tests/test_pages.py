"""What the README and the pages of the site show is what their programs print.

A page's `python` blocks are one program. The `text` block after one of them is what that block
prints; without such a block it prints nothing. `console` blocks hold commands and their output.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BETWEEN = "\x00between two blocks\n"


def blocks(page, *kinds):
    return [(kind, text) for kind, text in FENCE.findall(page.read_text()) if kind in kinds]


def pages(kind):
    found = [README, *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        pytest.param(p, id=str(p.relative_to(ROOT).with_suffix("")))
        for p in found
        if blocks(p, kind)
    ]


def printed(*arguments):
    # A process of its own: programs start JAX themselves.
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


@pytest.mark.parametrize("page", pages("python"))
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
    found = printed("-c", f"print({BETWEEN!r}, end='')\n".join(programs)).split(BETWEEN)
    for program, expected, actual in zip(programs, shown, found, strict=True):
        assert actual == expected, program


@pytest.mark.parametrize("page", pages("console"))
def test_commands_print_what_is_shown(page):
    for _, text in blocks(page, "console"):
        for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, shown = command.partition("\n")
            python, *arguments = shlex.split(line)
            assert python == "python"
            assert printed(*arguments) == shown


def test_the_readme_has_one_program_of_about_twenty_lines():
    (_, program), _ = blocks(README, "python", "text")
    assert 15 <= len([line for line in program.splitlines() if line.strip()]) <= 22


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
