"""JAX's checks of numbers, which `jax.debug_nans` and `jax.debug_infs` turn on.

JAX checks every number that a program returns. Of a storage that includes the padding, which holds
no elements, so the library's programs run without these checks, and the library checks elements:
`ops/array/checked.py` sets numbers in padding that JAX would report to another one and looks for
them in elements, and `ops/interpret/invalid_numbers.py` finds the equation that makes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class NumberChecks(NamedTuple):
    """Which numbers JAX reports: NaN, and infinity."""

    nans: bool
    infs: bool

    def reports(self, numbers: Any) -> Any:
        """Return where an array holds numbers that JAX reports, as an array of bools."""
        found = jnp.zeros((), bool)
        for is_on, test in zip(self, (jnp.isnan, jnp.isinf), strict=True):
            if is_on:
                found = found | test(numbers)
        return found

    def name_in(self, array: Any) -> str | None:
        """Return the name of a number in an array that JAX reports, as JAX names it, or None.

        Of an array over several processes, only the shards of this one are read.
        """
        if not jnp.issubdtype(array.dtype, np.inexact):
            return None
        shards = getattr(array, "addressable_shards", None)
        for part in [array] if shards is None else [shard.data for shard in shards]:
            numbers = np.asarray(part)
            for is_on, test, name in zip(self, (np.isnan, np.isinf), ("nan", "inf"), strict=True):
                if is_on and test(numbers).any():
                    return name
        return None


def number_checks() -> NumberChecks | None:
    """Return the checks that are on; None if there are none."""
    found = NumberChecks(jax.debug_nans.value, jax.debug_infs.value)
    return found if any(found) else None


@contextmanager
def _without(context: AbstractContextManager[Any]) -> Iterator[None]:
    with jax.debug_nans(False), jax.debug_infs(False), context:
        yield


def without_number_checks(context: AbstractContextManager[Any]) -> AbstractContextManager[Any]:
    """Return a context that is entered with JAX's checks turned off."""
    return context if number_checks() is None else _without(context)
