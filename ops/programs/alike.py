"""Programs that do the same are traced once: those of new functions that compute what others did.

As where a cell of a notebook runs again, or a test makes its function anew: its decisions are
remembered, and so is what JAX traced of their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

import jax

from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.running import constant_key

_MOST = 64  # programs that are remembered


def runner(program: Program) -> Callable[..., list[Any]]:
    """The program's `run`, jitted; that of an earlier program, if it did the same."""
    key = _key(program)
    return jax.jit(program.run) if key is None else _remembered(_Same(key, program))


class _Same:
    """A program, equal to others that do the same."""

    def __init__(self, key: Hashable, program: Program) -> None:
        self.key, self.program = key, program

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=_MOST)
def _remembered(same: _Same) -> Callable[..., list[Any]]:
    return jax.jit(same.program.run)


def _key(program: Program) -> Hashable | None:
    """What is equal in programs that do the same; None for what holds arrays or calls the host."""
    steps = list(zip(program.steps, program.scopes, strict=True))
    read = [k for step, _ in steps for k in step.reads]
    read += [out.at for out in program.outs]
    arrays = any(not isinstance(k, int) and getattr(k, "ndim", 0) for k in read)
    if arrays or not program.is_local:
        return None
    return (
        program.device,
        program.operands,
        program.results,
        tuple((step.run, _places(step.reads), step.writes, scope) for step, scope in steps),
        _places([out.at for out in program.outs]),
    )


def _places(registers: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(k if isinstance(k, int) else constant_key(k) for k in registers)
