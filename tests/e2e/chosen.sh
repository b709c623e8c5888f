#!/bin/sh
# Rotation by sessions: a window counts the launches that lack its group of counters, and lets the rest pass. Without
# sessions, the range profiler counts all of them. Neither changes what the program does.
. "$(dirname "$0")/e2e.inc"
. "$(dirname "$0")/turns.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

# The L2 counts one of these in a pass.
export KPROF_METRICS=lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum
export KPROF_SET=basic KPROF_REPLAY_MODE=rotate KPROF_DEBUG=window
p=$programs/p_chosen

# Counts the launches that the passes of the profiled run have seen, and calls of a function.
ranges() {
    sed -n 's/^pass .*ranges=//p' "$tmp/kprof.log" | awk '{ n += $1 } END { print n + 0 }'
}
calls() { # FUNCTION
    awk -v of="$1" '$1 == "calls" && $3 == of { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}
windows() { # of each reason to close: REASON
    cat "$tmp/report" "$tmp/kprof.err" | grep -c "closes (rotate).*$1"
}
# How many launches the account has for a reason.
skipped() { # REASON
    n=$(tr -s ' \n' ' ' <"$tmp/report" | sed -n "s/.*$1: \([0-9]*\).*/\1/p")
    echo "${n:-0}"
}
# So many launches or more were not waited for: a busy machine ends a wait sooner.
passed_by() { # NAME LEAST
    n=$(skipped "made while other work of the context did not finish")
    [ "$n" -ge "$2" ] || { fail "$1: $n launches were not waited for"; show; }
}

# Each entry of a session has all its groups.
all_groups='
of = launches(checked)
assert of
for l in of:
    r, m = l["rotation"], metrics(l)
    assert r["groups_counted"] == r["groups"] > 1, r
    for name in ("lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"):
        assert m[name]["counted"] == 3 and m[name].get("value"), m[name]
    assert m["gpu__time_duration.sum"]["value"] > 0
'

# Runs a case whose entries come to have all their groups. In how many rounds depends on the machine: a slow one begins
# fewer windows in the same time, and has waited for less. So it may need some times as many.
complete() { # NAME ROUNDS COMMAND...
    what=$1 rounds=$2
    shift 2
    for times in 1 4 16; do
        turns "$what" "$@" $((rounds * times))
        ! tap_selected || checked "$what" "$all_groups" 2>"$tmp/complaint" || continue
        [ $times = 1 ] || echo "$what: in $((rounds * times)) rounds"
        return 0
    done
    fail "$what: $(cat "$tmp/complaint")"
}

# Each launch of the session's passes is one that was counted.
chosen() { # NAME ROUNDS COMMAND...
    complete "$@"
    expect "$1: launches seen by the counters" "$(ranges)" "$(account profiled)"
    [ "$(calls cuptiRangeProfilerStart)" = 0 ] || fail "$1: the range profiler has run"
}

# Few launches among many: with a session they alone are counted. Without one all are that a window sees.
appends() {
    KPROF_KERNEL_NAME=append "$@"
}
appends chosen few 30 "$p" few
expect "few: entries" "$(reported)" 1
counted=$(account profiled)
FAKE_FAIL=cuptiProfilerBeginSession:16 appends complete ranged 30 "$p" few
expect "ranged: entries" "$(reported)" 1
expect "ranged: tried once" "$(calls cuptiProfilerBeginSession)" 1
[ "$(account profiled)" -ge "$counted" ] || fail "ranged: $(account profiled) launches counted"
[ "$(ranges)" -gt "$(account profiled)" ] || fail "ranged: $(ranges) launches seen"
for fails in cuptiProfilerSetConfig:1 cuptiProfilerBeginPass:1 cuptiProfilerCounterDataImageInitialize:1 \
    NVPW_CUDA_CounterDataBuilder_Create:1; do
    FAKE_FAIL=$fails appends complete failed 30 "$p" few
    [ "$(calls cuptiRangeProfilerStart)" -gt 0 ] || fail "$fails: the range profiler has not run"
done
# What fails between is told, and costs the values of that window alone.
for fails in cuptiProfilerEnableProfiling:1:2 cuptiProfilerDisableProfiling:1:2 cuptiProfilerFlushCounterData:1:1; do
    FAKE_FAIL=$fails appends turns failed "$p" few 60
    check failed '
l, = launches("failed")
counted = sorted(metrics(l).get(name, {}).get("counted", 0) for name in (
    "lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"))
assert counted[0] < counted[1] == 3, counted # a launch is not counted again
'
done

# A step of a training program, in which every launch is wanted.
chosen steps 40 "$programs/p_many"
expect "steps: entries" "$(reported)" 2

# A kernel that is not counted waits for a later launch, or for the host, or a host function does. What is behind it is
# not counted either, and the program goes on.
for what in for-launch for-host in-function; do
    FAKE_HOST_THREADS=1 appends chosen "waits-$what" 8 "$p" "waits-$what"
    passed_by "waits-$what" 4
done
# Neither a capture nor the end of another context closes the window meanwhile.
for what in for-capture for-end for-event; do
    appends chosen "waits-$what" 8 "$p" "waits-$what"
    passed_by "waits-$what" 4
done
# A kernel that does not end does not keep the program. Where a window is open, what it has counted is lost, with a word.
never_ends() {
    for how in "" -captures -at-once; do
        KPROF_ROTATE_LAUNCHES=1 appends both "none-open$how" "$p" never-ends$how 6
        expect "none-open$how: seen" "$(account seen)" 18
        expect "none-open$how: said" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'counters had to be stopped\|work other than the counted')" 0
        started=$(date +%s)
        appends both "never-ends$how" "$p" never-ends$how 0
        expect "never-ends$how: seen" "$(account seen)" 5
        cat "$tmp/report" "$tmp/kprof.err" | grep -q "^==WARNING== .* counters \(had to be\|could not be\) stopped\|^==WARNING== work other than the counted" ||
            { fail "never-ends$how: nothing is said"; show; }
        [ $(($(date +%s) - started)) -lt 15 ] || fail "never-ends$how takes $(($(date +%s) - started)) s"
    done
}
beside never_ends
# A context that ends takes its captures along: what comes later is counted.
appends chosen ends-captured 30 "$p" ends-captured
# A call in flight keeps the gate for ten seconds, and no longer.
in_calls() {
    for what in waits-in-call ends-in-call; do
        appends both "$what" "$p" "$what" 1
        expect "$what: accounted" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
    done
}
beside in_calls
# Launches that pass from the door on, as their kernel is complete, may wait as well.
KPROF_KERNEL_NAME='regex:append|wait_flag' chosen waits-when-complete 8 "$p" waits-when-complete
passed_by waits-when-complete 4

# Kernels that can reach host memory are counted once they were seen to end, also beside an open window.
complete reaches-host 20 "$p" reaches-host
expect "reaches-host: entries" "$(reported)" 3

# A host function closes no window that lets others by.
chosen host 20 "$p" host-functions
expect "host: closed" "$(windows cuLaunchHostFunc)" 0
FAKE_FAIL=cuptiProfilerBeginSession:16 turns host-ranged "$p" host-functions 60
[ "$(windows cuLaunchHostFunc)" -gt 3 ] || fail "host-ranged: nothing closed"

# A stream that has gone is not asked.
appends chosen streams 30 "$p" streams

# A copy that goes on in another stream has ended when a launch is counted.
FAKE_COPY_MS=30 appends chosen copies 10 "$p" copies
expect "copies: launches counted beside them" "$(grep -c '^beside ' "$tmp/kprof.log")" 0

# Graphs as wholes pass an open window.
KPROF_GRAPH_PROFILING=graph chosen graphs 30 "$p" graphs
expect "graphs: closed" "$(windows graph)" 0
expect "graphs: entries" "$(reported)" 1
KPROF_GRAPH_PROFILING=node chosen nodes 30 "$p" graphs
expect "nodes: entries" "$(reported)" 2
# The host functions of a graph close no such window, either.
KPROF_GRAPH_PROFILING=node chosen calls 30 "$p" graphs-that-call
expect "calls: closed" "$(windows "host function")" 0

# Right behind a window none is opened for one shape among many.
# A window that takes long is rested from for long, so that a slow machine is no matter.
FAKE_SLOW=cuptiProfilerBeginSession:200:0 appends turns latecomer "$p" latecomer 20
[ "$(skipped "of one of the few kernels and shapes that still lack counters, which are counted only now and then")" -ge 1 ] ||
    { fail "latecomer: it was counted at once"; show; }

# Counter data is in no file: a process that may not write large ones has its session, and no signal.
appends turns limited prlimit --fsize=300000 --core=0 "$p" few 30
expect "limited: sessions" "$(calls cuptiProfilerBeginSession)" 1

finish
