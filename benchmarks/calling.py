"""What a call costs, against jitted functions of plain arrays: eager operators, many arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import hijax

import gridlayout as gl
from benchmarks.programs import MESH, normal
from benchmarks.timing import Result, medians

LEAVES = 512
SIDE = 8


class Boxed:
    """The least that is no array to JAX, and so takes `jax.jit`'s way in Python: one array."""

    def __init__(self, array: Any) -> None:
        self.array = array


@dataclass(frozen=True)
class BoxedType(hijax.HiType):
    """The type of all `Boxed`: there is one."""

    array: ClassVar[Any] = hijax.ShapedArray((SIDE, SIDE), jnp.dtype("float32"))

    def lo_ty(self) -> list[Any]:
        return [self.array]

    def lower_val(self, x: Any, /) -> list[Any]:
        return [x.array]

    def raise_val(self, array: Any, /) -> Any:
        return Boxed(array)

    def __getattr__(self, name: str) -> Any:  # what JAX asks of every type
        return getattr(self.array, name)

    def strip_weak_type(self) -> BoxedType:
        return self


BOXED = BoxedType()
hijax.register_hitype(Boxed, lambda _: BOXED)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda x, y: x + y,
    "x @ y": lambda x, y: x @ y,
    "x.sum()": lambda x, y: x.sum(),
}


def operators() -> list[Result]:
    """Eager operators, against jitted ones of arrays with the same shards."""
    device, rows = gl.DeviceGrid(MESH), []
    layout = gl.GridLayout((64, 64), "float32", grid=MESH)
    sharding = jax.sharding.NamedSharding(device.fine, device.placement(MESH).spec)
    plain = [jax.device_put(normal(64, 64), sharding) for _ in range(2)]
    laid = [gl.put(np.asarray(x), layout, device) for x in plain]
    for name, fn in _OPERATORS.items():
        calls = {"ours": partial(fn, *laid), "plain": partial(jax.jit(fn), *plain)}
        found = medians(calls, rounds=301)
        row = found["ours"], found["plain"], "the same in jax.jit", 1.3
        rows.append(Result(f"eager {name}, 64x64 on {device.size} devices", *row))
    return rows


def eager(side: int, mesh: tuple[int, ...], target: float) -> Result:
    """x + y on small arrays."""
    device = gl.DeviceGrid(mesh)
    layout = gl.GridLayout((side, side), "float32", grid=MESH)
    x, y = (gl.put(normal(side, side), layout, device) for _ in range(2))
    add = jax.jit(jnp.add)
    found = medians(
        {"ours": lambda: (x + y).storage, "plain": lambda: add(x.storage, y.storage)}, rounds=1001
    )
    name = f"eager x + y, {side}x{side} on {device.size} devices"
    return Result(name, found["ours"], found["plain"], "jitted jnp.add", target)


def many_leaves() -> list[Result]:
    """A call of many arrays on one device, also with `jax.jit` around it.

    JAX calls what takes values of types that it does not know in Python: no type does better there
    than `Boxed`, with nothing computed.
    """
    layout, device = gl.GridLayout((SIDE, SIDE), "float32", grid=(1, 1)), gl.DeviceGrid((1,))
    laid = [gl.put(normal(SIDE, SIDE), layout, device) for _ in range(LEAVES)]
    plain = [x.storage for x in laid]
    boxed = [Boxed(x) for x in plain]

    def twice(leaves: Any) -> Any:
        return [x * 2 for x in leaves]

    on_grid, jitted = gl.on_grid(twice), jax.jit(twice)
    both, same = jax.jit(on_grid), jax.jit(lambda leaves: leaves)
    found = medians(
        {
            "ours": lambda: on_grid(laid),
            "both": lambda: both(laid),
            "jit": lambda: jitted(plain),
            "least": lambda: [x.array for x in same(boxed)],
        },
        rounds=51,
    )
    name = f"a call of {LEAVES} leaves"
    return [
        Result(name, found["ours"], found["jit"], "jax.jit", 2.0),
        Result(
            f"{name}, jax.jit around it", found["both"], found["least"], "jit of a bare type", 1.2
        ),
        Result(f"{name}, the same", found["both"], found["jit"], "jit of arrays", 1.5),
    ]


def results() -> list[Result]:
    return [eager(SIDE, (1,), 1.5), eager(64, MESH, 4.0), *operators(), *many_leaves()]
