"""How many functions of tt-mlir's tests `gl.tenstorrent.load` takes, and why it refuses others.

`python -m benchmarks.loads CHECKOUT` reads the tests of a checkout of tt-mlir, or any folder of
MLIR. Tests of errors, and functions with no op of TTIR or TTNN, are not counted. A refusal is
counted under its first reason; most name an op.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import gridlayout as gl

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
_FUNCTION = re.compile(r'func\.func\s+(?:public |private )?@("[^"]+"|[\w.$-]+)\s*\(')
_OPS = re.compile(r"\b(?:ttir|ttnn)\.\w")
_MOST = 1 << 20  # characters of a file


def modules(folder: Path) -> Iterator[tuple[Path, str]]:
    """The modules of all files: tests hold several, and are no programs where they test errors."""
    for path in sorted(folder.rglob("*.mlir")):
        text = path.read_text("utf-8", "replace")
        if len(text) > _MOST or "expected-error" in text or "// CHECK: error" in text:
            continue
        for part in _SPLIT.split(text):
            if _OPS.search(re.sub(r"//.*", "", part)):
                yield path, part


def outcome(text: str, function: str) -> str:
    """Empty if the function loads; else why not, without lines, numbers and names of values."""
    try:
        gl.tenstorrent.load(text, function=function, strict=False)
    except gl.LayoutError as error:
        why = re.sub(r"^(?:line|column) \d+: ", "", str(error))
        return re.sub(r"\d+", "N", re.sub(r"[%@!#][\w.:]+", "_", why.splitlines()[0]))[:150]
    return ""


def main() -> None:
    folder = Path(sys.argv[1])
    folder = folder / "test" if (folder / "test").is_dir() else folder
    why: Counter[str] = Counter()
    where: dict[str, Path] = {}
    loaded = 0
    warnings.simplefilter("ignore")
    for path, text in modules(folder):
        for name in dict.fromkeys(_FUNCTION.findall(text)):
            reason = outcome(text, name.strip('"'))
            loaded += not reason
            if reason:
                why[reason] += 1
                where.setdefault(reason, path)
    total = loaded + why.total()
    print(f"{loaded:,} of {total:,} functions load")
    for reason, count in why.most_common(80):
        print(f"{count:6,}  {reason}\n        first in {where[reason].relative_to(folder)}")


if __name__ == "__main__":
    main()
