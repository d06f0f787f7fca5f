"""What pages show, read from their Markdown; as a script, the README on the library at hand.

    python -I tests/readme.py

It needs nothing beside Python and gridlayout, so it runs where only the wheel is installed.
"""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, *kinds):
    """The fenced blocks of these kinds, as (kind, text)."""
    return [(kind, text) for kind, text in FENCE.findall(page.read_text("utf-8")) if kind in kinds]


def commands(page):
    """What the `console` blocks show, as (arguments of Python, output)."""
    for _, text in blocks(page, "console"):
        for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, shown = command.partition("\n")
            python, *arguments = shlex.split(line)
            assert python == "python"
            yield arguments, shown


def session_fails(page):
    """How many lines of the page's one `pycon` block show something else than is written."""
    ((_, session),) = blocks(page, "pycon")
    found = doctest.DocTestParser().get_doctest(session, {}, page.name, None, None)
    return doctest.DocTestRunner(verbose=False).run(found).failed


def main():
    import gridlayout

    assert not Path(gridlayout.__file__).is_relative_to(ROOT / "gridlayout"), "not the wheel"
    (_, program), (_, shown) = blocks(README, "python", "text")
    for arguments, expected in [(["-c", program], shown), *commands(README)]:
        done = subprocess.run(
            [sys.executable, "-I", "-W", "error", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        assert done.stdout == expected, f"shown:\n{expected}\nfound:\n{done.stdout}"
    assert session_fails(README) == 0
    print(f"gridlayout {gridlayout.__version__} prints what the README shows")


if __name__ == "__main__":
    main()
