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
        grep -v '^cuMemcpy\|^as many launches\|^the end' | sort -u | paste -sd' ')" ""
done

finish
