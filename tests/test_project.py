"""The files around the code say what is so: workflows, hooks, templates, guides, changelog."""

import importlib.util
import re
import tomllib
from fnmatch import fnmatch
from operator import attrgetter
from pathlib import Path

import pytest
import yaml

import gridlayout as gl

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
# The files that name targets, files and tests.
GUIDES = ["CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md", "README.md"]


def read(path):
    return yaml.safe_load(path.read_text())


def targets():
    (line,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    named = set(line.replace("\\\n", " ").split())
    assert all(re.search(rf"^{name}:", MAKEFILE, re.MULTILINE) for name in named)
    return named


def recipe(target):
    """What a target runs, with the environment's Python."""
    (found,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return [line.strip().replace("$(RUN)", ".venv/bin/python") for line in found.splitlines()]


def jobs(path):
    return read(path)["jobs"]


def steps(path):
    return [step for job in jobs(path).values() for step in job["steps"]]


# -- workflows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_that_exist(path):
    document = read(path)
    # YAML reads the key `on` as true.
    assert set(document) >= {"name", True, "permissions", "jobs"}
    assert document["permissions"] == {"contents": "read"}
    assert document["env"] == {"PYTHON": "python"}
    ran = [step["run"] for step in steps(path) if "run" in step]
    assert ran
    for line in ran:
        assert re.fullmatch(r"make [a-z-]+", line), line
        assert line.removeprefix("make ") in targets()
    for job in jobs(path).values():
        if any("run" in step for step in job["steps"]):
            assert job["steps"][0] == {"uses": "actions/checkout@v5"}
        assert set(job.get("needs", [])) <= set(jobs(path))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_major_version(path):
    used = {step["uses"] for step in steps(path) if "uses" in step}
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", name) for name in used), used


def test_checks_are_those_that_are_wanted():
    found = jobs(GITHUB / "workflows" / "checks.yml")
    assert set(found) == {"lint", "test", "versions", "docs", "wheel"}
    matrix = found["versions"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: "
    pythons = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert matrix["python"] == [version for version in pythons if re.fullmatch(r"3\.\d+", version)]
    oldest, newest = matrix["jax"]
    assert newest == ""  # as pip finds it
    # JAX 0.11 needs Python 3.12.
    assert matrix["exclude"] == [{"python": "3.11", "jax": newest}]
    assert any(each.startswith(f"jax>={oldest},<") for each in PROJECT["dependencies"])
    for name, job in found.items():
        if name != "versions":
            assert job["steps"][1]["with"]["python-version"] == matrix["python"][-1]


def test_tests_of_other_versions_exist():
    (names,) = re.findall(r"TOUCH_JAX := \$\(patsubst [^,]*,[^,]*,((?:.*\\\n)*.*)\)\n", MAKEFILE)
    names = names.replace("\\\n", " ").split()
    assert len(names) > 10
    assert all((ROOT / "tests" / f"test_{name}.py").exists() for name in names)


def test_only_the_job_that_publishes_may_show_who_it_is():
    path = GITHUB / "workflows" / "release.yml"
    assert read(path)[True] == {"push": {"tags": ["v*"]}}
    allowed = {name: job["permissions"] for name, job in jobs(path).items() if "permissions" in job}
    assert allowed == {"publish": {"contents": "read", "id-token": "write"}}
    assert set(jobs(path)["publish"]["needs"]) == set(jobs(path)) - {"publish"}
    assert "secrets." not in path.read_text()


def test_the_site_of_main_is_published_as_it_was_built():
    path = GITHUB / "workflows" / "pages.yml"
    assert read(path)[True] == {"push": {"branches": ["main"]}}
    build, publish = (jobs(path)[name] for name in ("site", "publish"))
    assert {"run": "make docs"} in build["steps"]
    assert recipe("docs")[0].endswith("docs build/docs")
    (uploaded,) = (s["with"]["path"] for s in build["steps"] if "upload" in s.get("uses", ""))
    assert uploaded == "build/docs"
    assert "permissions" not in build
    assert publish["permissions"] == {"pages": "write", "id-token": "write"}
    assert publish["needs"] == ["site"]
    assert [step.get("run") for step in publish["steps"]] == [None]


def test_every_page_of_the_site_is_reached_from_its_index():
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).with_suffix("").as_posix() for path in _pages(docs)}
    reached, left = set(), ["index"]
    while left:
        page = left.pop()
        reached.add(page)
        (path,) = docs.glob(f"{page}.*[dtb]")  # .md, .rst or .ipynb; not .py
        text = path.read_text("utf-8")
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            for entry in filter(None, tree.splitlines()):
                if not entry.startswith(":"):
                    found = {name for name in pages if fnmatch(name, entry)}
                    assert found, f"{page} names {entry}, which is no page"
                    left += found - reached
    assert pages - reached == set()


def _pages(docs):
    yield from (path for end in ("md", "rst") for path in docs.rglob(f"*.{end}"))
    # Through a symlink, which rglob does not follow on every Python.
    yield from (docs / "notebooks").glob("*.ipynb")


# -- a release -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", GITHUB / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_has_a_dated_section_and_is_cited(release):
    version = gl.__version__
    assert "version" not in PROJECT  # it is read where the library states it
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "gridlayout.__version__"
    }
    assert release.version_here() == version
    date, text = release.sections()[version]
    assert "tested on Python" in text
    cited = read(ROOT / "CITATION.cff")
    assert (cited["version"], cited["date-released"]) == (version, date)
    assert (cited["license"], cited["cff-version"]) == (PROJECT["license"], "1.2.0")
    assert [each["name"] for each in cited["authors"]] == [e["name"] for e in PROJECT["authors"]]


def test_every_released_section_has_a_date(release):
    found = release.sections()
    assert next(iter(found)) == "Unreleased"
    assert [name for name, (date, _) in found.items() if date is None] == ["Unreleased"]
    dates = [date for date, _ in found.values() if date]
    assert dates == sorted(dates, reverse=True)


def test_a_tag_is_the_version_with_a_section(release, monkeypatch):
    version = gl.__version__
    assert release.notes(f"v{version}") == release.sections()[version][1]
    for tag in ("", version, "v9.9.9", f"v{version} "):
        with pytest.raises(SystemExit, match=r"the version in gridlayout/__init__\.py is"):
            release.notes(tag)
    for sections in ({}, {version: (None, "text")}, {version: ("2026-01-01", "")}):
        monkeypatch.setattr(release, "sections", lambda found=sections: found)
        with pytest.raises(SystemExit, match=re.escape(f"'## [{version}] - YYYY-MM-DD'")):
            release.notes(f"v{version}")


# -- hooks and templates ---------------------------------------------------------------------------


def test_hooks_are_what_lint_runs():
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == recipe("lint")
    assert all(hook["language"] == "system" for hook in repository["hooks"])


def test_issue_forms_are_forms():
    paths = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
    forms = {path.stem: read(path) for path in paths}
    assert set(forms) == {"bug", "config", "dump", "proposal"}
    del forms["config"]
    for form in forms.values():
        assert set(form) == {"name", "description", "labels", "body"}
        ids = [field["id"] for field in form["body"]]
        assert len(ids) == len(set(ids))
        for field in form["body"]:
            assert field["type"] in {"input", "textarea"}
            assert field["attributes"]["label"]
        assert any(field.get("validations", {}).get("required") for field in form["body"])


# -- guides ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GUIDES)
def test_guides_name_what_exists(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"`make ([a-z-]+)", text):
        assert target in targets()
    assert not {each for each in re.findall(r"\]\((?!https?:)([^)#]+)", text) if not exists(each)}
    paths = {each for each in re.findall(r"`([\w./-]+/[\w./*-]*)`", text) if "=" not in each}
    assert not {each for each in paths if not exists(each)}


def test_security_names_functions_that_exist():
    for name in re.findall(r"`gl\.([\w.]+)`", (ROOT / "SECURITY.md").read_text()):
        assert callable(attrgetter(name)(gl))


def exists(path):
    return bool(list(ROOT.glob(path.rstrip("/"))))


def test_contributing_names_tests_and_tables_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    names = set(re.findall(r"`(test_\w+)`", text))
    sources = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    assert names
    assert all(f"def {name}(" in sources for name in names)
    for table, path in [
        ("BOARDS", "sharding/machines/chips.py"),
        ("CHIPS", "gridlayout/layouts/memory.py"),
        ("FUNCTIONS", "ops/tenstorrent/elementwise.py"),
        ("SYSTEMS", "docs/extension.py"),
        ("ROOMS", "tests/test_floors.py"),
    ]:
        assert re.search(rf"^{table}\b.*= [{{(]", (ROOT / path).read_text(), re.MULTILINE), table
