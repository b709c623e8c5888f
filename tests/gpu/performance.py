#!/usr/bin/env python3
"""docs/performance.md, made of the results of the last run of the suite; `make tables` writes the file.

usage: performance.py RESULTS     RESULTS: results.csv, as `suite.sh OUT short` writes it

Fails when the page would be longer than LIMIT bytes, when the rows are of more than one run, or when there are none.
"""
import csv
import re
import sys

LIMIT = 8192
HEAD = """# Performance

What the last run of `tests/gpu/suite.sh OUT short` measured, kprof and ncu on one machine.
`tests/gpu/performance.py` makes this page of the run's results, `tests/gpu/results.csv`.

| commit | date | machine |
| --- | --- | --- |
| {commit} | {date} | {machine} |

- Ratio: ncu's time by kprof's, or the share of values that agree. A value agrees if it equals ncu's to two decimals,
  differs by at most 3 %, or is as close to ncu's as two runs of ncu are to each other.
- Goal: what the project aims at, and whether this run met it.
- ms a launch: the time above native, set-up included, divided by the launches.
- Times vary between runs and machines; ratios vary less.
"""
# What each part of the suite measures, in the order of the page.
PARTS = [
    ("bench", "What profiling costs", "`bench_launches.cu`: small kernels in one process."),
    ("full", "The full set", "Every value of `ncu --set full --print-details all` for `patterns.cu`."),
    ("run", "Programs as they are", "Output and exit code with and without kprof, and the basic set beside ncu's."),
    ("source", "Instructions and samples", "SASS metrics, samples of warps, and series over time."),
    ("why", "Cold and warm caches", "L2 traffic with both values of `--cache-control`: kernels within 3 % of ncu."),
    ("choose", "Filters and call stacks", "A PyTorch program with two loader processes."),
    ("graphs", "CUDA graphs", "Kernels of graphs, node by node. Ratio: time above native."),
    ("rotate", "Rotation", "ResNet-18 with `--replay-mode rotate`, one launch for each group of counters."),
    ("app_replay", "Application replay", "`--replay-mode application` beside ncu's."),
    ("timeline", "Timeline", "20,000 launches of an empty kernel."),
    ("real", "Other programs", "Not written for kprof."),
]


def page(rows):
    runs = {(row["commit"], row["date"], row["machine"]) for row in rows}
    if len(runs) != 1:
        raise ValueError(f"rows of {len(runs)} runs instead of one")
    unknown = {row["part"] for row in rows} - {name for name, _, _ in PARTS}
    if unknown:
        raise ValueError(f"no heading for {', '.join(sorted(unknown))}")
    text = HEAD.format(**rows[0])
    for name, heading, about in PARTS:
        cells = [[row[c].replace("|", "\\|") for c in ("case", "kprof beside ncu", "ratio", "goal")] for row in rows if row["part"] == name]
        for row in cells:
            row[1] = row[1].removesuffix(" kernels within 3 %")  # said once, above the rows
            row[1] = re.sub(r"(; (ncu|native)|,) -(?=;|$)", "", row[1])  # not measured
        if cells:
            text += f"\n## {heading}\n{about}\n\n| case | kprof beside ncu | ratio | goal |\n| --- | --- | --- | --- |\n"
            text += "".join("| " + " | ".join(row) + " |\n" for row in cells).replace("|  |", "| |").replace("|  |", "| |")
    if len(text.encode()) > LIMIT:
        raise ValueError(f"{len(text.encode())} bytes, more than {LIMIT}")
    return text


def main():
    with open(sys.argv[1], newline="") as f:
        rows = list(csv.DictReader(f))
    try:
        sys.stdout.write(page(rows))
    except ValueError as e:
        sys.exit(f"performance.py: {sys.argv[1]}: {e}")


main()
