"""The pictures of pages are what docs/pictures.py writes, and plain Markdown shows them."""

import importlib.util
import re
import xml.etree.ElementTree as ET

import pytest
from readme import README, ROOT

from gridlayout.gallery import entries

DOCS = ROOT / "docs"
SHOWN = re.compile(r"!\[((?:\\.|[^\]\\])*)\]\((\S+?)\)|<(?:img|source)[^>]*?src(?:set)?=\"(\S+?)\"")


@pytest.fixture(scope="module")
def written():
    spec = importlib.util.spec_from_file_location("docs_pictures", DOCS / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.written()


def test_the_files_are_what_the_script_writes(written):
    stale = [name for name, text in written.items() if (DOCS / name).read_text("utf-8") != text]
    assert not stale, "run python docs/pictures.py"
    files = {f"static/{path.name}" for path in (DOCS / "static").glob("*.svg")}
    assert files == written.keys() - {"gallery.md"}  # no file that nothing writes


def test_every_picture_is_an_image_by_itself(written):
    for name, text in written.items():
        if name.endswith(".svg"):
            root = ET.fromstring(text)
            assert root.get("viewBox"), name
            assert root.find("{http://www.w3.org/2000/svg}title").text, name


def images(page):
    """(alt text, file) of the images that a page's Markdown shows."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for alt, markdown, html in SHOWN.findall(text):
        target = (markdown or html).replace("_static/", "static/")
        yield alt, (page.parent / target).resolve(), bool(markdown)


def test_every_image_of_a_page_is_there_and_every_file_is_on_a_page(written):
    seen = set()
    for page in (README, *DOCS.rglob("*.md")):
        for alt, path, is_markdown in images(page):
            if path.is_relative_to(DOCS):
                assert path.is_file(), (page, path)
                assert alt or not is_markdown, (page, path)
                seen.add(path.relative_to(DOCS).as_posix())
    assert {name for name in written if name.endswith(".svg")} <= seen


def test_these_pages_have_pictures_without_the_site():
    counts = {name: len([*images(DOCS / f"{name}.md")]) for name in ("tutorial", "explorer")}
    assert counts == {"tutorial": 4, "explorer": 1}
    assert len([*images(DOCS / "gallery.md")]) == len([*entries()])
