"""Whether a tag can be released: `python .github/release.py v0.1.0` prints its notes, or fails.

The tag is `v` and the version in gridlayout/__init__.py, and the changelog has a dated section
of it.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^## \[(.*?)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
VERSION = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)


def sections() -> dict[str, tuple[str | None, str]]:
    """The changelog: of each version, the date of its release, if it has one, and what changed."""
    name_date_text = SECTION.split((ROOT / "CHANGELOG.md").read_text("utf-8"))[1:]
    triples = zip(*(iter(name_date_text),) * 3, strict=True)
    return {name: (date, text.strip()) for name, date, text in triples}


def version_here() -> str:
    """The version in gridlayout/__init__.py, read without an import: nothing is installed yet."""
    (found,) = VERSION.findall((ROOT / "gridlayout" / "__init__.py").read_text("utf-8"))
    return str(found)


def notes(tag: str) -> str:
    """What changed in the version that the tag names; SystemExit where it can't be released."""
    version = version_here()
    if tag != f"v{version}":
        raise SystemExit(
            f"the tag is {tag!r}, and the version in gridlayout/__init__.py is {version!r}"
        )
    date, text = sections().get(version, (None, ""))
    if date is None or not text:
        raise SystemExit(f"CHANGELOG.md needs a section '## [{version}] - YYYY-MM-DD' with text")
    return text


if __name__ == "__main__":
    print(notes(" ".join(sys.argv[1:])))
