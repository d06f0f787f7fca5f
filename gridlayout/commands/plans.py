"""`plan`: the layouts of a function in a Python module, on a machine.

The module is the user's own, and is run. Other texts are not trusted.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import gridlayout as gl
from gridlayout.commands import Commands
from gridlayout.commands.shapes import shape_of
from gridlayout.commands.terminal import print_text, refused, warnings_of
from gridlayout.errors import LayoutError
from gridlayout.text import parse


def add_plan(commands: Commands) -> None:
    """Add `plan`."""
    parser = commands.add_parser("plan", help="the layouts of a whole program on a machine")
    parser.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="a JAX function in a module that Python can import from here, such as train:step; the "
        "module is run",
    )
    parser.add_argument(
        "shapes",
        metavar="SHAPE",
        nargs="*",
        help="its arguments, as float32[512,64] or bf16[]; arguments that are trees need --args",
    )
    parser.add_argument(
        "--args",
        metavar="FUNCTION",
        help="a function of the module, without arguments, that returns the tuple of arguments: "
        "arrays, or jax.ShapeDtypeStructs",
    )
    parser.add_argument(
        "--machine", metavar="NAME", help="such as 'v5e 4x4' (default: all devices of JAX)"
    )
    parser.add_argument(
        "--fixed",
        metavar="PATH=LAYOUT",
        action="append",
        default=[],
        help='the layout of an argument, such as "params/w=GridLayout((8, 4), grid=(2, 1))"; '
        "may be given several times",
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="time limit of the search (default: 60)"
    )
    parser.add_argument(
        "--overlap", action="store_true", help="take the plan of the least time with overlap"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="also save the plan, for gl.load_plan"
    )
    parser.set_defaults(run=_plan)


def _plan(options: argparse.Namespace) -> int:
    try:
        with warnings_of("plan"):
            fn, args = _function_and_args(options)
            found = gl.plan(
                fn,
                *args,
                machine=options.machine,
                fixed=_fixed(options.fixed),
                seconds=options.seconds,
                overlap=options.overlap,
            )
        if options.output is not None:
            found.save(options.output)
    except (LayoutError, OSError) as error:
        return refused("plan", error, str(error).splitlines()[0])  # JAX's errors have many lines
    code = print_text(str(found))
    if options.output is not None:
        print(f"{options.output} has this plan", file=sys.stderr)
    return code


def _function_and_args(options: argparse.Namespace) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function that is meant, and its arguments."""
    module, _, name = options.function.partition(":")
    if module.endswith(".py"):
        raise LayoutError(f"{module[:60]!r} is a file: name the module, without its ending .py")
    if not re.fullmatch(r"\w+(\.\w+)*:\w+(\.\w+)*", options.function):
        raise LayoutError(
            f"{options.function[:60]!r} must name a module and a function in it, as train:step"
        )
    if (options.args is None) == (not options.shapes):
        raise LayoutError(
            "the arguments of the function are needed in one of two ways: shapes such as "
            "float32[512,64], or --args FUNCTION"
        )
    if options.args is None:
        import jax

        args = tuple(jax.ShapeDtypeStruct(*shape_of(text)) for text in options.shapes)
        return _found(module, name), args
    fn, made = _found(module, name), _found(module, options.args)
    try:
        given = made()
    except Exception as error:
        raise LayoutError(f"{module}:{options.args}() fails: {_words(error)}") from error
    return fn, given if isinstance(given, tuple) else (given,)


def _found(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module, which is imported, also from the current directory."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = import_module(module)
    except (Exception, SystemExit) as error:  # whatever the module raises
        raise LayoutError(f"the module {module} can't be imported: {_words(error)}") from error
    for part in name.split("."):
        if not hasattr(value, part):
            raise LayoutError(f"the module {module} has no {name[:60]!r}: name a function of it")
        value = getattr(value, part)
    if not callable(value):
        raise LayoutError(f"{module}:{name} must be a function, not {type(value).__name__}")
    found: Callable[..., Any] = value
    return found


def _words(error: BaseException) -> str:
    """Return the type of an error, and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _fixed(texts: list[str]) -> dict[str, Any] | None:
    """Return the layouts that `--fixed` states, by the paths of arguments."""
    found = {}
    for text in texts:
        path, equals, layout = text.partition("=")
        if not path or not equals:
            raise LayoutError(
                f"--fixed {text[:60]!r} must be a path and a layout, as "
                '"x=GridLayout((512, 64), grid=(4, 1))"'
            )
        found[path] = parse(layout)
    return found or None
