"""Installs the wheel and the sdist with each Python and JAX, alone, and runs the README there.

    python tests/versions.py FOLDER

FOLDER has one wheel and one sdist, as `make wheel` leaves them in dist/. For each Python from 3.11
that this machine has, there is an environment with the oldest JAX that pyproject.toml allows and
one with the newest. The script prints a row per environment and fails if a README line fails.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINORS = range(11, 20)
# What an environment has, as a line for the table.
FOUND = "from importlib.metadata import version as v; print(v('jax'), v('numpy'))"


def oldest_jax():
    """The oldest version of JAX that pyproject.toml allows."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (bound,) = (found[1] for line in dependencies if (found := re.match(r"jax>=([\d.]+)", line)))
    return bound


def pythons():
    """The interpreters of this machine, one per minor version, as (version, path)."""
    for minor in MINORS:
        name = f"python3.{minor}"
        places = [shutil.which(name)]
        try:
            asked = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=True)
            pattern = f"versions/3.{minor}.*/bin/python3"
            places += sorted(map(str, Path(asked.stdout.strip()).glob(pattern)))
        except (OSError, subprocess.CalledProcessError):
            pass
        for place in filter(None, places):
            # pyenv's commands only fail where no version is selected, so each is run.
            works = subprocess.run([place, "-c", "import venv, ensurepip"], capture_output=True)
            if not works.returncode:
                yield f"3.{minor}", place
                break


def checked(python, package, jax):
    """JAX's and NumPy's versions in a new environment, what failed there if anything, seconds."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "bin", "python")
        pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
        pins = [f"jax=={jax}", f"jaxlib=={jax}"] if jax else []
        versions = "?"
        for command in (
            [python, "-m", "venv", folder],
            [*pip, *pins],
            [own, "-I", "-c", FOUND],
            [own, "-I", ROOT / "tests" / "readme.py"],
        ):
            done = subprocess.run(
                list(map(str, command)),
                capture_output=True,
                text=True,
                cwd=folder,
                env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            )
            if done.returncode:
                return versions, done.stdout + done.stderr, time.perf_counter() - start
            if FOUND in command:
                versions = done.stdout.strip()
    return versions, "", time.perf_counter() - start


def main(folder):
    (wheel,), (sdist,) = (list(Path(folder).resolve().glob(p)) for p in ("*.whl", "*.tar.gz"))
    failed = []
    print(f"{'Python':8}{'package':9}{'JAX':10}{'NumPy':9}{'README':8}seconds")
    for version, python in pythons():
        for package, jax in ((wheel, oldest_jax()), (wheel, ""), (sdist, "")):
            versions, error, seconds = checked(python, package, jax)
            found, numpy = versions.split() if versions != "?" else ("?", "?")
            kind = "wheel" if package is wheel else "sdist"
            verdict = "FAILS" if error else "passes"
            row = f"{version:8}{kind:9}{found:10}{numpy:9}{verdict:8}{seconds:7.0f}"
            print(row, flush=True)
            failed += [f"{row}\n{error}"] if error else []
    print(*failed, sep="\n", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
