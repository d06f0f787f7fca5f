"""`ResultPlacement`: the requested layouts of the results of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import most_bytes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.specs import Sharded, Spec, is_of_keys, layout_of, unmasked
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.next_values import next_value_layouts
from gridlayout.sharding.device_grid import DeviceGrid


@dataclass(frozen=True)
class ResultPlacement:
    """The layouts in which a call returns its results; None where the equations decide.

    specs: the requested spec of each result, or None. operand_layouts: for a result that is the
    next value of an operand, as in a step of training, the operand's layout. is_free: whether the
    layout of a result is free, except that its size is limited. is_stated: whether the function
    states its placement. references: the layouts that define the limit: those of operands, and
    those that the function states.
    """

    specs: tuple[Spec | None, ...]
    operand_layouts: tuple[Layout | None, ...]
    is_free: tuple[bool, ...]
    is_stated: tuple[bool, ...]
    references: tuple[Layout, ...]

    @classmethod
    def of(
        cls,
        env: Env,
        graph: Graph,
        operands: Sequence[Spec],
        specs: Sequence[Spec | None],
        nexts: Mapping[int, int] | None = None,
    ) -> ResultPlacement:
        """Return the placement for a graph on operands.

        specs: the requested specs of its first results. nexts: see `Env`.
        """
        count = len(graph.results)
        requested = (*specs, *(None for _ in range(count - len(specs))))
        if env.policy is not same_grid_and_tile:
            return cls(requested, (None,) * count, (False,) * count, (False,) * count, ())
        # If specs are requested, the results after them are residuals, which users don't get.
        last = len(specs) or count
        is_stated = tuple(_is_placed(graph, v, env.device) for v in graph.outs)
        is_free = tuple(
            k < last and spec is None and not placed
            for k, (spec, placed) in enumerate(zip(requested, is_stated, strict=True))
        )
        layouts = list(map(layout_of, operands))
        pairs = zip(
            next_value_layouts(graph, env.device, layouts, nexts or {}), is_free, strict=True
        )
        stated = (spec.layout for spec in graph.stated(env.device))
        references = (x for x in (*layouts, *stated) if x is not None)
        own = tuple(x if free else None for x, free in pairs)
        return cls(requested, own, is_free, is_stated, tuple(references))

    @property
    def layouts(self) -> list[Layout | None]:
        """The layout of each result, None if it is not known before planning."""
        pairs = zip(self.specs, self.operand_layouts, strict=True)
        return [own if spec is None else layout_of(spec) for spec, own in pairs]

    @property
    def free(self) -> list[int]:
        """The numbers of the results of which nothing is requested or known."""
        return [k for k, own in enumerate(self.operand_layouts) if self.is_free[k] and own is None]

    def known(self, graph: Graph, device: DeviceGrid) -> Sequence[Spec | None] | None:
        """Return the specs of results that are requested, or are those of operands.

        None if a result has neither; a number needs none.
        """
        found: list[Spec | None] = []
        for v, spec, own in zip(graph.outs, self.specs, self.operand_layouts, strict=True):
            if spec is None and own is not None:
                spec = Sharded(own, device.placement(own))
            if spec is None and v is not None and graph.shapes[v]:
                return None
            found.append(spec)
        return found

    def with_specs(self, specs: Mapping[int, Spec | None]) -> ResultPlacement:
        """Return the placement with other requested specs of some results, by their numbers."""
        rows = enumerate(self.specs)
        return replace(self, specs=tuple(specs.get(k, spec) for k, spec in rows))

    @cached_property
    def updates_operands(self) -> bool:
        """Whether several results are the next values of operands, as in a step of training."""
        return sum(own is not None for own in self.operand_layouts) > 1

    def matching(self, results: Sequence[Spec]) -> ResultPlacement:
        """Return the placement for another program that must return these results."""
        pairs = zip(self.specs, self.operand_layouts, results, strict=True)
        specs = (
            (found if own and self.updates_operands else unmasked(found)) if spec is None else spec
            for spec, own, found in pairs
        )
        return replace(self, specs=tuple(specs), is_free=(False,) * len(self.specs))

    def _named(self, spec: Sharded, number: int, device: DeviceGrid) -> Sharded | None:
        """Return the spec of a result that stays on the mesh axes where it is; None if it may not.

        It may if the program states its placement, or if a layout of its operands names axes.
        """
        stays = self.is_stated[number] or any(x.mesh_axes for x in self.references)
        layout = spec.named(device) if stays else spec.layout
        is_there = device.placement(layout) == spec.placement
        return Sharded(layout, spec.placement) if is_there else None

    def place(self, b: Builder, x: Value, number: int) -> Value:
        """Return result `number` as the caller gets it, before its requested spec is applied.

        A next value of an operand gets the operand's known padding value too, if there are several:
        then the next call runs the same program.
        """
        spec, own = x.spec, self.operand_layouts[number]
        if spec.ndim == 0 or is_of_keys(spec):
            return b.replicated(x)
        if own is not None:
            out = b.to_layout(x, own)
            if not self.updates_operands:
                return out
            assert isinstance(out.spec, Sharded)
            return (
                b.with_padding(out, own.oob)
                if own.oob is not None
                else out.with_spec(out.spec.with_oob(None))
            )
        out = b.as_sharded(x)
        if isinstance(out.spec, Sharded) and self.specs[number] is None:
            # The program may have placed it on other axes than the device grid does.
            named = self._named(out.spec, number, b.device)
            out = b.relayout(out, out.spec.layout) if named is None else out.with_spec(named)
        if not self.is_free[number] or out.layout is None:
            return out
        most = most_bytes(out.layout.data_bytes, self.references, b.device)
        return b.fit(out, most, is_result=True)


def _is_placed(graph: Graph, value: int | None, device: DeviceGrid) -> bool:
    """Return whether the program states the placement of a value."""
    maker = None if value is None else graph.makers.get(value)
    return maker is not None and maker.placed(device) is not None


def allowed_results(
    device: DeviceGrid,
    operands: Sequence[Spec],
    results: Sequence[Spec | None],
    free: Sequence[int],
) -> list[list[Spec]]:
    """Return the placements that each result may have: its own one, if it has one.

    free: the numbers of results that may also be placed like an operand of their shape, as the
    gradient of a parameter.
    """
    found = [[] if spec is None else [spec] for spec in results]
    for number in free:
        found[number] += _like_operands(device, operands, results[number])
    return found


def _like_operands(device: DeviceGrid, operands: Sequence[Spec], result: Spec | None) -> list[Spec]:
    if not isinstance(result, Sharded):
        return []
    layouts = [layout_of(spec) for spec in operands if spec.shape == result.shape]
    some = [x.with_dtype(result.dtype).with_oob(None) for x in layouts if x is not None]
    return [Sharded(x, device.placement(x)) for x in dict.fromkeys(some)]
