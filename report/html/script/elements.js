/* ---- elements ---- */

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class")
      node.setAttribute("class", value);
    else if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else if (name === "width%")
      node.style.width = value + "%";
    else if (name === "tip")
      tips.set(node, value);
    else
      node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(9))
    if (child !== undefined && child !== null && child !== false) node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const link = (to, attributes, ...children) => el("a", {href: "#" + to, ...attributes}, ...children);

/* What an element says when the pointer is over it, or when it has the focus: lines of text. */
const tips = new WeakMap();
const tipBox = el("div", {id: "tip", role: "tooltip", hidden: true});

function showTip(node, x, y) {
  const lines = tips.get(node);
  tipBox.replaceChildren(...[].concat(typeof lines === "function" ? lines() : lines).map(line => el("div", {}, line)));
  tipBox.hidden = false;
  tipBox.style.left = "0"; /* at the right edge it would be as narrow as its last place */
  const box = tipBox.getBoundingClientRect();
  tipBox.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tipBox.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
}

function tipOf(node) {
  while (node && node !== document && !tips.has(node)) node = node.parentNode;
  return node && tips.has(node) ? node : null;
}

function showTipBelow(node) {
  const box = node.getBoundingClientRect();
  showTip(node, box.left, box.bottom - 12);
}

function listenForTips() {
  let focused = null; /* whose tip is shown because it has the focus */
  document.addEventListener("pointermove", event => {
    const node = tipOf(event.target);
    focused = null;
    if (node)
      showTip(node, event.clientX, event.clientY);
    else
      tipBox.hidden = true;
  });
  document.addEventListener("focusin", event => {
    focused = tipOf(event.target);
    if (focused) showTipBelow(focused);
  });
  document.addEventListener("focusout", () => {
    focused = null;
    tipBox.hidden = true;
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    focused = null;
    tipBox.hidden = true;
  });
  /* What gets the focus may be scrolled into sight, and its tip goes with it. */
  document.addEventListener("scroll", () => {
    if (focused)
      showTipBelow(focused);
    else
      tipBox.hidden = true;
  }, {passive: true, capture: true});
}

const steps = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1]
};

/* Makes rows of nodes one stop for the Tab key; arrows, Home and End go from node to node. Rows may have gaps.
 * `across`: the targets of the arrows up (-1) and down (1), unless these lead to the same place of another row. */
function rove(container, rows, across) {
  const places = new Map();
  let current = null;
  const take = node => {
    if (current) current.setAttribute("tabindex", -1);
    current = node;
    node.setAttribute("tabindex", 0);
  };
  rows.forEach((row, y) => row.forEach((node, x) => {
    if (!node) return;
    node.setAttribute("tabindex", -1);
    places.set(node, [x, y]);
    if (!current) take(node);
  }));
  container.addEventListener("focusin", event => {
    if (places.has(event.target)) take(event.target);
  });
  container.addEventListener("keydown", event => {
    const place = places.get(event.target), step = steps[event.key], nodes = [...places.keys()].filter(n => !n.hidden);
    let to = event.key === "Home" ? nodes[0] : event.key === "End" ? nodes[nodes.length - 1] : null;
    if (place && step && step[1] && across)
      to = across(event.target, step[1]);
    else if (place && step)
      for (let [x, y] = place; !to && rows[y += step[1]] && (x += step[0]) >= 0 && x < rows[y].length;)
        to = rows[y][x] && !rows[y][x].hidden ? rows[y][x] : null;
    if (!place || !to) return;
    event.preventDefault();
    to.focus();
  });
}

/* ---- places: the part of the address after # ---- */

function readPlace() {
  let hash = location.hash.replace(/^#/, "") || "/";
  try {
    hash = decodeURI(hash);
  } catch {
    hash = "/"; /* what is no address shows the first page */
  }
  const [path, query] = hash.split("?");
  return {path: path.split("/").filter(Boolean), query: new URLSearchParams(query || "")};
}

function setQuery(name, value) {
  const place = readPlace();
  if (value)
    place.query.set(name, value);
  else
    place.query.delete(name);
  const query = place.query.toString();
  history.replaceState(null, "", "#/" + place.path.join("/") + (query ? "?" + query : ""));
}

/* ---- parts of pages ---- */

function card(title, ...children) { return el("section", {class: "card"}, title && el("h2", {}, title), ...children); }

function bar(share, kind) {
  return el("span", {class: "bar " + (kind || "")}, el("span", {"width%": Math.max(0, Math.min(100, share || 0))}));
}

/* Makes the rows of a table cards if the page is narrow: each value is below the title of its column. The roles mark
 * rows and cells even if they are laid out as neither. */
function asCards(table, titles) {
  const give = (nodes, role) => nodes.forEach(node => node.setAttribute("role", role));
  table.classList.add("cards");
  give([table], "table");
  give(table.querySelectorAll("thead, tbody"), "rowgroup");
  give(table.querySelectorAll("tr"), "row");
  give(table.querySelectorAll("thead th"), "columnheader");
  give(table.querySelectorAll("tbody th"), "rowheader");
  give(table.querySelectorAll("td"), "cell");
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.children].forEach((cell, i) => cell.tagName === "TD" && cell.setAttribute("data-title", titles[i] || ""));
  return table;
}

/* A row of buttons; one is pressed. */
function choice(label, options, chosen, pick) {
  const buttons = options.map(
      ([value, name]) =>
          el("button", {
            type: "button",
            "aria-pressed": String(value === chosen),
            "data-value": value,
            onclick: () => {
              buttons.forEach(b => b.setAttribute("aria-pressed", String(b.dataset.value === value)));
              pick(value);
            }
          },
             name));
  return el("div", {class: "choice", role: "group", "aria-label": label}, buttons);
}
