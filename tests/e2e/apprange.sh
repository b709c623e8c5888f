#!/bin/sh
# Ranges of a program that runs once per pass: launches between cuProfilerStart and Stop, or in an NVTX range, are
# counted as the program makes them. Nothing is recorded, repeated or delayed, and the command joins the counts of the
# runs.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

export LD_LIBRARY_PATH="$build/fake"
p=$programs/p_ranges
limit=${E2E_LIMIT:-120} # a series is a dozen programs
counter=$tmp/counter
RUNS=11
quick="--metrics sm__cycles_elapsed.max" # one run besides the first
# A program that counts its runs: $n is the number of this one.
counting='n=$(cat '$counter' 2>/dev/null || echo 0); n=$((n + 1)); echo $n >'$counter';'

# Runs the command by that mode; out, err, log and report are what it said, and what was called.
by_mode() { # MODE FLAGS... PROGRAM ARGUMENTS...
    rm -f "$tmp/report" "$tmp/kprof.log" "$counter"
    mode=$1
    shift
    FAKE_LOG="$tmp/kprof.log" LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:-}" timeout "$limit" "$build/kprof" --replay-mode "$mode" \
        --log-file "$tmp/report" "$@" >"$tmp/kprof.out" 2>"$tmp/kprof.err"
    code=$?
}

replayed() { # FLAGS... PROGRAM ARGUMENTS...
    by_mode app-range "$@"
}

names() {
    sed -n 's/^  \([^ ].*\), Context [12], Device [01], CC 9\.0$/\1/p' "$tmp/report"
}

# A case: how many runs it takes; its ranges, one a line; launches profiled, launches seen. Each run is the program as it is:
# its output, its launches in their number, and no memory is saved or restored.
ranges() { # NAME RUNS RANGES PROFILED SEEN FLAGS... -- CASE ARGUMENTS...
    name=$1 runs=$2 wanted=$3 counted=$4 seen=$5
    shift 5
    flags=""
    while [ "$1" != -- ]; do
        flags="$flags $1"
        shift
    done
    shift
    plain "$p" "$@"
    # shellcheck disable=SC2086
    replayed $flags "$p" "$@"
    expect "$name: exit code" "$code" "$plain_code"
    expect "$name: ranges" "$(names)" "$wanted"
    expect "$name: launches seen" "$(account seen)" "$seen"
    expect "$name: launches profiled" "$(account profiled)" "$counted"
    for run in $(seq "$runs"); do cat "$tmp/plain.out"; done | cmp -s - "$tmp/kprof.out" || { fail "$name: other output"; show; }
    expect "$name: launches made" "$(grep -c '^launch ' "$tmp/kprof.log")" "$((runs * $(grep -c '^launch ' "$tmp/plain.log")))"
    expect "$name: misuse" "$(grep -E '^(misuse|forked)' "$tmp/kprof.log")" ""
    expect "$name: memory saved" "$(grep -ci 'checkpoint' "$tmp/kprof.log")" 0
    left=$(find "$tmp" -maxdepth 1 -name 'kprof*' -type d)
    expect "$name: left in TMPDIR" "$left" ""
}

# The columns of both, without what differs from range replay: the process, and copies and streams, which nothing counts here.
# Application replay has no roll-ups beside what a section names.
rows() { # FILE OTHER
    python3 - "$1" "$2" <<'END'
import csv, sys
both = set(next(csv.reader(open(sys.argv[2])))) - {"Process ID", "range__copies", "range__streams"}
for row in csv.DictReader(open(sys.argv[1])):
    row = {column: value for column, value in row.items() if column in both}
    row["Kernel Name"] = row["Kernel Name"].split(",")[0].split(" in ")[0]
    print("\t".join("%s=%s" % cell for cell in sorted(row.items())))
END
}

# The values are those of range replay, which has all from one run.
same_values() { # NAME RANGES FLAGS... PROGRAM ARGUMENTS...
    name=$1
    wanted=$2
    shift 2
    by_mode range --csv --page raw "$@"
    cp "$tmp/report" "$tmp/wanted"
    replayed --csv --page raw "$@"
    expect "$name: exit code" "$code" 0
    rows "$tmp/report" "$tmp/wanted" >"$tmp/a"
    rows "$tmp/wanted" "$tmp/report" >"$tmp/b"
    expect "$name: ranges" "$(grep -c 'Kernel Name=[^	]' "$tmp/a")" "$wanted"
    cmp "$tmp/a" "$tmp/b" || { fail "$name: other values than by range replay"; diff "$tmp/a" "$tmp/b" | cut -c1-400; show; }
    expect "$name: warnings" "$(grep -cE 'WARNING|ERROR' "$tmp/kprof.err")" 0
}

equal_values() {
    same_values "plain" 2 "$p" plain
    same_values "ranges that begin with other kernels" 3 $quick,sm__throughput.avg.pct_of_peak_sustained_elapsed "$p" many 3 3
    same_values "graphs" 1 $quick "$p" graph
    same_values "reads" 3 $quick "$p" reads
    same_values "some ranges" 2 $quick -s 1 -c 2 "$p" many 4 1
    KPROF_CACHE_CONTROL=none same_values "no cache control" 2 $quick "$p" plain
}

# What no repetition could hold.
not_repeated() {
    six='cudaProfilerStart: range of 6 launches'
    ranges "anything" $RUNS "$six
$six" 12 12 -- anything
    expect "anything: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0
    expect "anything: notes" "$(grep -c 'Note:' "$tmp/report")" 0
    three='cudaProfilerStart: range of 3 launches'
    ranges "values that differ" 2 "$three" 3 3 $quick -- differs
    ranges "a module that goes" 2 "$three
cudaProfilerStart: range of 1 launch" 4 4 $quick -- cut
    ranges "partners" 2 "$three" 3 3 $quick -- outside
    # One after the other, these kernels would never end.
    ranges "side by side" 2 'cudaProfilerStart: range of 4 launches' 4 4 $quick -- beside
    ranges "events" 2 'cudaProfilerStart: range of 10 launches' 10 10 $quick -- events
    # Its kernel ends by another thread's call, which comes while the end of the range waits.
    ranges "another thread" 2 'cudaProfilerStart: range of 2 launches' 2 2 $quick -- partner
    expect "another thread: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0
    ranges "another thread, before" 2 'cudaProfilerStart: range of 1 launch' 1 2 $quick -- before
    expect "another thread, before: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0
}

edges() {
    ranges "before a context" 2 'cudaProfilerStart: range of 2 launches' 2 2 $quick -- early
    ranges "unended" 2 'cudaProfilerStart: range of 2 launches' 2 2 $quick -- unended
    grep -q "WARNING== the range 'cudaProfilerStart' ends early (the end); 2 launches are counted" "$tmp/report" ||
        { fail "unended: no line"; show; }
    ranges "empty" 2 "" 0 1 $quick -- empty
    FAKE_DEVICES=2 ranges "another context" 2 'cudaProfilerStart: range of 2 launches' 2 3 $quick -- contexts
    grep -q 'made in a context other than that of their range: 1' "$tmp/report" || { fail "another context: no reason"; show; }
    # Here nothing may be waited for. The capture, and the rest of the program, are as without us.
    ranges "captured" 2 'cudaProfilerStart: range of 1 launch' 0 2 $quick -- captured
    grep -q 'a stream was being captured at the end of a range' "$tmp/report" || { fail "captured: no reason"; show; }
}

# A kernel that goes on beside a range costs its counters and a wait of 20 s in all, not the program.
unending() {
    one='cudaProfilerStart: range of 1 launch'
    ranges "around" 2 "$one
$one" 1 3 $quick -- around
    grep -q 'Note: other work of the context did not finish before the range' "$tmp/report" || { fail "around: no reason"; show; }
    ranges "endless" 2 "$one
$one" 0 2 $quick -- endless
    grep -q 'the work of a range did not end with it' "$tmp/report" || { fail "endless: no reason"; show; }
}

filters() {
    three='cudaProfilerStart: range of 3 launches'
    ranges "the second" 2 "$three" 3 9 $quick -s 1 -- plain
    grep -q 'before launch-skip was reached: 3' "$tmp/report" || { fail "the second: the other"; show; }
    ranges "the first" 2 "$three" 3 9 $quick -c 1 -- plain
    one='cudaProfilerStart: range of 1 launch'
    pair='cudaProfilerStart: range of 2 launches'
    ranges "after one" 2 "$three" 3 9 $quick --launch-skip-before-match 1 -- plain
    ranges "after the delay" 2 "$pair" 2 3 $quick --delay 1500ms -- later
    expect "after the delay: warnings" "$(grep -c 'WARNING== delay and duration start again in each run' "$tmp/kprof.err")" 1
    ranges "in the duration" 2 "$one" 1 3 $quick --duration 1500ms -- later
    grep -q 'after duration was over: 2' "$tmp/report" || { fail "in the duration: no reason"; show; }
    export FAKE_DEVICES=2
    ranges "on a device" 2 "$pair
cudaProfilerStart: range of 4 launches" 6 10 $quick --devices 1 -- devices
    grep -q 'not selected by devices: 4' "$tmp/report" || { fail "on a device: no reason"; show; }
    ranges "the first of each device" 2 "$one
$pair" 3 10 $quick --filter-mode per-gpu -c 1 -- devices
    ranges "chosen by its first launch" 2 "$pair" 2 2 $quick --devices 0 -- early
    ranges "not chosen by its first launch" 1 "" 0 2 $quick --devices 1 -- early
    unset FAKE_DEVICES
    ranges "the first of any shape" 2 "$three" 3 9 $quick --filter-mode per-launch-config -c 1 -- plain
    expect "the first of any shape: warnings" \
        "$(grep -c 'WARNING== filter-mode per-launch-config has no effect with replay-mode app-range: ' "$tmp/kprof.err")" 1
    replayed $quick -k increment "$p" plain
    grep -q '\(KPROF_KERNEL_NAME\|--kernel-name: .*range and app-range profile whole ranges\)' "$tmp/kprof.err" "$tmp/report" ||
        { fail "kernel-name: no line"; show; }
    replayed $quick "$p" nvtx
    grep -q 'Nothing was profiled: no range contained a launch; call cudaProfilerStart and .*nvtx-include' "$tmp/report" ||
        { fail "no range: no line"; show; }
    LD_LIBRARY_PATH=$build/fake "$p" nvtx | grep -q '^NVTX: 1' || return 0 # no headers of NVTX
    step='step: range of 3 launches'
    ranges "NVTX" 2 "$step
$step
$step" 9 15 $quick --nvtx-include step/ -- nvtx
    ranges "outside of NVTX" 2 "$pair" 2 3 $quick --nvtx-exclude warm-up/ -- inside
    ranges "started" 2 'epoch: range of 1 launch' 1 15 $quick --nvtx-include epoch -- nvtx
    ranges "nested" 2 'step: range of 1 launch
step: range of 1 launch' 2 15 $quick -c 2 --nvtx-include step/step/ -- nvtx
}

# What the user is told, and where the session goes.
report() {
    replayed $quick -o "$tmp/kept.kprof" -f "$p" plain
    expect "report: exit code" "$code" 0
    grep -q '; application range replay, 2 runs$' "$tmp/report" || { fail "report: no word of the runs"; show; }
    grep -q 'Profiling ".*" - 0: the first run is without counters' "$tmp/report" || { fail "report: the first run"; show; }
    expect "report: no passes" "$(grep -c ' 0 passes' "$tmp/report")" 0
    "$build/kprof" report --json "$tmp/kept.kprof" >"$tmp/json"
    python3 - "$tmp/json" <<'END' || fail "report: the JSON"
import json, sys
session = json.load(open(sys.argv[1]))
assert session["session"]["replay"] == "application range replay, 2 runs", session["session"]
assert len(session["launches"]) == 2, len(session["launches"])
for l in session["launches"]:
    assert l["kind"] == "range" and l["mangled"] == "cudaProfilerStart", l
    values = {m["name"]: m["value"] for m in l["metrics"]}
    assert values["range__launches"] == 3 and values["range__graphs"] == 0, values
    assert values["sm__cycles_elapsed.max"] > 0, values
END
}

# Runs that differ from the first one.
other_runs() {
    replayed $quick sh -c "$counting exec $p many \$((n + 1)) 2"
    expect "one more: ranges" "$(names | grep -c .)" 2
    grep -q 'WARNING.* run 2 of process [0-9]* made 3 ranges instead of 2: 2 of the first run have no partner in it, and 3 of it none' "$tmp/kprof.err" || { fail "one more: partners"; show; }
    grep -q 'run 2 of the program has no such range' "$tmp/report" || { fail "one more: no reason"; show; }
    expect "one more: profiled" "$(account profiled)" 0
    replayed $quick sh -c "$counting exec $p many \$((3 - n)) 2"
    grep -q 'WARNING.* run 2 of process [0-9]* made 1 range instead of 2: 2 of the first run have no partner in it, and 1 of it none' "$tmp/kprof.err" || { fail "one less: partners"; show; }
    replayed $quick --app-replay-mode relaxed sh -c "$counting exec $p many \$((n + 1)) 2"
    expect "relaxed: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0
    expect "relaxed: profiled" "$(account profiled)" 4
    replayed $quick --app-replay-mode strict sh -c "$counting exec $p many \$((n + 1)) 2"
    grep -q 'run 2 .*is left out (app-replay-mode strict): its range 2 is .* instead of no range' "$tmp/kprof.err" || { fail "strict: not told"; show; }
    replayed $quick sh -c "$counting exec $p many 2 \$((n + 2))"
    grep -q 'WARNING.* run 2 of process [0-9]* has 2 ranges with another number of launches, the first of them range 0: 4 instead of 3' "$tmp/kprof.err" || { fail "other launches: not told"; show; }
    replayed $quick sh -c "$counting $p many 1 1; exit \$n"
    expect "exit codes: the first one's" "$code" 1
    grep -q 'WARNING.* run 2 of the program ended with exit code 2, the first one with exit code 1' "$tmp/kprof.err" || { fail "exit codes: not told"; show; }
    expect "exit codes: ranges" "$(names | grep -c .)" 1
}

# What fails costs values, not the program.
faults() {
    for fault in cuptiRangeProfilerEnable cuptiRangeProfilerStart cuptiRangeProfilerPushRange cuptiRangeProfilerPopRange \
        cuptiRangeProfilerStop cuptiRangeProfilerDecodeData; do
        FAKE_FAIL=$fault:999 replayed $quick "$p" plain
        expect "$fault: exit code" "$code" 0
        expect "$fault: output" "$(grep -c 'values: 8480' "$tmp/kprof.out")" 2
        expect "$fault: ranges" "$(names | grep -c .)" 2
        expect "$fault: profiled" "$(account profiled)" 0
        grep -qE 'WARNING|ERROR' "$tmp/kprof.err" || { fail "$fault: no word of it"; show; }
    done
}

without_command() {
    KPROF_REPLAY_MODE=app-range both "without the command" "$p" plain
    grep -q 'KPROF_REPLAY_MODE=app-range runs the program several times, which the kprof command does: kprof --replay-mode app-range PROGRAM; or use KPROF_REPLAY_MODE=range' "$tmp/kprof.err" "$tmp/report" || { fail "without the command: not told"; show; }
    expect "without the command: calls of the profiler" "$(grep -c '^pass ' "$tmp/kprof.log")" 0
}

sanitised || beside unending
range_parts="equal_values not_repeated edges filters report other_runs faults without_command"
sanitised && range_parts="not_repeated other_runs without_command"
for part in $range_parts; do
    $part
done
finish
