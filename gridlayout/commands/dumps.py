"""`explain` and `compare`: what the layouts in compilers' dumps cost."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from gridlayout.commands import Commands
from gridlayout.commands.terminal import FAILED, print_text, refused
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
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if options.json:
        code = print_text(found.to_json())
    else:
        code = print_text(found.to_html() if options.html else text_of(found, colour, flags=True))
    return FAILED if found.note else code


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
    if options.json:
        return print_text(found.to_json())
    return print_text(found.to_html() if options.html else str(found))


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
