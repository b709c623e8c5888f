#!/usr/bin/env python3
"""Compares the times of launches that passed within a budget with those of a timeline of the same program.

usage: passed.py NAME TIMELINE.kprof AUTO.kprof

Prints a row of a table: launches that the timeline has; of kernels with results, those that the entries stand for, how many of
these passed, and how many passed ones have a record; the mean of a recorded kernel beside that of the timeline (the median over
kernels, the worst); and by how many points of a hundred the share of time of a kernel is off at most, with records and as it would
be without. Exit code 1: entries stand for more launches or fewer than the timeline has, less than nine in ten that passed have a
record, a mean is off by more than a tenth, or a share by more than 2 points.
"""
import sqlite3
import statistics
import sys

name, timeline, auto = sys.argv[1:]
ran = {k: (n, ns) for k, n, ns in sqlite3.connect(timeline).execute(
    "SELECT name, count(*), sum(ns) FROM activities WHERE kind = 0 GROUP BY name")}
entries = list(sqlite3.connect(auto).execute("""
    SELECT l.demangled, max(l.alike, 1), CASE WHEN l.groups > 0 THEN min(l.counted, l.alike) ELSE 1 END, l.recorded, l.recorded_ns,
    (SELECT m.value FROM metrics m WHERE m.launch = l.id AND m.name = 'gpu__time_duration.sum') FROM launch l"""))
stands, passed, recorded, means, of_records, of_entry = {}, 0, 0, {}, {}, {}
for kernel, launches, own, n, ns, measured in entries:
    stands[kernel] = stands.get(kernel, 0) + launches
    passed += launches - own
    recorded += min(n or 0, launches - own)
    if n:
        all_n, all_ns = means.get(kernel, (0, 0))
        means[kernel] = all_n + n, all_ns + ns
    mean = ns / n if n else measured or 0
    of_records[kernel] = of_records.get(kernel, 0) + own * (measured or mean) + (launches - own) * mean
    of_entry[kernel] = of_entry.get(kernel, 0) + launches * (measured or 0)


def off(times):
    """By how much the share of a kernel among those with entries is off at most."""
    truth = {k: ran[k][1] for k in times if k in ran}
    return max((abs(100 * times[k] / sum(times.values()) - 100 * truth[k] / sum(truth.values())) for k in truth), default=0)


wrong = [f"{k}: {stands[k]} instead of {ran.get(k, (0, 0))[0]}" for k in stands if stands[k] != ran.get(k, (0, 0))[0]]
ratios = sorted((ns / n) / (ran[k][1] / ran[k][0]) for k, (n, ns) in means.items() if k in ran)
worst = max(ratios, key=lambda r: abs(r - 1)) if ratios else 0
median = statistics.median(ratios) if ratios else 0
print(f"| {name} | {sum(n for n, _ in ran.values())} | {sum(stands.values())} | {passed} | {recorded} | {median:.3f}, {worst:.3f} | "
      f"{off(of_records):.1f} | {off(of_entry):.1f} |")
for line in wrong[:8]:
    print(f"  FAILED: {name}: stands for another number of launches: {line}")
bad = [f"{recorded} of {passed} have a record"] * (recorded < 0.9 * passed)
bad += [f"the mean of a kernel is {worst:.3f} of the timeline's"] * bool(ratios and abs(worst - 1) > 0.1)
bad += [f"a share is off by {off(of_records):.1f} points"] * (off(of_records) > 2)
for line in bad:
    print(f"  FAILED: {name}: {line}")
sys.exit(bool(wrong or bad))
