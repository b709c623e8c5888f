#!/bin/sh
# Rotation alongside replay: from the second launch of a kernel and shape on, launches that must not be repeated rotate
# through groups of counters. The first one is an entry at once, which later stands for all of them.
. "$(dirname "$0")/e2e.inc"
. "$(dirname "$0")/turns.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

# The L2 counts one of these in a pass.
export KPROF_METRICS=lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum,lts__t_sector_hit_rate.pct
export KPROF_SET=basic FAKE_VARY=0.1
p=$programs/p_repeat

calls() { # FUNCTION
    awk -v of="$1" '$1 == "calls" && $3 == of { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}

# Launches that reached the driver.
made() {
    grep -c '^launch ' "$1"
}

names='HITS, MISSES, RATE = "lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum", "lts__t_sector_hit_rate.pct"
QUICK = "smsp__warps_eligible.avg.per_cycle_active" # nobody but the list of the first launch has it'

# Kernels that use the device's heap. Blocks of the heap may be anywhere from then on, so that what could be repeated before
# takes turns, too. The last kernel is launched once.
KPROF_DEBUG=window turns heap "$p" heap 40
expect "heap: windows" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'closes (rotate)')" 5 # of 3 groups
expect "heap: launches of the driver" "$(made "$tmp/kprof.log")" "$(($(made "$tmp/plain.log") + 10))" # the first one is replayed
KPROF_REPLAY_MODE=rotate turns rotated "$p" heap 40
check heap '
first, turned = kernel("heap", "increment")
assert "rotation" not in first and first["passes"] > 2, first["passes"]
swap, = kernel("heap", "heap_swap")
last, = kernel("heap", "read_blocks")
for l, launches_of in ((swap, 40), (turned, 79)):
    r = l["rotation"]
    assert r["launches"] == launches_of and r["groups_counted"] == r["groups"] > 2, r
    assert r["counted"] == 1 + 3 * (r["groups"] - 1), r
    assert "not replayed" in l["note"], l["note"]
    m = metrics(l)
    assert m["gpu__time_duration.sum"]["counted"] == r["counted"] and m["gpu__time_duration.sum"]["interval"] is not None
    assert m[HITS]["counted"] == m[MISSES]["counted"] == 3 and m[RATE]["value"] is not None
    # all that a rotation has, and what the first launch has counted
    of = [k for k in kernel("rotated", l["name"])][0]
    assert set(values(of)) <= set(values(l)), set(values(of)) - set(values(l))
    assert m[QUICK]["counted"] == 1 and QUICK not in values(of)
assert "rotation" not in last and QUICK in values(last) and HITS not in values(last)
assert [l["id"] for l in launches("heap")] == list(range(4))
'
# The entry stands where its first launch does, and has a note; sections that were asked for take the place of the quick one.
expect "heap: heads" "$(grep -c '^    Rotation: ' "$tmp/report")" 3 # of the rotated run
grep -q '^==KPROF== Profiling "heap_swap" - 1: ' "$tmp/report" || fail "rotated: names"

# What has one launch keeps what it had: the whole session is that without turns, and no groups are made.
KPROF_DEBUG=plan turns once "$p" heap 1
expect "once: plans" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'sections and metrics')" 2
KPROF_DEBUG=plan turns often "$p" heap 2
expect "often: plans" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'sections and metrics')" 3
KPROF_FALLBACK=quick turns quick1 "$p" heap 1
check once '
for a, b in zip(launches("once"), launches("quick1"), strict=True):
    for l in (a, b):
        del l["profiler_ns"]
    assert a == b, (a, b)
'

# Few launches: each counts another group, and what is lacking has its reason. The quick section stays on top.
turns few "$p" heap 2
check few '
swap, = kernel("few", "heap_swap")
r, m = swap["rotation"], metrics(swap)
assert r["launches"] == r["counted"] == r["groups_counted"] == 2 < r["groups"], r
assert QUICK in values(swap) and (HITS in values(swap)) + (MISSES in values(swap)) < 2
assert "not reached: 2 of %d groups, in 2 launches" % r["groups"] in json.dumps(m), m
'
grep -A12 '^  heap_swap' "$tmp/report" | grep -q '^    Section: Quick Look' || fail "few: no quick section"

# Without turns, each launch is a row.
KPROF_FALLBACK=quick turns quick "$p" heap 40
expect "quick: rows" "$(grep -c 'CC 9.0$' "$tmp/report")" "$(launches)"
expect "quick: heads" "$(grep -c '^    Rotation: ' "$tmp/report")" 0
# So it is with a line a launch.
KPROF_TRACE_COLUMNS=$KPROF_METRICS KPROF_METRICS="" KPROF_SET="" KPROF_PAGE=trace turns trace "$p" heap 10
check trace 'assert len(launches("trace")) == 31 and not any("rotation" in l for l in launches("trace"))'

# Kernels that can be repeated are as they are without turns, row by row; those between them that launch more take turns.
# Both are counted by the range profiler: sessions have other numbers here.
FAKE_FAIL=cuptiProfilerBeginSession:999 KPROF_DEBUG=window turns mixed "$p" launches 30
cat "$tmp/report" "$tmp/kprof.err" | grep -q 'closes (rotate): a launch that can be replayed' || fail "mixed: why windows close"
FAKE_FAIL=cuptiProfilerBeginSession:999 KPROF_FALLBACK=quick turns apart "$p" launches 30
check mixed '
increments, others = kernel("mixed", "increment"), kernel("apart", "increment")
assert len(increments) == len(others) == 30
for a, b in zip(increments, others):
    assert a["passes"] == b["passes"] > 2 and "rotation" not in a and a["note"] is None
    assert values(a) == values(b)
turned, = kernel("mixed", "launching_increment")
assert turned["rotation"]["launches"] == 30 and turned["rotation"]["groups_counted"] == turned["rotation"]["groups"]
assert HITS in values(turned) and turned["id"] == 1
'

# Without turns, one session has both: what it counts is that, and the accounts are those of the range profiler.
KPROF_FALLBACK=quick turns session "$p" launches 30
expect "session: begun" "$(calls cuptiProfilerBeginSession)" 1
expect "session: profilers" "$(calls cuptiRangeProfilerEnable)" 0
check session '
assert len(kernel("session", "increment")) == len(kernel("session", "launching_increment")) == 30
for name in "increment", "launching_increment":
    for a, b in zip(kernel("session", name), kernel("apart", name)):
        assert set(values(a)) == set(values(b)) and a["passes"] == b["passes"] and a["note"] == b["note"], (a, b)
'

# Others are not waited for: they may need a later one.
KPROF_KERNEL_NAME=launching_increment turns waits "$p" launches-wait 12
check waits '
turned, = launches("waits")
assert turned["rotation"]["launches"] == 12 and turned["rotation"]["groups_counted"] == turned["rotation"]["groups"]
'

# So do the nodes of a graph; one that is a workload as a whole is counted by itself.
turns nodes "$p" graph-launches 20
check nodes '
turned, = kernel("nodes", "launching_increment")
assert turned["rotation"]["launches"] == 20 and RATE in values(turned)
'
turns whole "$p" graph-memory 20
check whole 'assert len([l for l in launches("whole") if l["kind"] == "graph" and "rotation" not in l and QUICK in values(l)]) == 20'

# Memory of the host, and memory that other processes can reach.
turns host "$p" virtual-host 40
check host '
first, second, turned = kernel("host", "increment")
assert "rotation" not in first and "rotation" not in second and turned["rotation"]["launches"] == 39, turned
assert "cuMemCreate" in turned["note"] and RATE in values(turned)
'
for how in anonymous memfd; do
    turns "$how" "$programs/p_shared" $how
    check "$how" '
turned, = [l for l in launches(checked) if "rotation" in l]
assert turned["rotation"]["launches"] == 7 and turned["rotation"]["counted"] >= 5, turned["rotation"]
'
done
turns exported "$programs/p_window" exported
expect "exported: heads" "$(grep -c '^    Rotation: 6 ' "$tmp/report")" 1
turns threads "$programs/p_threads"
# A second device ends it: its launches may wait for these.
FAKE_DEVICES=2 turns partners "$p" partners
check partners '
turned, = kernel("partners", "increment")
assert turned["rotation"]["launches"] == turned["rotation"]["counted"] == 3, turned["rotation"]
'
expect "partners: let through" "$(grep -c 'memory is shared with other processes or devices, not replayed: 3' "$tmp/report")" 1

# Memory that has no room for a copy, which is found out when a window opens.
FAKE_FAIL=cuptiCheckpointSave:1 turns unsaved "$p" launches 12
check unsaved '
turned, = kernel("unsaved", "increment")
assert turned["rotation"]["launches"] == 12 and "could not be saved" in turned["note"], turned
'

# Launches of two kinds: what mixes groups is refused, and what the first launch has counted stays.
FAKE_VARY=modes turns modes "$p" heap 40
check modes '
for l in launches("modes")[1:3]:
    m = metrics(l)
    assert "of two kinds" in json.dumps(m[RATE]) and m[HITS]["value"] is not None, m[RATE]
    assert QUICK in values(l)
'

# Ends without exit handlers: by itself, and by a signal. Of the latter the file has what was complete, and first launches.
turns exits "$p" heap-exits 3
check exits 'assert [l["rotation"]["launches"] for l in launches("exits")[1:]] == [3, 5]'
rm -f "$tmp/killed.kprof"
KPROF_EXPORT=$tmp/killed.kprof both killed "$p" heap-killed 40
stored --json "$tmp/killed.kprof" >"$tmp/killed.json" 2>"$tmp/killed.err"
check killed '
first, swap, turned = launches("killed")
assert swap["rotation"]["groups_counted"] == swap["rotation"]["groups"] and HITS in values(turned)
'
KPROF_EXPORT=$tmp/early.kprof both early "$p" heap-killed 1
stored --json "$tmp/early.kprof" >"$tmp/early.json" 2>"$tmp/early.err"
check early '
assert [l["name"] for l in launches("early")] == ["increment", "heap_swap", "increment"]
assert all(QUICK in values(l) for l in launches("early")[1:])
'

# A run of which nothing is lacking is no failure in part.
KPROF_STRICT=1 turns strict "$programs/p_window" exported
expect "strict: complete" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'strict: in-part')" 0
KPROF_STRICT=1 turns strict1 "$p" heap 40
expect "strict: one launch" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'strict: in-part')" 1

finish
