"""Jaxprs as lines of text that processes compare, with the values of all their constants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from gridlayout.sharding.processes.elements import Elements

# What Python prints differently in each process: addresses, and the order of sets.
_ADDRESS, _SET = re.compile(r"\b0x[0-9a-f]+"), re.compile(r"\{([^{}:=]*)\}")


def jaxpr_lines(closed: Any) -> list[str]:
    """Return the jaxpr of a function as lines, with its constants at any depth, by value."""
    found = [f"constant {_constant(x)}" for x in _constants(closed)]
    return [*found, *(common_text(line.strip()) for line in str(closed).splitlines())]


def common_text(line: str) -> str:
    """Return a line without addresses and with sets in sorted order."""
    line = _SET.sub(lambda m: f"{{{', '.join(sorted(m[1].split(', ')))}}}", line)
    return _ADDRESS.sub("0x...", line)


def _constants(x: Any) -> Iterator[Any]:
    """Yield the arrays that a jaxpr holds: as constants, as literals, and in its parameters.

    The text of a jaxpr has the values of numbers, but abbreviates arrays.
    """
    if isinstance(x, (jax.Array, np.ndarray, np.generic)):
        yield x
    elif isinstance(x, (list, tuple)):
        for each in x:
            yield from _constants(each)
    elif hasattr(x, "eqns"):
        yield from _constants(list(getattr(x, "consts", ())))
        for eqn in x.eqns:
            literals = (a.val for a in eqn.invars if isinstance(a, core.Literal))
            yield from _constants([x for x in literals if np.ndim(x)])
            yield from _constants(list(eqn.params.values()))


def _constant(x: Any) -> str:
    """Describe a constant: type, shape, and a digest of its elements if this process has all."""
    kind = f"{x.dtype}{list(x.shape)}"
    if isinstance(x, jax.core.Tracer) or not getattr(x, "is_fully_addressable", True):
        return kind
    return f"{kind} of digest {Elements(plain(x), exact=False).prefix(None).hex()}"


def plain(x: Any) -> np.ndarray[Any, Any]:
    """Return a local array or number as a NumPy array; random keys as their data."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)
