"""What the site needs beyond Sphinx: pictures that are drawn when it is built, the notebooks as
pages, links from names to the API, and a check that no public name is missing there.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from myst_parser.parsers.sphinx_ import MystParser
from pictures import value_of
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.logging import getLogger

import gridlayout as gl

SYSTEMS = ("megengine", "mli", "sophon", "strided", "tenstorrent", "xla")
MODULES = ("caches", "cores", "results", *SYSTEMS)


class Show(SphinxDirective):
    """Runs a page's lines and shows their last value as a notebook does; `hide` hides the lines."""

    has_content = True
    option_spec = {"hide": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """The lines and what they show; an error of theirs is one of the page."""
        text, scope = "\n".join(self.content), {"gl": gl}
        try:
            shown = nodes.raw("", _framed(value_of(text, scope)._repr_html_()), format="html")
        except Exception as error:
            raise self.error(f"{type(error).__name__}: {error}") from error
        code = nodes.literal_block(text, text, language="python")
        return [shown] if "hide" in self.options else [code, shown]


class Notebook(MystParser):
    """Reads a notebook as the Markdown of its cells and of the outputs it was saved with."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """The notebook's page."""
        cells = json.loads(inputstring)["cells"]
        super().parse("\n\n".join(part for cell in cells for part in _parts(cell)), document)


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        # Links among notebooks: MyST would follow the symlink, and so leave the site.
        yield re.sub(r"\[([^]]+)\]\((\w+)\.ipynb\)", r"{doc}`\1 <\2>`", source)
        return
    yield f"{_FENCE}python\n{source}\n{_FENCE}"
    for output in cell["outputs"]:
        data = output.get("data", {"text/plain": output.get("text", "")})
        if "text/html" in data:
            yield f"{_FENCE}{{raw}} html\n{_framed(''.join(data['text/html']))}\n{_FENCE}"
        else:
            yield f"{_FENCE}text\n{''.join(data['text/plain'])}\n{_FENCE}"


_FENCE = "`" * 12


def _framed(html: str) -> str:
    return f'<div class="show">{html}</div>'


class Inline(SphinxTransform):
    """Puts the pictures of docs/pictures.py into their page, where their cells have hover texts."""

    default_priority = 200

    def apply(self, **_: Any) -> None:
        """Replace the image nodes by the text of their files."""
        folder = Path(self.document["source"]).parent
        for image in list(self.document.findall(nodes.image)):
            if re.fullmatch(r"static/[\w-]+\.svg", image["uri"]):
                path = folder / image["uri"]
                self.env.note_dependency(str(path))
                shown = nodes.raw("", _framed(path.read_text("utf-8")), format="html")
                # A picture of its own is a paragraph, in which a block does not belong.
                alone = len(image.parent.children) == 1
                (image.parent if alone else image).replace_self(shown)


class Links(SphinxTransform):
    """Makes every `gl.name` in a text a link to the API, which is an error where it has none."""

    default_priority = 800

    def apply(self, **_: Any) -> None:
        """Wrap the names' nodes in references."""
        for literal in list(self.document.findall(nodes.literal)):
            name = re.fullmatch(r"gl((?!\.(nn|numpy|scipy)\.)(\.[A-Za-z]\w*)+)", literal.astext())
            if name and not isinstance(literal.parent, (nodes.title, nodes.reference)):
                own = gl._MOVED.get(name[1][1:], name[1][1:])  # changelogs have old names
                target = {"reftype": "obj", "reftarget": f"gridlayout.{own}"}
                link = addnodes.pending_xref(
                    "", refdomain="py", refdoc=self.env.docname, refexplicit=True, **target
                )
                literal.replace_self(link)
                link += literal


@cache
def public_names() -> dict[str, Any]:
    """What the package and its modules offer, by the name that users write after `gl.`."""
    found = {name: getattr(gl, name) for name in gl.__all__}
    for own in MODULES:
        module = import_module(f"gridlayout.{own}")
        found |= {f"{own}.{name}": getattr(module, name) for name in module.__all__}
    return found


def check_api(_: Sphinx, env: BuildEnvironment) -> None:
    """Warn of every public name that no page of the API describes."""
    described = env.get_domain("py").objects
    for name in sorted(public_names()):
        if f"gridlayout.{name}" not in described:
            getLogger(__name__).warning("docs/api: gl.%s is public, but on no page", name)


def public_reference(app: Sphinx, env: BuildEnvironment, node: Any, content: Any) -> Any:
    """A type that a signature names by its module, as a link to its public name."""
    target = node.get("reftarget", "")
    for name, value in public_names().items():
        module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(value, type) and target == f"{module}.{own}":
            where = (env, node["refdoc"], app.builder, "class", f"gridlayout.{name}", node, content)
            return env.get_domain("py").resolve_xref(*where)
    return None


def docstring(_: Sphinx, what: str, name: str, obj: Any, options: Any, lines: Any) -> None:
    """Make rST of a docstring: what it indents is literal, `x`s are several, parameters a list."""
    paragraphs = "\n".join(lines).split("\n\n")
    listed = [_listed(paragraph, _parameters(obj)) for paragraph in paragraphs]
    text = re.sub(r"`[^`]+`\w?", _apart, "\n\n".join(listed))
    lines[:] = text.split("\n")
    for i in reversed(range(2, len(lines))):
        indented = lines[i].startswith("    ") and not lines[i - 1]
        if indented and lines[i - 2].strip() and not lines[i - 2].startswith("    "):
            lines[i:i] = ["::", ""]


def _parameters(obj: Any) -> set[str]:
    """The names of what a function or a class takes; none of other things."""
    try:
        return set(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return set()


def _listed(paragraph: str, parameters: set[str]) -> str:
    """The paragraph with a list in place of its `name: what it is` sentences."""
    if paragraph.startswith((" ", ">>>")):
        return paragraph
    text = paragraph.replace("\n", " ")
    starts = [
        found
        for found in re.finditer(r"(?:^|(?<=[.?)] ))(\w+(?:(?:, | and )\w+)*): ", text)
        if set(re.split(r", | and ", found[1])) <= parameters
    ]
    if not starts:
        return paragraph
    ends = [*(found.start() for found in starts[1:]), len(text)]
    items = [
        f"* **{found[1]}**: {text[found.end() : end].strip()}"
        for found, end in zip(starts, ends, strict=True)
    ]
    before = text[: starts[0].start()].strip()
    return "\n\n".join([*([before] if before else []), "\n".join(items)])


def _apart(code: re.Match[str]) -> str:
    return code[0] if code[0][-1] == "`" else f"{code[0][:-1]}\\ {code[0][-1]}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx's way in."""
    gl.emulate_devices(8)  # for what pages show of them
    app.add_directive("show", Show)
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(Notebook)
    app.add_transform(Inline)
    app.add_transform(Links)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("env-check-consistency", check_api)
    app.connect("missing-reference", public_reference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
