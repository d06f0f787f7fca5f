"""Linking: functions of a text become runnable steps, with known ops and live operands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import jax

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.mlir.program import Function, Module, Operation, symbols
from gridlayout.ops.tenstorrent.caches import IN_PLACE
from gridlayout.ops.tenstorrent.operation import HINTS, Op
from gridlayout.ops.tenstorrent.table import DIALECTS, WITHOUT_VALUES, function_of
from gridlayout.tenstorrent.tensor_type import TensorType, read_tensor_type

# A bound on the ops of a text with all calls written out: a number, and so many per op.
MAX_OPS, MAX_OPS_PER_OP = 1 << 12, 32
DEVICE = "!ttnn.device"  # the type of a device, which is no tensor: there is only one here
MAX_DEPTH = 32  # functions, each of which calls the next one


@dataclass(frozen=True)
class Call:
    """A call of a function on the operands."""

    callee: Linked


@dataclass(frozen=True)
class Case:
    """A call of one of several functions, selected by the first operand, on the other operands."""

    branches: tuple[Linked, ...]


@dataclass(frozen=True)
class Bound:
    """A bound of a loop: `number`, or the value of operand `operand` if that is given."""

    number: int
    operand: int | None = None


Count = tuple[Bound, Bound, Bound]


@dataclass(frozen=True)
class Loop:
    """A function that is called repeatedly; its first `state` operands change between calls.

    places: the state operands that its results replace, in order. times: the range (first, end,
    step) of a counted loop; or a function of the operands, whose result is 0 when the loop ends.
    """

    body: Linked
    state: int
    places: tuple[int, ...]
    times: Count | Linked


@dataclass(frozen=True)
class Step:
    """One op that makes values: a function from operands' logical arrays to those of results.

    hints: the attributes that change no value, such as program configs, as text. control: the
    functions that it calls, instead of `run`. facts: as in `Op`.
    """

    line: int
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    run: Callable[..., list[Any]] | None
    hints: dict[str, str]
    control: Call | Case | Loop | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Linked:
    """A function that can be run: its arguments' names and types, its steps, and returned names.

    truths: for each result, whether its numbers are truth values. ops: how many it has, with those
    of the functions that it calls, every time. depth: how many functions call each other, at most.
    changed: the arguments that it changes in place.
    """

    name: str
    arguments: tuple[tuple[str, TensorType], ...]
    steps: tuple[Step, ...]
    returned: tuple[str, ...]
    results: tuple[TensorType, ...]
    truths: tuple[bool, ...] = ()
    ops: int = 0
    depth: int = 1
    changed: tuple[str, ...] = ()


def called_by(step: Step) -> tuple[Linked, ...]:
    """Return the functions that a step calls."""
    match step.control:
        case Call(callee):
            return (callee,)
        case Case(branches):
            return branches
        case Loop(body, times=times):
            return (times, body) if isinstance(times, Linked) else (body,)
    return ()


class Linker:
    """The functions of a module, each linked once; `mesh` as in `function_of`.

    strict: as for `load`.
    """

    def __init__(self, module: Module, mesh: Shape = (), strict: bool = True) -> None:
        self.module, self.mesh, self.strict = module, mesh, strict
        self.types: dict[str, TensorType] = {}
        self.linked: dict[str, Linked | None] = {}  # None while it is being linked
        count = sum(len(each.operations) for each in module.functions.values())
        self.most_ops = MAX_OPS + MAX_OPS_PER_OP * count
        self.depth = 0

    def type_of(self, text: str, line: int) -> TensorType:
        """Return a type read from its text; cached."""
        if text not in self.types:
            try:
                found = read_tensor_type(self.module.aliases.whole(text), self.strict)
                # 64-bit integers become 32-bit ones where JAX has no others.
                dtype = jax.dtypes.canonicalize_dtype(found.dtype)
                self.types[text] = found if found.layout else replace(found, dtype=dtype)
            except LayoutError as error:
                why = re.sub(r"^(line|column) \d+: ", "", str(error))
                if self.strict and "does not follow from" in why:
                    why += "; load(..., strict=False) takes the layout that follows"
                raise LayoutError(f"line {line}: type {text[:80]}: {why}") from None
        return self.types[text]

    def written_out(self, operation: Operation) -> Operation:
        """Return an operation in whose attributes aliases are written out, but not in hints."""
        aliased = {
            key: self.module.aliases.resolve(text)
            for key, text in operation.attributes.items()
            if "#" in text and key not in HINTS
        }
        return (
            replace(operation, attributes=operation.attributes | aliased) if aliased else operation
        )

    def link(self, name: str, line: int = 0) -> Linked:
        """Return the function of a name; `line`: of the call, for errors."""
        if name in self.linked:
            found = self.linked[name]
            if found is None:
                raise LayoutError(f"line {line}: function @{name} calls itself")
            return found
        if name not in self.module.functions:
            raise LayoutError(f"line {line}: there is no function @{name}")
        function = self.module.functions[name]
        line = line or function.line
        self.linked[name] = None
        self.depth += 1
        made = None
        if self.depth <= MAX_DEPTH:
            made = self.linked[name] = _Body(self, function).linked()
        self.depth -= 1
        if made is None or made.depth > MAX_DEPTH:
            raise LayoutError(
                f"line {line}: @{name} is the first of over {MAX_DEPTH} functions that call each "
                "other: inline some of them"
            )
        if made.ops > self.most_ops:
            raise LayoutError(
                f"line {line}: @{name} runs {made.ops} ops, with those of the functions that it "
                f"calls; at most {self.most_ops} are supported: {MAX_OPS}, and {MAX_OPS_PER_OP} "
                "for each in the text"
            )
        return made


class _Body:
    """The linking of one function, op by op: the values that exist, and those deallocated."""

    def __init__(self, linker: Linker, function: Function) -> None:
        self.linker, self.function = linker, function
        self.value_types: dict[str, str] = {}  # the text of each value's type
        self.freed: dict[str, int] = {}
        self.changed: set[str] = set()

    def linked(self) -> Linked:
        function = self.function
        for argument in function.arguments:
            self.define(argument.name, argument.type, function.line)
        steps, returned = [], None
        for operation in function.operations:
            if returned is not None:
                _fail(operation, "comes after the function's return")
            self.use(operation)
            if operation.name == "return":
                returned = operation
            elif operation.name == "ttnn.deallocate":
                self.freed |= dict.fromkeys(operation.operands, operation.line)
            elif (step := self.step(operation)) is not None:
                steps.append(step)
            for name, kind in zip(operation.results, operation.result_types, strict=True):
                self.define(name, kind, operation.line)
        if returned is None:
            raise LayoutError(f"line {function.line}: function @{function.name} has no return")
        if returned.operand_types != function.result_types:
            _fail(returned, f"the function's results are {', '.join(function.result_types)[:200]}")
        tensors = [each for each in function.arguments if each.type != DEVICE]
        types = [self.linker.type_of(each.type, function.line) for each in tensors]
        names = [argument.name for argument in tensors]
        callees = [callee for step in steps for callee in called_by(step)]
        return Linked(
            *(function.name, tuple(zip(names, types, strict=True)), tuple(steps)),
            *(returned.operands, self.types(returned.operand_types, returned.line)),
            tuple(map(_is_truth, function.result_attributes)),
            len(steps) + sum(callee.ops for callee in callees),
            1 + max((callee.depth for callee in callees), default=0),
            tuple(name for name in names if name in self.changed),
        )

    def define(self, name: str, kind: str, line: int) -> None:
        if name in self.value_types:
            raise LayoutError(f"line {line}: value {name} is defined twice")
        self.value_types[name] = kind

    def use(self, operation: Operation) -> None:
        for name, kind in zip(operation.operands, operation.operand_types, strict=True):
            if name not in self.value_types:
                _fail(operation, f"there is no value {name}")
            if name in self.freed:
                _fail(operation, f"{name} was deallocated on line {self.freed[name]}")
            if kind != self.value_types[name]:
                _fail(operation, f"{name} is a {self.value_types[name][:80]}, not a {kind[:80]}")

    def types(self, texts: tuple[str, ...], line: int) -> tuple[TensorType, ...]:
        tensors = [text for text in texts if text != DEVICE]
        return tuple(self.linker.type_of(text, line) for text in tensors)

    def step(self, operation: Operation) -> Step | None:
        if operation.name.partition(".")[2] in WITHOUT_VALUES:
            return None
        before, after = operation.operand_types, operation.result_types
        inputs, outputs = (self.types(texts, operation.line) for texts in (before, after))
        pairs = zip(operation.operands, before, strict=True)
        operands = tuple(name for name, kind in pairs if kind != DEVICE)
        operation = self.linker.written_out(operation)
        op = Op(operation, inputs, outputs)
        name = op.name if op.dialect in DIALECTS else operation.name
        in_place = IN_PLACE.get(name, ())[: len(operands)] if op.dialect in DIALECTS else ()
        if in_place:  # the names of these operands mean the new values from here on
            op = Op(operation, inputs, outputs := (*outputs, *(inputs[k] for k in in_place)))
        results = (*operation.results, *(operands[k] for k in in_place))
        self.changed.update(operands[k] for k in in_place)
        made = (operation.line, name, operands, results)
        if (control := self.control(op)) is not None:
            return Step(*made, inputs, outputs, None, {}, control)
        if op.dialect not in DIALECTS:
            _fail(operation, "only ops of TTNN and TTIR can be run")
        run = function_of(op, self.linker.mesh)
        return Step(*made, inputs, outputs, run, op.hints, facts=op.facts)

    def control(self, op: Op) -> Call | Case | Loop | None:
        """Return the functions that an operation calls; None for an op that calls none."""
        operation, line = op.found, op.line
        if operation.callee:
            callee = self.linker.link(operation.callee, line)
            self.check_call(operation, callee, op.inputs, op.outputs)
            return Call(callee)
        if operation.name == "ttcore.case":
            names = symbols(op.text("branch_programs"))
            branches = tuple(self.linker.link(name, line) for name in names)
            for branch in branches:
                self.check_call(operation, branch, op.inputs[1:], op.outputs)
            if not branches or not op.inputs or op.inputs[0].shape:
                op.fail("it needs branches, and one number as the first operand, which selects one")
            op.check_all_read()
            return Case(branches)
        return self.loop(op) if operation.name == "ttcore.while_loop" else None

    def loop(self, op: Op) -> Loop:
        """Return a loop: a counted one, or one with a condition."""
        state, places = op.integer("state_count"), op.integers("output_indices")
        body = self.named(op, "body_program")
        if not 0 <= state <= len(op.inputs) or set(places) - set(range(state)):
            op.fail(
                f"state_count {state} must be at most {len(op.inputs)}, and output_indices "
                f"{places} below it"
            )
        self.check_call(op.found, body, op.inputs, op.outputs)
        if tuple(op.inputs[place] for place in places) != op.outputs:
            op.fail("the results' types are not those of the state that they replace")
        times: Count | Linked
        if op.has("condition_program"):
            times = self.named(op, "condition_program")
            if len(times.results) != 1 or times.results[0].shape:
                op.fail("the condition must be one number")
            self.check_call(op.found, times, op.inputs, times.results)
        else:
            times = (_bound(op, "initial"), _bound(op, "limit"), _bound(op, "step"))
            if times[2].operand is not None or times[2].number < 1:
                op.fail(f"step = {op.text('step')[:60]} must be a number, 1 or more")
        op.check_all_read()
        return Loop(body, state, places, times)

    def named(self, op: Op, key: str) -> Linked:
        """Return the function that an attribute names."""
        names = symbols(op.text(key))
        if len(names) != 1:
            op.fail(f"{key} = {op.text(key)[:60]} must name one function")
        return self.linker.link(names[0], op.line)

    def check_call(
        self,
        operation: Operation,
        callee: Linked,
        inputs: tuple[TensorType, ...],
        outputs: tuple[TensorType, ...],
    ) -> None:
        """Raise `LayoutError` unless the function takes and returns values of these types."""
        if inputs != tuple(kind for _, kind in callee.arguments) or outputs != callee.results:
            _fail(operation, f"the types are not those of function @{callee.name}")
        if callee.changed:
            _fail(
                operation,
                f"function @{callee.name} changes its argument {callee.changed[0]} in place, which "
                "is known only of the function that is run: return the new value",
            )


def _is_truth(attributes: dict[str, str]) -> bool:
    """Return whether a result is a truth value: type i1 in `ttcore.local_shape`."""
    return bool(re.search(r"tensor<(?:[0-9]+x)*i1>", attributes.get("ttcore.local_shape", "")))


def _bound(op: Op, key: str) -> Bound:
    """Return the bound `#ttcore.loop_bound<4>`, or `<0, 3 : i32>`: the value of operand 3."""
    text = op.text(key)
    form = r"#ttcore\.loop_bound<(-?[0-9]{1,10})(?:, ([0-9]{1,9})(?: : \w+)?)?>"
    if not (found := re.fullmatch(form, text)) or abs(int(found[1])) >= 2**31:
        op.fail(f"{key} = {text[:60]} must be a number below 2**31, or one that an operand holds")
    operand = None if found[2] is None else int(found[2])
    if operand is not None and (operand >= len(op.inputs) or op.inputs[operand].shape):
        op.fail(f"{key} = {text[:60]} names no operand that is one number")
    return Bound(int(found[1]), operand)


def _fail(operation: Operation, message: str) -> NoReturn:
    raise LayoutError(f"line {operation.line}: {operation.name}: {message}")
