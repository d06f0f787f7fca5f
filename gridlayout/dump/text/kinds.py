"""Classifies the text of a dump (HLO, TTNN, StableHLO, ...), and says why one has no layout."""

from __future__ import annotations

import re

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
