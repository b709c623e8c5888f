#!/usr/bin/env python3
"""How far kprof's rows of the kernels of a graph are from ncu's, and ncu's two runs from each other.

usage: graph_ratios.py KPROF NCU NCU    details pages as text, of the same launches
Prints, for each row that is measured, the median of kprof's value by that of ncu's first run, and that of ncu's second run
by its first. Prints how many launches each has within 3 %, too.
"""
import statistics
import sys

import compare

mine, first, second = (compare.read(path) for path in sys.argv[1:4])
table = {}
for a, b, c in zip(mine, first, second):
    for key in b[1]:
        values = [compare.base_value(*x[1].get(key, ("", "n/a"))) for x in (a, b, c)]
        if None in values or not values[1] or key[0] in ("Launch Statistics", "Occupancy"):
            continue
        table.setdefault(key, []).append((values[0] / values[1], values[2] / values[1]))
print("| row | launches | kprof / ncu | ncu / ncu | kprof within 3 % | ncu within 3 % |\n| --- | --- | --- | --- | --- | --- |")
for (section, label), ratios in table.items():
    ours, theirs = zip(*ratios)
    near = [sum(abs(r - 1) <= compare.TOLERANCE for r in x) for x in (ours, theirs)]
    print(f"| {section[:22]}: {label} | {len(ratios)} | {statistics.median(ours):.3f} | {statistics.median(theirs):.3f} | {near[0]} | {near[1]} |")
