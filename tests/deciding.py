"""Deciding without compiling: what a function does on operands in layouts, and of which kind it is.

What a rule chooses, moves and masks is known before anything runs, so it is asked for of many
layouts; of all that are of one kind, one is compiled, or without `--all-cases` one of each name.
"""

import functools
import types
from collections.abc import Callable
from math import prod

import jax
import numpy as np
import tiers

import gridlayout as gl
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Deferred, Replicated, Sharded, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.interpret.decide import offers
from gridlayout.ops.interpret.grid_call import spec_of, with_constants_as_operands
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.moves.local_move import LocalMove
from gridlayout.ops.programs.program import Program
from gridlayout.sharding.meshes.placement import Placement


class Traced:
    """A function of arrays, traced once, to be decided for operands in many layouts."""

    def __init__(self, fn, arrays):
        structs = [jax.ShapeDtypeStruct(np.shape(a), a.dtype) for a in arrays]
        traced, shapes = jax.make_jaxpr(fn, return_shape=True)(*structs)
        self.outs = jax.tree.leaves(shapes)
        self.jaxpr, consts = with_constants_as_operands(traced)
        self.consts = [spec_of(jax.typeof(const)) for const in consts]

    def program(self, layouts, device):
        """What is done on operands in these layouts: pure Python, nothing is compiled."""
        specs = [Sharded(x, device.placement(x.core_shape)) for x in layouts]
        return planned(
            Env(device, templates=(layouts[0],)), Graph.of(self.jaxpr), [*self.consts, *specs]
        )

    def sound_program(self, layouts, device, what):
        """The same, which is sound; `what` is said where it is not."""
        program = self.program(layouts, device)
        try:
            assert_sound(program, self, device)
        except AssertionError as error:
            raise AssertionError(f"{what}, {layouts=}: {error}") from error
        return program

    def kinds(self, layouts, device, what):
        """The kinds of steps that are done then, but for moves."""
        return kinds_of(self.sound_program(layouts, device, what))


class Compiled:
    """What has been compiled so far: the functions by name, and the kinds of steps.

    together: of functions whose steps are all of kinds that others have, none is compiled.
    """

    def __init__(self, together=False):
        self.names, self.kinds, self.together = set(), set(), together

    def is_new(self, name, kinds):
        """Whether to compile a function in layouts where it is of these kinds; notes that it is."""
        other = bool(kinds - self.kinds)
        found = (tiers.ALL and other) or (name not in self.names and (other or not self.together))
        if found:
            self.names.add(name)
            self.kinds |= kinds
        return found


def gathered(spec, device):
    """Bytes received where every device is sent all of an array's storage."""
    if (layout := layout_of(spec)) is None:
        return 0
    return device.size * prod(device.storage_shape(layout)) * layout.dtype.itemsize


def decisions(program):
    """Those that equations on laid-out values asked for."""
    return [made.decision for made in program.made if made.is_listed]


def assert_sound(program, traced, device):
    """What holds of every decision, whatever the layouts."""
    for out, spec in zip(traced.outs, program.results, strict=True):
        assert (spec.shape, spec.dtype) == (out.shape, out.dtype)
        assert isinstance(spec, Sharded) == (out.ndim > 0)
        assert not isinstance(spec, Sharded) or spec.placement == device.placement(
            spec.layout.core_shape
        )
    for made in decisions(program):
        assert [(x.shape, x.dtype) for x in made.results] == [
            (x.shape, x.dtype) for x in made.op.outs
        ] or made.op.name == "relayout"
        for sent in made.collectives:
            assert sent.received_bytes > 0
            assert 1 < sent.group_size <= device.size
            assert 0 < sent.receivers <= device.size
        # Operands and results are relaid out twice at most, also the largest value between them,
        # as an outer product where its operands are: it may have more padding than all others.
        ends = sum(gathered(x, device) for x in (*made.operands, *made.results))
        between = max((gathered(x, device) for x in made.registers), default=0)
        assert made.bytes_moved <= 4 * max(ends, between)
        assert made.flops >= 0
        assert made.device_flops * device.size >= made.flops or made.how == "view"


def kind_of(step):
    """What tells steps apart that run other code: kernels, moves, collectives, masks.

    Two steps of one kind differ in numbers only: extents, strides, how many devices.
    """
    inner = tuple(kind_of(each) for body in step.bodies for each in body.program.steps)
    sent = tuple(each.kind for each in step.collectives)
    code = _of_move(step.does) if is_move(step) else _of_kernel(step.run)
    return code, sent, step.masks, inner


def kinds_of(program, moves=False):
    """The kinds of a program's steps; moves: with those that bring data from layout to layout."""
    return {kind_of(step) for step in program.steps if moves or not is_move(step)}


def is_move(step):
    """Whether a step brings data from one layout to another."""
    return isinstance(step.does, LocalMove)


def _of_move(move):
    way = move.exchange
    if way is None:
        return "through the logical array"
    transfers = frozenset(
        (t.source is None, t.target is None, bool(t.pairs)) for t in way.transfers
    )
    steps = frozenset(map(type, (*way.first, *way.last)))
    return bool(way.gathers), transfers, bool(way.final), bool(way.slices), steps


def _of_kernel(x):
    """What of a value that a kernel closes over decides which code it runs."""
    if isinstance(x, functools.partial):
        return _of_kernel(x.func), tuple(map(_of_kernel, x.args))
    if isinstance(x, types.FunctionType):
        cells = tuple(_of_kernel(cell.cell_contents) for cell in x.__closure__ or ())
        return x.__code__, cells
    if x is None or isinstance(x, (bool, str, type)):
        return x
    if isinstance(x, Op):
        return x.name, tuple(aval.dtype for aval in x.ins)
    if isinstance(x, Layout):
        return type(x), x.is_scatter
    if isinstance(x, Placement):
        return x.slots != x.grid
    if isinstance(x, (Sharded, Deferred, Replicated)):
        return type(x)
    if isinstance(x, (tuple, list)):
        return frozenset(map(_of_kernel, x))
    if isinstance(x, Callable):
        return getattr(x, "__name__", type(x))
    return type(x)


def every_way(fn, operands):
    """The ways that a rule offers for the one op that a function is: each, the text of its program,
    and what it gives, on every device. Operands are GridArrays, or arrays that all devices have.
    """
    (device,) = {x.device for x in operands if isinstance(x, gl.GridArray)}
    laid = [x for x in operands if isinstance(x, gl.GridArray)]
    env = Env(device, templates=(laid[0].layout,))
    traced = jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands))
    (eqn,) = traced.eqns
    given = [operands[traced.jaxpr.invars.index(v)] for v in eqn.invars]
    specs = tuple(
        Sharded(x.layout, device.placement(x.layout.core_shape))
        if isinstance(x, gl.GridArray)
        else Replicated(x.shape, x.dtype)
        for x in given
    )
    arrays = [x.storage if isinstance(x, gl.GridArray) else device.replicate(x) for x in given]
    for way in offers(Op.of(eqn), specs, env):
        program = Program(device, specs)
        outs = program.append(way, [Value(spec, k) for k, spec in enumerate(specs)])
        builder = Builder(env, [out.spec for out in outs])
        there = [builder.replicated(Value(out.spec, k)) for k, out in enumerate(outs)]
        program.finish(program.append(builder.decision(way.op, way.results, there), outs))
        run = jax.jit(program.run).lower(arrays).compile()
        yield way, run.as_text(), run(arrays)
