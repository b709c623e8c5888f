#!/bin/sh
# Host functions between launches that share a window: each runs once, and later copies and kernels see what it has
# written. One that waits for the program's next step does not delay anything for long.
. "$(dirname "$0")/e2e.inc"

case "${KP_TEST_PRELOAD_FIRST:-}" in *libtsan*) echo "skipped: too slow under TSan"; exit 77 ;; esac
p=$programs/p_host_calls

# How many windows of the basic set's 9 passes there were.
windows() {
    echo $(($(grep -c '^pass ' "$tmp/kprof.log") / 9))
}

# A case: as it is without the profiler, in so many windows; all launches have counters. WINDOWS "" is not looked at.
calls() { # CASE WINDOWS
    limit=60 both "$1" "$p" "$1"
    expect "$1: seen" "$(account seen)" "$(launches)"
    expect "$1: profiled" "$(account profiled)" "$(launches)"
    expect "$1: windows" "$(windows)" "${2:-$(windows)}"
    expect "$1: notes" "$(grep -c 'not replayed' "$tmp/report")" 0
}

# The look-alike calls the functions when it is asked for something, or in threads.
one_window() {
    export KPROF_WINDOW_READS=off
    for c in between rewrites-pinned rewrites-rows rewrites-pageable rewrites-in-graph signals; do
        calls $c 1
        FAKE_HOST_THREADS=1 calls $c 1
    done
    export FAKE_HOST_THREADS=1
    calls waits 1
    calls own-streams "" # launches in the streams of two threads close windows
    calls runs-on 2      # registrations close them, and wait for the functions
    calls reached 6      # each function changes what the kernel of the window before can reach
}

# What comes to the host is logged before a host function changes it there.
with_reads() {
    export KPROF_WINDOW_READS=on FAKE_HOST_THREADS=1
    calls there-and-back 3 # the first read of its site closes one, and the eighth behind it
    calls rewrites-pinned 1
}

# One that waits for what the program does behind a call that closes the window. Its launches have no counters, and no
# kernel is blamed: later ones are counted. From then on host functions close windows.
waiting() {
    export KPROF_WINDOW_READS=off FAKE_HOST_THREADS=1
    # Two beside the function that waits, in each later round. A busy machine may end a wait for one sooner: then again.
    for try in 1 2 3; do
        limit=60 both waits-behind "$p" waits-behind
        [ "$(account profiled)" != 8 ] || break
    done
    expect "waits-behind: accounted" "$(($(account profiled) + $(account skipped)))" 12
    expect "waits-behind: without counters" "$(grep -c 'did not end within 5 s (a host function waits' "$tmp/report")" 3
    expect "waits-behind: profiled" "$(account profiled)" 8
    for c in waits-behind-many waits-for-thread; do
        limit=60 both $c "$p" $c
        expect "$c: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
        # The window closed, without counters, before the driver or the other thread was held up.
        expect "$c: notes" "$(grep -c 'a host function waits' "$tmp/report")" 2
    done
}

# Where nothing is replayed, a host function closes the window.
counted() {
    export FAKE_HOST_THREADS=1
    for mode in KPROF_SET=quick KPROF_REPLAY_MODE=rotate; do
        for c in between rewrites-pinned signals waits; do
            limit=60 both "$c, $mode" env $mode "$p" $c
            expect "$c, $mode: seen" "$(account seen)" "$(launches)"
            expect "$c, $mode: repeated" "$(grep -c '^launch ' "$tmp/kprof.log")" "$(launches)"
        done
    done
}

for part in one_window with_reads waiting counted; do
    beside "$part"
done
finish
