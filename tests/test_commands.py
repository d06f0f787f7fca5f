"""`gridlayout draw`, `convert`, `explore` and `--version`: one layout, given as a text; `plan`.

`explain` is tested in test_dump.py, `compare` in test_compare.py, `gallery` in test_draw.py and
`demo` in test_demo.py.
"""

import io
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import gridlayout as gl
from gridlayout.__main__ import main
from gridlayout.conversion.candidates import SYSTEMS
from gridlayout.draw.views import VIEWS
from gridlayout.palette import fixed

ROOT = Path(__file__).parent.parent
GRID = "GridLayout((53, 63), 'float32', grid=(3, 2), tile=(32, 32))"
METAL = (
    "#ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <1x2>, "
    "memref<8x150xf32, #ttcore.memory_space<l1>>>"
)
COMMANDS = ("demo", "explain", "compare", "plan", "draw", "convert", "explore", "gallery")


def typed(text):
    """Standard input that holds a text."""
    return SimpleNamespace(buffer=io.BytesIO(text.encode()))


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"gridlayout {gl.__version__}\n"


def test_the_script_that_pip_installs_is_main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module, name = project["scripts"]["gridlayout"].split(":")
    assert getattr(import_module(module), name) is main


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"    {name} " in shown for name in COMMANDS)


# -- draw ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [GRID, "f32[3,5]{1,0:T(2,2)}", "sophon.local((1, 6, 4, 5), 'float32', 'compact')"],
)
def test_a_layout_is_drawn_into_a_file(text, tmp_path, capsys):
    path = tmp_path / "x.svg"
    assert main(["draw", text, "-o", str(path)]) == 0
    drawing = gl.parse(text).draw()
    assert path.read_text("utf-8") == fixed(drawing.svg)
    assert capsys.readouterr().out == f"{path} shows {drawing.title}\n"


def test_without_a_file_the_svg_is_printed(capfd):
    assert main(["draw", GRID, "--view", "physical"]) == 0
    svg = fixed(gl.parse(GRID).draw("physical").svg)
    assert capfd.readouterr().out == svg.rstrip("\n") + "\n"


def test_the_way_of_an_element_is_drawn(capfd):
    assert main(["draw", GRID, "--view", "element", "--index", "20,40"]) == 0
    svg = fixed(gl.parse(GRID).draw("element", index=(20, 40)).svg)
    assert capfd.readouterr().out.rstrip("\n") == svg.rstrip("\n")


def test_a_relayout_is_drawn(tmp_path):
    path = tmp_path / "x.html"
    to = "GridLayout((53, 63), 'float32', grid=(2, 3))"
    assert main(["draw", GRID, "--view", "flows", "--to", to, "-o", str(path)]) == 0
    assert gl.parse(GRID).draw("flows", to=gl.parse(to)).svg in path.read_text("utf-8")


def test_the_help_names_every_view_that_needs_no_devices(capsys):
    with pytest.raises(SystemExit):
        main(["draw", "--help"])
    words = capsys.readouterr().out.replace(",", " ").split()
    assert {*VIEWS} - {*words} == {"fold"}


# -- the text --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shape", "whole"),
    [
        (METAL, "8x300xf32", f"tensor<8x300xf32, {METAL}>"),
        (METAL, "float32[8,300]", f"tensor<8x300xf32, {METAL}>"),
        ("{1,0:T(8,128)}", "bf16[53,63]", "bf16[53,63]{1,0:T(8,128)}"),
        ("{1,0:T(8,128)}", "53x63xi32", "s32[53,63]{1,0:T(8,128)}"),
    ],
)
def test_a_shape_completes_an_encoding(text, shape, whole, capfd):
    assert main(["draw", text, "--shape", shape]) == 0
    assert capfd.readouterr().out.rstrip("\n") == fixed(gl.parse(whole).draw().svg).rstrip("\n")
    assert main(["draw", text]) == 2
    assert "states no shape: give one, as in --shape " in capfd.readouterr().err
    assert main(["draw", whole, "--shape", shape]) == 2
    assert "leave the option out" in capfd.readouterr().err


def test_the_text_may_come_from_standard_input(monkeypatch, capfd):
    monkeypatch.setattr("sys.stdin", typed(f"  {GRID}\n"))
    assert main(["convert", "-", "--to", "xla"]) == 0
    assert capfd.readouterr().out == f"{gl.convert(gl.parse(GRID), to='xla')}\n"


def test_the_text_may_be_in_a_file(tmp_path, capfd):
    path = tmp_path / "layout.txt"
    path.write_text(f"{GRID}\n")
    assert main(["convert", str(path), "--to", "xla"]) == 0
    assert capfd.readouterr().out == f"{gl.convert(gl.parse(GRID), to='xla')}\n"
    assert main(["convert", str(tmp_path), "--to", "xla"]) == 2
    assert capfd.readouterr().err.endswith("is a folder, not a regular file\n")


@pytest.mark.parametrize(
    ("command", "output"), [("draw", ()), ("convert", ("--to", "xla")), ("explore", ())]
)
def test_of_a_dump_a_command_names_a_layout_and_explain(command, output, monkeypatch, capfd):
    dump = Path(__file__).parent / "dumps" / "tpu.hlo.txt"
    assert main([command, str(dump), *output]) == 2
    error = capfd.readouterr().err
    assert f"holds 5 layouts, and {command} takes one: give its text" in error
    assert "such as 'f32[1000,3]{1,0:T(8,128)}'" in error
    assert error.endswith(f"gridlayout explain {dump} lists all of them\n")
    monkeypatch.setattr("sys.stdin", typed(dump.read_text()))
    assert main([command, "-", *output]) == 2
    assert "standard input holds 5 layouts" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["convert", GRID], "to which system? Give --to and one of document, metal"),
        (
            ["draw", "tensor<53x63xf32>"],
            "expected ',' and an encoding, found '>'",
        ),
        (
            ["explain", "tensor<53x63xf32>"],
            "expected ',' and an encoding, found '>'",
        ),
        (["explain", "f32[53,63]{1,0:T(8,128)"], "column 24: expected"),
        (["draw", "no/such.mlir"], "is neither a file nor a layout"),
        (["plan", "train.py:step", "f32[8]"], "name the module, without its ending .py"),
    ],
)
def test_first_guesses_are_met_with_the_fix(arguments, words, capfd):
    assert main(arguments) == 2
    assert words in capfd.readouterr().err


@pytest.mark.parametrize("suffix", [".html", ".json", ".txt"])
@pytest.mark.parametrize("command", [("explain",), ("compare",)])
def test_results_are_written_to_a_file(command, suffix, tmp_path, capfd):
    dump, path = str(Path(__file__).parent / "dumps" / "tpu.hlo.txt"), tmp_path / f"x{suffix}"
    sources = [dump] * (2 if command == ("compare",) else 1)
    assert main([*command, *sources, "-o", str(path)]) == 0
    assert capfd.readouterr().out == f"{path} has the result of {command[0]}\n"
    flags = {".html": ["--html"], ".json": ["--json"], ".txt": []}[suffix]
    assert main([*command, *sources, *flags]) == 0
    assert capfd.readouterr().out == path.read_text(encoding="utf-8")
    assert main([*command, *sources, "-o", str(tmp_path)]) == 1
    assert f"gridlayout {command[0]}: " in capfd.readouterr().err


HOSTILE = [
    "",
    "-1",
    "f32[3,5]{1,0:T(2,x)}",
    "f32[" + "9" * 5000 + "]",
    "f32[4294967296,4294967296,4294967296,4294967296]",
    "GridLayout(" * 2000,
    "GridLayout((3, 5), grid=(0, 1))",
    "__import__('os').system('true')",
    "f32[3]\x1b[31m\x00",
    "x" * 70000,
    "\udcff",
    "no/such/file.mlir",
]


@pytest.mark.parametrize("command", [("draw",), ("convert", "--to", "xla"), ("explore",)])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_bad_texts_are_refused_in_words(command, text, tmp_path, capfd):
    name, *more = command
    more += [] if name == "convert" else ["-o", str(tmp_path / "x.html")]
    code = main([name, *more, "--", text])
    out, error = capfd.readouterr()
    if code == 0:  # one of many elements is legal, and drawn by samples
        assert text.startswith("f32[4294967296")
        return
    assert code == 2
    assert error.startswith(f"gridlayout {name}: ")
    assert len(error) < 2000
    assert "\x1b" not in error
    assert "\0" not in error
    assert not out
    assert not (tmp_path / "x.html").exists()


def test_an_error_shows_the_place_in_the_text(capsys):
    assert main(["convert", "f32[3,5]{1,0:T(2,x)}", "--to", "xla"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "gridlayout convert: column 18: expected a number, found 'x)}'",
        "  f32[3,5]{1,0:T(2,x)}",
        "                   ^",
    ]


def test_warnings_are_messages(tmp_path, capsys):
    text = "GridLayout((8, 128, 256), grid=(2, 2, 2))"
    with pytest.warns(gl.LayoutWarning, match="positions for 262144 elements") as found:
        gl.parse(text)
    assert main(["draw", text, "-o", str(tmp_path / "x.svg")]) == 0
    assert capsys.readouterr().err == f"gridlayout draw: warning: {found[0].message}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["draw", GRID, "-o", "x.pdf"], 2, "end the name in .svg, .png or .html"),
        (["draw", GRID, "--view", "element"], 2, "needs index="),
        (["draw", GRID, "--view", "element", "--index", "60,0"], 2, "60"),
        (["draw", GRID, "-o", "/no/such/x.svg"], 1, "No such file or directory"),
        (["draw", GRID, "--view", "nice"], 2, "view 'nice' is not one of logical, tiles"),
        (["draw", GRID, "--view", "fold"], 2, "view 'fold' needs device=, a gl.DeviceGrid"),
        (["draw", GRID, "--view", "flows"], 2, "view 'flows' needs to="),
        (["draw", GRID, "--to", "f32[3]"], 2, "takes no option 'to'"),
        (["convert", GRID, "--to", "nice"], 2, "to 'nice' is not one of document, metal"),
        (["convert", "f32[2,2,2,2,2]", "--to", "mli"], 2, "mli"),
        (["explore", GRID, "-o", "/no/such/x.html"], 1, "No such file or directory"),
    ],
)
def test_bad_options_are_refused_in_words(arguments, code, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    out, error = capsys.readouterr()
    assert error.startswith(f"gridlayout {arguments[0]}: ")
    assert words in error
    assert not out
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("arguments", [["dance"], ["convert"], ["draw"]])
def test_missing_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: gridlayout" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_options_show_the_usage_of_the_command(command, capsys):
    given = {"demo": [], "plan": ["a:b"]}.get(command, ["x"])
    to = ["--to", "xla"] if command == "convert" else []
    with pytest.raises(SystemExit) as ended:
        main([command, *given, *to, "--nonsense"])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"usage: gridlayout {command} ")
    assert f"gridlayout {command}: error: unrecognized arguments: --nonsense" in shown


def test_without_a_command_all_are_listed(capsys):
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert all(f"    {name} " in shown for name in COMMANDS)


def test_no_command_prints_a_traceback():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "gridlayout", "draw", "f32[3]\udcff"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"gridlayout draw: ")
    assert b"Traceback" not in done.stderr


# -- convert ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_layout_is_converted_to_every_system(system, capfd):
    text = "f32[8,4,4]{2,1,0}" if system == "mli" else "f32[1,8,4,4]{3,2,1,0}"
    assert main(["convert", text, "--to", system]) == 0
    assert capfd.readouterr().out == f"{gl.convert(gl.parse(text), to=system)}\n"


def test_the_help_names_every_system(capsys):
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    words = capsys.readouterr().out.replace(",", " ").split()
    assert {*SYSTEMS} <= {*words}


# -- explore ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [(), ("f32[3,5]{1,0:T(2,2)}",)])
def test_the_explorer_is_written(text, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: pytest.fail("opened a browser"))
    path = tmp_path / "page.html"
    assert main(["explore", *text, "-o", str(path)]) == 0
    layout = gl.parse(*(text or (GRID,)))
    assert path.read_text("utf-8") == gl.explore(layout, open_browser=False).html
    assert capsys.readouterr().out == f"the explorer is in {path}\n"


def test_without_a_file_the_explorer_is_opened(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr("gridlayout.explorer.page.has_display", lambda: True)
    monkeypatch.setattr("webbrowser.open", lambda url: seen.append(url) or True)
    assert main(["explore", GRID]) == 0
    (url,) = seen
    assert url.startswith("file://")
    path = Path(url.removeprefix("file://"))
    assert capsys.readouterr().out == f"the explorer is in {path}\n"
    path.unlink()


def test_a_browser_that_does_not_open_is_a_warning(monkeypatch, capsys):
    monkeypatch.setattr("gridlayout.explorer.page.has_display", lambda: True)
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    assert main(["explore", GRID]) == 0
    out, error = capsys.readouterr()
    assert error.startswith("gridlayout explore: warning: no browser opened")
    Path(out.removeprefix("the explorer is in ").strip()).unlink()


def test_without_a_display_the_explorer_asks_for_a_file(monkeypatch, capsys):
    monkeypatch.setattr("gridlayout.explorer.page.has_display", lambda: False)
    assert main(["explore", "no layout"]) == 2
    assert main(["explore", GRID]) == 1
    assert "write it to a file with -o page.html" in capsys.readouterr().err


def test_what_can_not_be_explored_is_refused(capsys, tmp_path):
    text = "mli.tensor((6, 4, 5), 'HWC', 'int16')"
    assert main(["explore", text, "-o", str(tmp_path / "x.html")]) == 2
    assert "can't be explored" in capsys.readouterr().err


# -- plan ------------------------------------------------------------------------------------------

MODULE = """
import jax

def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down

def of_tree(weights, x):
    return mlp(x, weights["up"], weights["down"])

def arguments():
    sizes = {"up": (48, 190), "down": (190, 48)}
    weights = {name: jax.ShapeDtypeStruct(s, "float32") for name, s in sizes.items()}
    return weights, jax.ShapeDtypeStruct((1000, 48), "float32")

def one():
    return jax.ShapeDtypeStruct((8,), "float32")

def fails():
    raise ValueError("first line\\nsecond line")

class Group:
    square = staticmethod(lambda x: x * x)

number = 5
"""
SHAPES = ("float32[1000,48]", "f32[48,190]", "190x48xf32")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's in the current directory."""
    (tmp_path / "training_module.py").write_text(MODULE, "utf-8")
    (tmp_path / "broken_module.py").write_text("1 / 0", "utf-8")
    (tmp_path / "ending_module.py").write_text("raise SystemExit(3)", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield "training_module"
    sys.modules.pop("training_module", None)


def test_a_plan_is_printed_and_saved(module, tmp_path, capfd):
    more = ["--machine", "v5e 4x4", "-o", "plan.json", "--seconds", "20"]
    more += ["--fixed", "x=GridLayout((1000, 48), 'float32', grid=(4, 1))"]
    more += ["--fixed", "down=GridLayout((190, 48), 'float32', grid=(1, 1))"]
    assert main(["plan", f"{module}:mlp", *SHAPES, *more]) == 0
    out, error = capfd.readouterr()
    plan = gl.load_plan(tmp_path / "plan.json")
    assert out == f"{plan}\n"
    assert error == "plan.json has this plan\n"
    assert plan.layouts["x"].grid == (4, 1)
    assert plan.layouts["up"].shape == (48, 190)
    assert plan.device.shape == (4, 4)


def test_a_function_may_return_the_arguments(module, capfd):
    assert main(["plan", f"{module}:of_tree", "--args", "arguments", "--machine", "v5e 4x4"]) == 0
    assert "  weights/up: GridLayout((48, 190), 'float32'" in capfd.readouterr().out
    assert main(["plan", f"{module}:Group.square", "--args", "one", "--machine", "v5e 4x4"]) == 0
    assert "  x: GridLayout((8,), 'float32'" in capfd.readouterr().out


def test_numbers_and_other_types_have_shapes_too(module, capfd):
    assert main(["plan", f"{module}:Group.square", "bf16[]", "--machine", "v5e 4x4"]) == 0
    assert capfd.readouterr().out.startswith("plan of ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["training_module", "f32[3]"], "must name a module and a function in it"),
        (["training_module:nope", "f32[3]"], "has no 'nope'"),
        (["training_module:number", "f32[3]"], "must be a function, not int"),
        (["no_such_module:f", "f32[3]"], "can't be imported: ModuleNotFoundError"),
        (["broken_module:f", "f32[3]"], "can't be imported: ZeroDivisionError: division by zero"),
        (["ending_module:f", "f32[3]"], "can't be imported: SystemExit: 3"),
        (["training_module:mlp"], "are needed in one of two ways"),
        (["training_module:mlp", "f32[3]", "--args", "arguments"], "are needed in one of two ways"),
        (["training_module:mlp", "--args", "fails"], "fails: ValueError: first line"),
        (["training_module:mlp", "f32[3]"], "missing 2 required positional arguments"),
        (["training_module:mlp", *["f32[3,4]"] * 3], "can't be traced on these arguments"),
        (["training_module:mlp", *SHAPES, "--machine", "nope"], "machine 'nope' is unknown"),
        (["training_module:mlp", *SHAPES, "--seconds", "nan"], "seconds nan must be"),
        (["training_module:mlp", *SHAPES, "--fixed", "x"], "must be a path and a layout"),
        (["training_module:mlp", *SHAPES, "--fixed", "x=f32["], "expected a number"),
        (["training_module:mlp", *SHAPES, "--fixed", f"z={GRID}"], "'z'"),
        (["training_module:mlp", *SHAPES, "-o", "no/such/folder.json"], "No such file"),
        *((["--", "training_module:Group.square", text], "") for text in HOSTILE[1:]),
        (["training_module:Group.square", "f32[9223372036854775807]"], "over 2**62"),
        (
            ["training_module:Group.square", "complex128[" + "1," * 500 + "1]"],
            "must be a shape with an element type",
        ),
    ],
)
def test_plan_refuses_in_one_sentence(module, arguments, words, capfd):
    machine = [] if "--machine" in arguments else ["--machine", "v5e 4x4"]
    assert main(["plan", *machine, *arguments]) == (1 if "-o" in arguments else 2)
    out, error = capfd.readouterr()
    assert not out
    assert error.startswith("gridlayout plan: ")
    assert words in error
    assert "Traceback" not in error
    assert "second line" not in error
    assert len(error) < 2000
    assert "\x1b" not in error
