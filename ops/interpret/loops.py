"""Loops of tiny steps: small arrays are replicated where devices then communicate less often.

A collective of a few bytes takes as long as one of many. In a loop whose body communicates often,
small carries and small arrays made inside are therefore replicated, if that takes fewer
collectives; every device then computes all of them. They are gathered before the loop, and after it
each device keeps its part, so that results have the layouts that they would have otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Decision
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import inner_equations
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated
from gridlayout.ops.decisions.stated import stated_by
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.keys import is_threefry
from gridlayout.ops.primitives.table import rules_of
from gridlayout.ops.primitives.user_rules import is_user_rule
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.limits import LIMITS


def sends_often(decision: Decision, env: Env) -> bool:
    """Return whether this is a loop that communicates often and whose layouts may be chosen."""
    if (
        decision.op.name not in ("scan", "while")
        or decision.op.loop is not None
        or env.replicates_small
        or env.algorithm is not None
    ):
        return False
    often = any(
        _count(body.program.collectives) >= LIMITS.loop_collectives for body in decision.bodies
    )
    return often and not _is_requested(decision.op, env)


def with_small_replicated(sharded: Decision, replicated: Decision, env: Env) -> Decision:
    """Return the cheaper of two decisions for a loop, with results in the layouts of `sharded`.

    sharded: the decision with sharded arrays. replicated: the one with small arrays replicated. The
    price is seconds; where there is no latency and all links are equal, it is the number of
    collectives.
    """
    if _sent(replicated, env) >= _sent(sharded, env):
        return sharded
    b = Builder(env, sharded.operands)
    found = b.inlined(replicated, [Value(spec, k) for k, spec in enumerate(sharded.operands)])
    outs = [
        x if out.own_layout is None else b.as_sharded(x, out.own_layout)
        for x, out in zip(found, sharded.outs, strict=True)
    ]
    return b.decision(sharded.op, sharded.operands, outs)


def _sent(decision: Decision, env: Env) -> tuple[float, float]:
    every = list(_collectives(decision))
    received = float(sum(each.received_bytes * each.count for each in every))
    if not env.machine.bytes_decide:
        return env.machine.seconds(every), received
    return float(_count(every)), received


def _count(collectives: Iterable[Collective]) -> int:
    return sum(each.count for each in collectives)


def _collectives(decision: Decision) -> Iterator[Collective]:
    for step in decision.steps:
        yield from step.collectives
        for body in step.bodies:
            for each in body.program.collectives:
                yield each.times(body.trips)


def draws_much(op: Op, env: Env) -> bool:
    """Return whether a loop or a branch draws a random array too large for one device to draw."""
    drawn = (eqn for eqn in inner_equations(op.params) if eqn.primitive.name == "random_bits")
    avals = (eqn.outvars[0].aval for eqn in drawn if is_threefry(eqn.invars[0].aval.dtype))
    return any(env.is_large(Replicated(aval.shape, aval.dtype)) for aval in avals)


def _is_requested(op: Op, env: Env) -> bool:
    """Return whether the user states a placement or a rule for something in the loop."""
    return any(
        stated_by(eqn, env.device) is not None
        or any(is_user_rule(rule) for rule in rules_of(Op.of(eqn)))
        for eqn in inner_equations(op.params)
    )
