// The document model (seed 004): collapse, divide by the grid, divide by the tile.

// Returns half-open intervals of dims, with nonnegative ends, sorted, without empty ones.
function intervals(pairs, rank) {
  const found = [];
  for (const [start, end] of pairs) {
    if (rank === 0 && start === 0 && end === -1) continue;
    const [low, high] = [start < 0 ? start + rank : start, end < 0 ? end + rank : end];
    check(
      0 <= low && low <= high && high <= rank,
      `collapse ${start}:${end} is outside the rank ${rank}; negative numbers count from the rank`,
      "collapse",
    );
    if (low < high) found.push([low, high]);
  }
  found.sort((a, b) => a[0] - b[0]);
  found.slice(1).forEach(([low], k) =>
    check(low >= found[k][1], `collapse intervals overlap at dim ${low}`, "collapse"));
  return found;
}
// Returns rows {strides, offset} of collapse intervals: one row per grid dim (seed 004, "Dimension
// Collapsing"). If rows are missing, zero rows are added in front, or, if the rank is large enough,
// each joined interval replaces a dim among the last ones.
function collapsedRows(shape, pairs, gridRank) {
  const rank = shape.length;
  const spans = intervals(pairs, rank);
  let groups = [];
  let at = 0;
  for (const [start, end] of spans) {
    groups.push(...upTo(at, start).map((d) => [d]), upTo(start, end));
    at = end;
  }
  groups.push(...upTo(at, rank).map((d) => [d]));
  const written = spans.map(([a, b]) => `${a}:${b}`).join(", ") || "of no dims";
  check(
    groups.length <= gridRank,
    `collapse ${written} leaves ${groups.length} dims, but the grid has rank ${gridRank}: ` +
      `join more dims, or use a grid of rank ${groups.length}`,
    "collapse",
  );
  if (groups.length < gridRank && rank >= gridRank) {
    const first = rank - gridRank;
    groups = upTo(first, rank).map((d) => [d]);
    for (const [start, end] of spans) groups[Math.max(start - first, 0)] = upTo(start, end);
    const kept = new Set(groups.flat());
    const lost = upTo(0, rank).find((d) => !kept.has(d));
    check(
      lost === undefined,
      `collapse ${written} maps dim ${lost} to no dim of a grid of rank ${gridRank}: use a ` +
        "grid of another rank, or edit the strides",
      "collapse",
    );
  }
  groups = [...upTo(0, gridRank - groups.length).map(() => []), ...groups];
  return groups.map((dims) => joinedRow(dims, shape).row);
}

// Returns the row of joined dims and its extent, both as if each dim with those inside it were
// aligned: c = align(n * c, alignment) outward.
function joinedRow(dims, shape, alignments = shape.map(() => 1)) {
  const strides = shape.map(() => 0);
  let extent = 1;
  for (const d of [...dims].reverse()) {
    strides[d] = extent;
    extent = alignUp(times(shape[d], extent), alignments[d]);
  }
  return { row: { strides, offset: 0 }, extent };
}

function checkTile({ tile, face, grid, tile_format }) {
  if (tile !== null) {
    check(tile.length && !tile.includes(0), "tile: must be empty, or numbers >= 1", "tile");
    check(tile.length <= grid.length, `tile ${tuple(tile)} has more dims than the grid`, "tile");
  }
  const fits = () =>
    tile !== null && face.length === tile.length && tile.every((t, k) => t % face[k] === 0);
  const isFace = face === null || (!face.includes(0) && fits());
  check(isFace, "face: must have the tile's rank and divide it", "face");
  checkFormat(tile, tile_format);
}
const checkFormat = (tile, format) =>
  check(
    format === null || String(tile) === "32,32",
    `tile format ${format} needs a tile of 32, 32`,
    "tile_format",
  );

// Returns the shard that the tile counts of a memref state, null for dims where they state none.
const statedBy = (counts, plain, whole) =>
  counts.map((n, k) => (n > plain[k] ? n * whole[k] : null));

function gridModel(parameters, facts) {
  const { shape, dtype, grid, tile, face, tile_format, memory_space } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  check(grid.length && !grid.includes(0), "grid: must be numbers >= 1, at least one", "grid");
  checkTile(parameters);
  const rows = parameters.rows ?? collapsedRows(shape, parameters.collapse, grid.length);
  const isTable = rows.length === grid.length && rows.every((r) => r.strides.length === shape.length);
  check(isTable, "strides: one row per grid dim, one number per logical dim", "strides");
  const collapsed = rows.map((row, k) => rowExtent(row, shape, k));
  const plain = shardOf(null, collapsed, grid);
  const shard = shardOf(parameters.shard, collapsed, grid);
  const multiple = rowMultiple(parameters, element.bits, facts);
  const whole = wholeOf(tile, grid.length);
  const counts = countsOf(shard, whole, tile, multiple);

  const linear = mapText(rows, shape.length);
  const inTile = tile === null ? element.mlir
    : `!ttcore.tile<${tile.join("x")}, ${tile_format ?? element.mlir}` +
      `${face === null ? "" : `, face<${face.join("x")}>`}>`;
  const stated = shard.map((n, k) => (n > plain[k] ? n : null));
  const read = statedBy(counts, countsOf(plain, whole, tile, multiple), whole);
  const alignment = rowBytes(multiple, element.bits);
  const words = [
    String(stated) === String(read) ? "" : `, shard = ${shard.join("x")}`,
    alignment === null ? "" : `, row_alignment = ${alignment}`,
  ].join("");
  const text =
    `tensor<${shape.map((n) => `${n}x`).join("")}${element.mlir}, #ttcore.metal_layout<` +
    `${linear}, ${oob}, <${grid.join("x")}>, memref<${counts.join("x")}x${inTile}, ` +
    `#ttcore.memory_space<${memory_space}>>${words}>>`;
  const named = keywords(facts, {
    ...{ grid, tile, linear: linear === defaultText(shape, grid.length) ? null : linear },
    shard_shape: stated.every((n) => n === null) ? null : shard,
    ...{ row_alignment: alignment, face, tile_format, oob, memory_space },
  });
  return onCores(parameters, facts, {
    ...{ rows, grid, shard, counts, text },
    python: `gl.GridLayout(${tuple(shape)}, '${dtype}'${named})`,
    told: { shard },
    sizes: [
      ["collapse", joinedText(rows, shape)],
      ["collapsed shape", tuple(collapsed)],
      ["shard per core", tuple(shard)],
      ...(tile === null ? [] : [["tiles per core", tuple(counts)]]),
    ],
  });
}

// Returns the map of the interval 0:-1, or null if it does not fit the grid's rank.
function defaultText(shape, gridRank) {
  try {
    return mapText(collapsedRows(shape, [[0, -1]], gridRank), shape.length);
  } catch (error) {
    if (error instanceof LayoutError) return null;
    throw error;
  }
}
