/*
 * Shows the data of one HTML report. Text of the session reaches the page as text nodes alone: nothing here writes markup.
 *
 * The data: tables whose elements name others by number (data.h).
 *   strings   texts; number 0 is ""
 *   metrics   [name, unit, formula]
 *   sections  [title, blocks]; a block is [kind, ...], of cells [label, metric, group, belongs to charts, unit]
 *   sets      numbers of metrics, in the order of the values of a launch in full
 *   keys      names of the instances of a metric
 *   paths     [push-pop ranges of the launching thread, other ranges]
 *   rules     [rule, section, what it is about]
 *   stacks    frames [function, file, line, is Python, module], the innermost first
 *   codes     {name, files, locations, instructions}
 *   sessions, launches (the fields below), full (what the page of a launch shows)
 */
"use strict";
(function () {

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const comparing = page.dataset.mode === "compare";
const text = i => data.strings[i];

/* ---- elements ---- */

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false)
      continue;
    if (name === "class")
      node.setAttribute("class", value);
    else if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else if (name === "width%")
      node.style.width = value + "%";
    else if (name === "tip")
      tips.set(node, value);
    else
      node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(9))
    if (child !== undefined && child !== null && child !== false)
      node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const link = (to, attributes, ...children) => el("a", {href: "#" + to, ...attributes}, ...children);

/* What an element says when the pointer is over it, or when it has the focus: lines of text. */
const tips = new WeakMap();
const tipBox = el("div", {id: "tip", role: "tooltip", hidden: true});

function showTip(node, x, y) {
  const lines = tips.get(node);
  tipBox.replaceChildren(...[].concat(typeof lines === "function" ? lines() : lines).map(line => el("div", {}, line)));
  tipBox.hidden = false;
  const box = tipBox.getBoundingClientRect();
  tipBox.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tipBox.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
}

function tipOf(node) {
  while (node && node !== document && !tips.has(node))
    node = node.parentNode;
  return node && tips.has(node) ? node : null;
}

function listenForTips() {
  document.addEventListener("pointermove", event => {
    const node = tipOf(event.target);
    if (node)
      showTip(node, event.clientX, event.clientY);
    else
      tipBox.hidden = true;
  });
  document.addEventListener("focusin", event => {
    const node = tipOf(event.target);
    if (!node)
      return;
    const box = node.getBoundingClientRect();
    showTip(node, box.left, box.bottom - 12);
  });
  document.addEventListener("focusout", () => { tipBox.hidden = true; });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape")
      tipBox.hidden = true;
  });
  document.addEventListener("scroll", () => { tipBox.hidden = true; }, {passive: true});
}

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
  if (!steps)
    return {divisor: 1, unit};
  let divisor = 1, step = 0;
  while (step + 1 < steps.length && Math.abs(value) >= divisor * 1000) {
    divisor *= 1000;
    step++;
  }
  return {divisor, unit: stem + steps[step]};
}

function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function number(value) {
  if (!Number.isFinite(value))
    return Number.isNaN(value) || value === null ? "n/a" : value > 0 ? "inf" : "-inf";
  const [whole, rest] = Math.abs(value).toFixed(Number.isInteger(value) ? 0 : 2).split(".");
  return (value < 0 ? "-" : "") + grouped(whole) + (rest ? "." + rest : "");
}

function quantity(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value))
    return "n/a";
  const scale = scaleOf(unit, value);
  return number(value / scale.divisor) + (scale.unit ? " " + scale.unit : "");
}
const time = ns => quantity(ns, "ns");
const percent = value => value === null || Number.isNaN(value) ? "n/a" : value.toFixed(1) + " %";

/* ---- metrics of a launch in full ---- */

/* A value is a number, {exact: digits}, {text}, [why there is none], or null; with instances it is {value, keys, instances}. */
function plainOf(value) {
  if (value && value.instances)
    return plainOf(value.value);
  return value;
}

function numberOf(value) {
  const plain = plainOf(value);
  return typeof plain === "number" ? plain : plain && plain.exact ? Number(plain.exact) : NaN;
}

/* Returns [number, unit] as the report shows them. */
function shown(value, unit) {
  const plain = plainOf(value);
  if (plain === null || plain === undefined || Array.isArray(plain))
    return ["n/a", ""];
  if (plain.text !== undefined)
    return [text(plain.text), ""];
  const scale = scaleOf(unit, numberOf(plain));
  return [plain.exact && scale.divisor === 1 ? grouped(plain.exact) : number(numberOf(plain) / scale.divisor), scale.unit];
}

/* Returns the value as CSV has it. */
function exactOf(value) {
  const plain = plainOf(value);
  if (plain === null || plain === undefined || Array.isArray(plain))
    return "n/a";
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
  const [name, own, formula] = data.metrics[metric].map(text), value = valueIn(full, metric);
  return {label: text(label), name, value, group: text(group), extra, unit: own || text(unit), formula, number: numberOf(value)};
}

function tipOfCell(cell) {
  const plain = plainOf(cell.value), lines = [cell.name];
  if (Array.isArray(plain))
    lines.push("no value: " + text(plain[0]));
  else if (plain !== undefined)
    lines.push("= " + exactOf(cell.value) + (cell.unit ? " " + cell.unit : ""));
  if (cell.formula)
    lines.push("computed: " + cell.formula);
  return lines;
}

/* The value of a cell, which says of which metric it is; in the unit of its column where that has one. */
function valueNode(cell, tag, scale) {
  const [digits, unit] = scale && Number.isFinite(cell.number) ? [number(cell.number / scale.divisor), ""] : shown(cell.value, cell.unit);
  return el(tag || "span", {class: "value", tip: () => tipOfCell(cell), "data-metric": cell.instance ? null : cell.name, "data-exact": exactOf(cell.value)},
            digits, unit && el("span", {class: "unit"}, " " + unit));
}

/* ---- launches and kernels ---- */

const fields = ["session", "id", "name", "device", "stream", "context", "shape", "path", "stack", "ns", "bound", "compute", "memory",
                "savings", "roofs", "full", "passes", "note", "cc", "streamName"];
const launches = data.launches.map((row, index) => {
  const launch = {index};
  fields.forEach((field, i) => { launch[field] = row[i]; });
  launch.name = text(launch.name);
  launch.bound = text(launch.bound);
  launch.time = launch.ns || 0;
  return launch;
});

/* The parts of a kernel's name: what stands before the function's own name, the name, and what follows. */
function nameParts(name) {
  let depth = 0, end = name.length, start = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (i && depth === 0 && (c === "<" || (c === "(" && !name.startsWith("(anonymous", i)))) {
      end = i;
      break;
    }
    depth += c === "(" ? 1 : c === ")" ? -1 : 0;
    if (depth === 0 && (c === " " || c === ":"))
      start = i + 1;
  }
  return [name.slice(0, start), name.slice(start, end), name.slice(end)];
}

function nameNode(name) {
  const [before, own, after] = nameParts(name);
  return el("span", {class: "kernel-name", title: name}, el("span", {class: "dim"}, before.replace(/^void /, "")), el("b", {}, own),
            el("span", {class: "dim"}, after));
}
const shortName = name => nameParts(name)[1] || name;

/* Sums up the launches by kernel, as summary.c does. */
function kernelsOf(list) {
  const byName = new Map();
  for (const launch of list) {
    let k = byName.get(launch.name);
    if (!k)
      byName.set(launch.name, k = {name: launch.name, launches: [], time: 0, bounds: new Map(), saved: new Map()});
    k.launches.push(launch);
    k.time += launch.time;
    if (launch.bound)
      k.bounds.set(launch.bound, (k.bounds.get(launch.bound) || 0) + (launch.time || 1));
    for (const [rule, gain] of launch.savings)
      k.saved.set(rule, (k.saved.get(rule) || 0) + gain / 100 * launch.time);
  }
  const total = list.reduce((sum, launch) => sum + launch.time, 0);
  for (const k of byName.values())
    finishKernel(k, total);
  return {kernels: [...byName.values()], total};
}

function finishKernel(k, total) {
  k.bound = [...k.bounds].reduce((best, b) => b[1] > best[1] ? b : best, ["", 0])[0];
  k.savedTime = 0;
  k.rule = null;
  for (const [rule, saved] of [...k.saved].sort((a, b) => a[0] - b[0]))
    if (saved > k.savedTime && 100 * saved >= k.time) {
      k.savedTime = saved;
      k.rule = rule;
    }
  k.share = total > 0 ? 100 * k.time / total : 0;
  k.gain = total > 0 ? 100 * k.savedTime / total : 0;
  k.mean = k.time / k.launches.length;
  k.stand = standFor(k.launches);
}

/* The launch that stands for all: of those in full the one that took most time together with its like. */
function standFor(list) {
  const full = list.filter(launch => launch.full >= 0);
  return (full.length ? full : list).reduce((best, launch) => launch.time > best.time ? launch : best);
}

const shapeText = shape => shape ? "(" + shape.slice(0, 3).join(", ") + ")x(" + shape.slice(3).join(", ") + ")" : "graph";
const pathText = launch => data.paths[launch.path][0].map(text).join(" / ");
const deviceOf = launch => (data.sessions[launch.session].devices.find(d => d[0] === launch.device) || [])[1];
const sessionName = s => s.rank >= 0 ? "rank " + s.rank : text(s.name) + " [" + s.pid + "]" + (text(s.host) ? " on " + text(s.host) : "");

/* ---- places: the part of the address behind # ---- */

function readPlace() {
  const [path, query] = decodeURI(location.hash.replace(/^#/, "") || "/").split("?");
  return {path: path.split("/").filter(Boolean), query: new URLSearchParams(query || "")};
}

function setQuery(name, value) {
  const place = readPlace();
  if (value)
    place.query.set(name, value);
  else
    place.query.delete(name);
  const query = place.query.toString();
  history.replaceState(null, "", "#/" + place.path.join("/") + (query ? "?" + query : ""));
}

/* ---- parts of pages ---- */

function card(title, ...children) {
  return el("section", {class: "card"}, title && el("h2", {}, title), ...children);
}

function bar(share, kind) {
  return el("span", {class: "bar " + (kind || "")}, el("span", {"width%": Math.max(0, Math.min(100, share || 0))}));
}

/* A row of buttons of which one is pressed. */
function choice(label, options, chosen, pick) {
  const buttons = options.map(([value, name]) =>
    el("button", {type: "button", "aria-pressed": String(value === chosen), "data-value": value, onclick: () => {
      buttons.forEach(b => b.setAttribute("aria-pressed", String(b.dataset.value === value)));
      pick(value);
    }}, name));
  return el("div", {class: "choice", role: "group", "aria-label": label}, buttons);
}

/* ---- charts of two axes ---- */

/* Maps values to places, by their logarithms or evenly. */
function axis(low, high, from, to, logarithmic) {
  const of = logarithmic ? Math.log10 : v => v;
  const a = of(low), b = of(high);
  const at = v => from + (of(v) - a) / (b - a || 1) * (to - from);
  at.low = low;
  at.high = high;
  return at;
}

function powers(low, high) {
  const out = [];
  for (let p = Math.floor(Math.log10(low) + 1e-9); p <= Math.ceil(Math.log10(high) - 1e-9); p++)
    out.push(10 ** p);
  return out;
}

function frame(width, height, label) {
  return draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart"});
}

function gridLines(svg, box, x, y, xTicks, yTicks, xText, yText) {
  for (const t of xTicks)
    svg.append(draw("line", {class: "grid", x1: x(t), x2: x(t), y1: box.top, y2: box.bottom}),
               draw("text", {class: "tick", x: x(t), y: box.bottom + 14, "text-anchor": "middle"}, xText(t)));
  for (const t of yTicks)
    svg.append(draw("line", {class: "grid", x1: box.left, x2: box.right, y1: y(t), y2: y(t)}),
               draw("text", {class: "tick", x: box.left - 6, y: y(t) + 4, "text-anchor": "end"}, yText(t)));
}

const shortPower = v => v >= 1e4 || v < 1e-3 ? "1e" + Math.round(Math.log10(v)) : String(Number(v.toPrecision(1)));

/*
 * Draws a roofline. `roofs`: {name, work, traffic}; `points`: {label, work, intensity, area 0 to 1, tip, go}. Work is per
 * second.
 */
function rooflineChart(roofs, points, operation, label) {
  const width = 640, height = 360, box = {left: 78, right: 624, top: 14, bottom: 316};
  const ok = points.filter(p => p.work > 0 && p.intensity > 0 && Number.isFinite(p.intensity));
  const walls = roofs.filter(r => r.work > 0 && r.traffic > 0);
  const xs = ok.map(p => p.intensity).concat(walls.map(r => r.work / r.traffic));
  const ys = ok.map(p => p.work).concat(walls.map(r => r.work));
  if (!ok.length || !xs.length)
    return null;
  const xp = powers(Math.min(...xs) / 3, Math.max(...xs) * 8), yp = powers(Math.min(...ys) / 2, Math.max(...ys) * 1.2);
  const x = axis(xp[0], xp[xp.length - 1], box.left, box.right, true), y = axis(yp[0], yp[yp.length - 1], box.bottom, box.top, true);
  const svg = frame(width, height, label);
  gridLines(svg, box, x, y, xp, yp, shortPower, v => quantity(v, operation + "/s"));
  svg.append(draw("text", {class: "axis", x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle"},
                  "Arithmetic intensity (" + operation + "/byte)"));
  walls.forEach((r, i) => drawRoof(svg, r, i, x, y, box, operation));
  for (const p of ok.sort((a, b) => b.area - a.area))
    svg.append(pointNode(p, x(p.intensity), y(p.work)));
  labelPoints(svg, ok, p => x(p.intensity), p => y(p.work), box);
  return svg;
}

function drawRoof(svg, r, i, x, y, box, operation) {
  const ridge = r.work / r.traffic, left = Math.max(x.low, y.low / r.traffic);
  const points = [[left, left * r.traffic], [Math.min(ridge, x.high), Math.min(r.work, x.high * r.traffic)], [x.high, Math.min(r.work, x.high * r.traffic)]];
  const tip = [r.name, "peak work " + quantity(r.work, operation + "/s"), "peak traffic " + quantity(r.traffic, "byte/s"),
               "ridge at " + number(ridge) + " " + operation + "/byte"];
  svg.append(draw("polyline", {class: "roof", tip, points: points.map(([a, b]) => x(a).toFixed(1) + "," + y(b).toFixed(1)).join(" ")}),
             draw("text", {class: "roof-label", x: box.right - 4, y: y(Math.min(r.work, x.high * r.traffic)) + (i % 2 ? 14 : -5), "text-anchor": "end"},
                  r.name.replace(/ Roofline/, "")));
}

/* Areas are as the shares of time, as far as the page has room. */
const radiusOf = p => 4 + Math.min(24, 38 * Math.sqrt(p.area || 0));

function pointNode(p, cx, cy) {
  const circle = draw("circle", {class: "point" + (p.go ? " goes" : "") + (p.base ? " base" : ""), cx, cy, r: radiusOf(p), tip: p.tip,
                                 tabindex: p.go ? 0 : null, role: p.go ? "link" : null, "aria-label": p.tip.join(", ")});
  if (p.go) {
    circle.addEventListener("click", () => { location.hash = p.go; });
    circle.addEventListener("keydown", event => {
      if (event.key === "Enter")
        location.hash = p.go;
    });
  }
  return circle;
}

/* Labels the largest points, unless a label is in the way. */
function labelPoints(svg, points, x, y, box) {
  const taken = [];
  for (const p of points.filter(q => q.label).slice(0, 8)) {
    const name = p.label.length > 26 ? p.label.slice(0, 25) + "…" : p.label, r = radiusOf(p);
    const right = x(p) + r + 6 + name.length * 6.2 < box.right, tx = right ? x(p) + r + 4 : x(p) - r - 4;
    const from = right ? tx : tx - name.length * 6.2, to = right ? tx + name.length * 6.2 : tx, ty = y(p) + 4;
    if (from < box.left || taken.some(t => Math.abs(t.y - ty) < 13 && from < t.to && to > t.from))
      continue;
    taken.push({from, to, y: ty});
    svg.append(draw("text", {class: "point-label", x: tx, y: ty, "text-anchor": right ? "start" : "end"}, name));
  }
}

/* Draws kernels by the share of the peaks that they reach. */
function throughputChart(points) {
  const width = 640, height = 360, box = {left: 62, right: 624, top: 14, bottom: 316};
  const ok = points.filter(p => p.compute >= 0 && p.memory >= 0 && p.compute !== null && p.memory !== null);
  if (!ok.length)
    return null;
  const x = axis(0, 100, box.left, box.right), y = axis(0, 100, box.bottom, box.top), svg = frame(width, height, "Kernels by compute and memory throughput");
  const ticks = [0, 20, 40, 60, 80, 100];
  gridLines(svg, box, x, y, ticks, ticks, t => t, t => t);
  svg.append(draw("line", {class: "roof", x1: x(60), x2: x(60), y1: y(0), y2: y(60)}), draw("line", {class: "roof", x1: x(0), x2: x(60), y1: y(60), y2: y(60)}),
             draw("text", {class: "roof-label", x: x(58), y: y(2), "text-anchor": "end"}, "below 60 % of both: latency"),
             draw("text", {class: "axis", x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle"}, "Compute throughput (% of peak)"),
             draw("text", {class: "axis", x: 14, y: (box.top + box.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(box.top + box.bottom) / 2})`},
                  "Memory throughput (% of peak)"));
  for (const p of ok.sort((a, b) => b.area - a.area))
    svg.append(pointNode(p, x(Math.min(p.compute, 100)), y(Math.min(p.memory, 100))));
  labelPoints(svg, ok, p => x(Math.min(p.compute, 100)), p => y(Math.min(p.memory, 100)), box);
  return svg;
}

/* ---- first page ---- */

/* Work, traffic and time of a kernel's points, added up; the kind with the most work stands for the kernel. */
function kernelPoint(k) {
  const sums = new Map();
  for (const launch of k.launches)
    for (const [name, isPoint, work, traffic] of launch.roofs && launch.time ? launch.roofs[1] : [])
      if (isPoint && work !== null && traffic !== null) {
        const s = sums.get(name) || {name: text(name), work: 0, traffic: 0, time: 0, operation: text(launch.roofs[0])};
        s.work += work * launch.time;
        s.traffic += traffic * launch.time;
        s.time += launch.time;
        sums.set(name, s);
      }
  return [...sums.values()].reduce((best, s) => !best || s.work > best.work ? s : best, null);
}

function roofsOf(list) {
  const roofs = new Map();
  for (const launch of list)
    for (const [name, isPoint, work, traffic] of launch.roofs ? launch.roofs[1] : []) {
      const r = roofs.get(name);
      if (!isPoint && (!r || work > r.work))
        roofs.set(name, {name: text(name), work, traffic});
    }
  return [...roofs.values()];
}

function weighted(k, field) {
  let sum = 0, weight = 0;
  for (const launch of k.launches)
    if (launch[field] !== null) {
      sum += launch[field] * (launch.time || 1);
      weight += launch.time || 1;
    }
  return weight ? sum / weight : null;
}

function overviewPoints(kernels) {
  const total = kernels.reduce((sum, k) => sum + k.time, 0) || 1;
  return kernels.map(k => {
    const p = kernelPoint(k), compute = weighted(k, "compute"), memory = weighted(k, "memory");
    const tip = [k.name, time(k.time) + ", " + percent(k.share) + " of the time", k.bound ? "bound by " + k.bound : "bound not known"];
    if (p && p.work > 0)
      tip.push(quantity(p.work / p.time, p.operation + "/s") + " at " + number(p.work / p.traffic) + " " + p.operation + "/byte (" + p.name + ")");
    if (compute !== null)
      tip.push("compute " + percent(compute) + ", memory " + percent(memory) + " of peak");
    return {label: shortName(k.name), area: k.time / total, tip, go: "/launch/" + k.stand.index, compute, memory, time: k.time,
            work: p ? p.work / p.time : 0, intensity: p ? p.work / p.traffic : NaN, operation: p && p.operation};
  });
}

/* A roofline, or a chart of throughput where too little of the time has counted work; the reader may change that. */
function kernelMap(points, list, hint) {
  const operation = (points.find(p => p.operation) || {}).operation || "FLOP";
  const roofline = rooflineChart(roofsOf(list), points, operation, "Roofline with all kernels");
  const throughput = throughputChart(points), place = el("div", {class: "map"});
  const total = points.reduce((sum, p) => sum + p.time, 0), without = points.filter(p => !(p.work > 0));
  const worked = total - without.reduce((sum, p) => sum + p.time, 0);
  const first = roofline && (worked * 2 >= total || !throughput) ? "roofline" : "throughput";
  const show = which => place.replaceChildren(...[which === "roofline" ? roofline : throughput,
    which === "roofline" && without.length ? el("p", {class: "hint"}, without.length === 1 ? "1 kernel does no counted floating-point work and has" : without.length + " kernels do no counted floating-point work and have",
      " no place here: see Throughput.") : null].filter(Boolean));
  if (!roofline && !throughput)
    return el("p", {class: "hint"}, "No throughput was collected: the sets basic, detailed, full and roofline have it.");
  show(first);
  return el("div", {}, roofline && throughput && choice("Chart", [["roofline", "Roofline"], ["throughput", "Throughput"]], first, show), place,
            el("p", {class: "hint"}, hint));
}

function fixFirst(kernels) {
  const best = kernels.filter(k => k.rule !== null).sort((a, b) => b.savedTime - a.savedTime).slice(0, 3);
  if (!best.length) {
    const k = kernels.reduce((a, b) => b.time > a.time ? b : a);
    return el("p", {}, "Look first at ", link("/launch/" + k.stand.index, {}, nameNode(k.name)), k.bound ? ", bound by " + k.bound : "",
              ": no rule names a gain for a whole kernel.");
  }
  return el("ol", {class: "fix"}, best.map(k => {
    const [rule, section, about] = data.rules[k.rule].map(text);
    return el("li", {}, el("div", {class: "fix-gain"}, el("b", {}, percent(k.gain)), el("span", {}, "of the run")),
              el("div", {}, link("/launch/" + k.stand.index + "/" + rule, {}, nameNode(k.name)),
                 el("div", {}, k.bound && ["bound by ", el("b", {}, k.bound), ". "], "Rule ", el("b", {}, rule), " (", section, "): ", about,
                    ". It would save up to ", percent(100 * k.savedTime / k.time), " of this kernel's time.")));
  }));
}

const columns = [
  {id: "name", title: "Kernel", text: true, of: k => k.name},
  {id: "time", title: "Time", of: k => k.time},
  {id: "share", title: "Share", left: true, of: k => k.time},
  {id: "launches", title: "Launches", of: k => k.launches.length},
  {id: "mean", title: "Mean", of: k => k.mean},
  {id: "bound", title: "Bound by", text: true, of: k => k.bound},
  {id: "gain", title: "Gain of the run", left: true, of: k => k.savedTime},
];

function kernelRow(k) {
  const rule = k.rule === null ? null : text(data.rules[k.rule][0]);
  return el("tr", {"data-kernel": k.name},
    el("th", {scope: "row"}, link("/launch/" + k.stand.index, {}, nameNode(k.name))),
    el("td", {class: "num", "data-exact": String(k.time)}, time(k.time)),
    el("td", {class: "share"}, bar(k.share), el("span", {}, percent(k.share))),
    el("td", {class: "num"}, number(k.launches.length)),
    el("td", {class: "num"}, time(k.mean)),
    el("td", {}, k.bound || el("span", {class: "dim"}, "not known")),
    el("td", {class: "gain"}, rule ? [el("b", {}, k.gain < 0.05 ? "<0.1 %" : percent(k.gain)), " ", link("/launch/" + k.stand.index + "/" + rule, {class: "rule"}, rule)] : "–"));
}

const ROWS_AT_FIRST = 200;

function kernelTable(kernels, sort, down, resort) {
  const column = columns.find(c => c.id === sort) || columns[1];
  const key = k => column.text ? column.of(k).toLowerCase() : column.of(k), order = (a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
  const sorted = [...kernels].sort((a, b) => (down ? -order(a, b) : order(a, b)) || b.time - a.time);
  const body = el("tbody", {}, sorted.slice(0, ROWS_AT_FIRST).map(kernelRow));
  const head = el("tr", {}, columns.map(c => el("th", {scope: "col", class: c.text || c.left ? "" : "num",
    "aria-sort": c === column ? (down ? "descending" : "ascending") : "none"},
    el("button", {type: "button", "data-sort": c.id, onclick: () => resort(c.id, c === column ? !down : !c.text)}, c.title,
       el("span", {class: "arrow", "aria-hidden": "true"}, c === column ? (down ? " ▾" : " ▴") : "")))));
  const table = el("table", {class: "kernels"}, el("thead", {}, head), body);
  if (sorted.length <= ROWS_AT_FIRST)
    return table;
  const more = el("button", {type: "button", onclick: () => {
    body.append(...sorted.slice(ROWS_AT_FIRST).map(kernelRow));
    more.remove();
  }}, "Show all " + number(sorted.length) + " kernels");
  return [table, more];
}

/* What launches can be chosen by: how a launch is asked, and what it says. */
const filters = [
  {id: "device", title: "Device", of: l => [String(l.device)], say: (v, l) => v + (deviceOf(l) ? " " + text(deviceOf(l)) : "")},
  {id: "stream", title: "Stream", of: l => [String(l.stream)], say: (v, l) => v + (text(l.streamName) ? " " + text(l.streamName) : "")},
  {id: "nvtx", title: "NVTX range", of: l => data.paths[l.path].flat().map(text), say: v => v},
  {id: "rank", title: "Process", of: l => [String(l.session)], say: v => sessionName(data.sessions[Number(v)])},
];

function filterOptions(filter) {
  const seen = new Map();
  for (const launch of launches)
    for (const value of filter.of(launch))
      if (!seen.has(value))
        seen.set(value, filter.say(value, launch));
  return seen;
}

function chosen(query) {
  const words = (query.get("name") || "").toLowerCase();
  return launches.filter(launch => launch.name.toLowerCase().includes(words) &&
                                   filters.every(f => !query.get(f.id) || f.of(launch).includes(query.get(f.id))));
}

function filterBar(query, changed) {
  const search = el("input", {type: "search", placeholder: "Part of a kernel's name", "aria-label": "Kernel name", value: query.get("name") || "",
                              id: "filter-name", oninput: () => { setQuery("name", search.value); changed(); }});
  const selects = filters.map(f => {
    const options = filterOptions(f);
    if (options.size < (f.id === "nvtx" ? 1 : 2))
      return null;
    const select = el("select", {id: "filter-" + f.id, onchange: () => { setQuery(f.id, select.value); changed(); }},
                      el("option", {value: ""}, "all"), [...options].map(([value, say]) => el("option", {value}, say)));
    select.value = query.get(f.id) || "";
    return el("label", {}, f.title, " ", select);
  });
  return el("div", {class: "filters"}, el("label", {}, "Name ", search), selects);
}

const fact = (title, value, more) => el("div", {class: "fact"}, el("span", {}, title), el("b", {}, value), more && el("small", {}, more));

function sessionFacts(kernels, total) {
  const seen = data.sessions.reduce((sum, s) => sum + s.seen, 0), took = data.sessions.reduce((sum, s) => sum + (s.took || 0), 0);
  const passes = data.sessions.reduce((sum, s) => sum + s.passes, 0), saved = kernels.reduce((sum, k) => sum + k.savedTime, 0);
  return el("div", {class: "facts"}, fact("Time on the GPU", time(total)),
            fact("Launches", number(launches.length), seen > launches.length ? "of " + number(seen) + " seen" : null), fact("Kernels", number(kernels.length)),
            fact("Could be saved", total ? percent(100 * saved / total) : "n/a", "by the best rule of each kernel"),
            fact("Profiling", time(took), number(passes) + " passes"));
}

function heading() {
  const names = [...new Set(data.sessions.map(s => text(s.name)))].join(", "), devices = new Map();
  for (const s of data.sessions)
    for (const d of s.devices)
      devices.set(text(d[1]) + ", " + text(d[2]) + ", CC " + d[3] + ", " + d[4] + " SMs", (devices.get(text(d[1])) || 0) + 1);
  const s = data.sessions[0];
  return el("header", {class: "title"}, el("h1", {}, names),
    el("p", {class: "dim"}, [...devices.keys()].join("; "), el("br"), text(s.command), text(s.host) && " on " + text(s.host), s.start ? ", " + new Date(s.start).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "",
       data.sessions.length > 1 ? "; " + data.sessions.length + " processes" : ""),
    data.sessions.some(x => !x.complete) && el("p", {class: "warning"}, "The program was killed or still runs: the session is incomplete."),
    data.full.length < launches.length && el("p", {class: "dim"}, number(data.full.length) + " of " + number(launches.length) + " launches are in full: of each kernel and shape the median by duration, of those that take most time. --brief-above 0 has all in full."));
}

function overview(query) {
  if (!launches.length)
    return el("div", {}, heading(), el("p", {}, "No launch was profiled."), sessionTables());
  const all = kernelsOf(launches), table = el("div", {class: "table-place"}), map = el("div"), first = el("div"), count = el("span", {class: "dim"});
  const update = () => {
    const q = readPlace().query, list = chosen(q), sums = kernelsOf(list), sort = q.get("sort") || "time", down = q.get("order") !== "up";
    count.replaceChildren(list.length < launches.length ? number(list.length) + " of " + number(launches.length) + " launches, " + time(sums.total) : "");
    table.replaceChildren(...[kernelTable(sums.kernels, sort, down, (by, isDown) => {
      setQuery("sort", by);
      setQuery("order", isDown ? "" : "up");
      update();
      table.querySelector(`[data-sort=${by}]`).focus();
    })].flat());
    map.replaceChildren(sums.kernels.length ? kernelMap(overviewPoints(sums.kernels), list, "Area is time on the GPU. A bubble leads to its kernel.") : "");
    first.replaceChildren(sums.kernels.length ? fixFirst(sums.kernels) : "No launch matches.");
  };
  const body = el("div", {}, heading(), sessionFacts(all.kernels, all.total),
    el("div", {class: "two"}, card("Fix first", first), card("All kernels", map)),
    card("Kernels", el("div", {class: "filters-line"}, filterBar(query, update), count), table));
  update();
  return body;
}

/* ---- the page of a launch ---- */

/* The values of a block's cells that are numbers, largest first. */
function barsOf(full, cells) {
  const all = cells.map(c => cellIn(full, c)), only = all.length === 1 && all[0].value && all[0].value.instances ? all[0] : null;
  if (!only)
    return all;
  return data.keys[only.value.keys].map((key, i) => ({...only, label: text(key), instance: true, number: only.value.instances[i], value: only.value.instances[i]}));
}

const BARS_AT_FIRST = 14;

function barList(bars, label, sorted) {
  const most = new Map();
  for (const b of bars)
    most.set(b.unit, Math.max(most.get(b.unit) || 0, b.number || 0));
  const rows = bars.map(b => {
    const full = b.unit === "%" ? 100 : most.get(b.unit);
    const kind = /^(dram|lts|l1tex|lrc|fbpa|mcc|idc|ltc|gcc|syslts|pcie)/.test(b.name) || /^Memory/.test(b.label) ? "memory" : /^(sm|smsp)_/.test(b.name) || /^Compute/.test(b.label) ? "compute" : "";
    return el("li", {}, el("span", {class: "bar-label", title: b.label}, b.label), bar(full ? 100 * b.number / full : 0, kind), valueNode(b));
  });
  const zeros = sorted ? bars.length - bars.filter(b => b.number).length : 0, kept = Math.min(zeros > 2 ? Math.max(bars.length - zeros, 1) : rows.length, BARS_AT_FIRST);
  const rest = rows.splice(kept + 2 >= rows.length ? rows.length : kept);
  return el("div", {}, el("ul", {class: "bars", "aria-label": label}, rows),
            rest.length ? el("details", {}, el("summary", {}, rest.length + (rest.length === zeros ? " more, all 0" : " more")), el("ul", {class: "bars"}, rest)) : null);
}

function tableOf(cells) {
  return el("table", {class: "metrics"}, el("tbody", {}, cells.map(c =>
    el("tr", {}, el("th", {scope: "row"}, c.label), el("td", {class: "num"}, valueNode(c))))));
}

/* A section's first table; rows that belong to its charts are folded away. */
function metricsBlock(full, cells) {
  const all = cells.map(c => cellIn(full, c)), rest = all.filter(c => c.extra), first = all.filter(c => !c.extra);
  const half = Math.ceil(first.length / 2);
  return [first.length ? el("div", {class: "metric-columns"}, tableOf(first.slice(0, half)), half < first.length ? tableOf(first.slice(half)) : null) : null,
          rest.length ? el("details", {}, el("summary", {}, rest.length + (first.length ? " more" : "") + (rest.length === 1 ? " metric" : " metrics")), tableOf(rest)) : null];
}

/* The unit that all numbers of a column are shown in; null where they have no common one. */
function columnScale(cells) {
  const units = new Set(cells.filter(c => Number.isFinite(c.number)).map(c => c.unit));
  if (units.size !== 1)
    return null;
  return scaleOf([...units][0], Math.max(...cells.map(c => Math.abs(c.number) || 0)));
}

/* A table of rows and columns. Rows of zeros are named below it, as in text. */
function gridBlock(full, cells) {
  const all = cells.map(c => cellIn(full, c)), rows = [...new Set(all.map(c => c.group))], columns = [...new Set(all.map(c => c.label))];
  const at = new Map(all.map(c => [c.group + "\n" + c.label, c]));
  const quiet = rows.filter(r => rows.length >= 6 && all.every(c => c.group !== r || !c.number || /\.peak_sustained/.test(c.name)));
  const kept = rows.filter(r => !quiet.includes(r)), used = columns.filter(c => kept.some(r => at.has(r + "\n" + c)));
  const scales = new Map(columns.map(c => [c, columnScale(all.filter(cell => cell.label === c))]));
  const make = (names, cols) => el("div", {class: "table-place"}, el("table", {class: "grid-table"},
    el("thead", {}, el("tr", {}, el("td"), cols.map(c => el("th", {scope: "col", class: "num"}, c, scales.get(c) && scales.get(c).unit ? " (" + scales.get(c).unit + ")" : "")))),
    el("tbody", {}, names.map(r => el("tr", {}, el("th", {scope: "row"}, r), cols.map(c => {
      const cell = at.get(r + "\n" + c);
      const td = el("td", {class: "num"}, cell ? valueNode(cell, "span", scales.get(c)) : "");
      if (cell && cell.unit === "%" && cell.number > 0) {
        td.classList.add("share-cell");
        td.style.setProperty("--part", Math.min(100, cell.number) + "%");
      }
      return td;
    }))))));
  return [kept.length ? make(kept, used) : null,
          quiet.length ? el("details", {}, el("summary", {}, (columns[0] === "Operations" ? "No operations: " : "No traffic: ") + (quiet.length > 6 ? quiet.length + " rows" : quiet.join(", "))), make(quiet, columns)) : null];
}

function curveBlock(full, cells) {
  const all = cells.map(c => cellIn(full, c)), curves = all.filter(c => c.value && c.value.instances && c.value.instances.some(v => v)), others = all.filter(c => !(c.value && c.value.instances));
  const mark = others.find(c => c.name.startsWith("launch__") && Number.isFinite(c.number));
  const drawn = curves.filter((c, i) => i === curves.findIndex(d => d.value.keys === c.value.keys));
  return [drawn.map(c => curveChart(c, mark, curves.filter(d => d !== c && d.value.keys === c.value.keys))), tableOf(others)];
}

/* Steps of a value over the numbers that its instances are named after, with the launch's own marked. */
function curveChart(cell, mark, also) {
  const keys = data.keys[cell.value.keys].map(text), xs = keys.map(Number), values = cell.value.instances;
  if (!xs.every(Number.isFinite) || xs.length < 2)
    return barList(keys.map((key, i) => ({...cell, label: key, instance: true, number: values[i], value: values[i]})), cell.label);
  const width = 560, height = 190, box = {left: 46, right: 548, top: 12, bottom: 158}, most = Math.max(...values.filter(Number.isFinite), 1);
  const x = axis(xs[0], xs[xs.length - 1], box.left, box.right), y = axis(0, most, box.bottom, box.top), svg = frame(width, height, cell.label);
  const ticks = [0, most / 2, most], xTicks = [0, 1, 2, 3, 4].map(i => xs[0] + i / 4 * (xs[xs.length - 1] - xs[0]));
  gridLines(svg, box, x, y, xTicks, ticks, v => grouped(String(Math.round(v))), v => String(Math.round(v)));
  let path = `M${x(xs[0])} ${y(values[0])}`;
  for (let i = 1; i < xs.length; i++)
    path += `H${x(xs[i - 1]).toFixed(1)}V${y(values[i]).toFixed(1)}H${x(xs[i]).toFixed(1)}`;
  svg.append(draw("path", {class: "curve-fill", d: path + `V${box.bottom}H${box.left}Z`}), draw("path", {class: "curve", d: path}));
  const near = v => xs.reduce((best, k, i) => Math.abs(k - v) < Math.abs(xs[best] - v) ? i : best, 0);
  const say = i => [cell.label + " at " + keys[i] + ": " + number(values[i]), ...also.map(a => a.label + ": " + number(a.value.instances[i]))];
  const cover = draw("rect", {x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "cover"});
  let at = 0;
  tips.set(cover, () => say(at));
  cover.addEventListener("pointermove", event => {
    const r = cover.getBoundingClientRect();
    at = near(xs[0] + (event.clientX - r.left) / r.width * (xs[xs.length - 1] - xs[0]));
  });
  svg.append(cover);
  if (mark && mark.number >= xs[0] && mark.number <= xs[xs.length - 1]) {
    const i = near(mark.number);
    svg.append(draw("line", {class: "mark", x1: x(mark.number), x2: x(mark.number), y1: box.top, y2: box.bottom}),
               draw("circle", {class: "mark-point", cx: x(mark.number), cy: y(values[i]), r: 5, tip: ["this launch: " + mark.label + " " + number(mark.number), ...say(i)]}),
               draw("text", {class: "mark-label", x: x(mark.number), y: height - 4, "text-anchor": x(mark.number) > box.right - 60 ? "end" : "middle"}, "this launch: " + number(mark.number)));
  }
  return el("figure", {}, el("figcaption", {}, cell.label), svg);
}

function rooflineBlock(full, cells, roofs) {
  const operation = text(roofs[0]), rates = roofs[1].map(([name, isPoint, work, traffic, roof]) => ({name: text(name), isPoint, work, traffic, roof}));
  const points = rates.filter(r => r.isPoint && r.work > 0), used = new Set(points.map(p => p.roof));
  const walls = rates.filter((r, i) => !r.isPoint && (used.has(i) || rates.filter(x => !x.isPoint).length <= 6));
  const limit = p => {
    const roof = rates[p.roof];
    return roof ? Math.min(roof.work, p.traffic ? p.work / p.traffic * roof.traffic : roof.work) : NaN;
  };
  const chart = rooflineChart(walls, points.map(p => ({label: p.name.replace(/ Achieved.*/, "") || p.name, work: p.work, intensity: p.work / p.traffic, area: 0.02,
    tip: [p.name, quantity(p.work, operation + "/s"), quantity(p.traffic, "byte/s"), number(p.work / p.traffic) + " " + operation + "/byte", percent(100 * p.work / limit(p)) + " of its roof"]})), operation, "Roofline");
  const idle = rates.filter(r => r.isPoint && !(r.work > 0)).map(r => r.name);
  const rows = points.map(p => el("tr", {}, el("th", {scope: "row"}, p.name), [quantity(p.work, operation + "/s"), quantity(p.traffic, "byte/s"), number(p.work / p.traffic), percent(100 * p.work / limit(p))]
    .map(v => el("td", {class: "num"}, v))));
  return [chart, rows.length ? el("div", {class: "table-place"}, el("table", {class: "grid-table"}, el("thead", {}, el("tr", {}, el("td"), ["Work", "Traffic", operation + "/byte", "Of its roof"].map(h => el("th", {scope: "col", class: "num"}, h)))),
    el("tbody", {}, rows))) : el("p", {class: "hint"}, "No work of this kind was done: there is no point to draw."),
    idle.length && rows.length ? el("p", {class: "hint"}, "No work: ", idle.length > 6 ? idle.length + " more points" : idle.join(", ")) : null,
    el("details", {}, el("summary", {}, "Computed from"), tableOf(cells.map(c => cellIn(full, c)).filter((c, i, all) => all.findIndex(d => d.name === c.name) === i)))];
}

/* Timelines of one launch, below each other on one axis. */
function seriesBlock(full, series) {
  const [dropped, ...rows] = series;
  const end = Math.max(...rows.map(([, , start, interval, values]) => start + interval * values.length), 1);
  return [el("div", {class: "series"}, rows.map(([label, metric, start, interval, values]) => {
    const [name, unit] = data.metrics[metric].map(text), real = values.filter(v => v !== null), most = unit === "%" ? 100 : Math.max(...real, 0) || 1;
    const width = 700, height = 44, x = axis(0, end, 0, width), y = axis(0, most, height - 1, 2), svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "spark", role: "img", "aria-label": text(label)});
    const points = values.map((v, i) => v === null ? null : x(start + i * interval).toFixed(1) + " " + y(Math.min(v, most)).toFixed(1)).filter(Boolean);
    let at = 0;
    svg.append(draw("path", {class: "curve-fill", d: "M" + x(start) + " " + height + "L" + points.join("L") + "V" + height + "Z"}), draw("path", {class: "curve", d: "M" + points.join("L")}));
    tips.set(svg, () => [text(label), values[at] === null || values[at] === undefined ? "no sample" : quantity(values[at], unit) + " at " + time(start + at * interval), name]);
    svg.addEventListener("pointermove", event => {
      const r = svg.getBoundingClientRect();
      at = Math.max(0, Math.min(values.length - 1, Math.round(((event.clientX - r.left) / r.width * end - start) / interval)));
    });
    const mean = real.reduce((a, b) => a + b, 0) / (real.length || 1);
    return el("div", {class: "series-row"}, el("span", {class: "bar-label", title: name}, text(label)), svg, el("span", {class: "num"}, quantity(mean, unit), el("small", {}, "max " + quantity(Math.max(...real, 0), unit))));
  })), el("p", {class: "hint"}, "0 to " + time(end) + "; mean of all samples on the right" + (dropped > 0 ? "; " + number(dropped) + " samples were lost" : ""))];
}

/* ---- the memory chart ---- */

/* Boxes: [x, y, width, height, title, group of what it says]. Links: [group, label or "", x1, y1, x2, y2]. */
const memoryBoxes = [
  [0, 24, 92, 340, "Kernel", null], [176, 24, 104, 44, "Global", null], [176, 76, 104, 44, "Local", null], [176, 128, 104, 44, "Texture", null],
  [176, 180, 104, 44, "Surface", null], [176, 232, 104, 44, "LDGSTS", null], [176, 284, 104, 36, "Shared", null], [176, 328, 104, 36, "TMA", null],
  [392, 24, 128, 252, "L1/TEX cache", "l1"], [392, 284, 128, 80, "Shared memory", "shared"], [652, 24, 128, 340, "L2 cache", "l2"],
  [890, 24, 124, 104, "Device memory", null], [890, 144, 124, 100, "System memory", null], [890, 260, 124, 104, "Peer memory", null],
];
const memoryLinks = [
  ["kernel>global", "", 92, 46, 176], ["kernel>local", "", 92, 98, 176], ["kernel>texture", "", 92, 150, 176], ["kernel>surface", "", 92, 202, 176],
  ["kernel>ldgsts", "", 92, 254, 176], ["kernel>shared", "Shared Instructions", 92, 302, 176], ["kernel>tma", "", 92, 346, 176],
  ["global>l1", "", 280, 46, 392], ["local>l1", "", 280, 98, 392], ["texture>l1", "", 280, 150, 392], ["surface>l1", "", 280, 202, 392], ["ldgsts>l1", "", 280, 254, 392],
  ["shared", "Shared Wavefronts %", 280, 302, 392, "use"],
  ["l2>l1", "L2 To L1 Bytes", 652, 98, 520], ["l1>l2", "L1 To L2 Bytes", 520, 202, 652], ["l2>tma", "TMA Loaded Bytes", 652, 346, 520],
  ["dram>l2", "", 890, 54, 780], ["l2>dram", "", 780, 102, 890], ["system>l2", "", 890, 172, 780], ["l2>system", "", 780, 220, 890],
  ["peer>l2", "", 890, 288, 780], ["l2>peer", "", 780, 336, 890],
];

/* Adds up a link: all values of its group but other views of them, or those of one label; and its share of the peak. */
function flow(cells, group, label) {
  const own = cells.filter(c => c.group === group && Number.isFinite(c.number));
  const isView = c => [" %", "/s"].some(end => c.label.endsWith(end) && own.some(d => d.label === c.label.slice(0, -end.length)));
  const parts = label ? own.filter(c => c.label === label) : own.filter(c => !isView(c));
  if (!parts.length)
    return null;
  const use = own.filter(c => c.unit === "%" && (!label || c.label.startsWith(label.replace(/ %$/, ""))) || c.label === label + " %").map(c => c.number);
  return {sum: parts.reduce((s, c) => s + c.number, 0), unit: parts[0].unit, parts, own, use: use.length ? Math.max(...use) : null};
}

function memoryBlock(full, all) {
  const cells = all.map(c => cellIn(full, c)), svg = draw("svg", {viewBox: "-4 0 1020 372", role: "img", "aria-label": "Memory chart", class: "chart memory-chart"});
  const most = Math.max(...memoryLinks.map(l => flow(cells, l[0], l[1])).filter(f => f && f.use === null && f.unit.startsWith("byte")).map(f => f.sum), 1);
  for (const [group, label, x1, y, x2] of memoryLinks) {
    const f = flow(cells, group, label);
    if (f)
      svg.append(flowNode(f, x1, y, x2, most, cells));
  }
  for (const [x, y, w, h, title, group] of memoryBoxes)
    svg.append(memoryBox(cells, x, y, w, h, title, group));
  const drawn = new Set(memoryLinks.flatMap(l => (flow(cells, l[0], l[1]) || {parts: []}).parts));
  return [el("div", {class: "table-place"}, svg), el("p", {class: "legend"}, [["0", "none"], ["1", "up to 10 % of peak"], ["2", "up to 40 %"], ["3", "up to 70 %"], ["4", "above"]]
    .map(([level, say]) => el("span", {}, el("i", {class: "use-" + level}), say))),
    el("details", {}, el("summary", {}, "All values of the chart"), tableOf(cells.filter(c => c.value !== undefined)))];
}

const useLevel = use => use === null ? "x" : use <= 0 ? 0 : use <= 10 ? 1 : use <= 40 ? 2 : use <= 70 ? 3 : 4;

function flowNode(f, x1, y, x2, most, cells) {
  const direction = x2 > x1 ? 1 : -1, level = f.sum ? Math.max(1, useLevel(f.use)) || "x" : 0, middle = (x1 + x2) / 2;
  const tip = f.own.map(c => c.label + ": " + shown(c.value, c.unit).join(" ") + "  (" + c.name + ")");
  if (f.use !== null)
    tip.unshift(percent(f.use) + " of peak");
  return draw("g", {class: "flow use-" + level, tip}, draw("line", {x1, x2: x2 - direction * 8, y1: y, y2: y}),
              draw("path", {d: `M${x2 - direction * 9} ${y - 6}L${x2 - direction} ${y}L${x2 - direction * 9} ${y + 6}Z`}),
              draw("text", {x: middle, y: y - 7, "text-anchor": "middle"}, quantity(f.sum, f.unit).replace(/ inst$/, "")),
              f.use >= 0.05 && f.sum && f.unit !== "%" ? draw("text", {class: "tick", x: middle, y: y + 15, "text-anchor": "middle"}, percent(f.use)) : null);
}

function memoryBox(cells, x, y, w, h, title, group) {
  const own = group ? cells.filter(c => c.group === group && Number.isFinite(c.number)) : [];
  const lines = [title, ...own.slice(0, 1).flatMap(c => [c.label.replace(/^(L1\/TEX|L2) /, "").replace(/Shared Wavefronts %/, "of peak"), shown(c.value, c.unit).join(" ")])];
  if (group === "l2")
    for (const c of cells.filter(d => d.group === "compression" && Number.isFinite(d.number) && d.unit !== "%" && /Rate/.test(d.label)).slice(0, 1))
      lines.push("Compression", shown(c.value, c.unit).join(" "));
  const top = y + h / 2 - (lines.length - 1) * 8.5 + 4;
  return draw("g", {class: "memory-box", tip: own.length ? own.flatMap(tipOfCell) : [title]}, draw("rect", {x, y, width: w, height: h, rx: 7}),
              lines.map((line, i) => draw("text", {x: x + w / 2, y: top + i * 17, "text-anchor": "middle", class: i % 2 ? "tick" : "box-title"}, line)));
}

/* ---- advice ---- */

const severityNames = {OPT: "Optimization", WRN: "Warning", INF: "Note"};

function adviceNode([severity, rule, message, speedup, global]) {
  const [id, , about] = data.rules[rule].map(text);
  return el("div", {class: "advice " + severity.toLowerCase(), id: "rule-" + id, "data-rule": id}, el("p", {class: "advice-head"}, el("b", {}, severityNames[severity] || severity), " ", el("span", {title: about}, id),
    speedup !== null ? el("span", {class: "speedup"}, (global ? "saves up to " : "of its unit up to ") + percent(speedup)) : null), el("p", {}, text(message)));
}

/* ---- all launches of a kernel ---- */

function middleOf(sorted) {
  return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : 0;
}

/* Launches far from the median: beyond a tenth of it, and beyond five times the median distance. */
function outliersOf(list) {
  const middle = middleOf(list.map(l => l.time).sort((a, b) => a - b)), distance = middleOf(list.map(l => Math.abs(l.time - middle)).sort((a, b) => a - b));
  return new Set(list.filter(l => Math.abs(l.time - middle) > Math.max(middle / 10, 5 * distance)));
}

function launchStrip(launch) {
  const list = launches.filter(l => l.name === launch.name);
  if (list.length < 2)
    return null;
  const width = 1000, height = 86, most = Math.max(...list.map(l => l.time), 1), step = Math.min(width / list.length, 26), out = outliersOf(list);
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "strip", role: "group", "aria-label": "Duration by launch"});
  for (const [i, l] of list.entries()) {
    const h = Math.max(2, (height - 4) * l.time / most), place = "/launch/" + l.index;
    svg.append(draw("rect", {class: "launch" + (l === launch ? " here" : "") + (out.has(l) ? " outlier" : "") + (l.full < 0 ? " brief" : ""), x: i * step + Math.min(1, step * 0.1), y: height - h, width: Math.max(0.6, step - Math.min(2, step * 0.2)), height: h,
      tip: ["launch " + l.id + ": " + time(l.time), shapeText(l.shape) + ", stream " + l.stream, ...(data.sessions.length > 1 ? [sessionName(data.sessions[l.session])] : []), ...(out.has(l) ? ["outlier"] : [])], onclick: () => { location.hash = place; }}));
  }
  const at = list.indexOf(launch), times = list.map(l => l.time).sort((a, b) => a - b);
  return card(null, el("div", {class: "strip-head"}, el("h2", {}, number(list.length) + " launches of this kernel"),
    el("span", {}, at > 0 ? link("/launch/" + list[at - 1].index, {rel: "prev"}, "‹ previous") : null, " ", el("b", {}, "launch " + launch.id), " ", at + 1 < list.length ? link("/launch/" + list[at + 1].index, {rel: "next"}, "next ›") : null)), svg,
    el("p", {class: "hint"}, "Median " + time(middleOf(times)) + ", " + time(times[0]) + " to " + time(times[times.length - 1]) + (out.size ? "; " + (out.size === 1 ? "1 outlier" : out.size + " outliers") : "")));
}

/* ---- verdict ---- */

function verdictCard(launch, full) {
  const [, bound, compute, memory, waves, stall, stallShare, gains] = full && full.verdict.length ? full.verdict : [0, 0, launch.compute, launch.memory, null, 0, null, []];
  const meter = (name, value, kind) => value === null ? null : el("div", {class: "meter"}, el("span", {}, name), bar(value, kind), el("b", {}, percent(value)));
  const what = full && full.verdict.length ? text(bound) : launch.bound;
  return card(null, el("div", {class: "verdict"}, el("div", {}, el("span", {class: "dim"}, "Duration"), el("b", {class: "big"}, launch.ns === null ? "n/a" : time(launch.ns))),
    el("div", {}, el("span", {class: "dim"}, "Bound by"), el("b", {class: "big"}, what || "not known")),
    el("div", {class: "meters"}, meter("Compute", compute, "compute"), meter("Memory", memory, "memory"),
       el("p", {class: "hint"}, [waves !== null ? number(waves) + " waves of blocks" : null, text(stall) ? "warps wait most for " + text(stall) + " (" + percent(stallShare) + ")" : null].filter(Boolean).join("; "))),
    gains.length ? el("div", {class: "gains"}, el("span", {class: "dim"}, "Would save up to"), gains.map(([rule, gain]) =>
      el("div", {}, el("b", {}, percent(gain)), " ", link("/launch/" + launch.index + "/" + text(data.rules[rule][0]), {}, text(data.rules[rule][0]))))) : null));
}

/* ---- sections ---- */

const makers = {
  metrics: (full, cells) => metricsBlock(full, cells),
  table: (full, cells) => tableOf(cells.map(c => cellIn(full, c))),
  bars: (full, cells) => barList(barsOf(full, cells).sort((a, b) => (b.number || 0) - (a.number || 0)), "Bars", true),
  rows: (full, cells) => barList(barsOf(full, cells), "Bars"),
  grid: (full, cells) => gridBlock(full, cells),
  curve: (full, cells) => curveBlock(full, cells),
  memory: (full, cells) => memoryBlock(full, cells),
  roofline: (full, cells, lists) => rooflineBlock(full, cells, full.roofs[lists.roofs++]),
  series: (full, n, lists) => seriesBlock(full, full.series[lists.series++]),
  note: (full, note) => el("p", {class: "hint"}, text(note)),
  title: (full, title) => el("h3", {}, text(title)),
};
const isDrawing = kind => !["metrics", "title", "note", "advice"].includes(kind);

const hasWork = roofs => roofs[1].some(([, isPoint, work]) => isPoint && work > 0);

/* Blocks of one title stay together; drawings that go side by side do. */
function sectionNode(full, section, lists, at) {
  const [title, blocks] = data.sections[section], advice = [], parts = [], begun = lists.roofs;
  let group = null;
  for (const [kind, content] of blocks) {
    if (kind === "advice") {
      advice.push(...full.advice[lists.advice++]);
      continue;
    }
    const node = makers[kind](full, content, lists);
    if (kind === "title") {
      const same = group && !group.drawn;
      if (!same)
        parts.push(group = {nodes: [], drawn: false, wide: false});
      group.nodes.push(node);
    } else if (isDrawing(kind) && group) {
      group.nodes.push(node);
      group.drawn = true;
      group.wide = group.wide || ["memory", "grid", "series"].includes(kind) || (kind === "rows" && content.length < 3);
    } else {
      parts.push({nodes: [node], wide: true});
    }
  }
  const idle = blocks.some(b => b[0] === "roofline") && !full.roofs.slice(begun, lists.roofs).some(hasWork);
  if (!advice.length && blocks.every(b => b[0] === "note" || b[0] === "title"))
    return {title: text(title), advice, node: el("section", {class: "card section quiet", id: "section-" + at}, el("b", {}, text(title)), el("span", {class: "dim"}, ": " + blocks.map(b => text(b[1])).join(" ")))};
  if (!advice.length && idle)
    return {title: text(title), advice, node: el("details", {class: "card section quiet", id: "section-" + at}, el("summary", {}, text(title), el("span", {class: "dim"}, ": no work of this kind")),
      el("div", {class: "section-body"}, parts.map(p => el("div", {class: "wide"}, p.nodes))))};
  const folded = parts.length === 1 && parts[0].nodes.flat(3).filter(Boolean);
  if (folded && folded.length === 1 && folded[0].tagName === "DETAILS")
    folded[0].open = true;
  const alone = parts.filter(p => !p.wide).length === 1;
  const body = el("div", {class: "section-body"}, parts.map(p => el("div", {class: p.wide ? "wide" : alone ? "wide alone" : ""}, p.nodes)));
  return {title: text(title), advice, node: el("section", {class: "card section", id: "section-" + at}, el("h2", {}, text(title)),
    advice.length ? el("div", {class: "advices"}, advice.map(adviceNode)) : null, body)};
}

function launchFacts(launch) {
  const s = data.sessions[launch.session], facts = [shapeText(launch.shape), "device " + launch.device, "stream " + launch.stream + (text(launch.streamName) ? " " + text(launch.streamName) : ""), "context " + launch.context, "CC " + launch.cc,
                                                    launch.passes + " passes", ...(data.sessions.length > 1 ? [sessionName(s)] : [])];
  const stack = data.stacks[launch.stack];
  return el("div", {}, el("p", {class: "dim"}, facts.join(" · ")), pathText(launch) && el("p", {class: "dim"}, "NVTX: " + pathText(launch)), text(launch.note) && el("p", {class: "warning"}, text(launch.note)),
    stack.length ? el("details", {}, el("summary", {}, "Call stack"), el("ol", {class: "stack"}, stack.map(([name, file, line, , module]) =>
      el("li", {}, text(name) || text(module), el("span", {class: "dim"}, text(file) ? " " + text(file) + ":" + line : ""))))) : null);
}

/* Another launch of the kernel, in full; of the same shape, if there is one. */
function likeness(launch) {
  const same = launches.filter(l => l.name === launch.name && l.full >= 0);
  return same.find(l => String(l.shape) === String(launch.shape)) || same[0];
}

function launchPage([index]) {
  const launch = launches[Number(index)];
  if (!launch)
    return el("p", {}, "There is no such launch.");
  const full = launch.full >= 0 ? data.full[launch.full] : null, lists = {advice: 0, roofs: 0, series: 0};
  const sections = full ? full.sections.map((s, i) => sectionNode(full, s, lists, i)) : [], other = full ? null : likeness(launch);
  const goTo = i => event => {
    event.preventDefault();
    const target = document.getElementById("section-" + i);
    target.scrollIntoView({block: "start"});
    target.setAttribute("tabindex", "-1");
    target.focus({preventScroll: true});
  };
  const contents = el("nav", {class: "contents", "aria-label": "Sections"}, sections.map((s, i) =>
    el("a", {href: "#/launch/" + launch.index, onclick: goTo(i)}, s.title, s.advice.filter(a => a[0] === "OPT").length ? el("span", {class: "count", title: "pieces of advice"}, String(s.advice.filter(a => a[0] === "OPT").length)) : null)));
  return el("div", {}, el("header", {class: "title"}, el("p", {}, link("/", {}, "All kernels"), " ›"), el("h1", {}, nameNode(launch.name)), launchFacts(launch)),
    full && full.source.length ? el("p", {}, link("/source/" + launch.index, {class: "button"}, "Source and instructions")) : null, verdictCard(launch, full), launchStrip(launch),
    full ? el("div", {class: "with-contents"}, contents, el("div", {class: "sections"}, sections.map(s => s.node)))
         : card("Not in full in this file", el("p", {}, "The file has one launch of each kernel and shape in full. ", other ? ["Look at ", link("/launch/" + other.index, {}, "launch " + other.id), ", " + shapeText(other.shape) + "."] : "None of this kernel has been chosen; kprof report shows it.")));
}

/* ---- source ---- */

const sourceValues = {samples: "Samples", instructions: "Instructions", sectors: "Excess sectors", wavefronts: "Excess wavefronts", divergent: "Divergent branches"};

/* Instructions of all functions of a launch, with their values and stalls. */
function instructionsOf(full) {
  return full.source.flatMap(part => {
    const code = data.codes[part.code];
    const list = code.instructions.map(([offset, location, disassembly], i) => ({code, offset, location, text: text(disassembly), stalls: [],
      values: Object.fromEntries(Object.entries(part.values).map(([name, values]) => [name, values[i]]))}));
    for (const [reason, ...pairs] of part.stalls)
      for (let i = 0; i < pairs.length; i += 2)
        list[pairs[i]].stalls.push([text(reason), pairs[i + 1]]);
    return list;
  });
}

/* The place that an instruction counts for: its own line, or the outermost call that inlines it. */
function placeOf(instruction, atCalls) {
  const {code} = instruction;
  let location = code.locations[instruction.location];
  for (let steps = 0; atCalls && location && code.locations[location[2]] && steps < 64; steps++)
    location = code.locations[location[2]];
  return location && code.files[location[0]] ? {file: code.files[location[0]], line: location[1]} : null;
}

function addTo(sums, instruction) {
  for (const [name, value] of Object.entries(instruction.values))
    sums.values[name] = (sums.values[name] || 0) + value;
  for (const [reason, n] of instruction.stalls)
    sums.stalls.set(reason, (sums.stalls.get(reason) || 0) + n);
  sums.instructions.push(instruction);
}

/* Files by path: {path, text, lines: line -> sums}, the hottest first. */
function sourceFiles(instructions, atCalls, by) {
  const files = new Map();
  for (const instruction of instructions) {
    const place = placeOf(instruction, atCalls), path = place ? text(place.file[0]) : "";
    if (!place)
      continue;
    const file = files.get(path) || {path, text: null, lines: new Map(), total: 0};
    files.set(path, file);
    if (place.file[1] >= 0)
      file.text = text(place.file[1]);
    if (!file.lines.has(place.line))
      file.lines.set(place.line, {values: {}, stalls: new Map(), instructions: []});
    addTo(file.lines.get(place.line), instruction);
    file.total += instruction.values[by] || 0;
  }
  return [...files.values()].sort((a, b) => b.total - a.total);
}

function stallTip(stalls, values) {
  const list = [...stalls].sort((a, b) => b[1] - a[1]), all = list.reduce((sum, s) => sum + s[1], 0);
  return [...Object.entries(values).filter(v => v[1]).map(([name, value]) => sourceValues[name] + ": " + number(value)),
          ...list.slice(0, 6).map(([reason, n]) => "waits for " + reason + ": " + percent(100 * n / all))];
}

function heatCell(value, most, total) {
  return el("span", {class: "heat"}, el("span", {class: "heat-bar", "width%": most ? 100 * value / most : 0}),
            el("span", {class: "heat-number"}, value ? number(value) + (total ? " · " + (100 * value / total).toFixed(1) + " %" : "") : ""));
}

/* One of the two lists; `rows`: {key, label, value, text, stalls, values}. */
function codeList(rows, label, total, pick) {
  const most = Math.max(...rows.map(r => r.value || 0), 0), nodes = new Map();
  const list = el("div", {class: "code", role: "list", "aria-label": label, tabindex: 0}, rows.map(r => {
    const counted = r.values !== null;
    const node = el("div", {class: "code-row" + (counted ? " counted" : ""), role: "listitem", tabindex: counted ? 0 : null, "data-key": r.key, "data-value": counted ? r.value : null,
      tip: counted ? () => stallTip(r.stalls, r.values) : undefined, onclick: counted ? () => pick(r.key) : undefined},
      el("span", {class: "code-label"}, r.label), heatCell(r.value, most, total), el("code", {}, r.text));
    if (counted)
      node.addEventListener("keydown", event => {
        if (event.key === "Enter")
          pick(r.key);
      });
    nodes.set(r.key, node);
    return node;
  }));
  return {list, nodes};
}

/* Marks rows, and moves the list, not the page, to the first. */
function markRows(view, keys, move) {
  for (const node of view.list.querySelectorAll(".picked"))
    node.classList.remove("picked");
  const nodes = keys.map(k => view.nodes.get(k)).filter(Boolean);
  nodes.forEach(n => n.classList.add("picked"));
  if (nodes.length && move)
    view.list.scrollTop = nodes[0].offsetTop - view.list.clientHeight / 3;
}

function lineRows(file, by) {
  const lines = file.text === null ? null : file.text.replace(/\n$/, "").split("\n");
  const numbers = lines ? lines.map((_, i) => i + 1) : [...file.lines.keys()].sort((a, b) => a - b);
  return numbers.map(n => {
    const sums = file.lines.get(n);
    return {key: String(n), label: String(n), text: lines ? lines[n - 1] : "", value: sums ? sums.values[by] || 0 : 0, values: sums ? sums.values : null, stalls: sums ? sums.stalls : []};
  });
}

function sassRows(instructions, by) {
  let last = null;
  return instructions.flatMap((ins, i) => {
    const head = ins.code !== last ? [{key: "f" + i, label: "", text: text(ins.code.name), value: 0, values: null}] : [];
    last = ins.code;
    return [...head, {key: String(i), label: ins.offset.toString(16).padStart(4, "0"), text: ins.text || "(not disassembled)", value: ins.values[by] || 0, values: ins.values, stalls: ins.stalls}];
  });
}

function sourceView(instructions, file, by, atCalls) {
  const total = instructions.reduce((sum, i) => sum + (i.values[by] || 0), 0);
  const placed = instructions.map(ins => {
    const place = placeOf(ins, atCalls);
    return place && text(place.file[0]) === file.path ? String(place.line) : null;
  });
  let lines = null, sass = null;
  const pickLine = line => {
    markRows(lines, [line], false);
    markRows(sass, placed.flatMap((p, i) => p === line ? [String(i)] : []), true);
  };
  const pickInstruction = i => {
    const line = placed[Number(i)];
    markRows(lines, line ? [line] : [], true);
    markRows(sass, line ? placed.flatMap((p, j) => p === line ? [String(j)] : []) : [i], false);
  };
  lines = codeList(lineRows(file, by), "Source of " + file.path, total, pickLine);
  sass = codeList(sassRows(instructions, by), "Instructions", total, pickInstruction);
  const hottest = [...file.lines].sort((a, b) => (b[1].values[by] || 0) - (a[1].values[by] || 0))[0];
  return {node: el("div", {class: "source"}, el("div", {}, el("h3", {}, file.path), file.text === null ? el("p", {class: "hint"},
    "The text of this file is not in the session. Profile with --import-source yes, or give the report --source-folders.") : null, lines.list), el("div", {}, el("h3", {}, "Instructions (SASS)"), sass.list)),
    start: () => hottest && (pickLine(String(hottest[0])), markRows(lines, [String(hottest[0])], true))};
}

function hotLines(files, by, total, open) {
  const all = files.flatMap(f => [...f.lines].map(([line, sums]) => ({file: f, line, value: sums.values[by] || 0, sums}))).filter(l => l.value).sort((a, b) => b.value - a.value).slice(0, 5);
  return el("ol", {class: "hot-lines"}, all.map(l => el("li", {}, el("button", {type: "button", onclick: () => open(l.file.path)}, l.file.path.split("/").pop() + ":" + l.line), " ", el("b", {}, percent(100 * l.value / total)),
    el("code", {}, l.file.text ? (l.file.text.split("\n")[l.line - 1] || "").trim() : ""))));
}

function sourceCard(launch, full) {
  const instructions = instructionsOf(full), present = Object.keys(sourceValues).filter(v => instructions.some(i => i.values[v]));
  const query = readPlace().query;
  let by = present.includes(query.get("by")) ? query.get("by") : present[0], atCalls = query.get("inlined") === "calls", path = query.get("file");
  const place = el("div"), hot = el("div"), pickFile = el("select", {id: "source-file", "aria-label": "File", onchange: () => { path = pickFile.value; update(); }});
  const update = () => {
    const files = sourceFiles(instructions, atCalls, by), file = files.find(f => f.path === path) || files[0];
    const total = instructions.reduce((sum, i) => sum + (i.values[by] || 0), 0);
    setQuery("by", by);
    setQuery("inlined", atCalls ? "calls" : "");
    pickFile.replaceChildren(...files.map(f => el("option", {value: f.path}, f.path + (total ? " (" + percent(100 * f.total / total) + ")" : ""))));
    if (!file) {
      place.replaceChildren(el("p", {class: "hint"}, "No line is known: compile with -lineinfo."), codeList(sassRows(instructions, by), "Instructions", total, () => {}).list);
      return;
    }
    pickFile.value = path = file.path;
    hot.replaceChildren(hotLines(files, by, total, to => { path = to; update(); }));
    const view = sourceView(instructions, file, by, atCalls);
    place.replaceChildren(view.node);
    requestAnimationFrame(view.start);
  };
  const inlined = instructions.some(i => i.code.locations[i.location] && i.code.locations[i.location][2] >= 0);
  const node = card(null, el("div", {class: "filters-line"}, choice("Values", present.map(v => [v, sourceValues[v]]), by, v => { by = v; update(); }),
    inlined ? choice("Inlined code", [["own", "Inlined code at its own lines"], ["calls", "at its calls"]], atCalls ? "calls" : "own", v => { atCalls = v === "calls"; update(); }) : null, pickFile), hot, place,
    el("p", {class: "hint"}, "Choose a line to see its instructions, or an instruction to see its line. The pointer or the focus on a row shows what warps wait for."));
  update();
  return node;
}

function sourcePage([index]) {
  const launch = launches[Number(index)], full = launch && launch.full >= 0 ? data.full[launch.full] : null;
  if (!full || !full.source.length)
    return el("p", {}, "This launch has no values by instruction in the file: the section SourceCounters collects them.");
  return el("div", {}, el("header", {class: "title"}, el("p", {}, link("/", {}, "All kernels"), " › ", link("/launch/" + launch.index, {}, shortName(launch.name)), " ›"), el("h1", {}, "Source of ", nameNode(launch.name))),
            sourceCard(launch, full));
}

/* ---- flame graph ---- */

/* A tree of frames, outermost first; the kernels are its leaves. */
function flameTree(list, by) {
  const root = {name: "all launches", time: 0, launches: 0, children: new Map(), kind: "root"};
  for (const launch of list) {
    const frames = by === "nvtx" ? data.paths[launch.path][0].map(n => [text(n), "range"])
      : data.stacks[launch.stack].map(([name, file, line, python, module]) => [text(name) || text(module), python ? "python" : "native"]).reverse();
    let node = root;
    root.time += launch.time;
    root.launches++;
    for (const [name, kind] of [...frames, [launch.name, "kernel"]]) {
      const key = kind + "\n" + name;
      if (!node.children.has(key))
        node.children.set(key, {name, kind, time: 0, launches: 0, children: new Map(), parent: node, first: launch});
      node = node.children.get(key);
      node.time += launch.time;
      node.launches++;
    }
  }
  return root;
}

const THINNEST = 0.0008; /* of the width: what is thinner is not drawn */

function flameRows(root, zoomed, zoom) {
  const rows = [], above = [];
  for (let node = zoomed; node; node = node.parent)
    above.unshift(node);
  const put = (node, depth, from, width) => {
    (rows[depth] = rows[depth] || []).push({node, from, width});
    if (depth + 1 < above.length)
      return put(above[depth + 1], depth + 1, 0, 1);
    let at = from;
    for (const child of [...node.children.values()].sort((a, b) => b.time - a.time)) {
      const part = zoomed.time ? child.time / zoomed.time : 0;
      if (part >= THINNEST)
        put(child, depth + 1, at, part);
      at += part;
    }
  };
  put(root, 0, 0, 1);
  return rows.map(row => el("div", {class: "flame-row"}, row.map(({node, from, width}) => {
    const button = el("button", {type: "button", class: "frame " + node.kind, tip: [node.name, time(node.time) + ", " + percent(100 * node.time / (root.time || 1)) + " of all", number(node.launches) + (node.launches === 1 ? " launch" : " launches")],
                                 onclick: () => zoom(node)}, node.kind === "kernel" ? shortName(node.name) : node.name);
    if (width < 0.02)
      button.replaceChildren();
    button.classList.toggle("thin", width < 0.02);
    button.style.left = 100 * from + "%";
    button.style.width = 100 * width + "%";
    return button;
  })));
}

function flamePage(_, query) {
  const has = {stack: launches.some(l => data.stacks[l.stack].length), nvtx: launches.some(l => data.paths[l.path][0].length)};
  const first = ["stack", "nvtx"].find(by => by === query.get("by") && has[by]) || (has.stack ? "stack" : "nvtx");
  if (!has.stack && !has.nvtx)
    return el("div", {}, el("h1", {}, "Flame graph"), el("p", {}, "The launches have neither call stacks nor NVTX ranges. Profile with --call-stack native,python or with --nvtx to see time on the GPU by what made the launches."));
  const place = el("div", {class: "flame"}), info = el("p", {class: "flame-info"});
  const draws = by => {
    const root = flameTree(launches, by), zoom = node => {
      place.replaceChildren(...flameRows(root, node, zoom));
      info.replaceChildren(el("b", {}, node.name), ": " + time(node.time) + ", " + percent(100 * node.time / (root.time || 1)) + ", " + number(node.launches) + (node.launches === 1 ? " launch " : " launches "),
        node.kind === "kernel" ? link("/launch/" + standFor(launches.filter(l => l.name === node.name)).index, {}, "Look at the kernel") : "");
    };
    setQuery("by", by);
    zoom(root);
  };
  draws(first);
  return el("div", {}, el("header", {class: "title"}, el("h1", {}, "Flame graph of time on the GPU")), card(null,
    has.stack && has.nvtx ? choice("Frames", [["stack", "By call stack"], ["nvtx", "By NVTX range"]], first, draws) : el("p", {class: "dim"}, has.stack ? "By call stack" : "By NVTX range"), info, place,
    el("p", {class: "hint"}, "The outermost frame is on top, and kernels are at the ends. A frame becomes as wide as the page when it is chosen; the one on top shows all again. kprof report --folded prints the same for other tools.")));
}

/* ---- two sessions beside each other: A, the first, is the baseline ---- */

const ofSession = at => launches.filter(l => at ? l.session > 0 : l.session === 0);
const change = (a, b) => a > 0 ? 100 * (b - a) / a : NaN;

function changeNode(a, b, lessIsGood) {
  const c = change(a, b);
  if (!Number.isFinite(c))
    return el("span", {class: "dim"}, "–");
  const word = Math.abs(c) < 1 ? "same" : (c < 0) === lessIsGood ? "better" : "worse";
  return el("span", {class: lessIsGood === null ? "" : word}, (c > 0 ? "+" : c < 0 ? "−" : "") + number(Math.abs(Math.round(c * 10) / 10)) + " %");
}

function pairsOf() {
  const a = kernelsOf(ofSession(0)), b = kernelsOf(ofSession(1)), pairs = new Map();
  for (const [side, sums] of [["a", a], ["b", b]])
    for (const k of sums.kernels)
      pairs.set(k.name, {name: k.name, ...pairs.get(k.name), [side]: k});
  return {totals: [a.total, b.total], pairs: [...pairs.values()].sort((x, y) => Math.abs(differenceOf(y)) - Math.abs(differenceOf(x)))};
}
const differenceOf = p => (p.b ? p.b.time : 0) - (p.a ? p.a.time : 0);

function compareRow(p, most) {
  const both = p.a && p.b, cell = (f, format) => [p.a, p.b].map(k => el("td", {class: "num"}, k ? format(f(k)) : "–"));
  const d = differenceOf(p), name = both ? link("/compare/" + p.a.stand.index + "/" + p.b.stand.index, {}, nameNode(p.name)) : link("/launch/" + (p.a || p.b).stand.index, {}, nameNode(p.name));
  const side = el("span", {class: "change-bar " + (d > 0 ? "up" : "down")}, el("span", {"width%": most ? 50 * Math.abs(d) / most : 0}));
  return el("tr", {"data-kernel": p.name}, el("th", {scope: "row"}, name), cell(k => k.time, time), el("td", {class: "num"}, both ? changeNode(p.a.time, p.b.time, true) : p.a ? "only in A" : "only in B"),
    el("td", {}, side), cell(k => k.mean, time), cell(k => k.launches.length, number), el("td", {}, both && p.a.bound !== p.b.bound ? [p.a.bound || "?", " → ", el("b", {}, p.b.bound || "?")] : (p.b || p.a).bound));
}

function compareBars(pairs) {
  const longest = [...pairs].sort((x, y) => timeOf(y) - timeOf(x)).slice(0, 12), most = timeOf(longest[0] || {});
  return [el("ul", {class: "bars pairs"}, longest.map(p => el("li", {}, el("span", {class: "bar-label", title: p.name}, shortName(p.name)),
    el("span", {}, bar(p.a ? 100 * p.a.time / most : 0, "baseline"), bar(p.b ? 100 * p.b.time / most : 0)), el("span", {class: "value"}, p.b ? time(p.b.time) : "gone")))),
    el("p", {class: "hint"}, "Above: A. Below, with its value: B.")];
}
const timeOf = p => Math.max(p.a ? p.a.time : 0, p.b ? p.b.time : 0, 1);

function compareMap(pairs) {
  const points = [], total = pairs.reduce((sum, p) => sum + Math.max(p.a ? p.a.time : 0, p.b ? p.b.time : 0), 0) || 1;
  for (const p of pairs)
    for (const [side, k] of [["A", p.a], ["B", p.b]]) {
      const point = k && kernelPoint(k);
      if (k)
        points.push({label: side === "B" || !p.b ? shortName(k.name) : "", area: k.time / total, time: k.time, base: side === "A", compute: weighted(k, "compute"), memory: weighted(k, "memory"), work: point ? point.work / point.time : 0, intensity: point ? point.work / point.traffic : NaN,
                     operation: point && point.operation, go: "/launch/" + k.stand.index, tip: [side + ": " + k.name, time(k.time), k.bound ? "bound by " + k.bound : "bound not known"]});
    }
  return kernelMap(points, launches, "Hollow: A, the baseline. Filled: B. Area is time on the GPU.");
}

function comparePage() {
  const {totals, pairs} = pairsOf(), most = Math.max(...pairs.map(p => Math.abs(differenceOf(p))), 0);
  const say = (letter, s) => el("div", {class: "fact"}, el("span", {}, letter + ": " + text(s.name) + (text(s.host) ? " on " + text(s.host) : "")), el("b", {}, time(totals[letter === "A" ? 0 : 1])), el("small", {}, text(s.command)));
  return el("div", {}, el("header", {class: "title"}, el("h1", {}, "Comparison")), el("div", {class: "facts"}, say("A", data.sessions[0]), say("B", data.sessions[data.sessions.length - 1]),
      el("div", {class: "fact"}, el("span", {}, "Change of the time on the GPU"), el("b", {}, changeNode(totals[0], totals[1], true)))),
    card("Kernels by change of time", el("div", {class: "table-place"}, el("table", {class: "kernels compare"}, el("thead", {}, el("tr", {}, ["Kernel", "Time A", "Time B", "Change", "B − A", "Mean A", "Mean B", "Launches A", "B", "Bound by"]
      .map((h, i) => el("th", {scope: "col", class: i && ![4, 9].includes(i) ? "num" : ""}, h)))), el("tbody", {}, pairs.map(p => compareRow(p, most)))))), el("div", {class: "two"}, card("Time by kernel", compareBars(pairs)), card("All kernels", compareMap(pairs))));
}

/* Metrics of sections that both launches have. */
function comparePair([first, second]) {
  const [a, b] = [launches[Number(first)], launches[Number(second)]], fulls = [a, b].map(l => l && l.full >= 0 ? data.full[l.full] : null);
  if (!fulls[0] || !fulls[1])
    return el("p", {}, "One of the launches is not in full in this file.");
  const sections = fulls[1].sections.map(s => data.sections[s]).map(([title, blocks]) => ({title: text(title), cells: blocks.filter(x => x[0] === "metrics").flatMap(x => x[1]).filter(c => !c[3])})).filter(s => s.cells.length);
  const rows = cells => cells.map(c => {
    const before = cellIn(fulls[0], c), after = cellIn(fulls[1], c), numeric = Number.isFinite(before.number) && Number.isFinite(after.number);
    const full = after.unit === "%" ? 100 : Math.max(before.number, after.number), mark = numeric && full > 0 ? el("span", {class: "base-mark"}) : null, line = bar(numeric && full > 0 ? 100 * after.number / full : 0);
    if (mark) {
      mark.style.left = Math.min(100, 100 * before.number / full) + "%";
      line.append(mark);
    }
    return el("tr", {}, el("th", {scope: "row"}, before.label), el("td", {class: "num"}, valueNode(before)), el("td", {class: "num"}, valueNode(after)), el("td", {class: "num"}, numeric ? changeNode(before.number, after.number, null) : ""), el("td", {class: "bar-cell"}, numeric ? line : ""));
  });
  return el("div", {}, el("header", {class: "title"}, el("p", {}, link("/", {}, "All kernels"), " ›"), el("h1", {}, nameNode(b.name)), el("p", {class: "dim"}, "A: ", link("/launch/" + a.index, {}, "launch " + a.id), ", " + shapeText(a.shape) + ", " + time(a.ns) + ". B: ", link("/launch/" + b.index, {}, "launch " + b.id), ", " + shapeText(b.shape) + ", " + time(b.ns) + ". ", changeNode(a.ns, b.ns, true))),
    el("p", {class: "hint"}, "The bar is B, the mark in it A."), sections.map(s => card(s.title, el("div", {class: "table-place"}, el("table", {class: "metrics compare-metrics"}, el("thead", {}, el("tr", {}, ["", "A", "B", "Change", ""].map((h, i) => el("th", {scope: "col", class: i ? "num" : ""}, h)))), el("tbody", {}, rows(s.cells)))))));
}

/* ---- facts of the sessions ---- */

function sessionTables() {
  return data.sessions.map(s => card(sessionName(s),
    el("div", {class: "fact-tables"}, s.facts.map(([title, rows]) => el("table", {class: "plain"}, el("caption", {}, text(title)),
      el("tbody", {}, rows.map(([name, value]) => el("tr", {}, el("th", {scope: "row"}, text(name)), el("td", {}, text(value))))))),
      s.skips.length ? el("table", {class: "plain"}, el("caption", {}, "Skipped launches"),
        el("tbody", {}, s.skips.map(([why, n]) => el("tr", {}, el("th", {scope: "row"}, text(why)), el("td", {}, number(n)))))) : null)));
}

/* ---- the frame around all pages ---- */

const routes = {
  launch: launchPage,
  source: sourcePage,
  flame: flamePage,
  compare: comparePair,
  session: () => el("div", {}, heading(), sessionTables()),
};

function navigation(current) {
  const tabs = [["", "Overview"], ["flame", "Flame graph"], ["session", data.sessions.length > 1 ? "Sessions" : "Session"]];
  return el("nav", {"aria-label": "Pages"}, el("span", {class: "brand"}, "kprof"),
            tabs.map(([to, title]) => link("/" + to, {"aria-current": to === current ? "page" : null}, title)));
}

function show() {
  const place = readPlace(), name = place.path[0] || "", route = routes[name];
  tipBox.hidden = true;
  const body = route ? route(place.path.slice(1), place.query) : comparing ? comparePage() : overview(place.query);
  page.replaceChildren(navigation(route ? name : ""), el("main", {}, body), tipBox);
  document.title = (data.sessions.length ? text(data.sessions[0].name) : "report") + " - kprof";
  const target = place.path.length > 2 && document.getElementById("rule-" + place.path[2]);
  if (target)
    target.scrollIntoView({block: "center"});
  else
    scrollTo(0, 0);
}

listenForTips();
addEventListener("hashchange", show);
show();
page.dataset.ready = "yes";
})();
