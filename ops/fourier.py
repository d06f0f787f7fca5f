"""Fourier transforms: each along dims that lie whole on each core meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.ops.along import bound, run
from gridlayout.ops.report import RULE
from gridlayout.ops.values import Context


def fft(ctx: Context, eqn: Any, value: Any) -> Any:
    """Fourier transforms over the last dims; over all dims, of the last one and of the others."""
    p = eqn.params
    axes = tuple(range(value.ndim))[-len(p["fft_lengths"]) :]
    if len(axes) < value.ndim or value.ndim == 1:
        return run(ctx, eqn, [(value, axes)], bound(eqn))
    kinds = lax.FftType
    back = p["fft_type"] in (kinds.IFFT, kinds.IRFFT)
    whole = kinds.IFFT if back else kinds.FFT
    # What is real comes first, or is left last.
    turns = [(axes[-1], p["fft_type"]), *((d, whole) for d in axes[:-1])]
    for d, kind in reversed(turns) if back else turns:
        length = p["fft_lengths"][d]
        made = length // 2 + 1 if kind == kinds.RFFT else length
        shape = tuple(made if k == d else n for k, n in enumerate(value.shape))
        dtype = (
            eqn.outvars[0].aval.dtype if kind == kinds.IRFFT else jnp.result_type(value.dtype, 1j)
        )
        part = SimpleNamespace(
            primitive=eqn.primitive,
            params={"fft_type": kind, "fft_lengths": (length,)},
            outvars=[SimpleNamespace(aval=jax.ShapeDtypeStruct(shape, dtype))],
        )
        if (found := run(ctx, part, [(value, (d,))], bound(part))) is None:
            return None
        value = found[1]
    return RULE, value
