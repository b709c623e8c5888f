#!/bin/sh
# Who reads nsys' SQLite, or the tables of `nsys stats`, reads a session with a timeline.
. "$(dirname "$0")/e2e.inc"
release_only "what is read of a session is the same in every build"
[ -n "${python:-}" ] || { echo "skipped: no python3"; exit 77; }

step=$tmp/step.kprof
gzip -dc "$source/tests/data/h100-resnet.kprof.gz" >"$step"
stats() { # ARGUMENTS...
    "$build/kprof" stats "$@"
}

# Each sum is that of the records, by another way: Python's, not SQL's.
for report in cuda_gpu_kern_sum cuda_gpu_kern_gb_sum cuda_gpu_mem_time_sum cuda_gpu_mem_size_sum cuda_gpu_sum cuda_gpu_trace nvtx_sum nvtx_gpu_proj_sum nvtx_gpu_proj_trace; do
    stats --report $report --format csv "$step" >"$tmp/$report.csv" 2>"$tmp/err" || fail "$report: $(cat "$tmp/err")"
done
python3 - "$step" "$tmp" >"$tmp/said" 2>&1 <<'END' || fail "sums: $(cat "$tmp/said")"
import csv, sqlite3, statistics, sys
db = sqlite3.connect(sys.argv[1])
rows = db.execute("SELECT kind, n.name, end_ns - start_ns, bytes, grid_x, grid_y, grid_z, block_x, block_y, block_z, start_ns"
                  " FROM activity a JOIN activity_name n ON n.id = a.name").fetchall()

def read(report):
    with open(f"{sys.argv[2]}/{report}.csv", newline="") as f:
        return list(csv.DictReader(f))

def check(report, named, kinds, key, count="Instances"):
    want = {}
    for r in rows:
        if r[0] in kinds:
            want.setdefault(key(r), []).append(r[2])
    got = read(report)
    total = sum(map(sum, want.values()))
    assert {named(r) for r in got} == set(want), (report, {named(r) for r in got} ^ set(want))
    assert [int(r["Total Time (ns)"]) for r in got] == sorted((sum(v) for v in want.values()), reverse=True), report
    for r in got:
        v = want[named(r)]
        assert int(r["Total Time (ns)"]) == sum(v) and int(r[count]) == len(v), (report, r)
        assert int(r["Min (ns)"]) == min(v) and int(r["Max (ns)"]) == max(v), (report, r)
        assert abs(float(r["Avg (ns)"]) - statistics.mean(v)) < 0.06, (report, r)
        assert abs(float(r["Med (ns)"]) - statistics.median(v)) < 0.06, (report, r)
        assert abs(float(r["StdDev (ns)"]) - (statistics.stdev(v) if len(v) > 1 else 0)) < 0.06, (report, r)
        assert abs(float(r["Time (%)"]) - 100 * sum(v) / total) < 0.06, (report, r)

copies = {"memcpy HtoD": "[CUDA memcpy Host-to-Device]", "memcpy DtoH": "[CUDA memcpy Device-to-Host]",
          "memcpy DtoD": "[CUDA memcpy Device-to-Device]", "memset": "[CUDA memset]"}
check("cuda_gpu_kern_sum", lambda r: r["Name"], (0,), lambda r: r[1])
check("cuda_gpu_mem_time_sum", lambda r: r["Operation"], (1, 2), lambda r: copies[r[1]], "Count")
check("cuda_gpu_sum", lambda r: r["Operation"], (0, 1, 2), lambda r: copies.get(r[1], r[1]))
check("nvtx_sum", lambda r: r["Range"], (3,), lambda r: ":" + r[1])
three = lambda v: " ".join("%4d" % x for x in v)
check("cuda_gpu_kern_gb_sum", lambda r: (r["Name"], r["GridXYZ"], r["BlockXYZ"]), (0,),
      lambda r: (r[1], three(r[4:7]), three(r[7:10])))
trace = read("cuda_gpu_trace")
assert len(trace) == sum(r[0] < 3 for r in rows) and [int(r["Start (ns)"]) for r in trace] == sorted(int(r["Start (ns)"]) for r in trace)
assert sum(int(r["Duration (ns)"]) for r in trace) == sum(r[2] for r in rows if r[0] < 3)
sizes = read("cuda_gpu_mem_size_sum")
assert abs(sum(float(r["Total (MB)"]) for r in sizes) - sum(r[3] for r in rows if r[0] in (1, 2)) / 1e6) < 0.01
proj = read("nvtx_gpu_proj_sum")
assert {r["Range"] for r in proj} == {":forward", ":backward", ":optimizer"} and sum(int(r["Total GPU Ops"]) for r in proj) == 586, proj
assert sum(int(r["NumGPUOps"]) for r in read("nvtx_gpu_proj_trace")) == 586
END

# Without records there are no empty tables.
cp "$source/examples/h200-demo.kprof" "$tmp/demo.kprof"
stats "$tmp/demo.kprof" >"$tmp/out" 2>"$tmp/err"
expect "no timeline: exit code" $? 0
expect "no timeline: tables" "$(cat "$tmp/out")" ""
expect "no timeline: told" "$(grep -c '^==KPROF== [a-z_]* is left out: the session has no such records; a run with --timeline has them$' "$tmp/err")" 9

# The views of a new session: queries as public readers of nsys' export have them.
if [ -n "$KP_REAL_CUPTI" ]; then
    LD_LIBRARY_PATH="$build/fake" "$build/kprof" --page timeline -o "$tmp/new" "$programs/p_direct" >/dev/null 2>&1
    [ -s "$tmp/new.kprof" ] || fail "no session with a timeline"
    python3 - "$tmp/new.kprof" >"$tmp/said" 2>&1 <<'END' || fail "views: $(cat "$tmp/said")"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
kernels = db.execute("SELECT s.value, count(*), sum(k.end - k.start), k.deviceId, k.streamId, k.gridX * k.blockX FROM"
                     " CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.demangledName GROUP BY s.value").fetchall()
want = db.execute("SELECT n.name, count(*), sum(end_ns - start_ns), device, stream_id, grid_x * block_x FROM activity a JOIN"
                  " activity_name n ON n.id = a.name WHERE kind = 0 GROUP BY n.name").fetchall()
assert kernels == want, (kernels, want)
assert sum(k[1] for k in kernels) == db.execute("SELECT count(*) FROM activity WHERE kind = 0").fetchone()[0] > 0
for view, kind in ("MEMCPY", 1), ("MEMSET", 2):
    got = db.execute(f"SELECT count(*), coalesce(sum(bytes), 0) FROM CUPTI_ACTIVITY_KIND_{view}").fetchone()
    assert got == db.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM activity WHERE kind = ?", (kind,)).fetchone(), view
assert db.execute("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59").fetchone() == db.execute(
    "SELECT count(*) FROM activity WHERE kind = 3").fetchone()
END
    stats "$tmp/new" >"$tmp/all" 2>"$tmp/err"
    expect "all reports but those of NVTX" "$(grep -c '^ \*\* ' "$tmp/all")" 6
    expect "reports left out" "$(grep -c '^==KPROF== nvtx_[a-z_]* is left out' "$tmp/err")" 3
fi

# A session of a timeline alone has the times of its records on the pages that are about times.
python3 - "$step" "$tmp/alone.kprof" <<'END' || fail "no session without launches"
import shutil, sqlite3, sys
shutil.copy(*sys.argv[1:])
db = sqlite3.connect(sys.argv[2])
for table in "launch", "metric", "launch_range":
    db.execute(f"DELETE FROM {table}")
db.commit()
END
total=$(awk -F, 'NR > 1 { n += $2 } END { printf "%d", n }' "$tmp/cuda_gpu_kern_sum.csv")
expect "alone: summary" "$("$build/kprof" report --page summary --top 0 --csv "$tmp/alone" | sed 's/","/|/g' | awk -F'|' 'NR > 1 && $9 { n += $2 } END { printf "%d", n }')" "$total"
expect "alone: folded" "$("$build/kprof" report --folded nvtx "$tmp/alone" 2>&1 | awk '{ n += $NF } END { printf "%d", n }')" "$total"
expect "alone: folded, what is said" "$("$build/kprof" report --folded nvtx "$tmp/alone" 2>&1 >/dev/null)" ""
expect "alone: folded, ranges" "$("$build/kprof" report --folded nvtx "$tmp/alone" | sed -n 's/^\(forward\|backward\|optimizer\);.*/\1/p' | sort -u | tr '\n' ' ')" "backward forward optimizer "
expect "alone: per-nvtx" "$("$build/kprof" report --print-summary per-nvtx "$tmp/alone" | grep -c ', Invocations ')" 4
expect "alone: JSON has no launch" "$("$build/kprof" report --json "$tmp/alone" | grep -c '"demangled"')" 0

stats --report no_such_sum "$step" >"$tmp/out" 2>"$tmp/err"
expect "no such report: exit code" $? 2
stats >"$tmp/out" 2>"$tmp/err"
expect "no file: exit code" $? 2
finish
