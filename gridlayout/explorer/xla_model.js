// XLA's tiled layouts (seed 002): an order of the dims, and tiles over the minor ones.

// Reads "(8,128)(2,1)" as rows of numbers; -1 stands for *, a dim that is joined with the next one.
function readTiles(text, field) {
  const inner = text.replace(/\s+/g, "").replace(/^T(?=\()/, "");
  const isList = /^(\([^()]*\))*$/.test(inner);
  check(isList, "tiles: must be of the form (8,128) or (8,128)(2,1)", field);
  return [...inner.matchAll(/\(([^()]*)\)/g)].map(([, sizes]) => {
    const found = sizes.split(",").map((n) => (n === "*" ? -1 : readInt(n, field, 1)));
    check(found.at(-1) !== -1, "tiles: the last dim can't be *, as no dim follows it", field);
    return found;
  });
}

const tilesText = (tiles) =>
  tiles.map((tile) => `(${tile.map((n) => (n < 0 ? "*" : n)).join(",")})`).join("");

// Steps on axes: each replaces some axes by new ones, with the map of indices and its inverse.
class Steps {
  constructor(shape) {
    this.extent = [...shape];
    this.done = [];
  }

  add(taken, sizes, there, back) {
    const made = sizes.map((n) => this.extent.push(n) - 1);
    this.done.push({ taken, made, there, back });
    return made;
  }

  join(axes) {
    if (axes.length === 1) return axes[0];
    const sizes = axes.map((axis) => this.extent[axis]);
    return this.add(axes, [product(sizes)], (at) => [flat(at, sizes)], ([n]) => unflat(n, sizes))[0];
  }

  // Pads an axis to whole tiles and splits it into (number of tiles, index in the tile).
  tiled(axis, size) {
    const extent = this.extent[axis];
    return this.add([axis], [ceil(extent, size), size],
      ([n]) => [quotient(n, size), n % size],
      ([count, rest]) => (count * size + rest < extent ? [count * size + rest] : null));
  }

  unit() {
    return this.add([], [1], () => [0], () => [])[0];
  }

  place(index, order) {
    const at = [...index];
    for (const { taken, made, there } of this.done) {
      there(taken.map((axis) => at[axis])).forEach((n, k) => (at[made[k]] = n));
    }
    return order.map((axis) => at[axis]);
  }

  find(physical, order, rank) {
    const at = [];
    order.forEach((axis, k) => (at[axis] = physical[k]));
    for (const { taken, made, back } of [...this.done].reverse()) {
      const found = back(made.map((axis) => at[axis]));
      if (found === null) return null;
      found.forEach((n, k) => (at[taken[k]] = n));
    }
    return at.slice(0, rank);
  }
}

function tiledOrder(steps, order, tile) {
  const lead = upTo(0, tile.length - order.length).map(() => steps.unit());
  const all = [...lead, ...order];
  const [counts, inner] = [[], []];
  let joined = [];
  tile.forEach((size, k) => {
    joined.push(all[all.length - tile.length + k]);
    if (size === -1) return;
    const [count, rest] = steps.tiled(steps.join(joined), size);
    counts.push(count);
    inner.push(rest);
    joined = [];
  });
  const found = [...all.slice(0, all.length - tile.length), ...counts, ...inner];
  check(found.length <= MAX_RANK, `tiles: over ${MAX_RANK} dims`, "tiles");
  return found;
}

function checkOrder(order, rank) {
  const sorted = [...order].sort((a, b) => a - b);
  const isOrder = String(sorted) === String(upTo(0, rank));
  check(isOrder, `order: must list each of the ${rank} dims once, minor to major`, "order");
}

// The other fields of a layout's text: the argument, its letter, the default. SC is not supported.
const XLA_FIELDS = [
  ["tail_alignment", "L", 1],
  ["index_type", "#", null],
  ["pointer_type", "*", null],
  ["element_bits", "E", 0],
  ["memory_space", "S", 0],
  ["metadata_bytes", "M", 0],
];

function xlaModel(parameters, facts) {
  const { shape, dtype, tiles, tail_alignment, element_bits } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  const rank = shape.length;
  const minor = parameters.order ?? upTo(0, rank).reverse();
  checkOrder(minor, rank);
  const steps = new Steps(shape);
  const order = tiles.reduce((dims, tile) => tiledOrder(steps, dims, tile), [...minor].reverse());
  const physicalShape = order.map((axis) => steps.extent[axis]);
  const bits = element_bits || Math.max(element.bits, 8);
  const size = product(shape);
  check(tail_alignment >= 1, "tail_alignment: must be >= 1", "tail_alignment");
  const aligned = alignUp(product(physicalShape), tail_alignment);

  const written = tilesText(tiles);
  const stated = XLA_FIELDS.filter(([name, , plain]) => parameters[name] !== plain);
  const after =
    (written ? `T${written}` : "") + stated.map(([name, mark]) => `${mark}(${parameters[name]})`).join("");
  const braces = minor.length || after ? `{${minor.join(",")}${after ? ":" : ""}${after}}` : "";
  const rows = tiles.map(tuple);
  const own = Object.fromEntries(stated.map(([name]) => [name, parameters[name]]));
  const named = `${tuple(minor)}, ${tuple(rows)}${keywords(facts, { ...own, oob })}`;
  const call = `xla.layout(${tuple(shape)}, '${dtype}', ${named})`;
  const name = facts.xla_names[dtype];
  return finished({
    ...{ shape, physicalShape, bits },
    place: (index) => steps.place(index, order),
    closed: {
      find: (physical) => (size ? steps.find(physical, order, rank) : null),
      held: () => size,
    },
    coreRank: 0,
    bytes: ceil(times(aligned, bits), 8),
    text: name && oob === "undef" ? `${name}[${shape.join(",")}]${braces}` : call,
    python: `gl.${call}`,
    core: "buffer",
    told: { name: dtype, memory: `memory ${parameters.memory_space}`, braces },
    naturalWidths: [...divisors(product(tiles.flat().map((n) => Math.max(n, 1)))), shape.at(-1) ?? 1],
    tileSize: tiles.length ? product(tiles[0].filter((n) => n > 0)) : 0,
    sizes: [
      ["order, minor to major", tuple(minor)],
      ...(tiles.length ? [["tiles", written]] : []),
    ],
  });
}
