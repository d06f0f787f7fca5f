# The targets need only make and Python >= 3.11; the first one run creates .venv.
#   make demo    the tour of the library, in an environment of its own, .venv-demo
#   make test    every test, doctests too, each on few cases     PYTEST_ARGS="-k affine -n0" narrows it
#   make test-all   the same on all cases, before a release
#   make test-jax   what touches JAX, for other versions         JAX_VERSION=0.10.2 installs that one
#   make prove   random cases against judges that share no code with it; over an hour  PROVE_ARGS="maps --scale 0.1"
#   make programs   programs of other libraries on the grid, which it installs
#   make lint    ruff check, ruff format --check, mypy
#   make bench   the benchmarks
#   make docs    the site, in build/docs; a warning is an error
#   make notebooks   runs notebooks/*.py, writes the .ipynb beside each
#   make wheel   builds sdist and wheel into dist/, runs the README's lines on the wheel installed alone
#   make versions   the same with every Python from 3.11 here, with the oldest and the newest JAX
#   make release-check TAG=v0.2.0   whether version and changelog are those of the tag
#   make publish   uploads dist/, from CI alone: .github/workflows/release.yml
#   make clean   removes the environments, builds and caches

# The newest Python there is, pyenv's too. Each is run, not only looked up: a version manager may
# leave commands that only fail.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3 python \
	$$(ls -d "$$(pyenv root 2>/dev/null)"/versions/3.*/bin/python3 2>/dev/null); do \
	"$$python" -c 'import sys, venv, ensurepip; v = sys.version_info; \
	v >= (3, 11) and v.releaselevel == "final" and print("%d.%d.%d" % v[:3], sys.executable)' \
	</dev/null 2>/dev/null; done | sort -V | tail -n 1 | cut -d " " -f 2-)

# The version of JAX that is installed; empty for the newest that pyproject.toml allows.
JAX_VERSION ?=

VENV ?= .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
# With what the library needs alone. The demo runs from this folder, and what it runs is compiled to
# bytecode then: both save a third of the wait.
DEMO := .venv-demo

# The tests that compile and run with JAX, which pass on every Python and JAX that is supported.
# Others show numbers and texts of the newest.
TOUCH_JAX := $(patsubst %,tests/test_%.py,on_grid control along packing placement relayout xla models \
	cores multiprocess plan steps slices)

NEEDS_PYTHON = @test -n "$(PYTHON)" || \
	{ echo "no Python >= 3.11 with venv found; try: make PYTHON=/path/to/python3.12" >&2; exit 1; }

.PHONY: demo test test-all test-jax prove programs lint bench docs notebooks wheel versions \
	release-check publish clean
.DEFAULT_GOAL := test

demo: $(DEMO)/.installed
	@mkdir -p build
	$(DEMO)/bin/python -m gridlayout demo -o build/demo.html

# Also where Python is told to write no bytecode: without it, every process that runs tests compiles
# them again, and every process that tests start the library.
test test-all test-jax prove: export PYTHONDONTWRITEBYTECODE =

test: $(INSTALLED)
	$(RUN) -m pytest $(PYTEST_ARGS)

test-all: $(INSTALLED)
	$(RUN) -m pytest --all-cases $(PYTEST_ARGS)

test-jax: $(INSTALLED)
	$(RUN) -m pytest $(TOUCH_JAX) $(PYTEST_ARGS)

prove: $(INSTALLED)
	$(RUN) -m tests.prove $(PROVE_ARGS)

programs: $(INSTALLED)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev,programs]'
	$(RUN) -m pytest --all-cases tests/test_programs.py $(PYTEST_ARGS)

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: $(INSTALLED)
	$(RUN) -m benchmarks

docs: $(INSTALLED)
	$(RUN) -m sphinx --fail-on-warning --keep-going --quiet --fresh-env docs build/docs

notebooks: $(INSTALLED)
	$(RUN) notebooks/execute.py

# Nothing of this checkout or of its environment is on the path of the environment with the wheel.
wheel: $(INSTALLED)
	rm -rf dist .venv-wheel
	$(RUN) -m build --no-isolation
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	.venv-wheel/bin/python -I tests/readme.py

versions: wheel
	$(RUN) tests/versions.py dist

release-check:
	$(PYTHON) .github/release.py "$$TAG"

# Trusted publishing: whoever runs this shows the identity of the workflow, and there is no password.
publish:
	uv publish --trusted-publishing always dist/*

# An environment that an interrupted install or a removed interpreter broke is made anew.
$(INSTALLED): pyproject.toml
	$(NEEDS_PYTHON)
	@echo "installing gridlayout and its development tools into $(VENV), once"
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]' \
		$(if $(JAX_VERSION),'jax==$(JAX_VERSION)')
	@touch $@

$(DEMO)/.installed: pyproject.toml
	$(NEEDS_PYTHON)
	@echo "installing JAX and NumPy into $(DEMO), once"
	@$(DEMO)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(DEMO)
	@$(DEMO)/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))\
		["project"]["dependencies"], sep="\n")' | \
		$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r /dev/stdin
	@touch $@

clean:
	rm -rf .venv .venv-* build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find gridlayout sharding ops tests -name __pycache__ -type d -prune -exec rm -rf {} +
