#!/bin/sh
# Range replay: what a program makes between cuProfilerStart and Stop, or in an NVTX range, is one workload. It is repeated
# as a whole, its streams side by side, and is one entry of the report.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

export KPROF_REPLAY_MODE=range
PASSES=9
p=$programs/p_ranges

# The names of the ranges in the report.
names() {
    sed -n 's/^  \([^ ].*\), Context 1, Device 0, CC 9\.0$/\1/p' "$tmp/report"
}

# A case: its ranges, one a line; launches profiled, launches seen.
ranges() { # NAME RANGES PROFILED SEEN COMMAND...
    name=$1
    wanted=$2
    counted=$3
    seen=$4
    shift 4
    both "$name" "$@"
    expect "$name: ranges" "$(names)" "$wanted"
    expect "$name: launches seen" "$(account seen)" "$seen"
    expect "$name: launches profiled" "$(account profiled)" "$counted"
    expect "$name: passes" "$(grep -c '^pass ' "$tmp/kprof.log")" "$(($(names | grep -c .) * PASSES))"
}

two='cudaProfilerStart: range of 3 launches, 2 copies and memsets in 1 stream
cudaProfilerStart: range of 3 launches, 2 copies and memsets in 1 stream'
ranges "plain" "$two" 6 9 "$p" plain
KPROF_LAUNCH_SKIP=1 ranges "the second" "${two#*
}" 3 9 "$p" plain
KPROF_LAUNCH_COUNT=1 ranges "the first" "${two#*
}" 3 9 "$p" plain
expect "the first: the other" "$(grep -c 'after launch-count was reached: 3' "$tmp/report")" 1

# Repeated one by one, the kernel would never end.
ranges "side by side" 'cudaProfilerStart: range of 4 launches in 2 streams' 4 4 "$p" beside
ranges "events" 'cudaProfilerStart: range of 10 launches in 2 streams' 10 10 "$p" events

# Two copies of 100 ms in two streams: together 100 ms in each of the repetitions. A flush of the caches would be a copy.
export FAKE_COPY_MS=100
KPROF_CACHE_CONTROL=none KPROF_DEBUG=replay ranges "copies" 'cudaProfilerStart: range of 2 launches, 2 copies and memsets in 2 streams' 2 2 "$p" copies
unset FAKE_COPY_MS
took=$(sed -n 's/.* issues \([0-9]*\)\..*/\1/p' "$tmp/report" "$tmp/kprof.err" | tail -n 1)
[ "${took:-0}" -ge $((PASSES * 100)) ] && [ "$took" -lt $((PASSES * 180)) ] ||
    fail "copies: $PASSES repetitions took ${took:-?} ms, not $PASSES times 100 ms"

# What the program reads is compared; a value that differs costs the counters, not the results.
three='cudaProfilerStart: range of 3 launches, 2 copies and memsets in 3 streams'
ranges "reads" "$three
$three
$three" 9 9 "$p" reads
both "differs" "$p" differs
expect "differs: profiled" "$(account profiled)" 0
grep -q 'a value that the program read was another one' "$tmp/report" || fail "differs: no reason"

# What cannot be repeated ends the range, and says so.
ranges "cut" 'cudaProfilerStart: range of 2 launches in 1 stream
cudaProfilerStart: range of 1 launch in 1 stream' 3 4 "$p" cut
grep -q "WARNING== the range 'cudaProfilerStart' ends early (cuModuleUnload): .* 2 launches are counted" "$tmp/report" ||
    fail "cut: no line"
grep -q '^    Note: the range' "$tmp/report" || fail "cut: no note"
grep -q 'in a range that had ended before them, as it could not be recorded: 1' "$tmp/report" || fail "cut: the rest"
ranges "outside" 'cudaProfilerStart: range of 1 launch in 1 stream' 1 3 "$p" outside
ranges "empty" "" 0 1 "$p" empty
grep -q 'Nothing was profiled: no range was begun that has a launch; call cudaProfilerStart and .*nvtx-include' "$tmp/report" ||
    fail "empty: no line"
ranges "unended" 'cudaProfilerStart: range of 2 launches, 2 copies and memsets in 2 streams' 2 2 "$p" unended
ranges "graph" 'cudaProfilerStart: range of 4 launches, 2 copies and memsets in 1 stream' 4 4 "$p" graph

# The stored session knows what it is, and is read without the program.
KPROF_EXPORT=$tmp/r.kprof both "stored" "$p" plain
"$build/kprof" report --json "$tmp/r.kprof" >"$tmp/json"
python3 - "$tmp/json" <<'END' || fail "stored: the JSON"
import json, sys
session = json.load(open(sys.argv[1]))
session = session.get("sessions", [session])[0]
assert len(session["launches"]) == 2, len(session["launches"])
for l in session["launches"]:
    assert l["kind"] == "range" and l["mangled"] == "cudaProfilerStart", l
    values = {m["name"]: m["value"] for m in l["metrics"]}
    assert values["range__launches"] == 3 and values["range__copies"] == 2 and values["range__streams"] == 1, values
    assert values["gpu__time_duration.sum"] > 0
END
expect "stored: by name" "$("$build/kprof" report -k cudaProfilerStart "$tmp/r.kprof" 2>&1 | grep -c 'Context 1, Device 0')" 2

# Names of kernels choose nothing of a range.
KPROF_KERNEL_NAME=increment profiled "$p" plain
grep -q 'kernel-name' "$tmp/report" "$tmp/kprof.err" || fail "kernel-name: no line"

LD_LIBRARY_PATH=$build/fake "$p" nvtx | grep -q '^NVTX: 1' || finish # no headers of NVTX
step='step: range of 3 launches in 2 streams'
KPROF_NVTX_INCLUDE=step/ ranges "NVTX" "$step
$step
$step" 9 15 "$p" nvtx
KPROF_NVTX_INCLUDE=epoch ranges "started" 'epoch: range of 1 launch in 1 stream' 1 15 "$p" nvtx
KPROF_NVTX_INCLUDE=step/step/ ranges "nested" 'step: range of 1 launch in 1 stream
step: range of 1 launch in 1 stream
step: range of 1 launch in 1 stream' 3 15 "$p" nvtx
finish
