#!/bin/sh
# A program killed at any moment leaves a session of complete launches that says that the program had not ended.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

succeeds campaign python3 "$(dirname "$0")/campaign.py" "$(basename "$0" .sh)" "$tmp"
finish
