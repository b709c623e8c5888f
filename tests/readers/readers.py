"""Ten readers of what kprof prints in the face of ncu, written as people read ncu: readers.py KPROF SESSION...

Each reads a text and returns what it found, as a dictionary. That has to equal what the session's own tables say, for every
launch and every metric. And each proves its power: of a text that was damaged in one place it finds something else.
"""
import collections, csv, io, math, pathlib, re, sqlite3, subprocess, sys

TREE = pathlib.Path(__file__).resolve().parents[2]
# The columns of ncu's raw page, and those in which it has a value or unit of its own.
COLUMNS = {column.replace(".*", roll_up) for line in (TREE / "tests/data/columns.tsv").read_text().splitlines() if line[0] != "#"
           for column in line.split("\t")[:1] for roll_up in (".avg", ".max", ".min", ".sum")}
OTHERWISE = set(re.findall(r'KP_NCU_COLUMN\((?!EXTRA|ABSENT)\w+, "([^"]*)"', (TREE / "report/pages/ncu_columns.def").read_text()))


def run(*command, stdin=None):
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          text=True, encoding="utf-8", errors="replace").stdout


class Session:
    """The truth: the tables of the file."""

    def __init__(self, path):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.path = path
        columns = "id, demangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, context_id, stream_id, device, cc_major, cc_minor"
        self.launches = {row[0]: row[1:] for row in db.execute(f"SELECT {columns} FROM launch ORDER BY id")}
        self.metrics = collections.defaultdict(dict)
        self.units = {}
        for launch, name, unit, value, kind in db.execute(
                "SELECT m.launch, n.name, n.unit, m.value, m.kind FROM metric m JOIN name n ON n.id = m.name"):
            self.metrics[launch][name] = value if kind else "n/a"  # as ncu says it
            if unit:
                self.units.setdefault(name, set()).add(unit)
        self.executed = db.execute("SELECT count(*) FROM code_counts").fetchone()[0]


def lines_of(text):
    """What csv readers do first: without lines of ncu itself."""
    return [line for line in text.split("\n") if line and not line.startswith("==")]


def number(text):
    """A number as printed, or the text."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def same(a, b):
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b or str(a) == str(b)


# --- texts ---

HEADER = re.compile(r"^  (?P<name>\S.*) \((\d+), (\d+), (\d+)\)x\((\d+), (\d+), (\d+)\), Context (\d+), Stream (\d+), "
                    r"Device (\d+), CC (\d+)\.(\d+)$")


def headers(text):
    """1: the header of each launch, at two blanks, on one line."""
    found = [HEADER.match(line) for line in text.split("\n")]
    return {i: (m["name"],) + tuple(map(int, m.groups()[1:])) for i, m in enumerate(filter(None, found))}


def sections(text):
    """2: rows of sections, cut by runs of blanks, by launch: (section, label) -> value."""
    rows, launch, section = {}, -1, None
    for line in text.split("\n"):
        if HEADER.match(line):
            launch, section = launch + 1, None
        elif line.startswith("    Section: "):
            section = line[len("    Section: "):].strip()
        elif section and line.startswith("    ") and line[4:5].strip() and line[4] != "-":
            cells = re.split(r"\s{2,}", line.strip())
            if len(cells) in (2, 3) and cells[0] != "Metric Name" and not re.match(r"(OPT|INF|WRN)\b", cells[0]):
                rows[launch, section, cells[0]] = cells[-1].split()[-1] if len(cells) == 2 else cells[-1]
    return rows


def speedups(text):
    """3: estimated speedups of rules, by launch, in order."""
    found, launch = collections.defaultdict(list), -1
    for line in text.split("\n"):
        launch += bool(HEADER.match(line))
        for percent in re.findall(r"Est\. (?:Local )?Speedup: ([\d.]+)%", line):
            found[launch].append(float(percent))
    return {k: tuple(v) for k, v in found.items()}


def invocations(text):
    """4: groups of print-summary per-kernel: (name, grid, block, device) -> launches."""
    pattern = re.compile(r"^  (\S.*) \((\d+), (\d+), (\d+)\)x\((\d+), (\d+), (\d+)\), Device (\d+), CC \d+\.\d+, Invocations (\d+)$", re.M)
    return {(m[0],) + tuple(map(int, m[1:8])): int(m[8]) for m in pattern.findall(text)}


# --- CSV ---

START = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
DETAILS = START + ["Section Name", "Metric Name", "Metric Unit", "Metric Value"]


def by_metric(text):
    """5: the page details of --metrics, whose header has exactly 15 columns: (launch, metric) -> value."""
    rows = csv.reader(lines_of(text))
    assert next(rows) == DETAILS, "another header"
    return {(int(r[0]), r[12]): number(r[14]) for r in rows}


def two_headings(text):
    """6: the page raw as pandas reads it with header=[0, 1]: (launch, (metric, unit)) -> value."""
    rows = list(csv.reader(lines_of(text)))
    columns = list(zip(rows[0], rows[1]))
    assert rows[0][:11] == START and all(len(r) == len(columns) for r in rows), "no table"
    return {(int(r[0]), columns[i]): number(r[i]) for r in rows[2:] for i in range(11, len(columns)) if r[i] != ""}


def skipped_units(text):
    """7: the page raw as pandas reads it with skiprows=[1]: (launch, metric) -> value."""
    lines = lines_of(text)
    return {(int(row["ID"]), name): number(value) for row in csv.DictReader(lines[:1] + lines[2:])
            for name, value in row.items() if name not in START and value != ""}


AWK = r"""
NR == 1 { for (i = 1; i <= NF; i++) if ($i == "gpu__time_duration.sum") at = i; next }
NR > 2 && at { gsub(/"/, "", $1); print $1, $at + 0 }
"""


def awk(text):
    """8: durations, by awk with '","' between fields; launch -> ns."""
    return {int(a): float(b) for a, b in (line.split() for line in run("awk", "-F", '","', AWK, stdin=text).splitlines())}


def source(text):
    """9: the page source, block by block: kernel -> instructions executed, samples and rows, by block."""
    found, header, block = {}, None, -1
    for row in csv.reader(lines_of(text)):
        if row[0] == "Kernel Name":
            block, header = block + 1, None
        elif row[0] == "Address":
            header = {name: i for i, name in reversed(list(enumerate(row)))}
            found[block] = [0, 0, 0]
        elif header:
            assert row[0].startswith("0x"), row[:2]
            found[block][0] += int(row[header["Instructions Executed"]])
            found[block][1] += int(row[header["Warp Stall Sampling (All Samples)"]])
            found[block][2] += 1
            reasons = sum(int(row[i]) for name, i in header.items() if name.startswith("stall_") and "Not" not in name)
            assert reasons == int(row[header["# Samples"]]), row
    return {k: tuple(v) for k, v in found.items()}


def session(text):
    """10: the page session: (block, attribute) -> value."""
    found, title = {}, None
    for line in text.splitlines():
        if line and not line.startswith('"'):
            title = line
        elif line:
            name, value = next(csv.reader([line]))
            found[title, name] = value
    return found


# --- what the session says ---

def want_headers(s):
    return {i: launch for i, launch in enumerate(s.launches.values())}


def want_groups(s):
    return dict(collections.Counter(l[:7] + (l[9],) for l in s.launches.values()))


def want_values(s, only=None):
    return {(i, name): value for i, of in s.metrics.items() for name, value in of.items()
            if value is not None and (only is None or name in only)}


def want_raw(s):
    """What the raw page has of it; spills depend on the sections."""
    return {k: v for k, v in want_values(s, COLUMNS - OTHERWISE).items() if not k[1].startswith("derived__local_spilling_")}


def differing(got, want):
    return [k for k in got.keys() | want.keys() if k not in got or k not in want or not same(got[k], want[k])]


def power(name, read, text, damage):
    """A reader that finds the same in a damaged text reads nothing."""
    whole = read(text)
    try:
        assert damage(text) != text, f"{name}: the damage is none"
        spoilt = read(damage(text))
    except (AssertionError, StopIteration, ValueError, IndexError, KeyError) as e:
        if "the damage" in str(e):
            raise
        return
    assert spoilt != whole, f"{name} does not notice that its text was damaged"


def wrapped(text):
    """Headers in two lines."""
    return text.replace(", Context ", ",\n      Context ")


def digit_changed(text):
    """The last row of a table has another value in the end."""
    at = max(m.start() for m in re.finditer(r'\d(?="?\n)', text[:len(text) // 2 + len(text) // 3]))
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1:]


def check(kprof, path):
    s = Session(path)
    ncu = lambda *args: run(kprof, "ncu", "-i", path, *args)
    details, raw = ncu(), ncu("--page", "raw", "--csv")

    assert not differing(headers(details), want_headers(s)), ("headers", differing(headers(details), want_headers(s))[:3])
    power("headers", headers, details, wrapped)

    rows = sections(details)
    data = collections.defaultdict(dict)
    for r in csv.DictReader(lines_of(ncu("--csv"))):
        if r["Metric Name"] and r["Metric Value"] != "n/a":
            data[int(r["ID"])][r["Section Name"], r["Metric Name"]] = r["Metric Value"]
    order = {launch: i for i, launch in enumerate(s.launches)}
    lost = [(i, k) for i, of in data.items() for k in of if (order[i],) + k not in rows]
    assert rows and not lost, ("sections", lost[:5])
    base = sections(ncu("--print-units", "base"))
    wrong = [(i, k) for i, of in data.items() for k, v in of.items()
             if isinstance(number(v), float) and not math.isclose(number(base[(order[i],) + k]), number(v), rel_tol=1e-2, abs_tol=0.006)]
    assert not wrong, ("values of sections", [(w, base[(order[w[0]],) + w[1]], data[w[0]][w[1]]) for w in wrong[:5]])
    power("sections", sections, details, lambda t: t.replace("    Section: ", "    Part: ", 1))

    rules = collections.defaultdict(list)
    for r in csv.DictReader(lines_of(ncu("--csv"))):
        if r["Estimated Speedup"]:
            rules[order[int(r["ID"])]].append(float(r["Estimated Speedup"]))
    told = speedups(details)
    assert {k: len(v) for k, v in told.items()} == {k: len(v) for k, v in rules.items()}, "speedups"
    assert all(abs(a - b) < 0.06 for k in told for a, b in zip(told[k], rules[k])), ("speedups", told, rules)
    if told:
        power("speedups", speedups, details, lambda t: t.replace("Speedup: ", "Speedup is ", 1))

    grouped = ncu("--print-summary", "per-kernel")
    assert invocations(grouped) == want_groups(s), ("groups", invocations(grouped).items() ^ want_groups(s).items())
    power("groups", invocations, grouped, lambda t: t.replace(", Invocations ", ",\n    Invocations ", 1))

    names = sorted({n for of in s.metrics.values() for n in of})
    some = names[:: max(1, len(names) // 40)] + ["gpu__time_duration.sum"]
    table = ncu("--csv", "--metrics", ",".join(some))
    got, want = by_metric(table), want_values(s, set(some))
    wrong = [k for k in want if k not in got or not same(got[k], want[k])]
    assert got and not wrong, ("metrics", wrong[:5])
    power("metrics", by_metric, table, digit_changed)

    columns = two_headings(raw)
    values = {(i, name): v for (i, (name, unit)), v in columns.items()}
    wrong = [k for k, v in want_raw(s).items() if k not in values or not same(values[k], v)]
    assert columns and not wrong, ("raw, two headings", [(k, values.get(k), want_raw(s)[k]) for k in wrong[:5]])
    assert all(name in COLUMNS for _, name in values), "columns that ncu lacks"
    units = {name: unit for _, (name, unit) in columns}
    assert all(units[n] in u for n, u in s.units.items() if n in units and n not in OTHERWISE), "units"
    power("raw, two headings", two_headings, raw, lambda t: "\n".join(t.split("\n")[:1] + t.split("\n")[2:]))

    skipped = skipped_units(raw)
    wrong = [k for k, v in want_raw(s).items() if k not in skipped or not same(skipped[k], v)]
    assert skipped and not wrong, ("raw, units skipped", wrong[:5])
    power("raw, units skipped", skipped_units, raw, lambda t: t.replace("\n" + t.split("\n")[2] + "\n", "\n", 1))

    times = want_values(s, {"gpu__time_duration.sum"})
    assert awk(raw) and not differing(awk(raw), {i: v for (i, _), v in times.items()}), "awk"
    power("awk", awk, raw, lambda t: t.replace('"gpu__time_duration.sum"', '"gpu__time_duration.sum\r"', 1))

    listing = ncu("--page", "source", "--csv")
    blocks = source(listing)
    assert len(blocks) == s.executed, ("source", len(blocks), s.executed)
    if blocks:
        own = collections.defaultdict(lambda: [0, 0, 0])
        for r in csv.DictReader(io.StringIO(run(kprof, "report", "--page", "source", "--csv", path))):
            of = own[r["ID"], r["Function"]]
            of[0] += int(r["inst_executed"])
            of[1] += sum(int(v) for k, v in r.items() if k.startswith("smsp__pcsamp_warps") and not k.endswith("_not_issued"))
            of[2] += 1
        assert list(blocks.values()) == [tuple(v) for v in own.values()], ("source", blocks, dict(own))
        power("source", source, listing, lambda t: t.replace('"0x', '"x', 1))

    facts = ncu("--page", "session", "--csv")
    found = session(facts)
    assert ("Device Attributes", "compute_capability_major") in found and ("Session Info", "CUPTI") in found, found
    assert found["Device Attributes", "compute_capability_major"] == str(list(s.launches.values())[0][10])
    assert "Launch Attribute" in facts and "Session Attribute" in facts and '"Process Id","Process Name"' in facts
    power("session", session, facts, lambda t: t.replace("Session Info\n", "", 1))
    print(f"{len(s.launches)} launches, {sum(map(len, s.metrics.values()))} metrics, {len(blocks)} blocks of source")


for session_path in sys.argv[2:]:
    check(sys.argv[1], session_path)
