"""`Record`: all that the library knows of one primitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.factors import FactorsOf, whole
from gridlayout.ops.decisions.flops import Flops, nothing
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.decisions.tiled_dims import OfTiles

# A rule: `(builder, op, *values)`. It appends steps to the builder and returns the results; or
# returns a `Choice` of several rules; or returns None if it does not apply to these values.
Decide = Callable[..., Any]
OfPart = Callable[[Mapping[str, Any], Sequence[Shape], Sequence[Shape]], Mapping[str, Any]]
# Of an operation on views of an array (None: of none, or of another one) and on known numbers, as
# bytes: its results as views of that array; None for one that is no such view.
OfViews = Callable[[Mapping[str, Any], Sequence[Shifted | bytes | None]], Sequence[Shifted | None]]


# Of an op on arrays: for each operand that it reads near its positions and for each dim, how many
# positions it reads before and after each one.
Borders = Callable[
    [Mapping[str, Any], Sequence[Shape], Sequence[Shape]],
    Sequence[Sequence[tuple[int, int] | None]],
]


@dataclass(frozen=True)
class Record:
    """The rules of a primitive, and the facts of it that reports and plans use.

    rules: in the order in which they are tried; () if it falls back. of_empty: a rule that is tried
    first if operands or results have no elements; without one it falls back then. of_logical: a
    rule that is tried first if no core holds an operand; without one, every device computes all of
    the op. flops: the floating-point operations of an op. factors: the dims that correspond.
    reason: why it falls back, as reports show it.

    What XLA does:

    is_fused: it fuses the primitive into consumers. takes_fused: it fuses producers into it.
    is_kept: it computes the result once and stores it, even if several consumers could fuse it.
    is_global: it runs once on whole arrays, outside of `shard_map`.

    What it takes, on a device:

    multiplies: it is a product, whose kernel packs its operands. is_view: the result is the
    operand's bytes in another shape. keeps_tiles: on chips with tiles, whether it is a view there:
    `(params, before, after, tile) -> bool`, of shapes; None: always. functions: how many
    elementwise functions take as long as one of its operations; 0 for those of products.
    cpu_functions: the same on CPUs, for what XLA computes one by one there. borders:
    what a device receives around its blocks of the first operands; None: nothing. lengths: how much
    it reads of each dim of its operand; None: all. writes_part: the result is the first operand,
    with the second one written to a part of it in place.

    How it is run and planned:

    of_part: the changed parameters of the op on parts of operands along factors that are through:
    `(params, shapes, shapes of the parts)`; None if they are the same. of_views: its results as
    views of the array that its operands are views of; None for an op that computes. of_tiles: for
    an op that moves elements, the changed parameters on parts in tiles, if tiles stay whole.

    is_elementwise: each element of the result is a function of the operands' at the same index.
    is_reordered: the result has the operand's elements in another order or shape. is_permutation:
    the result is a view of the operand in any layout, which is moved in its place. neutral: for a
    reduction, the neutral element of a dtype. is_made_in_place: its result is computed where a
    consumer requests it. of_blocks: its rule computes on requested blocks, and relays operands out
    to them. scatters_sums: its partial sums can be reduce-scattered. is_annotation: it has no
    meaning on the grid. is_control: it runs functions: a loop or a branch.

    What its rules take: takes_keys: random keys. takes_empty: arrays without elements.
    changes_space: operands and results in different memory spaces.
    """

    rules: tuple[Decide, ...] = ()
    flops: Flops = nothing
    factors: FactorsOf = whole
    of_empty: Decide | None = None
    of_logical: Decide | None = None
    of_part: OfPart | None = None
    of_views: OfViews | None = None
    of_tiles: OfTiles | None = None
    reason: str = ""
    is_fused: bool = False
    takes_fused: bool = False
    is_kept: bool = False
    is_global: bool = False
    multiplies: bool = False
    is_view: bool = False
    keeps_tiles: Callable[[Mapping[str, Any], Shape, Shape, Shape], bool] | None = None
    functions: float = 0.0
    cpu_functions: float | Callable[[Op], float] = 0.0
    borders: Borders | None = None
    lengths: Callable[[Mapping[str, Any]], Shape] | None = None
    writes_part: bool = False
    is_elementwise: bool = False
    is_reordered: bool = False
    is_permutation: bool = False
    neutral: Callable[[Any], Any] | None = None
    is_made_in_place: bool = False
    of_blocks: bool = False
    scatters_sums: bool = False
    is_annotation: bool = False
    is_control: bool = False
    takes_keys: bool = False
    takes_empty: bool = False
    changes_space: bool = False

    @property
    def is_reduction(self) -> bool:
        """Whether it reduces dims to their neutral element combined with all elements."""
        return self.neutral is not None

    @property
    def reads_part(self) -> bool:
        """Whether it only moves elements: it reads no more of its first operand than it makes."""
        return self.flops is nothing and self.is_fused

    @property
    def places_itself(self) -> bool:
        """Whether its rule relays operands out as requested."""
        return self.is_elementwise or self.of_blocks or self.is_permutation

    @property
    def takes_any_division(self) -> bool:
        """Whether it can run in divisions that no layout states."""
        return self.is_elementwise or self.is_reduction or self.is_view or self.of_blocks

    @property
    def is_chain(self) -> bool:
        """Whether the result's layout follows from the operands', element by element."""
        return self.is_elementwise or self.is_reordered


PLAIN = Record()
