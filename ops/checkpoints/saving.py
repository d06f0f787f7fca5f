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

from gridlayout.arguments import as_flag
from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.progress import Told, check_progress, told
from gridlayout.ops.checkpoints.files import write_digests
from gridlayout.ops.checkpoints.orbax import orbax
from gridlayout.ops.checkpoints.replacing import Place, as_folder
from gridlayout.ops.trees.leaves import Leaf, leaves_of
from gridlayout.sharding.agreement import crossing, layout_lines
from gridlayout.sharding.device_grid import DeviceGrid

_WHAT = "gl.save"
VERSION = 1
# The name of the leaf of a tree that is one.
ROOT = "value"
# How long processes wait for each other's files, as Orbax does.
_SECONDS = 1200
_numbers = count()


def save(
    path: str | PathLike[str],
    tree: Any,
    *,
    wait: bool = True,
    progress: Told | bool | None = None,
) -> Saving:
    """Save a pytree as a checkpoint, which `gl.restore` brings onto any grid or mesh.

    path: a folder that all processes see. tree: of `GridArray`s, JAX's and NumPy's arrays, random
    keys, numbers and texts, in dicts, lists, optax's states, dataclasses or any other pytree. What
    is none of these, such as a function, is left out, and comes from the tree that `gl.restore` is
    given.

    Each process writes what its devices hold of the storages, and beside them the text of each
    layout, logical shape and dtype. The folder is a checkpoint of Orbax (`PyTreeCheckpointer`)
    with digests of all its files.

    A checkpoint at the path is replaced when the new one is complete: an interrupted save leaves
    it as it was. Something else at the path is not replaced.

    wait: whether to return when the checkpoint is complete. With False the data is copied to the
    host, and the files are written while the program goes on: arrays may be donated, and `.wait()`
    of the result waits. One that failed raises there, or in the next `gl.save`, which waits for it
    first; so does `gl.restore`. A program that ends waits for it, and prints the error.

    progress: a function that is called with the bytes of `GridArray`s that this process has
    written, of how many, and the seconds so far; by default, on a terminal, with tqdm installed and
    unless in the background, a bar of work that takes longer than 2 seconds; False for none.

    `LayoutError`: orbax-checkpoint is not installed; a leaf without data; two leaves of one name;
    a folder at the path that is no checkpoint; the save before this one failed; the processes
    differ.

    >>> import gridlayout as gl, jax.numpy as jnp, tempfile
    >>> x = gl.put(jnp.arange(6.0), gl.GridLayout((6,), grid=(4,)), gl.DeviceGrid((1,)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gl.save(f"{folder}/step", {"w": x, "count": 3})
    ...     gl.restore(f"{folder}/step", gl.DeviceGrid((1,)))
    {'count': 3, 'w': GridArray(float32[6], grid 4, on 1 devices)}
    """
    place, wait = Place(as_folder(path, _WHAT)), as_flag(wait, "wait")
    check_progress(progress)
    orbax(_WHAT)
    leaves, structure = leaves_of(tree)
    with crossing(_WHAT, _device_of(leaves), patient=True) as call:
        finish_earlier()
        item, kinds = _encoded(leaves, structure, is_copied=not wait)
        place.check_replaceable()
        lines = _lines(place.path, leaves)
        call.agree(tuple(lines), lambda: lines)
        saving = Saving(place, item, kinds, False if progress is None and not wait else progress)
        if wait:
            saving.wait()
    return saving


class Saving:
    """A save that `gl.save` began. `wait()` until it is complete, `done` says whether it is."""

    _error: Exception | None

    def __init__(self, place: Place, item: Any, kinds: Any, progress: Told | bool | None) -> None:
        global _last
        self.path = place.path
        self._place, self._error, self._number = place, None, next(_numbers)
        self._shown = told(_WHAT, _total(item), progress)
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
        """Whether it is complete, or has failed."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Until the checkpoint is complete; `LayoutError` where it failed."""
        global _last
        self._thread.join()
        if _last is self:
            _last = None
        if self._error is not None:
            raise LayoutError(
                f"gl.save to {str(self.path)!r} failed, and left what was there as it was: "
                f"{self._error}"
            ) from self._error

    def _begin(self, item: Any, kinds: Any, add: Callable[[int], object]) -> None:
        """Copy the data to the host, and let Orbax write it."""
        from gridlayout.ops.checkpoints.handler import GridSaveArgs

        ocp = self._ocp
        if jax.process_index() == 0:
            self._place.prepare()
        self._sync("prepared")
        args = jax.tree.map(
            lambda x: GridSaveArgs(add=add) if isinstance(x, GridArray) else ocp.SaveArgs(),
            item,
            is_leaf=lambda x: isinstance(x, GridArray),
        )
        self._checkpointer = ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler())
        self._checkpointer.save(
            self._place.new,
            args=ocp.args.PyTreeSave(item, args, custom_metadata={"gridlayout": kinds}),
        )

    def _finish(self) -> None:
        """In the background: wait until the files are there, and put them in their place."""
        try:
            self._checkpointer.wait_until_finished()
            if jax.process_index() == 0:
                write_digests(self._place.new)
                self._place.replace()
            self._sync("replaced")
        except Exception as error:  # of Orbax, of the file system: told by wait
            self._error = error
        finally:
            self._shown.__exit__(None, None, None)
            self._checkpointer.close()

    @cached_property
    def _ocp(self) -> Any:
        return orbax(_WHAT)

    def _sync(self, what: str) -> None:
        """Wait for the other processes."""
        if jax.process_count() > 1:
            # No collective of the devices, which go on training.
            barrier = self._ocp.multihost.get_barrier_sync_fn()
            barrier(key=f"gridlayout {what} {self._number}", timeout_ms=_SECONDS * 1000)


_last: Saving | None = None


@cache
def _finish_at_exit() -> None:
    """Let a program that ends wait for what it saves.

    Python's `atexit` comes too late, when threads start none any more: only the hook that
    `concurrent.futures` uses, which is not public, is before.
    """

    def finish() -> None:
        try:
            finish_earlier()
        except LayoutError as error:
            print(f"LayoutError: {error}", file=sys.stderr)

    threading._register_atexit(finish)  # type: ignore[attr-defined]


def finish_earlier() -> None:
    """Wait for a save that goes on in the background; `LayoutError` where it failed."""
    if _last is not None:
        _last.wait()


def _encoded(leaves: Sequence[Leaf], structure: Any, is_copied: bool) -> tuple[Any, Any]:
    """The tree as Orbax takes it, and the kinds of its leaves by their names."""
    from gridlayout.ops.checkpoints.leaves import check_names, encoded, name_of

    check_names(leaves)
    made = [encoded(leaf, is_copied) for leaf in leaves]
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
    """The devices of the first `GridArray`; without one, all there are."""
    found = next((leaf.value.device for leaf in leaves if leaf.is_laid_out), None)
    return DeviceGrid((len(jax.devices()),)) if found is None else found


def _lines(path: Path, leaves: Sequence[Leaf]) -> list[str]:
    lines = [f"path: {path}"]
    for leaf in leaves:
        lines.append(str(leaf))
        if leaf.is_laid_out:
            lines += layout_lines(("layout", leaf.value.layout))
    return lines


def _total(item: Any) -> int:
    from gridlayout.ops.checkpoints.leaves import bytes_of

    return sum(bytes_of(x) for x in jax.tree.leaves(item) if isinstance(x, GridArray))
