"""The layout that is requested for each leaf of a tree: by a rule, path patterns, or another tree.

Forms of `layouts` (`gl.put`, `gl.relayout`):

* None: no request, which leaves the layout to the caller's default;
* a rule, `(shape, dtype) -> layout`, called once for each shape and dtype of the arrays of rank 1
  and more, except random keys;
* "replicated": the rule by which every device has all of every array;
* a `NamedSharding`, or a `PartitionSpec` on the mesh of the device grid: the rule `GridLayout.of`;
* a dict of path patterns, `{"*/kernel": layout or rule or None}`: the first that matches;
* a tree of layouts, rules, specs and None, of the structure of the tree or a prefix of it;
* a tree with `GridArray`s: each leaf takes the layout of the one whose path is a suffix of its own;
* a plan of `gl.plan`: each leaf takes the layout of the argument where one of both paths is a
  suffix of the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from gridlayout.arguments import Shape, shown
from gridlayout.document.grid_layout import GridLayout
from gridlayout.document.partitions import stated
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.policy import REPLICATED, is_replicated, replicated
from gridlayout.ops.trees.leaves import Leaf, is_grid, keys_of, leaves_of
from gridlayout.sharding.device_argument import as_device, device_in_use
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.logical_sharding import layout_of_spec

Rule = Callable[[Shape, Any], Layout | None]
# The request for one leaf: None is the caller's default, a str is "replicated".
Request = Layout | Rule | Sharding | PartitionSpec | str | None


class ByPath:
    """Layouts of the arrays of a tree by their paths, which start with an argument's name."""

    layouts: Mapping[str, Layout | None]


_FORMS = (
    f"a gl.Layout, {REPLICATED!r}, a rule (shape, dtype) -> layout, a PartitionSpec, a "
    "NamedSharding, or None for the default"
)


def requested_layouts(
    layouts: Any, tree: Any, leaves: Sequence[Leaf], device: DeviceGrid | None = None
) -> list[Layout | None]:
    """Return the layout requested for each leaf.

    device: the device grid of specs; by default that of the leaf. None where no layout is
    requested, and for leaves that rules are not called for. `LayoutError` for patterns that match
    nothing, a tree of another structure, and values that are no layouts.
    """
    requests = _requests(layouts, tree, leaves)
    found: list[Layout | None] = []
    given: dict[Any, Layout | None] = {}  # what rules gave for a shape and a dtype
    for request, leaf in zip(requests, leaves, strict=True):
        if not callable(request) or not leaf.has_layout or leaf.is_laid_out:
            found.append(_layout_of(request, leaf, device))
            continue
        with leaf.named():
            key = id(request), leaf.shape, leaf.dtype
        if key not in given:
            given[key] = _layout_of(request, leaf, device)
        found.append(given[key])
    return found


def _requests(layouts: Any, tree: Any, leaves: Sequence[Leaf]) -> list[Request]:
    if isinstance(layouts, ByPath):
        return [_planned(layouts.layouts, leaf) for leaf in leaves]
    if _is_request(layouts):
        return [layouts] * len(leaves)
    if isinstance(layouts, dict) and all(
        isinstance(key, str) and _is_request(request) for key, request in layouts.items()
    ):
        return _by_patterns(layouts, leaves)
    given = jax.tree.leaves(layouts, is_leaf=_is_laid)
    if any(map(is_grid, given)) and not any(isinstance(x, Layout) for x in given):
        return _by_arrays(layouts, leaves)
    return _by_prefix(layouts, tree)


def _planned(layouts: Mapping[str, Layout | None], leaf: Leaf) -> Layout | None:
    """Return the layout of the argument that a leaf belongs to; None if it can have none."""
    if not leaf.has_layout:
        return None
    found: dict[Layout, str] = {}
    for path, layout in layouts.items():
        ends = f"/{path}".endswith(f"/{leaf.path}") or f"/{leaf.path}".endswith(f"/{path}")
        is_it = (ends or not leaf.keys) and layout is not None and layout.shape == leaf.shape
        if is_it and layout is not None and layout.dtype == leaf.dtype:
            found.setdefault(layout, path)
    if len(found) == 1:
        return next(iter(found))
    paths = ", ".join(map(repr, found.values() if found else layouts))
    which = (
        f"may be any of {paths}: put it in a tree whose path says which"
        if found
        else (
            f"is no argument of the plan, which has {paths}, or has another shape or type there: "
            "plan.put(args) takes all arguments of the planned function, as a tuple"
        )
    )
    raise LayoutError(f"{leaf} {which}")


def _is_request(x: Any) -> bool:
    # Models are callable too, but they are trees.
    is_rule = callable(x) and jax.tree_util.all_leaves([x])
    return x is None or isinstance(x, Layout) or is_rule or is_replicated(x) or is_spec(x)


def _is_laid(x: Any) -> bool:
    return isinstance(x, (Layout, GridArray))


def is_spec(x: Any) -> bool:
    """Return whether it is a sharding of JAX, or a spec of one.

    >>> is_spec(PartitionSpec("x")), is_spec("x")
    (True, False)
    """
    return isinstance(x, (PartitionSpec, Sharding))


def has_specs(layouts: Any) -> bool:
    """Return whether it is a spec, or a tree that holds one."""
    return any(map(is_spec, jax.tree.leaves(layouts, is_leaf=_is_laid)))


def device_of_specs(layouts: Any) -> DeviceGrid:
    """Return the device grid of the first `NamedSharding`, or for specs alone of the mesh in use.

    `LayoutError` for specs alone if no mesh is set.
    """
    every = jax.tree.leaves(layouts, is_leaf=_is_laid)
    found = next((x.mesh for x in every if isinstance(x, NamedSharding)), None)
    if found is None and (device := device_in_use()) is not None:
        return device
    if found is None:
        spec = next(filter(is_spec, every))
        if not isinstance(spec, PartitionSpec):
            stated(spec)  # raises: it is no NamedSharding
        raise LayoutError(
            f"the PartitionSpec {shown(spec)} states no devices: give a mesh after it, as in "
            "gl.put(x, spec, mesh), or a NamedSharding(mesh, spec), or set one with "
            "jax.set_mesh(mesh)"
        )
    return as_device(found)


def of_spec(request: Any, leaf: Leaf, device: DeviceGrid | None) -> Layout | None:
    """Return the layout of an array by a sharding, or by a spec on the mesh of its device grid."""
    if not leaf.has_layout:
        return None
    with leaf.named():
        if device is None:
            device = leaf.value.device if leaf.is_laid_out else device_of_specs(request)
        return layout_of_spec(leaf.shape, leaf.dtype, request, device)


def _layout_of(request: Request, leaf: Leaf, device: DeviceGrid | None) -> Layout | None:
    if request is None or isinstance(request, Layout):
        return request
    if is_spec(request):
        return of_spec(request, leaf, device)
    if not leaf.has_layout:
        return None
    with leaf.named():
        shape, dtype = leaf.shape, leaf.dtype
        if isinstance(request, str):
            return replicated(shape, dtype, leaf.value.layout if leaf.is_laid_out else None)
        rule: Any = request
        try:
            found = rule(shape, dtype)
        except Exception as error:  # raised by the user's rule
            raise LayoutError(
                f"the rule {_name(request)} failed on ({shape}, {dtype.name}): {error}"
            ) from error
    if is_spec(found):
        return of_spec(found, leaf, device)
    with leaf.named():
        if found is not None and not isinstance(found, Layout):
            raise LayoutError(
                f"the rule {_name(request)} gave {shown(found)}; it must give a gl.Layout, or a "
                "sharding or a PartitionSpec of JAX"
            )
    return found


def _name(rule: Any) -> str:
    return str(getattr(rule, "__name__", repr(rule)))


# -- patterns --------------------------------------------------------------------------------------


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path, or a tree that the path leads through.

    `*` matches any characters, slashes too; `?` matches one, `[ab]` one of these; a leading `*/`
    also matches nothing.

    >>> matches("*/kernel", "params/Dense_0/kernel"), matches("*/kernel", "kernel")
    (True, True)
    >>> matches("params", "params/w"), matches("kernel", "params/kernel")
    (True, False)
    """
    names = (path, f"/{path}")
    # The path itself is a pattern too, even if it has brackets, as `args[0]` has.
    return any(
        name == pattern or name.startswith(f"{pattern}/") or fnmatchcase(name, p)
        for name in names
        for p in (pattern, f"{pattern}/*")
    )


def _by_patterns(patterns: dict[str, Request], leaves: Sequence[Leaf]) -> list[Request]:
    requests: list[Request] = []
    used = set()
    for leaf in leaves:
        first = next((p for p in patterns if matches(p, leaf.path)), None)
        used.add(first)
        requests.append(None if first is None else patterns[first])
    for pattern in patterns:
        if pattern not in used:
            raise LayoutError(_unused(pattern, patterns, leaves))
    return requests


def _unused(pattern: str, patterns: dict[str, Request], leaves: Sequence[Leaf]) -> str:
    paths = [leaf.path for leaf in leaves]
    taken = next((path for path in paths if matches(pattern, path)), None)
    if taken is not None:
        first = next(p for p in patterns if matches(p, taken))
        return (
            f"pattern {pattern!r} is never the first to match: {first!r} before it takes "
            f"{taken!r}; put {pattern!r} first"
        )
    near = get_close_matches(pattern.replace("*", ""), paths, 3, 0.3) or paths[:3]
    return (
        f"pattern {pattern!r} matches no leaf; paths here are such as "
        f"{', '.join(map(repr, near)) or 'none, as the tree has no leaves'}; * stands for any "
        "characters, slashes too"
    )


# -- trees -----------------------------------------------------------------------------------------


def _by_prefix(layouts: Any, tree: Any) -> list[Request]:
    def is_leaf(x: Any) -> bool:
        return x is None or _is_laid(x)

    for path, request in jax.tree_util.tree_flatten_with_path(layouts, is_leaf=is_leaf)[0]:
        if not (_is_request(request) or is_grid(request)):
            at = "/".join(keys_of(path))
            axis = f". Along an axis of a mesh: P({request!r})" if isinstance(request, str) else ""
            raise LayoutError(
                f"layouts: {shown(request)}{f' at {at!r}' if at else ''} must be {_FORMS}{axis}"
            )
    try:
        spread = jax.tree.map(
            lambda request, part: _Requests(request, len(jax.tree.leaves(part, is_leaf=is_grid))),
            *(layouts, tree),
            is_leaf=is_leaf,
        )
    except ValueError as error:
        raise LayoutError(
            "the tree of layouts has another structure than the arrays: give it that structure, "
            f'or a prefix of it, or path patterns such as {{"*/kernel": ...}}: {error}'
        ) from error
    found = jax.tree.leaves(spread)
    return [each.request for each in found for _ in range(each.count)]


class _Requests:
    """A request for all the leaves of a part of a tree."""

    def __init__(self, request: Any, count: int) -> None:
        self.request: Request = request.layout if is_grid(request) else request
        self.count = count


def _by_arrays(arrays: Any, leaves: Sequence[Leaf]) -> list[Request]:
    """Return for each leaf the layout of the array with the longest path that ends the leaf's path.

    None where no path does, and where the shapes differ.
    """
    laid = {leaf.keys: leaf.value.layout for leaf in leaves_of(arrays)[0] if leaf.is_laid_out}
    requests: list[Request] = []
    lost = None
    for leaf in leaves:
        ends = (leaf.keys[k:] for k in range(len(leaf.keys) + 1))
        layout = next((laid[end] for end in ends if end in laid), None)
        if layout is None and leaf.has_layout:
            lost = leaf
        if layout is not None and leaf.is_array and not leaf.is_key and leaf.shape == layout.shape:
            requests.append(_of_dtype(layout, leaf))
        else:
            requests.append(None)
    if lost is not None and not any(requests):
        raise LayoutError(
            f"{lost} and all other leaves take their layouts from no array of layouts: a leaf's "
            f"path must end with the path of an array, such as {'/'.join(next(iter(laid)))!r}"
        )
    return requests


def _of_dtype(layout: Layout, leaf: Leaf) -> Layout:
    """Return the layout with the leaf's element type, and with an undef oob."""
    if leaf.dtype == layout.dtype:
        return layout.with_oob(None)
    return layout.with_dtype(leaf.dtype)


def warn_of_idle_cores(layout: Any, stacklevel: int) -> None:
    """Emit a `LayoutWarning` where cores of a layout's grid can hold no element at all.

    stacklevel: the caller's, as `warnings.warn` takes it.

    >>> warn_of_idle_cores(GridLayout((16,), grid=(1, 8)), 1)
    """
    if not isinstance(layout, GridLayout) or 0 in layout.shape:
        return
    grid, sizes = layout.grid, layout.collapsed_shape
    if all(cores <= n for cores, n in zip(grid, sizes, strict=True)):
        return
    used = prod(-(-n // s) for n, s in zip(sizes, layout.shard_shape, strict=True))
    rule = "a core along a dim needs an element of it"
    if len(grid) > layout.ndim:
        rule = f"a grid of rank {len(grid)} has more dims than a tensor of rank {layout.ndim}"
    best = (min(prod(grid), layout.size),) if layout.ndim == 1 else tuple(map(min, grid, sizes))
    warnings.warn(
        f"grid {grid} leaves {prod(grid) - used} of {prod(grid)} cores idle: {rule}, and the shape "
        f"{layout.shape} is collapsed to {sizes}; give grid={best}",
        LayoutWarning,
        stacklevel=stacklevel + 1,
    )
