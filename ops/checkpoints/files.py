"""Digests of a checkpoint's files. They detect damaged files and files of other checkpoints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any

from gridlayout.errors import LayoutError
from gridlayout.files import opened, read_json

DIGESTS = "gridlayout.sha256.json"
_THREADS = 4
_MOST_BYTES = 1 << 28


def write_digests(folder: Path) -> None:
    """Write the size and the SHA-256 of every file in a folder to the file `DIGESTS`."""
    paths = _files(folder)
    with ThreadPoolExecutor(_THREADS) as pool:
        found = dict(zip(map(_name(folder), paths), pool.map(_digest, paths), strict=True))
    content = {"files": found, "digest": _digest_of(found)}
    (folder / DIGESTS).write_text(json.dumps(content, indent=1), encoding="utf-8")


def check_digests(folder: Path, first: int = 0, step: int = 1) -> None:
    """`LayoutError`, naming the file, if a file is missing or its bytes differ from those saved.

    first, step: check every `step`-th file from number `first` on, so that several processes share
    the work. Nothing is checked if the folder has no digests.
    """
    if not (folder / DIGESTS).exists():
        return
    files = _read(folder / DIGESTS)

    def check(name: str) -> None:
        path, (size, digest) = folder / name, files[name]
        if not path.is_file():
            raise LayoutError(f"{str(path)!r}, a file of the checkpoint, is missing")
        found, reason = _digest(path), "its SHA-256 is not that of the saved file"
        if found[0] != size:
            reason = f"it has {found[0]:,} B, and {size:,} B were saved"
        if found != [size, digest]:
            raise LayoutError(
                f"{str(path)!r} is damaged, or of another checkpoint: {reason}; restore another one"
            )

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(check, sorted(files)[first::step]))


def other_file(folder: Path) -> str:
    """Return the name of a file that is not among those with digests; empty if there is none.

    Nothing is known of a folder whose digests are missing or damaged. Hidden files do not count.
    """
    try:
        known = _read(folder / DIGESTS)
    except LayoutError:
        return ""
    names = map(_name(folder), _files(folder))
    return next((name for name in names if name not in known and "/." not in f"/{name}"), "")


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != DIGESTS)


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        content = read_json(path, _MOST_BYTES)
        files: dict[str, list[Any]] = content["files"]
        if not all(_is_file(name, *each) for name, each in files.items()):
            raise ValueError("its files must be paths in the folder, each with a size and a digest")
        if _digest_of(files) == content["digest"]:
            return files
        reason = "its digest does not match its content"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = repr(error)
    raise LayoutError(f"{str(path)!r} is damaged: {reason}; restore another checkpoint")


def _is_file(name: str, size: Any, digest: Any) -> bool:
    """Return whether it is a path that stays in its folder, with a size and a digest."""
    path = PurePath(name)
    is_inside = not path.is_absolute() and ".." not in path.parts
    return is_inside and type(size) is int and isinstance(digest, str)


def _name(folder: Path) -> Callable[[Path], str]:
    return lambda path: path.relative_to(folder).as_posix()


def _digest(path: Path) -> list[Any]:
    with opened(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [path.stat().st_size, digest]


def _digest_of(files: Any) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
