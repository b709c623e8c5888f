/* ---- launches and kernels ---- */

const fields = [
  "session", "id",   "name",  "device",     "stream", "context", "shape",   "path",
  "stack",   "ns",   "bound", "compute",    "memory", "savings", "roofs",   "full",
  "passes",  "note", "cc",    "streamName", "graph",  "node",    "ordinal", "count"
];
/* Of a rotation, a launch stands for `count` of its kernel and shape: `ns` is their mean, or null, and `time` that of
 * all. */
const launches = data.launches.map((row, index) => {
  const launch = {index};
  fields.forEach((field, i) => {
    launch[field] = row[i];
  });
  launch.name = text(launch.name);
  launch.bound = text(launch.bound);
  launch.mean = launch.ns || 0;
  launch.time = launch.mean * launch.count;
  return launch;
});

/* The parts of a kernel's name: what stands before the function's own name, the name, and what follows. */
function nameParts(name) {
  let depth = 0, end = name.length, start = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (name.startsWith("<unnamed>", i)) { /* a namespace, no arguments */
      i += "<unnamed>".length - 1;
      continue;
    }
    if (i && depth === 0 && (c === "<" || (c === "(" && !name.startsWith("(anonymous", i)))) {
      end = i;
      break;
    }
    depth += c === "(" ? 1 : c === ")" ? -1 : 0;
    if (depth === 0 && (c === " " || c === ":")) start = i + 1;
  }
  return [name.slice(0, start), name.slice(start, end), name.slice(end)];
}

function nameNode(name) {
  const [before, own, after] = nameParts(name);
  return el(
      "span", {class: "kernel-name", title: name}, el("span", {class: "dim"}, before.replace(/^void /, "")),
      el("b", {}, own), el("span", {class: "dim"}, after));
}
/* Short names by name: the function's own, and of functions that share it what tells them apart. */
const shortNames = (() => {
  const byOwn = new Map(), short = new Map();
  for (const name of new Set(launches.map(l => l.name))) {
    const own = nameParts(name)[1] || name;
    byOwn.set(own, [...byOwn.get(own) || [], name]);
  }
  for (const [own, names] of byOwn) {
    const tails = names.map(name => nameParts(name)[2]);
    let same = 0;
    while (names.length > 1 && same < tails[0].length && tails.every(t => t[same] === tails[0][same])) same++;
    while (same && /[A-Za-z0-9]/.test(tails[0][same - 1] || "")) same--;
    names.forEach(
        (name, i) => short.set(
            name, names.length > 1 ? own + (same > 1 ? "…" : "") + tails[i].slice(same > 1 ? same : 0) : own));
  }
  return short;
})();
const shortName = name => shortNames.get(name) || nameParts(name)[1] || name;

/* The names of launches by the function's own. */
const kinOf = (() => {
  const byOwn = new Map();
  for (const name of shortNames.keys()) {
    const own = nameParts(name)[1] || name;
    byOwn.set(own, [...byOwn.get(own) || [], name]);
  }
  return name => byOwn.get(nameParts(name)[1] || name) || [name];
})();

const cutTo = (words, room) => words.length > room ? words.slice(0, room - 1) + "…" : words;

/* The function and, of its name's end, what begins with the word at `at`: both in `room` characters. */
function cutAround(own, tail, at, room) {
  while (at && /[A-Za-z0-9]/.test(tail[at - 1])) at--;
  const part = cutTo(tail.slice(at), Math.max(Math.floor(room * 0.6), room - own.length - 1) - 1),
        head = cutTo(own, room - part.length - 1);
  return [head, (at && !head.endsWith("…") ? "…" : "") + part];
}

const fitted = new Map();
/* Fits a kernel's name into `room` characters: [function, end], which differ from those of other kernels. Of functions
 * that share a name it shows the first place that tells them apart, as short_names.c does. */
function fitName(name, room) {
  const key = room + " " + name, tailOf = n => nameParts(n)[2], own = nameParts(name)[1] || name, tail = tailOf(name);
  if (fitted.has(key)) return fitted.get(key);
  const others = kinOf(name).filter(n => n !== name).map(tailOf), sameWith = other => {
    let same = 0;
    while (same < tail.length && tail[same] === other[same]) same++;
    return same;
  };
  const places = [...new Set(others.map(sameWith))].sort((a, b) => a - b).slice(0, 8);
  const cuts = places.map(at => cutAround(own, tail, at, room)), found = cuts.findIndex((cut, i) => {
    return others.every(other => cutAround(own, other, places[i], room).join("") !== cut.join(""));
  });
  const fit = !others.length           ? [cutTo(own, room), ""] :
      own.length + tail.length <= room ? [own, tail] :
                                         cuts[found < 0 ? cuts.length - 1 : found];
  fitted.set(key, fit);
  return fit;
}

/* A name in two lines of a table: one that is longer, and that others share, shows where it differs. */
const ROW_ROOM = 76;
function rowName(name) {
  if (name.length <= ROW_ROOM || kinOf(name).length < 2) return nameNode(name);
  const [head, end] = fitName(name, ROW_ROOM);
  return el("span", {class: "kernel-name", title: name}, el("b", {}, head), el("span", {class: "dim"}, end));
}

const countOf = list => list.reduce((sum, launch) => sum + launch.count, 0);

/* Sums up the launches by kernel, as summary.c does. `run`: the time that gains are parts of; that of the list if not
 * given. */
function kernelsOf(list, run) {
  const byName = new Map();
  for (const launch of list) {
    let k = byName.get(launch.name);
    if (!k)
      byName.set(
          launch.name, k = {name: launch.name, launches: [], count: 0, time: 0, bounds: new Map(), saved: new Map()});
    k.launches.push(launch);
    k.count += launch.count;
    k.time += launch.time;
    if (launch.bound) k.bounds.set(launch.bound, (k.bounds.get(launch.bound) || 0) + (launch.time || 1));
    for (const [rule, gain] of launch.savings) k.saved.set(rule, (k.saved.get(rule) || 0) + gain / 100 * launch.time);
  }
  const total = list.reduce((sum, launch) => sum + launch.time, 0);
  for (const k of byName.values()) finishKernel(k, total, run ?? total);
  return {kernels: [...byName.values()], total};
}

function finishKernel(k, total, run) {
  k.bound = [...k.bounds].reduce((best, b) => b[1] > best[1] ? b : best, ["", 0])[0];
  k.savedTime = 0;
  k.rule = null;
  for (const [rule, saved] of [...k.saved].sort((a, b) => a[0] - b[0]))
    if (saved > k.savedTime && 100 * saved >= k.time) {
      k.savedTime = saved;
      k.rule = rule;
    }
  k.share = total > 0 ? 100 * k.time / total : 0;
  k.gain = run > 0 ? 100 * k.savedTime / run : 0;
  k.mean = k.time / k.count;
  k.stand = standFor(k.launches);
}

/* The launch that stands for all: of those in full the one that took most time together with its like. */
function standFor(list) {
  const full = list.filter(launch => launch.full >= 0);
  return (full.length ? full : list).reduce((best, launch) => launch.time > best.time ? launch : best);
}

const shapeText = shape =>
    shape ? "(" + shape.slice(0, 3).join(", ") + ")x(" + shape.slice(3).join(", ") + ")" : "graph";
const pathText = launch => data.paths[launch.path][0].map(text).join(" / ");
const deviceOf = launch => (data.sessions[launch.session].devices.find(d => d[0] === launch.device) || [])[1];
const sessionName = s =>
    s.rank >= 0 ? "rank " + s.rank : text(s.name) + " [" + s.pid + "]" + (text(s.host) ? " on " + text(s.host) : "");
