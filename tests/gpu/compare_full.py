#!/usr/bin/env python3
"""Every value of ncu's details page beside kprof's, for the same program.

usage: compare_full.py [--no-exceptions] SESSION NCU [NCU ...]
       compare_full.py [--no-exceptions] --ncu NCU NCU NCU...    ncu's first run in kprof's place

SESSION is what KPROF_EXPORT wrote; NCU what `ncu --set full --print-details all --print-metric-name name --print-units
base` printed. Values are matched by launch, section, table and metric (in a table of memory, row and column are the
metric). Source-level tables and PM sampling are left out. A value agrees when it is the same, or differs by at
most 3 %. It also does when it is no further from the nearest ncu run than the ncu runs are from each other. Prints the
exceptions by metric and by cause, then the share that agrees by section.
"""
import collections
import re
import sqlite3
import sys

from compare import TOLERANCE

# What comes with source-level and PM sampling data, or describes ncu's own sampler.
ELSEWHERE = re.compile(
    r"smsp__pcsamp|sass__|memory_|derived__memory_|thread_inst_executed|profiler__|pmsampling|derived__avg_thread|"
    r"derived__derivative|smsp__branch_targets_threads_divergent$|smsp__sass_inst_executed_memdesc|\.TriageCompute\."
)
SECTIONS_ELSEWHERE = ("PM Sampling", "PM Sampling: Warp States")

# What values that do not agree come from, by kernel and metric, the first that matches.
CAUSES = [
    ("the kernel takes another time: what is per second or per cycle", None,
     r"per_second|pct_of_peak|cycles_elapsed|time_duration|per_cycle|throughput"),
    ("local memory lies elsewhere", r"^spill$", r""),
    ("PCIe: traffic of the profilers themselves", r"", r"^pcie__"),
    ("the L2 is full of the flush's lines at first, under ncu empty: traffic between its halves, requests, hits", r"",
     r"^(derived__)?(lts|lrc)__|^l1tex__m_|^breakdown:lts"),
    ("hits and misses of instructions and constants", r"", r"icc_|gcc__|idc__|no_instruction|imc_miss"),
    ("DRAM: a few Kbyte, of code, constants and translations", "little", r"dram|fbpa"),
    ("DRAM: which lines the L2 evicts while the kernel runs, for the same reason", r"", r"dram|fbpa"),
    ("clocks and rates", r"", r"per_second|pct_of_peak|cycles_elapsed|cycles_active"),
    ("stalls", r"", r"stalled"),
]
LITTLE = 1 << 20  # byte


def number(text):
    try:
        return float(text.split(" (")[0].replace(",", ""))
    except ValueError:
        return None


def read_ncu(path):
    """[(kernel, {(section, table, metric): text})] in launch order."""
    launches, section, table = [], None, ""
    columns = None
    key = None
    for line in open(path, errors="replace"):
        line = line.rstrip("\n")
        head = re.match(r"^  (\S.*) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context \d+, Stream \d+, Device", line)
        if head:
            launches.append((head.group(1), {}))
            section = None
        elif re.match(r"^    Section: ", line):
            section, table, key = line[13:].strip(), "", None
        elif line.startswith("    Table Name : "):
            table, key = line[17:].strip(), None
        elif re.match(r"^    -+ -+ -+$", line):
            columns = [(m.start(), m.end()) for m in re.finditer("-+", line)]
        elif not line.strip() or line.startswith(("    INF", "    OPT", "    WRN", "          ")) and key is None:
            key = None
        elif section and columns and launches and line.startswith("    "):
            name, value = line[columns[0][0]:columns[0][1]].strip(), line[columns[2][0]:].strip()
            if name == "Metric Name" or (name and not re.match(r"^[\w.:]+$", name)):
                key = None
            elif name:
                key = (section, table, name)
                launches[-1][1].setdefault(key, value)
            elif key:  # a long value goes on
                launches[-1][1][key] += " " + value
    return launches


def read_session(path):
    """[(kernel, {metric: text})] in launch order."""
    db = sqlite3.connect(path)
    launches = []
    for ident, name in db.execute("SELECT id, demangled FROM launch ORDER BY id"):
        rows = db.execute("SELECT n.name, m.kind, m.value FROM metric m JOIN name n ON n.id = m.name WHERE m.launch = ?",
                          (ident,))
        launches.append((name, {metric: "n/a" if kind == 0 else str(value) for metric, kind, value in rows}))
    return launches


def agrees(mine, others):
    if mine is None:
        return False
    if mine in others:
        return True
    value, values = number(mine), [number(o) for o in others]
    if value is None or None in values:
        return mine.strip() in [re.sub(r"^\d+ \((.*)\)$", r"\1", o) for o in others]
    # ncu prints two decimals
    value_shown = round(value, 2)
    if any(abs(value_shown - v) <= 0.0101 for v in values):
        return True
    nearest = min(abs(value - v) for v in values)
    spread = max(values) - min(values)
    return nearest <= max(spread, TOLERANCE * max(abs(v) for v in values))


def cause(kernel, rows, slow, metric):
    name = re.sub(r"[<(].*", "", kernel).split()[-1]
    for text, kernels, metrics in CAUSES:
        applies = slow if kernels is None else True
        if kernels == "little":
            applies = (number(rows.get("dram__bytes.sum", "")) or number(rows.get("dram__bytes_read.sum", "0")) or 0) < LITTLE
        elif kernels:
            applies = re.search(kernels, name) is not None
        if applies and re.search(metrics, metric):
            return text
    return "others"


def print_causes(mine, faults):
    slow = {i for (_, metric), list_ in faults.items() if metric == "gpu__time_duration.sum" for i, _, _ in list_}
    causes = collections.Counter()
    for (_, metric), list_ in faults.items():
        for i, value, theirs in list_:
            text = cause(mine[i][0], mine[i][1], i in slow, metric)
            causes[text] += 1
            if text == "others":
                print("others: %d %s: %s | %s" % (i, metric, value, " / ".join(theirs)[:60]))
    print("| values | cause |\n| --- | --- |")
    for text, n in causes.most_common():
        print("| %d | %s |" % (n, text))


def compare(mine, others, exceptions):
    tally, faults = {}, {}
    for i, (kernel, rows) in enumerate(mine):
        for key in others[0][i][1]:
            section, table, metric = key
            if ELSEWHERE.search(metric) or section in SECTIONS_ELSEWHERE:
                continue
            theirs = [o[i][1][key] for o in others if key in o[i][1]]
            value = rows.get(key) if key in rows else rows.get(metric)
            nothing = all(t == "(!) n/a" for t in theirs)
            ok = (value in (None, "n/a", "(!) n/a")) if nothing else agrees(value, theirs)
            done = tally.setdefault(section, [0, 0])
            done[0] += ok
            done[1] += 1
            if not ok:
                faults.setdefault((section, metric), []).append((i, value, theirs))
    if exceptions:
        for (section, metric), list_ in sorted(faults.items(), key=lambda f: (f[0][0], -len(f[1]), f[0][1])):
            shown = "; ".join("%d: %s | %s" % (i, value, " / ".join(t)) for i, value, t in list_[:3])
            print("%-22.22s %-2d %s  %s" % (section, len(list_), metric, shown[:150]))
        print_causes(mine, faults)
    return tally


def main():
    args = [a for a in sys.argv[1:] if a != "--no-exceptions"]
    exceptions = len(args) == len(sys.argv) - 1
    if args[0] == "--ncu":
        mine, others = read_ncu(args[1]), [read_ncu(p) for p in args[2:]]
    else:
        mine, others = read_session(args[0]), [read_ncu(p) for p in args[1:]]
    if not mine or any(len(o) != len(mine) for o in others):
        sys.exit("launches: kprof %d, ncu %s" % (len(mine), [len(o) for o in others]))
    for i, (kernel, _) in enumerate(mine):
        if kernel.split("(")[0].split("<")[0].split()[-1:] != others[0][i][0].split("(")[0].split("<")[0].split()[-1:]:
            print("launch %d: %s | ncu: %s" % (i, kernel, others[0][i][0]))
    tally = compare(mine, others, exceptions)
    print("| section | values | agree |\n| --- | --- | --- |")
    for section, (ok, n) in tally.items():
        print("| %s | %d | %d (%.1f %%) |" % (section, n, ok, 100.0 * ok / n))
    ok, n = (sum(t[k] for t in tally.values()) for k in (0, 1))
    print("| all | %d | %d (%.1f %%) |" % (n, ok, 100.0 * ok / max(n, 1)))


if __name__ == "__main__":
    main()
