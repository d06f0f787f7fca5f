"""`gl.restore`: restores arrays to any grid, tile, linear map, mesh or number of processes."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.parts import volume_of
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.in_parts import local_parts
from gridlayout.ops.array.policy import fill_devices
from gridlayout.ops.array.progress import ReportProgress, check_progress, reporting
from gridlayout.ops.checkpoints.files import check_digests
from gridlayout.ops.checkpoints.orbax import orbax
from gridlayout.ops.checkpoints.reading import Add, restore_array, restore_sharded
from gridlayout.ops.checkpoints.replacing import CheckpointPaths, folder_path, is_checkpoint
from gridlayout.ops.checkpoints.saving import finish_earlier
from gridlayout.ops.trees.layouts import (
    device_of_specs,
    has_specs,
    is_spec,
    of_spec,
    requested_layouts,
)
from gridlayout.ops.trees.leaves import Leaf, leaves_of
from gridlayout.public import public
from gridlayout.sharding.device_argument import device_in_use, of_mesh
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.agreement import joint_call

if TYPE_CHECKING:
    from gridlayout.ops.checkpoints.contents import Contents, SavedLeaf

_WHAT = "gl.restore"


@public
def restore(
    path: str | PathLike[str],
    like_or_device: Any = None,
    layouts: Any = None,
    *,
    progress: ReportProgress | bool | None = None,
) -> Any:
    """Return the tree of a checkpoint, its arrays in the requested layouts and on these devices.

    path: a checkpoint of `gl.save`, or one of Orbax (`StandardCheckpointer`, `PyTreeCheckpointer`,
    a step or an item of `CheckpointManager`) of `GridArray`s or of plain arrays. like_or_device:

    * A `gl.DeviceGrid`: restore the whole tree, in dicts and lists, on these devices. `GridArray`s
      get the layouts that they were saved in, other arrays their type. In checkpoints that
      `gl.save` did not write, plain arrays of rank 1 and more are laid out as `gl.put` does.
    * None: the whole tree too, on the devices of the mesh that `jax.set_mesh` has set, or else on a
      mesh like that of the save.
    * A tree: the result has its structure. A `GridArray`, with or without data, gives a `GridArray`
      in its layout on its devices. A `gl.Layout` gives one in that layout, and a
      `jax.ShapeDtypeStruct` the saved array, in its saved layout if it has one; both on the devices
      of the tree's first `GridArray`, or else as for None. A `jax.ShapeDtypeStruct` with a sharding
      and a `jax.Array` give a `jax.Array` with that sharding, NumPy arrays give NumPy arrays.
      Leaves that the tree lacks are not restored. Leaves that checkpoints don't hold, such as
      functions, are taken from the tree.
    * A `jax.sharding.NamedSharding`, a `PartitionSpec`, or a tree of them, which state layouts as
      for `gl.put`. One for a tree is for all arrays in it, and gives that tree in dicts and lists.

    layouts: the layouts to restore arrays to instead, in the forms that `gl.put` takes (a rule,
    path patterns, a tree). After a tree it may also be the devices, a `gl.DeviceGrid` or a mesh,
    for leaves that state none: `restore(path, specs, mesh)`.

    The processes share the reading of all files for the digests. Of arrays that get a layout or a
    sharding, each then reads only what its devices hold. Other arrays are read whole.

    progress: as for `gl.save`, of bytes read.

    `LayoutError`: there is no checkpoint at the path; a file is damaged, truncated, missing or of
    another checkpoint (the error names it); the checkpoint lacks a leaf; a shape or dtype differs
    from the requested one; another process has an error.

    >>> import gridlayout as gl, jax, jax.numpy as jnp, tempfile
    >>> device = gl.DeviceGrid((1,))
    >>> x = gl.put(jnp.arange(6.0), gl.GridLayout((6,), grid=(4,)), device)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gl.save(f"{folder}/step", {"w": x})
    ...     gl.restore(f"{folder}/step", {"w": gl.GridLayout((6,), grid=(2,))})
    ...     gl.restore(f"{folder}/step", jax.sharding.PartitionSpec("x"), device.mesh)
    {'w': GridArray(float32[6], grid 2, on 1 devices)}
    {'w': GridArray(float32[6], grid 1, on 1 devices)}
    """
    paths = CheckpointPaths(folder_path(path, _WHAT))
    check_progress(progress)
    orbax(_WHAT)
    from gridlayout.ops.checkpoints.contents import Contents

    like = device_in_use() if like_or_device is None else of_mesh(like_or_device)
    layouts = of_mesh(layouts)
    device = _device_of(like, layouts)
    if device is not None:
        device.check_has_devices(_WHAT)
    common = DeviceGrid((len(jax.devices()),)) if device is None else device
    with joint_call(_WHAT, common, patient=True) as call:
        finish_earlier()
        try:
            folder = _folder_of(paths.complete())
            check_digests(folder, *_share(common))
        except OSError as error:
            raise LayoutError(f"{str(paths.path)!r} can't be read: {error}") from error
        layouts = None if isinstance(layouts, DeviceGrid) else layouts
        tree = _Tree(Contents(folder), like, layouts, device)
        found = tree.read(progress)
        lines = [f"path: {folder}", *tree.lines]
        call.agree(tuple(lines), lambda: lines)
    return found


def _device_of(like: Any, layouts: Any) -> DeviceGrid | None:
    """Return the device grid that the arguments state, or that of the first `GridArray`."""
    given = [x for x in (like, layouts) if isinstance(x, DeviceGrid)]
    if len(given) > 1:
        raise LayoutError("gl.restore(path, device, layouts) takes devices once, not twice")
    first = next((x.value.device for x in leaves_of(like)[0] if x.is_laid_out), None)
    found = given[0] if given else first
    found = device_of_specs(like) if found is None and has_specs(like) else found
    return device_in_use() if found is None else found


def _share(device: DeviceGrid) -> tuple[int, int]:
    """Return (first, step): this process checks every `step`-th file from number `first` on."""
    processes, own = device.processes, jax.process_index()
    return (processes.index(own), len(processes)) if own in processes else (0, 1)


def _folder_of(path: Path) -> Path:
    """Return the folder of a tree: `path`, or its item `default` if Orbax saved a step there."""
    for each in (path, path / "default"):
        if is_checkpoint(each):
            return each
    inside = sorted(each.parent.name for each in path.glob("*/_METADATA"))
    if inside:
        below = f"but its folders {', '.join(map(repr, inside))} do: give the path of one"
    else:
        below = "and its folders hold none"
    raise LayoutError(f"{str(path)!r} holds no checkpoint of a tree, {below}")


@dataclass(frozen=True)
class _Target:
    """How a leaf is restored: as a `GridArray` if it has a layout, else as saved or requested."""

    leaf: Leaf
    saved: SavedLeaf | None
    layout: Layout | None = None
    device: DeviceGrid | None = None


class _Tree:
    """The tree to restore. All leaves are checked before the first one is read."""

    def __init__(
        self, contents: Contents, like: Any, layouts: Any, device: DeviceGrid | None
    ) -> None:
        self.contents, self.device = contents, device
        self.is_whole = like is None or isinstance(like, DeviceGrid)
        leaves, self.structure = leaves_of(contents.tree if self.is_whole else self._filled(like))
        saved = [self._saved(leaf) for leaf in leaves]
        both = list(zip(leaves, saved, strict=True))
        structs = [leaf.value if found is None else found.struct for leaf, found in both]
        tree = jax.tree.unflatten(self.structure, structs)
        arrays = leaves_of(tree)[0]
        requested = requested_layouts(layouts, tree, arrays, device)
        self.targets = []
        for (leaf, found), array, layout in zip(both, arrays, requested, strict=True):
            if layout is None and is_spec(leaf.value):
                layout = of_spec(leaf.value, array, device)
            with leaf.named():
                self.targets.append(self._target(leaf, found, layout))

    def _filled(self, like: Any) -> Any:
        """Return `like` with each spec of a tree in the checkpoint as one of each of its leaves."""
        leaves, structure = leaves_of(like)
        found = [
            jax.tree.map(lambda _, spec=leaf.value: spec, self.contents.below(leaf.keys))
            if is_spec(leaf.value)
            else leaf.value
            for leaf in leaves
        ]
        return jax.tree.unflatten(structure, found)

    def _like(self, leaf: Leaf) -> Any:
        """Return the array or the layout that a leaf is to be like, if any."""
        return None if self.is_whole or is_spec(leaf.value) else leaf.value

    @property
    def lines(self) -> list[str]:
        """One line per leaf, which must be the same in all processes."""
        return [f"{each.leaf.path}: {each.layout!r}" for each in self.targets]

    def _saved(self, leaf: Leaf) -> SavedLeaf | None:
        """Return the saved leaf; None if checkpoints don't hold such leaves."""
        from gridlayout.ops.checkpoints.leaves import name_of

        found = self.contents.saved.get(name_of(leaf.keys))
        states = isinstance(leaf.value, (str, Layout)) or is_spec(leaf.value)
        is_saved = leaf.is_array or leaf.is_number or states
        if found is None and is_saved and not self.is_whole:
            names = [name.replace(".", "/") for name in self.contents.saved]
            near = get_close_matches(leaf.path, names, 3, 0.3) or names[:3]
            raise LayoutError(
                f"{leaf} is not in the checkpoint {str(self.contents.folder)!r}, which has, for "
                f"example, {', '.join(map(repr, near))}"
            )
        return found

    def _target(self, leaf: Leaf, saved: SavedLeaf | None, layout: Layout | None) -> _Target:
        if saved is None or saved.is_text or saved.is_number or saved.is_key:
            if layout is not None or isinstance(leaf.value, (Layout, GridArray)):
                raise LayoutError("it was not saved as an array of numbers, so it has no layout")
            return _Target(leaf, saved)
        like = self._like(leaf)
        _check_like(like, saved)
        if layout is None:
            layout = self._layout(like, saved)
        _check_like(layout, saved)
        if layout is None:
            return _Target(leaf, saved)
        device = like.device if isinstance(like, GridArray) else self._device(saved)
        layout.check_invertible()
        device.sharding(layout)
        return _Target(leaf, saved, layout, device)

    def _layout(self, like: Any, saved: SavedLeaf) -> Layout | None:
        """Return the layout of a leaf by default; None if it is restored as a plain array."""
        if isinstance(like, Layout):
            return like
        if isinstance(like, GridArray):
            return like.layout
        is_plain = isinstance(like, (jax.Array, np.ndarray, np.generic))
        if is_plain or getattr(like, "sharding", None) is not None:
            return None
        if saved.record is not None:
            return saved.record.layout
        if self.contents.by_gridlayout or not saved.shape or not self.is_whole:
            return None
        return fill_devices(saved.shape, saved.dtype, None, self._device(saved))

    def _device(self, saved: SavedLeaf) -> DeviceGrid:
        if self.device is not None:
            return self.device
        if saved.record is not None:
            return saved.record.device()
        raise LayoutError(
            "neither the tree nor the checkpoint has devices for it: pass the tree of "
            "gl.put(structs, device, layouts), or gl.restore(path, device, layouts), or set a mesh "
            "with jax.set_mesh(mesh)"
        )

    def read(self, progress: ReportProgress | bool | None) -> Any:
        """Read all leaves and return the tree."""
        total = sum(_bytes(each) for each in self.targets)
        made = []
        with reporting(_WHAT, total, progress) as add:
            for each in self.targets:
                with each.leaf.named():
                    made.append(self._made(each, add))
        return jax.tree.unflatten(self.structure, made)

    def _made(self, target: _Target, add: Add) -> Any:
        saved, like = target.saved, self._like(target.leaf)
        if saved is None:
            return like
        if target.layout is not None and target.device is not None:
            return restore_array(saved.stored, target.layout, target.device, saved.record, add)
        if saved.is_key or target.leaf.is_key:
            key: Any = target.leaf.value
            return saved.keys(str(jax.random.key_impl(key)) if target.leaf.is_key else None)
        if saved.is_text or saved.is_number:
            return saved.value()
        return self._plain(saved, like)

    def _plain(self, saved: SavedLeaf, like: Any) -> Any:
        """Read an array without a layout: as NumPy's or JAX's, as requested or as saved."""
        if isinstance(like, (np.ndarray, np.generic)):
            found = np.asarray(saved.value())
            return found[()] if isinstance(like, np.generic) else found
        sharding = getattr(like, "sharding", None)
        if sharding is None and saved.kind.get("kind") in ("numpy", "scalar"):
            return saved.value()
        if sharding is None and self.device is not None:
            sharding = self.device.replicated
        if sharding is None or saved.stored is None:
            return jax.numpy.asarray(saved.value())
        return restore_sharded(saved.stored, sharding)


def _check_like(like: Any, saved: SavedLeaf) -> None:
    """`LayoutError` if an array or a layout has another shape or dtype than the saved array."""
    shape, dtype = getattr(like, "shape", None), getattr(like, "dtype", None)
    if shape is not None and tuple(shape) != saved.shape:
        raise LayoutError(f"the checkpoint has shape {saved.shape} for it, not {tuple(shape)}")
    if dtype is not None and dtype != saved.dtype:
        raise LayoutError(
            f"the checkpoint has it as {saved.dtype.name}, not {dtype}: restore it in that dtype, "
            "then convert it, such as with gl.on_grid(lambda x: x.astype(dtype))"
        )


def _bytes(target: _Target) -> int:
    """Return the bytes of a target that this process's devices hold."""
    if target.layout is None or target.device is None:
        return 0
    parts = local_parts(target.layout, target.device)
    elements = sum(volume_of(box) for part, _ in parts for box in part.boxes)
    return elements * target.layout.dtype.itemsize
