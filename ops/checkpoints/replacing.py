"""The paths of a checkpoint, and the replacement of an earlier checkpoint by renames.

`NAME.gridlayout-new` is written while `NAME` exists. When it is complete, `NAME` is renamed to
`NAME.gridlayout-old`, then `NAME.gridlayout-new` to `NAME`, and `NAME.gridlayout-old` is deleted.
So one of the three is complete at any time.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from gridlayout.errors import LayoutError
from gridlayout.ops.checkpoints.files import DIGESTS, other_file


def folder_path(path: Any, what: str) -> Path:
    """Return a path as an absolute `Path`; of a symbolic link, its target.

    `LayoutError` unless it can name a local folder.
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else b""
    if not isinstance(text, str) or not text or not _is_encodable(text):
        raise LayoutError(f"{what}: path {path!r} must be the path of a folder, a str or a Path")
    if "://" in text:
        raise LayoutError(
            f"{what} takes folders of a file system, and {text!r} is a URL: use Orbax's "
            "CheckpointManager, which saves GridArrays there too"
        )
    found = Path(text).absolute()
    return Path(os.path.realpath(found)) if os.path.islink(found) else found


class CheckpointPaths:
    """The paths of a checkpoint, of its replacement while that is written, and of the old one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.new = path.with_name(f"{path.name}.gridlayout-new")
        self.old = path.with_name(f"{path.name}.gridlayout-old")

    def check_replaceable(self) -> None:
        """`LayoutError` if the path exists and is not a checkpoint, or holds other files too."""
        if not self.path.exists():
            return
        other = other_file(self.path)
        if not is_checkpoint(self.path) or other:
            why = (
                f"holds {other!r}, which is not of the checkpoint" if other else "is no checkpoint"
            )
            raise LayoutError(
                f"{str(self.path)!r} exists and {why}, so it is not replaced: save to another path"
            )

    def complete(self) -> Path:
        """Return the folder of the last complete checkpoint; `LayoutError` if there is none."""
        for each in (self.path, self.new, self.old):
            if each.is_dir() and (each == self.path or (each / DIGESTS).exists()):
                return each
        raise LayoutError(f"there is no checkpoint at {str(self.path)!r}")

    def prepare(self) -> None:
        """Finish or remove what an interrupted save left."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            for each in (self.new, self.old):
                if each.is_dir() and (each / DIGESTS).exists():
                    each.rename(self.path)
                    break
        for each in (self.new, self.old):
            shutil.rmtree(each, ignore_errors=True)

    def replace(self) -> None:
        """Replace the old checkpoint by the new one, which must be complete."""
        if self.path.exists():
            self.path.rename(self.old)
        self.new.rename(self.path)
        _sync(self.path.parent)
        shutil.rmtree(self.old, ignore_errors=True)


def is_checkpoint(path: Path) -> bool:
    """Whether a folder holds a tree that Orbax has written."""
    return any((path / name).is_file() for name in ("_METADATA", DIGESTS))


def _is_encodable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _sync(folder: Path) -> None:
    """Flush the renames in a folder to the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
