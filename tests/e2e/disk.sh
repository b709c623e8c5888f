#!/bin/sh
# A disk that is full at any write changes nothing for the program; the session is complete or says that it is not.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser's own functions make the calls"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

succeeds campaign python3 "$(dirname "$0")/campaign.py" "$(basename "$0" .sh)" "$tmp"
finish
