#!/usr/bin/env python3
"""Prints the share of lines and of branches that ran, by room, and fails if a room is below its floor.

coverage.py OBJECTS FLOORS [ROOM|FILE]   OBJECTS: folder of objects compiled with --coverage, after they have run;
FLOORS: a file of lines `ROOM LINES BRANCHES`, in per cent, `all` for the sum; with a ROOM or FILE, prints the parts of it that did not run

A line or a branch of a header counts once, and has run if it has run for any file that includes the header."""
import glob
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

FOLDERS = ("base", "report", "cupti", "collectors", "cmd", "preload")


def count_batch(notes):
    """gcov's counts of some objects: one document a line."""
    said = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *notes], capture_output=True, text=True)
    return [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]


def read_counts(objects):
    """lines[file][line] = how often it ran, branches[file][line, index] likewise, over all objects."""
    lines, branches = {}, {}
    notes = sorted(glob.glob(objects + "/**/*.gcno", recursive=True))
    notes = [n for n in notes if os.path.relpath(n, objects).split("/")[0] in FOLDERS]
    batches = [notes[i : i + 20] for i in range(0, len(notes), 20)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        documents = [d for batch in pool.map(count_batch, batches) for d in batch]
    for document in documents:
        for source in document["files"]:
            name = source["file"]
            if name.split("/")[0] not in FOLDERS:
                continue
            of_lines, of_branches = lines.setdefault(name, {}), branches.setdefault(name, {})
            for line in source["lines"]:
                number = line["line_number"]
                of_lines[number] = of_lines.get(number, 0) + line["count"]
                for index, branch in enumerate(line["branches"]):
                    key = number, index
                    of_branches[key] = of_branches.get(key, 0) + branch["count"]
    return lines, branches


def read_floors(path):
    floors = {}
    for line in open(path):
        words = line.split("#")[0].split()
        if words:
            floors[words[0]] = float(words[1]), float(words[2])
    return floors


def share(counts):
    """Of several files' counts: how many ran, of how many."""
    values = [count for of_file in counts for count in of_file.values()]
    return sum(count > 0 for count in values), len(values)


def per_cent(part):
    ran, of = part
    return 100 * ran / of if of else 100


def print_missing(what, lines, branches):
    for name in sorted(lines):
        if name == what or os.path.dirname(name) == what:
            for number in sorted(n for n, count in lines[name].items() if not count):
                print(f"{name}:{number}: did not run")
            lonely = sorted({n for (n, _), count in branches[name].items() if not count and lines[name][n]})
            for number in lonely:
                print(f"{name}:{number}: a branch was not taken")


def main():
    lines, branches = read_counts(sys.argv[1])
    if not lines:
        print(f"coverage: no counts in {sys.argv[1]}")
        return 1
    if len(sys.argv) > 3:
        print_missing(sys.argv[3], lines, branches)
        return 0
    floors = read_floors(sys.argv[2])
    rooms = {}
    for name in lines:
        rooms.setdefault(os.path.dirname(name), []).append(name)
    below = [f"{room} is no room" for room in floors if room != "all" and room not in rooms]
    print(f"{'room':24} {'lines':>7} {'ran':>7} {'floor':>6} {'branches':>9} {'ran':>7} {'floor':>6}")
    for room, names in [*sorted(rooms.items()), ("all", list(lines))]:
        of_lines = share(lines[name] for name in names)
        of_branches = share(branches[name] for name in names)
        if room not in floors:
            below.append(f"{room} has no floor")
        wanted = floors.get(room, (0, 0))
        print(
            f"{room:24} {of_lines[1]:7} {per_cent(of_lines):6.1f}% {wanted[0]:5g}% "
            f"{of_branches[1]:9} {per_cent(of_branches):6.1f}% {wanted[1]:5g}%"
        )
        for what, part, floor in (("lines", of_lines, wanted[0]), ("branches", of_branches, wanted[1])):
            if per_cent(part) < floor:
                below.append(f"{room}: {per_cent(part):.1f}% of its {what} ran, its floor is {floor:g}%")
    for text in below:
        print("coverage: " + text)
    print(f"coverage: {len(lines)} files in {len(rooms)} rooms, {len(below)} faults")
    return len(below) > 0


sys.exit(main())
