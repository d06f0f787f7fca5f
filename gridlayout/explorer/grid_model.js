// The document model (seed 004): collapse, divide by the grid, divide by the tile.

// Returns half-open intervals of dims, with nonnegative ends, sorted, without empty ones.
function intervals(pairs, rank) {
  const found = [];
  for (const [start, end] of pairs) {
    if (rank === 0 && start === 0 && end === -1) continue;
    const [low, high] = [start < 0 ? start + rank : start, end < 0 ? end + rank : end];
    if (!(0 <= low && low <= high && high <= rank)) {
      throw new LayoutError(
        `collapse ${start}:${end} is outside the rank ${rank}; negative numbers count from the rank`,
        "collapse",
      );
    }
    if (low < high) found.push([low, high]);
  }
  found.sort((a, b) => a[0] - b[0]);
  for (let k = 1; k < found.length; k++) {
    if (found[k][0] < found[k - 1][1]) {
      throw new LayoutError(`collapse intervals overlap at dim ${found[k][0]}`, "collapse");
    }
  }
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
  if (groups.length > gridRank) {
    throw new LayoutError(
      `collapse ${written} leaves ${groups.length} dims, but the grid has rank ${gridRank}: ` +
        `join more dims, or use a grid of rank ${groups.length}`,
      "collapse",
    );
  }
  if (groups.length < gridRank && rank >= gridRank) {
    const first = rank - gridRank;
    groups = upTo(first, rank).map((d) => [d]);
    for (const [start, end] of spans) groups[Math.max(start - first, 0)] = upTo(start, end);
    const kept = new Set(groups.flat());
    const lost = upTo(0, rank).find((d) => !kept.has(d));
    if (lost !== undefined) {
      throw new LayoutError(
        `collapse ${written} maps dim ${lost} to no dim of a grid of rank ${gridRank}: use a ` +
          "grid of another rank, or edit the strides",
        "collapse",
      );
    }
  }
  groups = [...upTo(0, gridRank - groups.length).map(() => []), ...groups];
  return groups.map((dims) => {
    const strides = shape.map(() => 0);
    dims.forEach((d, k) => (strides[d] = product(dims.slice(k + 1).map((e) => shape[e]))));
    return { strides, offset: 0 };
  });
}

function checkTile({ tile, face, grid, tile_format }) {
  if (tile !== null && (!tile.length || tile.includes(0))) {
    throw new LayoutError("tile: must be empty, or numbers >= 1", "tile");
  }
  if (tile !== null && tile.length > grid.length) {
    throw new LayoutError(`tile ${tuple(tile)} has more dims than the grid`, "tile");
  }
  const fits = () =>
    tile !== null && face.length === tile.length && tile.every((t, k) => t % face[k] === 0);
  if (face !== null && (face.includes(0) || !fits())) {
    throw new LayoutError("face: must have the tile's rank and divide it", "face");
  }
  if (tile_format !== null && String(tile) !== "32,32") {
    throw new LayoutError(`tile format ${tile_format} needs a tile of 32, 32`, "tile_format");
  }
}

// Returns the shard that the tile counts of a memref state, null for dims where they state none.
const statedBy = (counts, plain, whole) =>
  counts.map((n, k) => (n > plain[k] ? n * whole[k] : null));

function gridModel(parameters, facts) {
  const { shape, dtype, grid, tile, face, tile_format, memory_space } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  if (!grid.length || grid.includes(0)) {
    throw new LayoutError("grid: must be numbers >= 1, at least one", "grid");
  }
  checkTile(parameters);
  const rows = parameters.rows ?? collapsedRows(shape, parameters.collapse, grid.length);
  if (rows.length !== grid.length || rows.some((r) => r.strides.length !== shape.length)) {
    throw new LayoutError("strides: one row per grid dim, one number per logical dim", "strides");
  }
  const collapsed = rows.map((row, k) => rowExtent(row, shape, k));
  const plain = shardOf(null, collapsed, grid);
  const shard = shardOf(parameters.shard, collapsed, grid);
  const blockBytes = facts.block_formats[parameters.tile_format];
  const multiple = rowMultiple(parameters.row_alignment, element.bits, tile, blockBytes);
  const whole = wholeOf(tile, grid.length);
  const counts = countsOf(shard, whole, tile, multiple);
  const layout = divided({ shape, rows, grid, shard, counts, tile, face });

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
  const extras = [
    tile === null ? [] : [`tile=${tuple(tile)}`],
    linear === defaultText(shape, grid.length) ? [] : [`linear='${linear}'`],
    stated.every((n) => n === null) ? [] : [`shard_shape=${tuple(shard)}`],
    alignment === null ? [] : [`row_alignment=${alignment}`],
    face === null ? [] : [`face=${tuple(face)}`],
    tile_format === null ? [] : [`tile_format='${tile_format}'`],
    oob === "undef" ? [] : [`oob=${paddingCode(facts, oob)}`],
    memory_space === "l1" ? [] : [`memory_space='${memory_space}'`],
  ].flat();
  const named = [`${tuple(shape)}, '${dtype}', grid=${tuple(grid)}`, ...extras].join(", ");
  return finished({
    ...layout,
    ...{ linear, text },
    bits: element.bits,
    blockBytes: tile_format === null ? 0 : facts.block_formats[tile_format],
    python: `gl.GridLayout(${named})`,
    core: "core",
    naturalWidths: [(tile === null ? counts : layout.block).at(-1)],
    tileSize: tile === null ? 0 : product(tile),
    told: { name: tile_format ?? dtype, memory: memory_space, tile, counts, face, shard },
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
