#!/usr/bin/env python3
"""Usage: campaign.py kill|disk|memory FOLDER

Runs a program under the profiler again and again, disturbed at another point each time: killed at a random moment, with
a disk that is full from one write on, with an allocation that fails (fault.c). Neither may change what the program
prints and how it ends, and the session that is left is whole or says that it is not.

Environment: that of e2e.inc; E2E_SEED (of what is chosen), E2E_RUNS (how many runs, 0 = every point there is).
"""
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

BUILD = os.environ["KP_TEST_BUILD"]
LIMIT = int(os.environ.get("E2E_LIMIT", "30"))
VARIANT = os.environ.get("KP_TEST_VARIANT", "release")
LIGHT = VARIANT in ("asan", "tsan", "ubsan")
METRICS = "smsp__inst_executed.sum,launch__grid_size,gpu__time_duration.sum"
UNFINISHED = "The report above is incomplete"
# Two launches, a window each or one for both; and 12 among copies, events and host functions.
SMALL = [BUILD + "/programs/p_harm", "none"]
MANY = [BUILD + "/programs/p_many", "4"]

failures = 0


def fail(what, *shown):
    global failures
    failures += 1
    print("FAILED:", what)
    for text in shown:
        for line in text.rstrip().splitlines()[-20:]:
            print("   ", line)
    sys.stdout.flush()


class Run:
    """One run of a program, plain or profiled: `out`, `err`, `code` (None = it hung)."""

    def __init__(self, folder, command, kill_after=None, plain=False, env=None, last=""):
        self.folder = folder
        self.session = folder + "/s.kprof"
        self.log = folder + "/report"
        self.calls = folder + "/calls"
        for path in (self.session, self.session + "-journal", self.log, self.calls):
            if os.path.exists(path):
                os.unlink(path)
        e = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/fake", FAKE_LOG=self.calls)
        if not plain:
            first = os.environ.get("KP_TEST_PRELOAD_FIRST")
            e.update(KPROF_LOG_FILE=self.log, KPROF_EXPORT=self.session, KPROF_METRICS=METRICS)
            e.update(LD_PRELOAD=":".join(filter(None, [first, BUILD + "/libkprof.so", last])))
            e.update(env or {})
        elif os.environ.get("KP_TEST_PRELOAD_PLAIN"):
            e["LD_PRELOAD"] = os.environ["KP_TEST_PRELOAD_PLAIN"]
        begin = time.monotonic()
        # Descriptors of pipes: a disk that is full does not take the words away.
        p = subprocess.Popen(command, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if kill_after is not None:
            time.sleep(kill_after)
            p.kill()
        try:
            out, err = p.communicate(timeout=LIMIT)
            self.code = p.returncode
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            self.code = None
        self.seconds = time.monotonic() - begin
        self.out, self.err = out.decode(errors="replace"), err.decode(errors="replace")

    def text(self):
        """All that the profiler said."""
        try:
            with open(self.log, errors="replace") as f:
                return self.err + f.read()
        except OSError:
            return self.err

    def said(self, what):
        """Lines of the fakes."""
        try:
            with open(self.calls, errors="replace") as f:
                return "".join(line for line in f if line.startswith(what))
        except OSError:
            return ""


def report(session):
    """What `kprof report` says of a session: exit status, and text."""
    p = subprocess.run([BUILD + "/kprof", "report", "--page", "raw", session], stdin=subprocess.DEVNULL, timeout=LIMIT,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return p.returncode, (p.stdout + p.stderr).decode(errors="replace")


class Session:
    """The rows of a session file. `launches`: what identifies a launch, and its metrics with their values."""

    def __init__(self, path):
        db = sqlite3.connect(path)
        try:
            self.sound = [row[0] for row in db.execute("PRAGMA integrity_check")]
            self.tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master")]
            self.launches, self.complete, self.skipped, self.orphans = [], 0, 0, 0
            if "session" not in self.tables:
                return
            self.complete = (db.execute("SELECT complete FROM session").fetchone() or [0])[0]
            self.skipped = db.execute("SELECT total(count) FROM skip").fetchone()[0]
            self.ids = [row[0] for row in db.execute("SELECT id FROM launch ORDER BY id")]
            self.orphans = db.execute("SELECT count(*) FROM metric WHERE launch NOT IN (SELECT id FROM launch)").fetchone()[0]
            for i in self.ids:
                launch = db.execute("SELECT ordinal, mangled, demangled, grid_x, block_x, passes, note, reason FROM launch"
                                    " WHERE id = ?", [i]).fetchone()
                values = db.execute("SELECT n.name, n.unit, m.kind, m.value FROM metric m JOIN name n ON n.id = m.name"
                                    " WHERE m.launch = ? ORDER BY n.name", [i]).fetchall()
                self.launches.append((launch, values))
        finally:
            db.close()


def check_rows(what, s, reference, run):
    """Whole rows only, each as in a run that nobody disturbed."""
    if s.sound != ["ok"]:
        fail(what + ": the file is damaged", "\n".join(s.sound))
    if s.orphans:
        fail("%s: values of %d launches that are not there" % (what, s.orphans))
    if s.launches and s.ids != list(range(len(s.ids))):
        fail("%s: launches %s" % (what, s.ids))
    for got, wanted in zip(s.launches, reference.launches):
        if got != wanted:
            fail(what + ": a launch of other rows", "got    %s" % (got,), "wanted %s" % (wanted,), run.text(), run.said("note"))
            return
    if len(s.launches) > len(reference.launches):
        fail(what + ": more launches than there were")


def check_killed(what, run, reference):
    """The session of a killed program. Returns how many launches it holds, -1 = there is none yet."""
    if not os.path.exists(run.session):
        return -1
    status, text = report(run.session)
    s = Session(run.session)
    if not s.launches and not s.complete:
        # 1: it holds nothing yet.
        allowed = (0, 1) if os.path.getsize(run.session) else (1, 2)
        if status not in allowed or not text.strip():
            fail("%s: `report` of a file without launches: status %d" % (what, status), text)
        return 0
    check_rows(what, s, reference, run)
    if status != 0:
        fail("%s: `report`: status %d" % (what, status), text)
    if (UNFINISHED in text) != (not s.complete):
        fail("%s: complete is %d, and the report does not say so" % (what, s.complete), text)
    if s.complete and len(s.launches) != len(reference.launches):
        fail("%s: %d launches pass for all of them" % (what, len(s.launches)))
    shown = len(re.findall(r"^  \S.*, Context \d+, Stream \d+, Device \d+, CC [\d.]+$", text, re.M))
    if shown != len(s.launches):
        fail("%s: %d launches stored, %d reported" % (what, len(s.launches), shown), text)
    return len(s.launches)


def undisturbed(folder, command, env):
    """Runs without a disturbance. Returns the plain run, the profiled one and its session."""
    plain = Run(folder, command, plain=True)
    run = Run(folder, command, env=env)
    if (run.out, run.code) != (plain.out, plain.code) or plain.code != 0:
        fail("undisturbed: another output or exit code", plain.out, run.out, run.err)
    s = Session(run.session)
    if not s.complete or not s.launches or any(launch[6] or not values for launch, values in s.launches):
        fail("undisturbed: no whole session", run.text())
        sys.exit(1)
    return plain, run, s


def kill(folder, rng, runs):
    """SIGKILL at a random moment, with windows of one launch and of many."""
    runs = runs or 200
    for window, part in (("1", runs // 2), ("100", runs - runs // 2)):
        env = {"KPROF_WINDOW": window}
        plain, _, reference = undisturbed(folder, MANY, env)
        seconds = min(Run(folder, MANY, env=env).seconds for _ in range(3))
        held, ended = [], 0
        for i in range(part):
            after = rng.random() * seconds * 1.1
            what = "windows of %s, killed after %.1f ms" % (window, after * 1000)
            run = Run(folder, MANY, kill_after=after, env=env)
            if run.code == 0:
                ended += 1
                if run.out != plain.out:
                    fail(what + ": another output", run.out)
            elif run.code != -signal.SIGKILL:
                fail("%s: ended with %s" % (what, run.code), run.err)
            held.append(check_killed(what, run, reference))
        print("windows of %s: %d runs of %.2f s, %d ended first; without a file: %d; launches held: %s" % (
            window, part, seconds, ended, held.count(-1), sorted(set(h for h in held if h >= 0))))
        # A test whose kills all come too early or too late would see nothing.
        if part >= 50 and window == "1" and not any(0 < h < len(reference.launches) for h in held):
            fail("no kill hit between two windows")


def points_of(folder, kind, command, env):
    """The points at which a call may fail, each with how often it is reached."""
    listed = folder + "/points"
    if os.path.exists(listed):
        os.unlink(listed)
    Run(folder, command, env=dict(env, FAULT_KIND=kind, FAULT_LIST=listed), last=BUILD + "/e2e/fault.so")
    if not os.path.exists(listed):
        fail("no point at which %s could fail" % kind)
        sys.exit(1)
    with open(listed) as f:
        points = [(point, int(times)) for point, times in map(str.split, f)]
    return sorted(points, key=lambda p: int(p[0], 16))


def faulty(what, folder, command, plain, env):
    """A run with a call that fails: the program does not notice."""
    run = Run(folder, command, env=env, last=BUILD + "/e2e/fault.so")
    if run.code is None:
        fail(what + ": the program hangs", run.text())
    elif run.code != plain.code:
        fail("%s: exit code %s instead of %s" % (what, run.code, plain.code), run.text())
    elif run.out != plain.out:
        fail(what + ": another output", run.out, run.text())
    if run.said("misuse"):
        fail(what + ": misuse", run.said("misuse"))
    return run


def check_told(what, run, reference, strict=False):
    """A session that is not as one of a run that nobody disturbed says so itself, or the program's run did. `strict`: a
    session that lacks launches says so itself."""
    text, launches, complete = "", [], 0
    if os.path.exists(run.session):
        status, text = report(run.session)
        s = Session(run.session)
        launches, complete = s.launches, s.complete
        if s.sound != ["ok"]:
            fail(what + ": the file is damaged", "\n".join(s.sound))
        # 1: it holds nothing yet.
        if status not in (0, 1):
            fail("%s: `report`: status %d" % (what, status), text)
        if (UNFINISHED in text) == bool(complete) and status == 0:
            fail("%s: complete is %d, and the report does not say so" % (what, complete), text)
    if complete and launches == reference.launches:
        return True
    silent = check_values(what, s, reference) if complete else []
    if strict and complete and len(launches) + s.skipped < len(reference.launches):
        fail("%s: %d launches pass for all of them" % (what, len(launches)), run.text(), text)
    if not complete or silent:
        # Each of these lines tells of a loss.
        if not re.search(r"(?i)out of memory|cannot allocate|==(WARNING|ERROR)==", run.text()):
            fail(what + ": no word of it", run.text(), text, *silent)
    return False


def check_values(what, s, reference):
    """What is there is as in a run that nobody disturbed. Returns what is missing without a reason of its own."""
    wanted = {launch[0]: dict((m[0], m[1:]) for m in metrics) for launch, metrics in reference.launches}
    silent = []
    for launch, metrics in s.launches:
        got = dict((m[0], m[1:]) for m in metrics)
        for name, value in wanted.pop(launch[0], {}).items():
            if name == "launch__stream_id":
                continue  # CUPTI's number, or the driver's where CUPTI could not be loaded
            if name not in got or got[name][2] == "" != value[2]:
                silent.append("launch %d has no %s" % (launch[0], name))
            elif got[name][1] and got[name] != value:
                fail("%s: launch %d: %s is %s instead of %s" % (what, launch[0], name, got[name], value))
    # The session counts the launches that it has no results of.
    return silent + ["no launch %d" % ordinal for ordinal in wanted if len(wanted) > s.skipped]


def disk(folder, rng, runs):
    """A disk that is full from a write on, and one that has room again after it: at each write there is."""
    for window, stay, part in (("1", "1", 1), ("1", "0", 3), ("100", "1", 3)):
        env = {"KPROF_WINDOW": window}
        plain, _, reference = undisturbed(folder, SMALL, env)
        points = points_of(folder, "disk", SMALL, env)
        chosen = points if runs == 0 else rng.sample(points, min(len(points), max(1, runs // part)))
        whole = 0
        for point, _ in sorted(chosen, key=lambda p: int(p[0], 16)):
            what = "windows of %s, write %d of %d fails%s" % (
                window, int(point, 16), len(points), ", and all after it" if stay == "1" else "")
            run = faulty(what, folder, SMALL, plain, dict(env, FAULT_KIND="disk", FAULT_POINT=point, FAULT_STAY=stay))
            whole += check_told(what, run, reference, strict=True)
            lines = [line for line in run.err.splitlines() if line.startswith("==WARNING==")]
            if len(lines) != len(set(lines)):
                fail(what + ": a line more than once", run.err)
        print("windows of %s, %s: %d of %d writes, %d sessions whole" % (
            window, "full for good" if stay == "1" else "full once", len(chosen), len(points), whole))


def memory(folder, rng, runs):
    """An allocation of libkprof.so's that fails, and one from which on all do."""
    for command, window in ((SMALL, "1"), (MANY, "100")):
        env = {"KPROF_WINDOW": window}
        if command == MANY:
            env["FAKE_VARY"] = "0"  # else values tell the place in a window, which may end early for want of memory
        plain, _, reference = undisturbed(folder, command, env)
        points = points_of(folder, "memory", command, env)
        chosen = points if runs == 0 else rng.sample(points, min(len(points), runs // 2))
        counts = [0, 0]
        for point, times in chosen:
            # The first time of a point is another state of the profiler than a later one.
            for skip, stay in ((0, rng.randrange(2)), (rng.randrange(times), rng.randrange(2)))[: 1 + (runs == 0)]:
                what = "%s, allocation %s of %s, skip %d, stay %d" % (os.path.basename(command[0]), point, window, skip, stay)
                run = faulty(what, folder, command, plain,
                             dict(env, FAULT_KIND="memory", FAULT_POINT=point, FAULT_SKIP=str(skip), FAULT_STAY=str(stay),
                                  MALLOC_PERTURB_="165"))
                counts[check_told(what, run, reference)] += 1
        print("%s, windows of %s: %d of %d points, %d sessions whole" % (
            os.path.basename(command[0]), window, len(chosen), len(points), counts[1]))


CAMPAIGNS = {"kill": (kill, 200, 8), "disk": (disk, 120, 6), "memory": (memory, 150, 10)}


def main():
    campaign, runs, light = CAMPAIGNS[sys.argv[1]]
    seed = int(os.environ.get("E2E_SEED") or random.randrange(1 << 31))
    runs = int(os.environ.get("E2E_RUNS") or (light if LIGHT else runs))
    print("seed %d: again with E2E_SEED=%d" % (seed, seed))
    begin = time.monotonic()
    campaign(sys.argv[2], random.Random(seed), runs)
    print("%d failures, %.0f s" % (failures, time.monotonic() - begin))
    sys.exit(failures != 0)


main()
