#!/usr/bin/env python3
"""Runs programs plain (twice) and under kprof, and compares output and exit code.

The output of a program has figures of its own timing in it. A number is left out of the comparison where the program's
two plain runs differ in it. So it is where its line speaks of time or throughput; the words around it are compared all the
same. Where lines come in another order in the second plain run, they are compared without order and numbers. Prints a
row a program, what differs, and a summary; writes all figures to OUT/real.json, and what programs printed to OUT/real/.
With several GPUs, programs run on each at once. Plain runs are made first, some at a time, then the profiled ones, each
alone on its GPU.

Figures of a program are in OUT/real.jsonl as soon as it is through, a line each. A SIGTERM or SIGINT, and the end of the
time that --until gives, end the programs that run, with all that they started; what there is by then is printed.
"""
import argparse
import collections
import json
import os
import queue
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

ADDRESS = re.compile(r"0x[0-9a-fA-F]{9,}")
NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")
# The second line: simpleStreams prints its timings as "memcopy:\t2.73", "kernel:\t\t2.73", "4 streams:\t2.70".
TIMING = re.compile(
    r"\btime|\d *(m|u|n|µ)?s(ec)?\b|second|elapsed|speed-?up|bandwidth|throughput|[GMK]i?B/s|[GT]?flops?\b|flop/s"
    r"|/ ?s(ec)?\b|per sec|latency|\bpid\b|\bfps\b|clock|faster|cycles|overlap|MTexels|MPixels|performance"
    r"|^(?:memcopy|kernel|non-streamed|\d+ streams):\t+\d+\.\d\d\b",
    re.IGNORECASE,
)
# What is accepted, with its reason: see docs/limits.md, and the manual.
ACCEPTED = {
    "graphMemoryFootprint": "prints how much memory graphs needed at once, and each ends before the next begins",
    "cdpSimplePrint": "numbers its blocks in the order in which the device starts them",
    "UnifiedMemoryStreams": "draws the sizes of its tasks from the clock, and small ones run on the host",
    "jax": "XLA's autotuner says that its time measurement was disturbed",
}
SEEN = re.compile(r"([\d,]+) launch(?:es)? seen, ([\d,]+) profiled")
PASSES = re.compile(r"([\d,]+) pass(?:es)?;")
SERIES = re.compile(r"([\d,]+) launches needed ([\d,]+) series of passes, because windows were closed by: (.*)")


def number(text):
    return int(text.replace(",", ""))


def shape(line):
    """The line with its numbers taken out, and the numbers."""
    return NUMBER.sub("#", line), NUMBER.findall(line)


def difference(plain, again, profiled):
    """None, or the first line that the profiled run has otherwise than both plain runs."""
    plain, again, profiled = (ADDRESS.sub("ADDRESS", p).splitlines() for p in (plain, again, profiled))
    if sorted(plain) == sorted(profiled):
        return None  # blocks of a kernel, and threads, print in any order
    if len(plain) == len(again) and all(shape(a)[0] == shape(b)[0] for a, b in zip(plain, again)):
        for i, (a, b) in enumerate(zip(plain, again)):
            p = profiled[i] if i < len(profiled) else "(nothing)"
            if shape(p)[0] != shape(a)[0]:
                return f"{a!r} is {p!r}"
            if TIMING.search(a):
                continue
            for x, y, z in zip(shape(a)[1], shape(b)[1], shape(p)[1]):
                if x == y != z:
                    return f"{a!r} is {p!r}"
        return None if len(profiled) <= len(plain) else f"more: {profiled[len(plain)]!r}"

    # Threads print as they come: lines that both plain runs have as often must be there as often, others once.
    def counted(lines):
        return collections.Counter("" if TIMING.search(x) else shape(x.rstrip())[0] for x in lines)

    a, b, p = counted(plain), counted(again), counted(profiled)
    lacks = [line for line in a if line and (p[line] != a[line] if a[line] == b[line] else b[line] and not p[line])]
    return f"lacks {lacks[0]!r}" if lacks else None


class Cut:
    """The early end of it all: why, and the programs that run, each the leader of a process group."""

    def __init__(self):
        # Reentrant: a signal's handler runs on the main thread whatever that holds.
        self.lock, self.why, self.status, self.running = threading.RLock(), None, None, set()

    def off(self, why, status=None):
        with self.lock:
            if self.why:
                return
            self.why, self.status = why, status
            for p in self.running:
                kill(p)

    def begins(self, p):
        with self.lock:
            self.running.add(p)
            if self.why:
                kill(p)

    def ends(self, p):
        with self.lock:
            self.running.discard(p)


cut = Cut()


def kill(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, cwd, env, limit):
    """(seconds, exit code, "time" or "cut", stdout, stderr)."""
    start = time.monotonic()
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if cut.why:
        return 0, "cut", "", ""
    with subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, **pipes) as p:
        cut.begins(p)
        try:
            out, err = p.communicate(timeout=limit)
            code = p.returncode
        except subprocess.TimeoutExpired:
            kill(p)
            out, err = p.communicate()
            code = "time"
        cut.ends(p)
    if cut.why and code != 0:
        code = "cut"
    return time.monotonic() - start, code, out.decode(errors="replace"), err.decode(errors="replace")


class Program:
    def __init__(self, name, variant, command, cwd, gpus=1, options=None):
        self.name, self.variant, self.command, self.cwd, self.gpus = name, variant, command, cwd, gpus
        self.options = options or {}


def samples(root, variants):
    """The executables that were built, with their arguments."""
    arguments = json.load(open(os.path.join(root, "test_args.json")))
    for variant in variants:
        base = os.path.join(root, "b", variant)
        for name in sorted(os.listdir(base)):
            path = os.path.join(base, name, name)
            if not os.path.exists(os.path.join(base, name, ".built")) or not os.access(path, os.X_OK):
                continue
            told = arguments.get(name, {})
            if told.get("skip"):
                continue
            args = told.get("args") or (told.get("runs") or [{}])[0].get("args", [])
            yield Program(name, variant, [path] + args, os.path.dirname(path), told.get("min_gpus", 1))


def frameworks():
    """Those of frameworks.py, with what kprof is asked for."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frameworks.py")
    for line in subprocess.check_output([sys.executable, script, "--list"], text=True).splitlines():
        name, *asked = line.split()
        yield Program(name, "Python", [sys.executable, script, name], "/", options=dict(a.split("=") for a in asked))


def run_plain(program, options, env):
    """Two plain runs, and a row of figures to fill."""
    row = program.row = {"name": program.name, "variant": program.variant, "sets": {}}
    program.plain = [run(program.command, program.cwd, env, options.plain_limit) for _ in range(2)]
    codes = [p[1] for p in program.plain]
    row["native"], row["code"] = min(p[0] for p in program.plain), codes[0]
    if "cut" in codes:
        row["left_out"] = cut.why
    elif "time" in codes or codes[0] != codes[1]:
        row["left_out"] = f"plain runs end with {codes[0]}, {codes[1]}"


def run_profiled(program, options, env):
    """Fills the row."""
    row, (plain, again) = program.row, program.plain
    sets = options.shared_sets if program.variant == "Shared" and options.shared_sets else options.sets
    for name in sets if "left_out" not in row else ():
        log = os.path.join(options.out, "real", f"{program.variant}.{program.name}.{name}")
        profiled = run(
            program.command, program.cwd,
            {**env, **program.options, "LD_PRELOAD": options.library, "KPROF_SET": name, "KPROF_LOG_FILE": log},
            options.limit,
        )
        if profiled[1] == "cut":
            row["left_out"] = f"{cut.why}: {name}"
            break
        found = row["sets"][name] = judge(plain, again, profiled, log, row["native"])
        found["accepted"] = program.name in ACCEPTED and profiled[1] == plain[1]
        for part, text in zip(("out", "err"), profiled[2:]):
            with open(f"{log}.{part}", "w") as f:
                f.write(text)
    with options.rows_lock:
        options.rows.write(json.dumps(row) + "\n")
        options.rows.flush()


def judge(plain, again, profiled, log, native):
    """What one profiled run was like."""
    report = open(log, errors="replace").read() if os.path.exists(log) else ""
    found = {"seconds": profiled[0], "code": profiled[1], "added": profiled[0] - native}
    if profiled[1] == "time":
        found["differs"] = "did not end in time"
    elif profiled[1] != plain[1]:
        found["differs"] = f"exit code {profiled[1]}, not {plain[1]}"
    else:
        found["differs"] = difference(plain[2], again[2], profiled[2]) or difference(plain[3], again[3], profiled[3])
    seen = SEEN.findall(report)
    passes = PASSES.findall(report)
    found["launches"] = sum(number(s[0]) for s in seen)
    found["profiled"] = sum(number(s[1]) for s in seen)
    found["passes"] = sum(map(number, passes))
    series = SERIES.findall(report)
    if series:
        found["windows"] = sum(number(s[1]) for s in series)
        found["closed_by"] = series[0][2]
    found["lines"] = sorted(set(re.findall(r"==(?:WARNING|ERROR)==.*", report + profiled[3])))[:4]
    return found


def work(jobs, step, options, env):
    while True:
        try:
            step(jobs.get_nowait(), options, env)
        except queue.Empty:
            return


def on_each(programs, step, visible, at_a_time, options):
    jobs = queue.Queue()
    for p in programs:
        jobs.put(p)
    threads = [
        threading.Thread(
            target=work, args=(jobs, step, options, {**os.environ, "CUDA_VISIBLE_DEVICES": v}), daemon=True
        )
        for v in visible * at_a_time
    ]
    for t in threads:
        t.start()
    # What has left its process group may hold a killed program's pipes: that is not waited for long.
    patience = 10
    while any(t.is_alive() for t in threads) and patience > 0:
        time.sleep(0.05)
        if options.until and time.monotonic() - options.start >= options.until:
            cut.off("no time was left")
        patience -= 0.05 if cut.why else 0


def count_gpus():
    return int(subprocess.getoutput("nvidia-smi -L | wc -l")) or 1


def run_all(programs, options):
    gpus = [str(i) for i in range(options.gpus)]
    for several in (False, True):
        visible = [",".join(gpus)] if several else gpus
        chosen = [p for p in programs if (p.gpus > 1) == several and p.gpus <= len(gpus)]
        on_each(chosen, run_plain, visible, options.at_a_time, options)
        print(f"# plain runs: {time.monotonic() - options.start:.0f} s", flush=True)
        # The long ones first, so that no GPU ends long before the others.
        chosen.sort(key=lambda p: -p.row["native"])
        on_each(chosen, run_profiled, visible, 1, options)
    return [p.row for p in programs if hasattr(p, "row")]


def show(results, options):
    heads = " | ".join(f"{s}: s | ms a launch | same" for s in options.sets)
    print(f"| program | cudart | launches | native, s | {heads} |")
    print("| --- " * (4 + 3 * len(options.sets)) + "|")
    for r in sorted(results, key=lambda r: (r["variant"], r["name"])):
        cells = []
        for s in options.sets:
            f = r["sets"].get(s)
            if not f:
                cells += ["", "", ""]
                continue
            each = f"{1000 * f['added'] / f['launches']:.1f}" if f["launches"] else ""
            cells += [f"{f['seconds']:.1f}", each, "no" if f["differs"] else "yes"]
        if not r["sets"]:
            continue
        launches = max(f["launches"] for f in r["sets"].values())
        print(f"| {r['name']} | {r['variant']} | {launches} | {r['native']:.2f} | {' | '.join(cells)} |")
    print()
    for r in results:
        if "left_out" in r:
            print(f"left out: {r['name']} ({r['variant']}): {r['left_out']}")
        for s, f in r["sets"].items():
            if f["differs"]:
                what = f"accepted, as it {ACCEPTED[r['name']]}" if f["accepted"] else "DIFFERS"
                print(f"{what}: {r['name']} ({r['variant']}, {s}): {f['differs'][:300]}")
            for line in f["lines"]:
                print(f"  {r['name']} ({r['variant']}, {s}): {line[:220]}")
    summary(results, options)


def summary(results, options):
    print()
    for s in options.sets:
        runs = [r["sets"][s] for r in results if s in r["sets"]]
        same = sum(not f["differs"] for f in runs)
        accepted = sum(bool(f["differs"]) and f["accepted"] for f in runs)
        long = [1000 * f["added"] / f["launches"] for f in runs if f["launches"] >= 20]
        if long:
            tenth = statistics.quantiles(long, n=10)[8] if len(long) > 1 else long[0]
            print(
                f"{s}: {same} of {len(runs)} the same, {accepted} more accepted; of {len(long)} with 20 and more "
                f"launches: ms a launch median {statistics.median(long):.1f}, nine in ten below {tenth:.1f}"
            )
        closers = collections.Counter()
        for f in runs:
            for n, why in re.findall(r"(.*?) \((\d+)\)(?:, |$)", f.get("closed_by", "")):
                closers[n] += int(why)
        if closers:
            print(f"  closed windows: {', '.join(f'{n} ({c})' for n, c in closers.most_common(8))}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--samples", help="the folder of cuda-samples, with its builds in b/")
    parser.add_argument("--frameworks", action="store_true", help="the programs of frameworks.py")
    parser.add_argument("--sets", default="basic,quick", type=lambda x: x.split(","))
    parser.add_argument("--shared-sets", default=None, type=lambda x: x.split(","), help="of the shared runtime")
    parser.add_argument("--variants", default="Static,Shared", type=lambda x: x.split(","))
    parser.add_argument("--only", default="", type=lambda x: [w for w in x.split(",") if w], help="names, with commas")
    parser.add_argument("--limit", default=90, type=float, help="seconds a profiled run may take")
    parser.add_argument("--plain-limit", default=40, type=float)
    parser.add_argument("--at-a-time", default=4, type=int, help="plain runs on a GPU")
    parser.add_argument("--until", default=0, type=float, help="seconds after which it ends, with what there is")
    parser.add_argument("--gpus", type=int, help="default: all of them")
    options = parser.parse_args()
    if options.gpus is None:
        options.gpus = count_gpus()
    # Programs run in folders of their own. A library that the loader does not find would be a run without kprof.
    options.library = os.path.abspath(options.library)
    if not os.path.exists(options.library):
        parser.error(f"no library {options.library}")
    options.start = time.monotonic()
    shutil.rmtree(os.path.join(options.out, "real"), ignore_errors=True)
    os.makedirs(os.path.join(options.out, "real"))
    programs = list(frameworks()) if options.frameworks else []
    programs += samples(options.samples, options.variants) if options.samples else []
    programs = [p for p in programs if not options.only or p.name in options.only]
    for number_of_signal in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number_of_signal, lambda n, _: cut.off(f"cut off by {signal.Signals(n).name}", 128 + n))
    options.rows_lock = threading.Lock()
    with open(os.path.join(options.out, "real.jsonl"), "w") as options.rows:
        results = run_all(programs, options)
    with open(os.path.join(options.out, "real.json"), "w") as f:
        json.dump(results, f, indent=1)
    show(results, options)
    print(f"{time.monotonic() - options.start:.0f} s")
    if cut.why:
        print(cut.why)
    return cut.status or any(f["differs"] and not f["accepted"] for r in results for f in r["sets"].values())


if __name__ == "__main__":
    sys.exit(main())
