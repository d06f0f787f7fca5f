"""`draw`, `convert` and `explore`: one layout, given as its text. `gallery`: figures of many."""

from __future__ import annotations

import argparse
import re
import sys

from gridlayout.commands import Commands
from gridlayout.commands.shapes import shape_of
from gridlayout.commands.terminal import SUCCEEDED, print_text, refused, warnings_of
from gridlayout.errors import LayoutError
from gridlayout.files import is_path, read_bytes
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import number
from gridlayout.palette import fixed
from gridlayout.text import MAX_TEXT, parse

# What the explorer starts with if no layout is given.
_FIRST = "GridLayout((53, 63), 'float32', grid=(3, 2), tile=(32, 32))"


def add_draw(commands: Commands) -> None:
    """Add `draw`."""
    parser = commands.add_parser("draw", help="draw a layout")
    _add_text(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a .svg, .png or .html file (default: print SVG)"
    )
    parser.add_argument(
        "--view",
        default="logical",
        help="logical (the default), tiles, strides, physical, memory, lanes, slots, halo, flows, "
        "element",
    )
    parser.add_argument(
        "--to", metavar="TEXT", help="of flows: the layout of the same tensor that it moves to"
    )
    parser.add_argument(
        "--index",
        type=_index,
        metavar="I,J",
        help="of element: the index of the element whose way to its byte is shown",
    )
    parser.set_defaults(run=_draw)


def add_convert(commands: Commands) -> None:
    """Add `convert`."""
    parser = commands.add_parser("convert", help="a layout in terms of another system")
    _add_text(parser)
    parser.add_argument(
        "--to",
        metavar="SYSTEM",
        help="document, metal, ttnn, ttnn_document, tt_metal, xla, strided, sophon, megengine, mli",
    )
    parser.set_defaults(run=_convert)


def add_explore(commands: Commands) -> None:
    """Add `explore`."""
    parser = commands.add_parser("explore", help="open a page on which a layout can be changed")
    _add_text(parser, _FIRST)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the page to this file, and open nothing"
    )
    parser.set_defaults(run=_explore)


def add_gallery(commands: Commands) -> None:
    """Add `gallery`."""
    parser = commands.add_parser("gallery", help="write a page of the documents' figures")
    parser.add_argument("path", help="the HTML file to write")
    parser.set_defaults(run=_gallery)


def _add_text(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """The layout that is meant."""
    parser.add_argument(
        "text",
        metavar="FILE|TEXT",
        nargs="?" if default else None,
        default=default,
        help="a layout, such as 'f32[3,5]{1,0:T(8,128)}', a compiler's tensor<...> or "
        "'GridLayout((53, 63), grid=(3, 2))', or a file with one; - for standard input"
        + (f" (default: {default})" if default else ""),
    )
    parser.add_argument(
        "--shape",
        help="of a text that states none, such as #ttcore.metal_layout<...> or {1,0:T(8,128)}: "
        "f32[53,63] or 53x63xf32",
    )


def _index(text: str) -> tuple[int, ...]:
    """Return the index that an option states, such as 20,40."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no index: write --index 20,40"
        ) from None


def _draw(options: argparse.Namespace) -> int:
    try:
        with warnings_of("draw"):
            layout = layout_given("draw", options.text, options.shape)
            given = {} if options.to is None else {"to": parse(options.to)}
        if options.index is not None:
            given["index"] = options.index
        drawing = layout.draw(options.view, **given)
        if options.output is None:
            return print_text(fixed(drawing.svg))
        drawing.save(options.output)
    except (LayoutError, OSError) as error:
        return refused("draw", error)
    print(f"{options.output} shows {drawing.title}")
    return SUCCEEDED


def _convert(options: argparse.Namespace) -> int:
    from gridlayout.conversion.candidates import SYSTEMS
    from gridlayout.conversion.convert import convert

    try:
        with warnings_of("convert"):
            layout = layout_given("convert", options.text, options.shape)
        if options.to is None:
            raise LayoutError(f"to which system? Give --to and one of {', '.join(SYSTEMS)}")
        return print_text(str(convert(layout, options.to)))
    except LayoutError as error:
        return refused("convert", error)


def _explore(options: argparse.Namespace) -> int:
    from gridlayout.explorer.page import explore, has_display

    try:
        with warnings_of("explore"):
            layout = layout_given("explore", options.text, options.shape)
            if options.output is None and not has_display():
                words = "no display to open the page on: write it to a file with -o page.html"
                raise OSError(words)
            page = explore(layout, options.output, open_browser=options.output is None)
    except (LayoutError, OSError) as error:
        return refused("explore", error)
    print(f"the explorer is in {page.path}")
    return SUCCEEDED


def _gallery(options: argparse.Namespace) -> int:
    from gridlayout.gallery import write_gallery

    try:
        print(f"{write_gallery(options.path)} figures are in {options.path}")
    except OSError as error:
        return refused("gallery", error)
    return SUCCEEDED


# What may be the name of a file, and has none of the brackets of a layout.
_NAME = re.compile(r"[\w./\\-]{1,200}")
# A longer text of a layout is not shown in a message.
_SHOWN = 120


def layout_given(command: str, given: str, shape: str | None) -> Layout:
    """Return the layout in a text, in the file of that name, or on standard input for `-`.

    shape: that of a text that states none. `LayoutError` for a compiler's dump names `explain`,
    which lists the layouts in it.
    """
    if given != "-" and not is_path(given):
        if _NAME.fullmatch(given):
            raise LayoutError(
                f"{given!r} is neither a file nor a layout: give a file with the text of a layout, "
                f"or the text, such as 'f32[3,5]{{1,0:T(8,128)}}'"
            )
        return _layout(given, shape)
    data = sys.stdin.buffer.read(MAX_TEXT + 1) if given == "-" else read_bytes(given, MAX_TEXT + 1)
    text = data.decode("utf-8", "replace")
    try:
        return _layout(text, shape)
    except LayoutError:
        if dump := _dump_words(command, given, data):
            raise LayoutError(dump) from None
        raise


def _layout(text: str, shape: str | None) -> Layout:
    text = text.strip()
    encodes, orders = text.startswith("#"), text.startswith("{")
    if shape is None:
        if encodes or orders:
            raise LayoutError(f"{text[:40]!r} states no shape: give one, as in --shape f32[53,63]")
        return parse(text)
    if not encodes and not orders:
        raise LayoutError(f"--shape {shape!r}, but the text states a shape: leave the option out")
    stated = shape_of(shape)
    return parse(f"tensor<{stated.mlir}, {text}>" if encodes else f"{stated.xla}{text}")


def _dump_words(command: str, given: str, data: bytes) -> str:
    """Return what to do with a text that is no layout but has some in it; empty if it has none."""
    from gridlayout.dump.explanation import explain

    found = explain(data, limit=1)
    if not found.layouts:
        return ""
    name = "standard input" if given == "-" else given
    is_whole = len(data) <= MAX_TEXT
    count = number(found.layouts, "layout") if is_whole else "many layouts"
    texts = [text for each in found.findings if len(text := str(each.layout)) <= _SHOWN]
    example = "".join(f", such as '{text}'" for text in texts)
    return (
        f"{name} holds {count}, and {command} takes one: give its text"
        f"{example}; gridlayout explain {given} lists all of them"
    )
