/* ---- tables, bars, curves, rooflines and timelines of a launch ---- */

/* The values of a block's cells that are numbers, largest first. */
function barsOf(full, cells) {
  const all = cells.map(c => cellIn(full, c)),
        only = all.length === 1 && all[0].value && all[0].value.instances ? all[0] : null;
  if (!only) return all;
  return data.keys[only.value.keys].map((key, i) => ({
                                          ...only,
                                          label: text(key),
                                          instance: true,
                                          number: only.value.instances[i],
                                          value: only.value.instances[i]
                                        }));
}

const BARS_AT_FIRST = 14;

function barList(bars, label, sorted) {
  const most = new Map();
  for (const b of bars) most.set(b.unit, Math.max(most.get(b.unit) || 0, b.number || 0));
  const rows = bars.map(b => {
    const full = b.unit === "%" ? 100 : most.get(b.unit);
    const kind = /^(dram|lts|l1tex|lrc|fbpa|mcc|idc|ltc|gcc|syslts|pcie)/.test(b.name) || /^Memory/.test(b.label) ?
        "memory" :
        /^(sm|smsp)_/.test(b.name) || /^Compute/.test(b.label) ? "compute" :
                                                                 "";
    return el(
        "li", {}, el("span", {class: "bar-label", title: b.label}, b.label),
        bar(full ? 100 * b.number / full : 0, kind), valueNode(b));
  });
  const lists = [el("ul", {class: "bars", "aria-label": label}), el("ul", {class: "bars"})];
  const zeros = sorted ? bars.length - bars.filter(b => b.number).length : 0,
        kept = Math.min(zeros > 2 ? Math.max(bars.length - zeros, 1) : rows.length, BARS_AT_FIRST);
  const rest = rows.splice(kept + 2 >= rows.length ? rows.length : kept);
  [rows, rest].forEach((part, i) => {
    lists[i].append(...part);
    rove(lists[i], part.map(row => [row.lastChild]));
  });
  return el(
      "div", {}, lists[0],
      rest.length ? el("details", {},
                       el("summary", {}, rest.length + (rest.length === zeros ? " more, all 0" : " more")), lists[1]) :
                    null);
}

function tableOf(cells) {
  const values = cells.map(c => valueNode(c));
  const table =
      el("table", {class: "metrics"},
         el("tbody", {},
            cells.map((c, i) => el("tr", {}, el("th", {scope: "row"}, c.label), el("td", {class: "num"}, values[i])))));
  rove(table, values.map(v => [v]));
  return table;
}

/* A section's first table; rows that belong to its charts are folded away. */
function metricsBlock(full, cells) {
  const all = cells.map(c => cellIn(full, c)), rest = all.filter(c => c.extra), first = all.filter(c => !c.extra);
  const half = Math.ceil(first.length / 2);
  return [
    first.length ? el("div", {class: "metric-columns"}, tableOf(first.slice(0, half)),
                      half < first.length ? tableOf(first.slice(half)) : null) :
                   null,
    rest.length ? el("details", {},
                     el("summary", {},
                        rest.length + (first.length ? " more" : "") + (rest.length === 1 ? " metric" : " metrics")),
                     tableOf(rest)) :
                  null
  ];
}

/* The unit that all numbers of a column are shown in; null if they have no common one. */
function columnScale(cells) {
  const units = new Set(cells.filter(c => Number.isFinite(c.number)).map(c => c.unit));
  if (units.size !== 1) return null;
  return scaleOf([...units][0], Math.max(...cells.map(c => Math.abs(c.number) || 0)));
}

/* The unit of a column, unless its head has it. */
const unitIn = (head, scale) => scale && scale.unit && !head.includes(scale.unit) ? " (" + scale.unit + ")" : "";

function gridCell(cell, scale) {
  const td = el("td", {class: "num"}, cell ? valueNode(cell, "span", scale) : "");
  if (cell && cell.unit === "%" && cell.number > 0) {
    td.classList.add("share-cell");
    td.style.setProperty("--part", Math.min(100, cell.number) + "%");
  }
  return td;
}

function gridTable(names, columns, at, scales) {
  const rows = names.map(r => columns.map(c => gridCell(at.get(r + "\n" + c), scales.get(c))));
  const table = el(
      "table", {class: "grid-table" + (columns.length > 9 ? " many" : "")},
      el("thead", {},
         el("tr", {}, el("td"), columns.map(c => el("th", {scope: "col", class: "num"}, c, unitIn(c, scales.get(c)))))),
      el("tbody", {}, names.map((r, y) => el("tr", {}, el("th", {scope: "row"}, r), rows[y]))));
  rove(table, rows.map(row => row.map(td => td.firstElementChild)));
  return el("div", {class: "table-place"}, table);
}

/* A table of rows and columns. Like in text, rows of zeros are named below it. */
function gridBlock(full, cells) {
  const all = cells.map(c => cellIn(full, c)), rows = [...new Set(all.map(c => c.group))],
        columns = [...new Set(all.map(c => c.label))];
  const at = new Map(all.map(c => [c.group + "\n" + c.label, c]));
  const quiet = rows.filter(
      r => rows.length >= 6 && all.every(c => c.group !== r || !c.number || /\.peak_sustained/.test(c.name)));
  const kept = rows.filter(r => !quiet.includes(r)), used = columns.filter(c => kept.some(r => at.has(r + "\n" + c)));
  const scales = new Map(columns.map(c => [c, columnScale(all.filter(cell => cell.label === c))]));
  const make = (names, cols) => gridTable(names, cols, at, scales);
  return [
    kept.length ? make(kept, used) : null,
    quiet.length ? el("details", {},
                      el("summary", {},
                         (columns[0] === "Operations" ? "No operations: " : "No traffic: ") +
                             (quiet.length > 6 ? quiet.length + " rows" : quiet.join(", "))),
                      make(quiet, columns)) :
                   null
  ];
}

function curveBlock(full, cells) {
  const all = cells.map(c => cellIn(full, c)),
        curves = all.filter(c => c.value && c.value.instances && c.value.instances.some(v => v)),
        others = all.filter(c => !(c.value && c.value.instances));
  const mark = others.find(c => c.name.startsWith("launch__") && Number.isFinite(c.number));
  const drawn = curves.filter((c, i) => i === curves.findIndex(d => d.value.keys === c.value.keys));
  return [
    drawn.map(c => curveChart(c, mark, curves.filter(d => d !== c && d.value.keys === c.value.keys))), tableOf(others)
  ];
}

/* Steps of a value over the numbers that its instances are named after, with the launch's own marked. */
function curveChart(cell, mark, also) {
  const keys = data.keys[cell.value.keys].map(text), xs = keys.map(Number), values = cell.value.instances;
  if (!xs.every(Number.isFinite) || xs.length < 2)
    return barList(
        keys.map((key, i) => ({...cell, label: key, instance: true, number: values[i], value: values[i]})), cell.label);
  const width = chartWidth(560), height = 190, box = {left: 46, right: width - 12, top: 12, bottom: 158},
        most = Math.max(...values.filter(Number.isFinite), 1);
  const x = axis(xs[0], xs[xs.length - 1], box.left, box.right), y = axis(0, most, box.bottom, box.top),
        svg = frame(width, height, cell.label);
  const ticks = [0, most / 2, most], xTicks = [0, 1, 2, 3, 4].map(i => xs[0] + i / 4 * (xs[xs.length - 1] - xs[0]));
  gridLines(svg, box, x, y, xTicks, ticks, v => grouped(String(Math.round(v))), v => String(Math.round(v)));
  let path = `M${x(xs[0])} ${y(values[0])}`;
  for (let i = 1; i < xs.length; i++)
    path += `H${x(xs[i - 1]).toFixed(1)}V${y(values[i]).toFixed(1)}H${x(xs[i]).toFixed(1)}`;
  svg.append(
      draw("path", {class: "curve-fill", d: path + `V${box.bottom}H${box.left}Z`}),
      draw("path", {class: "curve", d: path}));
  const near = v => xs.reduce((best, k, i) => Math.abs(k - v) < Math.abs(xs[best] - v) ? i : best, 0);
  const say = i =>
      [cell.label + " at " + keys[i] + ": " + number(values[i]),
       ...also.map(a => a.label + ": " + number(a.value.instances[i]))];
  const cover = draw(
      "rect", {x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "cover"});
  let at = 0;
  tips.set(cover, () => say(at));
  cover.addEventListener("pointermove", event => {
    const r = cover.getBoundingClientRect();
    at = near(xs[0] + (event.clientX - r.left) / r.width * (xs[xs.length - 1] - xs[0]));
  });
  svg.append(cover);
  if (mark && mark.number >= xs[0] && mark.number <= xs[xs.length - 1]) {
    /* A launch that ran has warps, so no point without any is its own: see place_of of curve.c. */
    const own = near(mark.number), last = values.slice(0, own + 1).findLastIndex(v => v > 0), i = last < 0 ? own : last;
    const place = x(i === own ? mark.number : xs[i]);
    svg.append(
        draw("line", {class: "mark", x1: place, x2: place, y1: box.top, y2: box.bottom}), draw("circle", {
          class: "mark-point",
          cx: place,
          cy: y(values[i]),
          r: 5,
          tip: ["this launch: " + mark.label + " " + number(mark.number), ...say(i)]
        }),
        draw(
            "text",
            {class: "mark-label", x: place, y: height - 4, "text-anchor": place > box.right - 60 ? "end" : "middle"},
            "this launch: " + number(mark.number)));
  }
  return el("figure", {}, el("figcaption", {}, cell.label), svg);
}

function rooflineBlock(full, cells, roofs) {
  const operation = text(roofs[0]),
        rates =
            roofs[1].map(([name, isPoint, work, traffic, roof]) => ({name: text(name), isPoint, work, traffic, roof}));
  const points = rates.filter(r => r.isPoint && r.work > 0), used = new Set(points.map(p => p.roof));
  const walls = rates.filter((r, i) => !r.isPoint && (used.has(i) || rates.filter(x => !x.isPoint).length <= 6));
  const limit = p => {
    const roof = rates[p.roof];
    return roof ? Math.min(roof.work, p.traffic ? p.work / p.traffic * roof.traffic : roof.work) : NaN;
  };
  const chart = rooflineChart(
      walls, points.map(p => ({
                          label: p.name.replace(/ Achieved.*/, "") || p.name,
                          level: p.name,
                          work: p.work,
                          intensity: p.work / p.traffic,
                          area: 0.02,
                          tip: [
                            p.name, quantity(p.work, operation + "/s"), quantity(p.traffic, "byte/s"),
                            number(p.work / p.traffic) + " " + operation + "/byte",
                            percent(100 * p.work / limit(p)) + " of its roof"
                          ]
                        })),
      operation, "Roofline");
  const idle = rates.filter(r => r.isPoint && !(r.work > 0)).map(r => r.name);
  const rows = points.map(p => el("tr", {}, el("th", {scope: "row"}, p.name), [
                            quantity(p.work, operation + "/s"), quantity(p.traffic, "byte/s"),
                            number(p.work / p.traffic), percent(100 * p.work / limit(p))
                          ].map(v => el("td", {class: "num"}, v))));
  return [
    chart,
    rows.length ? el("div", {class: "table-place"},
                     el("table", {class: "grid-table"},
                        el("thead", {},
                           el("tr", {}, el("td"),
                              ["Work", "Traffic", operation + "/byte", "Of its roof"].map(
                                  h => el("th", {scope: "col", class: "num"}, h)))),
                        el("tbody", {}, rows))) :
                  el("p", {class: "hint"}, "No work of this kind was done: there is no point to draw."),
    idle.length && rows.length ?
        el("p", {class: "hint"}, "No work: ", idle.length > 6 ? idle.length + " more points" : idle.join(", ")) :
        null,
    el("details", {}, el("summary", {}, "Computed from"),
       tableOf(cells.map(c => cellIn(full, c)).filter((c, i, all) => all.findIndex(d => d.name === c.name) === i)))
  ];
}

/* Timelines of one launch, below each other on one axis. */
function seriesBlock(full, series) {
  const [dropped, ...rows] = series;
  const end = Math.max(...rows.map(([, , start, interval, values]) => start + interval * values.length), 1);
  return [
    el("div", {class: "series"}, rows.map(([label, metric, start, interval, values]) => {
      const [name, unit] = data.metrics[metric].map(text), real = values.filter(v => v !== null),
                   most = unit === "%" ? 100 : Math.max(...real, 0) || 1;
      const width = 700, height = 44, x = axis(0, end, 0, width), y = axis(0, most, height - 1, 2),
            svg = draw("svg", {
              viewBox: `0 0 ${width} ${height}`,
              preserveAspectRatio: "none",
              class: "spark",
              role: "img",
              "aria-label": text(label)
            });
      const points =
          values
              .map(
                  (v, i) =>
                      v === null ? null : x(start + i * interval).toFixed(1) + " " + y(Math.min(v, most)).toFixed(1))
              .filter(Boolean);
      let at = 0;
      svg.append(
          draw(
              "path",
              {class: "curve-fill", d: "M" + x(start) + " " + height + "L" + points.join("L") + "V" + height + "Z"}),
          draw("path", {class: "curve", d: "M" + points.join("L")}));
      tips.set(
          svg,
          () =>
              [text(label),
               values[at] === null || values[at] === undefined ?
                   "no sample" :
                   quantity(values[at], unit) + " at " + time(start + at * interval),
               name]);
      svg.addEventListener("pointermove", event => {
        const r = svg.getBoundingClientRect();
        at = Math.max(
            0, Math.min(values.length - 1, Math.round(((event.clientX - r.left) / r.width * end - start) / interval)));
      });
      const mean = real.reduce((a, b) => a + b, 0) / (real.length || 1);
      return el(
          "div", {class: "series-row"}, el("span", {class: "bar-label", title: name}, text(label)), svg,
          el("span", {class: "num"}, quantity(mean, unit),
             el("small", {}, "max " + quantity(Math.max(...real, 0), unit))));
    })),
    el("p", {class: "hint"},
       "0 to " + time(end) + "; mean of all samples on the right" +
           (dropped > 0 ? "; " + number(dropped) + " samples were lost" : ""))
  ];
}
