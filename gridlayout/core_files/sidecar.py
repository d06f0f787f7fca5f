"""Sidecars: JSON files that describe the bytes of cores in files.

    PATH        the bytes of all cores; or a folder with one file per core
    PATH.json   the sidecar

A sidecar contains no file names; these follow from the path and the coordinates of cores. Every
number in it is compared with that of the layout before it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gridlayout.arguments import Shape
from gridlayout.core_bytes import check_stored
from gridlayout.errors import LayoutError
from gridlayout.files import read_json
from gridlayout.layouts.layout import Layout
from gridlayout.text import parse

FORMAT, VERSION = "gridlayout image", 1
MAX_CORES = 1 << 19
_MOST_BYTES = 1 << 26  # 1.8 times the bytes of a sidecar with MAX_CORES cores
# The checksum of each core's bytes. `sha256sum` prints it for a file, and packing takes longer.
CHECKSUM = "sha256"


@dataclass(frozen=True)
class Place:
    """The files of one tensor: their path, and whether it is a folder with one file per core."""

    path: Path
    per_core: bool

    def file_of(self, core: Shape) -> Path:
        """The file that holds a core's bytes.

        >>> Place(Path("w"), True).file_of((0, 12)).as_posix()
        'w/core_0_12.bin'
        """
        if not self.per_core:
            return self.path
        return self.path / f"{'_'.join(['core', *map(str, core)])}.bin"


def sidecar_of(path: Path) -> Path:
    """The path of the sidecar of the bytes at a path."""
    return path.with_name(f"{path.name}.json")


def as_path(path: Any) -> Path:
    """Return `path` as a `Path` that ends in a file name; otherwise raise `LayoutError`.

    >>> as_path("weights/w.bin").name
    'w.bin'
    """
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    try:
        if not isinstance(given, str) or b"\0" in os.fsencode(given):
            raise LayoutError(f"path {path!r} must be a path to a file, a str or a pathlib.Path")
    except UnicodeError as error:
        raise LayoutError(f"path {path!r} is not valid on this system: {error}") from None
    found = Path(given)
    if found.name in ("", ".."):
        raise LayoutError(f"path {given!r} has no file name: give one, e.g. 'weights.bin'")
    return found


def text_of(layout: Layout) -> str:
    """The text from which `gl.parse` returns the layout; `LayoutError` if there is none."""
    for text in (str(layout), repr(layout)):
        try:
            if parse(text) == layout:
                return text
        except LayoutError:
            continue
    raise LayoutError(
        f"{layout!r} has no text that gl.parse reads, but bytes are saved with the text of their "
        "layout: use a layout from the constructor of a system"
    )


def text_of_sidecar(layout: Layout, text: str, per_core: bool, checksums: Sequence[str]) -> str:
    """The JSON text of a sidecar; `text` is the layout's text."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        "layout": text,
        **_facts(layout),
        "per_core": per_core,
        "checksum": CHECKSUM,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    each = ",\n".join(f"  {json.dumps(checksum)}" for checksum in checksums)
    return "{\n" + ",\n".join([*lines, f' "checksums": [\n{each}\n ]\n}}\n'])


def _facts(layout: Layout) -> dict[str, Any]:
    """The fields that follow from the layout, for programs that cannot read its text."""
    return {
        "shape": list(layout.shape),
        "dtype": layout.dtype.name,
        "byte_order": "little",
        "cores": list(layout.core_shape),
        "bytes_per_core": layout.bytes_per_core,
    }


@dataclass(frozen=True)
class Sidecar:
    """The contents of a sidecar, checked for consistency."""

    place: Place
    layout: Layout
    checksums: tuple[str, ...]


def read_sidecar(path: Path) -> Sidecar:
    """Read the sidecar of the bytes at a path; `LayoutError` names the file and the problem."""
    name = sidecar_of(path)
    try:
        return _sidecar(path, read_json(name, _MOST_BYTES))
    except FileNotFoundError:
        raise LayoutError(
            f"{str(path)!r} holds no bytes of cores: {str(name)!r}, which gl.save_bytes writes "
            "last, is missing"
        ) from None
    except (OSError, ValueError, RecursionError) as error:  # LayoutError is a ValueError
        what = str(error) if isinstance(error, LayoutError) else f"{type(error).__name__}: {error}"
        raise LayoutError(
            f"{str(name)!r} is not a sidecar of gl.save_bytes: {what[:400]}"
        ) from error


def is_sidecar_file(path: Path) -> bool:
    """Return whether a file is a sidecar of any version."""
    try:
        return _is_sidecar(read_json(path, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return False


def _is_sidecar(record: Any) -> bool:
    return isinstance(record, dict) and record.get("format") == FORMAT


def _sidecar(path: Path, record: Any) -> Sidecar:
    if not _is_sidecar(record):
        raise LayoutError(f"its format must be {FORMAT!r}")
    if record.get("version") != VERSION:
        raise LayoutError(
            f"its version is {_short(record.get('version'))}, but this release reads {VERSION}"
        )
    layout = parse(record.get("layout"))
    check_stored(layout)
    facts = {**_facts(layout), "checksum": CHECKSUM}
    for key, expected in facts.items():
        found = record.get(key)
        if found != expected or isinstance(found, bool):
            raise LayoutError(f"{key} is {_short(found)}, but its layout has {_short(expected)}")
    layout.index_map  # noqa: B018  # raises if an expression exceeds the limits of AffineExpr
    if layout.size > prod(layout.physical_shape):
        raise LayoutError(
            f"{layout!r} sends several elements to one place, so it has no bytes of its own"
        )
    per_core = record.get("per_core")
    if not isinstance(per_core, bool):
        raise LayoutError(f"per_core is {_short(per_core)}, but must be true or false")
    checksums = record.get("checksums")
    if not isinstance(checksums, list) or len(checksums) != layout.num_cores:
        raise LayoutError(f"checksums must be a list of {layout.num_cores} texts, one per core")
    if not all(isinstance(each, str) and len(each) == 64 for each in checksums):
        raise LayoutError("checksums must be texts of 64 hexadecimal digits")
    return Sidecar(Place(path, per_core), layout, tuple(checksums))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def checksum_of(data: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    """The checksum of a core's bytes.

    >>> checksum_of(np.frombuffer(b"abc", np.uint8))[:16]
    'ba7816bf8f01cfea'
    """
    return sha256(data).hexdigest()
