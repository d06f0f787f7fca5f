"""`PartialResults`: how devices combine what each of them scattered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.reductions import NEUTRAL
from gridlayout.ops.products.divided import summed
from gridlayout.sharding.extremes import pmax, pmin, sent_dtype


@dataclass(frozen=True)
class PartialResults:
    """How devices combine partial results of a scatter.

    neutral: the element that changes none, for a dtype. combine: of two arrays. reduce: the
    all-reduce; None for sums.
    """

    neutral: Callable[[Any], Any]
    combine: Callable[..., jax.Array]
    reduce: Callable[..., jax.Array] | None = None

    def takes(self, dtype: Any) -> bool:
        """Whether devices combine numbers of a dtype."""
        whole = dtype.itemsize * 8 == dtypes.bits(dtype)
        return self.reduce is None or (whole and not jnp.issubdtype(dtype, jnp.complexfloating))

    def reduced(self, b: Builder, part: Value, requested: Requested, dtype: Any) -> Value:
        """Return the partial results of all devices, combined."""
        reduce, local, over = self.reduce, requested.made.local_shape, requested.summed
        if reduce is None:
            return summed(b, part, requested, dtype, dtype)
        sent = b.collectives().all_reduce(over, dtypes.nbytes(part.shape, sent_dtype(dtype)))
        (out,) = b.run(lambda x: [reduce(x, over).reshape(local)], [part], [requested.made], sent)
        return out


PARTIAL = {
    "scatter-add": PartialResults(lambda dtype: 0, lax.add),
    "scatter-max": PartialResults(NEUTRAL["reduce_max"], lax.max, pmax),
    "scatter-min": PartialResults(NEUTRAL["reduce_min"], lax.min, pmin),
}
