#!/usr/bin/env python3
"""Makes sessions for the tests of the HTML report from a recorded one.

html_sessions.py many FROM TO N   N launches of many kernels and shapes, with streams, NVTX ranges and call stacks
html_sessions.py strip FROM TO   ten more launches of the first kernel, of which one takes ten times as long
html_sessions.py rotated FROM TO   of a rotation: three of the launches stand for 3, 1,000 and 20 of their kernel and shape
html_sessions.py shared FROM TO   the first launch has 48 KB of shared memory, and the driver's 1 KB
html_sessions.py cutlass FROM TO   kernels that differ in a template's argument alone
html_sessions.py alike FROM TO     kernels that differ late in their names
html_sessions.py xmma FROM TO      kernels whose functions have long names that begin alike, and differ in the middle
html_sessions.py hostile FROM TO  names that would be markup or script in a page that takes them for it
html_sessions.py changed FROM TO   every other kernel takes twice the time, the others half of it
html_sessions.py nested FROM TO   each launch is in three NVTX ranges
html_sessions.py nameless FROM TO   kernels and frames without a name
html_sessions.py timeline FROM TO N   a timeline of N kernels, with copies, ranges, and all launches on it
html_sessions.py ptx FROM TO   one with a timeline gets PTX: a line for two instructions each but the first two, and one of none
html_sessions.py slower FROM TO   the first kernel takes twice the time
html_sessions.py other FROM TO   another build: the first kernel takes half the time, the second one has another name"""
import random
import shutil
import sqlite3
import sys

HOSTILE = ["<img src=x onerror=\"document.title='hacked';window.hacked=1\">", "</script><script>window.hacked=1</script>",
           "'\"><svg onload=window.hacked=1>", "javascript:window.hacked=1"]


def columns(db, table):
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def copy_rows(db, table, launch, to):
    names = columns(db, table)
    quoted = ",".join(f'"{n}"' for n in names)
    chosen = ",".join(str(to) if n == "launch" else f'"{n}"' for n in names)
    db.execute(f"INSERT INTO {table}({quoted}) SELECT {chosen} FROM {table} WHERE launch = {launch}")


def add_stack(db, number):
    frames = [("launch_kernel", "/src/run.cu", 10 + number), (f"step_{number}", "/src/train.py", 5), ("main", "/src/main.py", 1)]
    for position, (function, file, line) in enumerate(frames):
        db.execute("INSERT INTO frame VALUES(?,?,?,?,?,?,?,?)", (number, position, int(file.endswith("py")), function, file, line, "/src/app", 0))


def many(db, n):
    rng = random.Random(1)
    first = [row[0] for row in db.execute("SELECT id FROM launch ORDER BY id")]
    names = columns(db, "launch")
    duration = db.execute("SELECT id FROM name WHERE name = 'gpu__time_duration.sum'").fetchone()[0]
    for stack in range(1, 6):
        add_stack(db, stack)
    for new in range(len(first), n):
        of = rng.choice(first)
        row = dict(zip(names, db.execute("SELECT * FROM launch WHERE id = ?", (of,)).fetchone()))
        kernel = rng.randrange(60)
        row.update(id=new, ordinal=new, demangled=f"void ns::kernel_{kernel}<float, (int){kernel % 7}>(const T1 *, T1 *, int)",
                   mangled=f"_Z8kernel_{kernel}v", grid_x=1 + kernel * rng.randrange(1, 4), stream_id=7 + new % 3, stack=1 + new % 5, thread=1)
        db.execute(f"INSERT INTO launch VALUES({','.join('?' * len(names))})", [row[name] for name in names])
        for table in ("metric", "code_counts", "code_metric", "series"):
            copy_rows(db, table, of, new)
        db.execute("UPDATE metric SET value = ? WHERE launch = ? AND name = ?", (rng.randrange(2000, 400000) + kernel * 1000, new, duration))
        for position, name in enumerate((f"step {new * 10 // n}", "forward" if new % 2 else "backward")):
            db.execute("INSERT INTO launch_range VALUES(?,?,?,?,?,?,?,?)", (new, position, 0, "", name, "", "", 1))
    db.execute("UPDATE session SET launches_seen = ?, launches_profiled = ?", (n, n))


def strip(db):
    names = columns(db, "launch")
    row = dict(zip(names, db.execute("SELECT * FROM launch ORDER BY id").fetchone()))
    of, first = row["id"], db.execute("SELECT max(id) + 1 FROM launch").fetchone()[0]
    duration = db.execute("SELECT m.name, m.value FROM metric m JOIN name n ON n.id = m.name WHERE n.name = 'gpu__time_duration.sum' AND launch = ?", (of,)).fetchone()
    for new in range(first, first + 10):
        row.update(id=new, ordinal=new)
        db.execute(f"INSERT INTO launch VALUES({','.join('?' * len(names))})", [row[name] for name in names])
        copy_rows(db, "metric", of, new)
        db.execute("UPDATE metric SET value = ? WHERE launch = ? AND name = ?", (duration[1] * (10 if new == first + 6 else 1) + new, new, duration[0]))
    for new in range(first + 10, first + 13):  # of another shape, each as long
        row.update(id=new, ordinal=new, grid_x=4096)
        db.execute(f"INSERT INTO launch VALUES({','.join('?' * len(names))})", [row[name] for name in names])
        copy_rows(db, "metric", of, new)
        db.execute("UPDATE metric SET value = ? WHERE launch = ? AND name = ?", (20 * duration[1], new, duration[0]))


def untimed(db, launches):
    """Takes the durations of launches."""
    for launch in launches:
        db.execute("DELETE FROM metric WHERE launch = ? AND name = (SELECT id FROM name WHERE name = 'gpu__time_duration.sum')", (launch,))


ALIKE = {0: 3, 2: 1000, 3: 20}


def rotated(db):
    for launch, alike in ALIKE.items():
        db.execute("UPDATE launch SET alike = ?, counted = 3, groups = 5, groups_counted = 5 WHERE id = ?", (alike, launch))
    add_stack(db, 1)
    db.execute("UPDATE launch SET stack = 1")
    db.execute("UPDATE session SET launches_seen = 1030")


def shared(db):
    db.execute("UPDATE metric SET value = 50176 WHERE launch = 0 AND name = (SELECT id FROM name WHERE name = 'launch__shared_mem_per_block')")


def cutlass(db):
    add_stack(db, 1)
    for number, (launch,) in enumerate(db.execute("SELECT id FROM launch ORDER BY id").fetchall()):
        part = ("s1688gemm_128x128_16x5_nn", "s1688gemm_128x64_16x6_nt", "h16816gemm_256x64_32x4_tn")[number % 3]
        db.execute("UPDATE launch SET demangled = ?, stack = 1, thread = 1 WHERE id = ?", (f"void cutlass::Kernel<cutlass_80_tensorop_{part}_align4>(T1::Params)", launch))


def alike(db):
    functors = ("AUnaryFunctor<float, float, float, at::native::MulFunctor<float>>", "BinaryFunctor<float, float>", "FillFunctor<float>", "FillFunctor<int>")
    for number, (launch,) in enumerate(db.execute("SELECT id FROM launch ORDER BY id").fetchall()):
        db.execute("UPDATE launch SET demangled = ? WHERE id = ?", (f"void at::native::vectorized_elementwise_kernel<(int)4, at::native::{functors[number % 4]}, std::array<char *, (unsigned long)2>>(int, T2, T3)", launch))


def xmma(db):
    tiles = ("128x128x32", "128x64x32", "64x64x32", "64x256x32")
    for number, (launch,) in enumerate(db.execute("SELECT id FROM launch ORDER BY id").fetchall()):
        db.execute("UPDATE launch SET demangled = ? WHERE id = ?", (
            f"sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize{tiles[number % 4]}_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn", launch))


def nested(db):
    for (launch,) in db.execute("SELECT id FROM launch").fetchall():
        for position, name in enumerate((f"step {launch % 7}", "forward" if launch % 2 else "backward", f"layer {launch % 11}")):
            db.execute("INSERT INTO launch_range VALUES(?,?,?,?,?,?,?,?)", (launch, position, 0, "", name, "", "", 1))
    db.execute("UPDATE launch SET thread = 1")


def nameless(db):
    add_stack(db, 1)
    db.execute("UPDATE frame SET function = ' ', module = '' WHERE position = 1")
    db.execute("UPDATE launch SET demangled = '', mangled = '', stack = 1, thread = 1")


def timeline(db, n):
    rng = random.Random(2)
    db.execute("UPDATE session SET timeline = 1, timeline_dropped = 3")
    names = ["", *HOSTILE, "memcpy HtoD", "step", "inner", *[f"void ns::kernel_{k}<float>(const T1 *)" for k in range(20)]]
    db.executemany("INSERT INTO activity_name VALUES(?,?)", enumerate(names))
    launches = [row[0] for row in db.execute("SELECT ordinal FROM launch ORDER BY id")]
    base = 1795563459827191980

    def put(kind, name, device, stream, start, end, ordinal=-1, thread=0, launched=0, size=0):
        db.execute("INSERT INTO activity VALUES(NULL,?,?,?,1,?,?,?,0,?,?,?,1,1,1,32,1,1,?,0)",
                   (kind, names.index(name), device, stream, base + start, base + end, ordinal, thread, launched and base + launched, size))

    at = 0
    for i in range(n):
        stream = 7 + i % 2
        at += rng.randrange(500, 4000) + (60000 if i % 97 == 50 else 0)
        length = rng.randrange(1000, 30000)
        put(0, names[8 + rng.randrange(20)] if i % 50 else HOSTILE[i // 50 % 4], 0, stream, at, at + length,
            launches[i] if i < len(launches) else -1, 77, at - 300)
        if i % 10 == 3:
            put(1, "memcpy HtoD", 0, 7 + i % 3, at + 200, at + 9000, size=1 << 20)
        if i % 25 == 4:
            put(3, "step" if i % 50 == 4 else HOSTILE[0], -1, 0, at - 500, at + 200000, thread=77)
            put(3, "inner", -1, 0, at - 400, at + 100000, thread=77)
        if i == n // 2:
            put(4, "", -1, 0, at + length, at + length + 500000)
            at += 500000
        at += length if i % 3 else 0


def ptx(db):
    db.execute("UPDATE instruction SET ptx = 21 + offset / 32 WHERE offset >= 32")
    db.execute("INSERT INTO ptx SELECT DISTINCT code, ptx, ? FROM instruction WHERE ptx > 0", (HOSTILE[1],))
    db.execute("INSERT INTO ptx SELECT id, 7, ? FROM code", (HOSTILE[0],))


def hostile(db):
    add_stack(db, 1)
    db.execute("UPDATE frame SET function = ?, file = ?", (HOSTILE[0], HOSTILE[1]))
    for number, (launch,) in enumerate(db.execute("SELECT id FROM launch").fetchall()):
        name = HOSTILE[number % len(HOSTILE)]
        db.execute("UPDATE launch SET demangled = ?, note = ?, stack = 1, thread = 1 WHERE id = ?", (name, HOSTILE[0], launch))
        db.execute("INSERT INTO launch_range VALUES(?,0,0,'',?,'','',1)", (launch, HOSTILE[(number + 1) % 4]))
    db.execute("UPDATE session SET exe = ?, cmdline = ?, host = ?", ("/bin/" + HOSTILE[2], HOSTILE[1], HOSTILE[0]))
    db.execute("UPDATE device SET name = ?", (HOSTILE[0],))
    db.execute("UPDATE source_file SET path = ?, text = ?", (HOSTILE[0], (HOSTILE[1] + "\n") * 60))
    db.execute("UPDATE instruction SET text = ?", (HOSTILE[1],))
    db.execute("UPDATE metric SET value = ? WHERE typeof(value) = 'text'", (HOSTILE[0],))


def take(db, launch, factor):
    db.execute("UPDATE metric SET value = value * ? WHERE launch = ? AND name = (SELECT id FROM name WHERE name = 'gpu__time_duration.sum')", (factor, launch))


def changed(db):
    for number, (name,) in enumerate(db.execute("SELECT DISTINCT demangled FROM launch ORDER BY demangled").fetchall()):
        for (launch,) in db.execute("SELECT id FROM launch WHERE demangled = ?", (name,)).fetchall():
            take(db, launch, 0.5 if number % 2 else 2)


def other(db):
    take(db, 0, 0.5)
    db.execute("UPDATE launch SET demangled = 'transpose_swizzled(const float *, float *)' WHERE id = 1")


def main():
    what, source, target = sys.argv[1:4]
    shutil.copy(source, target)
    db = sqlite3.connect(target)
    if what == "many":
        many(db, int(sys.argv[4]))
    elif what == "timeline":
        timeline(db, int(sys.argv[4]))
    elif what == "cutlass":
        cutlass(db)
    elif what == "alike":
        alike(db)
    elif what == "rotated":
        rotated(db)
    elif what == "xmma":
        xmma(db)
    elif what == "changed":
        changed(db)
    elif what == "nested":
        nested(db)
    elif what == "nameless":
        nameless(db)
    elif what == "shared":
        shared(db)
    elif what == "untimed":
        untimed(db, sys.argv[4:])
    elif what == "strip":
        strip(db)
    elif what == "ptx":
        ptx(db)
    elif what == "slower":
        take(db, 0, 2)
    elif what == "other":
        other(db)
    else:
        hostile(db)
    db.commit()
    db.close()


main()
