/* ---- sessions side by side: A, the first, is the baseline of all others ---- */

const letterOf = at => String.fromCharCode(65 + at);
const sides = data.sessions.map((_, at) => at);
/* The class that has the colour of a session: grey for the baseline. */
const sideOf = at => "side side-" + (at ? 1 + (at - 1) % 5 : 0);
/* NaN if one of them is null (unknown). */
const change = (a, b) => a > 0 && b !== null ? 100 * (b - a) / a : NaN;

function changeNode(a, b, lessIsGood) {
  const c = change(a, b);
  if (!Number.isFinite(c)) return el("span", {class: "dim"}, "–");
  const word = Math.abs(c) < 1 ? "same" : (c < 0) === lessIsGood ? "better" : "worse";
  return el(
      "span", {class: lessIsGood === null ? "" : word},
      (c > 0     ? "+" :
           c < 0 ? "−" :
                   "") +
          number(Math.abs(c)) + " %");
}

const sideLegend = () =>
    el("p", {class: "legend"},
       sides.map(at => el("span", {class: sideOf(at)}, el("i"), letterOf(at) + (at ? "" : ", the baseline"))));

/* ---- kernels of all sessions ---- */

/* The time that is compared: null if a launch has no duration: the sum of the others is that of fewer launches.
 * */
const wholeTime = k => !k ? 0 : k.timed < k.count ? null : k.time;

/* Kernels by name, each with its sums of every session, or null; the largest difference to the baseline goes first. */
function kernelsBeside(list) {
  const sums = sides.map(at => kernelsOf(list.filter(l => l.session === at))), byName = new Map();
  sums.forEach((s, at) => s.kernels.forEach(k => {
    const beside = byName.get(k.name) || {name: k.name, of: sides.map(() => null)};
    beside.of[at] = k;
    byName.set(k.name, beside);
  }));
  for (const p of byName.values()) {
    p.times = p.of.map(wholeTime);
    p.difference = Math.max(...sides.map(at => Math.abs(differenceTo(p, at))));
    p.longest = Math.max(...p.of.map(k => k ? k.time : 0));
  }
  return {kernels: [...byName.values()].sort((x, y) => y.difference - x.difference)};
}

/* The excess of a session's time over the baseline's, 0 if one of them is unknown. */
const differenceTo = (p, at) => p.times[0] === null || p.times[at] === null ? 0 : p.times[at] - p.times[0];

/* The launch of a kernel that is compared with another: of its shape, if there is one in full. */
function standBeside(k, launch) {
  const like = k.launches.filter(l => l.full >= 0 && String(l.shape) === String(launch.shape));
  return like.length ? standFor(like) : k.stand;
}

/* The place of a launch with those of all sessions that have its kernel; alone if no other has it. */
function placeBeside(p, launch) {
  const found = p.of.filter(Boolean);
  return found.length < 2 ? "/launch/" + launch.index :
                            "/compare/" +
          p.of.map((k, at) => k && (at === launch.session ? launch : standBeside(k, launch)).index)
              .filter(index => index !== null)
              .join("/");
}

function besideLink(p) { return link(placeBeside(p, p.of.find(Boolean).stand), {}, rowName(p.name)); }

/* Leads from the page of a launch to the comparison; null if there is none. */
function besideButton(launch) {
  const [p] = kernelsBeside(launches.filter(l => l.name === launch.name)).kernels, place = placeBeside(p, launch);
  return comparing && launch.full >= 0 && place.startsWith("/compare") ?
      link(place, {class: "button"}, "Beside the other sessions") :
      null;
}

/* What binds the kernel, with the sessions if that differs between them. */
function boundsNode(p) {
  const by = new Map();
  p.of.forEach((k, at) => k && by.set(k.bound || "?", (by.get(k.bound || "?") || "") + letterOf(at)));
  if (by.size === 1) return p.of.find(Boolean).bound;
  return [...by].map(
      ([bound, letters], i) => [i ? " → " : "", i ? el("b", {}, bound) : bound, el("span", {class: "dim"}, " (" + [
                                  ...letters
                                ].join(", ") + ")")]);
}

/* The change of a session's time to the baseline's. `most`: the largest of all. */
function timeChange(p, at, most) {
  if (!at || (!p.of[at] && !p.of[0])) return null;
  const d = differenceTo(p, at);
  return [
    el("div", {class: "vs"},
       !p.of[at]    ? "gone" :
           !p.of[0] ? "new" :
                      changeNode(p.times[0], p.times[at], true)),
    el("span", {class: "change-bar " + (d > 0 ? "up" : "down")},
       el("span", {"width%": most ? 50 * Math.abs(d) / most : 0}))
  ];
}

function compareRow(p, most) {
  const cell = (f, format) => p.of.map(k => el("td", {class: "num"}, k ? format(f(k)) : "–"));
  return el(
      "tr", {"data-kernel": p.name}, el("th", {scope: "row"}, besideLink(p)),
      p.of.map((k, at) => el("td", {class: "num"}, k ? timeOf(k) : "–", timeChange(p, at, most))),
      cell(k => k.mean, time), cell(k => k.count, number), el("td", {}, boundsNode(p)));
}

function compareTable(kernels, most) {
  const groups = ["Time on the GPU", "Mean", "Launches"];
  const letters = sides.map(
      (at, i) => el("th", {scope: "col", class: "num" + (i ? "" : " group"), title: fileOf(at)}, letterOf(at)));
  const titles =
      ["Kernel", ...["Time", "Mean", "Launches"].flatMap(g => sides.map(at => g + " in " + letterOf(at))), "Bound by"];
  const table =
      el("table", {class: "kernels compare" + (sides.length > 3 ? " many" : "")},
         el("thead", {},
            el("tr", {}, el("th", {scope: "col", rowspan: 2}, "Kernel"),
               groups.map(g => el("th", {scope: "colgroup", class: "group", colspan: sides.length}, g)),
               el("th", {scope: "col", rowspan: 2, class: "group"}, "Bound by")),
            el("tr", {}, groups.map(() => letters.map(th => th.cloneNode(true))))),
         el("tbody", {}, kernels.map(p => compareRow(p, most))));
  return el("div", {class: "table-place"}, asCards(table, titles));
}

/* ---- charts of all sessions ---- */

/* A bar of a session; the place of the baseline is marked in those of the others. Both are in percent of the width. */
function sideBar(at, share, base) {
  const line = bar(share, sideOf(at));
  if (base === null || !Number.isFinite(base)) return line;
  const mark = el("span", {class: "base-mark"});
  mark.style.left = Math.max(0, Math.min(100, base)) + "%";
  line.append(mark);
  return line;
}

function compareBars(kernels) {
  const longest = [...kernels].sort((x, y) => y.longest - x.longest).slice(0, 12),
        most = longest.length ? longest[0].longest || 1 : 1;
  return [
    el("ul", {class: "beside"},
       longest.map(
           p =>
               el("li", {}, el("div", {class: "bar-label", title: p.name}, shortName(p.name, 76)),
                  p.of.map(
                      (k, at) =>
                          el("div", {class: "side-row"}, el("span", {class: "dim"}, letterOf(at)),
                             sideBar(
                                 at, k ? 100 * k.time / most : 0,
                                 at && p.of[0] && p.times[0] !== null ? 100 * p.times[0] / most : null),
                             el("span", {class: "value"},
                                k           ? timeOf(k) :
                                    p.of[0] ? "gone" :
                                              "–")))))),
    el("p", {class: "hint"}, "The mark in a bar is A, the baseline.")
  ];
}

function compareMap(kernels) {
  const points = [], total = kernels.reduce((sum, p) => sum + p.longest, 0) || 1;
  for (const p of kernels)
    p.of.forEach((k, at) => {
      const point = k && kernelPoint(k);
      if (k)
        points.push({
          kernel: p.of.slice(at + 1).some(Boolean) ? "" : k.name,
          area: k.time / total,
          time: k.time,
          base: at === 0,
          side: sideOf(at),
          compute: weighted(k, "compute"),
          memory: weighted(k, "memory"),
          work: point ? point.work / point.time : 0,
          intensity: point ? point.work / point.traffic : NaN,
          operation: point && point.operation,
          go: "/launch/" + k.stand.index,
          tip: [letterOf(at) + ": " + toldName(k.name), timeOf(k), k.bound ? "bound by " + k.bound : "bound not known"]
        });
    });
  return [kernelMap(points, launches, "Dashed: A, the baseline. Area is time on the GPU."), sideLegend()];
}

/* ---- the first page ---- */

const fileOf = at => text(data.sessions[at].file) || sessionName(data.sessions[at]);

/* `runs`: the sums of each session, in the form of kernelsOf for a kernel. */
function sideFact(s, at, runs) {
  const run = runs[at], without = untimedText(run.count, run.count - run.timed);
  return el(
      "div", {class: "fact " + sideOf(at)},
      el("span", {}, el("i"), letterOf(at) + (at ? ": " : ", the baseline: ") + fileOf(at)), el("b", {}, timeOf(run)),
      without && [" ", el("small", {}, without)],
      at ? el("div", {}, changeNode(wholeTime(runs[0]), wholeTime(run), true)) : null, el("small", {}, sessionName(s)),
      el("small", {}, text(s.command)));
}

/* The largest change in percent; a kernel that only some sessions have goes first. */
const percentOf = p => p.of.some(k => !k) ?
    Infinity :
    p.times.reduce((most, t) => Math.max(most, Math.abs(change(p.times[0], t)) || 0), 0);

/* Orders of the table: what they are called, and what goes first. */
const compareOrders = {
  change: ["Change", (x, y) => y.difference - x.difference],
  percent: ["Change in %", (x, y) => percentOf(x) === percentOf(y) ? 0 : percentOf(y) - percentOf(x)],
  time: ["Time", (x, y) => y.longest - x.longest],
  name: ["Name", (x, y) => x.name.toLowerCase() < y.name.toLowerCase() ? -1 : 1],
};

/* The table of kernels, which the reader may put in order, and choose from by name. */
function compareKernels(kernels) {
  const {query} = readPlace(), place = el("div"), most = Math.max(...kernels.map(p => p.difference), 0);
  let order = compareOrders[query.get("sort")] ? query.get("sort") : "change";
  const update = () => {
    const words = search.value.toLowerCase(), list = kernels.filter(p => p.name.toLowerCase().includes(words));
    place.replaceChildren(
        list.length ? compareTable(list.sort(compareOrders[order][1]), most) : el("p", {}, "No kernel matches."));
  };
  const search = nameFilter(query, update);
  update();
  return [
    el("div", {class: "filters-line"}, el("div", {class: "filters"}, el("label", {}, "Name ", search)),
       choice(
           "Order", Object.entries(compareOrders).map(([id, [title]]) => [id, title]), order,
           by => {
             order = by;
             setQuery("sort", by === "change" ? "" : by);
             update();
           })),
    place
  ];
}

/* The sums of a session. */
function runOf(at) {
  const list = launches.filter(l => l.session === at), count = countOf(list);
  return {count, timed: count - untimedOf(list), time: list.reduce((sum, l) => sum + l.time, 0)};
}

function comparePage() {
  const {kernels} = kernelsBeside(launches), runs = sides.map(runOf);
  return el(
      "div", {}, el("header", {class: "title"}, el("h1", {}, "Comparison")),
      el("div", {class: "facts"}, data.sessions.map((s, at) => sideFact(s, at, runs))),
      card("Kernels", compareKernels(kernels)),
      el("div", {class: "two"}, card("Time by kernel", compareBars(kernels)),
         card("All kernels", compareMap(kernels))));
}

/* ---- launches of one kernel ---- */

const BARS_BESIDE = 8; /* of a chart, the largest */

/* The cells of a block of a section, each with its value of every launch. */
function cellsBeside(fulls, [kind, content]) {
  if (kind === "metrics") return content.filter(c => !c[3]).map(c => fulls.map(full => cellIn(full, c)));
  if (kind !== "bars" && kind !== "rows") return [];
  const of = fulls.map(full => barsOf(full, content)), most = cells => Math.max(...cells.map(c => c && c.number || 0));
  const labels = [...new Set(of.flat().map(c => c.label))];
  return labels.map(label => of.map(bars => bars.find(c => c.label === label) || null))
      .filter(cells => most(cells) > 0)
      .sort((x, y) => kind === "bars" ? most(y) - most(x) : 0)
      .slice(0, BARS_BESIDE);
}

/* Sections of the first launch, and those that only others have: parts of a title and of cells of every launch. */
function sectionsBeside(fulls) {
  const byTitle = new Map();
  for (const full of fulls)
    for (const section of full.sections) {
      const [title, blocks] = data.sections[section], parts = [];
      let head = null;
      for (const block of blocks) {
        const cells = cellsBeside(fulls, block);
        if (cells.length) parts.push({head, cells});
        head = block[0] === "title" ? text(block[1]) : null;
      }
      if (parts.length && !byTitle.has(title)) byTitle.set(title, {title: text(title), parts});
    }
  return [...byTitle.values()];
}

/* A row of values, of the changes to the first launch's, and of bars with a mark for that. */
function rowBeside(cells, list) {
  const [base] = cells, numbers = cells.map(c => c && Number.isFinite(c.number) ? c.number : null),
        some = cells.find(Boolean);
  const full = some.unit === "%" ? 100 : Math.max(...numbers), isDrawn = full > 0 && numbers.some(n => n !== null);
  const share = n => n === null ? 0 : 100 * n / full;
  return el(
      "tr", {}, el("th", {scope: "row"}, some.label),
      cells.map(
          (c, i) =>
              [el("td", {class: "num"}, c ? valueNode(c) : "–"),
               i ? el("td", {class: "num"},
                      numbers[0] !== null && numbers[i] !== null ? changeNode(base.number, numbers[i], null) : "") :
                   null]),
      el("td", {class: "bar-cell"},
         isDrawn ? cells.map(
                       (_, i) => i ?
                           sideBar(list[i].session, share(numbers[i]), numbers[0] === null ? null : share(numbers[0])) :
                           null) :
                   ""));
}

function sectionBeside({title, parts}, list) {
  const letters = list.map(
      (l, i) =>
          [el("th", {scope: "col", class: "num"}, letterOf(l.session)),
           i ? el("th", {scope: "col", class: "num"}, "Change") : null]);
  return card(
      title,
      el("div", {class: "table-place"},
         el("table", {class: "metrics compare-metrics" + (list.length > 3 ? " many" : "")},
            el("thead", {}, el("tr", {}, el("td"), letters, el("td"))),
            parts.map(
                ({head, cells}) => el(
                    "tbody", {},
                    head ?
                        el("tr", {}, el("th", {scope: "rowgroup", class: "part", colspan: 2 * list.length + 1}, head)) :
                        null,
                    cells.map(row => rowBeside(row, list)))))));
}

/* All launches in one roofline; null if none has work. */
function rooflineBeside(list) {
  const rated = list.filter(l => l.roofs), operation = rated.length ? text(rated[0].roofs[0]) : "";
  const points = rated.flatMap(
      l => l.roofs[1]
               .filter(([, isPoint, work, traffic]) => isPoint && work > 0 && traffic > 0)
               .map(([name, , work, traffic]) => {
                 const short = text(name).replace(/ Achieved.*/, ""), letter = letterOf(l.session);
                 return {
                   label: letter + (short ? ", " + short : ""),
                   work,
                   intensity: work / traffic,
                   area: 0.02,
                   base: l === list[0],
                   side: sideOf(l.session),
                   tip: [
                     letter + ": " + text(name), quantity(work, operation + "/s"), quantity(traffic, "byte/s"),
                     number(work / traffic) + " " + operation + "/byte"
                   ]
                 };
               }));
  const chart = rooflineChart(roofsOf(rated), points, operation, "Roofline of the launches side by side");
  return chart &&
      card("Roofline", el("div", {class: "chart-place"}, chart),
           el("p", {class: "hint"}, "Dashed: ", letterOf(list[0].session), ", the baseline."), sideLegend());
}

/* The places of launches in the list of all, the baseline first. */
function compareLaunches(places) {
  const all = places.map(i => launches[Number(i)]), list = all.filter(l => l && l.full >= 0);
  if (list.length < 2 || list[0] !== all[0]) return el("p", {}, "One of the launches is not in full in this file.");
  const [base] = list, fulls = list.map(l => data.full[l.full]);
  return el(
      "div", {},
      el("header", {class: "title"}, el("p", {}, link("/", {}, "All kernels"), " ›"), el("h1", {}, nameNode(base.name)),
         list.map(
             (l, i) =>
                 el("p", {class: "dim " + sideOf(l.session)}, el("i"), letterOf(l.session) + ": ",
                    link("/launch/" + l.index, {}, "launch " + l.id),
                    ", " + shapeText(l.shape) + ", " + time(l.ns) + (i ? " " : ", the baseline"),
                    i ? changeNode(base.ns, l.ns, true) : null))),
      el("p", {class: "hint"},
         "Changes are to " + letterOf(base.session) + ", the mark in the bars of the others" +
             (list.length > 2 ? ", which follow in their order." : ".")),
      rooflineBeside(list), sectionsBeside(fulls).map(s => sectionBeside(s, list)));
}
