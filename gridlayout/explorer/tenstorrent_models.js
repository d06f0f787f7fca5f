// Tenstorrent's other models: the current ttnn_layout and metal_layout, and the document's TTNN.

function checkPlaneTile({ tile, tile_format }) {
  const isPair = tile === null || (tile.length === 2 && !tile.includes(0));
  check(isPair, "tile: must be empty, or rows and columns, both >= 1", "tile");
  checkFormat(tile, tile_format);
}

function checkPlane(grid) {
  const isPair = grid.length === 2 && !grid.includes(0);
  check(isPair, "grid: must be rows and columns of cores, both >= 1", "grid");
}

// Returns the two rows of a plane: all dims but the last with these strides, and the last.
function planeRows(strides) {
  const rank = strides.length;
  const only = (keep) => strides.map((stride, d) => (keep(d) ? stride : 0));
  const last = strides.map((_, d) => (d === rank - 1 ? 1 : 0));
  return [
    { strides: only((d) => d < rank - 1), offset: 0 },
    { strides: last, offset: 0 },
  ];
}

const tiledElement = (facts, { tile, tile_format, dtype }, also = "") => {
  const { mlir } = facts.dtypes[dtype];
  if (tile === null) return mlir;
  return `!ttcore.tile<${tile.join("x")}, ${tile_format ?? facts.tile_names[dtype] ?? mlir}${also}>`;
};

// The memory of a buffer type, if its name differs.
const MEMORY_OF = { l1_small: "l1", system_memory: "system" };

// -- the current ttnn_layout: pad to tiles, collapse, divide -------------------------------------

function defaultArrangement([rows, columns]) {
  if (rows * columns === 1) return "interleaved";
  return rows === 1 ? "width_sharded" : columns === 1 ? "height_sharded" : "block_sharded";
}

function checkArrangement(grid, arrangement, buffer) {
  const isWhole = product(grid) === 1 && arrangement === "interleaved";
  const isSystem = buffer === "system_memory";
  check(!isSystem || isWhole, "system memory must be interleaved on a grid of 1, 1", "buffer_type");
  for (const [name, fits, message] of [
    ["interleaved", isWhole, "an interleaved layout must have a grid of 1, 1"],
    ["block_sharded", buffer !== "dram", "block_sharded is not possible in dram"],
    ["height_sharded", grid[1] === 1, "height_sharded needs one column of cores"],
    ["width_sharded", grid[0] === 1, "width_sharded needs one row of cores"],
  ]) check(arrangement !== name || fits, message, "memory_layout");
}

// Returns rectangles of cores (x, y); cores of one-dimensional shardings are taken row by row.
function coreRanges(grid, arrangement, columns) {
  if (arrangement === "interleaved") return "";
  const range = (a, b, c, d) => `#ttnn.core_range<(${a},${b}), (${c},${d})>`;
  let found = [range(0, 0, grid[1] - 1, grid[0] - 1)];
  if (arrangement !== "block_sharded") {
    const [full, rest] = [quotient(product(grid), columns), product(grid) % columns];
    found = full ? [range(0, 0, columns - 1, full - 1)] : [];
    if (rest) found.push(range(0, full, rest - 1, full));
  }
  return `, core_ranges = <[${found.join(", ")}]>`;
}

function ttnnModel(parameters, facts) {
  const { shape, dtype, grid, tile, tile_format, buffer_type } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  checkPlane(grid);
  checkPlaneTile(parameters);
  const arrangement = parameters.memory_layout ?? defaultArrangement(grid);
  checkArrangement(grid, arrangement, buffer_type);
  const multiple = rowMultiple(parameters, element.bits, facts);
  const side = tile ?? [1, 1];
  const padded = [...upTo(0, 2 - shape.length).map(() => 1), ...shape];
  const [height, width] = [padded.at(-2), padded.at(-1)];
  padded.splice(-2, 2, alignUp(height, side[0]), alignUp(width, side[1]));
  const strides = shape.map((_, d) => product(padded.slice(padded.length - shape.length).slice(d + 1, -1)));
  const rows = planeRows(strides);
  const plane = [product(padded.slice(0, -1)), padded.at(-1)];
  const shard = shardOf(null, plane, grid);
  const counts = countsOf(shard, side, tile, multiple);
  const alignment = rowBytes(multiple, element.bits);
  const memref = `memref<${counts.join("x")}x${tiledElement(facts, parameters)}, ` +
    `#ttnn.buffer_type<${buffer_type}>>`;
  const words = [
    coreRanges(grid, arrangement, facts.worker_columns),
    alignment === null ? "" : `, row_alignment = ${alignment}`,
    oob === "undef" ? "" : `, oob = ${oob}`,
  ].join("");
  const blocks = { tile_format, row_alignment: alignment, oob };
  const named = keywords(facts, { grid, tile, memory_layout: arrangement, buffer_type, ...blocks });
  return onCores(parameters, facts, {
    ...{ rows, grid, shard, counts },
    text:
      `tensor<${shape.map((n) => `${n}x`).join("")}${element.mlir}, #ttnn.ttnn_layout<` +
      `${mapText(rows, shape.length)}, <${grid.join("x")}>, ${memref}, <${arrangement}>${words}>>`,
    python: `gl.tenstorrent.ttnn(${tuple(shape)}, '${dtype}'${named})`,
    told: {
      shard,
      memory: MEMORY_OF[buffer_type] ?? buffer_type,
      isDealt: arrangement === "interleaved",
    },
    sizes: [
      ["padded to tiles", tuple(padded)],
      ["plane", tuple(plane)],
      ["shard per core", tuple(shard)],
      ["padded shard", tuple(counts.map((n, k) => n * side[k]))],
      ["memory layout", arrangement],
    ],
  });
}

// -- the document's TTNN: strides, a shard, tiles ------------------------------------------------

function contiguous(shape) {
  const found = shape.map(() => 1);
  for (let d = shape.length - 2; d >= 0; d--) {
    found[d] = times(found[d + 1], Math.max(shape[d + 1], 1));
  }
  return found;
}

function checkStride(stride, shape) {
  const must = (isTrue, message) => check(isTrue, `stride: ${message}`, "stride");
  must(stride.length === shape.length, "must be one number per dim");
  must(!stride.length || stride.at(-1) === 1, "the last number must be 1");
  for (let d = stride.length - 2; d >= 0; d--) {
    const least = times(stride[d + 1], Math.max(shape[d + 1], 1));
    must(stride[d] >= least, `that of dim ${d} must be at least ${least}`);
    const isMultiple = stride[d] % stride.at(-2) === 0;
    must(isMultiple, `that of dim ${d} must be a multiple of ${stride.at(-2)}`);
  }
}

function documentModel(parameters, facts) {
  const { shape, dtype, tile, tile_format, memory_space } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  checkPlaneTile(parameters);
  const stride = parameters.stride ?? contiguous(shape);
  checkStride(stride, shape);
  const rank = shape.length;
  const width = rank > 1 ? stride.at(-2) : shape.at(-1) ?? 1;
  const strides = stride.map((n, d) => (d < rank - 1 ? quotient(n, width) : 1));
  const rows = planeRows(strides);
  const plane = [rank > 1 ? times(shape[0], quotient(stride[0], width)) : 1, width];
  const used = shape.includes(0) ? [0, 0] : rows.map((row, k) => rowExtent(row, shape, k));
  const given = parameters.shard;
  const isPair = () => given.length === 2 && (parameters.grid !== null || !given.includes(0));
  const isShard = given === null || isPair();
  check(isShard, "shard: must be rows and columns of the plane, both >= 1", "shard");
  const byShard = () => given.map((n, k) => Math.max(ceil(used[k], n), 1));
  const grid = parameters.grid ?? (given === null ? [1, 1] : byShard());
  checkPlane(grid);
  const whole = shardOf(null, plane, grid);
  const shard = given === null ? whole : shardOf(given, used, grid);
  const multiple = rowMultiple(parameters, element.bits, facts);
  const side = tile ?? [1, 1];
  const counts = countsOf(shard, side, tile, multiple);
  const alignment = rowBytes(multiple, element.bits);
  const named = keywords(facts, {
    stride: String(stride) === String(contiguous(shape)) ? null : stride,
    shard_shape: String(shard) === String(whole) ? null : shard,
    grid: product(grid) === 1 ? null : grid,
    ...{ tile, memory_space, tile_format, row_alignment: alignment, oob },
  });
  const call = `tenstorrent.ttnn_document(${tuple(shape)}, '${dtype}'${named})`;
  return onCores(parameters, facts, {
    ...{ rows, grid, shard, counts, text: call },
    python: `gl.${call}`,
    told: { shard },
    sizes: [
      ["stride", tuple(stride)],
      ["plane", tuple(plane)],
      ["shard per core", tuple(shard)],
      ["padded shard", tuple(counts.map((n, k) => n * side[k]))],
      ["grid shape", tuple(used.map((n, k) => (shard[k] ? ceil(n, shard[k]) : 0)))],
    ],
  });
}

// -- the current metal_layout: align and join, divide exactly ------------------------------------

// Returns intervals that cover every dim once, sorted; dims after the last interval are added.
function coveringIntervals(pairs, rank) {
  const must = (isTrue, message) => check(isTrue, `intervals: ${message}`, "intervals");
  const spans = [];
  for (const [start, end] of pairs) {
    const [low, high] = [start < 0 ? start + rank : start, end < 0 ? end + rank : end];
    const isInside = 0 <= low && low < Math.max(rank, 1) && low <= high && high <= rank;
    must(isInside, `${start}:${end} does not fit the rank ${rank}`);
    if (low < high) spans.push([low, high]);
  }
  spans.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  spans.push(...upTo(spans.length ? spans.at(-1)[1] : 0, rank).map((d) => [d, d + 1]));
  let at = 0;
  for (const [start, end] of spans) {
    must(start >= at, `two intervals contain dim ${start}`);
    must(start <= at, `no interval contains dim ${at}: add ${at}:${at + 1}`);
    at = end;
  }
  return spans;
}

// Returns the alignments: the tile on the last dims of the last two intervals, 1 on other dims.
function tileAlignments(shape, spans, tile) {
  const found = shape.map(() => 1);
  const ends = spans.map(([, end]) => end).slice(-2).reverse();
  ends.forEach((end, k) => (found[end - 1] = tile[1 - k]));
  return found;
}

// Returns the rows of the intervals and their aligned extents.
function alignedRows(shape, spans, alignments) {
  const lead = upTo(0, 2 - shape.length).map(() => ({ ...joinedRow([], shape), extent: 32 }));
  const found = spans.map(([start, end]) => joinedRow(upTo(start, end), shape, alignments));
  const all = [...lead, ...found];
  return [all.map(({ row }) => row), all.map(({ extent }) => extent)];
}

function exactCounts(extents, grid, whole, isTiled) {
  check(
    grid.length === extents.length && !grid.includes(0),
    `grid: ${extents.length} numbers >= 1, as the aligned shape is ${tuple(extents)}`,
    "grid",
  );
  return extents.map((n, k) => {
    check(
      n % whole[k] === 0,
      `the tile does not divide dim ${k} of the aligned shape ${tuple(extents)}: align that dim`,
      "alignments",
    );
    const count = quotient(n, whole[k]);
    check(
      count % grid[k] === 0,
      `grid: ${grid[k]} does not divide the ${count} ${isTiled ? "tiles" : "elements"} of dim ` +
        `${k}; metal_layout divides exactly: align that dim to a multiple of ${grid[k] * whole[k]}`,
      "grid",
    );
    return quotient(count, grid[k]);
  });
}

function metalModel(parameters, facts) {
  const { shape, dtype, tile, tile_format, memory_space, memory_layout } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  checkPlaneTile(parameters);
  const rank = shape.length;
  const pairs = parameters.intervals ?? (rank ? [[0, rank - 1], [rank - 1, rank]] : []);
  const spans = coveringIntervals(pairs, rank);
  const alignments = parameters.alignments ?? tileAlignments(shape, spans, tile ?? [32, 32]);
  const isPerDim = alignments.length === rank && !alignments.includes(0);
  check(isPerDim, "alignments: must be one number >= 1 per logical dim", "alignments");
  const [rows, extents] = alignedRows(shape, spans, alignments);
  const grid = parameters.grid ?? extents.map(() => 1);
  const isWhole = memory_layout !== "interleaved" || product(grid) === 1;
  check(isWhole, "an interleaved layout must have a grid of 1s", "memory_layout");
  const isPlane = tile === null || extents.length >= 2;
  check(isPlane, "tile: needs two physical dims: collapse fewer dims", "tile");
  const whole = wholeOf(tile, extents.length);
  const counts = exactCounts(extents, grid, whole, tile !== null);
  const shard = counts.map((n, k) => times(n, whole[k]));
  const also = tile_format === null || element.mlir === "bf16" ? "" : `, ${element.mlir}`;
  const dense = pairs.map((pair) => `[${pair.join(", ")}]`).join(", ");
  const list = (dims) => dims.join("x") || "[]";
  const named =
    `${tuple(shape)}, '${dtype}', dim_alignments=${tuple(alignments)}, ` +
    `collapsed_intervals=[${pairs.map(tuple).join(", ")}]` +
    keywords(facts, {
      ...{ grid, tile, memory_space },
      memory_layout: memory_layout === "sharded" ? null : memory_layout,
      ...{ tile_format, oob },
    });
  return onCores(parameters, facts, {
    ...{ rows, grid, shard, counts },
    text:
      `tensor<${[...grid, ...counts].map((n) => `${n}x`).join("")}` +
      `${tiledElement(facts, parameters, also)}, #ttcore.metal_layout<logical_shape = ` +
      `${list(shape)}, dim_alignments = ${list(alignments)}, collapsed_intervals = ` +
      `dense<${dense ? `[${dense}]` : ""}> : tensor<${pairs.length}x2xi64>, ${memory_space}, ` +
      `${memory_layout}${oob === "undef" ? "" : `, oob = ${oob}`}>>`,
    python: `gl.tenstorrent.metal(${named})`,
    told: { isDealt: memory_layout === "interleaved" },
    sizes: [
      ["alignments", tuple(alignments)],
      ["aligned shape", tuple(extents)],
      ["shard per core", tuple(shard)],
      ...(tile === null ? [] : [["tiles per core", tuple(counts)]]),
    ],
  });
}
