/* ---- advice ---- */

const severityNames = {
  OPT: "Optimization",
  WRN: "Warning",
  INF: "Note"
};

function adviceNode([severity, rule, message, speedup, global]) {
  const [id, , about] = data.rules[rule].map(text);
  return el(
      "div", {class: "advice " + severity.toLowerCase(), id: "rule-" + id, "data-rule": id},
      el("p", {class: "advice-head"}, el("b", {}, severityNames[severity] || severity), " ",
         el("span", {title: about}, id),
         speedup !== null ?
             el("span", {class: "speedup"}, (global ? "saves up to " : "of its unit up to ") + percent(speedup)) :
             null),
      el("p", {}, text(message)));
}

/* ---- all launches of a kernel ---- */

/* The median of a number of launches; one that stands for several counts as these (page_summary.c). */
function medianOf(list, valueOf) {
  const sorted = [...list].sort((a, b) => valueOf(a) - valueOf(b)), n = countOf(sorted);
  const ranked = before => {
    let i = 0;
    for (; i + 1 < sorted.length && before >= sorted[i].count; i++) before -= sorted[i].count;
    return valueOf(sorted[i]);
  };
  return n ? (ranked(Math.floor((n - 1) / 2)) + ranked(Math.floor(n / 2))) / 2 : 0;
}

const shapesOf = list => groupBy(list, l => String(l.shape));

/* Launches far from the median of their shape, with how far: beyond a tenth of it, and beyond five times the median
 * distance. Launches of other shapes have other work. */
function outliersOf(list) {
  const out = new Map();
  for (const like of shapesOf(list)) {
    const middle = medianOf(like, l => l.mean), distance = medianOf(like, l => Math.abs(l.mean - middle));
    for (const l of like)
      if (Math.abs(l.mean - middle) > Math.max(middle / 10, 5 * distance)) out.set(l, Math.abs(l.mean - middle));
  }
  return out;
}

/* A launch in the strip. `all`: {most, step, out, here}. */
function launchBar(l, i, {most, step, out, here}) {
  const height = STRIP.height, h = Math.max(2, (height - 4) * l.mean / most), go = () => {
    location.hash = "/launch/" + l.index;
  };
  const tip = [
    "launch " + l.id + ": " + time(l.ns) + (l.count > 1 ? ", the mean of " + number(l.count) : ""),
    shapeText(l.shape) + ", stream " + l.stream,
    ...(data.sessions.length > 1 ? [sessionName(data.sessions[l.session])] : []),
    ...(out.has(l) ? ["outlier among those of its shape"] : [])
  ];
  const node = draw("rect", {
    class: "launch" + (l === here ? " here" : "") + (out.has(l) ? " outlier" : "") + (l.full < 0 ? " brief" : ""),
    x: i * step + Math.min(1, step * 0.1),
    y: height - h,
    width: Math.max(0.6, step - Math.min(2, step * 0.2)),
    height: h,
    tip,
    role: "link",
    "aria-label": tip.join(", "),
    onclick: go
  });
  node.addEventListener("keydown", event => {
    if (event.key === "Enter") go();
  });
  return node;
}

const STRIP = {
  width: 1000,
  height: 86
};

/* Names the outliers, those furthest from the median of their shape first. */
function outlierLinks(out, shapes) {
  const named = [...out].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return [
    out.size === 1 ? "; 1 outlier" : "; " + number(out.size) + " outliers",
    shapes < 2         ? ": " :
        out.size === 1 ? " among its shape: " :
                         " among their shapes: ",
    named.map(([l], i) => [i ? ", " : "", link("/launch/" + l.index, {}, "launch " + l.id), " " + time(l.mean)]),
    out.size > named.length ? " …" : ""
  ];
}

/* The strip's content in words. */
function stripHint(list, out) {
  const timed = list.filter(l => l.ns !== null), times = timed.map(l => l.ns).sort((a, b) => a - b),
        shapes = shapesOf(list).length;
  if (!timed.length) return el("p", {class: "hint"}, "None has a duration.");
  return el(
      "p", {class: "hint"},
      "Median " + time(medianOf(timed, l => l.ns)) + ", " + time(times[0]) + " to " + time(times[times.length - 1]) +
          (shapes > 1 ? ", of " + number(shapes) + " shapes" : ""),
      out.size ? outlierLinks(out, shapes) : null);
}

function launchStrip(launch) {
  const list = launches.filter(l => l.name === launch.name);
  if (list.length < 2) return null;
  const out = outliersOf(list.filter(l => l.ns !== null)), svg = draw("svg", {
                                                             viewBox: `0 0 ${STRIP.width} ${STRIP.height}`,
                                                             preserveAspectRatio: "none",
                                                             class: "strip",
                                                             role: "group",
                                                             "aria-label": "Duration by launch"
                                                           });
  const at = list.indexOf(launch), all = {
    most: list.reduce((most, l) => Math.max(most, l.mean), 1),
    step: Math.min(STRIP.width / list.length, 26),
    out,
    here: launch
  };
  const bars = list.map((l, i) => launchBar(l, i, all));
  svg.append(...bars);
  rove(svg, [bars]);
  return card(
      null,
      el("div", {class: "strip-head"}, el("h2", {}, number(countOf(list)) + " launches of this kernel"),
         el("span", {}, at > 0 ? link("/launch/" + list[at - 1].index, {rel: "prev"}, "‹ previous") : null, " ",
            el("b", {}, "launch " + launch.id), " ",
            at + 1 < list.length ? link("/launch/" + list[at + 1].index, {rel: "next"}, "next ›") : null)),
      svg, stripHint(list, out));
}

/* ---- verdict ---- */

function verdictCard(launch, full) {
  const [, bound, compute, memory, waves, stall, stallShare, gains] =
      full && full.verdict.length ? full.verdict : [0, 0, launch.compute, launch.memory, null, 0, null, []];
  const meter = (name, value, kind) => value === null ?
      null :
      el("div", {class: "meter"}, el("span", {}, name), bar(value, kind), el("b", {}, percent(value)));
  const what = full && full.verdict.length ? text(bound) : launch.bound;
  return card(
      null,
      el("div", {class: "verdict"},
         el("div", {}, el("span", {class: "dim"}, "Duration"),
            el("b", {class: "big"}, launch.ns === null ? "n/a" : time(launch.ns))),
         el("div", {}, el("span", {class: "dim"}, "Bound by"), el("b", {class: "big"}, what || "not known")),
         el("div", {class: "meters"}, meter("Compute", compute, "compute"), meter("Memory", memory, "memory"),
            el("p", {class: "hint"},
               [
                 waves !== null ? number(waves) + " waves of blocks" : null,
                 text(stall) ? "warps wait most for " + text(stall) + " (" + percent(stallShare) + ")" : null
               ].filter(Boolean)
                   .join("; "))),
         gains.length ? el("div", {class: "gains"}, el("span", {class: "dim"}, "Would save up to"),
                           gains.map(
                               ([rule, gain]) =>
                                   el("div", {}, el("b", {}, percent(gain)), " ",
                                      link(
                                          "/launch/" + launch.index + "/" + text(data.rules[rule][0]), {},
                                          text(data.rules[rule][0]))))) :
                        null));
}

/* ---- sections ---- */

/* Tables that are of places in the source, by what their metrics begin with. */
const hotspotTables = [["smsp__pcsamp_warps_issue_stalled_", "samples"], ["inst_executed", "instructions"]];

/* A table of metrics; of hotspots, the lines that have most of them, with the metrics folded away. */
function tableBlock(full, list) {
  const cells = list.map(c => cellIn(full, c)), table = tableOf(cells);
  const [, by] = hotspotTables.find(([begin]) => cells.length && cells[0].name.startsWith(begin)) || [];
  const lines = by && full.source.length ? hotspotTable(full, by) : null;
  return lines ?
      [
        lines,
        el("details", {},
           el("summary", {}, cells.length === 1 ? "1 metric" : number(cells.length) + " metrics of the whole kernel"),
           table)
      ] :
      table;
}

const makers = {
  metrics: (full, cells) => metricsBlock(full, cells),
  table: tableBlock,
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
      if (!same) parts.push(group = {nodes: [], drawn: false, wide: false});
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
    return {
      title: text(title),
      advice,
      node:
          el("section", {class: "card section quiet", id: "section-" + at}, el("b", {}, text(title)),
             el("span", {class: "dim"}, ": " + blocks.map(b => text(b[1])).join(" ")))
    };
  if (!advice.length && idle)
    return {
      title: text(title),
      advice,
      node:
          el("details", {class: "card section quiet", id: "section-" + at},
             el("summary", {}, text(title), el("span", {class: "dim"}, ": no work of this kind")),
             el("div", {class: "section-body"}, parts.map(p => el("div", {class: "wide"}, p.nodes))))
    };
  const folded = parts.length === 1 && parts[0].nodes.flat(3).filter(Boolean);
  if (folded && folded.length === 1 && folded[0].tagName === "DETAILS") folded[0].open = true;
  const alone = parts.filter(p => !p.wide).length === 1;
  const body =
      el("div", {class: "section-body"},
         parts.map(
             p =>
                 el("div",
                    {class: p.wide ? "wide" :
                         alone     ? "wide alone" :
                                     ""},
                    p.nodes)));
  return {
    title: text(title),
    advice,
    node:
        el("section", {class: "card section", id: "section-" + at}, el("h2", {}, text(title)),
           advice.length ? el("div", {class: "advices"}, advice.map(adviceNode)) : null, body)
  };
}

function launchFacts(launch) {
  const s = data.sessions[launch.session], facts = [
    shapeText(launch.shape), "device " + launch.device,
    "stream " + launch.stream + (text(launch.streamName) ? " " + text(launch.streamName) : ""),
    "context " + launch.context, "CC " + launch.cc, launch.passes + " passes",
    ...(launch.count > 1 ? [number(launch.count) + " launches like this one"] : []),
    ...(launch.graph ? ["graph " + launch.graph + ", node " + launch.node] : []),
    ...(data.sessions.length > 1 ? [sessionName(s)] : [])
  ];
  const stack = data.stacks[launch.stack];
  return el(
      "div", {}, el("p", {class: "dim"}, facts.join(" · ")),
      pathText(launch) && el("p", {class: "dim"}, "NVTX: " + pathText(launch)),
      text(launch.note) && el("p", {class: "warning"}, text(launch.note)),
      stack.length ? el("details", {}, el("summary", {}, "Call stack"),
                        el("ol", {class: "stack"},
                           stack.map(
                               ([name, file, line, , module]) =>
                                   el("li", {}, text(name) || text(module),
                                      el("span", {class: "dim"}, text(file) ? " " + text(file) + ":" + line : ""))))) :
                     null);
}

/* Another launch of the kernel, in full; of the same shape, if there is one. */
function likeness(launch) {
  const same = launches.filter(l => l.name === launch.name && l.full >= 0);
  return same.find(l => String(l.shape) === String(launch.shape)) || same[0];
}

function launchPage([index]) {
  const launch = launches[Number(index)];
  if (!launch) return el("p", {}, "There is no such launch.");
  const full = launch.full >= 0 ? data.full[launch.full] : null, lists = {advice: 0, roofs: 0, series: 0};
  const sections = full ? full.sections.map((s, i) => sectionNode(full, s, lists, i)) : [],
        other = full ? null : likeness(launch);
  const goTo = i => event => {
    event.preventDefault();
    const target = document.getElementById("section-" + i);
    target.scrollIntoView({block: "start"});
    target.setAttribute("tabindex", "-1");
    target.focus({preventScroll: true});
  };
  const contents =
      el("nav", {class: "contents", "aria-label": "Sections"},
         sections.map(
             (s, i) => el(
                 "a", {href: "#/launch/" + launch.index, onclick: goTo(i)}, s.title,
                 s.advice.filter(a => a[0] === "OPT").length ? el("span", {class: "count", title: "pieces of advice"},
                                                                  String(s.advice.filter(a => a[0] === "OPT").length)) :
                                                               null)));
  return el(
      "div", {},
      el("header", {class: "title"}, el("p", {}, link("/", {}, "All kernels"), " ›"),
         el("h1", {}, nameNode(launch.name)), launchFacts(launch)),
      el("p", {},
         full && full.source.length ? link("/source/" + launch.index, {class: "button"}, "Source and instructions") :
                                      null,
         " ", besideButton(launch)),
      verdictCard(launch, full), launchStrip(launch),
      full ? el("div", {class: "with-contents"}, contents, el("div", {class: "sections"}, sections.map(s => s.node))) :
             card(
                 "Not in full in this file",
                 el("p", {}, "The file has one launch of each kernel and shape in full. ",
                    other ?
                        [
                          "Look at ", link("/launch/" + other.index, {}, "launch " + other.id),
                          ", " + shapeText(other.shape) + "."
                        ] :
                        "None of this kernel has been chosen; kprof report shows it.")));
}
