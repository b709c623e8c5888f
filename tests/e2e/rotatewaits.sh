#!/bin/sh
# A rotation whose windows let launches and host functions pass: these may wait for the program, and their streams may
# be gone.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

# The L2 counts one of these in a pass.
export KPROF_METRICS=lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum,lts__t_sectors_op_read_lookup_hit.sum
export KPROF_SET=basic KPROF_REPLAY_MODE=rotate FAKE_MEMORY=268435456
limit=60

# A host function that waits for what the program does after a call that closes the window, or after a graph.
waits() {
    export FAKE_HOST_THREADS=1
    for c in waits-behind-capture waits-in-graph; do
        both "$c" "$programs/p_host_calls" $c
        expect "$c: seen" "$(account seen)" "$(launches)"
        expect "$c: once each" "$(grep -c '^launch ' "$tmp/kprof.log")" "$(launches)"
        # A pass that was left does not stop later ones.
        [ "$(account profiled)" -ge 1 ] || fail "$c: $(account profiled) launches were counted"
    done
}

# A window does not ask about streams that another one has let by, in a context that is gone.
contexts() {
    both "contexts" "$programs/p_contexts"
    expect "contexts: seen" "$(account seen)" "$(launches)"
}

# A collective kernel passes an open window, and waits for its partner in another context, which the same thread launches next
# or behind a launch that is to be counted. The window stays open: its end would wait for the collective.
partners() {
    for c in partner launch; do
        KPROF_DEBUG=window both "two contexts, $c" "$programs/p_contexts" $c
        expect "two contexts, $c: seen" "$(account seen)" "$(launches)"
        expect "two contexts, $c: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
        # A window was open when the collective came.
        [ "$(grep -c '^calls .* cuptiProfilerBeginPass ' "$tmp/kprof.log")" -ge 1 ] || fail "two contexts, $c: no session"
    done
    grep -q 'made while other work of the context did not end: 1' "$tmp/report" || fail "two contexts: no reason"
}

# A kernel that moves no pages and leaves their addresses in use.
older_kernel() {
    E2E_PRELOAD_LAST=$(realpath "$build/e2e/remap.so") both "older kernel" "$programs/p_many" 40
    expect "older kernel: seen" "$(account seen)" "$(launches)"
    expect "older kernel: heads" "$(grep -c '^    Rotation: .* launches of this kernel and shape' "$tmp/report")" 2
}

# A session that cannot be ended goes on, and CUPTI writes to its memory.
unended() {
    for call in cuptiProfilerDisableProfiling cuptiProfilerUnsetConfig; do
        plain "$programs/p_many" 40
        FAKE_FAIL=$call:999 profiled "$programs/p_many" 40
        same "no $call"
        expect "no $call: seen" "$(account seen)" "$(launches)"
    done
}

# A kernel that may wait for others is timed, and has an entry; nothing waits for it. The first launch is, and more of them
# when nothing else is counted. Another user of records prevents it.
outside() { # LAUNCHES TIMED
    KPROF_ROTATE_LAUNCHES=6 both "outside, $1" "$programs/p_window" waits-outside-often "$1"
    expect "outside, $1: seen" "$(account seen)" "$(launches)"
    expect "outside, $1: once each" "$(grep -c '^launch ' "$tmp/kprof.log")" "$(launches)"
    expect "outside, $1: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    expect "outside, $1: timed" "$(grep -c "^    Rotation: $1 launches .* of which $2 timed without" "$tmp/report")" "${3:-1}"
    expect "outside, $1: duration" "$(grep -c '^    Duration  *ns  *101\( \|$\)' "$tmp/report")" "${3:-1}"
    expect "outside, $1: notes" "$(grep -c '^    Note: it waits for the host, other processes or devices' "$tmp/report")" "${3:-1}"
}

# A reason for no launch is not told.
only_timed() {
    KPROF_KERNEL_NAME=ncclDevKernel_increment outside 5 "5 were"
    expect "only timed: reasons without launches" "$(grep -c '^==KPROF== .* skipped (.*: 0[;)]' "$tmp/report")" 0
    expect "only timed: profiled" "$(account profiled)" 5
}

timed() {
    only_timed
    outside 5 "1 was"
    outside 300 "9 were"
    export FAKE_FAIL=cuptiActivityEnable:999
    outside 20 ".*" 0
}

beside timed
beside waits
beside contexts
beside partners
beside older_kernel
beside unended
finish
