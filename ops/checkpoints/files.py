"""Digests of the files of a checkpoint, by which one that was damaged or mixed up is refused."""

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
    """Write down the size and the SHA-256 of every file in a folder."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != DIGESTS)
    with ThreadPoolExecutor(_THREADS) as pool:
        found = dict(zip(map(_name(folder), paths), pool.map(_digest, paths), strict=True))
    held = {"files": found, "digest": _digest_of(found)}
    (folder / DIGESTS).write_text(json.dumps(held, indent=1), encoding="utf-8")


def check_digests(folder: Path, first: int = 0, step: int = 1) -> None:
    """`LayoutError`, naming the file, where one is missing or has other bytes than were written.

    first, step: of several processes each checks every `step`-th file. Nothing is checked where no
    digests were written.
    """
    if not (folder / DIGESTS).exists():
        return
    files = _read(folder / DIGESTS)

    def check(name: str) -> None:
        path, (size, digest) = folder / name, files[name]
        if not path.is_file():
            raise LayoutError(f"{str(path)!r}, a file of the checkpoint, is missing")
        found, said = _digest(path), "its SHA-256 is not that of the file that was saved"
        if found[0] != size:
            said = f"it has {found[0]:,} B, and {size:,} B were saved"
        if found != [size, digest]:
            raise LayoutError(
                f"{str(path)!r} is damaged, or of another checkpoint: {said}; restore another one"
            )

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(check, sorted(files)[first::step]))


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        files: dict[str, list[Any]] = held["files"]
        if _digest_of(files) == held["digest"]:
            return files
        reason = "its digest is not that of what it holds"
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
