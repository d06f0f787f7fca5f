// Tenstorrent's other models: the current ttnn_layout and metal_layout, and the document's TTNN.

const alignUp = (n, to) => times(ceil(n, to), to);

function checkPlaneTile({ tile, tile_format }) {
  if (tile !== null && (tile.length !== 2 || tile.includes(0))) {
    throw new LayoutError("tile: must be empty, or rows and columns, both >= 1", "tile");
  }
  if (tile_format !== null && String(tile) !== "32,32") {
    throw new LayoutError(`tile format ${tile_format} needs a tile of 32, 32`, "tile_format");
  }
}

function checkPlane(grid) {
  if (grid.length === 2 && !grid.includes(0)) return;
  throw new LayoutError("grid: must be rows and columns of cores, both >= 1", "grid");
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

// Finishes a layout of any of the three models: bytes, and the options of its picture.
function onCores(layout, parameters, facts, { counts, told, ...rest }) {
  const { tile, tile_format, dtype } = parameters;
  const name = tile_format ?? dtype;
  return finished({
    ...layout,
    ...rest,
    bits: elementType(facts, dtype).bits,
    blockBytes: tile_format === null ? 0 : facts.block_formats[tile_format],
    core: "core",
    naturalWidths: [(tile ?? counts).at(-1)],
    tileSize: tile === null ? 0 : product(tile),
    told: { name, memory: parameters.memory_space, tile, counts, ...told },
  });
}

// The memory of a buffer type, if its name differs.
const MEMORY_OF = { l1_small: "l1", system_memory: "system" };

// -- the current ttnn_layout: pad to tiles, collapse, divide -------------------------------------

function defaultArrangement([rows, columns]) {
  if (rows * columns === 1) return "interleaved";
  return rows === 1 ? "width_sharded" : columns === 1 ? "height_sharded" : "block_sharded";
}

function checkArrangement(grid, arrangement, buffer) {
  const cores = product(grid);
  const refuse = (message, field) => {
    throw new LayoutError(message, field);
  };
  if (buffer === "system_memory" && (cores !== 1 || arrangement !== "interleaved")) {
    refuse("system memory must be interleaved on a grid of 1, 1", "buffer_type");
  }
  if (arrangement === "interleaved" && cores !== 1) {
    refuse("an interleaved layout must have a grid of 1, 1", "memory_layout");
  }
  if (arrangement === "block_sharded" && buffer === "dram") {
    refuse("block_sharded is not possible in dram", "memory_layout");
  }
  if (arrangement === "height_sharded" && grid[1] !== 1) {
    refuse("height_sharded needs one column of cores", "memory_layout");
  }
  if (arrangement === "width_sharded" && grid[0] !== 1) {
    refuse("width_sharded needs one row of cores", "memory_layout");
  }
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
  const blockBytes = facts.block_formats[parameters.tile_format];
  const multiple = rowMultiple(parameters.row_alignment, element.bits, tile, blockBytes);
  const side = tile ?? [1, 1];
  const padded = [...upTo(0, 2 - shape.length).map(() => 1), ...shape];
  const [height, width] = [padded.at(-2), padded.at(-1)];
  padded.splice(-2, 2, alignUp(height, side[0]), alignUp(width, side[1]));
  const strides = shape.map((_, d) => product(padded.slice(padded.length - shape.length).slice(d + 1, -1)));
  const rows = planeRows(strides);
  const plane = [product(padded.slice(0, -1)), padded.at(-1)];
  const shard = shardOf(null, plane, grid);
  const counts = countsOf(shard, side, tile, multiple);
  const layout = divided({ shape, rows, grid, shard, counts, tile });
  const alignment = rowBytes(multiple, element.bits);
  const memref = `memref<${counts.join("x")}x${tiledElement(facts, parameters)}, ` +
    `#ttnn.buffer_type<${buffer_type}>>`;
  const words = [
    coreRanges(grid, arrangement, facts.worker_columns),
    alignment === null ? "" : `, row_alignment = ${alignment}`,
    oob === "undef" ? "" : `, oob = ${oob}`,
  ].join("");
  const named = [
    `${tuple(shape)}, '${dtype}', grid=${tuple(grid)}`,
    tile === null ? [] : [`tile=${tuple(tile)}`],
    `memory_layout='${arrangement}'`,
    buffer_type === "l1" ? [] : [`buffer_type='${buffer_type}'`],
    tile_format === null ? [] : [`tile_format='${tile_format}'`],
    alignment === null ? [] : [`row_alignment=${alignment}`],
    oob === "undef" ? [] : [`oob=${paddingCode(facts, oob)}`],
  ].flat();
  return onCores(layout, parameters, facts, {
    counts,
    text:
      `tensor<${shape.map((n) => `${n}x`).join("")}${element.mlir}, #ttnn.ttnn_layout<` +
      `${mapText(rows, shape.length)}, <${grid.join("x")}>, ${memref}, <${arrangement}>${words}>>`,
    python: `gl.tenstorrent.ttnn(${named.join(", ")})`,
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
  const refuse = (message) => {
    throw new LayoutError(`stride: ${message}`, "stride");
  };
  if (stride.length !== shape.length) refuse("must be one number per dim");
  if (stride.length && stride.at(-1) !== 1) refuse("the last number must be 1");
  for (let d = stride.length - 2; d >= 0; d--) {
    const least = times(stride[d + 1], Math.max(shape[d + 1], 1));
    if (stride[d] < least) refuse(`that of dim ${d} must be at least ${least}`);
    if (stride[d] % stride.at(-2)) refuse(`that of dim ${d} must be a multiple of ${stride.at(-2)}`);
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
  if (given !== null && (given.length !== 2 || (parameters.grid === null && given.includes(0)))) {
    throw new LayoutError("shard: must be rows and columns of the plane, both >= 1", "shard");
  }
  const byShard = () => given.map((n, k) => Math.max(ceil(used[k], n), 1));
  const grid = parameters.grid ?? (given === null ? [1, 1] : byShard());
  checkPlane(grid);
  const whole = shardOf(null, plane, grid);
  const shard = given === null ? whole : shardOf(given, used, grid);
  const blockBytes = facts.block_formats[parameters.tile_format];
  const multiple = rowMultiple(parameters.row_alignment, element.bits, tile, blockBytes);
  const side = tile ?? [1, 1];
  const counts = countsOf(shard, side, tile, multiple);
  const layout = divided({ shape, rows, grid, shard, counts, tile });
  const alignment = rowBytes(multiple, element.bits);
  const named = [
    `${tuple(shape)}, '${dtype}'`,
    String(stride) === String(contiguous(shape)) ? [] : [`stride=${tuple(stride)}`],
    String(shard) === String(whole) ? [] : [`shard_shape=${tuple(shard)}`],
    product(grid) === 1 ? [] : [`grid=${tuple(grid)}`],
    tile === null ? [] : [`tile=${tuple(tile)}`],
    memory_space === "l1" ? [] : [`memory_space='${memory_space}'`],
    tile_format === null ? [] : [`tile_format='${tile_format}'`],
    alignment === null ? [] : [`row_alignment=${alignment}`],
    oob === "undef" ? [] : [`oob=${paddingCode(facts, oob)}`],
  ].flat();
  const call = `tenstorrent.ttnn_document(${named.join(", ")})`;
  return onCores(layout, parameters, facts, {
    counts,
    text: call,
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
  const refuse = (message) => {
    throw new LayoutError(`intervals: ${message}`, "intervals");
  };
  const spans = [];
  for (const [start, end] of pairs) {
    const [low, high] = [start < 0 ? start + rank : start, end < 0 ? end + rank : end];
    if (!(0 <= low && low < Math.max(rank, 1) && low <= high && high <= rank)) {
      refuse(`${start}:${end} does not fit the rank ${rank}`);
    }
    if (low < high) spans.push([low, high]);
  }
  spans.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  spans.push(...upTo(spans.length ? spans.at(-1)[1] : 0, rank).map((d) => [d, d + 1]));
  let at = 0;
  for (const [start, end] of spans) {
    if (start < at) refuse(`two intervals contain dim ${start}`);
    if (start > at) refuse(`no interval contains dim ${at}: add ${at}:${at + 1}`);
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

// Returns the rows of the intervals and their aligned extents: c = align(n * c, alignment) outward.
function alignedRows(shape, spans, alignments) {
  const [rows, extents] = [[], []];
  for (const [start, end] of spans) {
    const strides = shape.map(() => 0);
    let size = 1;
    for (let d = end - 1; d >= start; d--) {
      strides[d] = size;
      size = alignUp(times(shape[d], size), alignments[d]);
    }
    rows.push({ strides, offset: 0 });
    extents.push(size);
  }
  const lead = upTo(0, 2 - shape.length);
  return [
    [...lead.map(() => ({ strides: shape.map(() => 0), offset: 0 })), ...rows],
    [...lead.map(() => 32), ...extents],
  ];
}

function exactCounts(extents, grid, whole, isTiled) {
  if (grid.length !== extents.length || grid.includes(0)) {
    throw new LayoutError(
      `grid: ${extents.length} numbers >= 1, as the aligned shape is ${tuple(extents)}`,
      "grid",
    );
  }
  return extents.map((n, k) => {
    if (n % whole[k]) {
      throw new LayoutError(
        `the tile does not divide dim ${k} of the aligned shape ${tuple(extents)}: align that dim`,
        "alignments",
      );
    }
    const count = quotient(n, whole[k]);
    if (count % grid[k]) {
      const what = isTiled ? "tiles" : "elements";
      throw new LayoutError(
        `grid: ${grid[k]} does not divide the ${count} ${what} of dim ${k}; metal_layout divides ` +
          `exactly: align that dim to a multiple of ${grid[k] * whole[k]}`,
        "grid",
      );
    }
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
  if (alignments.length !== rank || alignments.includes(0)) {
    throw new LayoutError("alignments: must be one number >= 1 per logical dim", "alignments");
  }
  const [rows, extents] = alignedRows(shape, spans, alignments);
  const grid = parameters.grid ?? extents.map(() => 1);
  if (memory_layout === "interleaved" && product(grid) !== 1) {
    throw new LayoutError("an interleaved layout must have a grid of 1s", "memory_layout");
  }
  if (tile !== null && extents.length < 2) {
    throw new LayoutError("tile: needs two physical dims: collapse fewer dims", "tile");
  }
  const whole = wholeOf(tile, extents.length);
  const counts = exactCounts(extents, grid, whole, tile !== null);
  const shard = counts.map((n, k) => times(n, whole[k]));
  const layout = divided({ shape, rows, grid, shard, counts, tile });
  const also = tile_format === null || element.mlir === "bf16" ? "" : `, ${element.mlir}`;
  const dense = pairs.map((pair) => `[${pair.join(", ")}]`).join(", ");
  const list = (dims) => dims.join("x") || "[]";
  const named = [
    `${tuple(shape)}, '${dtype}', dim_alignments=${tuple(alignments)}`,
    `collapsed_intervals=[${pairs.map(tuple).join(", ")}], grid=${tuple(grid)}`,
    tile === null ? [] : [`tile=${tuple(tile)}`],
    memory_space === "l1" ? [] : [`memory_space='${memory_space}'`],
    memory_layout === "sharded" ? [] : [`memory_layout='${memory_layout}'`],
    tile_format === null ? [] : [`tile_format='${tile_format}'`],
    oob === "undef" ? [] : [`oob=${paddingCode(facts, oob)}`],
  ].flat();
  return onCores(layout, parameters, facts, {
    counts,
    text:
      `tensor<${[...grid, ...counts].map((n) => `${n}x`).join("")}` +
      `${tiledElement(facts, parameters, also)}, #ttcore.metal_layout<logical_shape = ` +
      `${list(shape)}, dim_alignments = ${list(alignments)}, collapsed_intervals = ` +
      `dense<${dense ? `[${dense}]` : ""}> : tensor<${pairs.length}x2xi64>, ${memory_space}, ` +
      `${memory_layout}${oob === "undef" ? "" : `, oob = ${oob}`}>>`,
    python: `gl.tenstorrent.metal(${named.join(", ")})`,
    told: { isDealt: memory_layout === "interleaved" },
    sizes: [
      ["alignments", tuple(alignments)],
      ["aligned shape", tuple(extents)],
      ["shard per core", tuple(shard)],
      ...(tile === null ? [] : [["tiles per core", tuple(counts)]]),
    ],
  });
}
