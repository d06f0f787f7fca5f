"""Loops of tiny steps: small arrays whole on every device, where the devices then send less often.

A collective of a few bytes takes as long as one of many. In a loop whose body sends often, arrays
that go round it, and those made inside, are therefore whole where they are small, if so there are
fewer collectives; every device then computes all of them. Before the loop they are gathered, and
after it each device keeps its part, so that results lie as they would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Decision
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import jaxprs_in
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.control import PER_TRIP
from gridlayout.ops.rules.table import is_of_user, rules_of
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.limits import LIMITS


def sends_often(decision: Decision, env: Env) -> bool:
    """Whether it is of a loop whose body sends often, and in which layouts are left to choose."""
    if decision.op.name not in ("scan", "while") or env.whole or env.algorithm is not None:
        return False
    often = any(_count(body.program.collectives) >= LIMITS.often for body in decision.bodies)
    return often and not _is_told(decision.op)


def with_small_whole(laid: Decision, whole: Decision, env: Env) -> Decision:
    """The cheaper of two decisions for a loop; of the second one, results that lie as the first's.

    By seconds where a collective is said to take time of its own, else by how many there are.
    """
    if _sent(whole, env) >= _sent(laid, env):
        return laid
    b = Builder(env, laid.operands)
    found = b.inlined(whole, [Value(spec, k) for k, spec in enumerate(laid.operands)])
    outs = [
        x if out.layout is None else b.on_cores(x, out.layout)
        for x, out in zip(found, laid.outs, strict=True)
    ]
    return b.decision(laid.op, laid.operands, outs)


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
            times = body.times * (LIMITS.trips if body.note == PER_TRIP else 1)
            for each in body.program.collectives:
                yield each.times(times)


def _is_told(op: Op) -> bool:
    """Whether a user says how something in the loop lies, or runs."""
    return any(
        eqn.primitive.name == "with_layout"
        or any(is_of_user(r.decide) for r in rules_of(Op.of(eqn)))
        for eqn in _equations(op.params)
    )


def _equations(params: Any) -> Iterator[Any]:
    """The equations of the jaxprs among parameters, those inside of them too."""
    for eqn in (eqn for jaxpr in jaxprs_in(params) for eqn in jaxpr.eqns):
        yield eqn
        yield from _equations(eqn.params)
