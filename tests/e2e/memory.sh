#!/bin/sh
# A failed allocation of the profiler's, wherever it is, changes nothing for the program.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser has an allocator of its own"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

succeeds campaign python3 "$(dirname "$0")/campaign.py" "$(basename "$0" .sh)" "$tmp"
finish
