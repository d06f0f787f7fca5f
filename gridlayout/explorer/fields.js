// The fields of the form: their markup, written from parameters and read to parameters.

const { start, facts } = JSON.parse(document.getElementById("parameters").textContent);
const field = (id) => document.getElementById(id);
const text = (id) => field(id).value;
const starts = Object.fromEntries([...facts.starts, start].map((p) => [p.model, p]));
const CHIP_SIZES = ["npus", "npu_bytes", "alignment"];

// The fields by fieldset: its legend and models, and of each field its id, label, tag, help, and the
// models that have it, if they are not all of the fieldset's.
const TEXT = 'input spellcheck="false"';
const hinted = (hint) => `${TEXT} placeholder="${hint}"`;
const atLeast = (n) => `input type="number" min="${n}"`;
const FIELDS = [
  ["Tensor", "grid ttnn ttnn_document metal xla sophon", [
    ["shape", "shape", TEXT, "for example 53, 63 or 53x63"],
    ["dtype", "element type", "select"],
    ["oob", "padding value", `${TEXT} list="oob-words"`],
  ]],
  ["Layout", "grid ttnn ttnn_document metal", [
    ["stride", "stride", hinted("contiguous"), "", "ttnn_document"],
    ["grid", "grid", TEXT],
    ["shard", "shard", hinted("from the grid"), "", "grid ttnn_document"],
    ["tile", "tile", hinted("none")],
    ["face", "face", hinted("none"), "", "grid"],
    ["tile_format", "tile format", "select"],
    ["row_alignment", "row alignment, B", hinted("none"), "", "grid ttnn ttnn_document"],
    ["memory_layout", "memory layout", "select", "", "ttnn metal"],
    ["buffer_type", "buffer type", "select", "", "ttnn"],
    ["memory_space", "memory space", "select", "", "grid ttnn_document metal"],
    ["alignments", "alignments", hinted("the tile's"), "", "metal"],
    ["intervals", "intervals", hinted("all but the last dim"),
      "of joined dims, for example 0:2, 2:3; [] joins none", "metal"],
    ["collapse", "collapse", TEXT, "intervals of dims, for example 0:-1 or 0:2, 2:3", "grid"],
  ]],
  ["Layout", "xla", [
    ["order", "order", hinted("the last dim first"), "of the dims, minor to major"],
    ["tiles", "tiles", hinted("none"),
      "for example (8,128)(2,1); * joins a dim with the next one"],
    ["tail_alignment", "tail alignment", atLeast(1)],
    ["element_bits", "element bits (0: those of the type)", atLeast(0)],
  ]],
  ["Layout", "sophon", [
    ["layout", "layout", "select"],
    ["sophon-strides", "strides", TEXT, "of N, C, H, W, in elements; 0 broadcasts"],
    ["allocation", "allocation", atLeast(1), "elements per NPU; empty for the layout's own"],
    ["storage", "storage mode", "select"],
    ["lanes", "lanes", atLeast(1)],
    ["npu", "start NPU", atLeast(0)],
    ["offset", "start offset, B", atLeast(0)],
  ]],
  ["Chip", "sophon", [
    ["chip", "chip", "select"],
    ["npus", "NPUs", atLeast(1)],
    ["npu_bytes", "bytes per NPU", atLeast(1)],
    ["alignment", "alignment, B", atLeast(1)],
  ]],
];

function fieldMarkup([id, label, tag, help, models]) {
  const described = help ? ` aria-describedby="${id}-help"` : "";
  return `<div${models ? ` data-model="${models}"` : ""}><label for="${id}">${label}</label>` +
    `<${tag} id="${id}"${described}>${tag === "select" ? "</select>" : ""}` +
    `${help ? `<small id="${id}-help">${help}</small>` : ""}</div>`;
}
field("fields").innerHTML = FIELDS.map(([legend, models, fields]) =>
  `<fieldset data-model="${models}"><legend>${legend}</legend>` +
  `${fields.map(fieldMarkup).join("")}</fieldset>`).join("") + '<datalist id="oob-words"></datalist>';

let model = start.model;
let ownStrides = false; // whether the collapse is that of the table of strides, not the intervals

function fillSelect(id, names) {
  field(id).innerHTML = names.map((name) => `<option>${name}</option>`).join("");
}

// The fields of models by their kind: lists and numbers with the least number, and choices. An empty
// field, or "none", means null, except for `REQUIRED`.
const LISTS = { grid: 1, tile: 1, face: 1, shard: 0, stride: 0, alignments: 1, order: 0 };
const NUMBERS = { row_alignment: 1, tail_alignment: 1, element_bits: 0 };
const WORDS = { tile_format: null, memory_space: null, memory_layout: null, buffer_type: null };
const REQUIRED = ["tail_alignment", "element_bits"];

const BY_GRID = "from the grid";

const list = (numbers) => (numbers ?? []).join(", ");
const pairs = (found) => found.map((pair) => pair.join(":")).join(", ");
const isEmpty = (id) => text(id).trim() === "";

function fillForm(parameters) {
  const set = (values) => Object.entries(values).forEach(([id, v]) => (field(id).value = v ?? ""));
  const given = (kind) => Object.keys(kind).filter((id) => id in parameters);
  for (const [id, options] of Object.entries({
    memory_space: facts.memory_spaces,
    memory_layout: { ...facts.memory_layouts, ttnn: [BY_GRID, ...facts.memory_layouts[""]] },
  })) fillSelect(id, options[model] ?? options[""]);
  const { shape, dtype, oob } = parameters;
  set({ shape: list(shape), dtype, oob });
  set(Object.fromEntries(given(LISTS).map((id) => [id, list(parameters[id])])));
  set(Object.fromEntries(given(WORDS).map((id) => [id, parameters[id] ?? "none"])));
  set(Object.fromEntries(given(NUMBERS).map((id) => [id, parameters[id]])));
  if (model === "grid") {
    const { grid, rows } = parameters;
    set({ collapse: "0:-1" });
    ownStrides = defaultText(shape, grid.length) !== mapText(rows, shape.length);
    showRows(rows);
  }
  if (model === "ttnn" && parameters.memory_layout === defaultArrangement(parameters.grid)) {
    set({ memory_layout: BY_GRID });
  }
  if (model === "metal") {
    const { intervals } = parameters;
    set({ intervals: intervals === null ? "" : pairs(intervals) || "[]" });
  }
  if (model === "xla") set({ tiles: tilesText(parameters.tiles) });
  if (model === "sophon") fillSophon(parameters, set);
}

function fillSophon(parameters, set) {
  const { layout, npu, offset, lanes, chip, strides, storage, allocation } = parameters;
  set({ layout: layout ?? "strides", "sophon-strides": list(strides), npu, offset });
  set({ storage: storage ?? "none", lanes, allocation, chip: chip.known ?? "custom" });
  set(Object.fromEntries(CHIP_SIZES.map((id) => [id, chip[id]])));
}

const readList = (id, low = 1) => (isEmpty(id) ? null : readInts(text(id), id, low));
const readWord = (id) => (text(id) === "none" ? null : text(id));
const readNumber = (id, low = 1) =>
  isEmpty(id) && !REQUIRED.includes(id) ? null : readInt(text(id), id, low);
function readRows() {
  return [...field("rows").tBodies[0].rows].map((row) => {
    const cells = [...row.querySelectorAll("input")];
    const numbers = cells.map((cell) => readInt(cell.value, "strides", -Infinity));
    return { strides: numbers.slice(0, -1), offset: numbers.at(-1) };
  });
}

function readSophon() {
  const number = (id, low) => readInt(text(id), id, low);
  const custom = text("chip") === "custom";
  const own = starts.sophon.chip.known ? { banks: null, name: null } : starts.sophon.chip;
  const chip = custom
    ? Object.fromEntries(CHIP_SIZES.map((id) => [id, number(id, 1)]))
    : facts.chips[text("chip")];
  return {
    layout: text("layout") === "strides" ? null : text("layout"),
    strides: text("layout") === "strides" ? readInts(text("sophon-strides"), "strides") : null,
    storage: text("storage") === "none" ? null : text("storage"),
    lanes: text("storage") === "none" ? number("lanes", 1) : 1,
    allocation: readNumber("allocation"),
    npu: number("npu"),
    offset: number("offset"),
    chip: { banks: own.banks, name: own.name, ...chip, known: custom ? null : text("chip") },
  };
}

const readGrid = () => readInts(text("grid"), "grid", 1);

// The fields of each model that are read in a way of their own.
const OWN_FIELDS = {
  grid: () => ({
    grid: readGrid(),
    collapse: ownStrides ? null : readIntervals(text("collapse"), "collapse"),
    rows: ownStrides ? readRows() : null,
  }),
  ttnn: () => ({
    grid: readGrid(),
    memory_layout: text("memory_layout") === BY_GRID ? null : text("memory_layout"),
  }),
  ttnn_document: () => ({}),
  metal: () => ({
    intervals: isEmpty("intervals") ? null : readIntervals(text("intervals"), "intervals"),
  }),
  xla: () => ({ memory_space: starts.xla.memory_space, tiles: readTiles(text("tiles"), "tiles") }),
  sophon: readSophon,
};

function readForm() {
  const found = { ...starts[model], shape: readInts(text("shape"), "shape") };
  for (const id of ["dtype", "oob"]) found[id] = text(id);
  for (const id in found) {
    if (id in LISTS) found[id] = readList(id, LISTS[id]);
    if (id in NUMBERS) found[id] = readNumber(id, NUMBERS[id]);
    if (id in WORDS) found[id] = readWord(id);
  }
  return { ...found, ...OWN_FIELDS[model]() };
}

// Shows the table of strides, one row per collapsed dim. Existing fields are reused to keep focus.
function showRows(rows) {
  const table = field("rows");
  const shape = `${rows.length}x${rows[0].strides.length}`;
  if (table.dataset.shape !== shape) {
    const dims = rows[0].strides.map((_, d) => `d${d}`);
    const head = [...dims, "offset"].map((name) => `<th scope="col">${name}</th>`).join("");
    const body = rows.map((_, k) => {
      const cells = [...dims.map((d) => `stride of ${d}`), "offset"].map(
        (name) => `<td><input type="number" aria-label="${name} in collapsed dim ${k}"></td>`);
      return `<tr><th scope="row">dim ${k}</th>${cells.join("")}</tr>`;
    });
    table.innerHTML = `<thead><tr><td></td>${head}</tr></thead><tbody>${body.join("")}</tbody>`;
    table.dataset.shape = shape;
  }
  rows.forEach(({ strides, offset }, k) => {
    const cells = table.tBodies[0].rows[k].querySelectorAll("input");
    [...strides, offset].forEach((n, d) => (cells[d].value = n));
  });
}

function showForm() {
  for (const part of document.querySelectorAll("[data-model]")) {
    part.hidden = !part.dataset.model.split(" ").includes(model);
  }
  field("lanes").disabled = text("storage") !== "none";
  field("sophon-strides").disabled = text("layout") !== "strides";
  for (const id of CHIP_SIZES) field(id).disabled = text("chip") !== "custom";
  field("rows-help").textContent = ownStrides
    ? "These strides were edited; change the intervals to compute them again."
    : "These strides follow from the intervals; increase one to leave a gap.";
}
