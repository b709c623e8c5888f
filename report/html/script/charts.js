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
  for (let p = Math.floor(Math.log10(low) + 1e-9); p <= Math.ceil(Math.log10(high) - 1e-9); p++) out.push(10 ** p);
  return out;
}

/* Charts are as wide as they are shown on a narrow page, so that their text is not smaller than elsewhere. */
const narrowPage = matchMedia("(max-width: 560px)");
const chartWidth = wide => narrowPage.matches ? 344 : wide;
const chartBox = (width, height, left) => ({left, right: width - 16, top: 14, bottom: height - 44});

function frame(width, height, label) {
  return draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart"});
}

function gridLines(svg, box, x, y, xTicks, yTicks, xText, yText) {
  for (const t of xTicks)
    svg.append(
        draw("line", {class: "grid", x1: x(t), x2: x(t), y1: box.top, y2: box.bottom}),
        draw("text", {class: "tick", x: x(t), y: box.bottom + 14, "text-anchor": "middle"}, xText(t)));
  for (const t of yTicks)
    svg.append(
        draw("line", {class: "grid", x1: box.left, x2: box.right, y1: y(t), y2: y(t)}),
        draw("text", {class: "tick", x: box.left - 6, y: y(t) + 4, "text-anchor": "end"}, yText(t)));
}

const shortPower = v => v >= 1e4 || v < 1e-3 ? "1e" + Math.round(Math.log10(v)) : String(Number(v.toPrecision(1)));

/*
 * Draws a roofline. `roofs`: {name, work, traffic}; `points`: {label or kernel, work, intensity, area 0 to 1, tip, go}.
 * Work is per second.
 */
function rooflineChart(roofs, points, operation, label, height = 360) {
  const width = chartWidth(640), box = chartBox(width, height, 78);
  const ok = points.filter(p => p.work > 0 && p.intensity > 0 && Number.isFinite(p.intensity));
  const walls = roofs.filter(r => r.work > 0 && r.traffic > 0);
  const xs = ok.map(p => p.intensity).concat(walls.map(r => r.work / r.traffic));
  const ys = ok.map(p => p.work).concat(walls.map(r => r.work));
  if (!ok.length || !xs.length) return null;
  const xp = powers(Math.min(...xs) / 3, Math.max(...xs) * 8), yp = powers(Math.min(...ys) / 2, Math.max(...ys) * 1.2);
  const x = axis(xp[0], xp[xp.length - 1], box.left, box.right, true),
        y = axis(yp[0], yp[yp.length - 1], box.bottom, box.top, true);
  const svg = frame(width, height, label);
  gridLines(svg, box, x, y, xp, yp, shortPower, v => quantity(v, operation + "/s"));
  svg.append(draw(
      "text", {class: "axis", x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle"},
      "Arithmetic intensity (" + operation + "/byte)"));
  walls.forEach(r => drawRoof(svg, r, walls, x, y, box, operation));
  appendPoints(svg, ok, p => x(p.intensity), p => y(p.work));
  svg.append(...svg.querySelectorAll(".roof-label")); /* no bubble covers them */
  labelPoints(svg, ok, p => x(p.intensity), p => y(p.work), box);
  return svg;
}

/* The colour of a memory level, if a roof or a point has one. */
const levelOf = name => {
  const level = /\b(DRAM|L2|L1)\b/.exec(name);
  return level ? " level-" + level[1].toLowerCase() : "";
};

function drawRoof(svg, r, walls, x, y, box, operation) {
  const ridge = r.work / r.traffic, left = Math.max(x.low, y.low / r.traffic);
  const top = Math.min(r.work, x.high * r.traffic), knee = Math.min(ridge, x.high);
  const points = [[left, left * r.traffic], [knee, top], [x.high, top]];
  const tip = [
    r.name, "peak work " + quantity(r.work, operation + "/s"), "peak traffic " + quantity(r.traffic, "byte/s"),
    "ridge at " + number(ridge) + " " + operation + "/byte"
  ];
  const name = r.name.replace(/ Roofline/, ""), kind = levelOf(r.name);
  svg.append(draw(
      "polyline",
      {class: "roof" + kind, tip, points: points.map(([a, b]) => x(a).toFixed(1) + "," + y(b).toFixed(1)).join(" ")}));
  /* Roofs of one peak are distinguished on their slopes. */
  if (walls.some(w => w !== r && Math.abs(w.work / r.work - 1) < 0.05)) {
    const [x1, y1, x2, y2] = [x(left), y(left * r.traffic), x(knee), y(top)];
    const angle = Math.atan2(y2 - y1, x2 - x1) * 180 / Math.PI, cx = x1 + 0.55 * (x2 - x1), cy = y1 + 0.55 * (y2 - y1);
    svg.append(draw(
        "text", {
          class: "roof-label" + kind,
          transform: `translate(${cx.toFixed(1)} ${cy.toFixed(1)}) rotate(${angle.toFixed(1)})`,
          y: -5,
          "text-anchor": "middle"
        },
        name));
  } else {
    svg.append(draw(
        "text", {
          class: "roof-label" + kind,
          x: box.right - 4,
          y: y(top) + (walls.indexOf(r) % 2 ? 14 : -5),
          "text-anchor": "end"
        },
        name));
  }
}

/* Areas are proportional to the shares of time, if the page has room. */
const radiusOf = p => 4 + Math.min(24, 38 * Math.sqrt(p.area || 0));

function pointNode(p, cx, cy) {
  const circle = draw("circle", {
    class: "point" + (p.go ? " goes" : "") + (p.base ? " base" : "") + (p.side ? " " + p.side : "") +
        levelOf(p.level || ""),
    cx,
    cy,
    r: radiusOf(p),
    tip: p.tip,
    role: p.go ? "link" : null,
    "aria-label": p.tip.join(", ")
  });
  if (p.go) {
    circle.addEventListener("click", () => {
      location.hash = p.go;
    });
    circle.addEventListener("keydown", event => {
      if (event.key === "Enter") location.hash = p.go;
    });
  }
  return circle;
}

/* The largest first, so that none hides a smaller one. Those that lead somewhere are one stop for the Tab key. */
function appendPoints(svg, points, x, y) {
  const nodes = points.sort((a, b) => b.area - a.area).map(p => pointNode(p, x(p), y(p)));
  svg.append(...nodes);
  rove(svg, [nodes.filter((_, i) => points[i].go)]);
}

const LABEL_ROOM = 26; /* characters */

/* Labels the largest points: next to them, above or below, wherever no bubble and no other label is in the way. */
function labelPoints(svg, points, x, y, box) {
  const taken = points.map(p => {
    const r = radiusOf(p);
    return {of: p, left: x(p) - r, right: x(p) + r, top: y(p) - r, bottom: y(p) + r};
  });
  const largest = points.filter(q => q.kernel || q.label).slice(0, 8),
        names = labelsOf([...new Set(largest.map(p => p.kernel).filter(Boolean))], LABEL_ROOM);
  for (const p of largest) {
    const name = p.kernel ? names.get(p.kernel) : cutTo(p.label, LABEL_ROOM), r = radiusOf(p);
    const width = name.length * 7.5, cx = x(p), cy = y(p);
    const above = cy - r - 6, below = cy + r + 15;
    const places = [
      [cx + r + 4, cy + 4], [cx - r - 4 - width, cy + 4], [cx - width / 2, above], [cx - width / 2, below],
      [cx - width, below], [cx, below], [cx - width, above], [cx, above]
    ].map(([left, bottom]) => ({left, right: left + width, top: bottom - 10, bottom}));
    const free = places.find(
        l => l.left > box.left && l.right < box.right && l.bottom > box.top && l.bottom < box.bottom &&
            !taken.some(
                t => t.of !== p && l.left < t.right && l.right > t.left && l.top - 3 < t.bottom &&
                    l.bottom > t.top - 3));
    if (!free) continue;
    taken.push(free);
    svg.append(draw("text", {class: "point-label", x: free.left, y: free.bottom}, name));
  }
}

/* Draws kernels by the share of the peaks that they reach. */
function throughputChart(points, height) {
  const width = chartWidth(640), box = chartBox(width, height, 62);
  const ok = points.filter(p => p.compute >= 0 && p.memory >= 0 && p.compute !== null && p.memory !== null);
  if (!ok.length) return null;
  const x = axis(0, 100, box.left, box.right), y = axis(0, 100, box.bottom, box.top),
        svg = frame(width, height, "Kernels by compute and memory throughput");
  const ticks = [0, 20, 40, 60, 80, 100];
  gridLines(svg, box, x, y, ticks, ticks, t => t, t => t);
  svg.append(
      draw("line", {class: "roof", x1: x(60), x2: x(60), y1: y(0), y2: y(60)}),
      draw("line", {class: "roof", x1: x(0), x2: x(60), y1: y(60), y2: y(60)}),
      draw(
          "text", {class: "roof-label", x: x(58), y: y(2), "text-anchor": "end"},
          narrowPage.matches ? "below 60 %: latency" : "below 60 % of both: latency"),
      draw(
          "text", {class: "axis", x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle"},
          "Compute throughput (% of peak)"),
      draw(
          "text", {
            class: "axis",
            x: 14,
            y: (box.top + box.bottom) / 2,
            "text-anchor": "middle",
            transform: `rotate(-90 14 ${(box.top + box.bottom) / 2})`
          },
          "Memory throughput (% of peak)"));
  const px = p => x(Math.min(p.compute, 100)), py = p => y(Math.min(p.memory, 100));
  appendPoints(svg, ok, px, py);
  labelPoints(svg, ok, px, py, box);
  return svg;
}
