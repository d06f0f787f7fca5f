"""What a dump is: its kind (HLO, TTNN, StableHLO, ...), why one has no layout, and its chip."""

from __future__ import annotations

import re
from dataclasses import replace

from gridlayout.arguments import MAX_ELEMENTS
from gridlayout.layouts.memory import CHIPS, COMPUTE_TILES, Chip

_DIALECT = re.compile(
    r"\b(stablehlo|mhlo|sdy|ttir|ttnn|ttcore|d2m|ttmetal|linalg|llvm|func|tosa)\."
)
# How files of gzip, bzip2 and xz begin, as text.
_PACKED = ("\x1f\N{REPLACEMENT CHARACTER}", "BZh9", "\N{REPLACEMENT CHARACTER}7zXZ")
WATCHED = 4096  # lines at the start of a dump from which its kind is taken

# Why a text of each kind may have no layout, and what to give instead.
_WHY = {
    "hlo": "HLO whose types have no braces: print it with layouts (compiled.as_text())",
    "ttnn": "TTNN IR whose types have no #ttnn.ttnn_layout: take it after the layout passes",
    "ttir": "TTIR, which states no layouts: take the TTNN or D2M IR of a later pass",
    "d2m": "D2M IR without a #ttcore layout or memory space",
    "stablehlo": "StableHLO, which states no layouts: take the compiled program's text "
    "(lowered.compile())",
    "llvm": "LLVM IR, which has no tensors: take the IR of an earlier pass",
    "mlir": "MLIR whose types have no layout that gridlayout knows",
    "old": "IR of an old tt-mlir, whose dialects are #tt and !tt: print the program with a current "
    "tt-mlir, which writes #ttcore",
    "compressed": "compressed data: unpack it first",
    "binary": "binary data: give the printed IR (mlir-opt, compiled.as_text())",
    "empty": "an empty text",
    "text": "text that is neither MLIR nor HLO",
}


class Kind:
    """The kind of a text, from words that its lines contain."""

    def __init__(self) -> None:
        self.words: set[str] = set()

    def watch(self, text: str) -> None:
        """Record the words of a line that show the kind."""
        if not self.words and text.startswith(_PACKED):
            self.words.add("compressed")
        if "\0" in text or text.count("\N{REPLACEMENT CHARACTER}") > 8:
            self.words.add("binary")
        if "#tt." in text or "!tt." in text:
            self.words.add("old")
        if text.startswith("HloModule"):
            self.words.add("hlo")
        if "." in text:
            self.words.update(_DIALECT.findall(text))
        if text.strip():
            self.words.add("text")

    @property
    def name(self) -> str:
        """The kind: hlo, ttnn, ttir, d2m, stablehlo, llvm, mlir, compressed, binary, empty or text.

        >>> kind = Kind()
        >>> kind.watch('%0 = stablehlo.add %a, %b : tensor<4xf32>')
        >>> kind.name
        'stablehlo'
        """
        for word in ("hlo", "ttnn", "d2m", "ttir", "stablehlo", "llvm", "compressed", "binary"):
            if word in self.words:
                return word
        if "mhlo" in self.words or "sdy" in self.words:
            return "stablehlo"
        if len(self.words) > 1:
            return "mlir"
        return "text" if self.words else "empty"

    @property
    def why(self) -> str:
        """Why a text of this kind has no layouts, and what to give instead."""
        return _WHY["old" if "old" in self.words else self.name]


_ARCH = re.compile(r"\barch = <([a-z0-9_]+)>")
_GRID = re.compile(r"\bgrid = ([0-9]{1,5})x([0-9]{1,5})\b")
_WORKERS = re.compile(r"\bworkerGrid = #ttcore\.grid<([0-9]{1,5})x([0-9]{1,5})\b")
_NUMBERS = ("l1_size", "l1_unreserved_base", "num_dram_channels", "dram_channel_size")
_ENDS = ("base", "end")


def chip_in(text: str, before: Chip | None) -> Chip | None:
    """Return the chip that a line describes, or `before` if it describes none. Sizes in bytes.

    Of a system, the first chip is returned. Usable L1 is the size of L1 minus the base address
    below which the firmware is stored. Usable DRAM is the range of each bank between its reserved
    ends. The worker grid of a device replaces the chip's grid: it lacks the rows that run no work.

    >>> text = ("#s = #ttcore.system_desc<[{role = host}], [{arch = <toy>, grid = 2x4, l1_size = "
    ...         "4096, num_dram_channels = 2, dram_channel_size = 512, l1_unreserved_base = 96}]>")
    >>> chip_in(text, None).grid, chip_in(text, None).capacity
    ((2, 4), {'l1': 4000, 'dram': 1024})
    """
    if "system_desc<" in text and (found := _ARCH.search(text)):
        before = _described(text, found[1]) or before
    if "workerGrid" in text and (found := _WORKERS.search(text)):
        rows, columns = int(found[1]), int(found[2])
        if rows and columns:
            before = replace(before or CHIPS["wormhole"], grid=(rows, columns))
    return before


def _described(text: str, name: str) -> Chip | None:
    grid = _GRID.search(text)
    numbers = [re.search(rf"\b{word} = ([0-9]{{1,19}})\b", text) for word in _NUMBERS]
    if grid is None or not int(grid[1]) or not int(grid[2]):
        return None
    size, base, channels, channel = (int(found[1]) if found else -1 for found in numbers)
    if min(size, base, channels, channel) < 0 or base > size or channels * channel > MAX_ELEMENTS:
        return None
    ends = [re.search(rf"\bdram_unreserved_{word} = ([0-9]{{1,19}})\b", text) for word in _ENDS]
    if all(ends):
        low, high = (int(found[1]) for found in ends if found)
        channel = high - low if low <= high <= channel else channel
    capacity = {"l1": size - base, "dram": channels * channel}
    return Chip(name, (int(grid[1]), int(grid[2])), capacity, COMPUTE_TILES, max(channels, 1))
