"""Fourier transforms: along unsharded dims, one dim after another, or replicated if small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import Factors, batch
from gridlayout.ops.decisions.flops import of_fft
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import Replicated
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import mapped, run
from gridlayout.sharding.limits import LIMITS


def fft(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a Fourier transform over the last dims.

    If these are all dims of an array of rank 2 or more, each dim is transformed separately; a small
    array is transformed replicated.
    """
    p = op.params
    axes = tuple(range(value.ndim))[-len(p["fft_lengths"]) :]
    if len(axes) < value.ndim or value.ndim == 1:
        return mapped(b, op, value)
    sizes = [dtypes.nbytes(aval.shape, aval.dtype) for aval in (op.ins[0], op.out)]
    if max(sizes) <= LIMITS.small_bytes:
        return _on_every_device(b, op, value)
    kinds = lax.FftType
    is_inverse = p["fft_type"] in (kinds.IFFT, kinds.IRFFT)
    complex_kind = kinds.IFFT if is_inverse else kinds.FFT
    # A real dim is the first to be transformed, and the last one of an inverse transform.
    transforms = [(axes[-1], p["fft_type"]), *((d, complex_kind) for d in axes[:-1])]
    for d, kind in reversed(transforms) if is_inverse else transforms:
        length = p["fft_lengths"][d]
        made = length // 2 + 1 if kind == kinds.RFFT else length
        shape = tuple(made if k == d else n for k, n in enumerate(value.shape))
        dtype = op.out.dtype if kind == kinds.IRFFT else jnp.result_type(value.dtype, 1j)
        params = {"fft_type": kind, "fft_lengths": (length,)}
        part = Op(op.primitive, params, op.ins, (Aval(shape, dtype),))
        if (found := run(b, part, [(value, (d,))], part.bound())) is None:
            return None
        (value,) = found
    return value


def _on_every_device(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a transform of the replicated array: it is gathered once, not once per dim."""
    b.device_flops = of_fft(op)
    made = [Replicated(op.out.shape, op.out.dtype)]
    (out,) = b.run(op.bound(), [b.replicated(value)], made)
    return b.as_sharded(out, like=value)


def _factors(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    return batch(len(params["fft_lengths"]))(params, ins, outs)


FOURIER: dict[str, Record] = {"fft": Record((fft,), of_fft, _factors)}
