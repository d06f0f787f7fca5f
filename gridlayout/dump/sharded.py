"""Where a dump divides tensors over devices: arguments, results, constraints, and reshards."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.dump.collectives import Meshes
from gridlayout.dump.hlo import Instruction
from gridlayout.dump.kept import Kept
from gridlayout.dump.shardings import ShardedTensor, parts_of
from gridlayout.dump.statements import Statement
from gridlayout.errors import LayoutError

MAX_NAMES = 1 << 14
_DIMS = r"((?:[0-9]{1,12}x)*)"
_ARGUMENT = re.compile(
    rf"(?:(%[\w.$-]{{1,200}}):\s*)?tensor<{_DIMS}([a-z]\w{{0,9}})(?:,[^<>]*)?>\s*"
    r"\{(?:(?!tensor<|%).){0,400}?(?:sdy\.sharding = #sdy\.sharding(<.{0,400}?\]>|<[^>]{0,400}>)"
    r"|mhlo\.sharding = \"([^\"]{0,400})\")"
)
_CONSTRAINT = re.compile(
    r"sdy\.(?:sharding_constraint|reshard)\"? ?\(?%[\w.$-]+\)? ?(<.{0,400}?\]>)"
)
_PER_VALUE = re.compile(r"#sdy\.sharding_per_value<\[(<.{0,400}?\](?:, [^<>]{0,200})?>)")
_CALL = re.compile(r"mhlo\.sharding = \"([^\"]{0,400})\"")
_HLO = re.compile(r"\bsharding=(\{(?:[^{}]|\{[^{}]*\}){0,400}\})")
_TENSOR = re.compile(rf"tensor<{_DIMS}([a-z]\w{{0,9}})(?:,[^<>]*)?>")
_ARRAY = re.compile(r"([a-z][a-z0-9]{0,20})\[([0-9,]{0,200})\]")
_SIGNED = {f"si{n}": f"int{n}" for n in (2, 4, 8, 16, 32, 64)}


@dataclass(frozen=True)
class Reshard:
    """A value that goes from one sharding to another. received_bytes: a device's, at most."""

    line: int
    name: str
    before: ShardedTensor
    after: ShardedTensor
    count: int

    @property
    def received_bytes(self) -> int:
        """Bytes that a device receives at most: its new part."""
        return self.after.device_bytes


class Sharded:
    """The divided tensors of one pass, those of most bytes a device kept."""

    def __init__(self, limit: int) -> None:
        self.tensors, self.reshards, self.unknown = Kept(limit), Kept(limit), Kept(8)
        self.by_name: dict[str, ShardedTensor] = {}

    def read(self, said: Statement, text: str, found: Instruction | None, meshes: Meshes) -> None:
        """What a line says of shardings."""
        if found is not None:
            if sharding := _HLO.search(found.attributes):
                self._hlo(said, found, sharding[1], meshes)
            return
        written = _CONSTRAINT.search(text) or _PER_VALUE.search(text)
        if written is None and "%" in text.partition("=")[0] and "func" not in said.op:
            written = _CALL.search(text)
        if written is not None:
            kinds = _TENSOR.findall(text)
            name = text.partition("=")[0].strip() if "=" in text else ""
            if kinds:
                dims, element = kinds[-1]
                self._add(said, name, dims, element, written[1], meshes)
            return
        for name, dims, element, sdy, mhlo in _ARGUMENT.findall(text):
            self._add(said, name, dims, element, sdy or mhlo, meshes)

    def _hlo(self, said: Statement, found: Instruction, text: str, meshes: Meshes) -> None:
        arrays = _ARRAY.findall(found.kind)
        parts = re.findall(r"\{[^{}]*\}", text) if text.startswith("{{") else [text] * len(arrays)
        for (element, dims), each in zip(arrays, parts, strict=False):
            shape = dims.replace(",", "x") + "x" if dims else ""
            self._add(said, found.name, shape, dtypes.FROM_XLA.get(element, element), each, meshes)

    def _add(
        self, said: Statement, name: str, dims: str, element: str, text: str, meshes: Meshes
    ) -> None:
        shape = tuple(int(word) for word in dims.split("x") if word)
        try:
            dtype = dtypes.as_dtype(_SIGNED.get(element, element)).name
            parts, copies = parts_of(text, len(shape), meshes.by_name)
        except LayoutError as error:
            self.unknown.add(str(error)[:160], 0, (said.line, name, text))
            return
        if not copies and meshes.devices and all(n == 1 for n in parts):
            copies = meshes.devices
        now = ShardedTensor(said.line, said.op, name, text, shape, dtype, parts, copies)
        key = (said.op, shape, dtype, parts, copies, text)
        self.tensors.add(key, now.device_bytes, now)
        self._follow(said, name, now, shape)

    def _follow(self, said: Statement, name: str, now: ShardedTensor, shape: Shape) -> None:
        """A constraint on a value of another sharding is a reshard."""
        for read in said.reads[:1] if said.op != "func.func" else ():
            before = self.by_name.get(read)
            if before and before.shape == shape and before.parts != now.parts:
                key = (before.parts, now.parts, shape, now.dtype)
                self.reshards.add(key, now.device_bytes, (said.line, name, before, now))
        if name and len(self.by_name) < MAX_NAMES:
            self.by_name[name] = now
