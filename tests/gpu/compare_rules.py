#!/usr/bin/env python3
"""The advice of kprof's rules beside that of ncu's, for the same program.

usage: compare_rules.py KPROF NCU      details pages as text, both with all sections of the full set

Messages are matched by launch, section, order, severity and kind of estimate. An estimate agrees within 2 percentage
points. What needs source-level or PM sampling data is left out, and so are kprof's own rules. Prints what differs, then
a table by section.
"""
import re
import sys

# By ncu's section and a number that only the message of that rule has: those of source-level and PM sampling data.
ELSEWHERE = ("PM Sampling", "Source Counters")
OWN = ("tensor cores", "carve-out", "are local memory")  # rules that ncu does not have
POINTS = 2.0


def read(path):
    """[(kernel, {section: [(severity, global, estimate, text)]})] in launch order."""
    launches, section, message = [], None, None
    for line in open(path, errors="replace"):
        line = line.rstrip("\n")
        head = re.match(r"^  (\S.*) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context", line)
        if head:
            launches.append((head.group(1), {}))
            section = message = None
        elif line.startswith("    Section: "):
            section, message = line[13:].strip(), None
        elif launches and section and re.match(r"^    (OPT|INF|WRN)  ", line):
            text = line[10:].strip()
            estimate = re.match(r"^Est\. (Local )?Speedup: ([-\d.e+]+)%$", text)
            message = [line[4:7], None, None, ""]
            if estimate:
                message[1:3] = not estimate.group(1), float(estimate.group(2))
            else:
                message[3] = text
            launches[-1][1].setdefault(section, []).append(message)
        elif message and line.startswith("          "):
            message[3] += (" " if message[3] else "") + line.strip()
        elif not line.startswith("    ---"):
            message = None
    return launches


def same(a, b):
    if a[0] != b[0] or a[1] != b[1]:
        return False
    return a[2] is None or abs(a[2] - b[2]) <= POINTS


def show(m):
    kind = "" if m[1] is None else " %s%.4g %%" % ("" if m[1] else "local ", m[2])
    return "%s%s %s" % (m[0], kind, m[3][:60])


def main():
    mine, theirs = read(sys.argv[1]), read(sys.argv[2])
    if len(mine) != len(theirs):
        sys.exit("launches: kprof %d, ncu %d" % (len(mine), len(theirs)))
    tally = {}
    for i, ((kernel, ours), (_, others)) in enumerate(zip(mine, theirs)):
        for section in sorted(set(ours) | set(others)):
            if section in ELSEWHERE:
                continue
            left = [m for m in ours.get(section, []) if not any(word in m[3] for word in OWN)]
            done = tally.setdefault(section, [0, 0, 0])
            for other in others.get(section, []):
                match = next((m for m in left if same(m, other)), None)
                done[0] += 1
                done[1] += match is not None
                if match:
                    left.remove(match)
                else:
                    print("%-2d %-18.18s %-28.28s ncu:   %s" % (i, kernel, section, show(other)))
            for m in left:
                done[2] += 1
                print("%-2d %-18.18s %-28.28s kprof: %s" % (i, kernel, section, show(m)))
    print("| section | messages of ncu | the same in kprof | only in kprof |\n| --- | --- | --- | --- |")
    for section, done in sorted(tally.items()):
        print("| %s | %d | %d | %d |" % (section, *done))
    print("| all | %d | %d | %d |" % tuple(sum(t[k] for t in tally.values()) for k in range(3)))


if __name__ == "__main__":
    main()
