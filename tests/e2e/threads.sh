#!/bin/sh
# Threads, streams, contexts and devices of one process, again and again: results stay right, every launch is profiled.
. "$(dirname "$0")/e2e.inc"

for devices in 1 2 3; do
    export FAKE_DEVICES=$devices
    for round in 1 2 3; do
        both "$devices devices, round $round" "$programs/p_threads"
        expect "$devices devices: launches seen" "$(account seen)" "$(launches)"
        expect "$devices devices: launches profiled" "$(account profiled)" "$(launches)"
    done
    for d in $(seq 0 $((devices - 1))); do
        grep -q "Device $d, CC" "$tmp/report" || { fail "device $d is not in the report"; show; }
    done
done

finish
