#!/bin/sh
# Threads, streams, contexts and devices of one process, again and again: results stay right, every launch is profiled.
. "$(dirname "$0")/e2e.inc"

for devices in 1 2 3; do
    export FAKE_DEVICES=$devices
    for round in $(rounds 3); do
        both "$devices devices, round $round" "$programs/p_threads"
        expect "$devices devices: launches seen" "$(account seen)" "$(launches)"
        expect "$devices devices: launches profiled" "$(account profiled)" "$(launches)"
    done
    for d in $(seq 0 $((devices - 1))); do
        grep -q "Device $d, CC" "$tmp/report" || { fail "device $d is not in the report"; show; }
    done
done

# Many threads that start while others launch: what a window leaves room for closes none, however late it was opened.
many=$(sanitised && echo 32 || echo 64)
for round in $(rounds 3); do
    KPROF_DEBUG=window FAKE_DEVICES=1 both "$many threads, round $round" "$programs/p_threads" "$many"
    expect "$many threads: launches profiled" "$(account profiled)" "$(launches)"
    expect "$many threads: closed by" "$(sed -n 's/.*closes (replay): \([^;]*\);.*/\1/p' "$tmp/kprof.err" |
        grep -v '^cuMemcpy\|^the maximum number\|^the end' | sort -u | paste -sd' ')" ""
done

# The launches that the list of what was seen adds up to.
listed() {
    sed -n 's/.*  seen: .* (\([0-9,]*\))$/\1/p' "$tmp/report" | tr -d , | awk '{n += $1} END {print n}'
}

# What nobody wants goes past the locks, and each launch is counted all the same. Those that are wanted begin behind others.
for round in $(rounds 3); do
    FAKE_DEVICES=1 KPROF_KERNEL_NAME=none-such both "nobody's, round $round" "$programs/p_threads" 16
    expect "nobody's: launches seen" "$(account seen)" "$(launches)"
    expect "nobody's: by name" "$(sed -n 's/.*not selected by kernel-name: \([0-9,]*\).*/\1/p' "$tmp/report" | tr -d ,)" "$(launches)"
    expect "nobody's: list" "$(listed)" "$(launches)"
    FAKE_DEVICES=1 KPROF_KERNEL_NAME=none-such both "refused, round $round" "$programs/p_threads" 1 refused
    expect "refused: launches seen" "$(account seen)" "$(launches)"
    expect "refused: list" "$(listed)" "$(launches)"
    # A choice of devices keeps every launch on the way with the lock.
    FAKE_DEVICES=1 KPROF_DEVICES=0 KPROF_KERNEL_NAME=none-such both "refused under the lock, round $round" "$programs/p_threads" 1 refused
    expect "refused under the lock: list" "$(listed)" "$(launches)"
    # Each third launch is refused: increment, atomic_count, and one of it without a block.
    FAKE_DEVICES=1 KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=4 both "some refused, round $round" "$programs/p_threads" 1 refused
    expect "some refused: launches profiled" "$(account profiled)" 4
    expect "some refused: skipped" "$(account skipped)" $(($(launches) - 4))
    FAKE_DEVICES=1 KPROF_KERNEL_ID=::atomic_count:6 both "the sixth, round $round" "$programs/p_threads" 1 refused
    expect "the sixth: launches profiled" "$(account profiled)" 1
    FAKE_DEVICES=1 KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=4 both "some, round $round" "$programs/p_threads" 16
    expect "some: launches seen" "$(account seen)" "$(launches)"
    expect "some: launches profiled" "$(account profiled)" 4
    expect "some: skipped" "$(account skipped)" $(($(launches) - 4))
done

# Contexts that others destroy close the window of one that launches, which opens another in the midst of that.
for round in $(rounds 3); do
    MALLOC_PERTURB_=165 FAKE_DEVICES=1 KPROF_SET=quick both "beside contexts, round $round" "$programs/p_contexts" beside
    expect "beside contexts: launches profiled" "$(account profiled)" "$(account seen)"
done

finish
