"""`gl.save`: a tree of arrays as a checkpoint, in the background if asked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

import jax

from gridlayout.arguments import as_flag, shown
from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.progress import ReportProgress, check_progress, reporting
from gridlayout.ops.checkpoints.files import write_digests
from gridlayout.ops.checkpoints.orbax import orbax
from gridlayout.ops.checkpoints.replacing import CheckpointPaths, folder_path
from gridlayout.ops.trees.leaves import Leaf, leaves_of
from gridlayout.public import public
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.agreement import joint_call, layout_lines, local_data
from gridlayout.sharding.processes.elements import Compared

_WHAT = "gl.save"
VERSION = 1
# The name in the files of a tree that is a single leaf.
ROOT = "value"
# How long processes wait for each other's files: Orbax's timeout.
_SECONDS = 1200
_numbers = count()


@public
def save(
    path: str | PathLike[str],
    tree: Any,
    *,
    wait: bool = True,
    progress: ReportProgress | bool | None = None,
) -> Saving:
    """Save a pytree as a checkpoint, which `gl.restore` can restore on any grid or mesh.

    path: a folder on a file system that all processes share. tree: `GridArray`s, JAX's and NumPy's
    arrays, random keys, numbers and texts, in dicts, lists, optax's states, dataclasses or any
    other pytree. Other leaves, such as functions, are not saved; `gl.restore` takes them from the
    tree that it is given.

    Each process writes its devices' parts of the storages. The layout's text, the logical shape and
    the dtype of each array are saved with them. The folder is a checkpoint of Orbax
    (`PyTreeCheckpointer`) with digests of all its files.

    A checkpoint at the path is replaced when the new one is complete, so an interrupted save leaves
    the old one intact. Anything else at the path is an error. If the path is a symbolic link, the
    checkpoint is written to its target.

    wait: whether to return only when the checkpoint is complete. With False, the data is copied to
    the host, and the files are written in the background: arrays may be donated, and `.wait()` of
    the result waits. An error is raised there, or in the next `gl.save` or `gl.restore`, which wait
    for the save first. A program that ends waits for it too, and prints the error.

    progress: a function that is called with the bytes of `GridArray`s that this process has
    written, the total, and the seconds so far. By default a bar is shown if the program has a
    terminal and tqdm, and the save takes longer than 2 seconds and is not in the background. False
    shows none.

    `LayoutError`: orbax-checkpoint is not installed; a leaf has no data; a leaf can't be saved,
    because of its type, value or layout; the tree has nothing to save; two leaves have the same
    name; the path exists and is not a checkpoint; the previous save failed; the processes pass
    different trees.

    >>> import gridlayout as gl, jax.numpy as jnp, tempfile
    >>> x = gl.put(jnp.arange(6.0), gl.GridLayout((6,), grid=(4,)), gl.DeviceGrid((1,)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gl.save(f"{folder}/step", {"w": x, "count": 3})
    ...     gl.restore(f"{folder}/step", gl.DeviceGrid((1,)))
    {'count': 3, 'w': GridArray(float32[6], grid 4, on 1 devices)}
    """
    if isinstance(tree, (str, PathLike)) and not isinstance(path, (str, PathLike)):
        raise LayoutError(f"the path comes first: gl.save({shown(tree)}, tree)")
    paths, wait = CheckpointPaths(folder_path(path, _WHAT)), as_flag(wait, "wait")
    check_progress(progress)
    orbax(_WHAT)
    leaves, structure = leaves_of(tree)
    with joint_call(_WHAT, _device_of(leaves), patient=True) as call:
        finish_earlier()
        item, kinds = _encode_tree(leaves, structure, is_copied=not wait)
        paths.check_replaceable()
        lines = _lines(paths.path, leaves)
        call.agree(tuple(lines), lambda: lines, data=lambda: _plain_data(leaves))
        saving = Saving(paths, item, kinds, False if progress is None and not wait else progress)
        if wait:
            saving.wait()
    return saving


@public
class Saving:
    """A save that `gl.save` has started; `wait()` waits for it."""

    _error: Exception | None

    def __init__(
        self, paths: CheckpointPaths, item: Any, kinds: Any, progress: ReportProgress | bool | None
    ) -> None:
        global _last
        self.path = paths.path
        self._paths, self._error, self._number = paths, None, next(_numbers)
        self._shown = reporting(_WHAT, _total(item), progress)
        add = self._shown.__enter__()
        try:
            self._begin(item, kinds, add)
        except BaseException as error:
            self._shown.__exit__(None, None, None)
            if isinstance(error, Exception):  # of Orbax, of the file system
                raise LayoutError(f"gl.save to {str(self.path)!r} failed: {error}") from error
            raise
        self._thread = threading.Thread(target=self._finish, name="gridlayout save")
        _finish_at_exit()
        self._thread.start()
        _last = self

    def __repr__(self) -> str:
        state = "complete" if self.done and self._error is None else "going on"
        return f"Saving({str(self.path)!r}, {'failed' if self._error is not None else state})"

    @property
    def done(self) -> bool:
        """Whether the save is complete or has failed."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the checkpoint is complete; `LayoutError` if the save failed."""
        global _last
        self._thread.join()
        if _last is self:
            _last = None
        if self._error is not None:
            raise LayoutError(
                f"gl.save to {str(self.path)!r} failed; a complete checkpoint is still there, if "
                f"there was one: {self._error}"
            ) from self._error

    def _begin(self, item: Any, kinds: Any, add: Callable[[int], object]) -> None:
        """Copy the data to the host and start Orbax's writes."""
        from gridlayout.ops.checkpoints.handler import GridSaveArgs

        ocp = self._ocp
        if jax.process_index() == 0:
            self._paths.prepare()
        self._sync("prepared")
        args = jax.tree.map(
            lambda x: GridSaveArgs(add=add) if isinstance(x, GridArray) else ocp.SaveArgs(),
            item,
            is_leaf=lambda x: isinstance(x, GridArray),
        )
        self._checkpointer = ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler())
        self._checkpointer.save(
            self._paths.new,
            args=ocp.args.PyTreeSave(item, args, custom_metadata={"gridlayout": kinds}),
        )

    def _finish(self) -> None:
        """Wait until all files are written, then replace the old checkpoint. In the background."""
        try:
            self._checkpointer.wait_until_finished()
            if jax.process_index() == 0:
                write_digests(self._paths.new)
                self._paths.replace()
            self._sync("replaced")
        except Exception as error:  # of Orbax, of the file system; `wait` raises it
            self._error = error
        finally:
            self._shown.__exit__(None, None, None)
            self._checkpointer.close()

    @cached_property
    def _ocp(self) -> Any:
        return orbax(_WHAT)

    def _sync(self, what: str) -> None:
        """Wait for the other processes at the barrier `what`."""
        if jax.process_count() > 1:
            # A barrier of the hosts: the devices continue training.
            barrier = self._ocp.multihost.get_barrier_sync_fn()
            barrier(key=f"gridlayout {what} {self._number}", timeout_ms=_SECONDS * 1000)


_last: Saving | None = None


@cache
def _finish_at_exit() -> None:
    """Register a hook that waits for the last save when the program ends.

    Python's `atexit` runs too late, when no new threads can start. The hook that
    `concurrent.futures` uses runs before that, but is not public.
    """

    def finish() -> None:
        try:
            finish_earlier()
        except LayoutError as error:
            print(f"LayoutError: {error}", file=sys.stderr)

    threading._register_atexit(finish)  # type: ignore[attr-defined]


def finish_earlier() -> None:
    """Wait for an earlier save in the background; `LayoutError` if it failed."""
    if _last is not None:
        _last.wait()


def _encode_tree(leaves: Sequence[Leaf], structure: Any, is_copied: bool) -> tuple[Any, Any]:
    """Return the tree as Orbax takes it, and the metadata with its leaves' kinds by name."""
    from gridlayout.ops.checkpoints.leaves import check_names, encode, name_of

    check_names(leaves)
    made = [encode(leaf, is_copied) for leaf in leaves]
    kinds = {
        name_of(leaf.keys): kind
        for leaf, (_, kind) in zip(leaves, made, strict=True)
        if kind is not None
    }
    if not kinds:
        raise LayoutError("gl.save: the tree has no arrays, numbers or texts: nothing to save")
    values = [value for value, _ in made]
    is_leaf = len(leaves) == 1 and not leaves[0].keys
    item = {ROOT: values[0]} if is_leaf else jax.tree.unflatten(structure, values)
    return item, {"version": VERSION, "kinds": kinds, "is_leaf": is_leaf}


def _device_of(leaves: Sequence[Leaf]) -> DeviceGrid:
    """Return the device grid of the first `GridArray`, or else one of all devices."""
    found = next((leaf.value.device for leaf in leaves if leaf.is_laid_out), None)
    return DeviceGrid((len(jax.devices()),)) if found is None else found


def _lines(path: Path, leaves: Sequence[Leaf]) -> list[str]:
    lines = [f"path: {path}"]
    for leaf in leaves:
        lines.append(str(leaf))
        if leaf.is_laid_out:
            lines += layout_lines(("layout", leaf.value.layout))
    return lines


def _plain_data(leaves: Sequence[Leaf]) -> Compared | None:
    """Return the data of the leaves that one process saves for all."""
    found = [x for x in leaves if x.is_array or x.is_number or isinstance(x.value, str)]
    return local_data([leaf.value for leaf in found], [str(leaf) for leaf in found])


def _total(item: Any) -> int:
    from gridlayout.ops.checkpoints.leaves import bytes_of

    return sum(bytes_of(x) for x in jax.tree.leaves(item) if isinstance(x, GridArray))
