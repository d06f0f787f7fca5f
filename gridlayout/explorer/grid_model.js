// The document model (seed 004): collapse, divide by the grid, divide by the tile.

// Half-open intervals of dims, ends counted from 0, in order, without the empty ones.
function intervals(pairs, rank) {
  const found = [];
  for (const [start, end] of pairs) {
    if (rank === 0 && start === 0 && end === -1) continue;
    const [low, high] = [start < 0 ? start + rank : start, end < 0 ? end + rank : end];
    if (!(0 <= low && low <= high && high <= rank)) {
      throw new LayoutError(
        `collapse ${start}:${end} is not inside the rank ${rank}; negative ends count from it`,
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
const upTo = (low, high) => Array.from({ length: Math.max(high - low, 0) }, (_, k) => low + k);

// Rows {strides, offset} of collapse intervals: one row a grid dim (seed 004, "Dimension
// Collapsing"). Too few rows: zeros in front, or the joined dims on top of the last ones.
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
        `join more, or give a grid of rank ${groups.length}`,
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
        `collapse ${written} leaves dim ${lost} in no dim of a rank-${gridRank} grid: give a ` +
          "grid of another rank, or strides",
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

// A row as MLIR prints it: d0 * 32 + d1 - 1.
function rowText({ strides, offset }) {
  let text = "";
  strides.forEach((stride, d) => {
    if (!stride) return;
    if (!text) text = stride === -1 ? `-d${d}` : stride === 1 ? `d${d}` : `d${d} * ${stride}`;
    else {
      const by = Math.abs(stride) === 1 ? "" : ` * ${Math.abs(stride)}`;
      text += ` ${stride < 0 ? "-" : "+"} d${d}${by}`;
    }
  });
  if (!text) return String(offset);
  return offset ? `${text} ${offset < 0 ? "-" : "+"} ${Math.abs(offset)}` : text;
}
const mapText = (rows, rank) =>
  `(${upTo(0, rank).map((d) => `d${d}`).join(", ")}) -> (${rows.map(rowText).join(", ")})`;

// One more than the largest value of a row; no less than 0 may be its least one.
function rowExtent(row, shape, k) {
  const terms = row.strides.map((stride, d) => ({ stride, extent: Math.max(shape[d], 1) }));
  const low = plus(row.offset, least(terms));
  if (low < 0) {
    throw new LayoutError(
      `collapsed dim ${k}, ${rowText(row)}, reaches ${low}; it must be >= 0, so add ${-low}`,
      "strides",
    );
  }
  if (row.strides.some((stride, d) => stride && shape[d] === 0)) return 0;
  const steps = terms.map(({ stride, extent }) => times(Math.abs(stride), extent - 1));
  return plus(low, plus(sum(steps), 1));
}

// The terms of each row where all nest and each dim is in one row, else null.
function rowTerms(rows, shape) {
  const seen = new Set();
  const found = [];
  for (const { strides } of rows) {
    const terms = strides
      .map((stride, dim) => ({ stride, dim, extent: shape[dim] }))
      .filter(({ stride, extent }) => stride && extent !== 1);
    if (terms.some(({ dim }) => seen.has(dim))) return null;
    terms.forEach(({ dim }) => seen.add(dim));
    const ordered = nested(terms);
    if (ordered === null) return null;
    found.push(ordered);
  }
  return shape.every((n, d) => n === 1 || seen.has(d)) ? found : null;
}

function checkTile({ tile, face, grid, tile_format }) {
  if (tile !== null && (!tile.length || tile.includes(0))) {
    throw new LayoutError("tile: at least one number, all >= 1; or nothing", "tile");
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

function gridModel(parameters, facts) {
  const { shape, dtype, grid, tile, face, tile_format, memory_space } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  if (!grid.length || grid.includes(0)) {
    throw new LayoutError("grid: at least one number, all >= 1", "grid");
  }
  checkTile(parameters);
  const rows = parameters.rows ?? collapsedRows(shape, parameters.collapse, grid.length);
  if (rows.length !== grid.length || rows.some((r) => r.strides.length !== shape.length)) {
    throw new LayoutError("strides: one row a grid dim, one number a logical dim", "strides");
  }
  const collapsed = rows.map((row, k) => rowExtent(row, shape, k));
  const shard = collapsed.map((n, k) => ceil(n, grid[k]));
  const untiled = grid.length - (tile ?? []).length;
  const whole = [...upTo(0, untiled).map(() => 1), ...(tile ?? [])];
  const block = face === null ? whole : [...upTo(0, untiled).map(() => 1), ...face];
  const counts = shard.map((n, k) => ceil(n, whole[k]));
  const faces = face === null ? [] : face.map((f, k) => tile[k] / f);
  const physicalShape = [...grid, ...counts, ...faces, ...block.slice(untiled)];
  const rank = grid.length;

  function place(index) {
    const cores = [], tiles = [], blocks = [], inner = [];
    rows.forEach(({ strides, offset }, k) => {
      const value = strides.reduce((n, stride, d) => n + stride * index[d], offset);
      const inShard = value % shard[k];
      cores.push(quotient(value, shard[k]));
      tiles.push(quotient(inShard, whole[k]));
      if (k < untiled) return;
      const inTile = inShard % whole[k];
      if (face !== null) blocks.push(quotient(inTile, block[k]));
      inner.push(inTile % block[k]);
    });
    return [...cores, ...tiles, ...blocks, ...inner];
  }

  const terms = rowTerms(rows, shape);
  // Values of row k count from its least one.
  const base = terms && rows.map((row, k) => row.offset + least(terms[k]));
  function find(physical) {
    const index = shape.map(() => 0);
    for (let k = 0; k < rank; k++) {
      let inShard = physical[rank + k] * whole[k];
      if (k >= untiled) {
        const at = 2 * rank + k - untiled;
        const high = face === null ? 0 : physical[at] * block[k];
        inShard += high + physical[at + faces.length];
      }
      if (inShard >= shard[k]) return null;
      const found = digits(terms[k], physical[k] * shard[k] + inShard - base[k]);
      if (found === null) return null;
      for (const [{ dim }, i] of found) index[dim] = i;
    }
    return index;
  }
  const held = (core) =>
    product(
      core.map((c, k) => {
        const to = (limit) => below(terms[k], limit - base[k]);
        return to((c + 1) * shard[k]) - to(c * shard[k]);
      }),
    );

  const linear = mapText(rows, shape.length);
  const inTile = tile === null ? element.mlir
    : `!ttcore.tile<${tile.join("x")}, ${tile_format ?? element.mlir}` +
      `${face === null ? "" : `, face<${face.join("x")}>`}>`;
  const text =
    `tensor<${shape.map((n) => `${n}x`).join("")}${element.mlir}, #ttcore.metal_layout<` +
    `${linear}, ${oob}, <${grid.join("x")}>, memref<${counts.join("x")}x${inTile}, ` +
    `#ttcore.memory_space<${memory_space}>>>>`;
  const extras = [
    tile === null ? [] : [`tile=${tuple(tile)}`],
    linear === defaultText(shape, rank) ? [] : [`linear='${linear}'`],
    face === null ? [] : [`face=${tuple(face)}`],
    tile_format === null ? [] : [`tile_format='${tile_format}'`],
    oob === "undef" ? [] : [`oob=${paddingCode(facts, oob)}`],
    memory_space === "l1" ? [] : [`memory_space='${memory_space}'`],
  ].flat();
  const named = [`${tuple(shape)}, '${dtype}', grid=${tuple(grid)}`, ...extras].join(", ");
  return finished({
    ...{ shape, physicalShape, place, rows, linear, text },
    coreRank: rank,
    bits: element.bits,
    blockBytes: tile_format === null ? 0 : facts.block_formats[tile_format],
    closed: shape.includes(0) ? { find: () => null, held: () => 0 } : terms && { find, held },
    python: `gl.GridLayout(${named})`,
    core: "core",
    naturalWidths: [(tile === null ? counts : block).at(-1)],
    tileSize: tile === null ? 0 : product(tile),
    sizes: [
      ["collapsed shape", tuple(collapsed)],
      ["shard of a core", tuple(shard)],
      ...(tile === null ? [] : [["tiles of a core", tuple(counts)]]),
    ],
  });
}

// The map of the interval 0:-1, or null where it does not fit the grid's rank.
function defaultText(shape, gridRank) {
  try {
    return mapText(collapsedRows(shape, [[0, -1]], gridRank), shape.length);
  } catch (error) {
    if (error instanceof LayoutError) return null;
    throw error;
  }
}
