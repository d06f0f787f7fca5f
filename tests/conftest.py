"""Runs the whole suite, doctests too, on emulated CPU devices.

`GRIDLAYOUT_TEST_DEVICES=64 make test` runs it on another number of devices, `JAX_PLATFORMS` on
another platform.
"""

import gc
import itertools
import os

import hypothesis
import jax
import pytest
import tiers

DEVICES = int(os.environ.get("GRIDLAYOUT_TEST_DEVICES", "8"))

# As `gl.emulate_devices` does, and why: see there.
os.environ["NPROC"] = str(max(2 * DEVICES, int(os.environ.get("NPROC") or 0)))
# JAX reads these once, when its first array or device is asked for; if something has done so
# before this file, the first update raises, as it should.
jax.config.update("jax_num_cpu_devices", DEVICES)
jax.config.update("jax_cpu_enable_async_dispatch", False)
if not jax.config.jax_platforms:
    jax.config.update("jax_platforms", "cpu")
# Machine code that runs once is not worth optimizing; `XLA_FLAGS= make test` does it. Code for GPUs
# that XLA makes with these flags is wrong.
FLAGS = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"]
if jax.__version_info__ < (0, 11):  # gone in later XLA
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")
if jax.config.jax_platforms == "cpu":
    os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))
# Nor is it worth writing down which line of a test each of its operations comes from.
jax.config.update("jax_traceback_in_locations_limit", 0)
# A program that an earlier run compiled would hide whether this one compiles.
jax.config.update("jax_enable_compilation_cache", False)

# No deadline: the first example of a property also pays for the compilation.
CI = {"derandomize": True, "print_blob": True} if os.environ.get("CI") == "true" else {}
hypothesis.settings.register_profile("few", deadline=None, max_examples=25, **CI)
hypothesis.settings.register_profile("all", deadline=None, **CI)


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--all-cases",
        action="store_true",
        help="compile every case of every table (tests/tiers.py)",
    )


def pytest_report_header() -> str:
    return f"cases: {'all' if tiers.ALL else 'few of each table; --all-cases runs all'}"


def pytest_configure(config) -> None:
    tiers.ALL = config.getoption("--all-cases")
    hypothesis.settings.load_profile("all" if tiers.ALL else "few")
    # A mesh test that finds one device tests nothing: better no run than a green one.
    found = len(jax.devices())
    if found < DEVICES:
        raise pytest.UsageError(
            f"the suite needs {DEVICES} devices, JAX has {found} ({jax.default_backend()}); "
            "set GRIDLAYOUT_TEST_DEVICES to run it on fewer"
        )


def pytest_collection_modifyitems(config, items) -> None:
    left = tiers.without_marked(items)
    config.hook.pytest_deselected(items=[*set(items).difference(left)])
    items[:] = left


TESTS_RUN = itertools.count(1)


@pytest.fixture(name="few_programs")
def fixture_few_programs():
    """For modules whose compiled programs together take gigabytes: they are dropped in between."""
    yield
    if next(TESTS_RUN) % 25 == 0:
        jax.clear_caches()


@pytest.fixture(scope="module", name="frozen")
def fixture_frozen():
    """For modules that collect garbage often: what others left is looked through only once."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    # What JAX and its caches hold is not worth looking through again and again.
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def pytest_unconfigure() -> None:
    gc.freeze()  # nor when the process ends, whose memory goes with it
