"""`explain` and `compare`: what the layouts in compilers' dumps cost."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gridlayout.commands import Commands
from gridlayout.commands.terminal import FAILED, SUCCEEDED, print_text, refused
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import CHIPS

# Shorter files are read before anyone could wonder.
_SHOWN_FROM = 16 << 20


def add_explain(commands: Commands) -> None:
    """Add `explain`."""
    parser = commands.add_parser("explain", help="what the layouts in a compiler dump cost")
    parser.add_argument(
        "source",
        metavar="FILE|TEXT",
        help="a dump: tt-mlir IR or HLO; - for standard input; what is no file is taken as a text, "
        "such as 'f32[3,5]{1,0:T(8,128)}'",
    )
    _add_form(parser)
    parser.add_argument(
        "--plan",
        action="store_true",
        help="look for layouts that waste less, on more cores where they do not fit",
    )
    _add_choice(parser)
    parser.add_argument("--limit", type=int, default=50, help="rows of a table (default: 50)")
    parser.set_defaults(run=_explain)


def add_compare(commands: Commands) -> None:
    """Add `compare`."""
    parser = commands.add_parser("compare", help="dumps of one function, side by side")
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="+",
        help="two dumps or more of one function, such as one at several levels of optimization; - "
        "for standard input",
    )
    _add_form(parser)
    _add_choice(parser)
    parser.set_defaults(run=_compare)


def _add_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file: .html, .json, else text"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--html", action="store_true", help="print a page of HTML")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Which pass, function and chip are meant."""
    parser.add_argument(
        "--pass",
        dest="pass_name",
        metavar="PASS",
        help="of a dump of several passes the one meant: its number, or a part of its title "
        "(default: the last)",
    )
    parser.add_argument("--function", help="the function meant (default: all)")
    parser.add_argument(
        "--chip",
        choices=CHIPS,
        help="whose memory is meant (default: the dump's own, else wormhole)",
    )


def _explain(options: argparse.Namespace) -> int:
    from gridlayout.dump.explanation import explain
    from gridlayout.dump.pages.table import text_of, with_flags

    try:
        found = explain(
            sys.stdin.buffer if options.source == "-" else options.source,
            chip=CHIPS.get(options.chip),
            limit=options.limit,
            plan=options.plan,
            progress=_progress(options.source),
            pass_name=_pass(options.pass_name),
            function=options.function,
        )
    except LayoutError as error:
        return refused("explain", error, with_flags(str(error)))
    to_file = options.output is not None
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not to_file
    code = _give("explain", found, options, lambda: text_of(found, colour, flags=True))
    return code or (FAILED if found.note else code)


def _compare(options: argparse.Namespace) -> int:
    from gridlayout.dump.compare import compare
    from gridlayout.dump.pages.table import with_flags

    try:
        sources = [sys.stdin.buffer if name == "-" else name for name in options.sources]
        if options.sources.count("-") > 1:
            raise LayoutError("standard input is one dump: give - once")
        found = compare(
            *sources,
            chip=CHIPS.get(options.chip),
            pass_name=_pass(options.pass_name),
            function=options.function,
        )
    except LayoutError as error:
        return refused("compare", error, with_flags(str(error)))
    return _give("compare", found, options, found.__str__)


def _give(command: str, found: Any, options: argparse.Namespace, text: Callable[[], str]) -> int:
    """Print a result in the form that the options state, or write it to their file."""
    name = options.output
    form = Path(name).suffix.lower() if name is not None else ""
    if options.json or (form == ".json" and not options.html):
        given = found.to_json()
    else:
        given = found.to_html() if options.html or form in (".html", ".htm") else text()
    if name is None:
        return print_text(given)
    try:
        Path(name).write_text(given.rstrip("\n") + "\n", encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        return refused(command, error)
    print(f"{name} has the result of {command}")
    return SUCCEEDED


def _pass(text: str | None) -> str | int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else text


def _progress(source: str) -> Callable[[int], None] | None:
    """A counter on standard error, for large files and a person who waits."""
    try:
        total = os.path.getsize(source)
    except (OSError, ValueError):
        total = 0
    if not sys.stderr.isatty() or (total < _SHOWN_FROM and source != "-"):
        return None
    done, shown = 0, 0.0

    def add(count: int) -> None:
        nonlocal done, shown
        done += count
        if time.monotonic() - shown > 0.2 or done == total:
            shown = time.monotonic()
            of = f" of {total >> 20}" if total else ""
            end = "\r\x1b[K" if done == total else ""
            print(f"\rread {done >> 20}{of} MiB{end}", end="", file=sys.stderr, flush=True)

    return add
