"""`load_plan`: reads plans from files, and checks every value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AbstractMesh

from gridlayout.errors import LayoutError
from gridlayout.files import read_json
from gridlayout.layouts.layout import Layout
from gridlayout.ops.plan.choice import Choice
from gridlayout.ops.plan.chosen import Chosen, Stated
from gridlayout.ops.plan.division import Division, Units
from gridlayout.ops.planning.plan import Alternative, Plan
from gridlayout.ops.planning.record import FORMAT, VERSION
from gridlayout.ops.planning.simulation import Equation, LiveRange, Simulation
from gridlayout.ops.programs.stages import Stage
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machines.machine import Machine
from gridlayout.text import parse

_MOST_BYTES = 1 << 28


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
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LayoutError(f"{str(path)!r} is no plan that plan.save wrote: {error!r}") from error
    raise LayoutError(
        f"{str(path)!r} was planned with JAX {version}, and this is {jax.__version__}: make the "
        "plan again with gl.plan"
    )


def _plan_of(record: Any, fn: Callable[..., Any] | None) -> Plan:
    machine = Machine.of_record(record["machine"])
    mesh = {_text(axis): _count(size) for axis, size in record["mesh"].items()}
    device = DeviceGrid(AbstractMesh(tuple(mesh.values()), tuple(mesh)), machine=machine)
    equations = tuple(_equation(each) for each in record["equations"])
    held = tuple((_text(name), _count(nbytes)) for name, nbytes in record["held"])
    if len(held) != len(record["held_at"]):
        raise ValueError(
            f"held has {len(held)} numbers, and held_at {len(record['held_at'])} times"
        )
    simulation = Simulation(
        _text(record["program"]["title"]),
        device.machine,
        mesh,
        equations,
        held,
        _count(record["peak_bytes"]),
        {_text(axis): _count(nbytes) for axis, nbytes in record["links"].items()},
        frozenset(map(_count, record["dram"])),
        live_ranges=tuple(map(_live_range, record["live_ranges"])),
        staged=tuple(_staged(each, equations) for each in record["staged"]),
        held_at=tuple(map(_number, record["held_at"])),
    )
    results = _layouts(record["results"])
    return Plan(
        _layouts(record["layouts"]),
        results,
        _number(record["bound"]),
        simulation,
        device,
        Stated(
            device,
            None if record["units"] is None else _chosen(record, device),
            _text(record["program"]["digest"]),
            tuple(results.values()),
            max(_count(record["trips"]), 1),
        ),
        {
            _text(name): tuple(
                Alternative(_text(way["words"]), _number(way["time"]), bool(way["is_chosen"]))
                for way in ways
            )
            for name, ways in record["alternatives"].items()
        },
        _text(record["how"]),
        fn,
    )


def _chosen(record: Any, device: DeviceGrid) -> Chosen:
    known = set(device.fine.axis_names)
    axes = tuple(tuple(map(_text, unit)) for unit in record["units"])
    names = [axis for unit in axes for axis in unit]
    if not known.issuperset(names) or len(set(names)) != len(names):
        raise ValueError(f"units {axes} are not of the mesh's axes {sorted(known)}")
    choices = dict(_choice(each, len(axes)) for each in record["choices"])
    return Chosen(Units(device, axes), choices, _count(record["products"]))


def _layouts(record: Any) -> dict[str, Layout | None]:
    return {
        _text(name): None if text is None else parse(_text(text)) for name, text in record.items()
    }


def _equation(record: Any) -> Equation:
    texts = {name: _text(record[name]) for name in ("name", "ins", "outs", "limit", "how")}
    numbers = {name: _number(record[name]) for name in ("compute", "movement")}
    sent = tuple(
        Collective(
            _text(each["kind"]),
            tuple(map(_text, each["axes"])),
            *(
                _count(each[name])
                for name in ("group_size", "received_bytes", "receivers", "count", "together")
            ),
        )
        for each in record["collectives"]
    )
    return Equation(**texts, **numbers, collectives=sent)  # type: ignore[arg-type]


def _staged(record: Any, equations: Sequence[Equation]) -> tuple[int, Stage]:
    equation, collective, share, of = record
    if _count(equation) >= len(equations):
        raise ValueError(f"{equation!r} is not one of {len(equations)} equations")
    known = len(equations[equation].collectives)
    if collective is not None and _count(collective) >= known:
        raise ValueError(f"{collective!r} is not one of {known} collectives")
    return equation, Stage(collective, _number(share), _text(of))


def _live_range(record: Any) -> LiveRange:
    nbytes, first, last = (_count(record[name]) for name in ("nbytes", "first", "last"))
    at = record["address"]
    return LiveRange(_text(record["name"]), nbytes, first, last, None if at is None else _count(at))


def _choice(record: Any, units: int) -> tuple[tuple[int, ...], Choice]:
    def unit(value: Any) -> int:
        if _count(value) >= units:
            raise ValueError(f"{value!r} is not one of {units} units")
        return int(value)

    def division(value: Any) -> Division:
        found = tuple(tuple(map(unit, dim)) for dim in value)
        used = [u for dim in found for u in dim]
        if len(set(used)) != len(used):
            raise ValueError(f"{value!r} has a unit twice")
        return found

    flags = [record[name] for name in ("scattered", "joined")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise ValueError("scattered and joined must be true or false")
    path = record["path"]
    if not all(isinstance(k, int) and not isinstance(k, bool) for k in path):
        raise ValueError(f"{path!r} must be whole numbers")
    return tuple(path), Choice(
        tuple(None if each is None else division(each) for each in record["ins"]),
        division(record["made"]),
        division(record["out"]),
        tuple(map(unit, record["summed"])),
        *flags,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} must be a text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} must be a whole number, 0 or more")
    return value


def _number(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or value < 0:
        raise ValueError(f"{value!r} must be a finite number, 0 or more")
    return float(value)
