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
 * Draws a roofline. `roofs`: {name, work, traffic}; `points`: {label, work, intensity, area 0 to 1, tip, go}. Work is
 * per second.
 */
function rooflineChart(roofs, points, operation, label) {
  const width = 640, height = 360, box = {left: 78, right: 624, top: 14, bottom: 316};
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
  walls.forEach((r, i) => drawRoof(svg, r, i, x, y, box, operation));
  for (const p of ok.sort((a, b) => b.area - a.area)) svg.append(pointNode(p, x(p.intensity), y(p.work)));
  labelPoints(svg, ok, p => x(p.intensity), p => y(p.work), box);
  return svg;
}

function drawRoof(svg, r, i, x, y, box, operation) {
  const ridge = r.work / r.traffic, left = Math.max(x.low, y.low / r.traffic);
  const points = [
    [left, left * r.traffic], [Math.min(ridge, x.high), Math.min(r.work, x.high * r.traffic)],
    [x.high, Math.min(r.work, x.high * r.traffic)]
  ];
  const tip = [
    r.name, "peak work " + quantity(r.work, operation + "/s"), "peak traffic " + quantity(r.traffic, "byte/s"),
    "ridge at " + number(ridge) + " " + operation + "/byte"
  ];
  svg.append(
      draw(
          "polyline",
          {class: "roof", tip, points: points.map(([a, b]) => x(a).toFixed(1) + "," + y(b).toFixed(1)).join(" ")}),
      draw(
          "text", {
            class: "roof-label",
            x: box.right - 4,
            y: y(Math.min(r.work, x.high * r.traffic)) + (i % 2 ? 14 : -5),
            "text-anchor": "end"
          },
          r.name.replace(/ Roofline/, "")));
}

/* Areas are as the shares of time, as far as the page has room. */
const radiusOf = p => 4 + Math.min(24, 38 * Math.sqrt(p.area || 0));

function pointNode(p, cx, cy) {
  const circle = draw("circle", {
    class: "point" + (p.go ? " goes" : "") + (p.base ? " base" : ""),
    cx,
    cy,
    r: radiusOf(p),
    tip: p.tip,
    tabindex: p.go ? 0 : null,
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

/* Labels the largest points, unless a label is in the way. */
function labelPoints(svg, points, x, y, box) {
  const taken = [];
  for (const p of points.filter(q => q.label).slice(0, 8)) {
    const name = p.label.length > 26 ? p.label.slice(0, 25) + "…" : p.label, r = radiusOf(p);
    const right = x(p) + r + 6 + name.length * 6.2 < box.right, tx = right ? x(p) + r + 4 : x(p) - r - 4;
    const from = right ? tx : tx - name.length * 6.2, to = right ? tx + name.length * 6.2 : tx, ty = y(p) + 4;
    if (from < box.left || taken.some(t => Math.abs(t.y - ty) < 13 && from < t.to && to > t.from)) continue;
    taken.push({from, to, y: ty});
    svg.append(draw("text", {class: "point-label", x: tx, y: ty, "text-anchor": right ? "start" : "end"}, name));
  }
}

/* Draws kernels by the share of the peaks that they reach. */
function throughputChart(points) {
  const width = 640, height = 360, box = {left: 62, right: 624, top: 14, bottom: 316};
  const ok = points.filter(p => p.compute >= 0 && p.memory >= 0 && p.compute !== null && p.memory !== null);
  if (!ok.length) return null;
  const x = axis(0, 100, box.left, box.right), y = axis(0, 100, box.bottom, box.top),
        svg = frame(width, height, "Kernels by compute and memory throughput");
  const ticks = [0, 20, 40, 60, 80, 100];
  gridLines(svg, box, x, y, ticks, ticks, t => t, t => t);
  svg.append(
      draw("line", {class: "roof", x1: x(60), x2: x(60), y1: y(0), y2: y(60)}),
      draw("line", {class: "roof", x1: x(0), x2: x(60), y1: y(60), y2: y(60)}),
      draw("text", {class: "roof-label", x: x(58), y: y(2), "text-anchor": "end"}, "below 60 % of both: latency"),
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
  for (const p of ok.sort((a, b) => b.area - a.area))
    svg.append(pointNode(p, x(Math.min(p.compute, 100)), y(Math.min(p.memory, 100))));
  labelPoints(svg, ok, p => x(Math.min(p.compute, 100)), p => y(Math.min(p.memory, 100)), box);
  return svg;
}
