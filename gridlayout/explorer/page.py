"""`explore`: builds the explorer of a layout as one self-contained HTML page."""

from __future__ import annotations

import html
import json
import os
import sys
import tempfile
import warnings
import webbrowser
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from gridlayout.explorer.parameters import facts, parameters_of
from gridlayout.layouts.layout import Layout
from gridlayout.palette import colours
from gridlayout.public import public

# In the order of definition: a file uses names of earlier files at load time.
SCRIPTS = (
    *("arithmetic.js", "divided.js", "grid_model.js", "tenstorrent_models.js", "sophon_model.js"),
    *("xla_model.js", "models.js", "picture.js", "fields.js", "summary.js", "form.js"),
)


@public
@dataclass(frozen=True, repr=False)
class Explorer:
    """An explorer. html: the complete page. path: the file that contains it, if there is one.

    Notebooks show it in a frame, so that neither page affects the style of the other. The frame
    adapts to the height of its page.
    """

    html: str
    title: str
    path: Path | None = None

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="Layout explorer" '
            'allow="clipboard-write" style="width:100%;height:960px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        where = f", in {self.path}" if self.path else ""
        return f"Explorer({self.title!r}, {len(self.html.encode()):,} B of HTML{where})"


@public
def explore(
    layout: Layout, path: str | Path | None = None, open_browser: bool | None = None
) -> Explorer:
    """Return a page on which a layout can be edited and the position of each element is shown.

    layout: a `GridLayout` with a linear map, a `ttnn`, `ttnn_document` or `metal` layout, an XLA
    layout without splits, or a `sophon.local` tensor. path: a file to write the page to.
    open_browser: whether to open the page in a browser, from a temporary file if there is no path.
    None opens it if there is a display and this is no notebook. If no browser opens, a warning
    states the file of the page.

    Raises `LayoutError` for other layouts, and for numbers over 2**53, which browsers can't
    represent exactly.

    >>> from gridlayout import GridLayout
    >>> explorer = explore(GridLayout((53, 63), grid=(3, 2)), open_browser=False)
    >>> explorer.title, "<script" in explorer.html
    ("GridLayout((53, 63), 'float32', grid=(3, 2))", True)
    """
    page = page_of(layout)
    if open_browser is None:
        open_browser = has_display() and not in_notebook()
    file = None if path is None else Path(path)
    if file is None and open_browser:
        handle, name = tempfile.mkstemp(prefix="gridlayout-", suffix=".html")
        os.close(handle)
        file = Path(name)
    explorer = Explorer(page, repr(layout), file)
    if file is not None:
        explorer.save(file)
    # Without a display, a terminal browser might be found, which would wait for keys.
    if open_browser and file is not None and not (has_display() and _opened(file)):
        warnings.warn(f"no browser opened: open the page from the file {file}", stacklevel=3)
    return explorer


def _opened(file: Path) -> bool:
    try:
        return webbrowser.open(file.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False


def has_display() -> bool:
    """Return whether this process can show windows."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def in_notebook() -> bool:
    """Return whether a Jupyter kernel runs this process, without importing Jupyter."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def page_of(layout: Layout) -> str:
    """Return the page's HTML. Raises `LayoutError` for a layout that the page does not support."""
    known = {"start": parameters_of(layout), "facts": facts(layout)}
    # A tag in a string of the layout could end the script element, so its characters are escaped.
    data = json.dumps(known).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    parts = {
        "colours": _colours(),
        "style": _read("style.css"),
        "script": "\n".join(map(_read, SCRIPTS)),
        "parameters": data,  # last, so that nothing inside it is replaced
    }
    page = _read("page.html")
    for name, part in parts.items():
        page = page.replace(f"{{{name}}}", part, 1)
    return page


def _read(name: str) -> str:
    return files("gridlayout.explorer").joinpath(name).read_text(encoding="utf-8")


# Colours that only the form uses: of an error and of the focus.
_FORM = {
    False: {"bad": "#b3261e", "focus": "#2563c9"},
    True: {"bad": "#ff8a80", "focus": "#8ab4ff"},
}


def _colours() -> str:
    light, dark = (
        ";".join(f"--{name}:{value}" for name, value in {**colours(d), **_FORM[d]}.items())
        for d in (False, True)
    )
    fills = "".join(f".{name}{{fill:var(--{name})}}" for name in colours() if name[1:].isdigit())
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{fills}"
    )
