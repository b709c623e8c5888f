/* ---- facts of the sessions ---- */

function sessionTables() {
  return data.sessions.map(
      s => card(
          sessionName(s),
          el("div", {class: "fact-tables"},
             s.facts.map(
                 ([title, rows]) =>
                     el("table", {class: "plain"}, el("caption", {}, text(title)),
                        el("tbody", {},
                           rows.map(
                               ([name, value]) =>
                                   el("tr", {}, el("th", {scope: "row"}, text(name)), el("td", {}, text(value))))))),
             s.skips.length ?
                 el("table", {class: "plain"}, el("caption", {}, "Skipped launches"),
                    el("tbody", {},
                       s.skips.map(
                           ([why, n]) => el("tr", {}, el("th", {scope: "row"}, text(why)), el("td", {}, number(n)))))) :
                 null)));
}

/* ---- the frame around all pages ---- */

const routes = {
  launch: launchPage,
  source: sourcePage,
  flame: flamePage,
  timeline: timelinePage,
  compare: compareLaunches,
  session: () => el("div", {}, heading(), sessionTables()),
};

function navigation(current) {
  const tabs = [
    ["", "Overview"], ["flame", "Flame graph"], ["timeline", "Timeline"],
    ["session", data.sessions.length > 1 ? "Sessions" : "Session"]
  ];
  return el(
      "nav", {"aria-label": "Pages"}, el("span", {class: "brand"}, "kprof"),
      tabs.map(([to, title]) => link("/" + to, {"aria-current": to === current ? "page" : null}, title)));
}

function show() {
  const place = readPlace(), name = place.path[0] || "", route = routes[name];
  tipBox.hidden = true;
  const body = route ? route(place.path.slice(1), place.query) : comparing ? comparePage() : overview(place.query);
  page.replaceChildren(navigation(route ? name : ""), el("main", {}, body), tipBox);
  document.title = (data.sessions.length ? text(data.sessions[0].name) : "report") + " - kprof";
  const target = place.path.length > 2 && document.getElementById("rule-" + place.path[2]);
  if (target)
    target.scrollIntoView({block: "center"});
  else
    scrollTo(0, 0);
}

listenForTips();
addEventListener("hashchange", show);
narrowPage.addEventListener("change", show);
show();
page.dataset.ready = "yes";
