/* ---- numbers: as the text report writes them (units.c) ---- */

const ladders = {
  "byte": ["byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte"],
  "byte/s": ["byte/s", "Kbyte/s", "Mbyte/s", "Gbyte/s", "Tbyte/s"],
  "byte/block": ["byte/block", "Kbyte/block"],
  "byte/cycle": ["byte/cycle", "Kbyte/cycle"],
  "ns": ["ns", "us", "ms", "s"],
  "hz": ["hz", "Khz", "Mhz", "Ghz"],
  "cycle/s": ["hz", "Khz", "Mhz", "Ghz"],
  "FLOP/s": ["FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"],
  "op/s": ["op/s", "Kop/s", "Mop/s", "Gop/s", "Top/s", "Pop/s"],
};

function scaleOf(unit, value) {
  let steps = ladders[unit], stem = "";
  if (!steps && unit.length > 2 && unit.endsWith("/s")) {
    stem = unit.slice(0, -2);
    steps = ["/s", "/ms", "/us", "/ns"];
  }
  if (!steps) return {divisor: 1, unit};
  let divisor = 1, step = 0;
  while (step + 1 < steps.length && Math.abs(value) >= divisor * 1000) {
    divisor *= 1000;
    step++;
  }
  return {divisor, unit: stem + steps[step]};
}

function grouped(digits) { return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ","); }

/* Digits as printf writes them: of a value in the middle between two, the even one. */
function fixed(value, digits) {
  if (value < 0) return "-" + fixed(-value, digits);
  const scale = 10 ** digits, low = Math.floor(value * scale);
  const isMiddle = Number.isInteger(value * 2 ** (digits + 1)) && value * scale - low === 0.5;
  return (isMiddle ? (low + low % 2) / scale : value).toFixed(digits);
}

function number(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) || value === null ? "n/a" : value > 0 ? "inf" : "-inf";
  const [whole, rest] = fixed(Math.abs(value), Number.isInteger(value) ? 0 : 2).split(".");
  return (value < 0 ? "-" : "") + grouped(whole) + (rest ? "." + rest : "");
}

function quantity(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "n/a";
  const scale = scaleOf(unit, value);
  return number(value / scale.divisor) + (scale.unit ? " " + scale.unit : "");
}
const time = ns => quantity(ns, "ns");
const percent = value => value === null || Number.isNaN(value) ? "n/a" : fixed(value, 1) + " %";

/* ---- metrics of a launch in full ---- */

/* A value is a number, {exact: digits}, {text}, [why there is none], or null; with instances it is {value, keys,
 * instances}. */
function plainOf(value) {
  if (value && value.instances) return plainOf(value.value);
  return value;
}

function numberOf(value) {
  const plain = plainOf(value);
  return typeof plain === "number" ? plain : plain && plain.exact ? Number(plain.exact) : NaN;
}

/* Returns [number, unit] as the report shows them. */
function shown(value, unit) {
  const plain = plainOf(value);
  if (plain === null || plain === undefined || Array.isArray(plain)) return ["n/a", ""];
  if (plain.text !== undefined) return [text(plain.text), ""];
  const scale = scaleOf(unit, numberOf(plain));
  return [
    plain.exact && scale.divisor === 1 ? grouped(plain.exact) : number(numberOf(plain) / scale.divisor), scale.unit
  ];
}

/* Returns the value as CSV has it. */
function exactOf(value) {
  const plain = plainOf(value);
  if (plain === null || plain === undefined || Array.isArray(plain)) return "n/a";
  return plain.text !== undefined ? text(plain.text) : plain.exact || String(plain);
}

/* The metrics of a launch by their number. */
const valuesOf = new Map();
function valueIn(full, metric) {
  let values = valuesOf.get(full);
  if (!values) {
    values = new Map(data.sets[full.set].map((m, i) => [m, full.values[i]]));
    valuesOf.set(full, values);
  }
  return values.get(metric);
}

/* A cell with its value. */
function cellIn(full, [label, metric, group, extra, unit]) {
  const [name, own, formula, words] = data.metrics[metric].map(text), value = valueIn(full, metric);
  return {
    label: text(label),
    name,
    value,
    group: text(group),
    extra,
    unit: own || text(unit),
    formula,
    words,
    number: numberOf(value)
  };
}

function tipOfCell(cell) {
  const plain = plainOf(cell.value), lines = [cell.name];
  if (cell.words) lines.push(cell.words);
  if (Array.isArray(plain))
    lines.push("no value: " + text(plain[0]));
  else if (plain !== undefined)
    lines.push("= " + exactOf(cell.value) + (cell.unit ? " " + cell.unit : ""));
  if (cell.formula) lines.push("computed: " + cell.formula);
  return lines;
}

/* The value of a cell, which says of which metric it is; in the unit of its column if that has one. */
function valueNode(cell, tag, scale) {
  const [digits, unit] =
      scale && Number.isFinite(cell.number) ? [number(cell.number / scale.divisor), ""] : shown(cell.value, cell.unit);
  return el(
      tag || "span", {
        class: "value",
        tip: () => tipOfCell(cell),
        "data-metric": cell.instance ? null : cell.name,
        "data-exact": exactOf(cell.value)
      },
      digits, unit && el("span", {class: "unit"}, " " + unit));
}
