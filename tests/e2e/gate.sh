#!/bin/sh
# Kernels that wait for what the program does after other calls. kprof's waits must not add up: each gate opens long
# before its own limit. A request to a host thread is made once.
. "$(dirname "$0")/e2e.inc"

p=$programs/p_gate
limit=${E2E_LIMIT:-120}

# The launches are those of the program, and all are accounted for.
gate() { # NAME CASE LAUNCHES
    both "$1" "$p" "$2"
    expect "$1: launches seen" "$(account seen)" "$3"
    expect "$1: accounted" "$(($(account profiled) + $(account skipped)))" "$3"
}

for set in basic quick; do
    export KPROF_SET=$set
    for case in mapped write-combined registered managed behind copied filled; do
        gate "$case, $set" $case 69
        # Those of the first gate, which is open, less what is watched; of a gate that waits, none. Where the host works in
        # memory that a replay would rewind, launches take turns, and one entry stands for all of them.
        counted=$(account profiled)
        case "$case, $set" in
        "registered, basic" | "managed, basic")
            expect "$case, $set: counted in turns" "$counted" 4
            counted=$(sed -n 's/^ *Rotation: \([0-9]*\) launches .*; 4 were counted.*/\1/p' "$tmp/report")
            ;;
        esac
        [ "${counted:-0}" -ge 14 ] || fail "$case, $set: $counted launches have counters, or an entry stands for them"
        [ "$(account profiled)" -le 18 ] || fail "$case, $set: $(account profiled) launches have counters"
    done
    gate "calls of all kinds, $set" busy 136
    gate "a thread of the host answers, $set" proxied 18
done
KPROF_REPLAY_MODE=rotate gate "rotation" mapped 69

# A graph passes until its gates were seen to end with two launches, and always where they were not.
for set in basic quick; do
    export KPROF_SET=$set
    gate "a graph whose gates are open, $set" captured 114
    expect "a graph whose gates are open, $set: kernels that passed" \
        "$(sed -n 's/.*graph with a kernel that may wait for the host, not replayed: \([0-9]*\).*/\1/p' "$tmp/report")" 6
    grep -q '^  gate_behind' "$tmp/report" || fail "a graph whose gates are open, $set: no gate is counted"
    gate "a graph whose gates are shut, $set" captured-shut 114
    ! grep -q '^  gate_behind' "$tmp/report" || fail "a graph whose gates are shut, $set: a gate is counted"
done
unset KPROF_SET

# Memory of pools that nothing rewinds, in both ways of saving: nothing is repeated, and launches count in turns.
for case in host-pool numa-pool managed-pool; do
    for how in KPROF_SET=quick KPROF_SAVE=all KPROF_SAVE=changes; do
        export "${how?}"
        gate "$case, $how" $case 85
        unset KPROF_SET KPROF_SAVE
    done
    [ "$(account profiled)" -ge 2 ] || fail "$case: $(account profiled) launches have counters"
    grep -q 'Note: can reach host or managed memory of cuMemCreate, pools, textures' "$tmp/report" || fail "$case: no note"
done

# The program's kernels alone have run: a repetition would have asked again.
export KPROF_SET=basic
gate "a thread of the host answers" proxied 18
expect "requests" "$(grep -c ' name=proxy_client$' "$tmp/kprof.log")" 6

finish
