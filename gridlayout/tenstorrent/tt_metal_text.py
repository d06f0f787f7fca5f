"""Parser of what TTNN prints: `TensorSpec(...)`, and the end of a printed `ttnn.Tensor`.

    TensorSpec(logical_shape=Shape([1, 96, 64]),tensor_layout=TensorLayout(dtype=DataType::BFLOAT16,
    page_config=PageConfig(config=TilePageConfig(tile=Tile(tile_shape={32, 32},...))),memory_config=
    MemoryConfig(memory_layout=TensorMemoryLayout::BLOCK_SHARDED,buffer_type=BufferType::L1,
    shard_spec=ShardSpec(grid={[(x=0,y=0) - (x=3,y=1)]},shape={96, 64},orientation=...),...),...))
    ttnn.Tensor([[1.0, 2.0]], shape=Shape([1, 2]), dtype=DataType::FLOAT32, layout=Layout::TILE)

A printed tensor does not state its memory config, so its layout is that of an interleaved one. A
`MemoryConfig` alone states no tensor. The place of the cores on the chip is not a part of a layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader
from gridlayout.tenstorrent.tt_metal import TensorLayout, tensor_layout

_DEPTH = 12  # most nested parentheses and brackets
_DTYPES: dict[str, tuple[str, str | None]] = {
    **{name.upper(): (name, None) for name in ("float32", "bfloat16", "int32")},
    **{name.upper(): (name, None) for name in ("uint8", "uint16", "uint32")},
    **{"BFLOAT8_B": ("bfloat16", "bfp_bf8"), "BFLOAT4_B": ("bfloat16", "bfp_bf4")},
}
_PAGES = {"TILE": "tile", "ROW_MAJOR": "row_major"}
_NAME = re.compile(r"\s*(TensorSpec|MemoryConfig|ttnn\.Tensor)\s*\(")
_TENSOR = re.compile(
    r"shape=Shape\(\[[0-9, ]{0,200}\]\), dtype=DataType::\w{1,32}, layout=Layout::\w{1,32}"
)
_PRINTED = re.compile(rf"(?:TensorSpec|MemoryConfig)\((?=\w+=)|{_TENSOR.pattern}")


@dataclass(frozen=True)
class _Call:
    """A printed object: its name, the position in the text, and its fields."""

    name: str
    at: int
    fields: dict[str, Any]


def starts_print(text: str) -> bool:
    """Return whether a text starts like an object that TTNN prints."""
    return _NAME.match(text) is not None


def printed_in(text: str) -> list[str]:
    """Return the texts of the objects that TTNN printed in a line, without those inside others.

    >>> printed_in("spec: MemoryConfig(a=B(c=1)), MemoryConfig(d=2)")
    ['MemoryConfig(a=B(c=1))', 'MemoryConfig(d=2)']
    """
    found, at = [], 0
    while part := _PRINTED.search(text, at):
        at = part.end()
        if part[0].startswith("shape"):
            found.append(f"ttnn.Tensor([], {part[0]})")
            continue
        depth = 1
        while depth and at < len(text):
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        found.append(text[part.start() : at])
    return found


def read_print(reader: Reader) -> TensorLayout:
    """Read an object that TTNN prints; `LayoutError` if it states no tensor's layout."""
    if reader.peek("ttnn.Tensor"):
        found = _TENSOR.search(reader.text)
        if found is None:
            reader.fail("expected shape=Shape([...]), dtype=DataType::..., layout=Layout::...")
        reader.at = found.start()
        fields = _fields(reader, "", 0)
        reader.take(")")
        reader.end()
        at, arguments = found.start(), _element(reader, fields, found.start())
        page = _one_of(reader, fields, "layout", "Layout", _PAGES, at)
        return _built(at, _shape(reader, fields, "shape", at), page=page, **arguments)
    call = _value(reader, 0)
    reader.end()
    if call.name == "MemoryConfig":
        stated = _sharding(reader, call).items()
        words = "".join(f", {name}={value!r}" for name, value in stated if value != "row_major")
        reader.fail(
            "a MemoryConfig has no shape: give the tensor's TensorSpec(...), or "
            f"tenstorrent.tensor_layout(shape, dtype{words})",
            call.at,
        )
    return _spec(reader, call)


def _spec(reader: Reader, call: _Call) -> TensorLayout:
    inner = _call(reader, call, "tensor_layout")
    config = _call(reader, _call(reader, inner, "page_config"), "config")
    page = {"TilePageConfig": "tile", "RowMajorPageConfig": "row_major"}.get(config.name)
    if page is None:
        reader.fail(
            f"page config {config.name} is not TilePageConfig or RowMajorPageConfig", config.at
        )
    arguments = _element(reader, inner.fields, inner.at)
    if page == "tile":
        tile = _call(reader, config, "tile")
        arguments["tile"] = _numbers(reader, tile.fields.get("tile_shape"), "tile_shape", tile.at)
    arguments |= _sharding(reader, _call(reader, inner, "memory_config"))
    if isinstance(stated := inner.fields.get("alignment"), _Call):
        arguments["alignment"] = _numbers(reader, stated.fields.get(""), "alignment", stated.at)
    return _built(
        call.at, _shape(reader, call.fields, "logical_shape", call.at), page=page, **arguments
    )


def _built(at: int, shape: Shape, **arguments: Any) -> TensorLayout:
    try:
        return tensor_layout(shape, **{k: v for k, v in arguments.items() if v not in (None, ())})
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None


def _sharding(reader: Reader, config: _Call) -> dict[str, Any]:
    """Return the arguments of `tensor_layout` that a MemoryConfig states."""
    words = ("INTERLEAVED", "HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED", "ND_SHARDED")
    names = {word: word.lower() for word in words} | {"SINGLE_BANK": "interleaved"}
    arranged = _one_of(
        *(reader, config.fields, "memory_layout", "TensorMemoryLayout", names, config.at)
    )
    if arranged == "interleaved":
        return {}
    spec = config.fields.get("shard_spec")
    if not isinstance(spec, _Call):
        spec, arranged = _call(reader, config, "nd_shard_spec"), "nd_sharded"
    stated = spec.fields.get("shape", spec.fields.get("shard_shape"))
    shard = stated.fields.get("") if isinstance(stated, _Call) else stated
    orders = {"ROW_MAJOR": "row_major", "COL_MAJOR": "col_major"}
    found = {
        "shard_shape": _numbers(reader, shard, "the shard's shape", spec.at),
        "cores": _cores(reader, spec),
        "memory_layout": arranged,
        "orientation": _one_of(
            *(reader, spec.fields, "orientation", "ShardOrientation", orders, spec.at)
        ),
    }
    ways = {"ROUND_ROBIN_1D": "round_robin", "GRID_2D": "grid_2d"}
    if (name := "shard_distribution_strategy") in spec.fields:
        word = "ShardDistributionStrategy"
        found["distribution"] = _one_of(reader, spec.fields, name, word, ways, spec.at)
    return found


def _cores(reader: Reader, spec: _Call) -> int | Shape:
    """Return the rows and columns of a grid of one range of cores, else the number of cores."""
    sizes: list[tuple[int, int]] = []
    ranges = spec.fields.get("grid")
    for each in ranges if isinstance(ranges, list) else ():
        ends = [
            core.get(name)
            for core in (each if isinstance(each, list) else ())
            for name in ("y", "x")
            if isinstance(core, dict)
        ]
        whole = [n for n in ends if isinstance(n, int)]
        if len(whole) != 4:
            break
        sizes.append((whole[2] - whole[0] + 1, whole[3] - whole[1] + 1))
        if min(sizes[-1]) < 1:
            break
    else:
        if len(sizes) == 1:
            return sizes[0]
        if sizes:
            return sum(rows * columns for rows, columns in sizes)
    reader.fail("expected a grid of ranges of cores such as {[(x=0,y=0) - (x=3,y=1)]}", spec.at)


def _element(reader: Reader, fields: dict[str, Any], at: int) -> dict[str, Any]:
    dtype, form = _one_of(reader, fields, "dtype", "DataType", _DTYPES, at)
    return {"dtype": dtype, "tile_format": form}


def _shape(reader: Reader, fields: dict[str, Any], name: str, at: int) -> Shape:
    stated = fields.get(name)
    return _numbers(reader, stated.fields.get("") if isinstance(stated, _Call) else None, name, at)


def _call(reader: Reader, call: Any, name: str) -> _Call:
    found = call.fields.get(name)
    if not isinstance(found, _Call):
        reader.fail(f"{call.name} states no {name}", call.at)
    return found


def _one_of(
    reader: Reader, fields: dict[str, Any], name: str, kind: str, known: dict[str, Any], at: int
) -> Any:
    """Return what a field such as `dtype=DataType::UINT8` stands for."""
    word = str(fields.get(name)).removeprefix(f"{kind}::")
    if word not in known:
        reader.fail(f"{name} {word[:40]!r} is not one of {', '.join(known)}", at)
    return known[word]


def _numbers(reader: Reader, value: Any, name: str, at: int) -> Shape:
    if not isinstance(value, list) or not all(isinstance(n, int) for n in value):
        reader.fail(f"{name} must be numbers such as [32, 64]", at)
    return tuple(value)


# -- the grammar -----------------------------------------------------------------------------------


def _value(reader: Reader, depth: int) -> Any:
    """Read a value: a number, a name, `Name(...)`, `{...}`, `[...]`, or `(x=0,y=0)`."""
    if depth > _DEPTH:
        reader.fail(f"over {_DEPTH} nested parentheses")
    for opening, closing in ("{}", "[]"):
        if reader.take(opening):
            found: list[Any] = []
            while not reader.take(closing):
                found.append(_value(reader, depth + 1))
                if not reader.take(",") and not reader.take("-") and not reader.peek(closing):
                    reader.fail(f"expected ',' or {closing!r}")
            return found
    if reader.peek_digit():
        return reader.number()
    at = reader.here()
    name = "" if reader.peek("(") else reader.match(r"[A-Za-z_]\w*(?:::\w+)*", "a value")
    if not reader.take("("):
        return name
    fields = _fields(reader, ")", depth)
    reader.expect(")")
    return _Call(name, at, fields) if name else fields


def _fields(reader: Reader, closing: str, depth: int) -> dict[str, Any]:
    """Read `name=value, ...`; a value without a name has the name ""."""
    fields: dict[str, Any] = {}
    while not (closing and reader.peek(closing)):
        start = reader.here()
        named = re.compile(r"([A-Za-z_]\w*)\s*=").match(reader.text, start)
        if named:
            reader.at = named.end()
        fields[named[1] if named else ""] = _value(reader, depth + 1)
        if not reader.take(","):
            break
    return fields
