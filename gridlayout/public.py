"""`public`: arguments that a public function or class does not take raise `LayoutError`.

Python's own `TypeError` counts arguments. This one says which do not fit, what the function takes,
and shows the example of its docstring, which tests run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from sys import modules
from types import FunctionType
from typing import Any, TypeVar, overload

from gridlayout.arguments import shown
from gridlayout.errors import ArgumentsError

_Target = TypeVar("_Target", bound=Callable[..., Any])
_NO_WORDS: Mapping[str, str] = {}
_Kind = inspect.Parameter
BY_PLACE = (_Kind.POSITIONAL_ONLY, _Kind.POSITIONAL_OR_KEYWORD)
_CHECKED = "_checks_arguments"


@overload
def public(target: _Target, /) -> _Target: ...


@overload
def public(*, words: Mapping[str, str]) -> Callable[[_Target], _Target]: ...


def public(target: Any = None, /, *, words: Mapping[str, str] = _NO_WORDS) -> Any:
    """Decorate a function, or a class with its constructor and all public methods that it has.

    Arguments that do not fit raise `ArgumentsError`, a `LayoutError` and a `TypeError`. words: for
    keywords that others have, what to do instead.

    >>> @public(words={"cores": "grid= is the grid of cores"})
    ... def divide(shape, grid=(1, 1)):
    ...     '''Divide a shape.
    ...
    ...     >>> divide((4, 6), grid=(2, 2))
    ...     '''
    >>> divide((4, 6), cores=(2, 2))
    Traceback (most recent call last):
    gridlayout.errors.ArgumentsError: divide has no keyword cores: grid= is the grid of cores; it \
takes (shape, grid=), as in divide((4, 6), grid=(2, 2))
    """
    if target is None:
        return lambda found: public_with(found, words)
    return public_with(target, words)


def public_with(target: Any, words: Mapping[str, str]) -> Any:
    """Return the decorated function, or the class, whose functions are now decorated."""
    if not inspect.isclass(target):
        return _checked(target, words)
    for name in dir(target):
        if name.startswith("_") and name != "__init__":
            continue
        # An inherited function is decorated where it is defined, so that all classes share it.
        owner = next(base for base in target.__mro__ if name in vars(base))
        held = vars(owner)[name]
        owner = owner if owner.__module__.startswith("gridlayout.") else target
        is_bare = isinstance(held, (staticmethod, classmethod))
        fn = held.__func__ if is_bare else held
        if isinstance(fn, FunctionType) and not hasattr(fn, _CHECKED):
            found = _checked(fn, words)
            setattr(owner, name, type(held)(found) if is_bare else found)
    return target


def _checked(fn: Callable[..., Any], words: Mapping[str, str]) -> Any:
    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except TypeError:
            try:
                inspect.signature(fn).bind(*args, **kwargs)
            except TypeError:
                refused = _refusal(fn, args, kwargs, words)
            else:
                raise  # the arguments fit: it is of what the function does
        raise refused

    setattr(call, _CHECKED, True)
    return call


def _refusal(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    words: Mapping[str, str],
) -> ArgumentsError:
    """Return the error for arguments that do not fit the signature of `fn`."""
    parameters = list(inspect.signature(fn).parameters.values())
    owner, docs, of = None, fn.__doc__, fn.__name__
    if args and parameters and parameters[0].name in ("self", "cls"):
        owner = args[0] if inspect.isclass(args[0]) else type(args[0])
        parameters, args = parameters[1:], args[1:]
        if of == "__init__":
            of, docs = owner.__name__, owner.__doc__
    name = _name(fn, owner, of)
    fault = _fault(parameters, args, kwargs, words, owner, of)
    takes = f"it takes {_text(parameters)}{_example(docs, of)}"
    return ArgumentsError(f"{name} {fault}; {takes}")


def _fault(
    parameters: list[inspect.Parameter],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    words: Mapping[str, str],
    owner: Any,
    of: str,
) -> str:
    """Return what is wrong, and what to do."""
    names = [each.name for each in parameters]
    kinds = [each.kind for each in parameters]
    by_place = [each.name for each in parameters if each.kind in BY_PLACE]
    for name in kwargs if _Kind.VAR_KEYWORD not in kinds else ():
        if name not in names:
            near = get_close_matches(name, names, 1)
            said = words.get(name) or (f"did you mean {near[0]}=" if near else "")
            return f"has no keyword {name}{': ' if said else ''}{said}"
    if len(args) > len(by_place) and _Kind.VAR_POSITIONAL not in kinds:
        count = f"takes {len(by_place) or 'no'} positional argument{'s' * (len(by_place) != 1)}"
        fault = f"{count}, and {len(args)} {'is' if len(args) == 1 else 'are'} given, {shown(args)}"
        if len(by_place) == 1 and all(isinstance(each, int) for each in args):
            return f"{fault}: give one sequence, {of}({args})"
        by_name = [f"{each.name}=" for each in parameters if each.kind is _Kind.KEYWORD_ONLY]
        return f"{fault}: state the others by name, {', '.join(by_name)}" if by_name else fault
    if twice := [name for name in by_place[: len(args)] if name in kwargs]:
        return f"is given {twice[0]} twice, by its place and by its name"
    missing = [
        each.name if each.kind in BY_PLACE else f"{each.name}="
        for each in parameters
        if each.default is _Kind.empty and each.kind in (*BY_PLACE, _Kind.KEYWORD_ONLY)
        if each.name not in (*by_place[: len(args)], *kwargs)
    ]
    fault = f"{'also ' if args or kwargs else ''}needs {' and '.join(missing)}"
    if args and isinstance(args[0], str) and hasattr(owner, "parse"):
        return f"{fault}, while {of}.parse(text) reads a text"
    return fault


def _name(fn: Callable[..., Any], owner: Any, of: str) -> str:
    """Return what a user calls it: `gl.put`, `gl.sophon.local`, `GridLayout.locate`."""
    if owner is not None:
        return of if of == owner.__name__ else f"{owner.__name__}.{of}"
    if "." in fn.__qualname__.split("<locals>.")[-1]:  # a static method
        return ".".join(fn.__qualname__.split(".")[-2:])
    library = modules["gridlayout"]
    for part in fn.__module__.split(".")[1:]:
        if part in library.__all__ and hasattr(getattr(library, part), of):
            return f"gl.{part}.{of}"
    return f"gl.{of}" if of in library.__all__ else of


def _text(parameters: list[inspect.Parameter]) -> str:
    """Return the names of parameters as a signature; `=` follows those that have a default."""
    bare = [each.replace(annotation=_Kind.empty, default=_Kind.empty) for each in parameters]
    texts = [
        f"{new}=" if old.default is not _Kind.empty else str(new)
        for old, new in zip(parameters, bare, strict=True)
    ]
    kinds = [each.kind for each in parameters]
    if _Kind.KEYWORD_ONLY in kinds and _Kind.VAR_POSITIONAL not in kinds:
        texts.insert(kinds.index(_Kind.KEYWORD_ONLY), "*")
    return f"({', '.join(texts)})"


def _example(docs: str | None, of: str) -> str:
    """Return the first call in a docstring's examples, if there is one."""
    examples = re.findall(r">>> (.*(?:\n *\.\.\. .*)*)", docs or "")
    for code in (re.sub(r"\n *\.\.\. *", " ", each) for each in examples):
        if found := re.search(rf"\b{re.escape(of)}\(", code):
            for end in range(found.end(), len(code) + 1):
                call = code[found.start() : end]
                if call.endswith(")") and call.count("(") == call.count(")"):
                    return f", as in {call}"
    return ""
