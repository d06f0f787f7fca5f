// Divides rows by a grid of cores, then by tiles, then by faces. All models with cores share it.
//
// A row {strides, offset} is a collapsed dim: the sum of stride * index over the logical dims.

const alignUp = (n, to) => times(ceil(n, to), to);
const upTo = (low, high) => Array.from({ length: Math.max(high - low, 0) }, (_, k) => low + k);

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

// Returns the rows as text, with `<>` for dims that are joined without gaps (seed 004).
function joinedText(rows, shape) {
  const joined = (row) => {
    const dims = upTo(0, shape.length).filter((d) => row.strides[d]);
    dims.sort((a, b) => row.strides[b] - row.strides[a] || a - b);
    const isJoin = dims.every(
      (d, k) => row.strides[d] === product(dims.slice(k + 1).map((e) => shape[e])),
    );
    const names = dims.map((d) => `d${d}`).join(" <> ");
    return row.offset === 0 && isJoin && dims.length > 1 ? names : rowText(row);
  };
  return `(${rows.map(joined).join(", ")})`;
}

// Returns the largest value of a row plus 1; its least value must not be negative.
function rowExtent(row, shape, k) {
  const terms = row.strides.map((stride, d) => ({ stride, extent: Math.max(shape[d], 1) }));
  const low = plus(row.offset, least(terms));
  check(
    low >= 0,
    `collapsed dim ${k}, ${rowText(row)}, has the value ${low}; it must be >= 0: add ${-low}`,
    "strides",
  );
  if (row.strides.some((stride, d) => stride && shape[d] === 0)) return 0;
  const steps = terms.map(({ stride, extent }) => times(Math.abs(stride), extent - 1));
  return plus(low, plus(sum(steps), 1));
}

// Returns the terms of each row; null unless all are nested and each dim is in one row.
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

// Returns the number of elements to which rows of a core's buffer are aligned.
function rowMultiple({ row_alignment, tile, tile_format }, bits, facts) {
  if (row_alignment === null) return 1;
  const isPower = row_alignment >= 1 && Number.isInteger(Math.log2(row_alignment));
  check(isPower, "row alignment: must be a power of 2, in bytes", "row_alignment");
  const multiple = Math.max(quotient(row_alignment * 8, bits), 1);
  if (tile === null) return multiple;
  const blockBytes = facts.block_formats[tile_format];
  const rest = blockBytes === undefined ? product(tile) % multiple : blockBytes % row_alignment;
  check(!rest, `row alignment: tile ${tuple(tile)} is no multiple`, "row_alignment");
  return multiple;
}
const rowBytes = (multiple, bits) => (multiple === 1 ? null : quotient(multiple * bits, 8));

// Returns the shard of each collapsed dim: the given one, or the ceil-division by the grid.
function shardOf(given, extents, grid) {
  const needed = extents.map((n, k) => ceil(n, grid[k]));
  if (given === null) return needed;
  const ranks = given.length === grid.length;
  check(ranks, `shard: one number for each of the ${grid.length} grid dims`, "shard");
  given.forEach((n, k) => check(
    n >= needed[k],
    `shard: ${grid[k]} cores of ${n} can't hold the ${extents[k]} positions of dim ${k}: ` +
      `use ${needed[k]} or more`,
    "shard",
  ));
  return given;
}

// Returns the tiles of a shard along each dim; without a tile, elements, the last dim aligned.
function countsOf(shard, whole, tile, multiple) {
  const counts = shard.map((n, k) => ceil(n, whole[k]));
  if (tile === null && multiple > 1) counts.push(times(ceil(counts.pop(), multiple), multiple));
  return counts;
}
const wholeOf = (tile, rank) => [...upTo(0, rank - (tile ?? []).length).map(() => 1), ...(tile ?? [])];

// Returns the physical shape, and the maps from logical to physical indices and back.
function divided({ shape, rows, grid, shard, counts, tile, face = null }) {
  const rank = grid.length;
  const untiled = rank - (tile ?? []).length;
  const whole = wholeOf(tile, rank);
  const block = face === null ? whole : wholeOf(face, rank);
  const faces = face === null ? [] : face.map((f, k) => tile[k] / f);
  const physicalShape = [...grid, ...counts, ...faces, ...block.slice(untiled)];
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
  // Values of row k are relative to its least one.
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
  const closed = shape.includes(0) ? { find: () => null, held: () => 0 } : terms && { find, held };
  return { shape, rows, physicalShape, place, closed, coreRank: rank, block };
}

// Finishes a layout on cores: its bytes, and the options of its picture.
function onCores(parameters, facts, { grid, shard, counts, told, ...rest }) {
  const { shape, dtype, tile, face, tile_format, memory_space } = parameters;
  const layout = divided({ shape, rows: rest.rows, grid, shard, counts, tile, face });
  return finished({
    ...layout,
    ...rest,
    bits: elementType(facts, dtype).bits,
    blockBytes: tile_format === null ? 0 : facts.block_formats[tile_format],
    core: "core",
    naturalWidths: [(tile === null ? counts : layout.block).at(-1)],
    tileSize: tile === null ? 0 : product(tile),
    told: { name: tile_format ?? dtype, memory: memory_space, tile, counts, face, ...told },
  });
}
