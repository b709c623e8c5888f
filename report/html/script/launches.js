/* ---- launches and kernels ---- */

const fields = [
  "session", "id",   "name",  "device",     "stream", "context", "shape",   "path",
  "stack",   "ns",   "bound", "compute",    "memory", "savings", "roofs",   "full",
  "passes",  "note", "cc",    "streamName", "graph",  "node",    "ordinal", "count"
];
/* Of a rotation, or where a budget let others pass, a launch stands for `count` of its kernel and shape: `ns` is their
 * mean, or null, and `time` that of all. */
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

const countOf = list => list.reduce((sum, launch) => sum + launch.count, 0);
const untimedOf = list => countOf(list.filter(launch => launch.ns === null));
const timeOf = k => time(k.timed ? k.time : null);
/* What a sum of times lacks; null if all are known. */
function untimedText(count, untimed) {
  if (!untimed) return null;
  return untimed === count ?
      "not measured" :
      "without " + number(untimed) + (untimed === 1 ? " launch" : " launches") + " of unknown duration";
}

/* Sums up the launches by kernel, like summary.c. `run`: the time that gains are parts of; that of the list if not
 * given. */
function kernelsOf(list, run) {
  const byName = new Map();
  for (const launch of list) {
    let k = byName.get(launch.name);
    if (!k)
      byName.set(
          launch.name,
          k = {name: launch.name, launches: [], count: 0, timed: 0, time: 0, bounds: new Map(), saved: new Map()});
    k.launches.push(launch);
    k.count += launch.count;
    k.timed += launch.ns === null ? 0 : launch.count;
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
  k.mean = k.timed ? k.time / k.timed : null; /* over launches of known duration */
  k.stand = standFor(k.launches);
}

/* The launch that stands for all: among those in full, the one whose kind has the most time. */
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
/* What distinguishes a session from the others of the file: its letter and its own file in a comparison, its number if
 * others have its name. */
const sessionLabel = s => {
  const name = sessionName(s);
  if (comparing) return letterOf(s.at) + ": " + fileOf(s.at);
  return data.sessions.some(other => other !== s && sessionName(other) === name) ? name + ", session " + (s.at + 1) :
                                                                                   name;
};

const FEW_SESSIONS = 6; /* more are a list that unfolds */

/* Chooses one of several sessions; `all`: the choice that stands for all of them, "" for none. */
function sessionChoice(sessions, all, chosen, pick) {
  const options = [...(all ? [["", all]] : []), ...sessions.map(s => [String(s.at), sessionLabel(s)])];
  const title = comparing ? "Session" : "Process";
  if (options.length <= FEW_SESSIONS) return choice(title, options, chosen, pick);
  const select =
      el("select", {class: "choice", "aria-label": title, onchange: () => pick(select.value)},
         options.map(([value, name]) => el("option", {value}, name)));
  select.value = chosen;
  return select;
}
