// Pictures: the logical tensor by core, and one core's memory, as cells of SVG.

const CELLS = 64; // rows, and columns, of one picture, at most
const SAMPLES = 4; // positions that a cell of many is told from, along each side
const HUES = 8;
const WIDTH = 470;
const MARGIN = { left: 34, top: 18 };

// Neighbours get different colours, also diagonal ones.
function hue(core, coreShape) {
  const k = flat(core, coreShape);
  if (product(coreShape) <= HUES) return k;
  const rank = core.length;
  return core.reduce((n, i, d) => n + ((2 * (rank - 1 - d) + 1) % HUES) * (i % HUES), 0) % HUES;
}

// `n` positions along a side as at most `most` bins.
function binned(n, most) {
  const size = Math.max(ceil(n, most), 1);
  return { n, size, count: ceil(n, size) };
}
// Positions of a bin to look at: all of few, else some from its first to its last one.
function sampled({ n, size }, k) {
  const [low, high] = [k * size, Math.min((k + 1) * size, n) - 1];
  const count = Math.min(high - low + 1, SAMPLES);
  const step = (high - low) / Math.max(count - 1, 1);
  return upTo(0, count).map((i) => low + Math.round(i * step));
}

// The plan of a picture of rows x columns positions.
function planOf(rows, columns) {
  const [down, across] = [binned(rows, CELLS), binned(columns, CELLS)];
  const side = (count, most) => Math.max(Math.min(Math.floor(WIDTH / Math.max(count, 1)), most), 7);
  return { down, across, width: side(across.count, 44), height: side(down.count, 24) };
}

// Draws what `cellAt(row, column)` gives of each position, {key, fill, label} or null past the end,
// and lines above some rows. A key tells apart what has one fill. Gives a note on cells of several
// positions.
function draw(svg, rows, columns, cellAt, lines) {
  const plan = planOf(rows, columns);
  const { down, across, width, height } = plan;
  const [cells, labels] = [[], []];
  const whole = down.size === 1 && across.size === 1;
  for (let r = 0; r < down.count; r++) {
    for (let c = 0; c < across.count; c++) {
      const found = sampled(down, r).flatMap((i) => sampled(across, c).map((j) => cellAt(i, j)));
      const there = found.filter((cell) => cell !== null);
      if (!there.length) continue;
      const fill = there.every(({ key }) => key === there[0].key) ? there[0].fill : "mix";
      const [x, y] = [MARGIN.left + c * width, MARGIN.top + r * height];
      cells.push(`<rect class="${fill}" x="${x}" y="${y}" width="${width}" height="${height}"/>`);
      const label = whole ? there[0].label : "";
      if (label && label.length * 6.1 + 3 <= width && height >= 13) {
        labels.push(`<text x="${x + width / 2}" y="${y + height / 2}">${label}</text>`);
      }
    }
  }
  const box = [MARGIN.left + across.count * width + 4, MARGIN.top + down.count * height + 4];
  svg.setAttribute("viewBox", `0 0 ${box.join(" ")}`);
  [svg.style.width, svg.style.aspectRatio] = [`${box[0]}px`, box.join(" / ")];
  const ruled = lines.filter((row) => row % down.size === 0).map((row) => {
    const y = MARGIN.top + (row / down.size) * height;
    return `<path class="line" d="M${MARGIN.left} ${y}h${across.count * width}"/>`;
  });
  svg.innerHTML =
    `<g class="cells">${cells.join("")}</g>${labels.join("")}${ruled.join("")}${ticks(plan)}` +
    `<rect class="cursor" width="${width + 2}" height="${height + 2}" visibility="hidden"/>`;
  svg.plan = plan;
  const told = Math.max(down.size, across.size) > SAMPLES ? ", told from samples" : "";
  return whole ? "" : `A cell is ${down.size} x ${across.size} positions${told}.`;
}

function ticks({ down, across, width, height }) {
  const texts = [];
  const every = (size, room) => Math.max(1, 2 ** Math.ceil(Math.log2(room / size)));
  for (let r = 0; r < down.count; r += every(height, 13)) {
    const y = MARGIN.top + (r + 0.5) * height;
    texts.push(`<text class="tick right" x="${MARGIN.left - 4}" y="${y}">${r * down.size}</text>`);
  }
  const wide = 7 * String(across.n).length + 8;
  for (let c = 0; c < across.count; c += every(width, wide)) {
    const x = MARGIN.left + (c + 0.5) * width;
    texts.push(`<text class="tick" x="${x}" y="${MARGIN.top - 8}">${c * across.size}</text>`);
  }
  return texts.join("");
}

// Puts the cursor around the cell of a position; null hides it.
function point(svg, position) {
  const cursor = svg.querySelector(".cursor");
  if (!cursor) return;
  cursor.setAttribute("visibility", position ? "visible" : "hidden");
  if (!position) return;
  const { down, across, width, height } = svg.plan;
  cursor.setAttribute("x", MARGIN.left + quotient(position[1], across.size) * width - 1);
  cursor.setAttribute("y", MARGIN.top + quotient(position[0], down.size) * height - 1);
}

// The position under the pointer, or null.
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

// Elements of a core's memory that one row of its picture shows.
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
  const ruled = tile > width && tile % width === 0;
  const lines = ruled ? upTo(1, Math.min(local / tile, CELLS)).map((k) => (k * tile) / width) : [];
  return draw(svg, ceil(local, width), Math.min(width, local), (row, column) => {
    const offset = row * width + column;
    if (offset >= local) return null;
    const index = layout.logicalIndex([...core, ...unflat(offset, layout.localShape)]);
    if (index === null) return { key: "pad", fill: "pad", label: "" };
    return { key: "data", fill, label: index.join(",") };
  }, lines);
}

// The patterns of padding and of cells that hold several things, told apart by direction.
const LINES = { pad: "M-1 1l2 -2M0 7l7 -7M6 8l2 -2", mix: "M-1 6l2 2M0 0l7 7M6 -1l2 2" };
const PATTERNS = Object.entries(LINES)
  .map(
    ([kind, d]) =>
      `<pattern id="${kind}" patternUnits="userSpaceOnUse" width="7" height="7">` +
      `<rect class="${kind}-ground" width="7" height="7"/>` +
      `<path class="${kind}-line" d="${d}"/></pattern>`,
  )
  .join("");

// What the fills mean; padding and mixed cells always, cores where they are few enough to name.
function legendOf(layout) {
  const { coreShape, cores } = layout;
  const named = upTo(0, cores <= HUES ? cores : 0).map((k) => {
    const core = unflat(k, coreShape);
    return [`c${hue(core, coreShape)}`, nameOf(layout, core)];
  });
  return [...named, ["pad", "padding"], ["mix", "several of these"]]
    .map(
      ([fill, name]) =>
        '<span><svg width="18" height="14" aria-hidden="true">' +
        `<rect class="${fill}" width="18" height="14"/></svg>${name}</span>`,
    )
    .join("");
}
const nameOf = (layout, core) =>
  core.length ? `${layout.core} ${core.length === 1 ? core[0] : tuple(core)}` : layout.core;
