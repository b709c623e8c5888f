#!/usr/bin/env python3
"""Fails on an include or a call that goes from a room to a later one of rooms.txt, or to the wrong vendor's header.

check_layers.py [OBJECTS]   OBJECTS: folder of compiled objects, whose calls are also checked

`only ROOM ROOMS...` in rooms.txt: no other room calls the room's functions. A circle of files that call each other is a fault. `straight ROOMS...`: files of these rooms do not include each other's headers in a circle, either."""
import glob
import os
import re
import subprocess
import sys

FOLDERS = ("base", "report", "cupti", "collectors", "cmd", "preload")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]')
# KP_VENDOR: CUPTI's and PerfWorks' headers are cupti/'s alone; report/ and base/ know nothing of CUDA.
CUPTI_HEADER = re.compile(r"(cupti|nvperf)[^/]*\.h$")
# A function of a loaded table, called past KP_CALL of cupti/internal.h, which refuses calls of a CUPTI that was given up.
PAST_GATE = re.compile(r"(->|\.)(cupti|NVPW_)\w+\(")
CUDA_HEADER = re.compile(r"(cu[a-z_]*(Typedefs|Profiler)?\.h|cuda.*\.h|nv.*\.h|crt/.*)$")

faults = 0


def fault(text):
    global faults
    faults += 1
    print(text)


def read_rooms():
    rooms, only, straight = [], {}, set()
    for line in open("rooms.txt"):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "only":
            only[words[1]] = set(words[1:])
        elif words[0] == "straight":
            straight |= set(words[1:])
        else:
            rooms.append(words[0])
    return {room: i for i, room in enumerate(rooms)}, only, straight


def check_edge(rank, of, to, how):
    """An include or a call from file `of` to file `to`."""
    own, other = os.path.dirname(of), os.path.dirname(to)
    if other not in rank:
        fault(f"{of}: {how} {to}, which is in no room")
    elif rank[other] > rank[own]:
        fault(f"{of}: {how} {to}, of a later room")


def check_includes(path, rank):
    folder = path.split("/")[0]
    for number, line in enumerate(open(path, errors="replace"), 1):
        if PAST_GATE.search(line):
            fault(f"{path}:{number}: a call of CUPTI past KP_CALL")
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        at = f"{path}:{number}"
        if target.split("/")[0] in FOLDERS:
            check_edge(rank, path, target, "includes")
        elif target.startswith("tests/"):
            fault(f"{at}: the product includes a test file: {target}")
        elif quote == '"' and "/" not in target:
            fault(f"{at}: not a path from the root of the repository: {target}")
        if folder != "cupti" and CUPTI_HEADER.match(target):
            fault(f"{at}: a vendor header outside cupti/: {target}")
        if folder in ("report", "base") and CUDA_HEADER.match(target):
            fault(f"{at}: a CUDA header in {folder}/: {target}")


def check_straight(files, straight):
    """A file and its header are one here: X.c includes Y.h, and Y.c includes X.h."""
    includes = {}
    for path in files:
        unit = os.path.splitext(path)[0]
        if os.path.dirname(path) not in straight:
            continue
        for line in open(path, errors="replace"):
            match = INCLUDE.match(line)
            other = match and os.path.splitext(match.group(2))[0]
            if match and os.path.dirname(other) in straight and other != unit:
                includes.setdefault(unit, set()).add(other)
    for circle in circles_of(includes):
        fault("a circle of includes: " + " ".join(sorted(circle)))


def read_calls(objects):
    """Which names each file takes from which other file."""
    defined, wanted = {}, {}
    paths = glob.glob(objects + "/**/*.o", recursive=True)
    for path in paths:
        source = os.path.relpath(path, objects)[: -len(".o")]
        if source.split("/")[0] not in FOLDERS or not os.path.exists(source):
            continue
        for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            if words[-2] in "Uw":
                wanted.setdefault(source, set()).add(words[-1])
            elif words[-2] in "TDBRVWC" and words[-1].startswith("kp_"):
                defined[words[-1]] = source
    calls = {}
    for source, names in wanted.items():
        for name in names:
            if defined.get(name, source) != source:
                calls.setdefault(source, {}).setdefault(defined[name], set()).add(name)
    return calls


def circles_of(calls):
    """Tarjan's strongly connected components of more than one file."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in calls.get(file, ()):
            if other not in index:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], index[other])
        if low[file] == index[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for file in sorted(calls):
        if file not in index:
            visit(file)
    return found


def check_calls(objects, rank, only):
    calls = read_calls(objects)
    if not calls:
        fault(f"{objects}: no objects; build first")
    for of in sorted(calls):
        for to in sorted(calls[of]):
            names = ", ".join(sorted(calls[of][to]))
            check_edge(rank, of, to, f"calls {names} of")
            room = os.path.dirname(to)
            if os.path.dirname(of) not in only.get(room, {os.path.dirname(of)}):
                fault(f"{of}: calls {names} of {to}; only {', '.join(sorted(only[room] - {room}))} may")
    for circle in circles_of(calls):
        fault("a circle of files: " + " ".join(sorted(circle)))


def main():
    rank, only, straight = read_rooms()
    files = [f for folder in FOLDERS for f in glob.glob(folder + "/**/*.*", recursive=True)]
    files = [f for f in files if f.rsplit(".", 1)[1] in ("c", "h", "S", "def")]
    for path in sorted(files):
        if os.path.dirname(path) not in rank:
            fault(f"{path}: its folder is no room of rooms.txt")
        else:
            check_includes(path, rank)
    check_straight(files, straight)
    if len(sys.argv) > 1:
        check_calls(sys.argv[1], rank, only)
    print(f"check-layers: {len(files)} files in {len(rank)} rooms, {faults} faults")
    return faults > 0


sys.exit(main())
