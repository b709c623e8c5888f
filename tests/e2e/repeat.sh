#!/bin/sh
# What a window must not repeat, or not in an order other than the program's. In each case the output and exit status
# are the program's own, every launch is accounted for, and the report says why a launch was not replayed.
. "$(dirname "$0")/e2e.inc"
one_thread

p=$programs/p_repeat

# How many launches have a note with that text.
notes() { # TEXT
    grep -c "$1" "$tmp/report"
}

saves() {
    awk '$1 == "calls" && $3 == "cuptiCheckpointSave" { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}

# A case: the same output, all launches accounted for.
repeat() { # NAME COMMAND...
    both "$@"
    expect "$1: seen" "$(account seen)" "$(launches)"
    expect "$1: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
}

# Kernels that must not be run twice: counted as the program made them, whatever is counted.
once() {
    export KPROF_FALLBACK=quick
    for set in basic full; do
        export KPROF_SET=$set
        repeat "heap, $set" "$p" heap
        expect "heap, $set: profiled" "$(account profiled)" "$(launches)"
        expect "heap, $set: notes" "$(notes "Note: allocates or frees memory of the device's heap")" 4
        repeat "blocks of the heap, $set" "$p" heap-blocks
        expect "blocks of the heap, $set: notes" "$(notes "Note: can reach blocks of the device's heap")" 4
        repeat "launches of the device, $set" "$p" launches
        expect "launches of the device, $set: notes" "$(notes 'Note: launches work from the device')" 3
        repeat "virtual memory, $set" "$p" virtual
        expect "virtual memory, $set: notes" "$(notes 'Note: can reach host or managed memory of cuMemCreate')" 0
        repeat "virtual memory of the host, $set" "$p" virtual-host
        # The first launch of each of two kernels is watched.
        expect "virtual memory of the host, $set: profiled" "$(account profiled)" "$(($(launches) - 2))"
        expect "virtual memory of the host, $set: notes" "$(notes 'Note: can reach host or managed memory of cuMemCreate')" 3
    done
    unset KPROF_SET
    # The kernel is not selected, but its blocks are there from then on.
    KPROF_KERNEL_NAME=touch_blocks repeat "blocks of others" "$p" heap-blocks
    expect "blocks of others: saves" "$(saves)" 0
    KPROF_KERNEL_NAME=increment repeat "heap between others" "$p" heap
    unset KPROF_FALLBACK
    # Several graphs share a pass, each with a range of its own.
    KPROF_SET=quick repeat "memory of graphs" "$p" graph-memory
    expect "memory of graphs: passes" "$(grep -o '[0-9]* pass[es]*;' "$tmp/report" | tail -n 1)" "2 passes;"
    expect "memory of graphs: profiled" "$(account profiled)" "$(launches)"
    for set in basic quick; do
        KPROF_SET=$set repeat "graphs, $set" "$p" graphs
        expect "graphs, $set: profiled" "$(account profiled)" "$(launches)"
        expect "graphs, $set: notes" "$(notes 'Note: the counters saw')" 0
    done
    # Nothing is replayed, so nothing is said.
    KPROF_SET=quick repeat "heap, quick" "$p" heap
    expect "heap, quick: notes" "$(notes 'replayed')" 0
}

# Orders that the host makes between streams hold in each repetition.
orders() {
    export FAKE_COPY_MS=5
    for case in order order-by-event order-behind-a-wait; do
        for set in basic full; do
            KPROF_SET=$set repeat "$case, $set" "$p" $case
        done
        KPROF_KERNEL_NAME=increment repeat "$case, others unselected" "$p" $case
    done
    unset FAKE_COPY_MS
}

# Events keep the times of the program's own execution.
events() {
    repeat "times" "$p" times
}

# A kernel that does not end by itself is waited for once, not each time it is launched.
waits() {
    for case in waits-for-launches waits-for-host; do
        limit=${E2E_LIMIT:-25} repeat "$case" "$p" $case
        grep -q 'not replayed' "$tmp/report" || { fail "$case: no word in the report"; show; }
    done
}

beside once
beside waits
beside orders
beside events
finish
