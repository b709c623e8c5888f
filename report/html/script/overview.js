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
      if (!isPoint && (!r || work > r.work)) roofs.set(name, {name: text(name), work, traffic});
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
    const tip = [
      toldName(k.name), timeOf(k) + (k.timed ? ", " + percent(k.share) + " of the time" : ""),
      k.bound ? "bound by " + k.bound : "bound not known"
    ];
    if (p && p.work > 0)
      tip.push(
          quantity(p.work / p.time, p.operation + "/s") + " at " + number(p.work / p.traffic) + " " + p.operation +
          "/byte (" + p.name + ")");
    if (compute !== null) tip.push("compute " + percent(compute) + ", memory " + percent(memory) + " of peak");
    return {
      kernel: k.name,
      area: k.time / total,
      tip,
      go: "/launch/" + k.stand.index,
      compute,
      memory,
      time: k.time,
      work: p ? p.work / p.time : 0,
      intensity: p ? p.work / p.traffic : NaN,
      operation: p && p.operation
    };
  });
}

const MAP_HEIGHT = 270; /* with all else that the first screen holds it fits into 720 pixels */

/* A roofline, or a chart of throughput if too little of the time has counted work; the reader may change that. */
function kernelMap(points, list, hint) {
  const operation = (points.find(p => p.operation) || {}).operation || "FLOP";
  const roofline = rooflineChart(roofsOf(list), points, operation, "Roofline with all kernels", MAP_HEIGHT);
  const throughput = throughputChart(points, MAP_HEIGHT), place = el("div", {class: "map"});
  const total = points.reduce((sum, p) => sum + p.time, 0), without = points.filter(p => !(p.work > 0));
  const worked = total - without.reduce((sum, p) => sum + p.time, 0);
  const first = roofline && (worked * 2 >= total || !throughput) ? "roofline" : "throughput";
  const show = which => place.replaceChildren(
      which === "roofline" ? roofline : throughput,
      el("p", {class: "hint"}, hint,
         roofline ? null : " A roofline needs the section SpeedOfLight_RooflineChart, which the set roofline has.",
         which === "roofline" && without.length ?
             (without.length === 1 ? " 1 kernel does no counted floating-point work and has" :
                                     " " + without.length + " kernels do no counted floating-point work and have") +
                 " no place here: see Throughput." :
             null));
  if (!roofline && !throughput)
    return el(
        "p", {class: "hint"}, "No throughput was collected: the sets basic, detailed, full and roofline have it.");
  show(first);
  return el(
      "div", {},
      roofline && throughput && choice("Chart", [["roofline", "Roofline"], ["throughput", "Throughput"]], first, show),
      place);
}

/* Why a launch has no duration: the most frequent reason. */
function whyUntimed(list) {
  const reasons = new Map(), duration = data.metrics.findIndex(m => text(m[0]) === "gpu__time_duration.sum");
  for (const launch of list.filter(l => l.ns === null)) {
    const value = launch.full < 0 ? null : valueIn(data.full[launch.full], duration);
    const why = Array.isArray(value) ? text(value[0]) : text(launch.note);
    if (why) reasons.set(why, (reasons.get(why) || 0) + launch.count);
  }
  const [most] = [...reasons].sort((a, b) => b[1] - a[1]);
  return most ? most[0][0].toUpperCase() + most[0].slice(1) + "." : "";
}

function fixFirst(kernels) {
  const best = kernels.filter(k => k.rule !== null).sort((a, b) => b.savedTime - a.savedTime).slice(0, 3);
  if (untimedOf(kernels.flatMap(k => k.launches)) === kernels.reduce((sum, k) => sum + k.count, 0))
    return el(
        "p", {class: "fix-none"}, "No launch has a duration, so no kernel can be ranked first. ", whyUntimed(launches));
  if (!best.length) {
    const k = kernels.reduce((a, b) => b.time > a.time ? b : a);
    return el(
        "p", {class: "fix-none"}, "Look first at ", link("/launch/" + k.stand.index, {}, rowName(k.name)),
        k.bound ? ", bound by " + k.bound : "", ": no rule names a gain for a whole kernel.");
  }
  return el("ol", {class: "fix"}, best.map(k => {
    const [rule, section, about] = data.rules[k.rule].map(text);
    return el(
        "li", {}, el("div", {class: "fix-gain"}, el("b", {}, percent(k.gain)), el("span", {}, "of the run")),
        el("div", {}, link("/launch/" + k.stand.index + "/" + rule, {}, rowName(k.name)),
           el("div", {}, k.bound && ["bound by ", el("b", {}, k.bound), ". "], "Rule ", el("b", {}, rule), " (",
              section, "): ", about, ". It would save up to ", percent(100 * k.savedTime / k.time),
              " of this kernel's time.")));
  }));
}

const columns = [
  {id: "name", title: "Kernel", text: true, of: k => k.name},
  {id: "time", title: "Time", of: k => k.time},
  {id: "share", title: "Share", left: true, of: k => k.time},
  {id: "launches", title: "Launches", of: k => k.count},
  {id: "mean", title: "Mean", of: k => k.mean},
  {id: "bound", title: "Bound by", text: true, of: k => k.bound},
  {id: "gain", title: "Gain of the run", left: true, of: k => k.savedTime},
];

/* `most`: the time of the longest kernel, whose bar is full. */
function kernelRow(k, most) {
  const rule = k.rule === null ? null : text(data.rules[k.rule][0]);
  return el(
      "tr", {"data-kernel": k.name}, el("th", {scope: "row"}, link("/launch/" + k.stand.index, {}, rowName(k.name))),
      el("td", {class: "num", "data-exact": String(k.time)}, timeOf(k)),
      el("td", {class: "share"},
         k.timed ? [bar(most ? 100 * k.time / most : 0), el("span", {}, percent(k.share))] : "n/a"),
      el("td", {class: "num less"}, number(k.count)), el("td", {class: "num least"}, time(k.mean)),
      el("td", {}, k.bound || el("span", {class: "dim"}, "not known")),
      el("td", {class: "gain"},
         rule ?
             [
               el("b", {}, k.gain < 0.05 ? "<0.1 %" : percent(k.gain)), " ",
               link("/launch/" + k.stand.index + "/" + rule, {class: "rule"}, rule)
             ] :
             "–"));
}

const ROWS_AT_FIRST = 200;

function kernelTable(kernels, sort, down, resort) {
  const column = columns.find(c => c.id === sort) || columns[1];
  const key = k => column.text ? column.of(k).toLowerCase() : column.of(k),
        order = (a, b) => key(a) < key(b) ? -1 :
      key(a) > key(b)                     ? 1 :
                                            0;
  const sorted = [...kernels].sort((a, b) => (down ? -order(a, b) : order(a, b)) || b.time - a.time);
  const titles = columns.map(c => c.title), most = kernels.reduce((top, k) => Math.max(top, k.time), 0),
        rows = list => list.map(k => kernelRow(k, most)), body = el("tbody", {}, rows(sorted.slice(0, ROWS_AT_FIRST)));
  const head =
      el("tr", {},
         columns.map(
             c => el(
                 "th", {
                   scope: "col",
                   class: c.text || c.left ? "" : "num",
                   "aria-sort": c === column ? (down ? "descending" : "ascending") : "none"
                 },
                 el("button",
                    {type: "button", "data-sort": c.id, onclick: () => resort(c.id, c === column ? !down : !c.text)},
                    c.title,
                    el("span", {class: "arrow", "aria-hidden": "true"}, c === column ? (down ? " ▾" : " ▴") : "")))));
  const table = asCards(el("table", {class: "kernels"}, el("thead", {}, head), body), titles);
  if (sorted.length <= ROWS_AT_FIRST) return table;
  const more =
      el("button", {
        type: "button",
        onclick: () => {
          body.append(...rows(sorted.slice(ROWS_AT_FIRST)));
          asCards(table, titles);
          more.remove();
        }
      },
         "Show all " + number(sorted.length) + " kernels");
  return [table, more];
}

/* What launches can be chosen by: how a launch is asked, and what it says. */
const filters = [
  {
    id: "device",
    title: "Device",
    of: l => [String(l.device)],
    say: (v, l) => v + (deviceOf(l) ? " " + text(deviceOf(l)) : "")
  },
  {
    id: "stream",
    title: "Stream",
    of: l => [String(l.stream)],
    say: (v, l) => v + (text(l.streamName) ? " " + text(l.streamName) : "")
  },
  {id: "nvtx", title: "NVTX range", of: l => data.paths[l.path].flat().map(text), say: v => v},
  {id: "rank", title: "Process", of: l => [String(l.session)], say: v => sessionLabel(data.sessions[Number(v)])},
];

function filterOptions(filter) {
  const seen = new Map();
  for (const launch of launches)
    for (const value of filter.of(launch))
      if (!seen.has(value)) seen.set(value, filter.say(value, launch));
  return seen;
}

function chosen(query) {
  const words = (query.get("name") || "").toLowerCase();
  return launches.filter(
      launch => launch.name.toLowerCase().includes(words) &&
          filters.every(f => !query.get(f.id) || f.of(launch).includes(query.get(f.id))));
}

/* The place of a part of a kernel's name. */
function nameFilter(query, changed) {
  const search = el("input", {
    type: "search",
    placeholder: "Part of a kernel's name",
    "aria-label": "Kernel name",
    value: query.get("name") || "",
    id: "filter-name",
    oninput: () => {
      setQuery("name", search.value);
      changed();
    }
  });
  return search;
}

function filterBar(query, changed) {
  const search = nameFilter(query, changed);
  const selects = filters.map(f => {
    const options = filterOptions(f);
    if (options.size < (f.id === "nvtx" ? 1 : 2)) return null;
    const select =
        el("select", {
          id: "filter-" + f.id,
          onchange: () => {
            setQuery(f.id, select.value);
            changed();
          }
        },
           el("option", {value: ""}, "all"), [...options].map(([value, say]) => el("option", {value}, say)));
    select.value = query.get(f.id) || "";
    return el("label", {}, f.title, " ", select);
  });
  return el("div", {class: "filters"}, el("label", {}, "Name ", search), selects);
}

const fact = (title, value, more) =>
    el("div", {class: "fact"}, el("span", {}, title), el("b", {}, value), more && [" ", el("small", {}, more)]);

function sessionFacts(kernels, total) {
  const seen = data.sessions.reduce((sum, s) => sum + s.seen, 0),
        took = data.sessions.reduce((sum, s) => sum + (s.took || 0), 0);
  const passes = data.sessions.reduce((sum, s) => sum + s.passes, 0), count = countOf(launches),
        untimed = untimedOf(launches), saved = kernels.reduce((sum, k) => sum + k.savedTime, 0);
  return el(
      "div", {class: "facts"},
      fact("Time on the GPU", time(untimed < count ? total : null), untimedText(count, untimed)),
      fact("Launches", number(count), seen > count ? "of " + number(seen) + " seen" : null),
      fact("Kernels", number(kernels.length)),
      fact("Could be saved", total ? percent(100 * saved / total) : "n/a", "by the best rule of each kernel"),
      fact("Profiling", time(took), number(passes) + " passes"));
}

function heading() {
  const names = [...new Set(data.sessions.map(s => text(s.name)))].join(", "), devices = new Map();
  for (const s of data.sessions)
    for (const d of s.devices)
      devices.set(
          text(d[1]) + ", " + text(d[2]) + ", CC " + d[3] + ", " + d[4] + " SMs", (devices.get(text(d[1])) || 0) + 1);
  const s = data.sessions[0];
  return el(
      "header", {class: "title"}, el("h1", {}, names), el("p", {class: "dim"}, [...devices.keys()].join("; ")),
      el("p", {class: "dim command", title: text(s.command)}, text(s.command), text(s.host) && " on " + text(s.host),
         s.start ? ", " + new Date(s.start).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "",
         data.sessions.length > 1 ? "; " + data.sessions.length + " processes" : ""),
      data.sessions.some(x => !x.complete) &&
          el("p", {class: "warning"}, "The program was killed or still runs: the session is incomplete."),
      data.full.length < launches.length &&
          el("p", {class: "dim"},
             number(data.full.length) + " of " + number(launches.length) +
                 (launches.some(l => l.count > 1) ? " entries" : " launches") +
                 " are shown in full: the median by duration of each kernel and shape, for those with the most time. --brief-above 0 shows all in full."));
}

function overview(query) {
  if (!launches.length)
    return el(
        "div", {}, heading(),
        el("p", {}, "No launch was profiled.",
           data.sessions.some(s => s.timeline) && [" ", link("/timeline", {}, "Look at the timeline.")]),
        sessionTables());
  const all = kernelsOf(launches), table = el("div", {class: "table-place first-table"}), map = el("div"),
        first = el("div"), count = el("span", {class: "dim"});
  const update = () => {
    const q = readPlace().query, list = chosen(q), sums = kernelsOf(list, all.total), sort = q.get("sort") || "time",
          down = q.get("order") !== "up";
    count.replaceChildren(
        list.length < launches.length ?
            number(countOf(list)) + " of " + number(countOf(launches)) + " launches, " + time(sums.total) :
            "");
    table.replaceChildren(...[kernelTable(sums.kernels, sort, down, (by, isDown) => {
                            setQuery("sort", by);
                            setQuery("order", isDown ? "" : "up");
                            update();
                            table.querySelector(`[data-sort=${by}]`).focus();
                          })].flat());
    map.replaceChildren(
        sums.kernels.length ?
            kernelMap(overviewPoints(sums.kernels), list, "Area is time on the GPU. A bubble leads to its kernel.") :
            "");
    first.replaceChildren(sums.kernels.length ? fixFirst(sums.kernels) : "No launch matches.");
  };
  const body =
      el("div", {class: "overview"}, heading(), sessionFacts(all.kernels, all.total),
         el("div", {class: "two"}, card("Fix first", first), card("All kernels", map)),
         card("Kernels", el("div", {class: "filters-line"}, filterBar(query, update), count), table));
  update();
  return body;
}
