#!/usr/bin/env python3
"""Fails on names that say two things.

check_names.py ALLOWED           checks the tree; ALLOWED: a file of known faults, which may only become shorter
check_names.py --write ALLOWED   rewrites that file, for instance after files have moved

In one room no two static functions have the same name. The word after kp_ belongs to one room, so that a name shows where its
function is. No two units (a source and its header) have the same name, wherever they are.

A line of ALLOWED is `static ROOM NAME FILES` (how many files define it), `prefix WORD ROOMS...`, `unit NAME FOLDERS...`, or `plain NAME
FOLDERS...` for units that their folder distinguishes, which may stay. A line that is not needed, or is too long, is a fault."""
import glob
import os
import re
import sys

FOLDERS = ("base", "report", "cupti", "collectors", "cmd", "preload")
# In clang-format's layout: a definition starts in the first column, and so does its brace. Its types and parameters have no
# brace, `;` or `=`; a macro's body starts with a blank.
FUNCTION = re.compile(r"^(?P<head>[A-Za-z_][^;={}()#]*?)\b(?P<name>\w+)\((?:[^;{}]*)\)\n\{", re.M)


def read_definitions():
    """(path, name, whether static) of each function."""
    for folder in FOLDERS:
        for path in sorted(glob.glob(folder + "/**/*.[ch]", recursive=True)):
            for match in FUNCTION.finditer(open(path, errors="replace").read()):
                yield path, match["name"], "static" in match["head"].split()


def find_faults():
    """Each fault's first words, and what would allow it: a set, or a number."""
    statics, prefixes, units = {}, {}, {}
    for path, name, static in read_definitions():
        room = os.path.dirname(path)
        if static:
            statics.setdefault(("static", room, name), set()).add(path)
        elif name.startswith("kp_") and path.endswith(".c"):
            prefixes.setdefault(("prefix", name.split("_")[1]), set()).add(room)
    for folder in FOLDERS:
        for path in glob.glob(folder + "/**/*.[ch]", recursive=True):
            unit = os.path.splitext(os.path.basename(path))[0]
            units.setdefault(("unit", unit), set()).add(os.path.dirname(path))
    faults = {key: {str(len(where))} for key, where in statics.items() if len(where) > 1}
    faults.update({key: where for names in (prefixes, units) for key, where in names.items() if len(where) > 1})
    return faults


def read_allowed(path):
    allowed = {}
    for line in open(path):
        words = line.split("#")[0].split()
        if words:
            first = 3 if words[0] == "static" else 2
            allowed[tuple(words[:first])] = set(words[first:])
    return allowed


def as_line(key, where):
    return " ".join([*key, *sorted(where)])


def check(faults, allowed):
    plain = {("unit", key[1]): where for key, where in allowed.items() if key[0] == "plain"}
    for key, where in faults.items():
        if where != allowed.get(key) and where != plain.get(key):
            yield as_line(key, where) + ("" if key in allowed or key in plain else ": new")
    for key, where in allowed.items():
        if (key[0].replace("plain", "unit"), *key[1:]) not in faults:
            yield as_line(key, where) + ": not needed any more; take it out"


def write(path, faults):
    allowed = read_allowed(path)
    head = "".join(line for line in open(path) if line.startswith("#"))
    plain = [key for key in allowed if key[0] == "plain" and ("unit", key[1]) in faults]
    lines = [as_line(key, faults["unit", key[1]]) for key in plain]
    lines += [as_line(key, where) for key, where in sorted(faults.items()) if ("plain", key[1]) not in plain or key[0] != "unit"]
    open(path, "w").write(head + "\n".join(lines) + "\n")


def main():
    faults = find_faults()
    if sys.argv[1] == "--write":
        write(sys.argv[2], faults)
        return 0
    allowed = read_allowed(sys.argv[1])
    told = list(check(faults, allowed))
    for text in told:
        print(text)
    print(f"check-names: {len(allowed)} names allowed to say two things, {len(told)} faults")
    return len(told) > 0


sys.exit(main())
