#!/usr/bin/env python3
"""What in_place.sh collected, column by column: in_place.py OUT

Headers and rows, and their order, have to be the same. Values agree by the rule of compare.py: equal, or at most 3 % apart.
Prints what differs, at most three of a kind for each command line, and a table last; ends with 1 if headers or rows differ.
"""
import csv
import re
import sys
from pathlib import Path

from compare import agrees

HEADER = re.compile(r"^  (\S.*) \((\d+, ){2}\d+\)x\((\d+, ){2}\d+\), .*(CC \d+\.\d+|Invocations \d+)$")


def text_rows(lines):
    """[(key, value)] of a text: launches, sections, and rows by label."""
    found, launch, section = [], 0, ""
    for line in lines:
        if HEADER.match(line):
            launch, section = launch + 1, ""
            found.append((("launch", line.strip()), None))
        elif line.startswith("    Section: "):
            section = line[13:].strip()
            found.append(((launch, "section", section), None))
        elif section and re.match(r"^    \S", line) and not re.match(r"^    (-|Metric Name|OPT|INF|WRN)", line):
            cells = re.split(r"\s{2,}", line.strip())
            parts = cells[-1].split() if len(cells) == 2 else cells[1:]
            unit, value = (parts[-2:] if len(parts) > 1 else ["", parts[-1]]) if parts else ("", "")
            found.append(((launch, section, cells[0], unit), (unit, value.replace(",", ""))))
    return ["text"], found


VALUES = ("Metric Value", "Minimum", "Maximum", "Average")
RULES = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
PROCESS = ("Process ID", "Process Name", "Host Name")


def csv_rows(lines):
    """The headings and [(key, value)] of all tables; the first columns that are not values are the key."""
    headings, found, header = [], [], None
    for row in csv.reader(lines):
        if len(row) == 1:
            headings.append(row[0])
        elif header is None or row[0] in ("ID", "Process ID", "Address", "#", "Line No") or row[0].endswith("Attribute"):
            header = row
            headings += row
        elif len(row) == 2:
            found.append((("fact", row[0]), None))
        elif "Metric Value" in header or "Average" in header:
            unit = row[header.index("Metric Unit")]
            if not row[header.index("Metric Name")]:
                continue  # a rule: kprof has its own words, and some rules of its own
            key = tuple(c for name, c in zip(header, row) if name not in VALUES + PROCESS + RULES)
            found.append((key, (unit, row[header.index("Metric Value" if "Metric Value" in header else "Average")].replace(",", ""))))
        else:
            for name, cell in list(zip(header, row))[11 if header[0] == "ID" else 2:]:
                found.append(((row[0], name), ("", cell.replace(",", ""))))
    return headings, found


def output_of(path, is_csv):
    """Without lines of the profilers and of the program, which both print alike."""
    lines = [l for l in path.read_text(errors="replace").splitlines() if not l.startswith("==")]
    if not is_csv:
        return lines
    titles = ("Launch Settings", "Session Info", "Processes", "Device Attributes")
    return [l for l in lines if l.startswith('"') or l in titles]


def numbered(rows):
    """Keys that stand several times are told apart by their number."""
    seen, out = {}, []
    for key, value in rows:
        seen[key] = seen.get(key, 0) + 1
        out.append(((key, seen[key]) if seen[key] > 1 else key, value))
    return out


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def compare(out, number, program, words):
    is_csv = "--csv" in words
    sides = {tool: (csv_rows if is_csv else text_rows)(output_of(out / f"{number}.{program}.{tool}", is_csv)) for tool in ("ncu", "kprof")}
    (theirs, their_rows), (ours, our_rows) = sides["ncu"], sides["kprof"]
    their_rows, our_rows = numbered(their_rows), numbered(our_rows)
    codes = {(out / f"{number}.{program}.{tool}.code").read_text() for tool in sides}
    told = []
    if len(codes) > 1:
        told.append(f"exit codes differ: {codes}")
    if theirs != ours:
        lost, more = [h for h in theirs if h not in ours], [h for h in ours if h not in theirs]
        at = first_difference(theirs, ours)
        told.append(f"headings: {len(lost)} only of ncu {lost[:3]}, {len(more)} only of kprof {more[:3]}, first at {at}")
    keys, own = [k for k, _ in their_rows], [k for k, _ in our_rows]
    if keys != own:
        have, want = set(own), set(keys)
        lost, more = [k for k in keys if k not in have], [k for k in own if k not in want]
        at = first_difference(keys, own)
        told.append(f"rows: {len(lost)} only of ncu {lost[:3]}, {len(more)} only of kprof {more[:3]}, first at {at}")
    values = dict(our_rows)
    both = [(k, v, values[k]) for k, v in their_rows if v and values.get(k)]
    apart = [(k, v, w) for k, v, w in both if not agrees(w, [v])]
    for key, v, w in apart[:3]:
        told.append(f"value: {key}: ncu {v}, kprof {w}")
    for line in told:
        print(f"{number} {program}: {line}"[:400])
    share = f"{100 * (len(both) - len(apart)) / len(both):.1f}" if both else "-"
    print_later.append(f"| {number} | {program} | {' '.join(words)} | {len(theirs)}/{len(ours)}{'' if theirs == ours else ' differ'} "
                       f"| {len(keys)}/{len(own)}{'' if keys == own else ' differ'} | {len(both)} | {share} |")
    return theirs == ours and keys == own and len(codes) == 1


print_later = []


def main():
    out = Path(sys.argv[1])
    done = [line.split() for line in (out / "in_place.lines").read_text().splitlines()]
    good = [compare(out, words[0], words[1], words[2:]) for words in done]
    late = out / "in_place.late"
    print("| # | program | arguments | headings ncu/kprof | rows ncu/kprof | values of both | agree % |\n| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(print_later))
    print(f"{sum(good)} of {len(good)} command lines have the same headings and rows in the same order"
          + (f"; not run for want of time: {len(late.read_text().splitlines())}" if late.exists() else ""))
    sys.exit(0 if good and all(good) else 1)


if __name__ == "__main__":
    main()
