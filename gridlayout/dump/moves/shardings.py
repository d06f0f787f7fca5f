"""`ShardedTensor`: a tensor of a dump that is sharded over devices, by Shardy, GSPMD or HLO.

    #sdy.sharding<@mesh, [{"x"}, {"y", "z"}, {}]>          {devices=[2,4]<=[8]}
    {devices=[2,1,4]<=[8] last_tile_dim_replicate}         {replicated}

Every dim is divided ceil-wise, as by the grid of a `gl.GridLayout`: the last parts are padded.
HLO after XLA's partitioner states the shapes of parts. Sizes are in bytes per device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from gridlayout import dtypes
from gridlayout.arguments import MAX_ELEMENTS, Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dump.moves.axes import (
    SHARDING,
    Axis,
    Division,
    Mesh,
    division_of,
    shown,
    size_along,
)
from gridlayout.dump.moves.meshes import Meshes
from gridlayout.dump.text.hlo import INDEX, braced
from gridlayout.dump.text.mlir import result_names
from gridlayout.dump.text.statements import Statement
from gridlayout.dump.values.hlo_buffers import ELEMENTWISE
from gridlayout.dump.values.top_keys import TopKeys
from gridlayout.dump.values.type_texts import DENSE, TENSOR, dense_bytes, extents
from gridlayout.errors import LayoutError

# Each device has an array of the whole shape: all of its elements, or its addend of each.
_WHOLE = ("replicated", "manual", "maximal", "unreduced")
_DEVICES = re.compile(r"devices=\[([0-9,]{1,200})\]")


@dataclass(frozen=True)
class ShardedTensor:
    """A tensor and its sharding.

    line, op, name: its first occurrence. text: the sharding, as written. parts: the number of parts
    of each dim. layout: a `gl.GridLayout` whose grid is `parts`; None for scalars. copies: the
    number of devices that hold each part; 0 if the text does not state it. count: the number of
    equal shardings. states_part: whether the dump states the shape of a part, as partitioned HLO
    does. Then `shape` is that of all parts together, which may end in padding.
    """

    line: int
    op: str
    name: str
    text: str
    shape: Shape
    dtype: str
    parts: Shape
    copies: int
    count: int = 1
    states_part: bool = False

    @property
    def layout(self) -> GridLayout | None:
        """The layout whose cores are the devices; None for a scalar."""
        if not self.shape:
            return None
        return GridLayout(self.shape, self.dtype, grid=self.parts, collapse=[])

    @property
    def is_hlo(self) -> bool:
        """Whether HLO states it, whose ops have no dialect."""
        return "." not in self.op

    @property
    def shard_shape(self) -> Shape:
        """The shape of one device's part, in elements, with padding."""
        return tuple(-(-n // p) for n, p in zip(self.shape, self.parts, strict=True))

    @property
    def device_bytes(self) -> int:
        """Bytes that one device holds."""
        return dense_bytes(self.shard_shape, self.dtype)

    @property
    def padding_share(self) -> float | None:
        """The share of all parts that is padding, 0 to 1; None if only a part's shape is stated."""
        if self.states_part:
            return None
        whole = prod(self.shard_shape) * prod(self.parts)
        return 1 - prod(self.shape) / whole if whole else 0.0


def parts_of(text: str, rank: int, meshes: dict[str, Mesh]) -> tuple[Shape, int]:
    """Return the number of parts of each dim, and the number of copies of each part (0: unknown).

    Raises `LayoutError` for a text that is no sharding of `rank` dims.

    >>> parts_of("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", 2, {})
    ((2, 1), 4)
    >>> parts_of('<@m, [{"x"}, {}]>', 2, {"m": {"x": 2, "y": 4}})
    ((2, 1), 4)
    """
    if found := _DEVICES.search(text):
        return _gspmd(text, tuple(int(n) for n in found[1].split(",") if n), rank)
    if (division := division_of(text)) is not None:
        mesh = meshes.get(division.name) if division.name else division.mesh
        if not division.dims and mesh == {}:
            return (1,) * rank, 1  # a mesh of one device: "maximal"
        return _shardy(division, mesh or {}, rank)
    if any(word in text for word in _WHOLE) or text.strip() in ("", "{}"):
        return (1,) * rank, 1 if "maximal" in text else 0
    if text.strip() == "{unknown}":
        raise LayoutError("the sharding is unknown: it states no division")
    raise LayoutError(f"sharding {text[:60]!r} is neither Shardy's nor GSPMD's")


def _gspmd(text: str, tiles: Shape, rank: int) -> tuple[Shape, int]:
    parts, rest = tiles[:rank], tiles[rank:]
    if len(parts) != rank or bool(rest) != ("last_tile_dim" in text):
        raise LayoutError(
            f"sharding {text[:60]!r} is not one of a tensor with {rank} dims: it has {len(tiles)} "
            "numbers of parts"
        )
    return _checked(parts), prod(_checked(rest))


def _shardy(found: Division, sizes: Mesh, rank: int) -> tuple[Shape, int]:
    if len(found.dims) != rank:
        raise LayoutError(f"the sharding divides {len(found.dims)} dims, but the tensor has {rank}")
    try:
        parts = tuple(size_along(axes, sizes) for axes, _ in found.dims)
    except KeyError as error:
        raise LayoutError(
            f"mesh axis {error.args[0]!r} has no size: the dump does not define it"
        ) from None
    if not sizes:
        return parts, 0
    devices = prod(_checked(tuple(sizes.values())))
    if devices % prod(_checked(parts)):
        raise LayoutError(
            f"the sharding has {prod(parts)} parts, but its mesh has {devices} devices"
        )
    return parts, devices // prod(parts)


def _checked(parts: Shape) -> Shape:
    if any(n < 1 for n in parts) or prod(parts) > MAX_ELEMENTS:
        raise LayoutError(f"parts {str(parts)[:80]} must be >= 1 and no more than 2**62 in all")
    return parts


MAX_NAMES = 1 << 14
_ARGUMENT = re.compile(
    rf"(?:(%[\w.$-]{{1,200}}):\s*)?{DENSE}(?:,[^<>]*)?>\s*\{{(?:(?!tensor<|%).){{0,400}}?"
    rf"(?:sdy\.sharding = #sdy\.sharding({SHARDING})|mhlo\.sharding = \"([^\"]{{0,9999}})\")"
)
_CONSTRAINT = re.compile(
    rf"sdy\.(?:sharding_constraint|reshard)\"? ?\(?%[\w.$#-]+\)? ?({SHARDING})"
)
_PER_VALUE = re.compile(rf"#sdy\.sharding_per_value<\[((?:{SHARDING}[, ]*)+)\]>")
_EACH = re.compile(SHARDING)
_MANUAL = re.compile(
    rf"\b(in|out)_shardings ?= ?(?:#sdy\.sharding_per_value<)?\[((?:{SHARDING}[, ]*)*)\]"
)
_OUT = re.compile(rf"out_sharding={SHARDING}")
_CALL = re.compile(r"mhlo\.sharding = \"([^\"]{0,9999})\"")
_PARTS = re.compile(r"\{(?:[^{}]++|\{[^{}]*+\})*+\}")
# Ops other than elementwise ones, whose results have the dims of the operands.
_IN_PLACE = frozenset(
    [
        *("copy", "tuple", "get-tuple-element", "while", "opt-barrier", "optimization-barrier"),
        *("custom-call", "sharding-constraint", "reshard", "manual-computation", "reverse", "sort"),
        *("dynamic-update-slice", "add-dependency", "domain"),
    ]
)
# A name, the operand whose sharding it changes or "", dims and element type, and the sharding. Both
# are the name of the same value if that is an operand of a `shard_map`.
_Stated = tuple[str, str, tuple[str, str], str]
_DIM = "(?:<=)?[0-9]{1,18}"  # with `<=`, the bound of a dynamic one
_ARRAY = re.compile(rf"([a-z][a-z0-9]{{0,20}})\[((?:{_DIM}(?:,{_DIM}){{0,15}})?)\]")
_NO_ARRAYS = ("token", "opaque")


@dataclass(frozen=True)
class Reshard:
    """A value that changes its sharding."""

    line: int
    name: str
    before: ShardedTensor
    after: ShardedTensor
    count: int = 1

    @property
    def received_bytes(self) -> int:
        """The most bytes that a device receives: its new part."""
        return self.after.device_bytes


class Sharded:
    """The sharded tensors and reshards of one pass; those of most bytes per device are stored."""

    def __init__(self, limit: int) -> None:
        self.tensors, self.reshards, self.unknown = TopKeys(limit), TopKeys(limit), TopKeys(8)
        self.by_name: dict[str, ShardedTensor] = {}

    def begin_function(self) -> None:
        """Forget the names of values: another function begins."""
        self.by_name.clear()

    def read(self, statement: Statement, meshes: Meshes, states_part: bool = False) -> None:
        """Add the shardings that a line states, and the reshards: of operands with another one.

        states_part: whether shapes are those of parts.
        """
        for name, operand, (dims, element), written in _stated(statement):
            now = self._add(statement, name, (extents(dims), element), written, meshes, states_part)
            if now is None:
                continue
            before = self.by_name.get(operand)
            if (
                before
                and _keeps_dims(statement.op)
                and before.shape == now.shape
                and not _keeps(now, before)
            ):
                key = (before.parts, now.parts, now.shape, now.dtype)
                found = Reshard(statement.line, name, before, now)
                self.reshards.add(key, now.device_bytes, found)
            if name and name != operand and len(self.by_name) < MAX_NAMES:
                self.by_name[name] = now

    def _add(
        self,
        statement: Statement,
        name: str,
        kind: tuple[Shape, str],
        text: str,
        meshes: Meshes,
        states_part: bool,
    ) -> ShardedTensor | None:
        """Add a sharded tensor; None if its sharding can't be read."""
        shape, element = kind
        try:
            dtype = dtypes.as_dtype(element).name
            parts, copies = parts_of(text, len(shape), meshes.by_name)
            if states_part:
                shape = tuple(n * p for n, p in zip(shape, parts, strict=True))
            if prod(shape) > MAX_ELEMENTS:
                raise LayoutError(f"a tensor of shape {str(shape)[:80]} has over 2**62 elements")
        except LayoutError as error:
            self.unknown.add(str(error)[:160], 0, (statement.line, name, shown(text)))
            return None
        if not copies and meshes.devices and all(n == 1 for n in parts):
            copies = meshes.devices
        where = (statement.line, statement.op, name, shown(text))
        now = ShardedTensor(*where, shape, dtype, parts, copies, states_part=states_part)
        key = (statement.op, shape, dtype, parts, copies, text, states_part)
        self.tensors.add(key, now.device_bytes, now)
        return now


def _stated(statement: Statement) -> Iterator[_Stated]:
    """Yield the tensors whose sharding a line states."""
    text, found = statement.text, statement.instruction
    if found is not None:
        if ", sharding={" in found.attributes:
            written = braced(found.attributes, ", sharding=")
            arrays = _ARRAY.findall(found.kind)
            is_tuple = written.startswith("{")
            whole = [f"{{{written}}}"] * len(arrays)
            parts: list[str] = _PARTS.findall(written) if is_tuple else whole
            for k, ((element, dims), part) in enumerate(zip(arrays, parts, strict=False)):
                name = f"{found.name}#{k}" if k else found.name
                operand = _operand_of(statement, k, len(arrays))
                if element in _NO_ARRAYS:
                    continue
                shape = f"{dims.replace('<=', '').replace(',', 'x')}x" if dims else ""
                yield name, operand, (shape, dtypes.FROM_XLA.get(element, element)), part
    elif statement.op == "sdy.manual_computation":  # a `shard_map`, whose types follow its region
        sides = {side: _EACH.findall(each) for side, each in _MANUAL.findall(text)}
        operands, _, results = text.rpartition("}")[2].partition("->")
        ins = zip(statement.operands, TENSOR.findall(operands), sides.get("in", ()), strict=False)
        yield from ((name, name, kind, each) for name, kind, each in ins)
        kinds = TENSOR.findall(results)
        names = result_names(text, len(kinds))
        outs = zip(names, kinds, sides.get("out", ()), strict=False)
        yield from ((name, "", kind, each) for name, kind, each in outs)
    elif own := _of_results(statement):
        kinds, names = TENSOR.findall(text)[-len(own) :], result_names(text, len(own))
        for k, (name, kind, each) in enumerate(zip(names, kinds, own, strict=False)):
            yield name, _operand_of(statement, k, len(own)), kind, each
    else:
        for name, dims, element, sdy, mhlo in _ARGUMENT.findall(text):
            yield name, "", (dims, element), sdy or mhlo


def _operand_of(statement: Statement, k: int, results: int) -> str:
    """Return the operand from which an op makes result `k`; empty if it is not known."""
    operands, found = statement.operands, statement.instruction
    if len(operands) == results or results == 1:
        operand = "".join(operands[k : k + 1])
    else:
        operand = f"{operands[0]}#{k}" if len(operands) == 1 else ""
    if found and found.op == "get-tuple-element" and (index := INDEX.search(found.attributes)):
        operand += f"#{index[1]}"
    return operand.removesuffix("#0")  # the name of the first part is that of the tuple


def _keeps_dims(op: str) -> bool:
    """Return whether dim k of an op's results is dim k of its operands, for all k.

    >>> _keeps_dims("stablehlo.custom_call"), _keeps_dims("dot")
    (True, False)
    """
    word = op.rpartition(".")[2].replace("_", "-")
    return word in ELEMENTWISE or word in _IN_PLACE


def _keeps(now: ShardedTensor, before: ShardedTensor) -> bool:
    """Return whether a tensor still has its sharding: an open dim may have more parts."""
    stated, old = division_of(now.text), division_of(before.text)
    if stated is None or len(stated.dims) != len(before.parts):
        return before.parts == now.parts
    each = zip(before.parts, now.parts, stated.dims, strict=True)
    if not all(own == n or (is_open and own % n == 0) for own, n, (_, is_open) in each):
        return False
    # Other axes of equal sizes put the parts on other devices.
    if old is None or (stated.name, stated.mesh) != (old.name, old.mesh):
        return True
    pairs = zip(old.dims, stated.dims, strict=True)
    return all(_names(one)[: len(_names(own))] == _names(own) for (one, _), (own, _) in pairs)


def _names(axes: tuple[Axis, ...]) -> list[str]:
    return [*dict.fromkeys(axis.name for axis in axes)]


def _of_results(statement: Statement) -> list[str]:
    """Return the shardings that an op of MLIR states for its results; none of a function's line."""
    text = statement.text
    if found := _CONSTRAINT.search(text):
        return [found[1]]
    if found := _PER_VALUE.search(text):
        return _EACH.findall(found[1])
    if "%" not in text.partition("=")[0] or "func" in statement.op:
        return []
    return [found[1]] if (found := _CALL.search(text)) else []


def result_bytes(text: str, meshes: Meshes) -> int | None:
    """Return the bytes that a device holds of the result of Shardy's collective.

    Its type is that of the whole tensor, which `out_sharding` divides. None if it states neither.

    >>> meshes = Meshes()
    >>> meshes.read('sdy.mesh @m = <["x"=2]>')
    >>> result_bytes('out_sharding=<@m, [{"x"}]> : tensor<9xf32>', meshes)
    20
    """
    kinds, written = TENSOR.findall(text), _OUT.search(text)
    if not kinds or not written:
        return None
    dims, element = kinds[-1]
    shape = extents(dims)
    try:
        parts, _ = parts_of(written[0], len(shape), meshes.by_name)
    except LayoutError:
        return None
    return dense_bytes([-(-n // p) for n, p in zip(shape, parts, strict=True)], element)
