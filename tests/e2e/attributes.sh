#!/bin/sh
# Launches with every launch attribute: the events that they record are destroyed before the launches are repeated, and
# an attribute unknown to kprof is a reason not to repeat the launch.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
p=$programs/p_attributes

counted() { # LOG: launches of the kernel that is not to be repeated
    grep -c '^launch .* name=_Z9incrementPii$' "$1"
}

for set in quick basic; do
    for window in 1 1000; do
        what="$set, windows of $window"
        KPROF_SET=$set KPROF_WINDOW=$window both "$what" "$p"
        expect "$what: seen" "$(account seen)" "$(launches)"
        expect "$what: profiled and skipped" $(($(account profiled) + $(account skipped))) "$(launches)"
        expect "$what: launches with attributes of a later CUDA" "$(counted "$tmp/kprof.log")" "$(counted "$tmp/plain.log")"
    done
done
grep -q 'has a launch attribute of a later CUDA, not replayed' "$tmp/report" || { fail "no word of the attribute"; show; }

# A range is repeated without waits between its launches: events order them, which are not the program's. The attribute
# of nodes that the device may change ends it.
KPROF_REPLAY_MODE=range KPROF_SET=basic both "ranges" "$p" known
expect "ranges: profiled" "$(account profiled)" 42
expect "ranges: skipped" "$(account skipped)" 3

finish
