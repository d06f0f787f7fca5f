"""Sidecars: the JSON beside an image's bytes, and where both are.

    PATH        the bytes of each core, one after another; or, with a file a core, a folder
    PATH.json   the sidecar

A sidecar names no file and states no size that the layout does not have: names follow from the path
and from the coordinates of cores, and every number is compared with the layout's before it is used.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.images import check_stored
from gridlayout.layouts.layout import Layout
from gridlayout.text import parse

FORMAT, VERSION = "gridlayout image", 1
MAX_CORES = 1 << 19
_MOST_BYTES = 1 << 26  # what a sidecar of so many cores takes, and half as much again
# Of each core's bytes. `sha256sum` prints it for a file of one core, and packing takes longer.
CHECKSUM = "sha256"


@dataclass(frozen=True)
class Place:
    """Where an image is: its path, and whether each core has a file of its own in a folder."""

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
    """The sidecar of the image at a path."""
    return path.with_name(f"{path.name}.json")


def as_path(path: Any) -> Path:
    """`path` as a path that ends in a name, or `LayoutError`.

    >>> as_path("images/w.bin").name
    'w.bin'
    """
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    try:
        if not isinstance(given, str) or b"\0" in os.fsencode(given):
            raise LayoutError(f"path {path!r} must be a path to a file, a str or a pathlib.Path")
    except UnicodeError as error:
        raise LayoutError(f"path {path!r} is none that the system has: {error}") from None
    found = Path(given)
    if found.name in ("", ".."):
        raise LayoutError(f"path {given!r} has no name of a file: give one, e.g. 'weights.bin'")
    return found


def text_of(layout: Layout) -> str:
    """The text that `gl.parse` makes the layout of again. `LayoutError` where there is none."""
    for text in (str(layout), repr(layout)):
        try:
            if parse(text) == layout:
                return text
        except LayoutError:
            continue
    raise LayoutError(
        f"{layout!r} has no text that gl.parse reads, and an image is saved with its layout's: "
        "give it a layout that one of the systems' constructors makes"
    )


def text_of_sidecar(layout: Layout, text: str, per_core: bool, checksums: Sequence[str]) -> str:
    """The sidecar of an image in a layout of that text, as JSON."""
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
    """What of a sidecar follows from the layout, for readers that know none."""
    return {
        "shape": list(layout.shape),
        "dtype": layout.dtype.name,
        "byte_order": "little",
        "cores": list(layout.core_shape),
        "bytes_per_core": layout.bytes_per_core,
    }


@dataclass(frozen=True)
class Sidecar:
    """What a sidecar states, once it is known to hold together."""

    place: Place
    layout: Layout
    checksums: tuple[str, ...]


def read_sidecar(path: Path) -> Sidecar:
    """The sidecar of the image at a path. `LayoutError` names the file and what is wrong in it."""
    name = sidecar_of(path)
    try:
        return _sidecar(path, _record(name))
    except FileNotFoundError:
        raise LayoutError(
            f"{str(path)!r} is no image: {str(name)!r}, which gl.save_image writes last, is missing"
        ) from None
    except (OSError, ValueError, RecursionError) as error:  # LayoutError is a ValueError
        said = str(error) if isinstance(error, LayoutError) else f"{type(error).__name__}: {error}"
        raise LayoutError(f"{str(name)!r} is no sidecar of an image: {said[:400]}") from error


def is_sidecar_file(path: Path) -> bool:
    """Whether a file is a sidecar, of this version or another."""
    try:
        return _is_sidecar(_record(path))
    except (OSError, ValueError, RecursionError):
        return False


def _record(path: Path) -> Any:
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MOST_BYTES:
            raise LayoutError(f"it is larger than {_MOST_BYTES:,} B")
        return json.loads(file.read(size).decode("utf-8"))


def _is_sidecar(record: Any) -> bool:
    return isinstance(record, dict) and record.get("format") == FORMAT


def _sidecar(path: Path, record: Any) -> Sidecar:
    if not _is_sidecar(record):
        raise LayoutError(f"its format must be {FORMAT!r}")
    if record.get("version") != VERSION:
        raise LayoutError(
            f"its version is {_short(record.get('version'))}, and this release reads {VERSION}"
        )
    layout = parse(record.get("layout"))
    check_stored(layout)
    facts = {**_facts(layout), "checksum": CHECKSUM}
    for key, wanted in facts.items():
        found = record.get(key)
        if found != wanted or isinstance(found, bool):
            raise LayoutError(f"{key} is {_short(found)}, but {_short(wanted)} of its layout")
    layout.index_map  # noqa: B018  # refuses what is too large to say
    if layout.size > prod(layout.physical_shape):
        raise LayoutError(f"{layout!r} puts several elements in one place, which no image does")
    per_core = record.get("per_core")
    if not isinstance(per_core, bool):
        raise LayoutError(f"per_core is {_short(per_core)}, and must be true or false")
    checksums = record.get("checksums")
    if not isinstance(checksums, list) or len(checksums) != layout.num_cores:
        raise LayoutError(f"checksums must be a list of one text a core, of {layout.num_cores}")
    if not all(isinstance(each, str) and len(each) == 64 for each in checksums):
        raise LayoutError("checksums must be texts of 64 hexadecimal digits")
    return Sidecar(Place(path, per_core), layout, tuple(checksums))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def opened(path: Path) -> BinaryIO:
    """A file opened to be read. `LayoutError` for what is no file, which is not waited for."""
    flags = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise LayoutError(f"{str(path)!r} is no regular file")
    return file


def checksum_of(data: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    """The checksum of a core's bytes.

    >>> checksum_of(np.frombuffer(b"abc", np.uint8))[:16]
    'ba7816bf8f01cfea'
    """
    return sha256(data).hexdigest()
