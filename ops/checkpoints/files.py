"""Digests of a checkpoint's files. They detect damaged files and files of other checkpoints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gridlayout.errors import LayoutError

DIGESTS = "gridlayout.sha256.json"
_THREADS = 4


def write_digests(folder: Path) -> None:
    """Write the size and the SHA-256 of every file in a folder to the file `DIGESTS`."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != DIGESTS)
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


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        files: dict[str, list[Any]] = content["files"]
        if _digest_of(files) == content["digest"]:
            return files
        reason = "its digest does not match its content"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = repr(error)
    raise LayoutError(f"{str(path)!r} is damaged: {reason}; restore another checkpoint")


def _name(folder: Path) -> Callable[[Path], str]:
    return lambda path: path.relative_to(folder).as_posix()


def _digest(path: Path) -> list[Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [path.stat().st_size, digest]


def _digest_of(files: Any) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
