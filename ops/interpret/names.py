"""Names for the leaves of a function's arguments and results, for reports and errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any

import jax


def argument_names(fn: Callable[..., Any], structure: Any) -> list[str]:
    """Return the names of the leaves of `(args, kwargs)`, such as `x`, `params['w']` and `xs[1]`.

    >>> def fn(x, *xs, scale):
    ...     return x
    >>> argument_names(fn, jax.tree.structure(((1, {"a": 2}, 3), {"scale": 4})))
    ['x', "xs[0]['a']", 'xs[1]', 'scale']
    """
    numbered = jax.tree.unflatten(structure, range(structure.num_leaves))
    names = positional_names(fn, len(numbered[0]))
    found = []
    for (which, first, *rest), _ in jax.tree_util.tree_flatten_with_path(numbered)[0]:
        name = str(first.key) if which.idx else names[first.idx]
        found.append(name + jax.tree_util.keystr(tuple(rest)))
    return found


def positional_names(fn: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first `count` positional arguments."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # some builtins have none
        parameters = []
    found: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            return found + [f"{parameter.name}[{k}]" for k in range(count - len(found))]
        if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            found.append(parameter.name)
    return found + [f"argument {k}" for k in range(len(found), count)]


def result_names(structure: Any) -> list[str]:
    """Return the names of the leaves of a result.

    >>> result_names(jax.tree.structure(0)), result_names(jax.tree.structure((0, {"a": 1})))
    (['result'], ['result[0]', "result[1]['a']"])
    """
    numbered = jax.tree.unflatten(structure, range(structure.num_leaves))
    paths = jax.tree_util.tree_flatten_with_path(numbered)[0]
    return [f"result{jax.tree_util.keystr(path)}" for path, _ in paths]


def function_name(fn: Callable[..., Any]) -> str:
    """Return the name of a function, or "a function"; for `__call__` that of its class.

    A function that wraps another one, such as those of `jax.jit`, has the name of that one.

    >>> class Net:
    ...     def __call__(self, x):
    ...         return x
    >>> function_name(argument_names), function_name(lambda x: x), function_name(Net.__call__)
    ('argument_names', 'a function', 'Net')
    """
    name = str(getattr(fn, "__name__", "<"))
    if name.startswith("<") and hasattr(fn, "__wrapped__"):
        with suppress(ValueError):  # one that wraps itself
            name = str(getattr(inspect.unwrap(fn), "__name__", "<"))
    if name == "__call__":
        name = [name, *str(getattr(fn, "__qualname__", "")).split(".")][-2]
    return "a function" if name.startswith("<") else name


def traced_as(
    fn: Callable[..., Any], names: Sequence[str]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: JAX's errors about the wrapper then show the name, file and line of `fn`.

    They also show names of its arrays if each array is one argument; otherwise they number them.
    """

    def name(stand_in: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(stand_in)
        with suppress(ValueError):  # `params['w']` is no identifier
            kind = inspect.Parameter.POSITIONAL_ONLY
            signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        wraps(fn)(stand_in).__signature__ = signature  # type: ignore[attr-defined]
        return stand_in

    return name
