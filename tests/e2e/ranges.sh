#!/bin/sh
# Range replay: everything between cuProfilerStart and Stop, or in an NVTX range, is one workload. It is repeated as a
# whole, with its streams in parallel, and is one entry of the report.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

export KPROF_REPLAY_MODE=range
PASSES=9
p=$programs/p_ranges

# The names of the ranges in the report.
names() {
    sed -n 's/^  \([^ ].*\), Context [12], Device [01], CC 9\.0$/\1/p' "$tmp/report"
}

# How many launches were skipped for a reason.
skipped() { # REASON
    sed -n "s/^==KPROF== .* skipped (.*$1: \([0-9]*\).*/\1/p" "$tmp/report"
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

# Before a range the L2 is emptied by the GPU's kernel driver, which does not know the fake device; launches do not ask.
emptied() { # WANTED MODE
    KPROF_DEBUG=replay KPROF_REPLAY_MODE=$2 both "$2: the L2" "$p" plain
    expect "$2: the L2" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'debug replay .*: the L2 of .* is filled by a copy: ')" "$1"
}
emptied 1 range
emptied 0 kernel

# A range passes the filters of launches where it begins: time, number of all, device, NVTX, number of those left.
KPROF_LAUNCH_SKIP_BEFORE_MATCH=1 ranges "after one" "${two#*
}" 3 9 "$p" plain
expect "after one: skipped" "$(skipped "before launch-skip-before-match was reached")" 3
one='cudaProfilerStart: range of 1 launch in 1 stream'
pair='cudaProfilerStart: range of 2 launches in 1 stream'
KPROF_DELAY=1500ms ranges "after the delay" "$pair" 2 3 "$p" later
expect "after the delay: skipped" "$(skipped "before delay was over")" 1
KPROF_DURATION=1500ms ranges "in the duration" "$one" 1 3 "$p" later
expect "in the duration: skipped" "$(skipped "after duration was over")" 2
export FAKE_DEVICES=2
KPROF_DEVICES=1 ranges "on a device" "$pair
cudaProfilerStart: range of 4 launches in 1 stream" 6 10 "$p" devices
expect "on a device: skipped" "$(skipped "not selected by devices")" 4
KPROF_DEVICES=1 KPROF_LAUNCH_COUNT=1 ranges "the first on a device" "$pair" 2 10 "$p" devices
KPROF_FILTER_MODE=per-gpu KPROF_LAUNCH_COUNT=1 ranges "the first of each device" "$one
$pair" 3 10 "$p" devices
KPROF_DEVICES=0 ranges "chosen by its first launch" "$pair" 2 2 "$p" early
KPROF_DEVICES=1 ranges "not chosen by its first launch" "" 0 2 "$p" early
grep -q 'seen: Device 0' "$tmp/report" || fail "not chosen by its first launch: no device"
unset FAKE_DEVICES
expect "no warning" "$(grep -c 'no effect' "$tmp/kprof.err")" 0
KPROF_FILTER_MODE=per-launch-config KPROF_LAUNCH_COUNT=1 ranges "the first of any shape" "${two#*
}" 3 9 "$p" plain
expect "the first of any shape: warnings" \
    "$(grep -c 'WARNING== filter-mode per-launch-config has no effect with replay-mode range: ' "$tmp/kprof.err")" 1
KPROF_PAGE=timeline ranges "the timeline alone" "" 0 9 "$p" plain
expect "the timeline alone: skipped" "$(skipped "on the timeline only")" 9

# Repeated one by one, the kernel would never end.
ranges "side by side" 'cudaProfilerStart: range of 4 launches in 2 streams' 4 4 "$p" beside
ranges "events" 'cudaProfilerStart: range of 10 launches in 2 streams' 10 10 "$p" events

# Kernels that still run when the last one has been launched belong to the range.
ranges "slow" 'cudaProfilerStart: range of 4 launches in 2 streams' 4 4 "$p" slow
expect "slow: passes that saw all kernels" "$(grep -c '^pass .* kernels=4$' "$tmp/kprof.log")" $PASSES

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
grep -q 'a value that the program read back differed' "$tmp/report" || fail "differs: no reason"

# What cannot be repeated ends the range, and says so.
ranges "cut" 'cudaProfilerStart: range of 2 launches in 1 stream
cudaProfilerStart: range of 1 launch in 1 stream' 3 4 "$p" cut
grep -q "WARNING== the range 'cudaProfilerStart' ends early (cuMemHostRegister): .* 2 launches are counted" "$tmp/report" ||
    fail "cut: no line"
grep -q '^    Note: the range' "$tmp/report" || fail "cut: no note"
grep -q 'in a range that ended early because it could not be recorded: 1' "$tmp/report" || fail "cut: the rest"
ranges "outside" 'cudaProfilerStart: range of 1 launch in 1 stream' 1 3 "$p" outside
ranges "empty" "" 0 1 "$p" empty
grep -q 'Nothing was profiled: no range contained a launch; call cudaProfilerStart and .*nvtx-include' "$tmp/report" ||
    fail "empty: no line"
ranges "unended" 'cudaProfilerStart: range of 2 launches, 2 copies and memsets in 2 streams' 2 2 "$p" unended
ranges "graph" 'cudaProfilerStart: range of 4 launches, 2 copies and memsets in 1 stream' 4 4 "$p" graph

# What is not chosen is neither in the session nor in what is made of it, but for the reason.
FAKE_DEVICES=2 KPROF_DEVICES=1 KPROF_EXPORT=$tmp/d.kprof both "stored: chosen" "$p" devices
"$build/kprof" report --json "$tmp/d.kprof" >"$tmp/json"
"$build/kprof" report --csv --page raw "$tmp/d.kprof" >"$tmp/csv"
python3 - "$tmp/json" "$tmp/csv" <<'END' || fail "stored: chosen"
import csv, json, sys
session = json.load(open(sys.argv[1]))
session = session.get("sessions", [session])[0]
assert [l["device"] for l in session["launches"]] == [1, 1], session["launches"]
assert session["session"]["skipped"] == [{"reason": "other-device", "why": "not selected by devices", "count": 4}], session["session"]
rows = [r for r in csv.DictReader(open(sys.argv[2])) if r["ID"]]
assert [(r["Device"], r["range__launches"]) for r in rows] == [("1", "2"), ("1", "4")], rows
END

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
grep -q 'KPROF_KERNEL_NAME' "$tmp/report" "$tmp/kprof.err" || fail "kernel-name: no line"

LD_LIBRARY_PATH=$build/fake "$p" nvtx | grep -q '^NVTX: 1' || finish # no headers of NVTX
step='step: range of 3 launches in 2 streams'
KPROF_NVTX_INCLUDE=step/ ranges "NVTX" "$step
$step
$step" 9 15 "$p" nvtx
KPROF_NVTX_EXCLUDE=warm-up/ ranges "outside of NVTX" "$pair" 2 3 "$p" inside
expect "outside of NVTX: skipped" "$(skipped "not selected by nvtx-include and nvtx-exclude")" 1
KPROF_NVTX_EXCLUDE=warm-up/ KPROF_LAUNCH_COUNT=1 ranges "the first outside of NVTX" "$pair" 2 3 "$p" inside
KPROF_NVTX_INCLUDE=epoch ranges "started" 'epoch: range of 1 launch in 1 stream' 1 15 "$p" nvtx
KPROF_NVTX_INCLUDE=step/step/ ranges "nested" 'step: range of 1 launch in 1 stream
step: range of 1 launch in 1 stream
step: range of 1 launch in 1 stream' 3 15 "$p" nvtx
finish
