"""The agreement of processes before a function runs on the grid: on its jaxpr and the layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gridlayout.ops.interpret.compiled import Compiled
from gridlayout.ops.interpret.function import Function, Signature
from gridlayout.ops.interpret.operands import operand_lines
from gridlayout.sharding.processes.agreement import joint_call, local_data
from gridlayout.sharding.processes.jaxprs import jaxpr_lines
from gridlayout.sharding.processes.joint import JointCall, Repeated


@contextmanager
def agreed_call(
    lifted: Any, function: Function, arrays: Sequence[Any], signature: Signature
) -> Iterator[JointCall]:
    """Enter a call that every process of the device grid makes, else `LayoutError`.

    They must call the same function on arrays of the same layouts, shapes and dtypes, and on the
    same numbers and arrays that are not laid out.
    """
    with joint_call(lifted, signature.device, arrays) as call:
        call.agree(
            signature,
            lambda: _lines(function, signature),
            owner=function,
            data=lambda: local_data(arrays),
        )
        yield call


class AgreedProgram:
    """A compiled function on devices of several processes; each call of it is a joint call.

    name: the function, as messages name it.
    """

    def __init__(
        self, name: str, function: Function, signature: Signature, compiled: Compiled
    ) -> None:
        self.name, self.function = name, function
        self.signature, self.compiled = signature, compiled
        self.repeated: Repeated | None = None

    def __call__(self, storages: Sequence[Any]) -> Any:
        """Run the function on storages, and return its results."""
        if self.repeated is not None and self.repeated.is_agreed(storages):
            return self.repeated.run(self.compiled, storages)
        with agreed_call(self.name, self.function, storages, self.signature) as call:
            self.repeated = call.repeated or self.repeated
            return call.ran(self.compiled(storages))


def _lines(function: Function, signature: Signature) -> list[str]:
    policy = getattr(function.policy, "__qualname__", type(function.policy).__name__)
    closed, *_ = function.jaxpr(signature)
    lines = operand_lines(signature.kinds)
    return [*lines, f"algorithm {signature.algorithm}, policy {policy}", *jaxpr_lines(closed)]
