#!/usr/bin/env python3
"""Usage: calls.py FOLDER [CASE[=RUNS[=CALLS]]...]

Lets each call that a profiled program makes of the driver, CUPTI or the checkpoint library fail, one at a time: at every
point, or at some that are drawn; functions of CUPTI also from one point on. The program prints and returns what it does
without the profiler, or what it does without the profiler when a call of its own fails; nothing is misused but what the
program misuses itself then; and the launches of the account add up.

RUNS is how many points of a function are drawn, 0 for every one that there is; CALLS a regular expression for the
functions that fail. Without a case: all of them, which takes an hour.

Environment: that of e2e.inc; E2E_SEED (of what is drawn), E2E_RUNS (RUNS where a case says none), E2E_JOBS, E2E_SHOW (what
the profiler said in a run that is wrong).
"""
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

BUILD = os.environ["KP_TEST_BUILD"]
LIMIT = int(os.environ.get("E2E_LIMIT", "30"))
UNKNOWN = 999
MOST_OF_ANY = 50  # functions of the case that `any` draws

# A name: the program with its arguments, and what it is told.
CASES = {
    "save-kinds": ("p_save kinds", "KPROF_SET=basic KPROF_SAVE=changes"),
    "save-pitched": ("p_save pitched", "KPROF_SET=basic KPROF_SAVE=changes"),
    "save-variables": ("p_save variables", "KPROF_SET=basic KPROF_SAVE=changes"),
    "save-two": ("p_save two-contexts", "KPROF_SET=basic KPROF_SAVE=changes"),
    "many": ("p_many 4", "KPROF_SET=basic"),
    "many-rotate": ("p_many 4", "KPROF_SET=basic KPROF_REPLAY_MODE=rotate"),
    "many-quick": ("p_many 4", "KPROF_SET=quick"),
    "many-one": ("p_many 4", "KPROF_SET=basic KPROF_WINDOW=1 KPROF_SAVE=all"),
    "nodes": ("p_nodes", "KPROF_SET=basic"),
    "nodes-quick": ("p_nodes", "KPROF_SET=quick"),
    "nodes-changes": ("p_nodes", "KPROF_SET=basic KPROF_SAVE=changes"),
    "nodes-graph": ("p_nodes", "KPROF_SET=basic KPROF_GRAPH_PROFILING=graph"),
    "graph": ("p_graph", "KPROF_SET=basic"),
    "graphmem-paired": ("p_graph_memory paired", "KPROF_SET=basic"),
    "graphmem-set": ("p_graph_memory set", "KPROF_SET=basic"),
    "graphmem-changes": ("p_graph_memory changes", "KPROF_SET=basic"),
    "attributes": ("p_attributes", "KPROF_SET=basic"),
    "range-attributes": ("p_attributes known", "KPROF_SET=basic KPROF_REPLAY_MODE=range"),
    "range-reads": ("p_ranges reads", "KPROF_SET=basic KPROF_REPLAY_MODE=range"),
    "range-copies": ("p_ranges copies", "KPROF_SET=basic KPROF_REPLAY_MODE=range"),
    "maps": ("p_window maps", "KPROF_SET=basic KPROF_SAVE=changes"),
    "frees": ("p_window frees", "KPROF_SET=basic"),
    "pools": ("p_window pools", "KPROF_SET=basic"),
    "libraries": ("p_window libraries", "KPROF_SET=basic"),
    "modules": ("p_window modules", "KPROF_SET=basic"),
    "reads": ("p_window reads-rows", "KPROF_SET=basic KPROF_WINDOW_READS=on"),
    "wattributes": ("p_window attributes-change", "KPROF_SET=basic"),
    "pinned": ("p_window pinned-changed", "KPROF_SET=basic"),
    "hostcalls": ("p_host_calls between", "KPROF_SET=basic"),
    "contexts": ("p_contexts", "KPROF_SET=basic"),
    "direct": ("p_direct", "KPROF_SET=basic"),
    "harm-full": ("p_harm none", "KPROF_SET=full"),
    "direct-timeline": ("p_direct", "KPROF_SET=basic KPROF_TIMELINE=yes"),
    "harm": ("p_harm none", "KPROF_SET=basic"),
    "turns": ("p_repeat heap 6", "KPROF_SET=basic"),
    "turns-launches": ("p_repeat launches 6", "KPROF_SET=basic"),
    "turns-blocks": ("p_repeat heap-blocks", "KPROF_SET=basic"),
    "rotate-shapes": ("p_shapes", "KPROF_SET=basic KPROF_REPLAY_MODE=rotate"),
    "registers": ("p_registers text", "KPROF_SET=basic KPROF_PAGE=series KPROF_VARY=registers=32"),
    "random1": ("p_random 1001 45", "KPROF_SET=basic KPROF_SAVE=changes FAKE_MEMORY=268435456 FAKE_DEVICES=2 FAKE_FREES_TWICE=1"),
    "random2": ("p_random 1002 45", "KPROF_SET=quick FAKE_MEMORY=268435456 FAKE_DEVICES=2 FAKE_FREES_TWICE=1"),
    "random3": ("p_random 1003 45", "KPROF_SET=basic KPROF_REPLAY_MODE=rotate FAKE_MEMORY=268435456 FAKE_DEVICES=2 FAKE_FREES_TWICE=1"),
}


# docs/limits.md: without the code of a kernel, kprof does not know that it must run once.
UNKNOWN_CODE = ("turns", "turns-launches", "turns-blocks", "random1", "random2", "random3")


class Run:
    """One run: `code` (None = it hung), `out`, what the fakes logged and what the profiler said."""

    def __init__(self, folder, case, number, fail="", plain=False):
        command, told = CASES[case]
        log, report = "%s/%s.log" % (folder, number), "%s/%s.report" % (folder, number)
        env = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/fake", FAKE_LOG=log, FAKE_FAIL=fail, TMPDIR=folder)
        env.update(word.split("=", 1) for word in told.split() if plain <= word.startswith("FAKE_"))
        if not plain:
            first = os.environ.get("KP_TEST_PRELOAD_FIRST")
            env.update(KPROF_LOG_FILE=report, LD_PRELOAD=":".join(filter(None, [first, BUILD + "/libkprof.so"])))
        elif os.environ.get("KP_TEST_PRELOAD_PLAIN"):
            env["LD_PRELOAD"] = os.environ["KP_TEST_PRELOAD_PLAIN"]
        words = command.split()
        p = subprocess.Popen([BUILD + "/programs/" + words[0]] + words[1:], env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = p.communicate(timeout=LIMIT)
            self.code = p.returncode
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            self.code = None
        self.out = out.decode(errors="replace")
        self.log, self.said = take(log), err.decode(errors="replace") + take(report)

    def calls(self):
        """How often each function was called."""
        counts = {}
        for name, n in re.findall(r"^calls pid=\d+ (\S+) (\d+)$", self.log, re.M):
            counts[name] = counts.get(name, 0) + int(n)
        return counts

    def outcome(self):
        return self.code, self.out

    def misuses(self):
        """What the fakes complain of, without the process."""
        return {re.sub(r" pid=\d+", "", line) for line in re.findall(r"^(?:misuse|forked) .*", self.log, re.M)}

    def account(self):
        """Launches seen, profiled, skipped, not finished; None where the profiler tells of none."""
        line = re.findall(r"^==KPROF== ([\d,]+) launch(?:es)? seen, (.*?); ", self.said, re.M)
        if not line:
            return None
        number = lambda what: int((re.findall(r"([\d,]+) " + what, line[-1][1]) or ["0"])[0].replace(",", ""))
        return int(line[-1][0].replace(",", "")), number("profiled"), number("skipped"), number("not finished")


def take(path):
    try:
        with open(path, errors="replace") as f:
            text = f.read()
        os.unlink(path)
        return text
    except OSError:
        return ""


def complaint(run, natives, reference):
    """What is wrong with a run, or None. Natives: runs without the profiler; it may do what one of them does."""
    alike = [native for native in natives if native.outcome() == run.outcome()]
    misuses = run.misuses()
    if run.code is None:
        return "it hangs"
    if misuses and not any(misuses <= native.misuses() for native in alike):
        return sorted(misuses)[0]
    if not alike:
        return "exit code %s" % run.code if run.code not in {native.code for native in natives} else "another output"
    account = run.account()
    if account is None:
        return None if reference.account() is None or run.outcome() != reference.outcome() or "==WARNING==" in run.said or \
            "==ERROR==" in run.said else "no account, and no word of it"
    if account[0] != sum(account[1:]):
        return "%d seen, %d profiled, %d skipped, %d not finished" % account
    if run.outcome() == reference.outcome() and account[3] > (reference.account() or account)[3]:
        return "%d of %d launches not finished" % (account[3], account[0])
    whole = "a CUDA graph is one row of the report" in run.said
    if run.outcome() == reference.outcome() and reference.account() and not (
            account[0] == reference.account()[0] or (whole and account[0] < reference.account()[0])):
        return "%d seen instead of %d" % (account[0], reference.account()[0])
    return None


def points(n, runs, rng):
    if not runs or n <= runs:
        return list(range(1, n + 1))
    drawn = set(rng.sample(range(2, n), runs - 2)) if runs > 2 else set()
    return sorted(drawn | {1, n})


def sweep(folder, case, rng, runs, pool, pattern, most):
    plain, reference = Run(folder, case, "plain", plain=True), Run(folder, case, "reference")
    flagged, made = [], 0
    wrong = complaint(reference, [plain], reference)
    if wrong:
        return ["%s, undisturbed: %s" % (case, wrong)], 0
    own = plain.calls()
    tried = [call for call in sorted(reference.calls().items()) if re.search(pattern, call[0]) and call[0] != "cuInit" and
             not (case in UNKNOWN_CODE and "Crc" in call[0])]
    for name, n in sorted(rng.sample(tried, min(most, len(tried)))):
        fails = ["%s:%d:%d" % (name, UNKNOWN, k) for k in points(n, runs, rng)]
        if name not in own and name.startswith(("cupti", "NVPW")):  # from one point on
            fails.append("%s:%d:%d+" % (name, UNKNOWN, rng.randrange(n) + 1))
        # What the program does itself when a call of its own fails.
        theirs = ["%s:%d:%d" % (name, UNKNOWN, j) for j in range(1, own.get(name, 0) + 1)]
        natives = [plain]
        for fail, run in zip(fails, pool.map(lambda f: Run(folder, case, f, f), fails)):
            made += 1
            wrong = complaint(run, natives, reference)
            if wrong and len(natives) <= len(theirs):
                natives += pool.map(lambda f: Run(folder, case, "own-" + f, f, plain=True), theirs)
                wrong = complaint(run, natives, reference)
            if wrong:
                flagged.append("%s, %s: %s" % (case, fail, wrong))
                print("FAILED:", flagged[-1])
                if os.environ.get("E2E_SHOW"):
                    print(run.said[-1500:])
                sys.stdout.flush()
    return flagged, made


def main():
    folder, chosen = sys.argv[1], sys.argv[2:]
    seed = int(os.environ.get("E2E_SEED") or random.randrange(1 << 31))
    print("seed %d: again with E2E_SEED=%d" % (seed, seed))
    flagged = []
    with ThreadPoolExecutor(int(os.environ.get("E2E_JOBS", "2"))) as pool:
        for case, runs, pattern in ((c + "==").split("=")[:3] for c in chosen or CASES):
            begin = time.monotonic()
            rng = random.Random("%d %s" % (seed, case))
            most = MOST_OF_ANY if case == "any" else 1 << 30
            case = rng.choice(list(CASES)) if case == "any" else case
            some, made = sweep(folder, case, rng, int(runs or os.environ.get("E2E_RUNS") or 3), pool, pattern, most)
            flagged += some
            print("%s: %d runs, %d flagged, %.0f s" % (case, made, len(some), time.monotonic() - begin))
            sys.stdout.flush()
    sys.exit(bool(flagged))


main()
