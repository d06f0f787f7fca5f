// A layout in a few lines of text: the same as `layout.summary()`, except the line on chips.

const dimsText = (dims) => dims.join("x");
// Returns a number with `decimals` decimals; halves are rounded to even, as in Python.
function rounded(x, decimals) {
  // A half is an odd multiple of 1 / 2 ** (decimals + 1); the product with 10 ** decimals is rounded.
  const isHalf = (x * 2 ** (decimals + 1)) % 2 === 1;
  const low = Math.floor(x * 10 ** decimals);
  const found = isHalf ? (low + (low % 2)) / 10 ** decimals : Number(x.toFixed(decimals));
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return found.toLocaleString("en-US", digits);
}
const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];
// Returns bytes in binary units.
function sizeText(n) {
  if (n < 1024) return `${n} B`;
  let power = 1;
  while (power < UNITS.length && n >= 1024 ** (power + 1)) power += 1;
  return `${rounded(n / 1024 ** power, 1)} ${UNITS[power - 1]}`;
}

function summaryOf(layout) {
  const { told, coreShape, shape } = layout;
  const cores = coreShape.length ? `on ${dimsText(coreShape)} cores` : "in one buffer";
  const memory = told.memory ? `, in ${told.memory}` : "";
  const rows = [
    ["shard", shardText(layout)],
    ["padding", paddingText(layout)],
    ["bytes", bytesText(layout)],
    ["cores", coresText(layout)],
  ];
  return {
    title: `${told.name}[${shape.join(", ")}] ${cores}${memory}`,
    rows: rows.filter(([, text]) => text),
  };
}

function shardText({ told, coreShape, localShape }) {
  const held = coreShape.length ? "per core" : "in one buffer";
  if (!told.tile) {
    const laid = told.braces ? `, laid out as ${told.braces}` : "";
    return `${dimsText(localShape) || "1"} elements ${held}${laid}`;
  }
  const faces = told.face ? ` with ${dimsText(told.face)} faces` : "";
  const tiles = `${dimsText(told.counts)} tiles of ${dimsText(told.tile)}${faces}`;
  return told.shard ? `${dimsText(told.shard)} elements ${held}, in ${tiles}` : `${tiles} ${held}`;
}

function paddingText({ paddingShare, physicalShape }) {
  const places = grouped(product(physicalShape));
  if (!paddingShare) return "none";
  return `${rounded(100 * paddingShare, 1)}% of ${places} positions hold no element`;
}

function bytesText({ coreShape, bytesPerCore, nbytes, dataBytes }) {
  const each = coreShape.length ? `${sizeText(bytesPerCore)} per core, ` : "";
  const wasted = Math.max(nbytes - dataBytes, 0);
  const factor = wasted && dataBytes ? `: ${rounded(nbytes / dataBytes, 2)} times the data` : "";
  return `${each}${sizeText(nbytes)} in total, ${wasted ? sizeText(wasted) : "none"} wasted${factor}`;
}

// The most cores that are checked for whether they hold any element.
const MAX_ASKED = 2 ** 14;

// Returns the cores of the first and the last element, and how many elements these cores hold.
function coresText(layout) {
  const { told, coreShape, shape, size, localShape, cores } = layout;
  if (!coreShape.length || !size) return "";
  if (told.isDealt) return "pages are distributed over all of them";
  const first = shape.map(() => 0);
  const last = shape.map((n) => n - 1);
  const [from, to] = [first, last].map((index) => layout.locate(index).core);
  const held = (core) => product(localShape) - layout.paddingOf(core);
  const many = (core) => `${grouped(held(core))} element${held(core) === 1 ? "" : "s"}`;
  const words = same(from, to)
    ? [`${tuple(from)} holds the first and the last element`]
    : [
        `first ${tuple(from)}: ${many(from)} from ${tuple(first)}`,
        `last ${tuple(to)}: ${many(to)} up to ${tuple(last)}`,
      ];
  if (cores <= MAX_ASKED) {
    const idle = upTo(0, cores).filter((n) => !held(unflat(n, coreShape))).length;
    if (idle) words.push(`${grouped(idle)} of ${grouped(cores)} hold none`);
  }
  return words.join("; ");
}
