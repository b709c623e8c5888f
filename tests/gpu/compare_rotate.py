#!/usr/bin/env python3
"""What sessions of a rotation hold: keys, those that are complete, the intervals of one run that hold another run's means.

usage: compare_rotate.py SESSION... [--kernel SESSION]

Sessions whose names differ in the last number before .kprof alone are two runs of the same program. --kernel: a session of
the same program with kernel replay and caches left alone; the means are compared with the means of its launches.
"""
import collections
import math
import re
import sqlite3
import sys

T975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]
MOST = 0.03


def read(path):
    """{(kernel, grid, block, metric): [(mean, counted, deviation, launches it stands for), ...]} and facts of the keys."""
    db = sqlite3.connect(path)
    rows = db.execute(
        "SELECT l.demangled, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z, n.name, m.value, m.counted,"
        " m.deviation, l.alike FROM metric m JOIN launch l ON l.id = m.launch JOIN name n ON n.id = m.name"
        " WHERE m.kind IN (1, 2)"
    )
    values = collections.defaultdict(list)
    for *shape, name, value, counted, deviation, alike in rows:
        if value is not None:
            values[(*shape, name)].append((float(value), counted or 0, deviation or 0.0, alike or 1))
    keys = db.execute("SELECT alike, counted, groups, groups_counted FROM launch").fetchall()
    return values, keys


def interval(counted, deviation):
    t = T975[counted - 2] if counted - 2 < len(T975) else 2.0
    return t * deviation * math.sqrt(2 / counted)


def pair(a, b):
    """Share of means of b inside the intervals of a, and share within 3 % or the interval."""
    held = known = near = both = 0
    for key, [(mean, counted, deviation, _), *_] in a.items():
        if key not in b or not counted:
            continue
        other = b[key][0][0]
        both += 1
        close = abs(other - mean) <= MOST * max(abs(mean), abs(other))
        inside = counted >= 3 and abs(other - mean) <= interval(counted, deviation) + 1e-12 * abs(mean)
        near += close or inside
        if counted >= 3:
            known += 1
            held += inside
    return held, known, near, both


def of_all(kinds):
    """The mean of all launches of a kernel and shape, whose kinds have entries of their own, and its interval."""
    launches = sum(alike for *_, alike in kinds)
    known = all(counted >= 3 for _, counted, _, _ in kinds)
    mean = sum(value * alike for value, _, _, alike in kinds) / launches
    wide = sum(interval(counted, deviation) * alike for _, counted, deviation, alike in kinds) / launches if known else 0
    return mean, wide


def beside(rotated, replayed):
    """Means of a rotation beside the means of replayed launches."""
    agree = collections.Counter()
    total = collections.Counter()
    exact = counts = 0
    for key, kinds in rotated.items():
        if not all(counted for _, counted, _, _ in kinds) or key not in replayed:
            continue
        mean, wide = of_all(kinds)
        other = sum(v[0] for v in replayed[key]) / len(replayed[key])
        name = key[-1]
        close = abs(other - mean) <= MOST * max(abs(mean), abs(other))
        agree[name] += close or abs(other - mean) <= wide
        total[name] += 1
        if "inst_executed.sum" in name:
            counts += 1
            exact += abs(other - mean) <= 1e-9 * max(abs(other), 1)
    return agree, total, exact, counts


def of_itself(path, keys):
    """Share of rows of which the means of the second and the third third of the launches lie within 3 %: what such a
    comparison can show, where the session has three steps."""
    db = sqlite3.connect(path)
    values = collections.defaultdict(list)
    for *shape, name, value in db.execute(
            "SELECT l.demangled, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z, n.name, m.value FROM metric m"
            " JOIN launch l ON l.id = m.launch JOIN name n ON n.id = m.name WHERE m.kind IN (1, 2) ORDER BY l.id"):
        if value is not None and (*shape, name) in keys:
            values[(*shape, name)].append(float(value))
    near = known = 0
    for launches in values.values():
        third = len(launches) // 3
        if third:
            a, b = sum(launches[third:2 * third]) / third, sum(launches[2 * third:3 * third]) / third
            known += 1
            near += abs(a - b) <= MOST * max(abs(a), abs(b))
    return near, known


def main():
    args = sys.argv[1:]
    replayed = None
    if "--kernel" in args:
        i = args.index("--kernel")
        kernel = args[i + 1]
        replayed = read(kernel)[0]
        del args[i:i + 2]
    runs = collections.defaultdict(list)
    for path in args:
        values, keys = read(path)
        complete = sum(k[2] == k[3] for k in keys)
        print("%s: %d keys, %d complete, %d launches alike, %d counted" % (
            path.split("/")[-1], len(keys), complete, sum(k[0] or 0 for k in keys), sum(k[1] or 0 for k in keys)))
        runs[re.sub(r"\.\d+\.kprof$", "", path)].append(values)
        if replayed:
            agree, total, exact, counts = beside(values, replayed)
            n = sum(total.values())
            print("  beside kernel replay: %d of %d rows within 3 %% or the interval (%.1f %%); instructions %d of %d equal" % (
                sum(agree.values()), n, 100 * sum(agree.values()) / max(n, 1), exact, counts))
            worst = sorted(total, key=lambda m: agree[m] - total[m])[:12]
            counted = {key for key, kinds in values.items() if all(n for _, n, _, _ in kinds)}
            near, known = of_itself(kernel, counted)
            print("  of these kernel replay's own second and third step: %d of %d within 3 %% (%.1f %%)" % (
                near, known, 100 * near / max(known, 1)))
            for m in worst:
                if agree[m] < total[m]:
                    print("    %3d of %3d  %s" % (agree[m], total[m], m))
    for name, values in runs.items():
        if len(values) > 1:
            held, known, near, both = pair(values[0], values[1])
            print("%s: %d of %d rows of the second run inside the first one's intervals (%.1f %%); within 3 %% or inside %d of %d (%.1f %%)" % (
                name.split("/")[-1], held, known, 100 * held / max(known, 1), near, both, 100 * near / max(both, 1)))


main()
