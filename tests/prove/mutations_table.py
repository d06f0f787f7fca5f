"""The faults: what is changed in which file, and the test that finds it.

`old` occurs once in the file; `tests/test_prove.py` checks that. A test is a pytest node, with
` -k words` after it if words select among its cases.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    """A fault: in the file at `path`, `old` becomes `new`; `test` fails."""

    path: str
    old: str
    new: str
    test: str

    def __str__(self):
        return f"{self.path}: {self.old.strip()!r} -> {self.new.strip()!r}"


AFFINE = [
    Mutation(
        "gridlayout/affine/expressions.py",
        "return lhs.divisor * abs(value)",
        "return lhs.divisor",
        "tests/test_affine.py::test_many_random_maps_print_as_mlir_and_mean_what_they_say",
    ),
    Mutation(
        "gridlayout/affine/expressions.py",
        "return gcd(lhs.divisor, rhs.divisor)",
        "return max(lhs.divisor, rhs.divisor)",
        "tests/test_affine.py::test_many_random_maps_print_as_mlir_and_mean_what_they_say",
    ),
    Mutation(
        "gridlayout/affine/expressions.py",
        "return constant(-(-lhs.value // divisor))",
        "return constant(lhs.value // divisor)",
        "tests/test_affine.py::test_prints_as_mlir",
    ),
    Mutation(
        "gridlayout/affine/expressions.py",
        "return _mul(left, left_scale + right_scale)",
        "return _mul(left, left_scale - right_scale)",
        "tests/test_affine.py::test_prints_as_mlir",
    ),
    Mutation(
        "gridlayout/affine/expressions.py",
        'if lhs.kind == "mod" and lhs.lhs is not None and lhs.value % divisor == 0:',
        'if lhs.kind == "mod" and lhs.lhs is not None:',
        "tests/test_affine.py::test_prints_as_mlir",
    ),
    Mutation(
        "gridlayout/affine/expressions.py",
        "if right.lhs == lhs and right_scale == -right.value:",
        "if right.lhs == lhs:",
        "tests/test_affine.py::test_prints_as_mlir",
    ),
    Mutation(
        "gridlayout/affine/evaluation.py",
        'return emit("mask", a, value - 1)',
        'return emit("mask", a, value)',
        "tests/test_affine.py::test_many_random_maps_print_as_mlir_and_mean_what_they_say",
    ),
    Mutation(
        "gridlayout/affine/evaluation.py",
        "done = _run(program.steps, values)\n        for out, step",
        "done = _run(program.steps, values[::-1])\n        for out, step",
        "tests/test_affine.py::test_arrays_broadcast",
    ),
    Mutation(
        "gridlayout/affine/evaluation.py",
        'high > INT64_MAX:\n        raise LayoutError(f"index',
        'high > 2 * INT64_MAX + 1:\n        raise LayoutError(f"index',
        "tests/test_affine.py::test_refuses_to_evaluate",
    ),
    Mutation(
        "gridlayout/affine/map.py",
        'return lhs // value if part.kind == "floordiv" else ceildiv(lhs, value)',
        "return lhs // value",
        "tests/test_affine.py::test_compose_dims_and_coefficients",
    ),
    Mutation(
        "gridlayout/affine/map.py",
        "row[expr.value] += scale",
        "row[expr.value] = scale",
        "tests/test_affine.py::test_compose_dims_and_coefficients",
    ),
    Mutation(
        "gridlayout/affine/integer_set.py",
        "value == 0 if equal else value >= 0",
        "value == 0 if equal else value > 0",
        "tests/test_affine.py::test_sets_contain",
    ),
]

STEPS = [
    Mutation(
        "gridlayout/layouts/steps.py",
        "if span > abs(stride) and extent[axis] != 1:",
        "if span > 2 * abs(stride) and extent[axis] != 1:",
        "tests/test_megengine.py::test_views_are_the_documents_sum",
    ),
    Mutation(
        "gridlayout/layouts/steps.py",
        "offset += stride * (self.extent[axis] - 1)",
        "offset += stride * self.extent[axis]",
        "tests/test_grid_layout.py::test_sizes_and_places",
    ),
    Mutation(
        "gridlayout/layouts/steps.py",
        "made = [-expr.pop(axis) + (before[axis] - 1)]",
        "made = [-expr.pop(axis) + before[axis]]",
        "tests/test_grid_layout.py::test_sizes_and_places",
    ),
    Mutation(
        "gridlayout/layouts/steps.py",
        "digits.append(digit if k == 0 else digit % max(size, 1))",
        "digits.append(digit)",
        "tests/test_grid_layout.py::test_sizes_and_places",
    ),
    Mutation(
        "gridlayout/layouts/steps.py",
        "expr[axis] = expr.pop(new[0]) - low",
        "expr[axis] = expr.pop(new[0]) + low",
        "tests/test_grid_layout.py::test_the_way_back",
    ),
    Mutation(
        "gridlayout/layouts/steps.py",
        "bounds.append((expr[axis], before[axis]))",
        "bounds.append((expr[axis], before[axis] + 1))",
        "tests/test_grid_layout.py::test_the_way_back",
    ),
    Mutation(
        "gridlayout/layouts/program.py",
        "low[k], high[k] = p.step.low, p.step.high",
        "low[k], high[k] = p.step.high, p.step.low",
        "tests/test_packing.py::test_random_layouts_pack_as_their_elements_are_located",
    ),
    Mutation(
        "gridlayout/layouts/program.py",
        "blocks[[b[0] for b in blocks].index(place)] = list(p.reads)",
        "blocks[[b[0] for b in blocks].index(place)] = list(p.reads)[::-1]",
        "tests/test_grid_layout.py::test_pack_and_unpack",
    ),
    Mutation(
        "gridlayout/layouts/program.py",
        "physical = np.flip(physical, dims)",
        "pass",
        "tests/test_grid_layout.py::test_pack_and_unpack",
    ),
]

LAYOUTS = [
    Mutation(
        "gridlayout/layouts/padding.py",
        "padding |= ~_expanded(valid, group.physical, rank)",
        "padding ^= ~_expanded(valid, group.physical, rank)",
        "tests/test_grid_layout.py::test_padding",
    ),
    Mutation(
        "gridlayout/layouts/padding.py",
        "return (total - layout.size) / total",
        "return layout.size / total",
        "tests/test_grid_layout.py::test_padding",
    ),
    Mutation(
        "gridlayout/document/shard.py",
        "return tuple(-(-n // cores) for n, cores in zip(collapsed, grid, strict=True))",
        "return tuple(n // cores + 1 for n, cores in zip(collapsed, grid, strict=True))",
        "tests/test_grid_layout.py::test_sizes_and_places",
    ),
    Mutation(
        "gridlayout/document/shard.py",
        "multiple = max(8 * bytes_ // dtypes.bits(dtype), 1)",
        "multiple = max(bytes_ // dtypes.bits(dtype), 1)",
        "tests/test_row_alignment.py::test_padding_can_also_arise_due_to_minimum_noc_addressing_requirements",
    ),
    Mutation(
        "gridlayout/document/collapse.py",
        "kept[max(start - first, 0)] = tuple(range(start, end))",
        "kept[max(start - first, 0)] = tuple(range(start, end - 1))",
        "tests/test_document.py::test_the_constructor_makes_the_snippet",
    ),
    Mutation(
        "gridlayout/layouts/mapped.py",
        "offset = offset * n + i",
        "offset = offset * n - i",
        "tests/test_grid_layout.py::test_sizes_and_places",
    ),
    Mutation(
        "gridlayout/layouts/intervals.py",
        "inner = 1 + sum(s * (n - 1) for s, n in below)",
        "inner = sum(s * (n - 1) for s, n in below)",
        "tests/test_pieces_in_out.py::test_an_interval_is_few_boxes",
    ),
    Mutation(
        "gridlayout/layouts/bits.py",
        "<< np.uint8(k * width)",
        "<< np.uint8(8 - width - k * width)",
        "tests/test_core_bytes.py::test_elements_of_any_width",
    ),
    Mutation(
        "gridlayout/layouts/buffers.py",
        "return -(-prod(self.local_shape) * self.stored_bits // 8)",
        "return prod(self.local_shape) * self.stored_bits // 8",
        "tests/test_grid_layout.py::test_sizes_and_places",
    ),
    Mutation(
        "gridlayout/layouts/folding.py",
        "rows = np.flatnonzero(most == most.min())",
        "rows = np.flatnonzero(most == most.max())",
        "tests/test_placement.py::test_grids_spread_over_the_mesh",
    ),
]

SYSTEMS = [
    Mutation(
        "gridlayout/xla/tiled.py",
        "number = -(-builder.extent[dim] // size)",
        "number = builder.extent[dim] // size + 1",
        "tests/test_xla.py::test_every_element_lies_where_the_formula_says",
    ),
    Mutation(
        "gridlayout/xla/tiled.py",
        "order = [*head, *counts, *inner]",
        "order = [*head, *inner, *counts]",
        "tests/test_xla.py::test_every_element_lies_where_the_formula_says",
    ),
    Mutation(
        "gridlayout/megengine.py",
        "count = -(-builder.extent[axis] // block)",
        "count = builder.extent[axis] // block + 1",
        "tests/test_megengine.py::test_order_of_a_format",
    ),
    Mutation(
        "gridlayout/layouts/strides.py",
        "return tuple(prod(sizes[k + 1 :]) for k in range(len(sizes)))",
        "return tuple(prod(sizes[k:]) for k in range(len(sizes)))",
        "tests/test_mli.py::test_layout",
    ),
    Mutation(
        "gridlayout/strided.py",
        "if dims and dims[-1][1] == s * n:",
        "if dims and dims[-1][1] == s:",
        "tests/test_megengine.py::test_collapse",
    ),
    Mutation(
        "gridlayout/strided.py",
        "return self.low * bits // 8, -(-self.high * bits // 8)",
        "return self.low * bits // 8, self.high * bits // 8",
        "tests/test_megengine.py::test_rows_of_four_bit_elements_fill_whole_bytes",
    ),
    Mutation(
        "gridlayout/tenstorrent/ttnn_layout.py",
        "self.shard_shape: Shape = (-(-rows // self.grid[0]), -(-width // self.grid[1]))",
        "self.shard_shape: Shape = (-(-rows // self.grid[0]), width // self.grid[1] + 1)",
        "tests/test_tenstorrent_ttnn.py::test_against_brute_force",
    ),
    Mutation(
        "gridlayout/tenstorrent/metal_layout.py",
        "size = align(size * shape[d], alignments[d])",
        "size = size * shape[d]",
        "tests/test_tenstorrent_metal.py::test_host_strides",
    ),
    Mutation(
        "gridlayout/tenstorrent/tt_metal.py",
        "return tuple(-(-(self.shards - k) // cores) for k in range(cores))",
        "return tuple(-(-self.shards // cores) for k in range(cores))",
        "tests/test_tenstorrent_tensor_layout.py::test_against_brute_force",
    ),
    Mutation(
        "gridlayout/tenstorrent/bfp.py",
        "magnitude = np.minimum(_nearest_even(aligned, 24 - bits), (1 << bits) - 1)",
        "magnitude = _nearest_even(aligned, 24 - bits)",
        "tests/test_tenstorrent_tiles.py::test_saturation_and_what_falls_out",
    ),
    Mutation(
        "gridlayout/tenstorrent/bfp.py",
        "half_less = np.uint32((1 << (dropped - 1)) - 1)",
        "half_less = np.uint32(1 << (dropped - 1))",
        "tests/test_tenstorrent_tiles.py::test_rounding",
    ),
    Mutation(
        "gridlayout/layouts/bits.py",
        ">> np.uint8(k * width)) & ((1 << width) - 1)",
        ">> np.uint8(k * width))",
        "tests/test_core_bytes.py::test_elements_of_any_width",
    ),
]

SHARDING = [
    Mutation(
        "sharding/meshes/placements.py",
        "return layout.on_mesh_axes(self.named(self.of_layout(layout)))",
        "return layout.on_mesh_axes(None)",
        "tests/test_mesh_axes.py::test_elements_are_where_jax_puts_them",
    ),
    Mutation(
        "ops/primitives/slices/served.py",
        "columns[0] = jnp.where(mine & inside & mask, columns[0], block.shape[dims[0]])",
        "columns[0] = jnp.where(inside & mask, columns[0], block.shape[dims[0]])",
        "tests/test_slices.py::test_a_step_of_a_table_of_classes_adds_updates_where_they_fall",
    ),
    Mutation(
        "gridlayout/layouts/mesh_axes.py",
        "return {name: prod(self.sizes[k + 1 :]) for k, name in enumerate(self.names)}",
        "return {name: prod(self.sizes[:k]) for k, name in enumerate(self.names)}",
        "tests/test_core_map.py::test_any_assignment_of_the_meshs_axes_can_be_stated",
    ),
    Mutation(
        "gridlayout/layouts/mesh_axes.py",
        "found = found * self.size_of[axis] + digits.get(axis, constant(0))",
        "found = found + digits.get(axis, constant(0)) * self.size_of[axis]",
        "tests/test_placement.py::test_every_core_is_on_the_device_that_core_map_names",
    ),
    Mutation(
        "sharding/collectives.py",
        "return self._add(ALL_REDUCE, axes, -(-2 * (n - 1) * nbytes // n))",
        "return self._add(ALL_REDUCE, axes, -(-(n - 1) * nbytes // n))",
        "tests/test_decisions.py::test_a_mesh_of_32768_devices_places_counts_and_plans",
    ),
    Mutation(
        "sharding/collectives.py",
        "groups = self.device.size // self.device.count(axes)",
        "groups = self.device.size",
        "tests/test_algorithms.py::test_the_compiled_program_receives_the_formula_s_bytes",
    ),
    Mutation(
        "sharding/machines/timing.py",
        "load = held * path.n / 4 / path.directions if kind == ALL_TO_ALL else 1.0",
        "load = held * path.n / 2 / path.directions if kind == ALL_TO_ALL else 1.0",
        "tests/test_topology.py::test_few_bytes_go_between_hosts",
    ),
    Mutation(
        "sharding/machines/timing.py",
        "passes = 2 if kind == ALL_REDUCE else 1",
        "passes = 1",
        "tests/test_topology.py::test_few_bytes_go_between_hosts",
    ),
    Mutation(
        "sharding/machines/timing.py",
        "share = before * (n - 1) / max(total - 1, 1)",
        "share = (n - 1) / max(total - 1, 1)",
        "tests/test_topology.py::test_few_bytes_go_between_hosts",
    ),
    Mutation(
        "sharding/collectives.py",
        "return self._add(ALL_GATHER, axes, nbytes * (n - 1), copied=nbytes * n if dim else 0)",
        "return self._add(ALL_GATHER, axes, nbytes * n, copied=nbytes * n if dim else 0)",
        "tests/test_algorithms.py::test_the_compiled_program_receives_the_formula_s_bytes",
    ),
    Mutation(
        "sharding/exchanges/overlaps.py",
        "found[:, at] = index % self.sizes[at]",
        "found[:, at] = index // self.sizes[at]",
        "tests/test_pieces.py::test_overlaps_are_each_element_once_and_where_it_lies",
    ),
    Mutation(
        "sharding/exchanges/rounds.py",
        "numbers = numbers * (level + 1) + np.array(levels)[which]",
        "numbers = numbers + np.array(levels)[which]",
        "tests/test_pieces.py::test_rounds_have_one_message_of_each_end_and_keep_the_limit",
    ),
]

OPS = [
    Mutation(
        "ops/moves/padding.py",
        "mask = _both(mask, lax.lt(index[k]",
        "mask = _both(mask, lax.le(index[k]",
        "tests/test_padding_masks.py::test_the_mask_is_where_elements_live",
    ),
    Mutation(
        "ops/moves/padding.py",
        "(lax.eq if is_equation else lax.ge)(value",
        "(lax.eq if is_equation else lax.gt)(value",
        "tests/test_padding_masks.py::test_the_mask_is_where_elements_live",
    ),
    Mutation(
        "ops/moves/padding.py",
        "return lax.select(mask, part, filling)",
        "return part",
        "tests/test_padding_masks.py::test_the_mask_is_where_elements_live",
    ),
    Mutation(
        "ops/moves/padding.py",
        "if logical != prod(storage[k] for k in group.physical):",
        "if logical != prod(layout.physical_shape[k] for k in group.physical):",
        "tests/test_padding_masks.py::test_the_mask_is_where_elements_live",
    ),
    Mutation(
        "ops/primitives/reductions.py",
        "return cast(jax.Array, op.bind(lax.all_gather(x, reduced.mesh), axes=(0,))[0])",
        "return x",
        "tests/test_primitives.py::test_primitives_are_jaxs_on_every_layout[reduce]",
    ),
    Mutation(
        "ops/primitives/extreme_places.py",
        "is_first = wins | ((x == y) & (i < j))",
        "is_first = wins | ((x == y) & (i > j))",
        "tests/test_primitives.py::test_places_of_extremes_where_devices_have_several_cores",
    ),
    Mutation(
        "ops/primitives/extreme_places.py",
        "at += lax.broadcasted_iota(np.int32, x.shape, own[0]) * layout.shard_shape[k]",
        "at += lax.broadcasted_iota(np.int32, x.shape, own[0]) * step",
        "tests/test_primitives.py::test_places_of_extremes_where_devices_have_several_cores",
    ),
    Mutation(
        "ops/decisions/shifted.py",
        "return self.first + (self.count - 1) * self.step",
        "return self.first + self.count * self.step",
        "tests/test_borders.py::test_a_view_of_views_is_what_numpy_makes",
    ),
    Mutation(
        "sharding/exchanges/slabs.py",
        "start = min(max(each.start - more, 0), block - width)",
        "start = max(each.start - more, 0)",
        "tests/test_borders.py::test_what_is_received_is_what_views_read",
    ),
    Mutation(
        "ops/primitives/slices/served.py",
        "mine &= (at >= 0) & (at < block[d])",
        "mine &= at >= 0",
        "tests/test_slices.py::test_indices_out_of_bounds_of_a_dim_are_clipped_or_dropped_as_in_jax",
    ),
    Mutation(
        "ops/decisions/facts.py",
        '"sub": np.subtract',
        '"sub": np.add',
        "tests/test_on_grid.py::test_facts_follow_from_the_operations",
    ),
    Mutation(
        "ops/decisions/facts.py",
        '("logistic", "0.0"): 0.5',
        '("logistic", "0.0"): 0.0',
        "tests/test_on_grid.py::test_facts_that_no_device_is_asked_for_are_what_it_computes",
    ),
    Mutation(
        "ops/decisions/factors.py",
        "return lambda params, shape: {params[name] % len(shape): kind}",
        "return lambda params, shape: {0: kind}",
        "tests/test_along.py::test_they_are_jaxs_on_every_layout",
    ),
    Mutation(
        "ops/products/choose.py",
        "return min(found, key=cost)",
        "return max(found, key=cost)",
        "tests/test_algorithms.py::test_the_rule_splits_k_where_that_moves_less_than_half",
    ),
    Mutation(
        "ops/products/schedules.py",
        "inside = position < plan.matrices.k",
        "inside = position <= plan.matrices.k",
        "tests/test_algorithms.py::test_the_product_is_right_or_refused",
    ),
    Mutation(
        "ops/products/schedules.py",
        "a = rotate(a, across, n) if step < n - 1 else a",
        "a = a",
        "tests/test_algorithms.py::test_the_product_is_right_or_refused",
    ),
    Mutation(
        "ops/solver/presolve.py",
        "better = more <= 0",
        "better = more <= 1",
        "tests/test_solver.py::test_reductions_keep_the_least_cost",
    ),
    Mutation(
        "ops/solver/elimination.py",
        "self.put(scope[:-1], np.minimum.reduce(table, axis=-1))",
        "self.put(scope[:-1], np.maximum.reduce(table, axis=-1))",
        "tests/test_solver.py::test_least_of_all_assignments",
    ),
    Mutation(
        "gridlayout/live_ranges.py",
        "changes[min(last + 1, times)] -= nbytes",
        "changes[min(last, times)] -= nbytes",
        "tests/test_memory.py::test_the_peak_is_within_a_tenth_of_the_compiled_program",
    ),
    Mutation(
        "ops/decisions/flops.py",
        "return 5 * batch * length * _log2(length) // (2 if is_real else 1)",
        "return 5 * batch * length * _log2(length)",
        "tests/test_decisions.py::test_every_primitive_has_its_flops",
    ),
    Mutation(
        "ops/programs/running.py",
        "n if step.kernel is None else step.kernel",
        "step.run",
        "tests/test_same_program.py::test_equal_layers_are_lowered_once_whatever_the_caches_hold",
    ),
    Mutation(
        "ops/interpret/program_cache.py",
        "if (found := _alive.get(key)) is None:",
        "if not (found := None):",
        "tests/test_same_program.py::test_a_program_that_is_called_twice_is_lowered_once",
    ),
    Mutation(
        "ops/decisions/specs.py",
        'object.__setattr__(self, "layout", self.layout.canonical)',
        "pass",
        "tests/test_same_program.py::test_equal_layouts_are_planned_and_printed_in_one_way",
    ),
]

MUTATIONS = [*AFFINE, *STEPS, *LAYOUTS, *SYSTEMS, *SHARDING, *OPS]
