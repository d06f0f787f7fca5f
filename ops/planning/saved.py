"""`load_plan`: reads plans from files, and checks every value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AbstractMesh

from gridlayout.errors import LayoutError
from gridlayout.files import read_json
from gridlayout.layouts.layout import Layout
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.chosen import Chosen, Stated
from gridlayout.ops.choose.division import Units
from gridlayout.ops.planning.plan import FORMAT, VERSION, Alternative, Plan
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.public import public
from gridlayout.records import checked
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.text import parse

_MOST_BYTES = 1 << 28
_MOST_ROUNDS = 64  # of a product


@public
def load_plan(path: str | Path, fn: Callable[..., Any] | None = None) -> Plan:
    """Return a plan that `plan.save(path)` has written.

    fn: the planned function, which `plan.run` needs; `gl.on_grid(fn, policy=plan)` takes a plan
    without one. Whether the plan is for that function is checked when it is used. `LayoutError` for
    any other file, and for a plan made with another version of JAX, because jaxprs differ then.

    >>> import jax, gridlayout as gl, tempfile, pathlib
    >>> x = jax.ShapeDtypeStruct((64, 64), "float32")
    >>> plan = gl.plan(lambda x: x @ x, x, machine="v5e 4x4")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan.save(pathlib.Path(folder, "plan.json"))
    ...     load_plan(pathlib.Path(folder, "plan.json")).time == plan.time
    True
    """
    if fn is not None and not callable(fn):
        raise LayoutError(f"fn must be a function, not {type(fn).__name__} {fn!r}")
    try:
        record = read_json(Path(path), _MOST_BYTES)
        if record["format"] != FORMAT:
            raise KeyError("format")
        if record["version"] != VERSION:
            raise LayoutError(
                f"its format has version {record['version']!r}, and this gridlayout reads "
                f"{VERSION}: make the plan again with gl.plan"
            )
        version = record["jax"]
        if version == jax.__version__:
            return _plan_of(record, fn)
    except LayoutError as error:
        raise LayoutError(f"{str(path)!r} is no plan that can be used: {error}") from error
    except OSError as error:
        raise LayoutError(f"{str(path)!r} is no plan that can be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LayoutError(f"{str(path)!r} is no plan that plan.save wrote: {error!r}") from error
    raise LayoutError(
        f"{str(path)!r} was planned with JAX {version}, and this is {jax.__version__}: make the "
        "plan again with gl.plan"
    )


def _plan_of(record: Any, fn: Callable[..., Any] | None) -> Plan:
    program = checked(dict[str, str], record["program"])
    staged = [(n, stage) for n, *stage in record["staged"]]
    simulation = checked(Simulation, {**record, "title": program["title"], "staged": staged})
    _check_times(simulation)
    mesh = AbstractMesh(tuple(simulation.mesh.values()), tuple(simulation.mesh))
    device = DeviceGrid(mesh, machine=simulation.machine)
    results = _layouts(record["results"])
    return Plan(
        _layouts(record["layouts"]),
        results,
        checked(float, record["bound"]),
        replace(simulation, machine=device.machine),
        device,
        Stated(
            device,
            None if record["units"] is None else _chosen(record, device),
            program["digest"],
            tuple(results.values()),
            max(checked(int, record["trips"]), 1),
        ),
        checked(dict[str, tuple[Alternative, ...]], record["alternatives"]),
        checked(str, record["how"]),
        fn,
    )


def _check_times(simulation: Simulation) -> None:
    """Raise ValueError where stages are of no equation, or samples of the bytes have no time."""
    held, at, equations = simulation.held, simulation.held_at, simulation.equations
    if len(held) != len(at):
        raise ValueError(f"held has {len(held)} numbers, and held_at {len(at)} times")
    for number, (equation, stage) in enumerate(simulation.staged):
        if any(k >= number for k in stage.after or ()):
            raise ValueError(f"stage {number} waits for {stage.after!r}, which come later")
        if equation >= len(equations):
            raise ValueError(f"{equation!r} is not one of {len(equations)} equations")
        known = len(equations[equation].collectives)
        if stage.collective is not None and stage.collective >= known:
            raise ValueError(f"{stage.collective!r} is not one of {known} collectives")


def _layouts(record: Any) -> dict[str, Layout | None]:
    texts = checked(dict[str, str | None], record)
    return {name: None if text is None else parse(text) for name, text in texts.items()}


def _chosen(record: Any, device: DeviceGrid) -> Chosen:
    known = set(device.fine.axis_names)
    axes = checked(tuple[tuple[str, ...], ...], record["units"])
    names = [axis for unit in axes for axis in unit]
    if not known.issuperset(names) or len(set(names)) != len(names):
        raise ValueError(f"units {axes} are not of the mesh's axes {sorted(known)}")
    choices = dict(_choice(each, len(axes)) for each in record["choices"])
    return Chosen(Units(device, axes), choices, checked(int, record["products"]))


def _choice(record: Any, count: int) -> tuple[tuple[int, ...], Choice]:
    path, choice = record["path"], checked(Choice, record)
    if not all(isinstance(k, int) and not isinstance(k, bool) for k in path):
        raise ValueError(f"{path!r} must be whole numbers")
    if not 1 <= choice.rounds <= _MOST_ROUNDS:
        raise ValueError(f"{choice.rounds!r} rounds must be from 1 to {_MOST_ROUNDS}")
    for division in (*choice.ins, choice.made, choice.out, (choice.summed,)):
        units = [unit for dim in division or () for unit in dim]
        if len(set(units)) != len(units) or not set(units).issubset(range(count)):
            raise ValueError(f"{division!r} must have some of {count} units, each once")
    return tuple(path), choice
