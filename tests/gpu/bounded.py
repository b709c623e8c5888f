#!/usr/bin/env python3
"""Runs programs natively and under kprof, and tells how long kprof took and how much it found out. For bounded.sh.

Output is compared by its lines; those that begin with "about" have numbers that may differ by a hundredth.
"""
import argparse
import concurrent.futures
import json
import os
import re
import signal
import sys
import tarfile
import time

import launch_trace
import real

SETTINGS = {
    "default": [],
    "kernel": ["--replay-mode", "kernel"],
    "rotation": ["--replay-mode", "rotate"],
    "quick": ["--set", "quick"],
}
LAUNCH = re.compile(r"^==KPROF== Profiling ", re.M)
COMPLETE = re.compile(r"\b(?:all )?([\d,]+)(?: of ([\d,]+))? kernels? and shapes? ha(?:s|ve) results")
ADDED = re.compile(r"profiling added ([\d.,]+ \w+)")
# JAX takes three quarters of the device where it is alone.
BESIDE = {"XLA_CLIENT_MEM_FRACTION": ".2"}
# What a run says of itself, without its values.
NOTICE = re.compile(r"^==(?:WARNING|ERROR)==.*|^==KPROF==.*(?:kernels? and shapes?|launches passed|budget).*", re.M)
COLUMNS = ("case", "launches seen", "native, s", "with kprof, s", "added, s", "measured", "kinds with results", "verdict")


class Case:
    def __init__(self, line):
        self.name, *self.command = line.split()
        self.plain, self.why_not, self.rows, self.notes = None, None, {}, []


def run(case, way, command, options, limit, beside=None):
    """The run in the time that is left; None: there is none, or it was cut off."""
    left = options.end - time.monotonic()
    if left < 1:
        return None
    result = real.run(command, options.logs, {**os.environ, **(beside or {})}, min(limit, left))
    for kind, text in zip(("out", "err"), result[2:]):
        with open(os.path.join(options.logs, f"{case.name}.{way}.{kind}"), "w") as f:
            f.write(text)
    return None if result[1] == "cut" or (result[1] == "time" and left < limit) else result


def run_plain(case, options):
    if os.path.sep in case.command[0] and not os.access(case.command[0], os.X_OK):
        case.why_not = "does not build"
        return
    case.plain = run(case, "native", case.command, options, options.plain_limit, BESIDE)
    if not case.plain:
        case.why_not = "no time was left"
    elif case.plain[1] != 0:
        last = ((case.plain[2] + case.plain[3]).splitlines() or [""])[-1]
        case.why_not = f"ends natively with {case.plain[1]}"
        case.notes.append(f"natively: {last[-200:]}")
    elif re.search("^SKIP", case.plain[2], re.M):
        case.why_not = case.plain[2].strip()


def near(a, b):
    a, b = (float(x.replace(",", "")) for x in (a, b))
    return abs(a - b) <= 0.01 * max(abs(a), abs(b))


def difference(native, profiled):
    """None, or the first line that is otherwise."""
    a, b = native.splitlines(), profiled.splitlines()
    for x, y in zip(a + [""] * (len(b) - len(a)), b + [""] * (len(a) - len(b))):
        if x == y:
            continue
        (words, numbers), (others, other_numbers) = real.shape(x), real.shape(y)
        if not (x.startswith("about") and words == others and all(map(near, numbers, other_numbers))):
            return f"{x!r} is {y!r}"
    return None


def judge(case, result):
    seconds, code, out, err = result
    if code == "time":
        return "no end", f"no end in {seconds:.0f} s; last line: {(err.splitlines() or [''])[-1][-200:]!r}"
    if code != case.plain[1]:
        return "differs", f"exit code {code}; last line: {((out + err).splitlines() or [''])[-1][-200:]!r}"
    differs = difference(case.plain[2], out)
    return ("differs", differs) if differs else ("ok", None)


def account(report):
    """Launches seen and measured, of all processes, the kinds that have results, as text, and the time that kprof says. A
    run that was ended has told of the launches measured until then."""
    counts = [[real.number(n) for n in found] for found in real.SEEN.findall(report)]
    seen, measured = (sum(c[i] for c in counts) for i in range(2)) if counts else (None, len(LAUNCH.findall(report)))
    kinds = [[real.number(n) for n in (some, all_of or some)] for some, all_of in COMPLETE.findall(report)]
    if kinds:
        text = "{} of {}".format(*map(sum, zip(*kinds)))
    else:
        text = "all" if counts and seen == measured else ""
    return seen, measured, text, ", ".join(ADDED.findall(report))


def run_profiled(case, setting, options):
    log = os.path.join(options.logs, f"{case.name}.{setting}.report")
    flags = ["--clock-control", "none", *SETTINGS[setting], "--log-file", log, "--"]
    result = run(case, setting, [options.kprof, *flags, *case.command], options, case.plain[0] + options.limit)
    if not result:
        return None
    report = open(log, errors="replace").read() if os.path.exists(log) else ""
    verdict, why = judge(case, result)
    seen, measured, kinds, says = account(report)
    case.notes += [f"{setting}: {line[:300]}" for line in [why] * bool(why) + sorted(set(NOTICE.findall(report + result[3])))[:4]]
    row = {"seen": seen, "native": case.plain[0], "seconds": result[0], "added": result[0] - case.plain[0]}
    return {**row, "measured": measured, "kinds": kinds, "says": says, "verdict": verdict}


def cells(case, setting, row):
    name = case.name + ("" if setting == "default" else f" ({setting})")
    if row is None:
        return [name, "", f"{case.plain[0]:.1f}" if case.plain else "", "", "", "", "", case.why_not or "no time was left"]
    counts = ["" if row[k] is None else f"{row[k]:,}" for k in ("seen", "measured")]
    times = [f"{row[k]:.1f}" for k in ("native", "seconds", "added")]
    return [name, counts[0], *times, counts[1], row["kinds"], row["verdict"]]


def trace(case, options):
    """Records a timeline alone, and writes what was launched in which order."""
    session, out = (os.path.join(options.traces, case.name + end) for end in (".kprof", ".trace"))
    flags = ["--page", "timeline", "--export", session, "--log-file", os.path.join(options.logs, case.name + ".timeline"), "--"]
    limit = case.plain[0] + options.limit
    result = run(case, "timeline", [options.kprof, *flags, *case.command], options, limit, BESIDE)
    if not result or not os.path.exists(session):
        return f"# {case.name}: no timeline"
    try:
        return launch_trace.write(session, case.name, out)
    finally:
        os.remove(session)


def all_traces(cases, options):
    options.traces = os.path.join(options.logs, "traces")
    os.makedirs(options.traces, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(lambda c: trace(c, options), [c for c in cases if not c.why_not]):
            print(line, flush=True)
    with tarfile.open(os.path.join(options.out, "traces.tar.gz"), "w:gz") as t:
        for name in sorted(os.listdir(options.traces)):
            t.add(os.path.join(options.traces, name), name)


def parse():
    parser = argparse.ArgumentParser()
    for name in ("kprof", "cases", "out", "logs"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--settings", required=True, help="words of " + " ".join(SETTINGS) + "; -: none")
    parser.add_argument("--limit", default=75, type=float, help="seconds of a profiled run above the native time")
    parser.add_argument("--plain-limit", default=60, type=float)
    parser.add_argument("--until", default=420, type=float, help="seconds after which it ends, with what there is")
    parser.add_argument("--jobs", default=3, type=int, help="native runs at a time")
    parser.add_argument("--traces", action="store_true")
    options = parser.parse_args()
    options.settings = options.settings.replace("-", " ").split()
    unknown = set(options.settings) - set(SETTINGS)
    if unknown:
        parser.error(f"no setting {' '.join(unknown)}")
    options.end = time.monotonic() + options.until
    return options


def main():
    options = parse()
    cases = [Case(line) for line in open(options.cases)]
    for n in (signal.SIGTERM, signal.SIGINT):
        signal.signal(n, lambda n, _: real.cut.off(f"cut off by {signal.Signals(n).name}", 128 + n))
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda c: run_plain(c, options), cases))
    print(f"native runs: {time.monotonic() - start:.0f} s", flush=True)
    if options.traces:
        all_traces(cases, options)
    with open(os.path.join(options.out, "bounded.md"), "w") as table:
        for line in (COLUMNS, ["---"] * len(COLUMNS)):
            show(line, table)
        for setting in options.settings:
            for c in cases:
                c.rows[setting] = None if c.why_not else run_profiled(c, setting, options)
                show(cells(c, setting, c.rows[setting]), table)
        for c in cases:
            for note in c.notes:
                print(f"  {c.name}: {note}")
                table.write(f"  {c.name}: {note}\n")
    with open(os.path.join(options.out, "bounded.json"), "w") as f:
        json.dump({c.name: {"why_not": c.why_not, "rows": c.rows, "notes": c.notes} for c in cases}, f, indent=1)
    rows = [r for c in cases for r in c.rows.values()]
    return real.cut.status or any(not r or r["verdict"] != "ok" for r in rows)


def show(row, table):
    line = "| " + " | ".join(row) + " |"
    print(line, flush=True)
    table.write(line + "\n")
    table.flush()


if __name__ == "__main__":
    sys.exit(main())
