#!/bin/sh
# Windows: launches that share one series of passes. The programs' output and end are their own, every launch is
# accounted for, and the calls of the look-alikes tell how many windows there were.
. "$(dirname "$0")/e2e.inc"

# Passes of the basic set on the fake's chip, and of one measured window of it.
PASSES=9
p=$programs/p_window

# How often a function of the look-alikes was called.
calls() { # NAME
    awk -v name="$1" '$1 == "calls" && $3 == name { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}

passes() {
    grep -c '^pass ' "$tmp/kprof.log"
}

# A case of p_window: as it is without the profiler, with so many windows; all launches have results but for those that
# `unprofiled` says.
windows() { # NAME WINDOWS COMMAND...
    name=$1
    n=$2
    shift 2
    both "$name" "$@"
    expect "$name: windows" "$(calls cuptiCheckpointSave)" "$n"
    expect "$name: passes" "$(passes)" "$((n * PASSES))"
    expect "$name: launches seen" "$(account seen)" "$(launches)"
    expect "$name: launches profiled" "$(account profiled)" "$(($(launches) - ${unprofiled:-0}))"
}

# --- how many launches a window holds ---
windows "100 launches" 1 "$p" many 100
windows "100 launches, each with a synchronisation" 1 "$p" synchronised 100
KPROF_WINDOW=1 windows "windows of one" 20 "$p" many 20
KPROF_WINDOW=10 windows "windows of ten" 10 "$p" many 100
KPROF_CACHE_CONTROL=none windows "no cache control" 1 "$p" many 100
KPROF_LAUNCH_COUNT=5 both "five launches" "$p" many 20
expect "five launches: passes" "$(passes)" $PASSES
expect "five launches: profiled" "$(account profiled)" 5
expect "five launches: seen" "$(account seen)" 20
KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=5 KPROF_WINDOW=2 both "five launches, two by two" "$p" many 20
expect "five launches, two by two: windows" "$(calls cuptiCheckpointSave)" 3
expect "five launches, two by two: profiled" "$(account profiled)" 5

# Little memory for counters: several windows, every launch in one of them.
KPROF_WINDOW_MEMORY=64K both "little memory" "$p" many 100
expect "little memory: launches profiled" "$(account profiled)" 100
[ "$(calls cuptiCheckpointSave)" -gt 1 ] || { fail "little memory: one window"; show; }

# --- what leaves a window open ---
windows "memsets" 1 "$p" memsets
windows "copies to the device" 1 "$p" copies-in
windows "copies within the device" 1 "$p" copies-within
windows "events" 1 "$p" events
windows "refusals" 1 "$p" refusals
windows "first launch refused" 1 "$p" refused-first

# --- what closes it ---
for what in dtoh dtoh-async alloc alloc-async free module stream event capture host-function; do
    windows "closed by $what" 2 "$p" closed-by $what
done
windows "graphs between kernels" 8 "$p" graphs
windows "too much shared memory" 2 "$p" shared-limit

# --- launches that are not selected ---
# Up to 16 of them between two that are selected take part, more close the window.
export KPROF_KERNEL_NAME=append
unprofiled=$((5 * 16)) windows "16 unselected in between" 1 "$p" mixed 16
unprofiled=$((5 * 17)) windows "17 unselected in between" 5 "$p" mixed 17
unset KPROF_KERNEL_NAME

# --- kernels that print ---
both "kernels that print" "$p" prints 10
expect "kernels that print: passes" "$(passes)" $PASSES
expect "kernels that print: lines" "$(grep -c '^kernel prints' "$tmp/kprof.out")" 10

# --- threads ---
for round in 1 2 3; do
    for window in 1 7 512; do
        KPROF_WINDOW=$window both "threads, windows of $window" "$p" threads
        expect "threads, windows of $window: profiled" "$(account profiled)" "$(launches)"
    done
done
both "a thread that waits" "$p" waiting-thread
expect "a thread that waits: seen" "$(account seen)" "$(launches)"

# --- kernels that wait ---
for what in waits-for-host waits-for-launch; do
    both "$what" "$p" $what
    expect "$what: seen" "$(account seen)" "$(launches)"
    expect "$what: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
done

# --- memory that others see ---
windows "managed memory" 8 "$p" managed
windows "registered memory" 10 "$p" registered
# Two launches before, then each pair up to the synchronisation.
windows "exported memory" 4 "$p" exported

# --- pinned memory: the host's values stay ---
both "pinned memory" "$programs/p_pinned"
expect "pinned memory: profiled" "$(account profiled)" "$(launches)"

# --- one pass: nothing is saved, nothing closes it ---
export KPROF_SET=quick
both "quick" "$p" many 600
expect "quick: passes" "$(passes)" 3
expect "quick: saves" "$(calls cuptiCheckpointSave)" 0
expect "quick: profiled" "$(account profiled)" 600
for what in dtoh dtoh-async alloc alloc-async free module stream event capture host-function; do
    both "quick, $what" "$p" closed-by $what
    expect "quick, $what: passes" "$(passes)" 1
    expect "quick, $what: saves" "$(calls cuptiCheckpointSave)" 0
    expect "quick, $what: profiled" "$(account profiled)" 6
done
for what in memsets copies-in copies-within events refusals managed registered threads prints waits-outside; do
    both "quick, $what" "$p" "$what"
    expect "quick, $what: saves" "$(calls cuptiCheckpointSave)" 0
    expect "quick, $what: profiled" "$(account profiled)" "$(launches)"
done
for what in waits-for-host waits-for-launch; do
    both "quick, $what" "$p" $what
    expect "quick, $what: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
done
unset KPROF_SET

# --- kernels that wait for other processes are counted once, where everything else is replayed ---
both "kernels of a communication library" "$p" waits-outside
expect "communication: profiled" "$(account profiled)" 8
expect "communication: saves" "$(calls cuptiCheckpointSave)" 4
expect "communication: passes" "$(passes)" $((4 * PASSES + 4))
grep -q 'not replayed' "$tmp/report" || { fail "communication: no note in the report"; show; }

# --- ends with a window open ---
for what in return exit _exit quick_exit; do
    both "end by $what" "$p" end-by $what
    expect "end by $what: accounted" "$(($(account profiled) + $(account skipped)))" 3
done
both "fork" "$p" forks
expect "fork: profiled" "$(account profiled)" 4
both "ended by a signal's handler" "$p" terminated
expect "ended by a signal's handler: code" "$kprof_code" 9
expect "ended by a signal's handler: accounted" "$(($(account profiled) + $(account skipped)))" 3

finish
