#!/usr/bin/env python3
"""Runs small programs natively, twice, and under kprof in several settings; compares stdout and exit code. For contact.sh.

Prints what differs, what launches were skipped for, and a table last. All cases run in one setting before the next one
begins: if time runs out, the settings so far are whole.
"""
import argparse
import json
import os
import re
import signal
import sys
import time

import real

SETTINGS = {
    "basic": ["--set", "basic"],
    "quick": ["--set", "quick"],
    "full": ["--set", "full"],
    "rotation": ["--replay-mode", "rotate"],
    "timeline": ["--page", "timeline"],
    "preload": None,  # the library and the environment alone
}
ACCOUNT = re.compile(r"^==KPROF== ([\d,]+) launch(?:es)? seen, ([\d,]+) profiled, ([\d,]+) skipped(?: \((.*)\);)?", re.M)
# The line of a run that says how it was, without what varies.
NOTICE = re.compile(r"^==(?:WARNING|ERROR)==.*", re.M)


class Case:
    def __init__(self, line):
        self.name, *self.command = line.split()
        self.gpus, self.cells, self.notes, self.plain = 1, {}, [], []
        self.hung = self.broken = False
        self.native = 0

    def usable(self):
        return [p[1] for p in self.plain] == [0, 0] and not self.lacks()

    def varies(self):
        return len(self.plain) == 2 and (self.plain[0][1:3] != self.plain[1][1:3] or self.plain[0][1] != 0)

    def lacks(self):
        return re.search(r"^SKIP.*", self.plain[0][2], re.M)


def run(case, setting, command, options, env, limit):
    result = real.run(command, options.logs, env, limit)
    for kind, text in zip(("out", "err"), result[2:]):
        with open(os.path.join(options.logs, f"{case.name}.{setting}.{kind}"), "w") as f:
            f.write(text)
    return result


def last_line(result):
    return ((result[2] + result[3]).splitlines() or [""])[-1][-200:]


def run_plain(case, options, env):
    case.plain, case.notes, case.broken = [], [], False
    if not os.access(case.command[0], os.X_OK) and os.path.sep in case.command[0]:
        case.broken = True
        case.notes.append("does not build")
        return
    for way in ("native", "again"):
        case.plain.append(run(case, way, case.command, options, env, options.plain_limit))
    case.native = min(p[0] for p in case.plain)
    codes = [p[1] for p in case.plain]
    if codes != [0, 0]:
        case.broken = True
        case.notes.append(f"left out: ends natively with {codes[0]}, {codes[1]}; last line: {last_line(case.plain[1])!r}")
    elif case.lacks():
        case.notes.append(f"left out: {case.lacks().group()}")


def account(report):
    """Launches seen and profiled of all processes, whether each sum is right, and the reasons of those skipped."""
    found = ACCOUNT.findall(report)
    seen, profiled, skipped = (sum(real.number(f[i]) for f in found) for i in range(3))
    return seen, profiled, seen == profiled + skipped, sorted({f[3] for f in found if f[3]}), bool(found)


def messages(path):
    """What kprof says about the run. The values are left out, also from the file, as full sets of all cases fill a disk."""
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as f:
        said = "".join(line for line in f if line.startswith("=="))
    with open(path, "w") as f:
        f.write(said)
    return said


def judge(case, result):
    """How a profiled run ended: ok, or what differs."""
    seconds, code, out, _ = result
    if code == "time":
        case.hung = True
        return "HANG", f"no end in {seconds:.0f} s; so far: {out[-200:]!r}"
    if code != 0:
        return f"CODE {code}", f"last line: {last_line(result)!r}"
    differs = None if out == case.plain[0][2] else real.difference(case.plain[0][2], case.plain[1][2], out)
    return ("DIFF", differs) if differs else ("ok", None)


def profiled_with(setting):
    def step(case, options, env):
        if not case.usable():
            return
        log = os.path.join(options.logs, f"{case.name}.{setting}.report")
        limit = case.native + options.limit / (4 if case.hung else 1)
        flags = SETTINGS[setting]
        if flags is None:
            env = {**env, "LD_PRELOAD": options.library, "KPROF_LOG_FILE": log, "KPROF_CLOCK_CONTROL": "none"}
            command = case.command
        else:
            command = [options.kprof, *flags, "--clock-control", "none", "--log-file", log, "--", *case.command]
        result = run(case, setting, command, options, env, limit)
        if result[1] == "cut":
            return
        report = messages(log)
        word, why = judge(case, result)
        seen, profiled, adds_up, reasons, found = account(report)
        numbers = f"{seen}/{profiled}" if found else "no account"
        case.cells[setting] = {
            "how": word, "seconds": round(result[0], 2), "seen": seen, "profiled": profiled, "adds_up": adds_up,
            "text": f"{word} {result[0]:.1f} {numbers}{'' if adds_up else ' (wrong sum)'}",
        }
        if why:
            case.notes.append(f"{setting}: {word}: {why[:300]}")
        for line in reasons + sorted(set(NOTICE.findall(report + result[3])))[:3]:
            case.notes.append(f"{setting}: {line[:240]}")

    return step


def notes(case):
    """What was noted, with the settings of each line together."""
    together = {}
    for note in case.notes:
        setting, colon, text = note.partition(": ")
        if setting in SETTINGS and colon:
            together.setdefault(text, []).append(setting)
        else:
            together[note] = []
    return [f"  {case.name}{' (' + ', '.join(s) + ')' if s else ''}: {text}" for text, s in together.items()]


def table(cases, settings):
    yield "What follows each word: seconds, launches seen/profiled."
    yield "| case | native, s | " + " | ".join(settings) + " |"
    yield "| --- " * (2 + len(settings)) + "|"
    for c in cases:
        cells = [c.cells.get(s, {"text": ""})["text"] for s in settings]
        yield f"| {c.name} | {c.native:.2f} | {' | '.join(cells)} |"
    yield ""
    for s in settings:
        done = [c.cells[s] for c in cases if s in c.cells]
        good = sum(d["how"] == "ok" for d in done)
        yield f"{s}: {good} of {len(done)} as natively, {sum(d['seconds'] for d in done):.0f} s"
    left_out = [c.name for c in cases if not c.cells]
    if left_out:
        yield f"not run under kprof: {' '.join(left_out)}"


def parse():
    parser = argparse.ArgumentParser()
    for name in ("library", "kprof", "cases", "out", "logs"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--settings", required=True, type=str.split)
    parser.add_argument("--limit", default=25, type=float, help="seconds of a profiled run above the native time")
    parser.add_argument("--plain-limit", default=15, type=float)
    parser.add_argument("--until", default=0, type=float, help="seconds after which it ends, with what there is")
    parser.add_argument("--jobs", default=1, type=int, help="profiled runs at a time on a GPU")
    options = parser.parse_args()
    unknown = set(options.settings) - set(SETTINGS)
    if unknown:
        parser.error(f"no setting {' '.join(unknown)}")
    options.start = time.monotonic()
    return options


def main():
    options = parse()
    cases = [Case(line) for line in open(options.cases)]
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if gpus == [""]:
        gpus = [str(i) for i in range(real.count_gpus())]
    for n in (signal.SIGTERM, signal.SIGINT):
        signal.signal(n, lambda n, _: real.cut.off(f"cut off by {signal.Signals(n).name}", 128 + n))
    real.on_each(cases, run_plain, gpus, 4, options)
    # What others did on the device may be in the output: those that vary have another try, alone.
    real.on_each([c for c in cases if c.varies()], run_plain, gpus, 1, options)
    for setting in options.settings:
        real.on_each(cases, profiled_with(setting), gpus, options.jobs, options)
        print(f"# {setting}: {time.monotonic() - options.start:.0f} s", flush=True)
    for c in cases:
        print("\n".join(notes(c)) or f"  {c.name}: nothing to say")
    lines = list(table(cases, options.settings))
    if real.cut.why:
        lines.append(real.cut.why)
    print("\n".join(lines))
    with open(os.path.join(options.out, "contact.md"), "w") as f:
        f.write("\n".join(lines) + "\n")
    with open(os.path.join(options.out, "contact.json"), "w") as f:
        json.dump({c.name: {"native": c.native, "cells": c.cells, "notes": c.notes} for c in cases}, f, indent=1)
    bad = any(cell["how"] != "ok" for c in cases for cell in c.cells.values())
    return real.cut.status or bad or any(c.broken for c in cases)


if __name__ == "__main__":
    sys.exit(main())
