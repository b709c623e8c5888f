#!/usr/bin/env python3
"""What in_place.sh collected, column by column: in_place.py OUT

Headers and rows, their order, exit codes and ncu's == lines have to be the same. Values agree by the rules of compare.py
and compare_full.py: at most 3 % apart, equal to ncu's last digit, or no further from ncu's runs of the kernel with that
program than these are from each other. What was sampled is not compared by value. Prints what differs, at most three of a
kind for each command line, and a table last; ends with 1 if headers or rows differ.
"""
import collections
import csv
import re
import sys
from pathlib import Path

from compare import TOLERANCE, base_value

HEADER = re.compile(r"^  (\S.*) \((\d+, ){2}\d+\)x\((\d+, ){2}\d+\), .*(CC \d+\.\d+|Invocations \d+)$")
SAMPLED = re.compile(r"stall_|[Ss]ampl")
RATES = {"/s": 1, "/ms": 1e3, "/us": 1e6, "/ns": 1e9}


def number(unit, text):
    """The cell in its base unit, and what a step of its last digit is worth; None for texts."""
    value = base_value(unit, text)
    if value is None:
        return None
    scale = base_value(unit, "1") * next((s for end, s in RATES.items() if unit.endswith(end) and "byte" not in unit), 1)
    return value / (base_value(unit, "1") or 1) * scale, 10.0 ** -len(text.partition(".")[2]) * scale


# Of a program: what ncu's runs have for a row of a kernel, whatever the command line.
spread = collections.defaultdict(list)


def agrees(ours, theirs, others):
    mine, value = number(*ours), number(*theirs)
    if ours == theirs or mine is None or value is None:
        return ours == theirs
    # ncu prints two decimals
    if abs(mine[0] - value[0]) <= max(1.01 * value[1], TOLERANCE * max(abs(value[0]), abs(mine[0]))):
        return True
    runs = [number(*o)[0] for o in others if number(*o)]
    width = max(runs) - min(runs)
    return min(abs(mine[0] - r) for r in runs) <= max(width, TOLERANCE * max(map(abs, runs)))


def text_rows(lines):
    """[(key, value)] of a text: launches, sections, titles, and rows by label."""
    found, launch, number_of, section, columns = [], "", 0, "", None
    for line in lines:
        if HEADER.match(line):
            number_of, section, columns = number_of + 1, "", None
            launch = f"{number_of} {HEADER.match(line)[1]}"
            found.append((("launch", line.strip()), None))
        elif line.startswith("    Section: "):
            section, columns = line[13:].strip(), None
            found.append(((launch, "section", section), None))
        elif re.match(r"^    -+( -+)+$", line):
            frame = [m.span() for m in re.finditer("-+", line)]
            columns = frame if len(frame) > 2 else None
        elif section and re.match(r"^    \S", line) and not re.match(r"^    (Metric Name|OPT|INF|WRN)", line):
            if not columns:
                found.append(((launch, section, line.strip()), None))
                continue
            label, unit = (line[slice(*span)].strip() for span in columns[:2])
            value = line[columns[-1][0]:].strip().replace(",", "")
            found.append(((launch, section, label), (unit, value)))
        elif not line.strip():
            columns = None
    return ["text"], found


VALUES = ("Metric Value", "Minimum", "Maximum", "Average")
RULES = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
PROCESS = ("Process ID", "Process Name", "Host Name")


def csv_rows(lines):
    """The headings and [(key, value)] of all tables; the first columns that are not values are the key."""
    headings, found, header, begin = [], [], None, None
    for row in csv.reader(lines):
        if row[0] == "Address":
            begin = None
        elif row[0].startswith("0x"):  # kprof counts addresses from the function's first
            begin = int(row[0], 16) if begin is None else begin
            row[0] = hex(int(row[0], 16) - begin)
            row[1] = re.sub(r"\b0x[0-9a-f]{4,}\b", lambda m: hex(int(m[0], 16) - begin) if int(m[0], 16) >= begin else m[0], row[1])
        if len(row) == 1:
            headings.append(row[0])
        elif row[0] == "Kernel Name" and row[2:] == [""]:
            found.append((("kernel", row[1]), None))
        elif (header is None or len(row) > 2 and row[0] in ("ID", "Process ID", "Address", "#", "Line No") or row[0] == "Process Id"
              or row[0].endswith("Attribute")):
            header = row
            headings += row
        elif len(row) == 2:
            found.append((("fact", "process" if header[0] == "Process Id" else row[0]), None))
        elif "Metric Value" in header or "Average" in header:
            unit = row[header.index("Metric Unit")]
            if not row[header.index("Metric Name")]:
                continue  # a rule: kprof has its own words, and some rules of its own
            key = tuple(c for name, c in zip(header, row) if name not in VALUES + PROCESS + RULES)
            found.append((key, (unit, row[header.index("Metric Value" if "Metric Value" in header else "Average")].replace(",", ""))))
        else:
            for name, cell in list(zip(header, row))[11 if header[0] == "ID" else 1:]:
                found.append(((row[0], name), ("", cell.replace(",", "") if name != "Source" else cell)))
    return headings, found


def output_of(path, is_csv):
    """Without lines of the profilers and of the program, which both print alike."""
    lines = [l for l in path.read_text(errors="replace").splitlines() if not l.startswith("==")]
    if not is_csv:
        return lines
    titles = ("Launch Settings", "Session Info", "Processes", "Device Attributes")
    return [l for l in lines if l.startswith('"') or l in titles]


def told_by(path):
    """Lines of ncu's own kind, without what differs between two runs: processes, passes, endings of files."""
    marks = [(r"process \d+", "process"), (r" - \d+ pass(es)?$", ""), (r"-(ncu|kprof)\.[\w-]+$", ""), (r": Note: .*", "")]
    lines = [l for l in path.read_text(errors="replace").splitlines() if l.startswith("==PROF==")]
    for mark, text in marks:
        lines = [re.sub(mark, text, l) for l in lines]
    return lines


def place_of(program, key):
    """The kernel, section and metric of a row, in whatever table; None for others."""
    key = key[0] if isinstance(key[0], tuple) else key
    if len(key) == 3:
        return program, key[0].partition(" ")[2], *key[1:]
    return (program, next(c for c in key if re.search("[A-Za-z]", c)), *key[-3:-1]) if len(key) > 8 else None


def numbered(rows):
    """Keys that stand several times are told apart by their number."""
    seen, out = {}, []
    for key, value in rows:
        seen[key] = seen.get(key, 0) + 1
        out.append(((key, seen[key]) if seen[key] > 1 else key, value))
    return out


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def read(out, number, program, words):
    is_csv = "--csv" in words
    sides = {}
    for tool in ("ncu", "kprof"):
        headings, rows = (csv_rows if is_csv else text_rows)(output_of(out / f"{number}.{program}.{tool}", is_csv))
        sides[tool] = headings, numbered(rows)
    for key, value in sides["ncu"][1]:
        if value and place_of(program, key):
            spread[place_of(program, key)].append(value)
    return sides


def compare(out, number, program, words, sides):
    (theirs, their_rows), (ours, our_rows) = sides["ncu"], sides["kprof"]
    # what ncu itself could not collect
    their_rows = [(k, v) for k, v in their_rows if not v or v[1] != "(!) n/a" or k in dict(our_rows)]
    codes = {(out / f"{number}.{program}.{tool}.code").read_text() for tool in sides}
    told = []
    if len(codes) > 1:
        told.append(f"exit codes differ: {codes}")
    lines = [told_by(out / f"{number}.{program}.{tool}") for tool in ("ncu", "kprof")]
    if lines[0] != lines[1]:
        at = first_difference(*lines)
        told.append(f"== lines: {lines[0][at:at + 1]} of ncu, {lines[1][at:at + 1]} of kprof")
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
    both = [(k, v, values[k]) for k, v in their_rows if v and values.get(k) and not SAMPLED.search(str(k))]
    apart = [(k, v, w) for k, v, w in both if not agrees(w, v, spread.get(place_of(program, k), [v]))]
    for key, v, w in apart[:3]:
        told.append(f"value: {key}: ncu {v}, kprof {w}")
    for line in told:
        print(f"{number} {program}: {line}"[:400])
    share = f"{100 * (len(both) - len(apart)) / len(both):.1f}" if both else "-"
    print_later.append(f"| {number} | {program} | {' '.join(words)} | {len(theirs)}/{len(ours)}{'' if theirs == ours else ' differ'} "
                       f"| {len(keys)}/{len(own)}{'' if keys == own else ' differ'} | {len(both)} | {share} |")
    return theirs == ours and keys == own and len(codes) == 1 and lines[0] == lines[1]


print_later = []


def main():
    out = Path(sys.argv[1])
    done = [line.split() for line in (out / "in_place.lines").read_text().splitlines()]
    sides = [read(out, words[0], words[1], words[2:]) for words in done]
    good = [compare(out, words[0], words[1], words[2:], side) for words, side in zip(done, sides)]
    late = out / "in_place.late"
    print("| # | program | arguments | headings ncu/kprof | rows ncu/kprof | values of both | agree % |\n| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(print_later))
    print(f"{sum(good)} of {len(good)} command lines have the same headings, == lines and rows in the same order"
          + (f"; not run for want of time: {len(late.read_text().splitlines())}" if late.exists() else ""))
    sys.exit(0 if good and all(good) else 1)


if __name__ == "__main__":
    main()
