"""`Drawing`: a picture as SVG text; and the few functions that write SVG text.

Whatever comes from outside goes through `escape` on its way into the text, so no name of a dtype
or of a memory space can become markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from gridlayout.errors import LayoutError
from gridlayout.palette import style

# What XML 1.0 has no way to say: control characters, surrogates and two non-characters.
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


@dataclass(frozen=True, repr=False)
class Drawing:
    """A picture: `svg` is the whole text, `description` says in words what it shows.

    html: the same with parts that fold, where it has such parts; needs nothing beside itself.

    Notebooks show it inline, so that the browser shows what is under the mouse: JupyterLab puts
    what `_repr_svg_` gives into an image, in which nothing can be hovered.
    """

    svg: str
    title: str
    description: str
    html: str = ""

    def save(self, path: str | Path) -> None:
        """Write the SVG text to a file that ends in .svg, or the drawing as a page to an .html.

        `LayoutError` for another ending: the file would not hold what its name says.
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".svg", ".html", ".htm"):
            raise LayoutError(
                f"a drawing is saved as SVG or as a page, not to {str(path)!r}: end the name in "
                ".svg or .html; browsers, Inkscape and CairoSVG make other kinds of pictures"
            )
        path.write_text(self.svg if kind == ".svg" else self._page(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html or self.svg

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
    """The drawing of `body`, `width` by `height` pixels, with its colours and its alt text.

    The id of the `svg` element, under which its style rules stand, is made of the content: several
    drawings on one page don't restyle one another, and the same drawing has the same text again.

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
    """The patterns, in the element of this id, of padding and of cells that hold several things.

    Told apart by direction.
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
    """An element: `content` is SVG text as it is, attribute values are escaped.

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
    """`text` as character data: no markup, and nothing that XML can't hold.

    >>> escape("<l1>\\x00")
    '&lt;l1&gt;\ufffd'
    """
    return re.sub("[&<>\"']", lambda m: _MARKUP[m[0]], _UNSPEAKABLE.sub("\ufffd", text))
