#!/bin/sh
# A program that is killed at any moment leaves a session of whole launches that says that it had not ended.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

succeeds campaign python3 "$(dirname "$0")/campaign.py" "$(basename "$0" .sh)" "$tmp"
finish
