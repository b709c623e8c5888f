"""The inside of a process under libkprof.so, for gdb: source it, then `kprof` prints the phase, the gate, the window that
is open, the worker, and who holds which lock.

    gdb -p PID -ex 'source tools/kprof-gdb.py' -ex kprof        a process that seems to hang
    gdb PROGRAM CORE -ex 'source tools/kprof-gdb.py' -ex kprof  a process that crashed

Needs a libkprof.so with its debugging information. Reads memory only, and calls nothing in the process.
"""
import gdb

WAITED_FOR = 1 << 30  # base/lock.c


def value(name, file):
    """A variable of a file, also a static one."""
    return gdb.parse_and_eval(f"'{file}'::{name}")


def number(v):
    """Of a plain or an atomic type."""
    return int(v)


def text(v):
    return v.string(errors="replace") if int(v) else ""


def threads():
    """gdb's numbers of the process's threads, by their ids."""
    return {t.ptid[1] or t.ptid[0]: t.num for t in gdb.selected_inferior().threads()}


def show_process():
    p = value("kp_process_now", "preload/process/phase.c")
    print(f"phase: {str(p['phase']).replace('KP_PHASE_', '')}, of process {p['pid']}")


def show_gate():
    gate = {n: number(value(n, "preload/gate/gate.c")) for n in ("armed", "waiting")}
    state = value("kp_gate_state", "preload/gate/fast_path.c")
    gate.update({n: number(state[n]) for n in ("exclusive", "captures")})
    calls = 0
    for name, of in (("in_flight", "preload/gate/gate.c"), ("tables", "preload/gate/fast_path.c")):
        places = value(name, of)
        first, last = places.type.range()
        calls += sum(number(places[i]["calls"]) for i in range(first, last + 1))
    print(
        f"gate: {'armed' if gate['armed'] else 'not armed'}, "
        f"{'held by one thread alone' if gate['exclusive'] else 'open to calls'}; {calls} calls in flight, "
        f"{gate['waiting']} threads wait, {gate['captures']} captures"
    )


def show_window():
    w = value("kp_window_now", "preload/mode/close.c")
    j = value("kp_journal_now", "preload/journal/record.c")
    if not w["open"]:
        print("window: none is open")
        return
    strategy = text(w["strategy"]["name"]) if int(w["strategy"]) else "not chosen yet"
    launches = int(j["launches"])
    print(f"window: open, strategy {strategy}; {launches} launches, {j['wanted']} with results, "
          f"{int(j['n']) - launches} operations")
    if int(w["once_reason"]):
        row = value("rows", "report/model/reasons.c")[int(w["once_reason"])]
        print(f"    one launch that {text(row['text'])}")


def show_worker():
    queue = value("queue", "preload/os/worker.c")
    jobs, job = 0, queue["first"]
    while int(job) and jobs < 1000:
        jobs, job = jobs + 1, job["next"]
    print(f"worker: {'runs' if number(queue['running']) else 'no thread'}; {jobs} jobs wait")


def show_locks():
    locks, names = value("kp_locks", "base/lock.c"), value("names", "base/lock.c")
    known, held = threads(), 0
    first, last = locks.type.range()
    for i in range(first, last + 1):
        word = number(locks[i]["word"])
        if not word:
            continue
        held += 1
        owner = word & ~WAITED_FOR
        where = f"gdb's thread {known[owner]}" if owner in known else "which has ended"
        waited = ", others wait for it" if word & WAITED_FOR else ""
        print(f"lock {text(names[i])}: held by thread {owner}, {where}{waited}")
    if not held:
        print("locks: all are free")


class Kprof(gdb.Command):
    """Prints what libkprof.so is doing in the process."""

    def __init__(self):
        super().__init__("kprof", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for show in (show_process, show_gate, show_window, show_worker, show_locks):
            try:
                show()
            except gdb.error as e:
                print(f"{show.__name__[5:]}: cannot be read: {e}")


Kprof()
