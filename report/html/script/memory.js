/* ---- the memory chart ---- */

/* Boxes: [x, y, width, height, title, group of what it says]. Links: [group, label or "", x1, y1, x2, y2]. */
const memoryBoxes = [
  [0, 24, 92, 340, "Kernel", null],
  [176, 24, 104, 44, "Global", null],
  [176, 76, 104, 44, "Local", null],
  [176, 128, 104, 44, "Texture", null],
  [176, 180, 104, 44, "Surface", null],
  [176, 232, 104, 44, "LDGSTS", null],
  [176, 284, 104, 36, "Shared", null],
  [176, 328, 104, 36, "TMA", null],
  [392, 24, 128, 252, "L1/TEX cache", "l1"],
  [392, 284, 128, 80, "Shared memory", "shared"],
  [652, 24, 128, 340, "L2 cache", "l2"],
  [890, 24, 124, 104, "Device memory", null],
  [890, 144, 124, 100, "System memory", null],
  [890, 260, 124, 104, "Peer memory", null],
];
const memoryLinks = [
  ["kernel>global", "", 92, 46, 176],
  ["kernel>local", "", 92, 98, 176],
  ["kernel>texture", "", 92, 150, 176],
  ["kernel>surface", "", 92, 202, 176],
  ["kernel>ldgsts", "", 92, 254, 176],
  ["kernel>shared", "Shared Instructions", 92, 302, 176],
  ["kernel>tma", "", 92, 346, 176],
  ["global>l1", "", 280, 46, 392],
  ["local>l1", "", 280, 98, 392],
  ["texture>l1", "", 280, 150, 392],
  ["surface>l1", "", 280, 202, 392],
  ["ldgsts>l1", "", 280, 254, 392],
  ["shared", "Shared Wavefronts %", 280, 302, 392, "use"],
  ["l2>l1", "L2 To L1 Bytes", 652, 98, 520],
  ["l1>l2", "L1 To L2 Bytes", 520, 202, 652],
  ["l2>tma", "TMA Loaded Bytes", 652, 346, 520],
  ["dram>l2", "", 890, 54, 780],
  ["l2>dram", "", 780, 102, 890],
  ["system>l2", "", 890, 172, 780],
  ["l2>system", "", 780, 220, 890],
  ["peer>l2", "", 890, 288, 780],
  ["l2>peer", "", 780, 336, 890],
];

/* Adds up a link: all values of its group but other views of them, or those of one label; and its share of the peak. */
function flow(cells, group, label) {
  const own = cells.filter(c => c.group === group && Number.isFinite(c.number));
  const isView =
      c => [" %", "/s"].some(end => c.label.endsWith(end) && own.some(d => d.label === c.label.slice(0, -end.length)));
  const parts = label ? own.filter(c => c.label === label) : own.filter(c => !isView(c));
  if (!parts.length) return null;
  const use = own.filter(
                     c => c.unit === "%" && (!label || c.label.startsWith(label.replace(/ %$/, ""))) ||
                         c.label === label + " %")
                  .map(c => c.number);
  return {
    sum: parts.reduce((s, c) => s + c.number, 0),
    unit: parts[0].unit,
    parts,
    own,
    use: use.length ? Math.max(...use) : null
  };
}

function memoryBlock(full, all) {
  const cells = all.map(c => cellIn(full, c)),
        svg = draw(
            "svg", {viewBox: "-4 0 1020 372", role: "img", "aria-label": "Memory chart", class: "chart memory-chart"});
  const most = Math.max(
      ...memoryLinks.map(l => flow(cells, l[0], l[1]))
          .filter(f => f && f.use === null && f.unit.startsWith("byte"))
          .map(f => f.sum),
      1);
  for (const [group, label, x1, y, x2] of memoryLinks) {
    const f = flow(cells, group, label);
    if (f) svg.append(flowNode(f, x1, y, x2, most, cells));
  }
  rove(svg, [[...svg.children]]);
  for (const [x, y, w, h, title, group] of memoryBoxes) svg.append(memoryBox(cells, x, y, w, h, title, group));
  const drawn = new Set(memoryLinks.flatMap(l => (flow(cells, l[0], l[1]) || {parts: []}).parts));
  return [
    el("div", {class: "table-place"}, svg),
    el("p", {class: "legend"},
       [["0", "none"], ["1", "up to 10 % of peak"], ["2", "up to 40 %"], ["3", "up to 70 %"], ["4", "above"]].map(
           ([level, say]) => el("span", {}, el("i", {class: "use-" + level}), say))),
    el("details", {}, el("summary", {}, "All values of the chart"), tableOf(cells.filter(c => c.value !== undefined)))
  ];
}

const useLevel = use => use === null ? "x" : use <= 0 ? 0 : use <= 10 ? 1 : use <= 40 ? 2 : use <= 70 ? 3 : 4;

function flowNode(f, x1, y, x2, most, cells) {
  const direction = x2 > x1 ? 1 : -1, level = f.sum ? Math.max(1, useLevel(f.use)) || "x" : 0, middle = (x1 + x2) / 2;
  const tip = f.own.map(c => c.label + ": " + shown(c.value, c.unit).join(" ") + "  (" + c.name + ")");
  if (f.use !== null) tip.unshift(percent(f.use) + " of peak");
  return draw(
      "g", {class: "flow use-" + level, tip, role: "img", "aria-label": tip.join(", ")},
      draw("line", {x1, x2: x2 - direction * 8, y1: y, y2: y}),
      draw("path", {d: `M${x2 - direction * 9} ${y - 6}L${x2 - direction} ${y}L${x2 - direction * 9} ${y + 6}Z`}),
      draw("text", {x: middle, y: y - 7, "text-anchor": "middle"}, quantity(f.sum, f.unit).replace(/ inst$/, "")),
      f.use >= 0.05 && f.sum && f.unit !== "%" ?
          draw("text", {class: "tick", x: middle, y: y + 15, "text-anchor": "middle"}, percent(f.use)) :
          null);
}

function memoryBox(cells, x, y, w, h, title, group) {
  const own = group ? cells.filter(c => c.group === group && Number.isFinite(c.number)) : [];
  const lines = [
    title,
    ...own.slice(0, 1).flatMap(
        c =>
            [c.label.replace(/^(L1\/TEX|L2) /, "").replace(/Shared Wavefronts %/, "of peak"),
             shown(c.value, c.unit).join(" ")])
  ];
  if (group === "l2")
    for (const c of cells
             .filter(
                 d => d.group === "compression" && Number.isFinite(d.number) && d.unit !== "%" && /Rate/.test(d.label))
             .slice(0, 1))
      lines.push("Compression", shown(c.value, c.unit).join(" "));
  const top = y + h / 2 - (lines.length - 1) * 8.5 + 4;
  return draw(
      "g", {class: "memory-box", tip: own.length ? own.flatMap(tipOfCell) : [title]},
      draw("rect", {x, y, width: w, height: h, rx: 7}),
      lines.map(
          (line, i) => draw(
              "text", {x: x + w / 2, y: top + i * 17, "text-anchor": "middle", class: i % 2 ? "tick" : "box-title"},
              line)));
}
