// The page: the results of the layout, the cursor of both pictures, the clipboard.

let layout = null;
// The selected position: physical, and logical unless it is padding.
let cursor = { physical: [], logical: null };
let drawn = {}; // the leading index and the core that the pictures show

// -- results -----------------------------------------------------------------------------------

// Shows an error and marks the field; an empty message clears both.
function showError(message, id) {
  field("error").textContent = message;
  field("results").className = message ? "stale" : "";
  for (const input of field("form").elements) input.removeAttribute("aria-invalid");
  const bad = field(model === "sophon" && id === "strides" ? "sophon-strides" : id);
  if (bad) bad.setAttribute("aria-invalid", "true");
}

// Reads the form and shows its layout. If it is invalid, shows the error and dims the old results.
function update() {
  showForm();
  try {
    layout = layoutOf(readForm(), facts);
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    showError(error.message, error.field);
    return;
  }
  showError("", null);
  if (model === "grid") showRows(layout.rows);
  if (model === "sophon") showSophon();
  showSummary(summaryOf(layout));
  field("sizes").innerHTML = sizesOf(layout)
    .map(([name, value]) => `<div><dt>${name}</dt><dd>${value.replace(/</g, "&lt;")}</dd></div>`)
    .join("");
  field("text").textContent = layout.text;
  field("python").textContent = layout.python;
  drawn = {};
  goLogical(cursorInside());
}

function showSummary({ title, rows }) {
  field("summary-title").textContent = title;
  const parts = rows.flatMap((row) => row.map((text, k) => {
    const part = document.createElement(k ? "dd" : "dt");
    part.textContent = text;
    return part;
  }));
  field("summary").replaceChildren(...parts);
}

function showSophon() {
  if (text("layout") !== "strides") field("sophon-strides").value = layout.strides.join(", ");
  const chip = facts.chips[text("chip")] ?? {};
  for (const id of CHIP_SIZES) if (id in chip) field(id).value = chip[id];
}

// Returns the last logical index, clamped to the shape.
function cursorInside() {
  const last = cursor.logical ?? [];
  return layout.shape.map((n, k) => Math.max(Math.min(last[k] ?? 0, n - 1), 0));
}

const grouped = (n) => n.toLocaleString("en-US");

function sizesOf({ physicalShape, sizes, core, clash, ...of }) {
  const found = [
    ["physical shape", tuple(physicalShape)],
    ...sizes,
    [`bytes per ${core}`, `${grouped(of.bytesPerCore)} B`],
    ["bytes in total", `${grouped(of.nbytes)} B for ${grouped(of.dataBytes)} B of data`],
    ["padding", `${grouped(of.padding)} elements, ${(100 * of.paddingShare).toFixed(1)}%`],
  ];
  if (clash) found.push(["read-only view", `${clash.map(tuple).join(" and ")} share a position`]);
  return found;
}

// -- the selected index ------------------------------------------------------------------------

const same = (a, b) => String(a) === String(b);

function goLogical(index) {
  if (!layout.size) return go({ logical: null, physical: layout.physicalShape.map(() => 0) });
  return go({ logical: index, physical: layout.locate(index).physical });
}
const goPhysical = (physical) => go({ physical, logical: layout.logicalIndex(physical) });

function go(to) {
  cursor = to;
  const rank = layout.coreShape.length;
  const core = cursor.physical.slice(0, rank);
  const zeros = layout.shape.slice(0, -2).map(() => 0);
  const leading = cursor.logical?.slice(0, -2) ?? drawn.leading ?? zeros;
  if (!same(leading, drawn.leading ?? [-1])) showTensor(leading);
  if (!same(core, drawn.core ?? [-1])) showMemory(core);
  showLegend();
  point(field("tensor"), cursor.logical && [0, 0, ...cursor.logical].slice(-2));
  const local = product(layout.localShape);
  const offset = flat(cursor.physical.slice(rank), layout.localShape);
  const width = rowWidth(layout);
  point(field("memory"), local ? [quotient(offset, width), offset % width] : null);
  showIndex(core, offset);
}

// Returns the number of positions per cell, in words, if there are several, and how many are drawn.
const cellText = ({ cell, seen }) => {
  const some = seen ? `; its colour is that of ${seen} of them, with its corners` : "";
  return Math.max(...cell) > 1 ? `A cell has ${cell.map(grouped).join(" x ")} positions${some}.` : "";
};

function showTensor(leading) {
  const seen = drawTensor(field("tensor"), layout, leading);
  const at = leading.length ? `, at index ${leading.join(", ")} of the first dims` : "";
  field("tensor-caption").textContent = `Tensor by ${layout.core}${at}`;
  field("tensor-note").textContent =
    seen.labelled ? "Numbers are offsets in the memory." : cellText(seen);
  drawn = { ...drawn, leading, tensor: seen };
}

function showMemory(core) {
  const seen = drawMemory(field("memory"), layout, core);
  const padding = grouped(layout.paddingOf(core));
  field("memory-caption").textContent = `Memory of ${nameOf(layout, core)}`;
  field("memory-note").textContent =
    `${grouped(rowWidth(layout))} elements per row; ${padding} are padding. ` +
    (seen.labelled ? "Numbers are logical indices." : cellText(seen));
  drawn = { ...drawn, core, memory: seen };
}

function showLegend() {
  const seen = [drawn.tensor, drawn.memory];
  field("legend").innerHTML =
    legendOf(layout, new Set(seen.flatMap((picture) => [...picture.fills])));
}

function showIndex(core, offset) {
  const write = (id, value) => document.activeElement === field(id) || (field(id).value = value);
  write("logical", cursor.logical ? cursor.logical.join(", ") : layout.size ? "padding" : "none");
  write("physical", cursor.physical.join(", "));
  for (const id of ["logical", "physical"]) field(id).removeAttribute("aria-invalid");
  const place = `${nameOf(layout, core)}, offset ${grouped(offset)}`;
  field("readout").textContent = cursor.logical
    ? elementText(place)
    : layout.size ? `${place} is padding.` : "The tensor is empty: every position is padding.";
}

function elementText(place) {
  const { local, byte } = layout.locate(cursor.logical);
  const bytes = byte === null ? "in bytes shared with other elements" : `byte ${grouped(byte)}`;
  const inside = `index inside the ${layout.core} ${tuple(local)}`;
  return `Element ${tuple(cursor.logical)} is on ${place}, ${bytes}; ${inside}.`;
}

function typed(id, go) {
  field(id).addEventListener("input", () => {
    if (field("results").className) return;
    try {
      go(readInts(text(id), id));
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      field(id).setAttribute("aria-invalid", "true");
      field("readout").textContent = error.message;
    }
  });
}

// -- pointer and keys --------------------------------------------------------------------------

const clamp = (i, n) => Math.max(Math.min(i, n - 1), 0);

// The steps of each key: down, to the right, and to another page.
const KEYS = {
  ArrowUp: [-1, 0, 0], ArrowDown: [1, 0, 0], ArrowLeft: [0, -1, 0], ArrowRight: [0, 1, 0],
  Home: [0, -Infinity, 0], End: [0, Infinity, 0], PageUp: [0, 0, -1], PageDown: [0, 0, 1],
};

function moveTensor([down, right, pages]) {
  const [rows, columns] = tableOf(layout.shape);
  const lead = layout.shape.slice(0, -2);
  const index = cursorInside();
  const [row, column] = [0, 0, ...index].slice(-2);
  const leading = unflat(clamp(flat(index.slice(0, -2), lead) + pages, product(lead)), lead);
  const at = [clamp(row + down, rows), clamp(column + right, columns)];
  goLogical(indexAt(leading, ...at, layout.shape.length));
}

function moveMemory([down, right, pages]) {
  const rank = layout.coreShape.length;
  const local = product(layout.localShape);
  const core = flat(cursor.physical.slice(0, rank), layout.coreShape);
  const offset = flat(cursor.physical.slice(rank), layout.localShape);
  const to = offset + down * rowWidth(layout) + right;
  const isStay = Number.isFinite(to) && to !== clamp(to, local);
  const places = [[clamp(core + pages, layout.cores), layout.coreShape],
    [isStay ? offset : clamp(to, local), layout.localShape]];
  goPhysical(places.flatMap(([n, shape]) => unflat(n, shape)));
}

function pointed(id, goTo, move) {
  field(id).addEventListener("pointermove", (event) => {
    const position = positionAt(field(id), event);
    if (position) goTo(position);
  });
  field(id).addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || !product(layout.localShape)) return;
    event.preventDefault();
    move(KEYS[event.key]);
  });
}

async function copyFrom(id) {
  const shown = field(id);
  try {
    await navigator.clipboard.writeText(shown.textContent);
    field("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(shown); // a page in a frame may lack the permission
    field("copied").textContent = "The browser does not allow copying; the text is selected.";
  }
}

// -- start -------------------------------------------------------------------------------------

fillSelect("dtype", Object.keys(facts.dtypes));
fillSelect("oob-words", facts.oob_names);
fillSelect("buffer_type", facts.buffer_types);
fillSelect("tile_format", ["none", ...Object.keys(facts.block_formats)]);
fillSelect("layout", [...facts.layouts, "strides"]);
fillSelect("storage", ["none", ...Object.keys(facts.storage)]);
fillSelect("chip", [...Object.keys(facts.chips), "custom"]);
field("patterns").innerHTML = PATTERNS;

field("form").addEventListener("submit", (event) => event.preventDefault());
field("form").addEventListener("input", (event) => {
  if (event.target.name === "model") {
    model = event.target.value;
    fillForm(starts[model]);
  }
  if (event.target.closest("#rows")) ownStrides = true;
  if (event.target.id === "collapse") ownStrides = false;
  update();
});
pointed("tensor", ([row, column]) => {
  goLogical(indexAt(drawn.leading, row, column, layout.shape.length));
}, moveTensor);
pointed("memory", ([row, column]) => {
  const offset = row * rowWidth(layout) + column;
  const inside = offset < product(layout.localShape);
  if (inside) goPhysical([...drawn.core, ...unflat(offset, layout.localShape)]);
}, moveMemory);
typed("logical", (index) => goLogical(checked(index, layout.shape, "logical index")));
typed("physical", (index) => goPhysical(checked(index, layout.physicalShape, "physical index")));
for (const button of document.querySelectorAll("[data-copies]")) {
  button.addEventListener("click", () => copyFrom(button.dataset.copies));
}
document.querySelector(`input[name="model"][value="${model}"]`).checked = true;
fillForm(start);
update();

// A frame around this page, as in a notebook, gets the height of the page.
const frame = window.frameElement;
const fit = () => (frame.style.height = `${document.documentElement.offsetHeight + 2}px`);
if (frame) {
  fit();
  new ResizeObserver(fit).observe(document.documentElement);
}
