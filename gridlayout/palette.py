"""The colours of drawings: eight fills for colour-blind readers too, in light and dark versions.

The hues follow Okabe and Ito's set. They are adjusted so that any two differ by 20 or more
(CIE 1976), also for protanopes, deuteranopes and tritanopes. Colour is never the only sign: cells
have labels, and padding is hatched. Text on any fill has a contrast of at least 4.5 : 1 (WCAG 2,
level AA).
"""

from __future__ import annotations

import re

# Sky blue, orange, green, purple, yellow, blue, vermilion, violet (in the dark version crimson).
# Grey is reserved for padding and for data that does not move.
LIGHT = ("#d2e5ff", "#e6a624", "#a3fdd3", "#bb88bb", "#ffeb85", "#89acfb", "#e17256", "#8a6cf6")
DARK = ("#626992", "#683700", "#32756c", "#532859", "#856900", "#1d3286", "#a35741", "#7e0030")
# The ramp of offsets, from the first to the last.
LIGHT_RAMP = (
    *("#f1f7fc", "#dfecf8", "#cce1f3", "#b8d5ee"),
    *("#a3c8e9", "#8dbbe3", "#77addc", "#629fd4"),
)
DARK_RAMP = (
    *("#17222d", "#1a2c3c", "#1d364b", "#20405a"),
    *("#234b6a", "#25567a", "#27618b", "#286d9c"),
)
LIGHT_TONES = {
    "paper": "#ffffff",
    "ink": "#16191d",
    "muted": "#555c66",
    "line": "#3d434b",
    "thin": "#ffffff",
    "pad": "#f4f4f5",
    "hatch": "#a8adb5",
    "stay": "#6a6e74",
    "border": "#c00020",
}
DARK_TONES = {
    "paper": "#14171b",
    "ink": "#f4f5f6",
    "muted": "#a9b0ba",
    "line": "#d5d9de",
    "thin": "#14171b",
    "pad": "#1c2025",
    "hatch": "#5d646e",
    "stay": "#b2b6bc",
    "border": "#ff5c6c",
}
HUES = len(LIGHT)


def colours(dark: bool = False) -> dict[str, str]:
    """Return every colour by name: c0, ... of the fills, s0, ... of the ramp, and the tones.

    >>> colours()["paper"], colours(dark=True)["c0"]
    ('#ffffff', '#626992')
    """
    fills, ramp, tones = (DARK, DARK_RAMP, DARK_TONES) if dark else (LIGHT, LIGHT_RAMP, LIGHT_TONES)
    numbered = {f"c{k}": value for k, value in enumerate(fills)}
    return {**numbered, **{f"s{k}": value for k, value in enumerate(ramp)}, **tones}


def style(name: str) -> str:
    """Return the style element of the drawing with id `name`; it affects no other element.

    >>> style("gl1").count("prefers-color-scheme: dark")
    1
    """
    light, dark = (";".join(f"--{k}:{v}" for k, v in colours(d).items()) for d in (False, True))
    rules = [
        f"#{name}{{{light};background:var(--paper);max-width:100%;height:auto}}",
        f"@media (prefers-color-scheme: dark){{#{name}{{{dark}}}}}",
        # JupyterLab's theme is independent of the system's.
        f'[data-jp-theme-light="true"] #{name}{{{light}}}',
        f'[data-jp-theme-light="false"] #{name}{{{dark}}}',
        *(f"#{name} {selector}{{{declarations}}}" for selector, declarations in _RULES),
        *(f"#{name} .{k}{{fill:var(--{k})}}" for k in colours() if k[1:].isdigit()),
        *(f"#{name} .{kind}{{fill:url(#{name}-{kind})}}" for kind in ("pad", "mix")),
    ]
    return f"<style>{''.join(rules)}</style>"


_STYLE = re.compile("<style>.*?</style>", re.DOTALL)
# What concerns other themes or the width of a page.
_ONLY_PAGES = re.compile(
    r"@media [^{]*\{#\w+\{[^}]*\}\}|\[data-jp-theme-light=[^{]*\{[^}]*\}|--\w+:#\w+;"
    "|;max-width:100%;height:auto"
)
_VARIABLE = re.compile(r"(?<=[:\"])var\(--(\w+)\)")


def fixed(svg: str, dark: bool = False) -> str:
    """Return a drawing in the colours of one theme, without variables and other themes.

    Browsers know CSS variables. Without their values librsvg, CairoSVG and resvg draw all black.

    >>> fixed('<svg><style>#a text{fill:var(--ink)}</style><rect fill="var(--pad)"/></svg>')
    '<svg><style>#a text{fill:#16191d}</style><rect fill="#f4f4f5"/></svg>'
    """
    shown = colours(dark)

    def colour(found: re.Match[str]) -> str:
        return shown[found[1]]

    # Text may contain any words, but no quotation mark: these are escaped.
    found = re.sub(r'(?<==)"var\(--(\w+)\)"', lambda found: f'"{colour(found)}"', svg)
    return _STYLE.sub(lambda style: _VARIABLE.sub(colour, _ONLY_PAGES.sub("", style[0])), found)


_LINE = "stroke:var(--line);fill:none;pointer-events:none;stroke-width"
_RULES = (
    ("text", "fill:var(--ink);font:11px ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"),
    (".paper", "fill:var(--paper)"),
    (".cells", "stroke:var(--thin);stroke-width:1px"),
    (".cells rect:hover,.flows path:hover", "stroke:var(--ink);stroke-width:2px"),
    (".labels text", "text-anchor:middle;dominant-baseline:central;pointer-events:none"),
    (".ticks text", "fill:var(--muted);font-size:10px"),
    (".middle text", "text-anchor:middle"),
    (".right text", "text-anchor:end;dominant-baseline:central"),
    ("text.head", "font:600 16px system-ui,DejaVu Sans,sans-serif"),
    ("text.sub", "font:600 12px system-ui,DejaVu Sans,sans-serif"),
    ("text.note", "fill:var(--muted);font:12px system-ui,DejaVu Sans,sans-serif"),
    (
        ".line1",
        "stroke:var(--line);stroke-width:1px;stroke-opacity:.6;fill:none;pointer-events:none",
    ),
    (".line2", f"{_LINE}:2px"),
    (".around", "stroke:var(--paper);fill:none;pointer-events:none;stroke-width:4px"),
    (".inner", "stroke:var(--border);fill:none;pointer-events:none;stroke-width:2px"),
    (".swatch", "stroke:var(--line);stroke-width:1px"),
    (".flows path", "fill-opacity:.7"),
    (".bar", "fill:var(--line)"),
    (".frame", "stroke:var(--line);stroke-width:1px;fill:none;pointer-events:none"),
    (".plate", "stroke:var(--line);stroke-width:.6px"),
    (".stay", "fill:var(--stay)"),
    (".pad-ground", "fill:var(--pad)"),
    (".pad-line", "stroke:var(--hatch);stroke-width:1.3px;fill:none"),
    (".mix-ground", "fill:var(--paper)"),
    (".mix-line", "stroke:var(--muted);stroke-width:2.4px;fill:none"),
)
