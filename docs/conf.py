"""Sphinx's settings for the site; `make docs` builds it."""

import sys
from pathlib import Path

import gridlayout

sys.path.insert(0, str(Path(__file__).parent))

project = "gridlayout"
author = "The gridlayout authors"
release = gridlayout.__version__
extensions = ["sphinx.ext.autodoc", "myst_parser", "extension"]
nitpicky = True
nitpick_ignore = [  # only ever printed, or made by the library
    ("py:class", "gridlayout.sharding.exchanges.exchange.Exchange"),
    ("py:class", "gridlayout.sharding.exchanges.pieces.Pieces"),
    ("py:class", "gridlayout.ops.programs.program.Program"),
    ("py:class", "gridlayout.ops.interpret.static.StaticArguments"),
    ("py:class", "gridlayout.ops.planning.trees.Trees"),
    ("py:class", "gridlayout.dump.pass_result.PassResult"),
    ("py:class", "gridlayout.tenstorrent.allocation.Allocation"),
    ("py:class", "gridlayout.layouts.buffers.Buffers"),
    ("py:class", "gridlayout.layouts.mesh_axes.MeshAxes"),
    ("py:class", "gridlayout.dump.explanation.LaidOut"),  # what type checkers are told
    ("py:class", "gridlayout.dump.explanation.Options"),
    ("py:class", "gridlayout.sharding.machines.measure.MeasuredDevices"),
    ("py:class", "gridlayout.dump.explanation.Program"),
]
# Other projects' names link nowhere: the site is built without a network.
nitpick_ignore_regex = [("py:.*", r"(?!gridlayout).*")]

html_theme = "furo"
html_title = "gridlayout"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "default"  # its colours can be told from a light background
highlight_language = "none"

default_role = "literal"  # docstrings write code in single backticks
smartquotes = False
maximum_signature_line_length = 130
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
myst_heading_anchors = 3
