#!/usr/bin/env python3
"""Rows of kprof's report beside those of ncu's, for the same program.

usage: compare.py KPROF NCU [NCU ...]      details pages as text; more ncu runs give ncu's own spread

A row agrees when the printed values are equal, or differ by at most 3 %. It also does when kprof is no further from the
nearest ncu run than the ncu runs are from each other. Rows of launch and occupancy have to be equal. Prints one line a
row that does not agree, then a table by section, and exits with 1 when an exact row differs.
"""
import re
import sys

LADDERS = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
EXACT = ("Launch Statistics", "Occupancy")
MEASURED = ("Achieved Occupancy", "Achieved Active Warps Per SM")
TOLERANCE = 0.03
NOT_AVAILABLE = ("(!)", "n/a")  # said so in the report, with the reason; counted as not agreeing


def base_value(unit, text):
    """The cell as a number in its base unit; None for texts."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    if unit in TIMES:
        return value * TIMES[unit]
    if unit[:1] in LADDERS and unit[1:] in ("byte", "byte/s", "byte/block", "hz", "byte/cycle"):
        return value * LADDERS[unit[0]]
    return value


def read(path):
    """[(kernel, {(section, label): (unit, text)})] in launch order."""
    launches, section = [], None
    for line in open(path, errors="replace"):
        head = re.match(r"^  (\S.*) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context \d+, Stream \d+, Device", line)
        if head:
            launches.append((head.group(1), {}))
            continue
        title = re.match(r"^    Section: (.*)$", line)
        if title:
            section = title.group(1)
            continue
        row = re.match(r"^    (\S.*?)\s{2,}(?:(\S+)\s+)?(\S+)$", line.rstrip())
        if launches and section and row and not set(row.group(1)) <= {"-", " "} and row.group(1) != "Metric Name":
            # Whether thousands have commas depends on the locale that a report was written in.
            launches[-1][1][(section, row.group(1))] = (row.group(2) or "", row.group(3).replace(",", ""))
    return launches


def agrees(mine, others):
    values = [base_value(*o) for o in others]
    value = base_value(*mine)
    if mine in others:
        return True
    if value is None or None in values:
        return False
    nearest = min(abs(value - v) for v in values)
    spread = max(values) - min(values)
    scale = max(abs(v) for v in values)
    return nearest <= spread or nearest <= TOLERANCE * scale


def main():
    mine, others = read(sys.argv[1]), [read(p) for p in sys.argv[2:]]
    if not mine or any(len(o) != len(mine) for o in others):
        sys.exit("launches: kprof %d, ncu %s" % (len(mine), [len(o) for o in others]))
    tally, exact_faults = {}, 0
    for i, (kernel, rows) in enumerate(mine):
        names = {o[i][0] for o in others}
        if names != {kernel}:
            print("name: %s | ncu: %s" % (kernel, names))
        for key in others[0][i][1]:
            section, label = key
            if section not in {s for s, _ in rows}:
                continue
            theirs = [o[i][1][key] for o in others if key in o[i][1]]
            ok = key in rows and agrees(rows[key], theirs)
            exact = section in EXACT and label not in MEASURED
            if exact and (key not in rows or rows[key] not in theirs):
                ok = False
                exact_faults += rows.get(key) != NOT_AVAILABLE
            done = tally.setdefault(section, [0, 0])
            done[0] += ok
            done[1] += 1
            if not ok:
                print("%-2d %-20s %-34s kprof %-16s ncu %s" % (
                    i, kernel.split("(")[0][-20:], label, " ".join(rows.get(key, ("", "absent"))[::-1]),
                    " / ".join(t[1] for t in theirs)))
        missing = set(rows) - set(others[0][i][1])
        for section, label in sorted(missing):
            if section in {s for s, _ in others[0][i][1]}:
                print("%-2d only kprof has: %s / %s" % (i, section, label))
    print("| section | rows | agree |\n| --- | --- | --- |")
    for section, (ok, n) in tally.items():
        print("| %s | %d | %d (%.1f %%) |" % (section, n, ok, 100.0 * ok / n))
    sys.exit(1 if exact_faults else 0)


if __name__ == "__main__":
    main()
