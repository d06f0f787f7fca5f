"""What results hold: grids and tiles that fit them, and how much more than their elements at most."""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from deciding import Traced
from devices import turn as device_of
from laid_out import assert_same, poisoned
from test_primitives import DEVICE, TABLE, drawn, ways

import gridlayout as gl
from gridlayout.ops.array import fitting
from gridlayout.ops.interpret import decide
from gridlayout.sharding.limits import LIMITS

MESH = gl.DeviceGrid((4, 2)) if len(jax.devices()) == 8 else gl.DeviceGrid((1, 1))
X = np.random.default_rng(0).uniform(-1, 1, (530, 630)).astype("f4")
TILED = gl.GridLayout((530, 630), grid=(4, 2), tile=(32, 32))


def ratio(layout, device):
    """How many times as large as its elements the storage of an array is."""
    return np.prod(device.storage_shape(layout)) / layout.size


@pytest.fixture(name="no_page")
def fixture_no_page(monkeypatch):
    """No storage is small enough to be anything, so that small arrays tell."""
    strict = dataclasses.replace(LIMITS, page_bytes=0, core_bytes=32)
    caches = (fitting.fitting, sys.modules["gridlayout.ops.array.policy"].offered)
    caches = (*caches, decide._remembered)

    def clear():
        for cache in caches:
            cache.cache_clear()

    monkeypatch.setattr(fitting, "LIMITS", strict)
    clear()
    yield
    clear()


@pytest.mark.parametrize("kind", TABLE)
def test_no_result_holds_more_than_twice_its_elements_or_than_its_operands_did(kind, no_page):
    arrays, _ = TABLE[kind]
    traced = [(name, Traced(fn, arrays)) for name, fn in ways(kind)]
    for seed in range(6):
        rng = np.random.default_rng([seed, len(kind)])
        device = device_of(DEVICE, seed)
        places = [drawn(a.shape, rng).with_dtype(a.dtype) for a in arrays]
        most = max(2, *(ratio(place, device) for place in places))
        for name, function in traced:
            for spec in function.program(places, device).results:
                if spec.shape and 0 not in spec.shape:
                    held = ratio(spec.layout, device)
                    assert held <= most + 1e-9, (name, seed, places, spec.layout)
