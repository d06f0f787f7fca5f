"""The site in a real browser: every page, light and dark, wide and 400 pixels narrow.

A page's frame is as wide as is said, one width after the other, with its own font and with one
that is half wider, as other machines may have; a script in the page around it asks every element
where it is and what colours it has. The pictures are left in the folder that
`GRIDLAYOUT_PICTURES` names. `make test-all` does so; `make docs` builds the site, too.
"""

import functools
import html
import http.server
import json
import os
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from browser import CHROMIUM, DARK, needs_chromium

ROOT = Path(__file__).parent.parent
pytestmark = [needs_chromium, pytest.mark.all_cases]

# In each frame: how far the page reaches beyond its width, what sticks out of it, and texts that
# their background hides. What scrolls by itself may hold more than it shows.
HARNESS = """<!doctype html><meta charset="utf-8"><style>body{margin:0}iframe{border:0}</style>
<pre id="output"></pre><script>
const asked = ASKED, found = {};
const light = (c) => {
  const part = c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
};
const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function colour(text) {
  paint.clearRect(0, 0, 1, 1);
  paint.fillStyle = text;
  paint.fillRect(0, 0, 1, 1);
  return [...paint.getImageData(0, 0, 1, 1).data];
}
function ground(element, view) {
  for (let at = element; at; at = at.parentElement) {
    const c = colour(view.getComputedStyle(at).backgroundColor);
    if (c[3] > 200) return c;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
}
function scrolls(element, view) {
  for (let at = element; at && at !== at.ownerDocument.body; at = at.parentElement) {
    const style = view.getComputedStyle(at);
    if (["auto", "scroll"].includes(style.overflowX)) return true;
    if (["fixed", "absolute"].includes(style.position)) return true;
  }
  return false;
}
function look(frame) {
  const view = frame.contentWindow, page = frame.contentDocument, out = [], dim = [];
  for (const element of page.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height || element.closest("svg svg, .sidebar-drawer, .toc-drawer"))
      continue;
    if (box.right > view.innerWidth + 1 && !scrolls(element, view))
      out.push(`${element.tagName} ${element.className} ${Math.round(box.right)}`);
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || element.closest("svg, iframe, script, style, .headerlink, .skip-to-content"))
      continue;
    const style = view.getComputedStyle(element);
    if (style.visibility !== "visible" || style.opacity < 0.5) continue;
    const [a, b] = [light(colour(style.color)), light(ground(element, view))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 3) dim.push(`${element.textContent.trim().slice(0, 40)} ${contrast.toFixed(1)}`);
  }
  const wide = page.documentElement.scrollWidth - view.innerWidth;
  return { width: view.innerWidth, wide, out: out.slice(0, 5), dim: dim.slice(0, 5),
    texts: page.body.innerText.trim().length };
}
async function all() {
  for (const name of asked.pages) {
    const frame = document.createElement("iframe");
    frame.style.width = `${asked.widths[0]}px`;
    frame.style.height = "1500px";
    await new Promise((done) => {
      frame.onload = done;
      frame.src = name;
      document.body.append(frame);
    });
    found[name] = [];
    const wider = frame.contentDocument.createElement("style");
    wider.textContent = "* { letter-spacing: 0.3em !important; }";
    for (const width of asked.widths) {
      frame.style.width = `${width}px`;
      found[name].push(look(frame));
      if (asked.keep) continue;
      frame.contentDocument.head.append(wider);
      found[name].push(look(frame));
      wider.remove();
    }
    if (!asked.keep) frame.remove();
  }
  document.getElementById("output").textContent = asked.keep ? "" : JSON.stringify(found);
  await fetch("/answer", { method: "POST", body: JSON.stringify(found) });
}
all();
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_POST(self):
        self.server.answer = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site's folder and address; a warning fails the build."""
    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "docs", str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=folder)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, server
    server.shutdown()
    server.server_close()


def pages(folder):
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*.html")]
    assert len(names) > 40
    return sorted(name for name in names if not name.startswith("_"))


def browse(site, widths, theme, profile, asked, *arguments):
    folder, server = site
    harness = HARNESS.replace("ASKED", json.dumps({"widths": widths, **asked}))
    (folder / "harness.html").write_text(harness, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [
        *DARK[theme],
        f"--window-size={max(*widths, 500)},1500",
        f"--user-data-dir={profile}",
    ]
    command += ["--virtual-time-budget=120000", *arguments]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{server.server_port}/harness.html"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    (folder / "harness.html").unlink()
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("theme", DARK)
def test_every_page_fits_and_can_be_read(site, theme, tmp_path):
    names, widths = pages(site[0]), [400, 1200]
    dom = browse(site, widths, theme, tmp_path / "profile", {"pages": names}, "--dump-dom")
    (text,) = re.findall(r'<pre id="output">(.*?)</pre>', dom, re.DOTALL)
    found = json.loads(html.unescape(text))
    assert sorted(found) == names
    wrong = {}
    for name, looks in found.items():
        assert [page["width"] for page in looks] == [400, 400, 1200, 1200]
        for page in looks:
            assert page["texts"] > 100, name
            if page["wide"] > 0 or page["out"] or page["dim"]:
                wrong.setdefault(name, []).append(page)
    assert not wrong, json.dumps(wrong, indent=1)


@pytest.mark.parametrize("theme", DARK)
def test_pictures_of_every_page(site, theme, tmp_path):
    kept = Path(os.environ.get("GRIDLAYOUT_PICTURES", tmp_path))
    kept.mkdir(parents=True, exist_ok=True)
    names = pages(site[0])
    # Narrow pages side by side: one start of the browser for all of them.
    side = 8
    for start in range(0, len(names), side):
        part = names[start : start + side]
        path = kept / f"{theme}-{start // side:02}-{Path(part[0]).stem}.png"
        asked = {"pages": part, "keep": True}
        arguments = (f"--screenshot={path}", f"--window-size={400 * side},1500")
        browse(site, [400], theme, tmp_path / "profile", asked, *arguments)
        head = path.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", head[16:24])[0] == 400 * side
        assert path.stat().st_size > 20_000, path  # an empty picture has a few kilobytes
