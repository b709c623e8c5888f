"""Looks at the timeline of session files, for timeline.sh.

timeline.py same PLAIN.log SESSION     the kernels are those that the program launched without a profiler
timeline.py copies ONE OTHER           both have the same copies and memsets
timeline.py linked SESSION             each profiled launch is on the timeline once, with its name and grid
timeline.py trace SESSION TRACE.json   the trace is what Google's "Trace Event Format" documents, and has the activities, in their
                                       order and with their durations
timeline.py perfetto SESSION TRACE.json BINARY   Perfetto's own parser finds the same in it; PyPI's perfetto is needed, and
                                       its trace_processor_shell, which that fetches only where there is a network
"""
import collections
import json
import re
import site
import sqlite3
import sys

KERNEL, COPY, SET, RANGE, KPROF = range(5)


def rows(path, what, *arguments):
    return sqlite3.connect(path).execute(what, arguments).fetchall()


def kernels(path):
    """Kernels as (name, grid) by stream, in their order."""
    streams = collections.defaultdict(list)
    for stream, name, grid in rows(
        path,
        "SELECT a.stream_id, n.name, a.grid_x FROM activity a JOIN activity_name n ON n.id = a.name "
        "WHERE a.kind = 0 ORDER BY a.start_ns, a.id",
    ):
        streams[stream].append((name.split("(")[0], grid))
    return streams


def same(plain, session):
    wanted = collections.defaultdict(list)
    for line in open(plain):
        m = re.match(r"launch .* stream=(\d+) grid=(\d+),.* name=(.*)$", line)
        if m:
            wanted[int(m[1])].append((m[3], int(m[2])))
    got = kernels(session)
    counts = lambda streams: {s: len(k) for s, k in streams.items()}
    if counts(wanted) != counts(got):
        return f"kernels by stream: {counts(got)} instead of {counts(wanted)}"
    for stream, list_ in wanted.items():
        if [g for _, g in list_] != [g for _, g in got[stream]]:
            return f"stream {stream}: the order of kernels"
    return None


def copies(one, other):
    def of(path):
        return collections.Counter(
            rows(
                path,
                "SELECT n.name, a.bytes, a.stream_id FROM activity a JOIN activity_name n ON n.id = a.name "
                "WHERE a.kind IN (1, 2)",
            )
        )

    return None if of(one) == of(other) else f"copies: {of(one) - of(other)} more, {of(other) - of(one)} less"


def linked(session):
    launches = rows(session, "SELECT id, ordinal, mangled, grid_x FROM launch WHERE kind = 0 ORDER BY id")
    for launch, ordinal, mangled, grid in launches:
        found = rows(
            session,
            "SELECT a.grid_x, n.name, a.thread, a.launched_ns, a.start_ns FROM activity a "
            "JOIN activity_name n ON n.id = a.name WHERE a.ordinal = ?",
            ordinal,
        )
        if len(found) != 1:
            return f"launch {launch} ({mangled}) is on the timeline {len(found)} times"
        if found[0][0] != grid or found[0][1].split("(")[0] not in mangled:
            return f"launch {launch}: grid and name {found[0][:2]} instead of {(grid, mangled)}"
        if not found[0][2] or not 0 < found[0][3] <= found[0][4]:
            return f"launch {launch}: thread {found[0][2]}, launched {found[0][3]}, began {found[0][4]}"
    return None if launches else "no launch"


# The phases of Google's "Trace Event Format" that kprof writes: the keys that each must have, and those it may have.
PHASES = {
    "X": ({"ph", "name", "cat", "pid", "tid", "ts", "dur"}, {"args"}),
    "C": ({"ph", "name", "pid", "ts", "args"}, set()),
    "M": ({"ph", "name", "pid", "args"}, {"tid"}),
}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fault_of_event(e):
    """What is wrong with an event by that format, or None."""
    if e.get("ph") not in PHASES:
        return "an unknown phase"
    needed, allowed = PHASES[e["ph"]]
    if not needed <= set(e) <= needed | allowed:
        return f"keys that lack {needed - set(e)} or have {set(e) - needed - allowed}"
    if not all(isinstance(e[k], str) for k in ("name", "cat") if k in e):
        return "a name that is no text"
    if not all(isinstance(e[k], int) and 0 <= e[k] < 1 << 31 for k in ("pid", "tid") if k in e):
        return "a process or thread that is no number of 31 bits"
    if not all(is_number(e[k]) and e[k] >= 0 for k in ("ts", "dur") if k in e):
        return "a time before 0"
    args = e.get("args", {})
    if not isinstance(args, dict) or any(isinstance(v, (dict, list)) for v in args.values()):
        return "arguments that are no plain values"
    if e["ph"] == "C" and not (args and all(is_number(v) for v in args.values())):
        return "a counter without a number"
    if e["ph"] == "M" and not (e["name"] in ("process_name", "thread_name") and list(args) == ["name"] and isinstance(args["name"], str)):
        return "metadata that is not documented"
    if e["ph"] == "M" and ("tid" in e) != (e["name"] == "thread_name"):
        return "metadata of the wrong thing"
    return None


def strictly(path):
    """The document, by RFC 8259: UTF-8, no key twice in an object, no number that is none. Raises ValueError."""
    def once(pairs):
        if len({k for k, _ in pairs}) != len(pairs):
            raise ValueError(f"a key stands twice in {pairs}")
        return dict(pairs)

    def none(word):
        raise ValueError(f"{word} is no JSON")

    with open(path, "rb") as f:
        return json.loads(f.read().decode("utf-8"), object_pairs_hook=once, parse_constant=none)


def fault_of_format(document):
    if set(document) != {"traceEvents", "displayTimeUnit", "otherData"} or document["displayTimeUnit"] not in ("ms", "ns"):
        return f"the document has {sorted(document)}"
    named = collections.Counter()
    for e in document["traceEvents"]:
        wrong = fault_of_event(e)
        if wrong:
            return f"{e} has {wrong}"
        if e["ph"] == "M":
            named[e["name"], e["pid"], e.get("tid")] += 1
    for e in document["traceEvents"]:
        if named["process_name", e["pid"], None] != 1 or e["ph"] == "X" and named["thread_name", e["pid"], e["tid"]] != 1:
            return f"process or thread of {e} has not one name"
    return None


def trace(session, path):
    document = strictly(path)
    wrong = fault_of_format(document)
    if wrong:
        return wrong
    base = int(document["otherData"]["base_ns"])
    got = collections.defaultdict(list)
    for e in document["traceEvents"]:
        if e["ph"] == "X" and e["cat"] in ("kernel", "copy", "memset", "range"):
            start, length = round(e["ts"] * 1000) + base, round(e["dur"] * 1000)
            # Perfetto's parser cuts
            if (int(e["ts"] * 1000.0), int(e["dur"] * 1000.0)) != (start - base, length):
                return f"{e['name']}: ts {e['ts']} and dur {e['dur']} lose a nanosecond"
            got[e["cat"]].append((start, length, e["name"]))
    words = {KERNEL: "kernel", COPY: "copy", SET: "memset", RANGE: "range"}
    wanted = collections.defaultdict(list)
    for kind, start, end, name in rows(
        session,
        "SELECT a.kind, a.start_ns, a.end_ns, n.name FROM activity a JOIN activity_name n ON n.id = a.name "
        "WHERE a.kind < 4",
    ):
        wanted[words[kind]].append((start, end - start, name))
    for word in words.values():
        if sorted(got[word]) != sorted(wanted[word]):
            return f"{word}: {len(got[word])} events that differ from {len(wanted[word])} activities"
    # the slices of a thread lie apart or within each other
    threads = collections.defaultdict(list)
    for e in document["traceEvents"]:
        if e["ph"] == "X":
            threads[e["pid"], e["tid"]].append((round(e["ts"] * 1000), -round(e["dur"] * 1000)))
    for (pid, tid), slices in threads.items():
        ends = []
        for start, negative in sorted(slices):
            while ends and ends[-1] <= start:
                ends.pop()
            if ends and start - negative > ends[-1]:
                return f"process {pid}, thread {tid}: slices cross"
            ends.append(start - negative)
    return None


def perfetto(session, path, binary):
    site.main()  # the tests run Python without the folders of installed packages
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with open(path, encoding="utf-8") as f:
        base = int(json.load(f)["otherData"]["base_ns"])
    processor = TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=binary))
    got = [
        (r.ts + base, r.dur, r.name)
        for r in processor.query("SELECT ts, dur, name FROM slice WHERE category = 'kernel' ORDER BY ts, dur, name")
    ]
    lost = [r.value for r in processor.query("SELECT value FROM stats WHERE severity = 'error' AND value > 0")]
    processor.close()
    wanted = rows(
        session,
        "SELECT a.start_ns, a.end_ns - a.start_ns AS ns, n.name FROM activity a JOIN activity_name n ON n.id = a.name "
        "WHERE a.kind = 0 ORDER BY a.start_ns, ns, n.name",
    )
    if lost:
        return f"Perfetto counts {sum(lost)} faults"
    return None if got == wanted else f"{len(got)} kernels that differ from {len(wanted)} activities"


def main():
    commands = {"same": same, "copies": copies, "linked": linked, "trace": trace, "perfetto": perfetto}
    wrong = commands[sys.argv[1]](*sys.argv[2:])
    if wrong:
        print(wrong)
    sys.exit(1 if wrong else 0)


main()
