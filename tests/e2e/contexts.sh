#!/bin/sh
# Contexts of one device: one of them has the counters at a time, and the window that comes takes them from the others.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

p=$programs/p_contexts
# All launches have counters, whichever context they are in.
turns() { # NAME [NAME=VALUE...]
    name=$1
    shift
    for set; do export "${set?}"; done
    both "$name" "$p" turns
    expect "$name: seen" "$(account seen)" "$(launches)"
    expect "$name: profiled" "$(account profiled)" "$(launches)"
    ! grep -q 'HARDWARE_BUSY' "$tmp/report" "$tmp/kprof.err" || { fail "$name: busy"; show; }
}

turns "sessions" KPROF_SET=basic
turns "sessions with several lists" KPROF_SET=detailed
turns "range profiler" KPROF_SET=basic FAKE_FAIL=cuptiProfilerBeginSession:999
finish
