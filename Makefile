# The targets need only make and Python >= 3.11; the first one run creates .venv.
#   make demo    the tour of the library
#   make test    every test, doctests too, each on few cases     PYTEST_ARGS="-k affine -n0" narrows it
#   make test-all   the same on all cases, before a release
#   make programs   programs of other libraries on the grid, which it installs
#   make lint    ruff check, ruff format --check, mypy
#   make bench   the benchmarks
#   make docs    the site, in build/docs; a warning is an error
#   make notebooks   runs notebooks/*.py, writes the .ipynb beside each
#   make clean   removes the environments, builds and caches

# The newest Python there is, pyenv's too. Each is run, not only looked up: a version manager may
# leave commands that only fail.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3 python \
	$$(ls -d "$$(pyenv root 2>/dev/null)"/versions/3.*/bin/python3 2>/dev/null); do \
	"$$python" -c 'import sys, venv, ensurepip; v = sys.version_info; \
	v >= (3, 11) and v.releaselevel == "final" and print("%d.%d.%d" % v[:3], sys.executable)' \
	</dev/null 2>/dev/null; done | sort -V | tail -n 1 | cut -d " " -f 2-)

VENV ?= .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-all programs lint bench docs notebooks clean
.DEFAULT_GOAL := test

demo: $(INSTALLED)
	$(RUN) -m gridlayout demo

test: $(INSTALLED)
	$(RUN) -m pytest $(PYTEST_ARGS)

test-all: $(INSTALLED)
	$(RUN) -m pytest --all-cases $(PYTEST_ARGS)

programs: $(INSTALLED)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev,programs]'
	$(RUN) -m pytest tests/test_programs.py $(PYTEST_ARGS)

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

# An environment that an interrupted install or a removed interpreter broke is made anew.
$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv found; try: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@echo "installing gridlayout and its development tools into $(VENV), once"
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv .venv-* build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find gridlayout sharding ops tests -name __pycache__ -type d -prune -exec rm -rf {} +
