#!/bin/sh
# After the last wanted launch, CUPTI leaves the driver's calls, so that launches are as fast as without kprof. It
# returns for a kernel or shape of a rotation that comes later.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
limit=60

# The L2 counts one of these in a pass.
export KPROF_METRICS=lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum
export KPROF_SET=basic KPROF_DEBUG=plan
p=$programs/p_rest
MANY=60000 # a busy machine makes CUPTI stay at first: it is asked again a second later

calls() { # FUNCTION
    awk -v of="$1" '$1 == "calls" && $3 == of { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}
says() { # TEXT
    cat "$tmp/report" "$tmp/kprof.err" | grep -c "$1"
}

# Runs the program: how often CUPTI has left, and how many entries there are.
rests() { # NAME TIMES ENTRIES
    both "$1" "$p" $MANY
    expect "$1: CUPTI has left" "$(calls cuptiFinalize)" "$2"
    expect "$1: entries" "$(grep -c 'CC 9.0$' "$tmp/report")" "$3"
    expect "$1: seen" "$(account seen)" $((MANY + 120))
    expect "$1: accounted" $(($(account profiled) + $(account skipped))) $((MANY + 120))
}

leaves() {
    # The second shape is counted as the first one was.
    KPROF_REPLAY_MODE=rotate KPROF_ROTATE_LAUNCHES=2 rests rotation 1 2
    expect "rotation: it is told" "$(says 'CUPTI is out of the way of launches')" 1
    expect "rotation: heads" "$(grep -c '^    Rotation: .* launches of this kernel and shape' "$tmp/report")" 2
    expect "rotation: profiled" "$(account profiled)" 8
}

counts() {
    KPROF_LAUNCH_COUNT=3 rests counted 1 3
    KPROF_CUPTI_LEAVES=off KPROF_LAUNCH_COUNT=3 rests stays 0 3
}

# On a busy machine a run may end before CUPTI could have left: another one is made.
until_told() { # TEXT COMMAND...
    text=$1
    shift
    for try in 1 2 3; do
        "$@"
        [ "$(says "$text")" = 0 ] || return 0
    done
}

stays='CUPTI stays in the way of launches'
subscribed() {
    # Somebody else uses its callbacks, or it is an older one that lacks them: nothing changes.
    FAKE_SUBSCRIBED=1 KPROF_REPLAY_MODE=rotate KPROF_ROTATE_LAUNCHES=2 until_told "$stays" rests subscribed 0 2
    expect "subscribed: it is told" "$(says "$stays")" 1
}

refused() {
    FAKE_FAIL=cuptiFinalize:999 KPROF_REPLAY_MODE=rotate KPROF_ROTATE_LAUNCHES=2 rests refused 1 2
    expect "refused: it is told" "$(says 'CUPTI stays in the way of launches')" 1
}

gone() {
    # It does not come back: what comes later has no counters, and says why.
    FAKE_FAIL=cuptiProfilerInitialize:999:2 KPROF_REPLAY_MODE=rotate KPROF_ROTATE_LAUNCHES=2 both "gone" "$p" $MANY
    expect "gone: seen" "$(account seen)" $((MANY + 120))
    [ "$(says "cannot start CUPTI's profiler again")" -gt 0 ] || fail "gone: no reason"
}

# Each waits for what happens a second after the last launch.
for part in leaves counts subscribed refused gone; do
    beside $part
done
finish
