// Arithmetic: exact integers, nested strides, and functions that all layout models share.
//
// All numbers are below 2**53 and therefore exact; larger ones raise an error. The page joins these
// files to one module, so that all of them share their names.

// The most elements of a map with overlapping strides: see `tabulated`.
const MAX_TABLE = 2 ** 18;
const MAX_RANK = 64;

// An invalid layout: the message, and the field of the form that is wrong.
class LayoutError extends Error {
  constructor(message, field) {
    super(message);
    this.field = field;
  }
}
function refuse(message, field) {
  throw new LayoutError(message, field);
}
const check = (isTrue, message, field) => isTrue || refuse(message, field);

// -- exact numbers ---------------------------------------------------------------------------

function exact(n) {
  if (Number.isSafeInteger(n)) return n;
  return refuse("this layout needs numbers over 2**53, which this page can't represent");
}
const times = (a, b) => exact(a * b);
const plus = (a, b) => exact(a + b);
const quotient = (a, b) => (a - (a % b)) / b;
const ceil = (a, b) => quotient(a, b) + (a % b > 0 ? 1 : 0);
const product = (dims) => (dims.includes(0) ? 0 : dims.reduce(times, 1));
const gcd = (a, b) => (b ? gcd(b, a % b) : a);
const sum = (numbers) => numbers.reduce(plus, 0);
// Row-major number of an index, and back.
const flat = (index, shape) => index.reduce((n, i, k) => n * shape[k] + i, 0);
function unflat(n, shape) {
  const index = new Array(shape.length);
  for (let k = shape.length - 1; k >= 0; k--) {
    index[k] = n % shape[k];
    n = quotient(n, shape[k]);
  }
  return index;
}
const tuple = (index) => `(${index.join(", ")}${index.length === 1 ? "," : ""})`;

// -- text of a field -------------------------------------------------------------------------

function readInt(text, field, least = 0) {
  check(/^\s*[-+]?\d+\s*$/.test(text), `${field}: "${text}" is not a whole number`, field);
  const n = Number(text);
  check(Number.isSafeInteger(n), `${field}: ${text} is over 2**53`, field);
  check(n >= least, `${field}: ${n} must be >= ${least}`, field);
  return n;
}
// "53, 63", "(53, 63)" or "53x63".
function readInts(text, field, least = 0) {
  const inner = text.trim().replace(/^[([]|[)\]]$/g, "").replace(/,\s*$/, "").trim();
  const found = inner === "" ? [] : inner.split(/\s*[,x]\s*|\s+/);
  check(found.length <= MAX_RANK, `${field}: more than ${MAX_RANK} numbers`, field);
  return found.map((n) => readInt(n, field, least));
}
// "0:-1, 2:3" or "[(0, -1), (2, 3)]".
function readIntervals(text, field) {
  const ends = readInts(text.replace(/[()[\]:]/g, " ").replace(/[\s,]+/g, " "), field, -Infinity);
  check(ends.length % 2 === 0, `${field}: write pairs start:end, such as 0:-1`, field);
  return Array.from({ length: ends.length / 2 }, (_, k) => [ends[2 * k], ends[2 * k + 1]]);
}

// -- nested strides --------------------------------------------------------------------------

// Returns terms {stride, extent, ...} from the major to the minor; null if they are not nested,
// that is, if a stride is smaller than the span of all smaller terms.
function nested(terms) {
  const found = terms.filter((t) => t.extent !== 1);
  found.sort((a, b) => Math.abs(a.stride) - Math.abs(b.stride));
  let span = 1;
  for (const { stride, extent } of found) {
    if (span > Math.abs(stride)) return null;
    span = plus(span, times(Math.abs(stride), extent - 1));
  }
  return found.reverse();
}
// Returns the least value of the terms' sum.
const least = (terms) =>
  sum(terms.map(({ stride, extent }) => (stride < 0 ? times(stride, extent - 1) : 0)));
// Returns the digits [term, index] of `rest`, a value minus the least one; null if it is no value.
function digits(terms, rest) {
  const found = [];
  for (const term of terms) {
    const step = Math.abs(term.stride);
    const digit = quotient(rest, step);
    if (rest < 0 || digit >= term.extent) return null;
    rest -= digit * step;
    found.push([term, term.stride < 0 ? term.extent - 1 - digit : digit]);
  }
  return rest === 0 ? found : null;
}
// Returns how many values, relative to the least one, are below `limit`.
function below(terms, limit) {
  if (limit <= 0) return 0;
  if (!terms.length) return 1;
  const [{ stride, extent }, ...lower] = terms;
  const each = product(lower.map((t) => t.extent));
  const whole = quotient(limit, Math.abs(stride));
  if (whole >= extent) return extent * each;
  return whole * each + below(lower, limit - whole * Math.abs(stride));
}

// -- common to all models --------------------------------------------------------------------

// Lists all elements of a map without a closed-form inverse, in which elements may share a place.
function tabulated(shape, place, physicalShape, coreRank) {
  const size = product(shape);
  check(
    size <= MAX_TABLE,
    `strides overlap, and this page supports at most ${MAX_TABLE} elements of such a map, but ` +
      `the tensor has ${size}: use a smaller tensor or larger strides`,
    "strides",
  );
  const holder = new Map();
  const held = new Map();
  let clash = null;
  for (let n = 0; n < size; n++) {
    const physical = place(unflat(n, shape));
    const at = flat(physical, physicalShape);
    if (holder.has(at)) {
      clash ??= [unflat(holder.get(at), shape), unflat(n, shape)];
      continue;
    }
    holder.set(at, n);
    const core = flat(physical.slice(0, coreRank), physicalShape);
    held.set(core, (held.get(core) ?? 0) + 1);
  }
  return {
    clash,
    find: (physical) => {
      const n = holder.get(flat(physical, physicalShape));
      return n === undefined ? null : unflat(n, shape);
    },
    held: (core) => held.get(flat(core, physicalShape)) ?? 0,
    total: holder.size,
  };
}

function checked(index, shape, what) {
  const inside = index.length === shape.length && index.every((i, k) => i >= 0 && i < shape[k]);
  if (!inside) refuse(`${what} ${tuple(index)} is outside ${tuple(shape)}`, what);
  return index;
}

// Returns the finished layout. `closed` has find and held; if it is null, they are tabulated.
function finished({ shape, coreRank, physicalShape, bits, place, closed, blockBytes, ...rest }) {
  const rank = physicalShape.length;
  check(rank <= MAX_RANK, `the physical rank ${rank} is over ${MAX_RANK}`, "grid");
  const size = product(shape);
  const coreShape = physicalShape.slice(0, coreRank);
  const localShape = physicalShape.slice(coreRank);
  const local = product(localShape);
  const total = product(physicalShape);
  const bytesPerCore = rest.bytes ?? (blockBytes
    ? times(quotient(local, 1024), blockBytes)
    : ceil(times(local, bits), 8));
  const { find, held, clash, total: places } = closed
    ? { ...closed, clash: null, total: size }
    : tabulated(shape, place, physicalShape, coreRank);
  const start = rest.startByte ?? 0;
  return {
    ...rest,
    ...{ shape, physicalShape, coreShape, localShape, size, clash, bytesPerCore },
    cores: product(coreShape),
    nbytes: times(product(coreShape), bytesPerCore),
    dataBytes: ceil(times(size, bits), 8),
    padding: total - places,
    paddingShare: total ? (total - places) / total : 0,
    paddingOf: (core) => local - held(checked(core, coreShape, "core")),
    locate(index) {
      const physical = place(checked(index, shape, "logical index"));
      const offset = flat(physical.slice(coreRank), localShape);
      const byte = blockBytes ? null : start + quotient(offset * bits, 8);
      const [core, inner] = [physical.slice(0, coreRank), physical.slice(coreRank)];
      return { core, local: inner, offset, byte, physical };
    },
    logicalIndex: (physical) => {
      checked(physical, physicalShape, "physical index");
      return size ? find(physical) : null;
    },
  };
}

const elementType = (facts, dtype) =>
  facts.dtypes[dtype] ?? refuse(`dtype "${dtype}" is not known`, "dtype");

// Returns the padding's value as in the layout's text: a name, or an integer of an integer type.
function paddingValue(facts, { oob, dtype }) {
  const { words, low, high } = elementType(facts, dtype);
  const text = oob.trim();
  if (Object.hasOwn(words, text)) return words[text];
  if (facts.given && facts.given.oob === text && facts.given.dtype === dtype) return text;
  const names = Object.keys(words).join(", ");
  if (low === null || !/^[-+]?\d{1,20}$/.test(text)) {
    const also = low === null ? "" : `, or a whole number from ${low} to ${high}`;
    refuse(`padding value: for ${dtype} use ${names}${also}`, "oob");
  }
  const n = BigInt(text.replace("+", ""));
  const isInside = n >= BigInt(low) && n <= BigInt(high);
  check(isInside, `padding value: ${n} is not in ${low} ... ${high} of ${dtype}`, "oob");
  return { 0: words.zero, 1: words.one }[n] ?? String(n);
}

// -- Python ----------------------------------------------------------------------------------

function codeOf(facts, name, value) {
  if (name === "oob" && !facts.oob_names.includes(value)) {
    return value === "nan" ? "float('nan')" : value;
  }
  return Array.isArray(value) ? tuple(value) : typeof value === "string" ? `'${value}'` : value;
}
// Returns the keyword arguments of a call, each after a comma, without those that are null or usual.
const USUAL = { oob: "undef", memory_space: "l1", buffer_type: "l1" };
const keywords = (facts, given) =>
  Object.entries(given)
    .filter(([name, value]) => value !== null && value !== USUAL[name])
    .map(([name, value]) => `, ${name}=${codeOf(facts, name, value)}`)
    .join("");
