// Sophon local memory (seed 000): channels are distributed over NPUs, with strides in each.

function checkChip({ npus, npu_bytes, alignment, banks }) {
  for (const [n, field] of [[npus, "npus"], [npu_bytes, "npu_bytes"], [alignment, "alignment"]]) {
    check(n >= 1, `${field}: ${n} must be >= 1`, field);
  }
  for (const [n, field] of [[alignment, "alignment"], [banks ?? 1, "banks"]]) {
    check(npu_bytes % n === 0, `${field}: ${n} must divide the ${npu_bytes} B of an NPU`, field);
  }
}

// Returns the number divided by 1, 2, 4, ...: rows of these widths begin where a channel begins.
const divisors = (n) => (n % 2 || n < 32 ? [n] : [n, ...divisors(n / 2)]);

// Returns the strides of N, C, H, W, in elements of the view (seed 000, "Layouts").
function namedStrides(name, [, , height, columns], slots, alignment, bits) {
  const unit = times(alignment, 8) / gcd(alignment * 8, bits);
  const up = (n) => times(ceil(n, unit), unit);
  const row = name === "line_aligned" ? up(columns) : columns;
  const feature = name === "aligned" ? up(times(height, row)) : times(height, row);
  return [times(slots, feature), feature, row, 1];
}

function lanesOf({ storage, lanes, dtype }, facts) {
  if (storage === null) {
    check(lanes >= 1, "lanes: must be >= 1", "lanes");
    return lanes;
  }
  const [count, names] = facts.storage[storage];
  const types = names.join(" and ");
  check(names.includes(dtype), `storage ${storage} is for ${types}, not ${dtype}`, "storage");
  return count;
}

function checkStart(start, name, alignment, bits) {
  const wide = Math.min(Math.max(quotient(bits, 8), 1), 4);
  const divisor = name === null ? wide : name === "compact" ? 4 : alignment;
  const low = start - (start % divisor);
  check(
    start === low,
    `the start address ${start} must be divisible by ${divisor} for ` +
      `${name === null ? "user strides" : `the ${name} layout`}: use ${low} or ${low + divisor}`,
    "offset",
  );
}

// Returns the elements of the view that a tensor takes per NPU. Strides over an extent of 1 have no
// meaning and do not count, unless a named layout sets them.
function allocationOf({ layout, allocation }, extents, strides) {
  const least = plus(1, sum(extents.map((n, k) => (n > 1 ? times(n - 1, strides[k]) : 0))));
  const isEnough = allocation === null || allocation >= least;
  check(isEnough, `allocation: must be >= ${least}, the span of the elements`, "allocation");
  const outer = layout !== null || extents[0] > 1 ? 0 : 1;
  const counted = outer === 0 || extents[1] > 1 ? times(extents[outer], strides[outer]) : 0;
  return allocation ?? Math.max(counted, least);
}

function sophonModel(parameters, facts) {
  const { shape, dtype, layout, npu: first, offset: startByte, chip } = parameters;
  const element = elementType(facts, dtype);
  const oob = paddingValue(facts, parameters);
  const isTensor = shape.length === 4 && !shape.includes(0);
  check(isTensor, "shape: must be four numbers N, C, H, W, all >= 1", "shape");
  checkChip(chip);
  check(first < chip.npus, `start NPU ${first} is outside the ${chip.npus} NPUs`, "npu");
  const isInside = startByte < chip.npu_bytes;
  check(isInside, `offset ${startByte} is outside the ${chip.npu_bytes} B`, "offset");
  const lanes = lanesOf(parameters, facts);
  const groups = ceil(shape[0], lanes);
  const view = [groups, ...shape.slice(1)];
  const slots = ceil(plus(first, shape[1]), chip.npus);
  const wide = times(lanes, element.bits);
  const strides =
    layout === null ? parameters.strides : namedStrides(layout, view, slots, chip.alignment, wide);
  check(strides.length === 4, "strides: must be four, of N, C, H, W", "strides");
  const start = plus(times(first, chip.npu_bytes), startByte);
  checkStart(start, layout, chip.alignment, wide);
  const extents = [groups, slots, shape[2], shape[3]];
  const allocation = allocationOf(parameters, extents, strides);
  const extent = times(lanes, allocation);
  const names = ["group", "slot", "h", "w"];
  const terms = nested([
    ...names.map((name, k) => ({ name, stride: times(strides[k], lanes), extent: extents[k] })),
    { name: "lane", stride: 1, extent: lanes },
  ]);
  const physicalShape = [chip.npus, extent];
  const feature = slots > 1 ? strides[1] : groups > 1 ? strides[0] : allocation;
  const row = shape[2] > 1 ? strides[2] : 0;

  function place([n, c, h, w]) {
    const [slot, group] = [quotient(first + c, chip.npus), quotient(n, lanes)];
    const at = group * strides[0] + slot * strides[1] + h * strides[2] + w * strides[3];
    return [(first + c) % chip.npus, at * lanes + (n % lanes)];
  }
  function find([npu, at]) {
    const found = digits(terms, at);
    if (found === null) return null;
    const digit = { group: 0, slot: 0, h: 0, w: 0, lane: 0 };
    for (const [{ name }, i] of found) digit[name] = i;
    const c = digit.slot * chip.npus + npu - first;
    const n = digit.group * lanes + digit.lane;
    return c < 0 || c >= shape[1] || n >= shape[0] ? null : [n, c, digit.h, digit.w];
  }
  function held([npu]) {
    const c = (npu - first + chip.npus) % chip.npus;
    const channels = c < shape[1] ? quotient(shape[1] - 1 - c, chip.npus) + 1 : 0;
    return channels * shape[0] * shape[2] * shape[3];
  }

  const mode = Object.keys(facts.storage).find((name) => {
    const [count, dtypes] = facts.storage[name];
    return count === lanes && dtypes.includes(dtype);
  });
  const named = keywords(facts, {
    ...{ strides: layout === null ? strides : null, layout, start, storage: mode ?? null },
    lanes: mode || lanes === 1 ? null : lanes,
  });
  const usual = allocationOf({ layout, allocation: null }, extents, strides);
  const end = keywords(facts, { allocation: allocation === usual ? null : allocation, oob });
  const call = (prefix) =>
    `${prefix}sophon.local(${tuple(shape)}, '${dtype}'${named}, chip=${prefix}${chipText(chip)}${end})`;
  const rest = chip.npu_bytes - startByte - ceil(times(extent, element.bits), 8);
  return finished({
    ...{ shape, physicalShape, place, startByte, strides },
    coreRank: 1,
    bits: element.bits,
    closed: terms && { find, held },
    text: call(""),
    python: call("gl."),
    core: "NPU",
    told: { name: dtype },
    naturalWidths: [...divisors(times(feature, lanes)), times(row, lanes)],
    tileSize: 0,
    sizes: [
      ["strides N, C, H, W", tuple(strides)],
      ["channels per NPU", String(slots)],
      ["fits an NPU", rest < 0 ? `no, ${-rest} B too many` : `yes, ${rest} B free`],
    ],
  });
}

function chipText({ known, npus, npu_bytes, alignment, banks, name }) {
  if (known) return `sophon.${known}`;
  const more = (banks === null ? "" : `, banks=${banks}`) + (name === null ? "" : `, name=${name}`);
  return `sophon.Chip(npus=${npus}, npu_bytes=${npu_bytes}, alignment=${alignment}${more})`;
}
