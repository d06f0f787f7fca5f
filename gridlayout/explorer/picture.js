// Pictures: the logical tensor coloured by core, and the memory of one core, as SVG cells.

const CELLS = 64; // most rows and most columns of one picture
const SAMPLES = 4; // most positions along each side that are examined in a cell of many positions
const HUES = 8;
const WIDTH = 470;
const MARGIN = { left: 48, top: 18 };

const TOUCHING = 5; // least distance in pixels of lines between tiles

// A colour is that of one core, or of a group if there are many. Returns the cores per group along
// each dim.
function groupSizes(coreShape) {
  const sizes = coreShape.map(() => 1);
  const many = () => product(coreShape.map((n, d) => ceil(n, sizes[d]))) > HUES;
  for (let d = sizes.length - 1; d >= 0; d--) {
    while (many() && sizes[d] < coreShape[d]) sizes[d] *= 2;
  }
  return sizes;
}
function hue(core, coreShape) {
  const sizes = groupSizes(coreShape);
  const group = core.map((i, d) => quotient(i, sizes[d]));
  return flat(group, coreShape.map((n, d) => ceil(n, sizes[d])));
}
// Returns the names of the groups in the order of their hues, such as (0, 0:2).
function groupNames(layout) {
  const { coreShape } = layout;
  const sizes = groupSizes(coreShape);
  const groups = coreShape.map((n, d) => ceil(n, sizes[d]));
  return upTo(0, product(groups)).map((k) => {
    const ends = unflat(k, groups).map((i, d) =>
      [i * sizes[d], Math.min((i + 1) * sizes[d], coreShape[d])]);
    if (ends.every(([low, high]) => high === low + 1)) {
      return nameOf(layout, ends.map(([low]) => low));
    }
    const spans = ends.map(([low, high], d) =>
      high === low + 1 ? low : high - low === coreShape[d] ? ":" : `${low}:${high}`);
    return `${layout.core}s ${tuple(spans)}`;
  });
}

// Returns `n` positions along a side as at most `most` bins.
function binned(n, most) {
  const size = Math.max(ceil(n, most), 1);
  return { n, size, count: ceil(n, size) };
}
// Returns the positions of a bin that are examined: all if few, else some from first to last.
function sampled({ n, size }, k) {
  const [low, high] = [k * size, Math.min((k + 1) * size, n) - 1];
  const count = Math.min(high - low + 1, SAMPLES);
  const step = (high - low) / Math.max(count - 1, 1);
  return upTo(0, count).map((i) => low + Math.round(i * step));
}

// Returns the plan of a picture of rows x columns positions.
function planOf(rows, columns) {
  const [down, across] = [binned(rows, CELLS), binned(columns, CELLS)];
  const side = (count, most) => Math.max(Math.min(Math.floor(WIDTH / Math.max(count, 1)), most), 7);
  return { down, across, width: side(across.count, 44), height: side(down.count, 24) };
}

// Draws the content {key, fill, label} of each position, as `cellAt(row, column)` returns it; null
// is past the end. Draws lines above some rows, and between cells of one fill with different keys.
// Returns the fills, whether cells have numbers, the positions per cell, and which of them are
// examined if not all.
function draw(svg, rows, columns, cellAt, lines) {
  const plan = planOf(rows, columns);
  const { down, across, width, height } = plan;
  const [cells, labels, borders, fills] = [[], [], [], new Set()];
  const whole = down.size === 1 && across.size === 1;
  let above = [];
  for (let r = 0; r < down.count; r++) {
    const row = [];
    for (let c = 0; c < across.count; c++) {
      const found = sampled(down, r).flatMap((i) => sampled(across, c).map((j) => cellAt(i, j)));
      const there = found.filter((cell) => cell !== null);
      if (!there.length) continue;
      const fill = there.every(({ key }) => key === there[0].key) ? there[0].fill
        : there.every((cell) => cell.fill === there[0].fill) ? there[0].fill : "mix";
      const [x, y] = [MARGIN.left + c * width, MARGIN.top + r * height];
      cells.push(`<rect class="${fill}" x="${x}" y="${y}" width="${width}" height="${height}"/>`);
      fills.add(fill);
      row[c] = { fill, key: there[0].key };
      const apart = (other) => other && other.fill === fill && other.key !== row[c].key;
      if (apart(row[c - 1])) borders.push(`M${x} ${y}v${height}`);
      if (apart(above[c])) borders.push(`M${x} ${y}h${width}`);
      const label = whole ? there[0].label : "";
      if (label && label.length * 6.1 + 3 <= width && height >= 13) {
        labels.push(`<text x="${x + width / 2}" y="${y + height / 2}">${label}</text>`);
      }
    }
    above = row;
  }
  borders.push(...ruled(lines, plan));
  show(svg, plan, cells, labels, borders);
  const cell = [down.size, across.size];
  const shown = cell.map((n) => Math.min(n, SAMPLES));
  const seen = Math.max(...cell) > SAMPLES ? shown.join(" x ") : "";
  return { fills, labelled: labels.length > 0, cell, seen };
}

// Returns lines above rows, which may be inside cells; none if they would touch.
function ruled(lines, { down, across, width, height }) {
  const places = lines.map((row) => MARGIN.top + (row / down.size) * height);
  const apart = places.every((y, k) => !k || y - places[k - 1] >= TOUCHING);
  return apart ? places.map((y) => `M${MARGIN.left} ${y}h${across.count * width}`) : [];
}

function show(svg, plan, cells, labels, borders) {
  const { down, across, width, height } = plan;
  // Room for the last number, which is centred on the last edge.
  const wide = Math.max(4, String(across.n).length * 3.1 + 1);
  const box = [MARGIN.left + across.count * width + wide, MARGIN.top + down.count * height + 7];
  svg.setAttribute("viewBox", `0 0 ${box.join(" ")}`);
  [svg.style.width, svg.style.aspectRatio] = [`${box[0]}px`, box.join(" / ")];
  const line = borders.length ? `<path class="line" d="${borders.join("")}"/>` : "";
  svg.innerHTML =
    `<g class="cells">${cells.join("")}</g>${line}${labels.join("")}${ticks(plan)}` +
    `<rect class="cursor" width="${width + 2}" height="${height + 2}" visibility="hidden"/>`;
  svg.plan = plan;
}

// Returns the numbers of an axis as [pixel, text]: in the middle of single positions, else at the
// beginning of each cell and the end of the last. As many as have room, always including both ends.
function marksOf({ n, size, count }, side, room) {
  const end = size === 1 ? [(n - 0.5) * side, n - 1] : [count * side, n];
  const shift = size === 1 ? 0.5 : 0;
  const every = Math.max(1, 2 ** Math.ceil(Math.log2(room / side)));
  const marks = [];
  for (let k = 0; k < count; k += every) marks.push([(k + shift) * side, k * size]);
  const kept = marks.filter(([at], k) => !k || end[0] - at >= room);
  return end[0] - kept.at(-1)?.[0] >= room ? [...kept, end] : kept;
}

function ticks({ down, across, width, height }) {
  const left = marksOf(down, height, 13).map(([y, text]) =>
    `<text class="tick right" x="${MARGIN.left - 4}" y="${MARGIN.top + y}">${text}</text>`);
  const above = marksOf(across, width, 6.2 * String(across.n).length + 8).map(([x, text]) =>
    `<text class="tick" x="${MARGIN.left + x}" y="${MARGIN.top - 8}">${text}</text>`);
  return [...left, ...above].join("");
}

// Places the cursor around the cell of a position; null hides it.
function point(svg, position) {
  const cursor = svg.querySelector(".cursor");
  if (!cursor) return;
  cursor.setAttribute("visibility", position ? "visible" : "hidden");
  if (!position) return;
  const { down, across, width, height } = svg.plan;
  cursor.setAttribute("x", MARGIN.left + quotient(position[1], across.size) * width - 1);
  cursor.setAttribute("y", MARGIN.top + quotient(position[0], down.size) * height - 1);
}

// Returns the position under the pointer, or null.
function positionAt(svg, event) {
  if (!svg.plan) return null;
  const { down, across, width, height } = svg.plan;
  const box = svg.getBoundingClientRect();
  const scale = svg.viewBox.baseVal.width / box.width;
  const row = (((event.clientY - box.top) * scale - MARGIN.top) / height) * down.size;
  const column = (((event.clientX - box.left) * scale - MARGIN.left) / width) * across.size;
  const inside = row >= 0 && column >= 0 && row < down.n && column < across.n;
  return inside ? [Math.floor(row), Math.floor(column)] : null;
}

// -- the two pictures --------------------------------------------------------------------------

// Rows and columns of the logical tensor: its last two dims.
const tableOf = (shape) => [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
const indexAt = (leading, row, column, rank) =>
  [...leading, ...[row, column].slice(2 - Math.min(rank, 2))];

function drawTensor(svg, layout, leading) {
  const { shape, coreShape } = layout;
  const rank = shape.length;
  return draw(svg, ...(layout.size ? tableOf(shape) : [0, 0]), (row, column) => {
    const { core, offset } = layout.locate(indexAt(leading, row, column, rank));
    return { key: String(core), fill: `c${hue(core, coreShape)}`, label: String(offset) };
  }, []);
}

// Returns the elements per row in the picture of a core's memory.
function rowWidth(layout) {
  const local = product(layout.localShape);
  const natural = layout.naturalWidths.filter((n) => n > 0);
  const wide = natural.filter((n) => n * 8 <= local).at(-1);
  const width = natural.find((n) => n <= CELLS) ?? wide ?? CELLS;
  return Math.max(Math.min(width, local), 1);
}

function drawMemory(svg, layout, core) {
  const [local, width] = [product(layout.localShape), rowWidth(layout)];
  const fill = `c${hue(core, layout.coreShape)}`;
  const tile = layout.tileSize;
  const tiles = tile > width && tile % width === 0 ? quotient(local, tile) : 0;
  // More lines than cells would touch.
  const lines = tiles <= CELLS ? upTo(1, tiles).map((k) => (k * tile) / width) : [];
  return draw(svg, ceil(local, width), Math.min(width, local), (row, column) => {
    const offset = row * width + column;
    if (offset >= local) return null;
    const index = layout.logicalIndex([...core, ...unflat(offset, layout.localShape)]);
    if (index === null) return { key: "pad", fill: "pad", label: "" };
    return { key: "data", fill, label: index.join(",") };
  }, lines);
}

// The patterns of padding and of mixed cells; they differ in direction.
const LINES = { pad: "M-1 1l2 -2M0 7l7 -7M6 8l2 -2", mix: "M-1 6l2 2M0 0l7 7M6 -1l2 2" };
const PATTERNS = Object.entries(LINES)
  .map(
    ([kind, d]) =>
      `<pattern id="${kind}" patternUnits="userSpaceOnUse" width="7" height="7">` +
      `<rect class="${kind}-ground" width="7" height="7"/>` +
      `<path class="${kind}-line" d="${d}"/></pattern>`,
  )
  .join("");

// Returns the legend of the fills that are drawn.
function legendOf(layout, fills) {
  const named = groupNames(layout).map((name, k) => [`c${k}`, name]);
  return [...named, ["pad", "padding"], ["mix", "several of these"]]
    .filter(([fill]) => fills.has(fill))
    .map(
      ([fill, name]) =>
        '<span><svg width="18" height="14" aria-hidden="true">' +
        `<rect class="${fill}" width="18" height="14"/></svg>${name}</span>`,
    )
    .join("");
}
const nameOf = (layout, core) =>
  core.length ? `${layout.core} ${core.length === 1 ? core[0] : tuple(core)}` : layout.core;
