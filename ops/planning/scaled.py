"""`gl.scaling`: simulates a function on increasing numbers of devices, in each way to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from time import monotonic
from typing import Any

import jax

from gridlayout import dtypes
from gridlayout.arguments import as_flag, as_items, in_sequence, one_of
from gridlayout.errors import LayoutError
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Node
from gridlayout.ops.interpret.names import function_name
from gridlayout.ops.planning.making import by_default, check_search, planned
from gridlayout.ops.planning.meshes import Meshes
from gridlayout.ops.planning.scaling import PLANNED, Scaling
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.ops.planning.traced import Traced, as_machine, traced_for
from gridlayout.ops.products.algorithms import ALGORITHMS
from gridlayout.ops.products.bound import least_words
from gridlayout.ops.trees.leaves import is_grid
from gridlayout.public import public
from gridlayout.sharding.machines.machine import Machine

DEFAULT = "default"
WAYS = (*ALGORITHMS, DEFAULT, PLANNED)
_MOST_COUNTS = 1024
# Primitives that only move data.
_MOVES = ("transpose", "reshape", "convert_element_type", "squeeze", "broadcast_in_dim")


@public
def scaling(
    fn: Callable[..., Any],
    *args: Any,
    machine: Machine | str,
    devices: int | Sequence[int | Sequence[int]] | None = None,
    weak: bool = False,
    ways: Sequence[str] | None = None,
    seconds: float = 60.0,
    progress: Callable[[int, int, float], None] | None = None,
) -> Scaling:
    """Return the simulations of a program on more and more devices, in each way to run it.

    fn, args: as in `gl.simulate`; or, instead of args, one function that takes the number of
    devices and returns the args as a tuple. machine: a `gl.Machine` or the name of a ready one,
    with the chips and links to scale; for chips of several cores, cores are counted. devices:
    numbers of devices or their meshes, such as `(1, 4, (2, 4))`, or one number; by default 1, 2, 4
    and so on up to the whole machine. For a number, the mesh is the one nearest to a square with as
    many axes as the machine's. weak: whether the problem grows with the devices (weak scaling), for
    which args must be a function; otherwise all run the same problem (strong scaling).

    ways: names of `gl.ALGORITHMS`, by which all products run; "default", the choices of
    `gl.on_grid`; "planned", those of `gl.plan`, which searches for at most `seconds` each time. The
    default is every algorithm if `fn` is one product, else "default" and "planned". progress:
    called with the number of finished simulations, of all simulations, and the elapsed seconds.

    Every time is that of `gl.simulate`. Arguments are in the layouts of `gl.fill_devices` unless
    they state their own; plans have planned layouts. Speed-ups are relative to the fastest way on
    the fewest devices. A way that can't run on a number of devices has no time there, and the table
    says why.
    The lower bound of a product is the time of its multiplications, divided by the devices, plus
    that of the least bytes that a device sends or receives, over all links at once, if every
    element starts and ends on one device (H. Al Daas and others, "Tight Memory-Independent Parallel
    Matrix Multiplication Communication Lower Bounds", 2022).

    `LayoutError` for a function that can't be traced, devices that are no counts or occur twice,
    unknown ways, algorithms for a function without products, and where no way runs at all.

    >>> import jax, jax.numpy as jnp, gridlayout as gl
    >>> x = jax.ShapeDtypeStruct((4096, 4096), "bfloat16")
    >>> found = gl.scaling(jnp.matmul, x, x, machine="v5e 4x4", ways=("gathered", "cannon"))
    >>> print("\\n".join(found.lines[:7]))
    strong scaling of matmul, devices of TPU v5e: time (* the fastest)
    devices  mesh    gathered     cannon  lower bound
          1   1x1  *697.66 us  697.66 us    697.66 us
          2   1x2  *722.66 us          -    639.55 us
          4   2x2  *549.24 us  926.07 us    338.66 us
          8   2x4  *464.03 us          -    227.02 us
         16   4x4  *329.22 us  426.43 us    149.85 us
    """
    if callable(getattr(fn, "simulated", None)):
        raise LayoutError(
            "a compiled program is for the cores that it was compiled for: gl.simulate(fn, "
            "machine=...) says what it takes there"
        )
    meshes = Meshes(as_machine(machine))
    machines = _machines(meshes, devices)
    is_weak = _check_weak(fn, args, weak)
    given = [_arguments(fn, args, prod(each.mesh or ())) for each in machines]
    traced = [traced_for(fn, a, each, None) for a, each in zip(given, machines, strict=True)]
    chosen = _ways(fn, traced[0], ways)
    check_search(seconds, progress, "done, of how many, seconds")
    made, gaps = _made(fn, given, traced, chosen, seconds, progress)
    return Scaling(
        function_name(fn),
        is_weak,
        tuple(prod(each.mesh or ()) for each in machines),
        tuple(each.mesh or () for each in machines),
        made,
        gaps,
        tuple(map(_bound, traced)),
        meshes.machine.chip.name.removeprefix("cores of "),
        meshes.counted,
    )


def _made(
    fn: Any,
    given: Sequence[Any],
    traced: Sequence[Traced],
    ways: Sequence[str],
    seconds: float,
    progress: Any,
) -> tuple[dict[str, tuple[Simulation | None, ...]], dict[tuple[str, int], str]]:
    """Return the simulations of each way, and the reasons where there is none.

    given: the arguments on each machine. traced: the traced function on each. `LayoutError` if no
    simulation runs.
    """
    start, done, every = monotonic(), 0, len(ways) * len(traced)
    made: dict[str, list[Simulation | None]] = {way: [] for way in ways}
    gaps: dict[tuple[str, int], str] = {}
    for args, there in zip(given, traced, strict=True):
        for way in ways:
            found = None
            try:
                found = _simulated(fn, args, there, way, seconds)
            except LayoutError as error:
                gaps[way, there.device.size] = str(error)
            made[way].append(found)
            done += 1
            if progress is not None:
                progress(done, every, monotonic() - start)
    if len(gaps) == every:
        first = next(iter(gaps.values()))
        raise LayoutError(f"{function_name(fn)} runs in none of the ways: {first}")
    return {way: tuple(found) for way, found in made.items()}, gaps


def _machines(meshes: Meshes, devices: Any) -> list[Machine]:
    """The machine of each number of devices, in ascending order."""
    counts = meshes.doubled() if devices is None else devices
    of = "counts or meshes of devices, as (1, 2, 4, (2, 4))"
    listed = as_items(in_sequence(counts), "devices", of)
    if not 1 <= len(listed) <= _MOST_COUNTS:
        raise LayoutError(
            f"devices has {len(listed):,} counts: give from 1 to {_MOST_COUNTS:,}, as (1, 2, 4, 8)"
        )
    found: dict[int, Machine] = {}
    for each in listed:
        made = meshes.of(each)
        count = prod(made.mesh or ())
        if count in found:
            raise LayoutError(f"devices {listed} has {count:,} twice: give each number once")
        found[count] = made
    return [found[count] for count in sorted(found)]


def _arguments(fn: Any, args: Any, count: int) -> tuple[Any, ...]:
    """The arguments for a number of devices."""
    if not _is_function(args):
        return _unplaced(tuple(args))
    try:
        found = args[0](count)
    except LayoutError:
        raise
    except Exception as error:
        raise LayoutError(
            f"the function of the arguments, for {count} devices: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, (tuple, list)):
        raise LayoutError(
            f"the function of the arguments gives {type(found).__name__} {found!r} for {count} "
            f"devices: it must give the tuple of the arguments of {function_name(fn)}"
        )
    return _unplaced(tuple(found))


def _unplaced(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments; `LayoutError` where one is placed on some number of devices."""
    for leaf in jax.tree.leaves(args, is_leaf=is_grid):
        if is_grid(leaf):
            raise LayoutError(
                f"an argument is on {leaf.device.size} devices, {leaf!r}: give its shape, as "
                "jax.ShapeDtypeStruct(x.shape, x.dtype), or its layout, x.layout"
            )
    return args


def _is_function(args: Any) -> bool:
    """Whether what stands for arguments is one function that gives them."""
    return len(args) == 1 and callable(args[0]) and not hasattr(args[0], "shape")


def _check_weak(fn: Any, args: Any, weak: Any) -> bool:
    """Whether the problem grows; `LayoutError` where it can't."""
    if as_flag(weak, "weak") and not _is_function(args):
        raise LayoutError(
            f"weak scaling of {function_name(fn)} needs arguments that grow with the devices: give "
            "a function of their number in place of the arguments, as lambda n: (x_of(n), w)"
        )
    return bool(weak)


def _ways(fn: Any, traced: Traced, ways: Any) -> list[str]:
    """The names of the ways, each once."""
    if ways is None:
        return [*ALGORITHMS] if _product(traced) is not None else [DEFAULT, PLANNED]
    if isinstance(ways, str):
        ways = (ways,)
    listed = as_items(ways, "ways", f"names, of {', '.join(WAYS)}")
    if not listed:
        raise LayoutError(f"ways has no name: give some of {', '.join(WAYS)}, or leave it out")
    named = [one_of(way, WAYS, "way") for way in listed]
    if len(set(named)) < len(named):
        raise LayoutError(f"ways {named} has a name twice: give each once")
    algorithms = [way for way in named if way in ALGORITHMS]
    if algorithms and not _multiplies(traced.graph):
        raise LayoutError(
            f"ways {algorithms} are algorithms of matrix products, and {function_name(fn)} has "
            f"none: give {DEFAULT!r} or {PLANNED!r}, or leave ways out"
        )
    return named


def _multiplies(graph: Graph) -> bool:
    """Whether there is a product in a graph, or in the bodies of its loops and branches."""
    return any(eqn.primitive.name == "dot_general" for eqn in graph.equations)


def _simulated(fn: Any, args: Any, traced: Traced, way: str, seconds: float) -> Simulation:
    if way == PLANNED:
        return planned(traced, fn, args, seconds=seconds).simulation
    return by_default(traced, None if way == DEFAULT else way)


def _product(traced: Traced) -> Node | None:
    """Return the node of the product that a function consists of; None for any other function."""
    nodes = traced.graph.nodes
    products = [node for node in nodes if node.name == "dot_general"]
    others = {node.name for node in nodes} - {"dot_general", *_MOVES}
    return products[0] if len(products) == 1 and not others else None


def _bound(traced: Traced) -> float | None:
    """Return a lower bound of the seconds of a product of two matrices; None if unknown.

    It is unknown for any other function, and where devices do not have one part of each operand.
    """
    node, device = _product(traced), traced.device
    if node is None or node.ins != (0, 1) or len(traced.specs) != 2 or len(traced.graph.nodes) != 1:
        return None
    layouts = [traced.default(k) for k in (0, 1)]
    parts = [0 if layout is None else prod(layout.core_shape) for layout in layouts]
    x, y, out = (*node.op.ins, *node.op.outs)
    (contracted, _), (batch, _) = node.params["dimension_numbers"]
    k = prod(x.shape[d] for d in contracted)
    if batch or parts != [device.size] * 2 or not prod((k, *x.shape, *y.shape)):
        return None
    m, n = prod(x.shape) // k, prod(y.shape) // k
    words, _ = least_words(m, k, n, device.size)
    received = words * min(dtypes.bits(each.dtype) for each in (x, y, out)) / 8
    machine = device.machine
    multiplied = machine.seconds(flops=2 * m * k * n / device.size, dtype=x.dtype)
    return multiplied + machine.least_seconds(received)
