/* ---- flame graph ---- */

/* A tree of frames, outermost first; the kernels are its leaves. */
function flameTree(list, by) {
  const root = {name: "all launches", time: 0, launches: 0, children: new Map(), kind: "root"};
  for (const launch of list) {
    const frames = by === "nvtx" ?
        data.paths[launch.path][0].map(n => [text(n), "range"]) :
        data.stacks[launch.stack]
            .map(([name, file, line, python, module]) => [text(name) || text(module), python ? "python" : "native"])
            .reverse();
    let node = root;
    root.time += launch.time;
    root.launches += launch.count;
    for (const [given, kind] of [...frames, [launch.name, "kernel"]]) {
      const name = given.trim() ? given : "(no name)", key = kind + "\n" + name;
      if (!node.children.has(key))
        node.children.set(key, {name, kind, time: 0, launches: 0, children: new Map(), parent: node, first: launch});
      node = node.children.get(key);
      node.time += launch.time;
      node.launches += launch.count;
    }
  }
  return root;
}

const THINNEST = 0.0008; /* of the width: what is thinner is not drawn */

function flameFrame(node, root, isZoomed, room, zoom) {
  return el(
      "button", {
        type: "button",
        class: "frame " + node.kind,
        "aria-current": isZoomed ? "true" : null,
        "aria-label": node.name,
        tip: [
          node.kind === "kernel" ? toldName(node.name) : node.name,
          time(node.time) + ", " + percent(100 * node.time / (root.time || 1)) + " of all",
          number(node.launches) + (node.launches === 1 ? " launch" : " launches")
        ],
        onclick: () => zoom(node)
      },
      node.kind === "kernel" ? shortName(node.name, room) : node.name);
}

/* The rows of frames. Arrows go to the next frame, to the one above, and to the widest below. */
function flameRows(root, zoomed, zoom) {
  const rows = [], above = [];
  for (let node = zoomed; node; node = node.parent) above.unshift(node);
  const put = (node, depth, from, width) => {
    (rows[depth] = rows[depth] || []).push({node, from, width});
    if (depth + 1 < above.length) return put(above[depth + 1], depth + 1, 0, 1);
    let at = from;
    node.children = new Map([...node.children].sort((a, b) => b[1].time - a[1].time));
    for (const child of node.children.values()) {
      const part = zoomed.time ? child.time / zoomed.time : 0;
      if (part >= THINNEST) put(child, depth + 1, at, part);
      at += part;
    }
  };
  put(root, 0, 0, 1);
  const buttons = new Map(), nodes = new Map();
  const drawn = rows.map(row => row.map(({node, from, width}) => {
    const room = (width * (page.clientWidth - 60) - 10) / 7,
          button = flameFrame(node, root, node === zoomed, room, zoom);
    if (width < 0.02) button.replaceChildren();
    button.classList.toggle("thin", width < 0.02);
    button.style.left = 100 * from + "%";
    button.style.width = 100 * width + "%";
    buttons.set(node, button);
    nodes.set(button, node);
    return button;
  }));
  const box = el("div", {}, drawn.map(row => el("div", {class: "flame-row"}, row)));
  rove(box, drawn, (button, down) => {
    const node = nodes.get(button);
    return buttons.get(down < 0 ? node.parent : [...node.children.values()].find(child => buttons.has(child)));
  });
  return box;
}

function flamePage(_, query) {
  const has = {
    stack: launches.some(l => data.stacks[l.stack].length),
    nvtx: launches.some(l => data.paths[l.path][0].length)
  };
  const first = ["stack", "nvtx"].find(by => by === query.get("by") && has[by]) || (has.stack ? "stack" : "nvtx");
  if (!has.stack && !has.nvtx)
    return el(
        "div", {}, el("h1", {}, "Flame graph"),
        el("p", {},
           "The launches have neither call stacks nor NVTX ranges. Profile with --call-stack=native,python or with --nvtx, or record a --timeline, to see time on the GPU by what made the launches."));
  const place = el("div", {class: "flame"}), info = el("p", {class: "flame-info"});
  /* Sessions that are compared do not add up: one of them is drawn. */
  let by = first, session = data.sessions[query.get("rank")] ? query.get("rank") : comparing ? "0" : "";
  const draws = () => {
    const list = launches.filter(l => session === "" || String(l.session) === session);
    const root = flameTree(list, by), zoom = node => {
      const focused = place.contains(document.activeElement);
      place.replaceChildren(flameRows(root, node, zoom));
      if (focused) place.querySelector("[aria-current]").focus();
      info.replaceChildren(
          el("b", {}, node.name),
          ": " + time(node.time) + ", " + percent(100 * node.time / (root.time || 1)) + ", " + number(node.launches) +
              (node.launches === 1 ? " launch " : " launches "),
          node.kind === "kernel" ?
              link("/launch/" + standFor(list.filter(l => l.name === node.name)).index, {}, "Look at the kernel") :
              "");
    };
    zoom(root);
  };
  const drawsBy = kind => {
    by = kind;
    setQuery("by", by);
    draws();
  };
  const drawsSession = at => {
    session = at;
    setQuery("rank", at);
    draws();
  };
  drawsBy(first);
  return el(
      "div", {}, el("header", {class: "title"}, el("h1", {}, "Flame graph of time on the GPU")),
      card(
          null, data.sessions.length > 1 && sessionChoice(data.sessions, comparing ? "" : "All", session, drawsSession),
          has.stack && has.nvtx ?
              choice("Frames", [["stack", "By call stack"], ["nvtx", "By NVTX range"]], first, drawsBy) :
              el("p", {class: "dim"}, has.stack ? "By call stack" : "By NVTX range"),
          info, place,
          el("p", {class: "hint"},
             "The outermost frame is on top, and kernels are at the ends. A frame becomes as wide as the page when it is chosen; the one on top shows all again. Arrow keys lead from frame to frame, Enter chooses one. kprof report --folded prints the same for other tools.")));
}
