#!/usr/bin/env python3
"""Makes compile_commands.json of what make would run.

compdb.py FOLDER <COMMANDS   FOLDER: where the commands run; COMMANDS: the output of `make --dry-run V=1`

Each source of a command that compiles gets an entry. The tools that read the file ignore what a command links."""
import json
import re
import sys

COMPILES = re.compile(r"^\S*(cc|gcc|clang)\S* .*-std=")
SOURCE = re.compile(r"[\w./-]+\.[cS]$")


def entries(folder, command):
    """An entry for each source, without what writes files, and what links."""
    words = re.sub(r"\$\(sed .*\)", "", command).split()
    sources, kept = [], []
    for before, word in zip(["", *words], words):
        if before in ("-o", "-MF") or re.match(r"-o$|-M|-[lL]|-shared$|-Wl,|-c$", word):
            continue
        (sources if SOURCE.match(word) and before != "-include" else kept).append(word)
    for source in sources:
        yield {"directory": folder, "file": source, "arguments": [*kept, "-c", source]}


def main():
    found = [e for line in sys.stdin if COMPILES.match(line) for e in entries(sys.argv[1], line)]
    json.dump(found, sys.stdout, indent=1)
    print()
    print(f"compdb: {len(found)} sources", file=sys.stderr)
    return not found


sys.exit(main())
