"""What the columns of an explanation's tables mean, for those who read its page."""

from __future__ import annotations

from collections.abc import Iterable

COLUMNS = {
    "line": "where the dump first names it",
    "times": "how often it is there, uses too",
    "op": "the operation that makes it",
    "value": "its name in the dump",
    "tensor": "element type and logical shape",
    "grid": "cores along each dim",
    "shard": "a core's buffer: counts of tiles of a size, or elements",
    "padding": "share of the places that hold no element",
    "a core": "bytes on each core",
    "in all": "bytes on all cores",
    "wasted": "bytes in all beyond those of the data",
    "factor": "bytes in all over bytes of data",
    "fits": "what is left of the chip's memory, or lacking",
    "from": "how it lies before: grid, shard and memory, or its sharding",
    "to": "how it lies after",
    "moves": "bytes that change their place",
    "of": "bytes of the data",
    "where": "how far they go",
    "saves": "bytes less than now, a core and in all",
    "text": "the layout, to paste into a program",
    "memory": "the memory that is meant",
    "function": "the function that the values are in",
    "peak": "the most bytes that are held at a time",
    "arguments": "bytes of these that are arguments",
    "results": "bytes of these that are results",
    "temporary": "bytes of these that are neither",
    "alive": "the values that are held then",
    "kind": "which collective",
    "axes": "the mesh axes that it goes over",
    "parts": "how many parts each dim is in",
    "sharding": "how the dump says it",
    "a device": "bytes on each device",
    "receives": "bytes that each device receives",
    "result": "bytes of the result",
    "groups": "groups of devices that send each other",
    "of devices": "devices in a group",
    "copies": "devices that hold the same part",
}


def meanings(names: Iterable[str]) -> dict[str, str]:
    """Columns and what they mean, each once, in order.

    >>> meanings(["saves", "saves "])
    {'saves': 'bytes less than now, a core and in all'}
    """
    found = dict.fromkeys(name.strip() for name in names)
    return {name: COLUMNS[name] for name in found}
