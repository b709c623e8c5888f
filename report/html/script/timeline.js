/* ---- timeline: rows of what ran when, drawn on a canvas ---- */

const ROW = 22, AXIS = 26, KERNEL = 0, COPY = 1, MEMSET = 2, RANGE = 3, OWN = 4, SAMPLES = 5;
const drawnKinds = ["kernel", "copy", "memset", "NVTX range", "held up by kprof"];

/* The launch of the report that an activity is. */
const launchesByOrdinal = new Map(launches.map(l => [l.session + "/" + l.ordinal, l]));

/* Unpacks the numbers of timeline.c: rows with their events, by start. */
function timelineRows(session) {
  const {rows, events} = session.timeline, device = d => (session.devices.find(x => x[0] === d) || [])[1];
  const list = rows.map(([kind, dev, context, stream, thread, lane]) => {
    const again = lane ? " (" + (lane + 1) + ")" : "";
    const label = kind === OWN ? "kprof" : kind === RANGE ? "Thread " + thread : "Stream " + stream;
    const tip = kind === OWN ? "times at which kprof held the program up" :
        kind === RANGE       ? "NVTX ranges of thread " + thread :
                               "device " + dev + " " + (device(dev) ? text(device(dev)) : "") + ", context " + context;
    return {kind, device: dev, context, stream, thread, lane, label: label + again, tip, events: []};
  });
  let at = 0, end = 0;
  for (let i = 0; i < events.length; i += 6) {
    at += events[i + 3];
    const kind = events[i + 1], length = events[i + 4], copies = kind === COPY || kind === MEMSET;
    const launch = copies || events[i + 5] < 0 ? null : launchesByOrdinal.get(session.at + "/" + events[i + 5]);
    list[events[i]].events.push({
      kind,
      name: kind === OWN ? "kprof" : text(events[i + 2]),
      start: at,
      end: at + length,
      bytes: copies ? events[i + 5] : null,
      launch
    });
    end = Math.max(end, at + length);
  }
  const order = r => [r.kind === OWN ? 2 : r.kind === RANGE ? 1 : 0, r.device, r.context, r.stream, r.thread, r.lane];
  list.sort((a, b) => {
    const x = order(a), y = order(b), i = x.findIndex((v, k) => v !== y[k]);
    return i < 0 ? 0 : x[i] - y[i];
  });
  return {rows: [...list, ...sampleRows(list)], end};
}

/* Rows of what was sampled while launches were repeated, at the times of the program's own execution. */
function sampleRows(rows) {
  const byMetric = new Map();
  for (const row of rows)
    for (const e of row.events) {
      const full = e.launch && e.launch.full >= 0 ? data.full[e.launch.full] : null;
      for (const [, ...series] of full ? full.series : [])
        for (const [label, metric, start, interval, values] of series) {
          if (!byMetric.has(metric)) byMetric.set(metric, {label: text(label), metric, events: [], most: 0});
          const to = byMetric.get(metric);
          values.forEach((value, i) => {
            const at = e.start + start + (i - 1) * interval;
            to.events.push({kind: SAMPLES, name: to.label, start: at, end: at + interval, value, launch: e.launch});
            to.most = Math.max(to.most, value || 0);
          });
        }
    }
  return [...byMetric.values()].map(r => {
    const [name, unit] = data.metrics[r.metric].map(text);
    r.events.sort((a, b) => a.start - b.start);
    return {kind: SAMPLES, device: -1, label: r.label, tip: name, unit, most: r.most, events: r.events};
  });
}

/* The first event of a row that ends after a time. */
function firstBehind(events, ns) {
  let low = 0, high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].end <= ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

function tipOfEvent(row, e) {
  if (e.kind === SAMPLES) return [e.name, quantity(e.value, row.unit) + " at " + time(e.start)];
  return [
    e.kind === KERNEL ? toldName(e.name) : e.name,
    drawnKinds[e.kind] + ", " + time(e.end - e.start) + ", from " + time(e.start) + " to " + time(e.end),
    e.bytes === null ? null : quantity(e.bytes, "byte"), e.launch ? "launch " + e.launch.id + " of the report" : null
  ].filter(Boolean);
}

/* Paper is light, whatever the screen is. A drawing gets its colours when it is drawn, before the printing begins. */
for (const [event, paper] of [["beforeprint", true], ["afterprint", false]])
  addEventListener(event, () => {
    document.documentElement.classList.toggle("paper", paper);
    if (drawTimeline) drawTimeline();
  });
let drawTimeline = null; /* draws the timeline that is shown */

/* The colours of the page at present. */
function timelineColors() {
  const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue("--" + name).trim();
  return {
    kinds: [color("time"), color("memory"), color("compute"), color("good"), color("cold"), color("hot")],
    line: color("line"),
    ink: color("ink"),
    dim: color("dim"),
    back: color("card"),
    gap: color("wrn-back"),
    edge: color("wrn"),
    text: color("page")
  };
}

/* A step of 1, 2 or 5 that fits at most so many times. */
function axisStep(span, most) {
  let step = Math.pow(10, Math.floor(Math.log10(Math.max(span / most, 1))));
  for (const factor of [1, 2, 5, 10])
    if (step * factor * most >= span) return step * factor;
  return step * 10;
}

/* The time of a place on the axis, with the digits that distinguish two ticks. */
function tickText(ns, step) {
  const scale = scaleOf("ns", Math.max(Math.abs(ns), step)),
        digits = Math.max(0, -Math.floor(Math.log10(step / scale.divisor)));
  return (ns / scale.divisor).toFixed(Math.min(9, digits)) + " " + scale.unit;
}

function drawAxis(c, view, width, height, colors) {
  const span = view.to - view.from, step = axisStep(span, Math.max(2, width / 130));
  c.strokeStyle = colors.line;
  c.fillStyle = colors.dim;
  for (let ns = Math.ceil(view.from / step) * step; ns <= view.to; ns += step) {
    const x = (ns - view.from) / span * width;
    c.beginPath();
    c.moveTo(x, AXIS - 6);
    c.lineTo(x, height);
    c.stroke();
    c.fillText(tickText(ns, step), x + 3, AXIS - 9);
  }
}

/* Draws the events of a row. What is thinner than a pixel is a pixel wide, and shares it with what follows. */
function drawRow(c, row, y, view, width, colors, chosen) {
  const scale = width / (view.to - view.from);
  let drawn = -1;
  for (let i = firstBehind(row.events, view.from); i < row.events.length; i++) {
    const e = row.events[i];
    if (e.start >= view.to) break;
    const x = Math.max(-1, (e.start - view.from) * scale), end = Math.min(width + 1, (e.end - view.from) * scale);
    if (end < drawn && e !== chosen) continue;
    const wide = Math.max(1, end - x);
    c.fillStyle = colors.kinds[e.kind];
    if (e.kind === SAMPLES) {
      const high = row.most ? (ROW - 4) * Math.max(0, e.value || 0) / row.most : 0;
      c.fillRect(x, y + ROW - 2 - high, wide, high);
    } else {
      c.fillRect(x, y + 2, wide, ROW - 4);
    }
    drawn = Math.max(drawn, Math.floor(x + wide));
    if (wide > 40 && e.kind !== SAMPLES) drawName(c, e, x, y, wide, colors);
    if (e === chosen) {
      c.strokeStyle = colors.ink;
      c.lineWidth = 2;
      c.strokeRect(x, y + 2, Math.max(2, wide), ROW - 4);
      c.lineWidth = 1;
    }
  }
}

function drawName(c, e, x, y, wide, colors) {
  c.save();
  c.beginPath();
  c.rect(Math.max(0, x), y, wide - 4 + Math.min(0, x), ROW);
  c.clip();
  c.fillStyle = e.kind === OWN ? colors.ink : colors.text;
  c.fillText(e.kind === KERNEL ? shortName(e.name, wide / 7) : e.name, Math.max(0, x) + 4, y + ROW - 7);
  c.restore();
}

/* Marks the largest gaps of devices over the rows of their streams. */
function drawGaps(c, rows, gaps, view, width, colors) {
  const scale = width / (view.to - view.from);
  for (const gap of gaps) {
    const x = (gap.start - view.from) * scale, wide = Math.max(1, (gap.end - gap.start) * scale);
    if (x > width || x + wide < 0) continue;
    rows.forEach((row, i) => {
      if (row.kind !== KERNEL || row.device !== gap.device) return;
      c.fillStyle = colors.gap;
      c.fillRect(x, AXIS + i * ROW, wide, ROW);
      c.fillStyle = colors.edge;
      c.fillRect(x, AXIS + i * ROW, 1, ROW);
      c.fillRect(x + wide - 1, AXIS + i * ROW, 1, ROW);
    });
  }
}

/* The gaps of all devices, the longest first. */
function gapsOf(session) {
  return session.timeline.devices
      .flatMap(
          ([device, span, , , , , gaps]) => gaps.map(([start, end, ns, copying, before, next, range, ordinal]) => ({
                                                       device,
                                                       start,
                                                       end,
                                                       ns,
                                                       share: span ? 100 * ns / span : 0,
                                                       copying,
                                                       before: text(before),
                                                       next: text(next),
                                                       range: text(range),
                                                       launch: launchesByOrdinal.get(session.at + "/" + ordinal)
                                                     })))
      .sort((a, b) => b.ns - a.ns);
}

/* The drawing: a canvas that is moved and zoomed by wheel, pointer and keys. */
/* What is shown at first: all, or, if kprof held the program up for most of it, the longer part before or after. */
function firstView(rows, all) {
  const held = rows.flatMap(row => row.events.filter(e => e.kind === OWN));
  const long = held.find(e => 2 * (e.end - e.start) > all.to);
  if (!long) return {...all};
  const before = {from: 0, to: long.start}, behind = {from: long.end, to: all.to};
  return before.to >= behind.to - behind.from ? before : behind;
}

function timelineView(session, gaps) {
  const {rows, end} = timelineRows(session), all = {from: 0, to: Math.max(1, end)};
  const canvas = el("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label":
        "Timeline: arrows left and right move, plus and minus zoom, Home shows all, up and down choose a row, " +
        "n and p the next and previous activity of it, Enter opens its launch"
  });
  const said = el("p", {class: "timeline-said", "aria-live": "polite"}), scope = el("span", {class: "dim"});
  const state = {view: firstView(rows, all), row: 0, event: -1, drag: null};
  const height = AXIS + rows.length * ROW + 4;

  const draw = () => {
    const width = canvas.clientWidth, ratio = devicePixelRatio || 1, c = canvas.getContext("2d"),
          colors = timelineColors();
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    c.scale(ratio, ratio);
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = colors.back;
    c.fillRect(0, 0, width, height);
    drawGaps(c, rows, gaps, state.view, width, colors);
    drawAxis(c, state.view, width, height, colors);
    rows.forEach(
        (row, i) => drawRow(
            c, row, AXIS + i * ROW, state.view, width, colors, i === state.row ? row.events[state.event] : null));
    scope.textContent = time(state.view.from) + " to " + time(state.view.to) + " of " + time(all.to);
    canvas.dataset.from = state.view.from;
    canvas.dataset.to = state.view.to;
  };
  const show = (from, to) => {
    const span = Math.min(all.to, Math.max(10, to - from));
    from = Math.max(0, Math.min(all.to - span, from));
    state.view = {from, to: from + span};
    draw();
  };
  const zoom = (factor, around) => {
    const {from, to} = state.view;
    show(around - (around - from) * factor, around + (to - around) * factor);
  };
  const say = (row, e) => {
    said.replaceChildren(
        tipOfEvent(row, e).join("; "), " ",
        e.launch ? link("/launch/" + e.launch.index, {}, "Look at the launch") : "");
  };
  const choose = (row, event) => {
    state.row = Math.max(0, Math.min(rows.length - 1, row));
    const list = rows[state.row].events;
    state.event = list.length ? Math.max(0, Math.min(list.length - 1, event)) : -1;
    const e = list[state.event];
    if (!e) return draw();
    const {from, to} = state.view, span = to - from;
    if (e.end < from || e.start > to) show(e.start - span / 2, e.start + span / 2);
    say(rows[state.row], e);
    draw();
  };
  const placeOf = event => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const ns = state.view.from + x / box.width * (state.view.to - state.view.from), row = Math.floor((y - AXIS) / ROW);
    return {ns, row, near: 3 / box.width * (state.view.to - state.view.from)};
  };
  const find = ({ns, row, near}) => {
    const list = rows[row] ? rows[row].events : [], i = firstBehind(list, ns - near);
    return list[i] && list[i].start <= ns + near ? i : -1;
  };
  const keys = {
    ArrowLeft: () => show(
        state.view.from - (state.view.to - state.view.from) / 5, state.view.to - (state.view.to - state.view.from) / 5),
    ArrowRight: () => show(
        state.view.from + (state.view.to - state.view.from) / 5, state.view.to + (state.view.to - state.view.from) / 5),
    "+": () => zoom(0.5, (state.view.from + state.view.to) / 2),
    "=": () => zoom(0.5, (state.view.from + state.view.to) / 2),
    "-": () => zoom(2, (state.view.from + state.view.to) / 2),
    Home: () => show(0, all.to),
    ArrowDown: () =>
        choose(state.row + 1, firstBehind((rows[state.row + 1] || rows[state.row]).events, state.view.from)),
    ArrowUp: () => choose(state.row - 1, firstBehind((rows[state.row - 1] || rows[state.row]).events, state.view.from)),
    n: () => choose(state.row, state.event + 1),
    p: () => choose(state.row, state.event - 1),
    Enter: () => {
      const e = rows[state.row] && rows[state.row].events[state.event];
      if (e && e.launch) location.hash = "#/launch/" + e.launch.index;
    }
  };
  canvas.addEventListener("keydown", event => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.deltaX || event.deltaY) / canvas.clientWidth * (state.view.to - state.view.from);
      show(state.view.from + by, state.view.to + by);
    } else {
      zoom(Math.pow(1.0015, event.deltaY), placeOf(event).ns);
    }
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => {
    state.drag = {x: event.clientX, ...state.view, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    const d = state.drag;
    if (d) {
      const by = (d.x - event.clientX) / canvas.clientWidth * (d.to - d.from);
      d.moved = d.moved || Math.abs(d.x - event.clientX) > 3;
      if (d.moved) show(d.from + by, d.to + by);
    }
    const place = placeOf(event), i = find(place);
    tips.set(
        canvas,
        i < 0 ? [rows[place.row] ? rows[place.row].label + ": " + rows[place.row].tip : time(place.ns)] :
                tipOfEvent(rows[place.row], rows[place.row].events[i]));
  });
  canvas.addEventListener("pointerup", event => {
    const place = placeOf(event), i = find(place), moved = state.drag && state.drag.moved;
    state.drag = null;
    if (!moved && i >= 0) choose(place.row, i);
  });
  tips.set(canvas, ["wheel: zoom; drag: move"]);
  drawTimeline = draw;
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  canvas.style.height = height + "px";
  const button = (title, run) => el("button", {type: "button", onclick: run}, title);
  const body =
      el("div", {},
         el("div", {class: "timeline-tools"}, button("Zoom in", keys["+"]), button("Zoom out", keys["-"]),
            button("Earlier", keys.ArrowLeft), button("Later", keys.ArrowRight), button("Show all", keys.Home), scope),
         el("div", {class: "timeline"},
            el("div", {class: "timeline-labels"},
               rows.map(row => el("div", {title: row.label + ": " + row.tip}, row.label))),
            canvas),
         said);
  return {body, show, rows};
}

function legend() {
  return el(
      "p", {class: "timeline-legend"},
      [...drawnKinds, "samples"].map((kind, i) => [el("i", {class: "kind" + i}), kind, " "]),
      el("i", {class: "kind-gap"}), "gap");
}

function gapTable(session, gaps, show) {
  if (!gaps.length) return el("p", {}, "There is no gap between kernels.");
  const row = gap => el(
      "tr", {}, el("td", {class: "num"}, time(gap.ns)), el("td", {class: "num"}, percent(gap.share)),
      el("td", {class: "num"}, time(gap.copying)),
      session.timeline.devices.length > 1 ? el("td", {}, String(gap.device)) : null, el("td", {}, rowName(gap.before)),
      el("td", {}, gap.launch ? link("/launch/" + gap.launch.index, {}, rowName(gap.next)) : rowName(gap.next)),
      el("td", {}, gap.range || "–"),
      el("td", {},
         el("button", {
           type: "button",
           "aria-label": "Show the gap of " + time(gap.ns),
           onclick: () => show(gap.start - (gap.end - gap.start), gap.end + (gap.end - gap.start))
         },
            "Show")));
  const head = [
    "Gap", "Of the time", "Copying", session.timeline.devices.length > 1 ? "Device" : null, "Before", "Launched next",
    "In range", ""
  ];
  const titles = head.filter(h => h !== null);
  return asCards(
      el("table", {class: "plain timeline-gaps"},
         el("thead", {}, el("tr", {}, titles.map((h, i) => el("th", {scope: "col", class: i < 3 ? "num" : ""}, h)))),
         el("tbody", {}, gaps.map(row))),
      titles);
}

function numbersTable(head, rows) {
  const row = ([first, ...rest]) =>
      el("tr", {}, el("th", {scope: "row"}, first), rest.map(cell => el("td", {class: "num"}, cell)));
  return asCards(
      el("table", {class: "plain"},
         el("thead", {}, el("tr", {}, head.map((h, i) => el("th", {scope: "col", class: i ? "num" : ""}, h)))),
         el("tbody", {}, rows.map(row))),
      head);
}

function timelineFacts(session) {
  return session.timeline.devices.map(
      ([device, span, busy, held, kernels, gaps]) =>
          el("div", {class: "facts"}, fact("Device " + device, time(span), "from the first to the last activity"),
             fact("Kernels ran", percent(span ? 100 * busy / span : NaN), time(busy)),
             fact("No kernel ran", percent(span ? 100 * (span - busy) / span : NaN), time(span - busy)),
             fact("Kernels", number(kernels), number(gaps) + (gaps === 1 ? " gap between them" : " gaps between them")),
             held ? fact("Left out", time(held), "in which kprof held the program up") : null));
}

function timelineOf(session) {
  const t = session.timeline, gaps = gapsOf(session), view = timelineView(session, gaps), drawn = t.events.length / 6;
  const total = t.kernels.reduce((sum, k) => sum + k[2], 0);
  return el(
      "div", {}, timelineFacts(session),
      card(
          "What ran when", legend(), view.body,
          drawn < t.total &&
              el("p", {class: "warning"},
                 "The first " + number(drawn) + " of " + number(t.total) +
                     " activities are drawn. kprof report --trace-json writes all of them, for Perfetto."),
          t.dropped > 0 &&
              el("p", {class: "warning"},
                 number(t.dropped) + " activities found no room when the timeline was recorded."),
          el("p", {class: "hint"},
             "Times are of the program's own execution, from the first activity on. Wheel: zoom; drag: move. By keys, once the drawing has the focus: left and right move, + and - zoom, Home shows all; up and down choose a row, n and p the next and previous activity in it, Enter opens its launch.")),
      card(
          "Largest gaps between kernels",
          el("div", {class: "table-place"},
             gapTable(
                 session, gaps,
                 (from, to) => {
                   view.show(from, to);
                   view.body.scrollIntoView({block: "center"});
                 }))),
      card(
          "Streams",
          el("div", {class: "table-place"},
             numbersTable(
                 ["Stream", "Kernels", "Copies", "Memsets", "Copied", "Kernel time", "Busy"],
                 t.streams.map(
                     ([device, context, stream, kernels, copies, sets, bytes, kernelNs, busy]) =>
                         ["Device " + device + ", context " + context + ", stream " + stream, number(kernels),
                          number(copies), number(sets), quantity(bytes, "byte"), time(kernelNs), time(busy)])))),
      card(
          "Kernels by time",
          el("div", {class: "table-place"},
             numbersTable(
                 ["Kernel", "Share", "Total", "Count", "Mean", "Min", "Max"],
                 t.kernels.map(
                     ([name, n, sum, least, most]) =>
                         [rowName(text(name)), percent(total ? 100 * sum / total : NaN), time(sum), number(n),
                          time(sum / n), time(least), time(most)]))),
          t.ofKernels > t.kernels.length &&
              el("p", {class: "hint"},
                 "The first " + number(t.kernels.length) + " of " + number(t.ofKernels) + " kernels.")));
}

function timelinePage(_, query) {
  const having = data.sessions.filter(s => s.timeline), place = el("div");
  const title = el("header", {class: "title"}, el("h1", {}, "Timeline"));
  if (!having.length)
    return el(
        "div", {}, title,
        el("p", {class: "no-times"},
           "This session has no times of the program's own execution: durations are those of profiled launches. Run the program with --timeline to see when its kernels, copies and NVTX ranges ran."));
  const first = having.find(s => String(s.at) === query.get("rank")) || having[0];
  const draws = at => {
    setQuery("rank", at === String(having[0].at) ? "" : at);
    place.replaceChildren(timelineOf(having.find(s => String(s.at) === at)));
  };
  place.replaceChildren(timelineOf(first));
  return el(
      "div", {}, title,
      having.length < data.sessions.length &&
          el("p", {class: "hint no-times"},
             number(data.sessions.length - having.length) + " of " + number(data.sessions.length) +
                 " sessions have no times of the program's own execution, and are not shown."),
      having.length > 1 && sessionChoice(having, "", String(first.at), draws), place);
}
