#!/usr/bin/env python3
"""Writes the order of a program's launches as a small text, from a session with a timeline.

usage: launch_trace.py SESSION NAME OUT

After the lines of the head, which begin with "#", each line is a run of launches of one kind: KIND COUNT GAP_US. A kind is
a kernel with its grid and block, numbered as they appear; the gap is the mean time from one launch call to the next (between
starts on the device where the call's time is not known). The head has the mean GPU time of each kind. At most 20,000 runs
and about 100 KB are written; the head says how many launches these are.
"""
import sqlite3
import sys

MOST_RUNS, MOST_BYTES, MOST_KINDS = 20000, 100000, 400
KERNELS = """
    SELECT n.name, a.grid_x, a.grid_y, a.grid_z, a.block_x, a.block_y, a.block_z,
           coalesce(nullif(a.launched_ns, 0), a.start_ns), a.end_ns - a.start_ns, a.graph
    FROM activity a JOIN activity_name n ON n.id = a.name WHERE a.kind = 0 ORDER BY a.correlation, a.start_ns
"""


def read(session):
    """The kinds, each [name, shape, launches, ns], the runs, each [kind, count, ns until their last launch], and how many
    kernels were of graphs."""
    kinds, numbers, runs, graphs, last = [], {}, [], 0, None
    for name, *shape, at, ns, graph in session.execute(KERNELS):
        number = numbers.setdefault((name, *shape), len(kinds))
        if number == len(kinds):
            kinds.append([name, shape, 0, 0])
        kinds[number][2] += 1
        kinds[number][3] += ns
        graphs += graph != 0
        if not runs or runs[-1][0] != number:
            runs.append([number, 0, 0])
        runs[-1][1] += 1
        runs[-1][2] += max(0, at - last) if last is not None else 0
        last = at
    return kinds, runs, graphs


def write(path, name, out):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as session:
        kinds, runs, graphs = read(session)
        dropped = session.execute("SELECT timeline_dropped FROM session").fetchone()[0]
    lines = [f"# kind {i}: {k[2]} launches, {k[3] / k[2] / 1000:.1f} us, {k[1]}, {k[0][:60]}" for i, k in enumerate(kinds)]
    lines = lines[:MOST_KINDS]
    size, launches, body = sum(map(len, lines)), 0, []
    for kind, count, ns in runs[:MOST_RUNS]:
        body.append(f"{kind} {count} {ns / count / 1000:.0f}")
        size += len(body[-1]) + 1
        launches += count
        if size > MOST_BYTES:
            break
    total = sum(k[2] for k in kinds)
    head = [f"# {name}, {total} launches, {len(kinds)} kinds"]
    head.append(f"# {len(body)} of {len(runs)} runs, {launches} launches; {graphs} kernels of graphs; {dropped} not recorded")
    with open(out, "w") as f:
        f.write("\n".join(head + lines + body) + "\n")
    return head[0]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(write(*sys.argv[1:]))
