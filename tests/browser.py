"""A real browser for tests: headless Chromium, which runs a page's scripts and gives it back."""

import html
import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium")


# What makes Chromium ask pages for their dark colours.
DARK = {"dark": ["--blink-settings=preferredColorScheme=0"], "light": []}


def browse(markup, folder, timeout=300, scheme="light"):
    """The page as a headless Chromium leaves it, having logged nothing to its console."""
    path = folder / "page.html"
    path.write_text(markup, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += DARK[scheme]
    command += ["--disable-background-networking", "--no-first-run", "--disable-sync"]
    command += ["--enable-logging=stderr", "--v=0", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [*command, path.as_uri()], capture_output=True, text=True, check=False, timeout=timeout
    )
    logged = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not logged, logged
    return done.stdout


def output(dom):
    """What a script left in the element `output`."""
    (found,) = re.findall(r'<pre id="output">(.*?)</pre>', dom, re.DOTALL)
    return json.loads(html.unescape(found))
