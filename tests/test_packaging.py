"""The wheel holds what the tree holds, and works where a user's own `ops` and `sharding` lie."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import gridlayout as gl

ROOT = Path(__file__).parents[1]
FOLDERS = {"gridlayout": "gridlayout", "sharding": "gridlayout/sharding", "ops": "gridlayout/ops"}
# Folders that no wheel holds.
AROUND = ("tests", "examples", "notebooks", "benchmarks", ".github")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# What a user runs first, against the installed wheel in a foreign folder: each floor does work.
PROGRAM = """
import numpy as np
import gridlayout as gl

gl.emulate_devices(2)
assert gl.AffineMap.parse("(d0, d1) -> (d0 * 32 + d1)")(3, 4) == (100,)
layout = gl.GridLayout((5, 7), "float32", grid=(2, 4), tile=(2, 2))
assert gl.parse(str(layout)) == layout
device = gl.DeviceGrid((2,))
a = np.arange(35, dtype=np.float32).reshape(5, 7)
x = gl.put(a, layout, device)
assert len(x.sharding.device_set) == 2
product = gl.on_grid(lambda x: x @ x.T)(x)
np.testing.assert_allclose(np.asarray(product), a @ a.T)
assert "<script" in gl.explore(layout, open_browser=False).html
assert gl.__version__
"""

# Appended to PROGRAM: where each of our modules came from, and that it brought no stranger along.
REPORT = """
import sys
assert not {"ops", "sharding"} & set(sys.modules), "a top-level ops or sharding was imported"
for name in sorted(sys.modules):
    if name.split(".")[0] == "gridlayout":
        print("module", name, sys.modules[name].__file__)
"""


def run(*command, cwd):
    """The standard output of `command`, run without what would lead it back to the checkout."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tree():
    """Every file of the library in the three folders: where it installs, where it lies."""
    return {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}": path.relative_to(ROOT).as_posix()
        for folder, package in FOLDERS.items()
        for parent, folders, names in os.walk(ROOT / folder)  # does not follow the symlinks
        for path in (Path(parent) / name for name in names)
        if path.suffix in {".py", ".css", ".html", ".js"} or path.name == "py.typed"
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist, and the wheel made from that sdist as an index's users get it."""
    # A copy, so that no earlier build/ or egg-info can get into the wheel, and none is left behind.
    source = tmp_path_factory.mktemp("source") / "gridlayout"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in [*FOLDERS, *AROUND]:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignore)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":  # a file in a linked worktree
            shutil.copy(path, source)
    out = tmp_path_factory.mktemp("built")
    # Without isolation setuptools is the one already installed: no network.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source, cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode("utf-8"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh virtual environment that holds the wheel: its interpreter and its packages."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, symlinks=os.name != "nt", with_pip=False)
    paths = {"base": str(home), "platbase": str(home)}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    python = Path(sysconfig.get_path("scripts", "venv", paths)) / Path(sys.executable).name
    # JAX and NumPy are lent by the running environment, as downloading them again costs 600 MB.
    # A folder named in a .pth is searched after this environment's own packages, and the .pth files
    # inside it are not read, so the editable install of the checkout stays out of reach.
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "lent.pth").write_text("\n".join(lent), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    return python, packages


def test_wheel_holds_the_tree(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {name for name in names if ".dist-info/" not in name}
    missing, stray = tree().keys() - packaged, packaged - tree().keys()
    assert not missing, f"not in the wheel; list their package in [tool.setuptools]: {missing}"
    assert not stray, f"in the wheel, but not of the library: {stray}"
    assert {"gridlayout/py.typed", "gridlayout/ops/__init__.py"} <= packaged
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_sdist_holds_what_the_wheel_is_built_from(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", *tree().values()} <= names


def test_only_jax_and_numpy_are_required(metadata):
    requirements = map(Requirement, metadata.get_all("Requires-Dist"))
    always = {r.name for r in requirements if "extra" not in str(r.marker)}
    assert always == {"jax", "numpy"}


def test_metadata_is_that_of_pyproject(metadata):
    assert metadata["Name"] == "gridlayout"
    assert metadata["Version"] == gl.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_installed_wheel_runs_beside_foreign_ops_and_sharding(installed, tmp_path):
    python, packages = installed
    for name in ["ops", "sharding"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError('a foreign {name}')\n")
    # With -c the working directory comes first on the path, so the foreign folders do shadow.
    lines = run(python, "-c", PROGRAM + REPORT, cwd=tmp_path).splitlines()
    modules = [line.split(" ", 2)[1:] for line in lines if line.startswith("module ")]
    files = {name: Path(file) for name, file in modules}
    assert {"gridlayout", "gridlayout.sharding", "gridlayout.ops"} <= set(files)
    elsewhere = {name: file for name, file in files.items() if not file.is_relative_to(packages)}
    assert not elsewhere, f"imported from outside the fresh environment: {elsewhere}"


@pytest.mark.all_cases  # `make wheel` does it, too
def test_installed_wheel_prints_what_the_readme_shows(installed, tmp_path):
    python, _ = installed
    assert "prints what the README shows" in run(
        python, "-I", ROOT / "tests" / "readme.py", cwd=tmp_path
    )


def test_the_foreign_folders_would_be_imported(installed, tmp_path):
    # The control of the test above: a top-level `import ops` there does fail.
    python, _ = installed
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "__init__.py").write_text("print('foreign')\n")
    assert run(python, "-c", "import ops", cwd=tmp_path) == "foreign\n"
