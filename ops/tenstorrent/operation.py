"""`Op`: one operation, with the types of its tensors and readers of its attributes' texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.mlir.program import Operation
from gridlayout.mlir.source import fields, parts
from gridlayout.tenstorrent.tensor_type import TensorType

Function = Callable[..., Any]  # of the values of an op's operands
# Attributes about how the chip runs the op, or that repeat the types: only reports show them.
HINTS = frozenset(
    {
        *("compute_config", "matmul_program_config", "program_config", "conv2d_slice_config"),
        *("memory_config", "dtype", "layout", "input_memory_config", "input_tensor_layout"),
        *("input_dtype", "output_dtype", "weights_format", "has_bias", "use_multicore"),
        *("config_tensors_in_dram", "reallocate_halo_output", "in_place_halo", "numericStable"),
        *("stable", "operandSegmentSizes", "resultSegmentSizes", "force", "sub_core_grids"),
        *("num_links", "topology", "sub_device_id", "in_place", "applied_shard_scheme"),
        *(
            "mesh_offset",
            "mesh_shape",
            "core_grid",
            "sorted",
            "sharded",
            "pad_value",
            "conservative_folding",
        ),
    }
)
# The TTIR names of ops that TTNN names differently.
RENAMED = {
    "embedding_backward": "embedding_bw",
    "upsample2d": "upsample",
    "div": "divide",
    "pow": "pow_tensor",
    "right_shift": "bitwise_right_shift",
}
_INT = r"-?[0-9]{1,19}"
_FLOATS = {"f64": (np.uint64, np.float64), "f32": (np.uint32, np.float32)} | {
    "f16": (np.uint16, np.float16),
    "bf16": (np.uint16, ml_dtypes.bfloat16),
}
REQUIRED: Any = object()  # the default of an attribute that must be stated


class Op:
    """An operation: `inputs` and `outputs` are the types of its tensors, without devices.

    The methods that read attributes raise `LayoutError` with the line for an invalid text, and for
    a missing attribute without a `default`. `check_all_read` rejects attributes that nothing read.
    """

    def __init__(
        self, found: Operation, inputs: tuple[TensorType, ...], outputs: tuple[TensorType, ...]
    ) -> None:
        self.found, self.inputs, self.outputs = found, inputs, outputs
        self.dialect, _, name = found.name.partition(".")
        self.name, self.line = RENAMED.get(name, name), found.line
        # Values of attributes that the propagation over chips needs, such as `dims` and `axis`.
        self.facts: dict[str, Any] = {}
        self._read: set[str] = set()

    def fail(self, message: str) -> NoReturn:
        """Raise `LayoutError` about this operation."""
        raise LayoutError(f"line {self.line}: {self.found.name}: {message}")

    @property
    def hints(self) -> dict[str, str]:
        """The attributes that change no value, as text."""
        return {key: text for key, text in self.found.attributes.items() if key in HINTS}

    def check_all_read(self) -> None:
        """Raise `LayoutError` for an attribute that may change values and was not read."""
        for key, text in self.found.attributes.items():
            # An attribute of another dialect changes no value: MLIR lets passes discard it.
            if key not in self._read and key not in HINTS and "." not in key:
                self.fail(f"attribute {key} = {text[:60]} is not known")

    def has(self, key: str) -> bool:
        """Return whether there is such an attribute."""
        return key in self.found.attributes

    def text(self, key: str, default: Any = REQUIRED) -> Any:
        """Return an attribute's text."""
        self._read.add(key)
        found = self.found.attributes.get(key, default)
        if found is REQUIRED:
            self.fail(f"the attribute {key} is missing")
        return found

    def _parsed(self, key: str, default: Any, read: Callable[[str], Any], what: str) -> Any:
        text = self.text(key, default)
        if text is default:
            return default
        found = read(text)
        if found is None:
            self.fail(f"{key} = {text[:60]} must be {what}")
        return found

    def integers(self, key: str, default: Any = REQUIRED) -> Any:
        """Read `[1 : i32, 2 : i32]`, `array<i64: 1, 2>`, `#ttnn.shape<1x2>` or `1 : si32`."""
        return self._parsed(key, default, _integers, "whole numbers")

    def integer(self, key: str, default: Any = REQUIRED) -> Any:
        """Read `1 : si32`."""
        found = self.integers(key, default)
        if found is default:
            return default
        if len(found) != 1:
            self.fail(f"{key} must be one whole number")
        return int(found[0])

    def number(self, key: str, default: Any = REQUIRED) -> Any:
        """Read `1.5 : f32`, `2 : i32`, or bits such as `0xFF800000 : f32`."""
        return self._parsed(key, default, number_of, "a number")

    def flag(self, key: str, default: Any = REQUIRED) -> bool:
        """Read `true` or `false`."""
        return self._parsed(key, default, {"true": True, "false": False}.get, "true or false")

    def word(self, key: str, default: Any = REQUIRED) -> str:
        """Read the word in `#ttcore.reduce_type<sum>`, `<sum>`, `"sum"` or `sum`."""
        return self._parsed(key, default, _word, "one word")

    def axis(self, key: str, default: Any = REQUIRED) -> int:
        """Read a dim of the first operand; negative ones count from the end."""
        rank, axis = len(self.inputs[0].shape), self.integer(key, default)
        if not -rank <= axis < rank:
            self.fail(f"{key} = {axis} is outside the rank {rank}")
        return axis % rank

    def axes(self, key: str) -> tuple[int, ...]:
        """Read dims of the first operand; all of them if the attribute is missing."""
        rank = len(self.inputs[0].shape)
        found = self.integers(key, None)
        if found is None:
            return tuple(range(rank))
        if any(not -rank <= axis < rank for axis in found):
            self.fail(f"{key} = {found} is outside the rank {rank}")
        return tuple(axis % rank for axis in found)

    def present(self, count: int) -> list[bool]:
        """Return which operands are given: by `operandSegmentSizes`, or else the first ones."""
        sizes = self.integers("operandSegmentSizes", None)
        if sizes is None:
            sizes = tuple(k < len(self.inputs) for k in range(count))
        if sum(sizes) != len(self.inputs) or len(sizes) < count or any(sizes[count:]):
            self.fail(f"operandSegmentSizes {sizes} of {len(self.inputs)} operands are not known")
        return [bool(size) for size in sizes[:count]]

    def config(self, key: str) -> dict[str, str]:
        """Read the fields of `#ttnn.conv2d_config<...>`; none if the attribute is missing."""
        text = self.text(key, "")
        if "<" not in text:
            return {}
        return fields(text[text.index("<") + 1 : text.rindex(">")])


def number_of(text: str) -> float | int | None:
    """Return the number that a text states, or None.

    >>> number_of("2.5 : f32"), number_of("0xFF800000 : f32"), number_of("-3 : i32")
    (2.5, -inf, -3)
    """
    value, _, kind = (word.strip() for word in text.partition(":"))
    if re.fullmatch(_INT, value):
        return int(value)
    if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", value):
        if kind not in _FLOATS:
            return int(value, 16)
        bits, dtype = _FLOATS[kind]
        if int(value, 16) > np.iinfo(bits).max:
            return None
        return float(bits(int(value, 16)).view(dtype))
    if re.fullmatch(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,5})?", value[:64]):
        return float(value)
    return {"true": 1, "false": 0, "inf": math.inf, "nan": math.nan}.get(value)


def _integers(text: str) -> tuple[int, ...] | None:
    if found := re.fullmatch(r"array<\s*\w+\s*(?::(.*))?>", text, re.DOTALL):
        items = parts(found[1] or "")
    elif text.startswith("["):
        items = parts(text[1:-1])
    elif found := re.fullmatch(r"#ttnn\.shape<([0-9x]*)>", text):
        items = [item for item in found[1].split("x") if item]
    else:
        items = [text]
    values = [item.partition(":")[0].strip() for item in items]
    if not all(re.fullmatch(_INT, value) for value in values):
        return None
    return tuple(map(int, values))


def _word(text: str) -> str | None:
    found = re.fullmatch(r'(?:#?[\w.]*<)?\s*"?(\w+)"?\s*>?', text)
    return found[1] if found else None
