"""How pages of HTML reports are used: by keyboard, by unfolding, by pointing at cells. html_browser.py calls these.

Each takes the browser, a function that tells a fault, the file and what it is called."""
import json

KEYS = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
FOCUSED = "document.activeElement.textContent"


def key(browser, name):
    """Presses a key of the keyboard: what has the focus gets it, and Tab moves the focus."""
    code = KEYS[name]
    browser.call("Input.dispatchKeyEvent", type="rawKeyDown", key=name, code=name, windowsVirtualKeyCode=code)
    if name == "Enter":
        browser.call("Input.dispatchKeyEvent", type="char", key=name, code=name, text="\r", windowsVirtualKeyCode=code)
    browser.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)


def tab_to(browser, selector, most=150):
    """Presses Tab until an element of the selector has the focus."""
    for _ in range(most):
        key(browser, "Tab")
        if browser.run(f"document.activeElement.matches({json.dumps(selector)})"):
            return True
    return False


def keyboard(browser, fault, path, name):
    """With keys alone: sort the table, go to a kernel, hear what a cell is of, go to its source, pick a line and an instruction."""
    def want(what, found):
        if not found:
            fault(f"{name}: by keyboard, {what}; the focus is on {browser.run(FOCUSED)[:60]!r} at {browser.run('location.hash')}")

    browser.open(path)
    browser.width(1280)
    want("no way to the column Kernel", tab_to(browser, "[data-sort=name]"))
    key(browser, "Enter")
    want("the column does not sort", browser.run("document.activeElement.dataset.sort === 'name' && document.activeElement.closest('th').getAttribute('aria-sort') === 'ascending'"))
    want("no way to a kernel", tab_to(browser, ".kernels tbody a"))
    want("no outline around what has the focus", browser.run("getComputedStyle(document.activeElement).outlineStyle === 'solid'"))
    browser.lead(lambda: key(browser, "Enter"))
    want("a kernel does not open", browser.run("location.hash.startsWith('#/launch/')"))
    want("no way to a table of the memory", tab_to(browser, ".grid-table .value"))
    cells = []
    for step in ("Home", "ArrowRight", "ArrowDown", "End"):
        key(browser, step)
        cells.append(browser.run("[document.activeElement.dataset.metric, document.getElementById('tip').innerText]"))
    if len({c[0] for c in cells}) < 3 or any(not c[0] or not c[1].startswith(c[0]) for c in cells):
        fault(f"{name}: arrows in a table lead to {cells}")
    browser.run("document.querySelector('a.button').focus()")
    browser.lead(lambda: key(browser, "Enter"))
    want("the source does not open", browser.run("location.hash.startsWith('#/source/')"))
    for what, label in (("line", "Source"), ("instruction", "Instructions")):
        want("no way to a " + what, tab_to(browser, f".code[aria-label^={label}] .counted"))
        key(browser, "Home")
        first = browser.run(FOCUSED)
        key(browser, "ArrowDown")
        want("the arrow stays on a " + what, browser.run(FOCUSED) != first)
        browser.run("document.querySelectorAll('.picked').forEach(n => n.classList.remove('picked'))")
        key(browser, "Enter")
        want(f"a {what} is not picked", browser.run("document.activeElement.classList.contains('picked')"))
        want(f"a {what} says nothing", not browser.run("document.getElementById('tip').hidden"))


def inlined(browser, fault, path, name):
    """Code that is inlined can be unfolded below its call, and what is below adds up to no more than the line."""
    browser.open(path)
    place = browser.run("""(() => { const data = JSON.parse(document.getElementById('data').textContent);
        const f = data.full.find(f => f.source.some(p => data.codes[p.code].locations.some(l => l[2] >= 0)));
        return f ? '/source/' + f.launch : null; })()""")
    if not place:
        fault(f"{name}: no launch has inlined code")
        return
    browser.go(place + "?inlined=calls")
    shown = "[...document.querySelectorAll('.code-row.inlined')].filter(n => n.offsetHeight).map(n => [n.dataset.key, Number(n.dataset.value), n.textContent])"
    if browser.run(shown):
        fault(f"{name}: inlined code is unfolded at first")
    browser.run("document.querySelectorAll('.unfold').forEach(b => b.click())")
    rows = browser.run(shown)
    lines = dict(browser.run("[...document.querySelectorAll('.code')[0].children].map(n => [n.dataset.key, Number(n.dataset.value)])"))
    if not any(" in load_matrix_sync()" in row[2] for row in rows):
        fault(f"{name}: unfolded are {rows}")
    for line in {row[0].split("/")[0] for row in rows}:
        below = sum(row[1] for row in rows if row[0].count("/") == 1 and row[0].startswith(line + "/"))
        if below > lines[line]:
            fault(f"{name}: below line {line} of {lines[line]} stand {below}")
    browser.run("document.querySelector('.code-row.inlined').click()")
    if not browser.run("document.querySelectorAll('.code')[1].querySelectorAll('.picked').length"):
        fault(f"{name}: inlined code leads to no instructions")


def rounding(browser, fault, path, name):
    """Numbers have the digits that printf gives them."""
    browser.open(path)
    values = [126564.125, 126564.375, 0.125, 2.5, 0.25, 0.75, 1.005, 0.005, 99.95, 1234567.875, 0, 3e12 + 0.125, 1 / 3]
    for digits in (1, 2):
        found = browser.run(f"{values}.flatMap(v => [fixed(v, {digits}), fixed(-v, {digits})])")
        wanted = [text for v in values for text in (f"{v:.{digits}f}", f"{-v:.{digits}f}" if v else f"{v:.{digits}f}")]
        if found != wanted:
            fault(f"{name}: with {digits} digits, {[pair for pair in zip(found, wanted) if pair[0] != pair[1]]}")
    found = browser.run("[number(126564.125), number(-0.375), percent(12.25)]")
    if found != ["126,564.12", "-0.38", "12.2 %"]:
        fault(f"{name}: numbers are {found}")


LONG = """(() => { const c = document.querySelector('.timeline canvas'), b = c.getBoundingClientRect(), tip = document.getElementById('tip'), told = [];
    for (let x = 0; x < b.width; x++) {
      c.dispatchEvent(new PointerEvent('pointermove', {clientX: b.left + x, clientY: b.top + 37, bubbles: true}));
      if (tip.innerText.includes('kernel,')) told.push([tip.offsetHeight, tip.innerText]);
    }
    return told; })()"""


def told(browser, fault, path, name):
    """What is told of a kernel with a very long name does not cover the page."""
    browser.open(path)
    browser.width(1280)
    browser.go("/timeline")
    browser.wait("document.querySelector('.timeline canvas').dataset.to")
    tips = browser.run(LONG)
    if not tips or max(tips)[0] > 160:
        fault(f"{name}: of {len(tips)} tips on the timeline, {max(tips, default='none')} is the highest")


def wide(browser, fault, path, name):
    """A table that is wider than the page keeps the names of its rows in sight."""
    browser.open(path)
    browser.go("/launch/0")
    for width in (1280, 400):
        browser.width(width)
        found = browser.run("""[...document.querySelectorAll('.grid-table')].filter(t => t.checkVisibility({contentVisibilityAuto: true}) && t.offsetWidth > t.parentElement.clientWidth).map(t => {
            const box = t.parentElement, row = t.tBodies[0].rows[0], name = row.cells[0];
            box.scrollLeft = 200;
            const at = name.getBoundingClientRect(), from = box.getBoundingClientRect().left;
            box.scrollIntoView();
            const seen = document.elementFromPoint(at.left + 9, name.getBoundingClientRect().top + 9);
            return [Math.round(at.left - from), seen === name, box.scrollLeft]; })""")
        if not found or any(at != 0 or not is_seen or not moved for at, is_seen, moved in found):
            fault(f"{name}: at {width}, names of rows of wide tables are at {found}")
    browser.width(1280)


def hotspots(browser, fault, path, name):
    """The hottest lines stand in the section, and above the source: each leads to its own line, which has that value."""
    browser.open(path)
    place = browser.run("'/launch/' + data.full.find(f => f.source.length).launch")
    picked = "[...document.querySelector('.code').querySelectorAll('.picked')].map(n => [n.dataset.key, number(Number(n.dataset.value))])"
    rows = "[...document.querySelectorAll('.hotspots')].map(t => [...t.querySelectorAll('tbody tr')].map(r => [r.querySelector('a').textContent.split(':').pop(), r.children[1].textContent]))"
    browser.go(place)
    tables = browser.run(rows)
    if len(tables) != 2 or any(len(table) < 3 for table in tables):
        fault(f"{name}: tables of hotspots have {tables}")
    for i, (line, value) in [row for row in enumerate(row for table in tables for row in table) if row[0] % 2]:
        browser.go(place)
        browser.lead(f"document.querySelectorAll('.hotspots a')[{i}].click()")
        found = browser.run(picked)
        if found != [[line, value]]:
            fault(f"{name}: the hotspot {line} of {value} leads to {found}")
    count = browser.run("document.querySelectorAll('.hot-lines button').length")
    for i in range(count):
        line = browser.run(f"(b => {{ const line = b.textContent.split(':').pop(); b.click(); return line; }})(document.querySelectorAll('.hot-lines button')[{i}])")
        browser.frame()
        if [key for key, _ in browser.run(picked)] != [line]:
            fault(f"{name}: the hot line {line} leads to {browser.run(picked)}")
    told = browser.run("""[...document.querySelectorAll('.code')[1].querySelectorAll('.counted')].map(n => { n.focus(); return document.getElementById('tip').innerText; }).join('\\n')""")
    if "waits for selected" in told or "\nissues: " not in told or "waits for long_scoreboard: " not in told:
        fault(f"{name}: states of warps are told as {told[:300]!r}")
    browser.go(place)
    browser.width(1280, 600)
    wide = browser.run("(n => n.scrollWidth - n.clientWidth)(document.querySelector('.contents'))")
    if wide > 0:
        fault(f"{name}: the list of sections is {wide} pixels too narrow")
    browser.width(1280)


def ptx(browser, fault, path, name):
    """Between the source and the instructions stands the PTX: a row that is picked marks its rows in the two other lists, whose
    values add up to those of its instructions. Where the session has no PTX there are two lists."""
    browser.open(path)
    browser.go(browser.run("'/source/' + JSON.parse(document.getElementById('data').textContent).full.find(f => f.source.length).launch"))
    rows = "[...document.querySelectorAll('.code')].map(c => [...c.querySelectorAll(%s)].map(n => [n.dataset.key, Number(n.dataset.value)]))"
    lists = browser.run("[...document.querySelectorAll('.code')].map(c => c.getAttribute('aria-label').split(' ')[0])")
    if lists != ["Source", "PTX", "Instructions"]:
        fault(f"{name}: lists of the source are {lists}")
        return
    instructions = browser.run(rows % "'.counted'")[2]
    first = instructions[0][0]
    for at, key, wanted in ((1, instructions[2], [instructions[2], instructions[3]]), (2, instructions[2], None), (2, instructions[0], None)):
        number = 21 + int(key[0]) * 16 // 32
        browser.run(f"[...document.querySelectorAll('.code')[{at}].querySelectorAll('.counted')].find(n => n.dataset.key.split(':').pop() === '{number if at == 1 else key[0]}').click()")
        picked = browser.run(rows % "'.picked'")
        has_ptx = key[0] != first
        if len(picked[0]) != 1 or [p[0].split(":")[1] for p in picked[1]] != [str(number)] * has_ptx or key not in picked[2]:
            fault(f"{name}: a click in list {at} on {key} marks {picked}")
        if wanted and (picked[2] != wanted or picked[1][0][1] != sum(w[1] for w in wanted)):
            fault(f"{name}: the line of PTX {picked[1]} has the instructions {picked[2]}")
    browser.run("[...document.querySelector('.code').querySelectorAll('.counted')].pop().click()")
    picked = browser.run(rows % "'.picked'")
    if len(picked[0]) != 1 or not picked[1] or not picked[2]:
        fault(f"{name}: a click on a line of the source marks {picked}")
    if browser.run("[...document.querySelectorAll('.code')[1].children].filter(n => n.textContent.startsWith('7')).some(n => n.matches('.counted'))"):
        fault(f"{name}: a line of PTX without instructions has values")


CELLS = """(() => {
  const data = JSON.parse(document.getElementById('data').textContent), tip = document.getElementById('tip');
  const formulas = new Map(data.metrics.map(m => m.map(i => data.strings[i])).map(m => [m[0], m]));
  return [...document.querySelectorAll('.grid-table [data-metric]')].map(n => {
    n.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: 9, clientY: 9}));
    const [, , formula, words] = formulas.get(n.dataset.metric);
    return [n.dataset.metric, formula, tip.hidden ? '' : tip.innerText, words];
  }); })()"""


def cells(browser, fault, path, name):
    """Each cell of the memory tables says its metric, and where kprof computes it, the formula."""
    browser.open(path)
    browser.go(browser.run("'/launch/' + JSON.parse(document.getElementById('data').textContent).full[0].launch"))
    rows = browser.run(CELLS)
    if len(rows) < 200 or not any(r[1] for r in rows):
        fault(f"{name}: {len(rows)} cells in tables, {sum(bool(r[1]) for r in rows)} with a formula")
    for metric, formula, said, words in rows:
        if not said.startswith(metric + "\n" + words) or formula and "computed: " + formula not in said:
            fault(f"{name}: the cell of {metric} says {said!r}, with the formula {formula!r}")
            break


def strip(browser, fault, path, name):
    """All launches of a kernel are bars; one that takes ten times as long is marked and named; a bar leads to its launch."""
    browser.open(path)
    index, total = browser.run("""(() => { const data = JSON.parse(document.getElementById('data').textContent);
        const list = data.launches.map((l, i) => [i, l[9], data.strings[l[2]]]).filter(l => l[2].startsWith('transpose_naive'));
        return [list[0][0], list.length]; })()""")
    browser.go(f"/launch/{index}")
    bars = browser.run("document.querySelectorAll('.strip .launch').length")
    if bars != total or total < 8:
        fault(f"{name}: {bars} bars for {total} launches")
    out = browser.run("[document.querySelectorAll('.strip .outlier').length, document.querySelector('.strip ~ .hint').textContent]")
    if out[0] != 1 or ", of 2 shapes; 1 outlier among its shape: launch " not in out[1]:
        fault(f"{name}: outliers are {out}")
    median = browser.run("""(() => { const list = launches.filter(l => l.name.startsWith('transpose_naive')).map(l => l.ns).sort((a, b) => a - b), n = list.length;
        return 'Median ' + time((list[(n - 1) >> 1] + list[n >> 1]) / 2) + ', '; })()""")
    if bars % 2 or not out[1].startswith(median):
        fault(f"{name}: of {bars} launches the bars tell {out[1]!r}, not {median!r}")
    if not tab_to(browser, ".strip .launch"):
        fault(f"{name}: no way to the strip by keyboard")
    key(browser, "End")
    browser.lead(lambda: key(browser, "Enter"))
    if browser.run("document.querySelector('.strip-head [rel=next]') || document.querySelectorAll('.strip .here').length !== 1"):
        fault(f"{name}: the last bar does not lead to the last launch")


def untimed(browser, fault, path, name):
    """What has no duration has none in sums and means, and where nothing has one, that is told instead of what to look at first."""
    facts = "document.querySelector('.fact').innerText.replace(/\\s+/g, ' ')"
    cells = "[...document.querySelectorAll('.kernels tbody tr')].map(r => [r.dataset.kernel.split('(')[0], r.children[1].textContent, r.children[3].textContent, r.children[4].textContent])"
    browser.open(path)
    found = browser.run(f"[{facts}, {cells}, document.querySelector('.overview').innerText]")
    if name == "untimed":
        wanted = "Time on the GPU n/a not measured", [["n/a"] * 2] * 3
        seen = found[0], [[row[1], row[3]] for row in found[1]]
        if seen != wanted or "No launch has a duration" not in found[2] or "Look first at" in found[2] or " 0 ns" in found[2]:
            fault(f"{name}: without durations the first page tells {found}")
    elif found[0] != "Time on the GPU 360.10 us without 1 launch of unknown duration" or ["saxpy", "58.30 us", "2", "58.30 us"] not in found[1]:
        fault(f"{name}: without a duration of one launch the first page tells {found}")


def sessions(browser, fault, path, name):
    """The flame graph is of one of the sessions that are compared, or of those of a report together or one by one; each has a
    name of its own there and on the timeline."""
    total = "document.querySelector('.flame-info').textContent"
    buttons = "[...document.querySelector('.choice').children].map(b => b.textContent)"
    browser.open(path)
    of = browser.run("data.sessions.map(s => time(launches.filter(l => l.session === s.at).reduce((sum, l) => sum + l.time, 0)))")
    both = browser.run("time(launches.reduce((sum, l) => sum + l.time, 0))")
    browser.go("/flame")
    shown, labels = [], browser.run(buttons)
    for i in range(len(labels)):
        browser.run(f"document.querySelector('.choice').children[{i}].click()")
        shown.append(browser.run(total).split(": ")[1].split(",")[0])
    if shown != (of if name == "frames" else [both, *of]):
        fault(f"{name}: flame graphs of {labels} have {shown}; the sessions have {of}, together {both}")
    ends = ["again.kprof", "again.kprof"] if name == "frames" else ["All", ", session 1", ", session 2"]
    begins = ["A: ", "B: "] if name == "frames" else ["All", "transpose [", "transpose ["]
    browser.go("/timeline")
    for found, skip in ((labels, 0), (browser.run(buttons), len(ends) - 2)):
        if not all(label.endswith(end) and label.startswith(begin) for label, end, begin in zip(found, ends[skip:], begins[skip:], strict=True)):
            fault(f"{name}: sessions are told apart as {found}")


def rotated(browser, fault, path, name):
    """A launch that stands for others counts as all of them: in facts, in what is chosen, in frames; not where it is a bar of its own."""
    def want(what, found, wanted):
        if found != wanted:
            fault(f"{name}: {what}: {found!r}, not {wanted!r}")

    browser.open(path)
    want("facts", browser.run("[...document.querySelectorAll('.fact')].map(f => f.innerText.split('\\n').slice(1).join(' '))")[1], "1,024 of 1,030 seen")
    browser.run("(() => { const f = document.getElementById('filter-name'); f.value = 'saxpy'; f.dispatchEvent(new Event('input')); })()")
    want("what is chosen", browser.run("document.querySelector('.filters-line > .dim').textContent").split(" launches")[0], "1,020 of 1,024")
    browser.go("/flame")
    want("all frames", browser.run("document.querySelector('.flame-info').textContent").split(", ")[-1].strip(), "1,024 launches")
    browser.go("/launch/2")
    want("the heading of the bars", browser.run("document.querySelector('.strip-head h2').textContent"), "1,020 launches of this kernel")
    want("bars", browser.run("document.querySelectorAll('.strip .launch').length"), 2)
    heights = browser.run("[...document.querySelectorAll('.strip .launch')].map(b => Number(b.getAttribute('height')))")
    want("bars that are of one launch each", max(heights) < 2 * min(heights), True)
    want("facts of the launch", "1,000 launches like this one" in browser.run("document.querySelector('.title').innerText"), True)


def shared(browser, fault, path, name):
    """A launch with 48 KB of shared memory is marked at the end of its curve, which is without the driver's bytes."""
    browser.open(path)
    browser.go("/launch/0")
    marks = browser.run("""[...document.querySelectorAll('figure')].filter(f => f.textContent.includes('Shared Mem')).map(f => {
        const at = f.querySelector('.mark-point'), curve = f.querySelector('.curve').getAttribute('d'), label = f.querySelector('.mark-label');
        return [Number(at.getAttribute('cy')), Number(/V([\\d.]+)H[\\d.]+$/.exec(curve)[1]), Number(at.getAttribute('cx')), label.textContent]; })""")
    ticks = browser.run("""[...document.querySelectorAll('figure')].filter(f => f.textContent.includes('Shared Mem')).map(f =>
        [...f.querySelectorAll('.tick')].filter(t => t.getAttribute('text-anchor') === 'middle').map(t => [Number(t.getAttribute('x')), Number(t.textContent.replace(/,/g, ''))]))""")
    if not marks or not ticks:
        fault(f"{name}: no curve over shared memory")
    for (y, zero, x, label), ((x0, v0), *_, (x1, v1)) in zip(marks, ticks):
        at = v0 + (x - x0) / (x1 - x0) * (v1 - v0)
        if y > zero - 1 or abs(at - 49152) > 100 or label != "this launch: 50,176":
            fault(f"{name}: the launch is marked at {at}, {y} of {zero} down, as {label!r}")


def frames(browser, fault, path, name):
    """Arrows go between the frames of a flame graph: down to the widest below, beside, and up again. Enter chooses one, which keeps the focus."""
    def at():
        return browser.run("""(() => { const rows = [...document.querySelectorAll('.flame-row')].map(r => [...r.children]), here = document.activeElement,
            row = rows.findIndex(r => r.includes(here)); return row < 0 ? null : [row, rows[row].indexOf(here), here.getAttribute('aria-label')]; })()""")

    browser.open(path)
    browser.go("/flame")
    stops = browser.run("[...document.querySelectorAll('.frame')].filter(b => b.tabIndex === 0).length")
    if stops != 1 or not tab_to(browser, ".frame"):
        fault(f"{name}: the Tab key stops at {stops} frames")
    path_taken = [at()[:2]]
    for step in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowUp", "End", "Home"):
        key(browser, step)
        path_taken.append(at()[:2])
    if path_taken[:5] != [[0, 0], [1, 0], [2, 0], [2, 1], [3, path_taken[4][1]]] or path_taken[5:8] != [[2, 1], [2, 0], [1, 0]]:
        fault(f"{name}: arrows lead to the frames {path_taken}")
    if path_taken[8][0] < 3 or path_taken[9] != [0, 0]:
        fault(f"{name}: End and Home lead to {path_taken[8:]}")
    below = browser.run("""(() => { const [, , up, down] = [...document.querySelectorAll('.flame-row')].map(r => [...r.children].map(b => [parseFloat(b.style.left), parseFloat(b.style.left) + parseFloat(b.style.width)]));
        return [up[1], down]; })()""")
    (left, right), children = below[0], [c for c in below[1] if c[0] >= below[0][0] - 0.01 and c[1] <= below[0][1] + 0.01]
    if below[1][path_taken[4][1]] != max(children, key=lambda c: c[1] - c[0]):
        fault(f"{name}: from the frame of {left} to {right} the arrow leads down to {below[1][path_taken[4][1]]}")
    key(browser, "ArrowDown")
    key(browser, "ArrowDown")
    chosen = at()
    key(browser, "Enter")
    if at() != [chosen[0], 0, chosen[2]] or browser.run("document.querySelectorAll('.frame[aria-current]').length") != 1:
        fault(f"{name}: Enter on {chosen} leaves the focus at {at()}")
    key(browser, "ArrowUp")
    if at()[0] != chosen[0] - 1:
        fault(f"{name}: after a choice the arrow leads to {at()}")


def names(browser, fault, path, name):
    """Kernels that differ in a template's argument alone have different labels in charts and frames."""
    browser.open(path)
    browser.width(1280)
    parts = ["s1688gemm_128x128", "s1688gemm_128x64", "h16816gemm"]
    labels = browser.run("[...document.querySelectorAll('.point-label')].map(n => n.textContent)")
    if not labels or not all(any(part in label for part in parts) for label in labels) or len(set(labels)) != len(labels):
        fault(f"{name}: labels of kernels are {labels}")
    browser.go("/flame")
    frames = browser.run("[...document.querySelectorAll('.frame.kernel')].map(n => n.textContent)")
    if len(set(frames)) != 3 or not all(frame.startswith("Kern") for frame in frames):
        fault(f"{name}: frames of kernels are {frames}")


def alike(browser, fault, path, name):
    """Kernels that share a long beginning differ in what is seen of their names: in the labels of bubbles, and in rows of the table."""
    browser.open(path)
    browser.width(1280)
    labels = browser.run("[...document.querySelectorAll('.point-label')].map(n => n.textContent)")
    if len(labels) < 2 or len(set(labels)) != len(labels) or any(len(label) > 26 for label in labels):
        fault(f"{name}: labels of kernels are {labels}")
    rows = browser.run("[...document.querySelectorAll('.kernels .kernel-name')].map(n => n.textContent)")
    parts = ["Functor<", "tilesize"]
    if len(rows) != 4 or len({row[:76] for row in rows}) != 4 or not any(all(part in row[:76] for row in rows) for part in parts):
        fault(f"{name}: rows of kernels are {rows}")
    if browser.run("[...document.querySelectorAll('.kernels .kernel-name')].some(n => n.scrollHeight > n.clientHeight + 1)"):
        fault(f"{name}: rows of kernels hide a part of {rows}")
    own = browser.run("nameParts('void at::native::<unnamed>::layer_norm_kernel<float>(T1)')")
    if own[1] != "layer_norm_kernel":
        fault(f"{name}: the function of an unnamed namespace is {own}")


ROOMS = """[8, 12, 16, 24, 26, 40, 76].map(room => {
  const fitted = [...fitNames(allNames, room)].map(([name, fit]) => fit.join(''));
  return [room, allNames.length, new Set(fitted).size, Math.max(...fitted.map(f => f.length))]; })"""


def narrow(browser, fault, path, name):
    """At 400 pixels no table of kernels is scrolled sideways, each row has what matters, and no two kernels read alike; nor do they in any room."""
    for room, kernels, different, longest in (browser.open(path), browser.run(ROOMS))[1]:
        if different != kernels or longest > room:
            fault(f"{name}: in {room} characters {kernels} kernels have {different} names, of up to {longest}")
    for width in (1280, 1081, 1000, 981, 900, 700, 561, 400):
        browser.width(width)
        for place in ("/", "/timeline"):
            browser.go(place)
            sideways = browser.run("[...document.querySelectorAll('.table-place')].filter(n => n.scrollWidth > n.clientWidth + 1).length")
            if sideways:
                fault(f"{name} {place}: {sideways} tables are scrolled sideways at {width} pixels")
    browser.go("/")
    rows = browser.run("""[...document.querySelectorAll('.kernels tbody tr')].map(r => [r.querySelector('.kernel-name').textContent,
        r.querySelector('.kernel-name').scrollHeight > r.querySelector('.kernel-name').clientHeight + 1,
        Object.fromEntries([...r.querySelectorAll('td')].filter(c => c.offsetWidth).map(c => [getComputedStyle(c, '::before').content, Math.round(c.getBoundingClientRect().right)]))])""")
    if not rows or len({row[0] for row in rows}) != len(rows) or any(row[1] for row in rows):
        fault(f"{name}: at 400 pixels names of kernels are {rows[:3]}")
    for _, _, cells in rows:
        if not {f'"{title}"' for title in ("Time", "Share", "Bound by", "Gain of the run")} <= set(cells) or max(cells.values()) > 400:
            fault(f"{name}: at 400 pixels a row has {cells}")
            break
    browser.width(1280)


# Places in names where a line ends though letters stand on both sides.
CUT_WORDS = """[...document.querySelectorAll('.kernels .kernel-name')].flatMap(name => {
  const range = document.createRange(), walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT), cut = [];
  for (let node; node = walker.nextNode();)
    for (let i = 1; i < node.length; i++) {
      const top = at => (range.setStart(node, at), range.setEnd(node, at + 1), range.getBoundingClientRect().top);
      if (/[a-z0-9]{2}/i.test(node.data.slice(i - 1, i + 1)) && top(i) > top(i - 1) + 4) cut.push(node.data.slice(Math.max(0, i - 12), i) + '|' + node.data.slice(i, i + 9));
    }
  return cut; })"""


def words(browser, fault, path, name):
    """Lines of names end between words. The longest kernel has a full bar, others are in proportion."""
    browser.open(path)
    for width in (1280, 400):
        browser.width(width)
        cut = browser.run(CUT_WORDS)
        if cut:
            fault(f"{name}: at {width} lines of names end within words: {cut[:3]}")
    browser.width(1280)
    rows = browser.run("[...document.querySelectorAll('.kernels tbody tr')].map(r => [Number(r.children[1].dataset.exact), parseFloat(r.querySelector('.bar > span').style.width)])")
    if rows[0][1] != 100 or any(abs(width - 100 * time / rows[0][0]) > 0.1 for time, width in rows):
        fault(f"{name}: bars are {rows[:4]}")


def compared(browser, fault, path, name):
    """Kernels of a comparison can be put in other orders, and chosen by name."""
    rows = "[...document.querySelectorAll('.compare tbody tr')].map(r => [r.dataset.kernel.split('(')[0], r.querySelector('.vs').textContent])"
    browser.open(path)
    wanted = {"time": ["transpose_naive", "saxpy", "transpose_tiled"], "name": ["saxpy", "transpose_naive", "transpose_tiled"]}
    for order in ("time", "name", "percent"):
        browser.run(f"document.querySelector('.choice [data-value={order}]').click()")
        found = browser.run(rows)
        if [row[0] for row in found] != wanted.get(order, [row[0] for row in found]) or (order == "percent" and found[0][1] != "+100 %"):
            fault(f"{name}: kernels by {order} are {found}")
    browser.run("(() => { const f = document.getElementById('filter-name'); f.value = 'SAXPY'; f.dispatchEvent(new Event('input')); })()")
    if [row[0] for row in browser.run(rows)] != ["saxpy"]:
        fault(f"{name}: a name chooses {browser.run(rows)}")


def untimed_beside(browser, fault, path, name):
    """A kernel without a duration on a side has no change, nor has the sum; the sum tells what it lacks."""
    browser.open(path)
    rows = browser.run("[...document.querySelectorAll('.compare tbody tr')].map(r => [r.dataset.kernel.split('(')[0], r.querySelector('.vs').textContent])")
    base, run = browser.run("[...document.querySelectorAll('.fact')].map(f => f.innerText.replace(/\\s+/g, ' '))")
    bars = browser.run("[...document.querySelectorAll('.change-bar > span')].map(s => parseFloat(s.style.width))")
    wanted = {row: "–" if name == "to-untimed" or row == "saxpy" else "0 %" for row in ("transpose_naive", "saxpy", "transpose_tiled")}
    lacks = "n/a not measured –" if name == "to-untimed" else "360.10 us without 1 launch of unknown duration –"
    if dict(rows) != wanted or any(bars) or lacks not in run or "417.76 us" not in base or "without" in base:
        fault(f"{name}: the kernels are {rows}, with bars of {bars}, and the sums {base!r} and {run!r}")
    browser.go("/compare/3/7")
    title = browser.run("document.querySelector('header.title').innerText.replace(/\\s+/g, ' ')")
    if not title.endswith("n/a –"):
        fault(f"{name}: a launch without a duration is {title!r}")


def ranges(browser, fault, path, name):
    """Without ranges of launches, those of the timeline are frames, and launches can be chosen by them."""
    browser.open(path)
    browser.go("/flame?by=nvtx")
    frames = browser.run("[...document.querySelectorAll('.frame.range')].map(n => n.textContent || n.getAttribute('aria-label'))")
    if sorted(frames) != ["forward", "optimizer"]:  # that of backward is too thin
        fault(f"{name}: ranges of the timeline are the frames {frames}")
    browser.go("/?nvtx=optimizer")
    chosen = browser.run("[document.querySelectorAll('.kernels tbody tr').length, document.querySelector('.filters-line > .dim').textContent]")
    if chosen[0] != 2 or " of 377 launches" not in chosen[1]:
        fault(f"{name}: a range of the timeline chooses {chosen}")
