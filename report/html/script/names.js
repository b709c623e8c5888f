/* ---- names of kernels in little room: those that differ read differently ---- */

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

/* Lets a line end between the words of a name. */
const breakable = words => words.replace(/::|[<,_…]/g, "$&\0")
                               .replace(/\(/g, "\0(")
                               .split("\0")
                               .flatMap((part, i) => i ? [el("wbr"), part] : [part]);

function nameNode(name) {
  const [before, own, after] = nameParts(name);
  return el(
      "span", {class: "kernel-name", title: name}, el("span", {class: "dim"}, breakable(before.replace(/^void /, ""))),
      el("b", {}, breakable(own)), el("span", {class: "dim"}, breakable(after)));
}

/* Cuts no character in two. */
const cutTo = (words, room) => room < 1 ? "" :
    words.length > room                 ? words.slice(0, room - 1).replace(/[\uD800-\uDBFF]$/, "") + "…" :
                                          words;

const partsByName = new Map();
function partsOf(name) {
  if (!partsByName.has(name)) {
    const [before, own, after] = nameParts(name);
    partsByName.set(name, own ? [before, own, after] : ["", name, ""]);
  }
  return partsByName.get(name);
}

/* Cuts a name off after `room` characters, from its function on: [function, end]. */
function cutName(name, room) {
  const [, own, after] = partsOf(name);
  return own.length > room ? [cutTo(own, room), ""] : [own, cutTo(after, room - own.length)];
}

/* A kernel's name in the tip under the pointer: in full, unless that would cover the page. */
const TOLD = 240;
const toldName = name => name.length > TOLD ? fitName(name, rooms[0]).join("") : name;

function commonLength(a, b) {
  let n = 0;
  while (n < a.length && a[n] === b[n]) n++;
  return n;
}

const LEAST_HEAD = 2; /* of a function's name in the least room */
const separators = " ,<>:_()";
/* The parts of a name that distinguish it from others: at each place where it begins to differ, the word there, of
 * which at most `most` characters. */
function differences(name, others, most) {
  const stretches = [], places = [...new Set(others.map(other => commonLength(name, other)))].sort((a, b) => a - b);
  for (const at of places) {
    let from = at, to = Math.min(at + 1, name.length);
    while (to < name.length && to - from < most && !separators.includes(name[to])) to++;
    while (from && to - from < most && !separators.includes(name[from - 1])) from--;
    const last = stretches[stretches.length - 1];
    if (last && from <= last[1] + 1)
      last[1] = Math.max(last[1], to);
    else
      stretches.push([from, to]);
  }
  return stretches;
}

/* Lengthens stretches, one character each in turn, by what room is left. */
function fillRoom(stretches, length, spare) {
  const filled = stretches.map(stretch => [...stretch]);
  const limit = i => i + 1 < filled.length ? filled[i + 1][0] : length;
  for (let grown = true; grown && spare > 0;) {
    grown = false;
    filled.forEach((stretch, i) => {
      if (spare < 1 || stretch[1] >= limit(i)) return;
      stretch[1]++;
      spare--;
      grown = true;
    });
  }
  return filled;
}

/* Writes the function, as much of it as there is room for, and the parts; null if they have no room. All names that
 * look the same when cut off have the same parts up to the first difference, so they differ here. */
function writeStretches(name, stretches, room) {
  const [before, own] = partsOf(name), start = before.length;
  const needed = list => list.reduce((sum, [from, to]) => sum + 1 + to - from, 1);
  let head = own.length, rest = stretches;
  for (let i = 0; i < 3; i++) { /* what the head has needs no room after it */
    head = Math.min(own.length, room - needed(rest));
    rest = stretches.filter(([from, to]) => from < start || to > start + head);
  }
  head = Math.min(own.length, room - needed(rest));
  if (head < Math.min(Math.max(LEAST_HEAD, Math.min(6, Math.floor(room / 4))), own.length)) return null;
  let end = start + head, words = "";
  for (const [from, to] of fillRoom(rest, name.length, room - head - needed(rest))) {
    if (from < start || from > end) words += "…";
    words += name.slice(from < start ? from : Math.max(from, end), to);
    end = to;
  }
  return [own.slice(0, head), words + (end < name.length ? "…" : "")];
}

/* Fits a name into the room so that it differs from others that look the same when cut off. */
function tellApart(name, others, room) {
  for (const most of [24, 12, 6, 1]) {
    const fit = writeStretches(name, differences(name, others, most), room);
    if (fit) return fit;
  }
  return cutName(name, room);
}

function groupBy(list, key) {
  const groups = new Map();
  for (const item of list) {
    const of = key(item), group = groups.get(of);
    if (group)
      group.push(item);
    else
      groups.set(of, [item]);
  }
  return [...groups.values()];
}

/* Numbers by the alphabet, among all whose functions begin alike. */
function numberOfName(name, names) {
  const beginOf = n => partsOf(n)[1].slice(0, LEAST_HEAD), begin = beginOf(name);
  return names.filter(n => beginOf(n) === begin).sort().indexOf(name) + 1;
}

/* Fits all names into the room. Those that stay indistinguishable get numbers. Returns name -> [function, end]. */
function fitNames(names, room) {
  const fitted = new Map();
  for (const alike of groupBy(names, name => cutName(name, room).join("")))
    for (const name of alike)
      fitted.set(name, alike.length > 1 ? tellApart(name, alike.filter(n => n !== name), room) : cutName(name, room));
  for (const same of groupBy(names, name => fitted.get(name).join("")))
    for (const name of same.length > 1 ? same : []) {
      const mark = "#" + numberOfName(name, names), [head, end] = fitted.get(name), left = room - mark.length;
      fitted.set(name, head.length < left ? [head, cutTo(end, left - head.length) + mark] : [cutTo(head, left), mark]);
    }
  return fitted;
}

/* All names of the file: of launches, and of kernels on timelines. */
const allNames = [...new Set([
  ...data.launches.map(row => text(row[2])),
  ...data.sessions.flatMap(s => s.timeline ? s.timeline.kernels.map(k => text(k[0])) : [])
])];
const fittedByRoom = new Map();

/* Fits a kernel's name so that it differs from all others of the file. */
function fitName(name, room) {
  if (!fittedByRoom.has(room)) fittedByRoom.set(room, fitNames(allNames, room));
  return fittedByRoom.get(room).get(name) || cutName(name, room);
}

const kinByName = new Map(allNames.map(name => [name, 0]));
groupBy(allNames, name => partsOf(name)[1]).forEach(kin => kin.forEach(name => kinByName.set(name, kin.length)));

/* Does the same for the room of the place: one of a few, because all names are fitted for each. A function's own name
 * is enough if no other has it. */
const rooms = [96, 76, 56, 40, 32, 24, 16, 12, 8];
function shortName(name, room) {
  const own = partsOf(name)[1];
  return own.length <= room && !(kinByName.get(name) > 1) ?
      own :
      fitName(name, rooms.find(r => r <= room) || rooms[rooms.length - 1]).join("");
}

/* Fits a few names of the file, so that they differ from each other. */
function labelsOf(names, room) {
  const fitted = fitNames(names, room), labels = new Map();
  for (const kin of groupBy(names, name => partsOf(name)[1]))
    for (const name of kin) {
      const own = partsOf(name)[1];
      labels.set(name, kin.length < 2 && own.length <= room ? own : fitted.get(name).join(""));
    }
  return labels;
}

/* A name in two lines of a table, or in three of a narrow page. */
const ROW_ROOM = 76;
function rowName(name) {
  if (name.length <= ROW_ROOM) return nameNode(name);
  const [head, end] = fitName(name, ROW_ROOM);
  return el(
      "span", {class: "kernel-name", title: name}, el("b", {}, breakable(head)),
      el("span", {class: "dim"}, breakable(end)));
}
