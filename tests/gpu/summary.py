#!/usr/bin/env python3
"""One table of what the parts of `suite.sh OUT short` found.

usage: summary.py LOGS [RESULTS COMMIT MACHINE]     LOGS: a folder for each part with what it wrote (out, err and its
files), and parts.tsv: name, exit code ("time" where the part was ended), seconds, limit, command

Prints at most LIMIT characters: a row for each part, and below it those of its lines that a row of FOUND knows. What failed
follows the table. RESULTS is a CSV file that gets the same rows, all of them, for performance.py.
"""
import csv
import datetime
import os
import re
import sys

LIMIT = 11500
NUMBER = r"([0-9.,]+|n/a)"
CELL = r" ([^|]*?) \|"

# A part, a pattern of a line of its output, and what its groups are shown as: what ran, kprof beside ncu, ratio, verdict.
FOUND = [
    ("timeline", r"\| native \| (\d+) \| \|", "native", r"\1 ns a launch", "", ""),
    ("timeline", r"\| (kprof[^|]*) \| (\d+) \| (-?\d+) \|", r"\1", r"\2 ns a launch, \3 above native", "", ""),
    ("timeline", r"(basic|quick): (.*): own execution ([\d.]+) ns, counted ([\d.]+) ns", r"\1: \2",
     r"own execution \3 ns, counted \4 ns", "", ""),
    ("timeline", r"kernels take (\d+) ns in the session and (\d+) in the trace; (\d+) failures", "session, trace",
     r"\1, \2 ns", "", r"\3 failures"),
    ("app_replay", r"\| (patterns|torch) \|" + CELL * 8, r"\1, application replay, \2 launches",
     r"\5 runs, \6 s (kernel replay \7), ncu \8 s; \3 rows agree, \4 n/a", "{8} / {6}", r"same exit code: \9"),
    ("rotate", r"(native): ([\d.]+) s$", r"\1", r"\2 s", "", ""),
    ("rotate", r"(\S+\.\d\.\d): ([\d.]+) s; output (\S+); (.*)", r"set.launches.run \1", r"\2 s; \4", "", r"output \3"),
    ("rotate", r"(\S+)\.kprof: (\d+) keys, (\d+) complete, .*", r"\1", r"\3 of \2 keys complete", "", ""),
    ("rotate", r"(\S+): (\d+) of (\d+) rows of the second run inside .*\(([\d.]+ %)\).*", r"\1, two runs",
     r"\2 of \3 rows inside the first one's intervals (\4)", "", ""),
    ("graphs", r"\| (\S+) \| exit code (\d+) \| same output: (\w+) \|(.*)\| native (\S+) s, kprof (\S+) s, ncu (\S+) s \|",
     r"\1:\4", r"native \5 s, kprof \6, ncu \7", "({7} - {5}) / ({6} - {5})", r"exit code \2, same output: \3"),
    ("graphs", r"launches of ncu: (\d+), of kprof: (\d+); in the same order with the same grids: (\w+)", "order, grids",
     r"\2, ncu \1 launches", "", r"the same: \3"),
    ("graphs", r"\| ([A-Z][^|]*) \| (\d+) \| (\d+) \((.*)\) \|", r"\1: rows", r"\3 of \2 agree", r"\4", ""),
    ("source", r"\| (phases|patterns|torch|triton), (\d+) launches \|" + CELL * 6, r"full set of \1, \2 launches",
     r"\7, ncu \6 ms a launch", r"\8", ""),
    ("source", r"\| (totals of SASS metrics equal|mixes of opcodes equal|stall shares within.*|series of .*) \| (.*) \|", r"\1",
     r"\2", "", ""),
    ("source", r"launch (\d+): (\d+) series of kprof, (\d+) of ncu, (\d+) of both", r"series of launch \1",
     r"\2, ncu \3, of both \4", "", ""),
    ("choose", r"(stacks|loader|batch 2|gemm|diff|trace of a training step): (.*)", r"\1", r"\2", "", ""),
    ("full", r"\| (.*), (\d+) launches(.*) \|" + CELL * 6, r"\1, \2 launches\3", r"\8, ncu \7 ms a launch", r"\9", ""),
    ("full", r"\| all \| (\d+) \| (\d+) \((.*)\) \|", "values of the full page", r"\2 of \1 agree", r"\3", ""),
    ("full", r"\| all \| (\d+) \| (\d+) \| (\d+) \|", "messages of the rules", r"\2 of \1 the same, \3 only kprof's", "", ""),
    ("run", r"\| (\S+) \| (\d+|none) \| (\d*) \| (\d*) \|" + CELL * 4, r"\1: launches",
     r"seen \3 of \2 traced, profiled \4; \8 ms each", "", r"same output: \6; exit codes \7"),
    ("run", r"(graphs, .*): (\d+) rows, (\d+) with the instructions.*", r"\1", r"\3 of \2 rows right", "", ""),
    ("run", r"\| ([A-Z][^|]*) \| (\d+) \| (\d+) \((.*)\) \|", r"\1: rows", r"\3 of \2 agree", r"\4", ""),
    ("run", r"\| (ncu|kprof)-(basic\S*) \| (\S+) \| (\S+) \|", r"patterns, \2, \1", r"\3 s; \4 ms a launch", "", ""),
    ("run", r"one launch in one small program: ncu (\S+) s, kprof (\S+) s", "one launch, whole process", r"\2, ncu \1 s",
     "{1} / {2}", ""),
    ("bench", r"row: \|" + CELL * 7, r"\1", r"\4, \5; ncu \3; native \2", r"\6", r"\7"),
    ("real", r"\| (\S+) \| Python \| (\d+) \|" + CELL * 7, r"\1, \2 launches; native \3 s", r"quick \4 s, basic \7 s", "",
     r"the same: \6, \9"),
    ("real", r"(basic|quick): (\d+ of \d+ the same), (\d+) more accepted.*", r"\1", r"\2", "", ""),
]
# Where a part's lines are, beside its output.
FILES = {"bench": ["bench.log"]}


def lines_of(folder, names):
    for name in names:
        try:
            with open(os.path.join(folder, name), errors="replace") as f:
                yield from f.read().splitlines()
        except OSError:
            pass


def computed(formula, match):
    """A formula over {1}, {2} ..., the groups as numbers; "" where one is none."""
    try:
        values = [0.0] + [float((g or "").replace(",", "")) if f"{{{i + 1}}}" in formula else 0.0
                          for i, g in enumerate(match.groups())]
        return f"{eval(re.sub(r'{(.)}', lambda m: repr(values[int(m.group(1))]), formula)):.1f}"
    except (ValueError, ZeroDivisionError):
        return ""


def found(part, folder):
    for line in lines_of(folder, ["out"] + FILES.get(part, [])):
        for name, pattern, *shown in FOUND:
            match = re.fullmatch(pattern, line) if name == part else None
            if match:
                yield [computed(s, match) if "{" in s else match.expand(s).strip() for s in shown]
                break
    if part == "why":
        yield from ways(folder)


def ways(folder):
    """Of each metric that why.sh read: of how many kernels kprof's value is within 3 % of ncu's, cold and warm."""
    tables, metric = {}, None
    for line in lines_of(folder, ["out"]):
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("## "):
            metric = line[3:]
        elif metric and len(cells) > 1 and cells[0] in ("ncu", "kprof", "ncu-warm", "kprof-warm"):
            tables.setdefault(metric, {})[cells[0]] = cells[1:]
    for metric, rows in tables.items():
        shown = []
        for warm in ("", "-warm"):
            pairs = [(a, b) for a, b in zip(rows.get("kprof" + warm, []), rows.get("ncu" + warm, [])) if not {a, b} & {"-", ""}]
            near = sum(abs(float(a) - float(b)) <= 0.03 * abs(float(b)) for a, b in pairs)
            shown.append(f"{'warm' if warm else 'cold'} {near} of {len(pairs)}")
        yield [metric, "; ".join(shown) + " kernels within 3 %", "", ""]


def judge(code, limit):
    if code == "time":
        return f"**ran out of its {limit} s**"
    return "ended well" if code == "0" else f"**exit code {code}**"


def complaints(part, code, folder):
    """What the part said of its failures, and the end of its errors where it has not ended well."""
    said = [line for line in lines_of(folder, ["out", "err"]) if re.search(r"FAILED|^==ERROR==|<-- differs", line)]
    said = list(dict.fromkeys(said))[:5]
    if code != "0":
        said += [line for line in lines_of(folder, ["err"]) if line.strip() and line not in said][-3:]
    return [f"{part}: {line.strip()[:220]}" for line in said]


def write_results(path, commit, machine, rows):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["commit", "date", "machine", "part", "case", "kprof beside ncu", "ratio", "goal"])
        out.writerows([commit, datetime.date.today().isoformat(), machine, *row] for row in rows)


def main():
    logs = sys.argv[1]
    table, said = ["| part | what ran | kprof beside ncu | ratio | verdict | s |", "| --- | --- | --- | --- | --- | --- |"], []
    results = []
    with open(os.path.join(logs, "parts.tsv")) as f:
        parts = list(csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE))
    for part, code, seconds, limit, command in parts:
        folder = os.path.join(logs, part)
        table.append(f"| **{part}** | `{command.strip()[:90]}` | | | {judge(code, limit)} | {seconds} |")
        try:
            for row in found(part, folder):
                table.append("| | " + " | ".join(cell[:110] for cell in row) + " | |")
                results.append([part, *row])
        except (ValueError, IndexError) as e:  # the other parts' rows are worth more than this one's
            said.append(f"{part}: its output is not understood: {e}")
        said += complaints(part, code, folder)
    if len(sys.argv) > 2:
        write_results(*sys.argv[2:5], results)
    text = "\n".join(table)
    rest = "\n".join(said)
    if len(text) + len(rest) + 60 > LIMIT:
        rest = rest[:max(0, LIMIT - len(text) - 60)] + "\n(cut short; the rest is in the logs)"
    print(f"{text}\n\n{rest}"[:LIMIT])


if __name__ == "__main__":
    main()
