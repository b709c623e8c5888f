/* ---- source ---- */

const sourceValues = {
  samples: "Samples",
  instructions: "Instructions",
  sectors: "Excess sectors",
  wavefronts: "Excess wavefronts",
  divergent: "Divergent branches"
};

/* Instructions of all functions of a launch, with their values and stalls. */
function instructionsOf(full) {
  const all = full.source.flatMap(part => {
    const code = data.codes[part.code];
    const list = code.instructions.map(
        ([offset, location, disassembly, ptx], i) => ({
          code,
          offset,
          location,
          ptx: ptx ? part.code + ":" + ptx : null,
          text: text(disassembly),
          stalls: [],
          values: Object.fromEntries(Object.entries(part.values).map(([name, values]) => [name, values[i]]))
        }));
    for (const [reason, ...pairs] of part.stalls)
      for (let i = 0; i < pairs.length; i += 2) list[pairs[i]].stalls.push([text(reason), pairs[i + 1]]);
    return list;
  });
  all.forEach((instruction, i) => {
    instruction.index = i;
  });
  return all;
}

/* The places of an instruction: the outermost call that inlines it, the calls in there, its own line. */
function chainOf({code, location}) {
  const chain = [];
  for (let at = code.locations[location]; at && chain.length < 64; at = code.locations[at[2]]) chain.unshift(at);
  return chain;
}

const sourceText = (file, line) => file[1] >= 0 ? text(file[1]).split("\n")[line - 1] || "" : "";

/* Rows of the code that is inlined into a line, a level deeper each time, the hottest first. */
function inlinedRows(instructions, depth, prefix, by) {
  const groups = new Map();
  for (const instruction of instructions) {
    const place = chainOf(instruction)[depth];
    if (!place) continue;
    const id = place[0] + ":" + place[1] + ":" + place[3];
    if (!groups.has(id))
      groups.set(id, {place, code: instruction.code, values: {}, stalls: new Map(), instructions: []});
    addTo(groups.get(id), instruction);
  }
  return [...groups.values()].sort((a, b) => (b.values[by] || 0) - (a.values[by] || 0)).flatMap((g, i) => {
    const [file, line, , name] = g.place, key = prefix + "/" + i, path = g.code.files[file];
    const row = {
      key,
      label: String(line),
      text: "  ".repeat(depth) + text(path[0]).split("/").pop() + ":" + line + "  in " + text(name) + "()  " +
          sourceText(path, line).trim(),
      value: g.values[by] || 0,
      values: g.values,
      stalls: g.stalls,
      members: g.instructions.map(x => String(x.index))
    };
    return [row, ...inlinedRows(g.instructions, depth + 1, key, by)];
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
  for (const [name, value] of Object.entries(instruction.values)) sums.values[name] = (sums.values[name] || 0) + value;
  for (const [reason, n] of instruction.stalls) sums.stalls.set(reason, (sums.stalls.get(reason) || 0) + n);
  sums.instructions.push(instruction);
}

/* Files by path: {path, text, lines: line -> sums}, the hottest first. */
function sourceFiles(instructions, atCalls, by) {
  const files = new Map();
  for (const instruction of instructions) {
    const place = placeOf(instruction, atCalls), path = place ? text(place.file[0]) : "";
    if (!place) continue;
    const file = files.get(path) || {path, text: null, lines: new Map(), total: 0};
    files.set(path, file);
    if (place.file[1] >= 0) file.text = text(place.file[1]);
    if (!file.lines.has(place.line)) file.lines.set(place.line, {values: {}, stalls: new Map(), instructions: []});
    addTo(file.lines.get(place.line), instruction);
    file.total += instruction.values[by] || 0;
  }
  return [...files.values()].sort((a, b) => b.total - a.total);
}

/* What a sampled warp does if its state is not a wait for the program. */
const warpStates = {
  selected: "issues",
  not_selected: "could issue, another warp does"
};

function stallTip(stalls, values) {
  const list = [...stalls].sort((a, b) => b[1] - a[1]), all = list.reduce((sum, s) => sum + s[1], 0);
  return [
    ...Object.entries(values).filter(v => v[1]).map(([name, value]) => sourceValues[name] + ": " + number(value)),
    ...list.slice(0, 6).map(
        ([reason, n]) => (warpStates[reason] || "waits for " + reason) + ": " + percent(100 * n / all))
  ];
}

function heatCell(value, most, total) {
  return el(
      "span", {class: "heat"}, el("span", {class: "heat-bar", "width%": most ? 100 * value / most : 0}),
      el("span", {class: "heat-number"},
         value ? number(value) + (total ? " · " + percent(100 * value / total) : "") : ""));
}

function codeRow(r, most, total, pick) {
  const counted = r.values !== null,
        node =
            el("div", {
              class: "code-row" + (counted ? " counted" : ""),
              role: "listitem",
              "data-key": r.key,
              "data-value": counted ? r.value : null,
              tip: counted ? () => stallTip(r.stalls, r.values) : undefined,
              onclick: counted ? () => pick(r) : undefined
            },
               el("span", {class: "code-label"}, r.label), heatCell(r.value, most, total), el("code", {}, r.text));
  if (counted)
    node.addEventListener("keydown", event => {
      if (event.key === "Enter" && event.target === node) pick(r);
    });
  return node;
}

/* A button before a line that shows and hides the code that is inlined into it. */
function unfoldButton(nodes) {
  const mark = () => nodes[0].hidden ? "▸" : "▾";
  const button =
      el("button", {
        type: "button",
        class: "unfold",
        "aria-label": "Inlined code",
        "aria-expanded": "false",
        onclick: event => {
          event.stopPropagation();
          nodes.forEach(n => {
            n.hidden = !n.hidden;
          });
          button.replaceChildren(mark());
          button.setAttribute("aria-expanded", String(!nodes[0].hidden));
        }
      },
         "▸");
  return button;
}

/* One of the two lists; `rows`: {key, label, value, text, stalls, values, inlined: rows below it}. */
function codeList(rows, label, total, pick) {
  const most = Math.max(...rows.map(r => r.value || 0), 0), nodes = new Map();
  const make = r => {
    const node = codeRow(r, most, total, pick);
    nodes.set(r.key, node);
    return node;
  };
  const list = el("div", {class: "code", role: "list", "aria-label": label}, rows.map(r => {
    const node = make(r), below = (r.inlined || []).map(make);
    below.forEach(n => {
      n.classList.add("inlined");
      n.hidden = true;
    });
    if (below.length) node.lastChild.prepend(unfoldButton(below));
    return [node, below];
  }));
  rove(list, [...nodes.values()].filter(n => n.classList.contains("counted")).map(n => [n]));
  return {list, nodes};
}

/* Marks rows, and moves the list, not the page, to the first. */
function markRows(view, keys, move) {
  for (const node of view.list.querySelectorAll(".picked")) node.classList.remove("picked");
  const nodes = keys.map(k => view.nodes.get(k)).filter(Boolean);
  nodes.forEach(n => n.classList.add("picked"));
  if (nodes.length && move) view.list.scrollTop = nodes[0].offsetTop - view.list.clientHeight / 3;
}

function lineRows(file, by, atCalls) {
  const lines = file.text === null ? null : file.text.replace(/\n$/, "").split("\n");
  const numbers = lines ? lines.map((_, i) => i + 1) : [...file.lines.keys()].sort((a, b) => a - b);
  return numbers.map(n => {
    const sums = file.lines.get(n);
    return {
      key: String(n),
      label: String(n),
      text: lines ? lines[n - 1] : "",
      value: sums ? sums.values[by] || 0 : 0,
      values: sums ? sums.values : null,
      stalls: sums ? sums.stalls : [],
      inlined: sums && atCalls ? inlinedRows(sums.instructions, 1, String(n), by) : []
    };
  });
}

function sassRows(instructions, by) {
  let last = null;
  return instructions.flatMap((ins, i) => {
    const head =
        ins.code !== last ? [{key: "f" + i, label: "", text: text(ins.code.name), value: 0, values: null}] : [];
    last = ins.code;
    return [
      ...head, {
        key: String(i),
        label: ins.offset.toString(16).padStart(4, "0"),
        text: ins.text || "(not disassembled)",
        value: ins.values[by] || 0,
        values: ins.values,
        stalls: ins.stalls
      }
    ];
  });
}

/* The PTX of the launch's functions: each line with the sums of its instructions. */
function ptxRows(full, instructions, by) {
  const sums = new Map();
  for (const instruction of instructions.filter(i => i.ptx)) {
    if (!sums.has(instruction.ptx)) sums.set(instruction.ptx, {values: {}, stalls: new Map(), instructions: []});
    addTo(sums.get(instruction.ptx), instruction);
  }
  return full.source.filter(part => data.codes[part.code].ptx.length).flatMap(part => {
    const code = data.codes[part.code];
    const head = {key: "f" + part.code, label: "", text: text(code.name), value: 0, values: null};
    return [
      head, ...code.ptx.map(([line, words]) => {
        const key = part.code + ":" + line, of = sums.get(key);
        return {
          key,
          label: String(line),
          text: text(words),
          value: of ? of.values[by] || 0 : 0,
          values: of ? of.values : null,
          stalls: of ? of.stalls : []
        };
      })
    ];
  });
}

/* Up to three lists: source, PTX, instructions. A picked row marks its rows in the others. At first the line of that
 * number is picked, or the hottest. */
function sourceView(full, instructions, file, by, atCalls, line) {
  const total = instructions.reduce((sum, i) => sum + (i.values[by] || 0), 0);
  const placed = instructions.map(ins => {
    const place = file && placeOf(ins, atCalls);
    return place && text(place.file[0]) === file.path ? String(place.line) : null;
  });
  const views = {lines: null, ptx: null, sass: null};
  const keys = {lines: i => placed[i], ptx: i => instructions[i].ptx, sass: i => String(i)};
  /* Marks the instructions of that number in each list, and moves all lists but the one that was used. */
  const mark = (used, numbers) => {
    for (const [name, view] of Object.entries(views))
      if (view) markRows(view, [...new Set(numbers.map(keys[name]).filter(Boolean))], name !== used);
  };
  const of = (name, key) => instructions.flatMap((_, i) => key && keys[name](i) === key ? [i] : []);
  const pickLine = row => {
    mark("lines", row.members ? row.members.map(Number) : of("lines", row.key));
    markRows(views.lines, [row.key], false);
  };
  const pickPtx = ({key}) => mark("ptx", of("ptx", key));
  const pickInstruction = ({key}) => {
    const same = of("lines", placed[Number(key)]);
    mark("sass", same.length ? same : [Number(key)]);
    if (views.ptx) markRows(views.ptx, [instructions[Number(key)].ptx].filter(Boolean), true);
  };
  const ptx = ptxRows(full, instructions, by);
  if (file) views.lines = codeList(lineRows(file, by, atCalls), "Source of " + file.path, total, pickLine);
  if (ptx.length) views.ptx = codeList(ptx, "PTX", total, pickPtx);
  views.sass = codeList(sassRows(instructions, by), "Instructions", total, pickInstruction);
  const hottest = file && hottestLines([file], by)[0],
        first = file && file.lines.has(line) ? line :
      hottest                                ? hottest.line :
                                               null;
  return {
    node:
        el("div", {class: ["", "", "source", "source with-ptx"][Object.values(views).filter(Boolean).length]},
           file ? el("div", {}, el("h3", {}, file.path),
                     file.text === null ?
                         el("p", {class: "hint"}, "The text of this file is not in the session. Profile with ",
                            el("code", {class: "flag"}, "--import-source yes"), ", or give the report ",
                            el("code", {class: "flag"}, "--source-folders"), ".") :
                         null,
                     views.lines.list) :
                  null,
           views.ptx ? el("div", {}, el("h3", {}, "PTX"), views.ptx.list) : null,
           el("div", {}, el("h3", {}, "Instructions (SASS)"), views.sass.list)),
    start: () => first !== null && (pickLine({key: String(first)}), markRows(views.lines, [String(first)], true))
  };
}

const HOTTEST = 5; /* lines that lists of the hottest have */
const placeText = l => l.file.path.split("/").pop() + ":" + l.line;
const lineText = l => l.file.text ? (l.file.text.split("\n")[l.line - 1] || "").trim() : "";

function hottestLines(files, by) {
  return files.flatMap(f => [...f.lines].map(([line, sums]) => ({file: f, line, value: sums.values[by] || 0})))
      .filter(l => l.value)
      .sort((a, b) => b.value - a.value);
}

/* The lines with most of a value, each of which leads to the source; null if no line has any. */
function hotspotTable(full, by) {
  const instructions = instructionsOf(full), total = instructions.reduce((sum, i) => sum + (i.values[by] || 0), 0);
  const lines = hottestLines(sourceFiles(instructions, false, by), by).slice(0, HOTTEST);
  if (!lines.length) return null;
  const place = l => "/source/" + full.launch + "?" + new URLSearchParams({by, file: l.file.path, line: l.line});
  return el(
      "table", {class: "metrics hotspots"},
      el("thead", {},
         el("tr", {}, el("th", {scope: "col"}, "Location"), el("th", {scope: "col", class: "num"}, sourceValues[by]),
            el("th", {scope: "col", class: "num"}, "Share"))),
      el("tbody", {},
         lines.map(
             l =>
                 el("tr", {}, el("th", {scope: "row"}, link(place(l), {}, placeText(l)), el("code", {}, lineText(l))),
                    el("td", {class: "num"}, number(l.value)),
                    el("td", {class: "num"}, percent(100 * l.value / total))))));
}

function hotLines(files, by, total, open) {
  return el(
      "ol", {class: "hot-lines"},
      hottestLines(files, by)
          .slice(0, HOTTEST)
          .map(
              (l, i) =>
                  el("li", {}, el("button", {type: "button", onclick: () => open(l, i)}, placeText(l)), " ",
                     el("b", {}, percent(100 * l.value / total)), el("code", {}, lineText(l)))));
}

function sourceCard(launch, full) {
  const instructions = instructionsOf(full),
        present = Object.keys(sourceValues).filter(v => instructions.some(i => i.values[v]));
  const query = readPlace().query;
  let by = present.includes(query.get("by")) ? query.get("by") : present[0], atCalls = query.get("inlined") === "calls",
      path = query.get("file"), line = Number(query.get("line"));
  const place = el("div"), hot = el("div"), pickFile = el("select", {
                                              id: "source-file",
                                              "aria-label": "File",
                                              onchange: () => {
                                                path = pickFile.value;
                                                line = 0;
                                                update();
                                              }
                                            });
  const update = () => {
    const files = sourceFiles(instructions, atCalls, by), file = files.find(f => f.path === path) || files[0];
    const total = instructions.reduce((sum, i) => sum + (i.values[by] || 0), 0);
    setQuery("by", by);
    setQuery("inlined", atCalls ? "calls" : "");
    pickFile.replaceChildren(...files.map(
        f => el("option", {value: f.path}, f.path + (total ? " (" + percent(100 * f.total / total) + ")" : ""))));
    if (!file) {
      place.replaceChildren(
          el("p", {class: "hint"}, "No line is known: compile with -lineinfo."),
          sourceView(full, instructions, null, by, atCalls).node);
      return;
    }
    pickFile.value = path = file.path;
    hot.replaceChildren(hotLines(files, by, total, (to, i) => {
      path = to.file.path;
      line = to.line;
      update();
      hot.querySelectorAll("button")[i].focus();
    }));
    const view = sourceView(full, instructions, file, by, atCalls, line);
    place.replaceChildren(view.node);
    requestAnimationFrame(view.start);
  };
  const inlined = instructions.some(i => i.code.locations[i.location] && i.code.locations[i.location][2] >= 0);
  const node = card(
      null,
      el("div", {class: "filters-line"},
         choice(
             "Values", present.map(v => [v, sourceValues[v]]), by,
             v => {
               by = v;
               update();
             }),
         inlined ? choice(
                       "Inlined code", [["own", "Inlined code at its own lines"], ["calls", "unfolded at its calls"]],
                       atCalls ? "calls" : "own",
                       v => {
                         atCalls = v === "calls";
                         update();
                       }) :
                   null,
         pickFile),
      hot, place,
      el("p", {class: "hint"},
         "Choose a line to see its instructions, or an instruction to see its line. The pointer or the focus on a row shows what warps wait for."));
  update();
  return node;
}

function sourcePage([index]) {
  const launch = launches[Number(index)], full = launch && launch.full >= 0 ? data.full[launch.full] : null;
  if (!full || !full.source.length)
    return el(
        "p", {}, "This launch has no values by instruction in the file: the section SourceCounters collects them.");
  return el(
      "div", {},
      el("header", {class: "title"},
         el("p", {}, link("/", {}, "All kernels"), " › ",
            link("/launch/" + launch.index, {}, shortName(launch.name, 40)), " ›"),
         el("h1", {}, "Source of ", nameNode(launch.name))),
      sourceCard(launch, full));
}
