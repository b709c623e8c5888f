/* ---- two sessions beside each other: A, the first, is the baseline ---- */

const ofSession = at => launches.filter(l => at ? l.session > 0 : l.session === 0);
const change = (a, b) => a > 0 ? 100 * (b - a) / a : NaN;

function changeNode(a, b, lessIsGood) {
  const c = change(a, b);
  if (!Number.isFinite(c)) return el("span", {class: "dim"}, "–");
  const word = Math.abs(c) < 1 ? "same" : (c < 0) === lessIsGood ? "better" : "worse";
  return el(
      "span", {class: lessIsGood === null ? "" : word},
      (c > 0     ? "+" :
           c < 0 ? "−" :
                   "") +
          number(Math.abs(Math.round(c * 10) / 10)) + " %");
}

function pairsOf() {
  const a = kernelsOf(ofSession(0)), b = kernelsOf(ofSession(1)), pairs = new Map();
  for (const [side, sums] of [["a", a], ["b", b]])
    for (const k of sums.kernels) pairs.set(k.name, {name: k.name, ...pairs.get(k.name), [side]: k});
  return {
    totals: [a.total, b.total],
    pairs: [...pairs.values()].sort((x, y) => Math.abs(differenceOf(y)) - Math.abs(differenceOf(x)))
  };
}
const differenceOf = p => (p.b ? p.b.time : 0) - (p.a ? p.a.time : 0);

function compareRow(p, most) {
  const both = p.a && p.b, cell = (f, format) => [p.a, p.b].map(k => el("td", {class: "num"}, k ? format(f(k)) : "–"));
  const d = differenceOf(p),
        name = both ? link("/compare/" + p.a.stand.index + "/" + p.b.stand.index, {}, nameNode(p.name)) :
                      link("/launch/" + (p.a || p.b).stand.index, {}, nameNode(p.name));
  const side =
      el("span", {class: "change-bar " + (d > 0 ? "up" : "down")},
         el("span", {"width%": most ? 50 * Math.abs(d) / most : 0}));
  return el(
      "tr", {"data-kernel": p.name}, el("th", {scope: "row"}, name), cell(k => k.time, time),
      el("td", {class: "num"},
         both    ? changeNode(p.a.time, p.b.time, true) :
             p.a ? "only in A" :
                   "only in B"),
      el("td", {}, side), cell(k => k.mean, time), cell(k => k.launches.length, number),
      el("td", {},
         both && p.a.bound !== p.b.bound ? [p.a.bound || "?", " → ", el("b", {}, p.b.bound || "?")] :
                                           (p.b || p.a).bound));
}

function compareBars(pairs) {
  const longest = [...pairs].sort((x, y) => timeOf(y) - timeOf(x)).slice(0, 12), most = timeOf(longest[0] || {});
  return [
    el("ul", {class: "bars pairs"},
       longest.map(
           p => el(
               "li", {}, el("span", {class: "bar-label", title: p.name}, shortName(p.name)),
               el("span", {}, bar(p.a ? 100 * p.a.time / most : 0, "baseline"), bar(p.b ? 100 * p.b.time / most : 0)),
               el("span", {class: "value"}, p.b ? time(p.b.time) : "gone")))),
    el("p", {class: "hint"}, "Above: A. Below, with its value: B.")
  ];
}
const timeOf = p => Math.max(p.a ? p.a.time : 0, p.b ? p.b.time : 0, 1);

function compareMap(pairs) {
  const points = [], total = pairs.reduce((sum, p) => sum + Math.max(p.a ? p.a.time : 0, p.b ? p.b.time : 0), 0) || 1;
  for (const p of pairs)
    for (const [side, k] of [["A", p.a], ["B", p.b]]) {
      const point = k && kernelPoint(k);
      if (k)
        points.push({
          label: side === "B" || !p.b ? shortName(k.name) : "",
          area: k.time / total,
          time: k.time,
          base: side === "A",
          compute: weighted(k, "compute"),
          memory: weighted(k, "memory"),
          work: point ? point.work / point.time : 0,
          intensity: point ? point.work / point.traffic : NaN,
          operation: point && point.operation,
          go: "/launch/" + k.stand.index,
          tip: [side + ": " + k.name, time(k.time), k.bound ? "bound by " + k.bound : "bound not known"]
        });
    }
  return kernelMap(points, launches, "Hollow: A, the baseline. Filled: B. Area is time on the GPU.");
}

function comparePage() {
  const {totals, pairs} = pairsOf(), most = Math.max(...pairs.map(p => Math.abs(differenceOf(p))), 0);
  const say = (letter, s) =>
      el("div", {class: "fact"},
         el("span", {}, letter + ": " + text(s.name) + (text(s.host) ? " on " + text(s.host) : "")),
         el("b", {}, time(totals[letter === "A" ? 0 : 1])), el("small", {}, text(s.command)));
  return el(
      "div", {}, el("header", {class: "title"}, el("h1", {}, "Comparison")),
      el("div", {class: "facts"}, say("A", data.sessions[0]), say("B", data.sessions[data.sessions.length - 1]),
         el("div", {class: "fact"}, el("span", {}, "Change of the time on the GPU"),
            el("b", {}, changeNode(totals[0], totals[1], true)))),
      card(
          "Kernels by change of time",
          el("div", {class: "table-place"},
             el("table", {class: "kernels compare"},
                el("thead", {},
                   el("tr", {},
                      [
                        "Kernel", "Time A", "Time B", "Change", "B − A", "Mean A", "Mean B", "Launches A", "B",
                        "Bound by"
                      ].map((h, i) => el("th", {scope: "col", class: i && ![4, 9].includes(i) ? "num" : ""}, h)))),
                el("tbody", {}, pairs.map(p => compareRow(p, most)))))),
      el("div", {class: "two"}, card("Time by kernel", compareBars(pairs)), card("All kernels", compareMap(pairs))));
}

/* Metrics of sections that both launches have. */
function comparePair([first, second]) {
  const [a, b] = [launches[Number(first)], launches[Number(second)]],
            fulls = [a, b].map(l => l && l.full >= 0 ? data.full[l.full] : null);
  if (!fulls[0] || !fulls[1]) return el("p", {}, "One of the launches is not in full in this file.");
  const sections = fulls[1]
                       .sections.map(s => data.sections[s])
                       .map(([title, blocks]) => ({
                              title: text(title),
                              cells: blocks.filter(x => x[0] === "metrics").flatMap(x => x[1]).filter(c => !c[3])
                            }))
                       .filter(s => s.cells.length);
  const rows = cells => cells.map(c => {
    const before = cellIn(fulls[0], c), after = cellIn(fulls[1], c),
          numeric = Number.isFinite(before.number) && Number.isFinite(after.number);
    const full = after.unit === "%" ? 100 : Math.max(before.number, after.number),
          mark = numeric && full > 0 ? el("span", {class: "base-mark"}) : null,
          line = bar(numeric && full > 0 ? 100 * after.number / full : 0);
    if (mark) {
      mark.style.left = Math.min(100, 100 * before.number / full) + "%";
      line.append(mark);
    }
    return el(
        "tr", {}, el("th", {scope: "row"}, before.label), el("td", {class: "num"}, valueNode(before)),
        el("td", {class: "num"}, valueNode(after)),
        el("td", {class: "num"}, numeric ? changeNode(before.number, after.number, null) : ""),
        el("td", {class: "bar-cell"}, numeric ? line : ""));
  });
  return el(
      "div", {},
      el("header", {class: "title"}, el("p", {}, link("/", {}, "All kernels"), " ›"), el("h1", {}, nameNode(b.name)),
         el("p", {class: "dim"}, "A: ", link("/launch/" + a.index, {}, "launch " + a.id),
            ", " + shapeText(a.shape) + ", " + time(a.ns) + ". B: ", link("/launch/" + b.index, {}, "launch " + b.id),
            ", " + shapeText(b.shape) + ", " + time(b.ns) + ". ", changeNode(a.ns, b.ns, true))),
      el("p", {class: "hint"}, "The bar is B, the mark in it A."),
      sections.map(
          s => card(
              s.title,
              el("div", {class: "table-place"},
                 el("table", {class: "metrics compare-metrics"},
                    el("thead", {},
                       el("tr", {},
                          ["", "A", "B", "Change",
                           ""].map((h, i) => el("th", {scope: "col", class: i ? "num" : ""}, h)))),
                    el("tbody", {}, rows(s.cells)))))));
}
