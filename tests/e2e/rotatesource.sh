#!/bin/sh
# Rotation of other data than counters: warps are sampled, instructions counted and counters sampled over time in
# different launches of a kernel. Nothing is issued twice, and one entry has all of it.
. "$(dirname "$0")/e2e.inc"
. "$(dirname "$0")/turns.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

export KPROF_SECTION=SourceCounters,PmSampling KPROF_REPLAY_MODE=rotate
p=$programs/p_many

names='SAMPLES, SAMPLED, EXECUTED = "smsp__pcsamp_sample_count", "smsp__pcsamp_aggregated_passes", "thread_inst_executed"
STALL = "smsp__pcsamp_warps_issue_stalled_"
def stalls(v):
    return sum(n for name, n in v.items() if name.startswith(STALL) and not name.endswith("_not_issued"))'

# What kernel replay tells of each launch.
KPROF_REPLAY_MODE=kernel turns replayed "$p" 40
turns rotated "$p" 40
expect "rotated: launches of the driver" "$(grep -c '^launch ' "$tmp/kprof.log")" "$(launches)"
expect "rotated: memory saved" "$(grep -c '^calls.*cuptiCheckpointSave' "$tmp/kprof.log")" 0
expect "rotated: entries" "$(grep -c 'CC 9.0$' "$tmp/report")" 2
check rotated '
for l in launches("rotated"):
    r, v, m = l["rotation"], values(l), metrics(l)
    others = [values(o) for o in launches("replayed") if o["name"] == l["name"]]
    assert r["groups_counted"] == r["groups"] == 5, r
    assert r["counted"] == 3 * 2 + 3 + 1 + 1, r
    # the duration is of the one list that has room for it, samples of three launches, counts of one
    assert m["gpu__time_duration.sum"]["counted"] == 3, m["gpu__time_duration.sum"]
    assert v[SAMPLED] == 3 and v[SAMPLES] == stalls(v), v[SAMPLES]
    assert any(sum(three) == v[SAMPLES] for three in itertools.combinations([o[SAMPLES] for o in others], 3)), v[SAMPLES]
    assert v[EXECUTED] == others[0][EXECUTED] > 0
    assert v["smsp__pcsamp_interval_cycles"] == 2048
    assert len(l["series"]) == len(launches("replayed")[0]["series"]) > 3
    assert v["profiler__pmsampler_pass_groups"] == 1
    # all that a replay has but what needs an activity record, and roll-ups beside what a section names
    rolls = [".avg", ".max", ".min", ".sum"]
    lacks = {n for n in set(others[0]) - set(v) if not any(n.replace(a, b) in v for a in rolls if a in n for b in rolls)}
    assert lacks <= {"launch__occupancy_limit_shared_mem", "launch__shared_mem_config_size"}, lacks
'
expect "rotated: lines" "$(grep -c '^    Hottest Lines.*; [0-9,]* samples of 3 launches, one every 2,048 cycles$' "$tmp/report")" 2
expect "rotated: series" "$(grep -c '^    Section: PM Sampling$' "$tmp/report")" 2
pages() { # FLAGS...
    env -u KPROF_SECTION -u KPROF_REPLAY_MODE "$build/kprof" report "$@" "$tmp/rotated.kprof"
}
expect "pages: source" "$(pages --page source | grep -c '^    SASS: ')" 2
expect "pages: CSV of source" "$(pages --page source --csv | grep -c '"LDG')" 2
expect "pages: pm" "$(pages --page pm | grep -c ' samples, one every ')" 2
pages --html "$tmp/rotated.html" >"$tmp/html.out" 2>&1
grep -q 'warps_issue_stalled' "$tmp/rotated.html" || fail "pages: HTML has no samples"

# A replay leaves the program's functions known, and so does a rotation, though counters are on when a first launch comes.
turns settings "$programs/p_settings" 40
turns late "$programs/p_repeat" joins-late
check settings '
assert len(launches("settings")) == 5 and len(launches("late")) == 3
for l in launches("settings") + launches("late")[:2]:
    v, r = values(l), l["rotation"]
    assert r["groups_counted"] == r["groups"] and v[SAMPLED] == 3, (l["name"], r)
    assert v[SAMPLES] == stalls(v) > 0, (l["name"], v[SAMPLES], stalls(v))
'

# The kernels of a graph, launches of threads, and those that must not be repeated; ends without exit handlers.
turns graphs "$programs/p_nodes"
turns threads "$programs/p_threads"
turns heap "$programs/p_repeat" heap 40
turns exits "$programs/p_exit" _exit
check heap '
for name, most in ("graphs", 6), ("heap", 3):
    found = [values(l) for l in launches(name) if l["rotation"]["groups_counted"] > 1]
    assert 0 < len(found) <= most and all(v[SAMPLES] == stalls(v) for v in found), name
assert any(v[SAMPLED] == 3 and EXECUTED in v for v in map(values, launches("heap")))
assert launches("exits") and all("gpu__time_duration.sum" in values(l) for l in launches("exits"))
'

# Launches that the driver refuses, or that fail: no other launch has what is theirs.
turns refusals "$programs/p_window" refusals
turns refused "$programs/p_window" refused-first
both fault "$programs/p_window" fault
both fail "$programs/p_fail"

# Without counters there are these groups alone.
alone() { # NAME METRIC
    KPROF_SECTION="" KPROF_METRICS=$2,launch__grid_size turns "$1" "$p" 5
}
alone alone pmsampling:sm__warps_active.avg.pct_of_peak_sustained_elapsed
FAKE_FAIL=cuptiPmSamplingEnable:999 alone nothing pmsampling:sm__warps_active.avg.pct_of_peak_sustained_elapsed
check alone '
assert len(launches("alone")) == 2 and len(launches("nothing")) > 0
for l in launches("alone"):
    assert l["rotation"]["groups"] == l["rotation"]["counted"] == 1 and len(l["series"]) == 1, l["rotation"]
assert not any(l.get("series") for l in launches("nothing"))
'

# Sessions of ranks are put together: samples are of the launches of all, and what a rank lacks comes from another. Their
# functions have other ids.
RANK=0 WORLD_SIZE=2 turns rank0 "$p" 40
RANK=1 WORLD_SIZE=2 turns rank1 "$programs/p_settings" 40
RANK=2 WORLD_SIZE=2 turns rank2 "$p" 3
together() { # FLAGS...
    env -u KPROF_SECTION -u KPROF_REPLAY_MODE "$build/kprof" report --ranks "$@" "$tmp"/rank[102].kprof
}
together --json >"$tmp/together.json" || fail "ranks: the status"
check together '
def of_kernel(l):
    return l["name"], tuple(l["grid"]), tuple(l["block"])
whole = {of_kernel(l): l for l in launches("together")}
parts = {}
for rank in "rank0", "rank1", "rank2":
    for l in launches(rank):
        parts.setdefault(of_kernel(l), []).append(values(l))
assert set(whole) == set(parts) and sorted(len(p) for p in parts.values()) == [1, 1, 1, 3, 3], list(parts)
for key, of in parts.items():
    v = values(whole[key])
    for name in SAMPLES, SAMPLED, STALL + "long_scoreboard":
        assert v[name] == sum(p.get(name, 0) for p in of), (key, name, v[name], [p.get(name) for p in of])
    assert v[SAMPLES] == stalls(v), key
    assert v[EXECUTED] == [p[EXECUTED] for p in of if EXECUTED in p][0], key
    assert len(whole[key]["series"]) > 3, key
'
together --page source >"$tmp/together"
for name in increment append; do
    grep -q "^    SASS: $name\$" "$tmp/together" || fail "ranks: no code of $name"
done

# What does not begin has its reason, in a line and in the entry; the others take their turns. What fails at a launch costs
# the values of that one.
FAKE_FAIL=cuptiPCSamplingEnable:999 turns unsampled "$p" 40
expect "unsampled: a line" "$(grep -c '^==WARNING== warp states are not sampled: CUPTI_ERROR_UNKNOWN' "$tmp/report")" 1
FAKE_FAIL=cuptiPmSamplingSetConfig:999 turns unsampled2 "$p" 40
FAKE_FAIL=cuptiSassMetricsFlushData:999 turns uncounted "$p" 40
FAKE_FAIL=cuptiPCSamplingGetData:999:2 turns once "$p" 40
check unsampled '
for name, groups, lacks, why in (("unsampled", 4, SAMPLES, "warp states are not sampled: CUPTI_ERROR_UNKNOWN"),
                                 ("unsampled2", 4, "profiler__pmsampler_pass_groups", "nothing is sampled over time"),
                                 ("uncounted", 4, EXECUTED, "instructions are not counted")):
    for l in launches(name):
        r = l["rotation"]
        assert (r["groups_counted"], r["groups"]) == (groups, 5), (name, r)
        assert lacks not in values(l) and why in json.dumps(metrics(l)[lacks]), (name, metrics(l)[lacks])
    assert len(launches(name)) == 2, name
first, second = launches("once")
assert values(first)[SAMPLED] + values(second)[SAMPLED] < 6, (values(first)[SAMPLED], values(second)[SAMPLED])
assert all(l["rotation"]["groups_counted"] == 5 for l in (first, second))
'

# Beside a replay it is the same from the second launch on. Warps of a function are sampled by instruction, though counters
# were on at its first launch; where another user holds the activity records that this takes, they are sampled as a whole.
export KPROF_REPLAY_MODE=kernel
turns beside "$programs/p_repeat" heap 40
expect "beside: lines" "$(grep -c '^    Hottest Lines.* of 3 launches' "$tmp/report")" 2
expect "beside: code" "$(env -u KPROF_SECTION "$build/kprof" report --page source "$tmp/beside.kprof" | grep -c '^    SASS: ')" 3
# A killed program's session has the functions of the entries that it has.
KPROF_EXPORT=$tmp/killed.kprof both killed "$programs/p_repeat" heap-killed 40
env -u KPROF_SECTION "$build/kprof" report --page source "$tmp/killed.kprof" >"$tmp/killed" 2>"$tmp/killed.err"
expect "killed: code" "$(grep -c '^    SASS: ' "$tmp/killed")" 3
turns mixed "$programs/p_repeat" launches 30
FAKE_FAIL=cuptiPCSamplingEnable:999 turns unsampled3 "$programs/p_repeat" heap 40
KPROF_STRICT=1 turns strict "$programs/p_window" exported
expect "strict: complete" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'strict: in-part')" 0
check beside '
first, swap, turned, last = launches("beside")
assert "rotation" not in first and "rotation" not in last
mixed = [l for l in launches("mixed") if "rotation" in l]
assert len(mixed) == 1 and len(launches("mixed")) == 32, len(launches("mixed"))
for l in (swap, turned, *mixed):
    r, v = l["rotation"], values(l)
    assert r["groups_counted"] == r["groups"] == 6, r
    assert v[SAMPLED] == 3 and v[SAMPLES] == stalls(v) > 0 and v[EXECUTED] > 0, (l["name"], v[SAMPLES], stalls(v))
    assert len(l["series"]) > 3 and "not replayed" in l["note"]
for l in launches("unsampled3")[1:3]:
    r, v = l["rotation"], values(l)
    assert (r["groups_counted"], r["groups"]) == (5, 6) and SAMPLES not in v and v[EXECUTED] > 0, r
    assert "warp states are not sampled" in json.dumps(metrics(l)[SAMPLES])
'
export KPROF_REPLAY_MODE=rotate

# A timeline has the launches as they run: nothing that would disturb its records.
KPROF_TIMELINE=on both timeline "$p" 40
grep -q '^==WARNING== samples of warps, .* are not collected for rotated launches while a timeline is recorded$' "$tmp/report" ||
    fail "timeline: no line"
expect "timeline: entries" "$(grep -c 'CC 9.0$' "$tmp/report")" 2
grep -qE '^calls pid=[0-9]+ cupti(PCSampling|SassMetrics|PmSampling)' "$tmp/kprof.log" && fail "timeline: asks for more than counters"

# The number of groups is known without a GPU: two of counters, one of samples, one of counts by instruction. The command
# itself cannot load CUPTI in a sanitised build.
sanitised || expect "groups" "$(env -u KPROF_SECTION "$build/kprof" --list-sections --chip GH100 --cupti-dir "$KP_REAL_CUPTI" 2>"$tmp/sets.err" |
    awk '$1 == "SourceCounters" { print $(NF - 1) }')" 4

finish
