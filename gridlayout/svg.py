"""`Drawing`: a picture as SVG text, and functions that write SVG text.

All external text is escaped by `escape`, so that no name of a dtype or memory space can become
markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from gridlayout.errors import LayoutError
from gridlayout.palette import fixed, style

# Characters that XML 1.0 does not allow: control characters, surrogates and two non-characters.
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


@dataclass(frozen=True, repr=False)
class Drawing:
    """A picture. svg: the complete SVG text. description: what it shows, in words.

    html: the same with foldable parts, as self-contained HTML; empty if it has no such parts.

    Notebooks show it inline by `_repr_html_`, so that hover texts work. What shows no HTML takes an
    image, which has none: SVG in the light theme, or PNG if `resvg-py` is installed
    (`pip install gridlayout[png]`).
    """

    svg: str
    title: str
    description: str
    html: str = ""

    def save(self, path: str | Path) -> None:
        """Write the drawing to an .svg or .png file, or as a page to an .html file.

        SVG and PNG are in the light theme, so that every program shows them; the page follows the
        reader's. Raises `LayoutError` for any other suffix, and for PNG without `resvg-py`.
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".svg", ".png", ".html", ".htm"):
            raise LayoutError(
                f"a drawing is saved as a picture or as a page, not to {str(path)!r}: end the name "
                "in .svg, .png or .html; Inkscape and CairoSVG make other kinds of an .svg file"
            )
        if kind == ".png":
            png = self._repr_png_()
            if png is None:
                raise LayoutError(
                    f"{str(path)!r}: a PNG is made by resvg-py, which is not installed: run pip "
                    "install 'gridlayout[png]', or end the name in .svg"
                )
            path.write_bytes(png)
        else:
            text = self._repr_svg_() if kind == ".svg" else self._page()
            path.write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html or self.svg

    def _repr_svg_(self) -> str:
        return fixed(self.svg)

    def _repr_png_(self) -> bytes | None:
        """Return the picture as PNG, two pixels to a unit; None without `resvg-py`."""
        try:
            from resvg_py import svg_to_bytes
        except ImportError:
            return None
        return bytes(svg_to_bytes(svg_string=fixed(self.svg), zoom=2))

    def _page(self) -> str:
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f'<meta name="color-scheme" content="light dark">{tag("title", escape(self.title))}'
        )
        body = tag("body", self._repr_html_(), style="margin: 1em")
        return f"<!doctype html>\n{tag('html', tag('head', head) + body, lang='en')}\n"

    def __repr__(self) -> str:
        return f"Drawing({self.title!r}, {len(self.svg.encode()):,} B of SVG)"


def drawing(title: str, description: str, width: float, height: float, body: str) -> Drawing:
    """Return the drawing of `body`, of `width` by `height` pixels, with its style and alt text.

    The style rules apply to the id of the `svg` element, which is a hash of the content. So several
    drawings on one page do not affect each other, and equal drawings have equal text.

    >>> drawing("<a>", "One dot.", 8, 8, tag("circle", r=2)).title
    '<a>'
    """
    words = tag("title", escape(title)) + tag("desc", escape(description))
    name = "gl" + sha256((words + body).encode()).hexdigest()[:10]
    svg = tag(
        "svg",
        words + style(name) + hatches(name) + body,
        xmlns="http://www.w3.org/2000/svg",
        id=name,
        role="img",
        aria_label=f"{title}. {description}",
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        width=width,
        height=height,
    )
    return Drawing(svg, title, description)


def hatches(name: str) -> str:
    """Return the hatching patterns of padding and of mixed cells, for the element of this id.

    The two differ in direction.
    """
    size = dict.fromkeys(("width", "height"), 7)
    lines = {"pad": "M-1 1l2 -2M0 7l7 -7M6 8l2 -2", "mix": "M-1 6l2 2M0 0l7 7M6 -1l2 2"}
    patterns = [
        tag(
            "pattern",
            tag("rect", class_=f"{kind}-ground", **size) + tag("path", class_=f"{kind}-line", d=d),
            id=f"{name}-{kind}",
            patternUnits="userSpaceOnUse",
            **size,
        )
        for kind, d in lines.items()
    ]
    return tag("defs", "".join(patterns))


def tag(element: str, content: str = "", /, **attributes: str | float) -> str:
    """Return an element. content: SVG text, not escaped. attributes: values are escaped.

    >>> tag("text", escape("a < b"), class_="label", x=1.25)
    '<text class="label" x="1.2">a &lt; b</text>'
    """
    written = "".join(
        f' {_attribute(name)}="{escape(v) if isinstance(v, str) else _number(v)}"'
        for name, v in attributes.items()
    )
    return f"<{element}{written}>{content}</{element}>" if content else f"<{element}{written}/>"


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _number(value: float) -> str:
    return f"{round(value, 1):g}"


def escape(text: str) -> str:
    """Return `text` as character data: markup escaped, characters that XML forbids replaced.

    >>> escape("<l1>\\x00")
    '&lt;l1&gt;\ufffd'
    """
    return re.sub("[&<>\"']", lambda m: _MARKUP[m[0]], _INVALID.sub("\ufffd", text))
