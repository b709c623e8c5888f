#!/usr/bin/env python3
"""Checks the instructions of each graph of graphs.cu against those of the kernels launched by themselves.

Where graphs were profiled node by node, it checks each of their kernels so.

usage: compare_graphs.py RAW.csv     what `kprof report --page raw --csv` prints
"""
import csv
import sys

ALONE = 8  # launches before the first graph, of 1 to 8 blocks
METRIC = "smsp__inst_executed.sum"

with open(sys.argv[1]) as f:
    rows = [r for r in csv.DictReader(line for line in f if line.startswith('"')) if r["ID"]]
counted = [int(r[METRIC] or -1) for r in rows]
by_node = len(counted) > 3 * ALONE
graphs = [(counted[k % ALONE], counted[2]) for k in range(2 * ALONE)]
wanted = counted[:ALONE] + ([n for g in graphs for n in g] if by_node else [sum(g) for g in graphs])
wrong = [i for i, (a, b) in enumerate(zip(counted, wanted)) if a != b]
print(f"{len(counted)} rows, {len(counted) - len(wrong)} with the instructions of their kernels")
for i in wrong[:4]:
    print(f"  launch {i}: {counted[i]} instructions instead of {wanted[i]}")
sys.exit(bool(wrong) or len(counted) != len(wanted) or counted[0] <= 0)
