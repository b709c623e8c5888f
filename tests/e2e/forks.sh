#!/bin/sh
# Children of a program whose other threads are inside the profiler at the fork: each passes the doors and ends
# normally, with or without CUDA initialised before. FORKS=N makes the rounds longer.
. "$(dirname "$0")/e2e.inc"

# TSan's own locks are not those that a child of several threads meets, and its runtime does not promise such children.
[ "${KP_TEST_VARIANT:-}" != tsan ] || { echo "skipped: TSan keeps locks of its own over a fork"; exit 77; }

forks=${FORKS:-$(sanitised && echo 15 || echo 60)}
export KPROF_NVTX=on KPROF_QUIET=1

# GCC's libasan has no fork handlers: a child of a thread that is in its allocator hangs there, which NVTX calls often are.
doors="runtime lookup address grid nvtx"
[ "${KP_TEST_VARIANT:-}" != asan ] || doors="runtime lookup address grid"

for door in $doors; do
    for when in early late; do
        for who in main thread; do
            both "$door, $when, forked by $who" "$programs/p_forks" $door $when $who fork "$forks"
            expect "$door, $when, forked by $who" "$(cat "$tmp/kprof.out")" \
                "0 of $forks children hung, 0 ended otherwise"
        done
    done
done
for way in vfork spawn; do
    both "$way" "$programs/p_forks" lookup late thread $way "$forks"
    expect "$way" "$(cat "$tmp/kprof.out")" "0 of $forks children hung, 0 ended otherwise"
done

# What tells of a fork is written in the child's _exit.
KPROF_QUIET=0 both "cancelled" "$programs/p_forkcancel"
grep -q ', forked from .* was left alone' "$tmp/report" "$tmp/kprof.err" || fail "cancelled: the fork is not told"

finish
