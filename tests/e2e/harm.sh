#!/bin/sh
# Programs with habits that a profiler must not turn into failures.
. "$(dirname "$0")/e2e.inc"

for habit in none clearenv vfork lose_reader; do
    both "$habit" "$programs/p_harm" $habit
done
for habit in none vfork lose_reader; do
    both "$habit" "$programs/p_harm" $habit
    expect "$habit: launches reported" "$(reported)" 2
done

# The options are those from before main, even if the program clears its environment.
KPROF_KERNEL_NAME=nothing profiled "$programs/p_harm" clearenv
expect "clearenv: options" "$(grep -c 'not selected by kernel-name: 2' "$tmp/report")" 1

# Divisions by zero that trap, an errno and an error of the loader's that stay, a cancelled thread's cuInit, fork handlers
# that launch. TSan holds the lock of its threads during a fork, so that nobody can start one in a handler there.
case "${KP_TEST_PRELOAD_FIRST:-}" in *libtsan*) forks= ;; *) forks=fork ;; esac
for way in "" KPROF_SET=full KPROF_REPLAY_MODE=rotate KPROF_WINDOW=1; do
    for habit in traps traps_late errno all_errno dlerror cancel_init $forks; do
        both "$habit $way" env $way "$programs/p_harm" $habit
    done
done

# A stderr that does not block, whose reader is slow: the report is longer than what a pipe holds.
{ KPROF_LOG_FILE=stderr KPROF_BRIEF_ABOVE=0 profiled "$programs/p_harm" slow_reader; echo "$kprof_code" >"$tmp/code"; }
cp "$tmp/kprof.err" "$tmp/report"
expect "a file as stderr" "$(reported)" 102
mkfifo "$tmp/slow"
{ sleep 2; cat; } <"$tmp/slow" >"$tmp/report" &
LD_LIBRARY_PATH="$build/fake" KPROF_LOG_FILE=stderr KPROF_BRIEF_ABOVE=0 \
    LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:+$KP_TEST_PRELOAD_FIRST:}$library" \
    "$programs/p_harm" slow_reader >"$tmp/kprof.out" 2>"$tmp/slow"
expect "slow_reader: exit code" $? 0
wait
expect "slow_reader: launches reported" "$(reported)" 102

# A program that puts its own file into descriptor 2 before CUDA finds nothing but its own text in it.
KPROF_LOG_FILE=stderr profiled "$programs/p_harm" reuse_stderr "$tmp/mine"
expect "reuse_stderr: exit code" "$kprof_code" 0
expect "reuse_stderr: the program's file" "$(cat "$tmp/mine")" mine

# A program that closes all descriptors and opens its own finds nothing but its own text in them, and the report is whole:
# in a log file or on stderr, and in the session file, which are opened again.
for place in stderr "$tmp/report"; do
    rm -f "$tmp/mine" "$tmp/report"
    KPROF_LOG_FILE=$place KPROF_WINDOW=1 KPROF_EXPORT="$tmp/closed" KPROF_FORCE_OVERWRITE=yes \
        profiled "$programs/p_harm" close_all "$tmp/mine"
    expect "close_all: exit code" "$kprof_code" 0
    expect "close_all: the program's file" "$(cat "$tmp/mine")" mine
    [ "$place" = stderr ] && cp "$tmp/kprof.err" "$tmp/report"
    expect "close_all: launches reported, log at $(basename "$place")" "$(reported)" 2
    "$build/kprof" report "$tmp/closed" >"$tmp/stored" 2>&1
    expect "close_all: launches stored, log at $(basename "$place")" "$(reported "$tmp/stored")" 2
done

# stderr as a pipe that nobody reads any more, and kprof writing to it.
LD_LIBRARY_PATH="$build/fake" LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:+$KP_TEST_PRELOAD_FIRST:}$library" \
    "$programs/p_harm" lose_reader >"$tmp/kprof.out" 2>/dev/null
expect "lose_reader: exit code" $? 0

# The report is written past a function of the program's that is called write. Sanitisers stand in its place.
sanitised || {
    both "a write of the program's own" "$programs/p_own"
    expect "a write of the program's own: launches reported" "$(reported)" 2
}

# A log file on a full disk: the program does not notice, and the report goes to stderr with a word.
if [ -e /dev/full ]; then
    KPROF_LOG_FILE=/dev/full profiled "$programs/p_harm" none
    expect "full disk: exit code" "$kprof_code" 0
    grep -q 'cannot write the log file' "$tmp/kprof.err" || fail "full disk: no word of it"
    grep -q '2 launches seen' "$tmp/kprof.err" || fail "full disk: no report"
fi

# A file-size limit that the session file runs into.
(
    ulimit -f 8
    LD_LIBRARY_PATH="$build/fake" KPROF_LOG_FILE=/dev/null \
        LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:+$KP_TEST_PRELOAD_FIRST:}$library" "$programs/p_harm" none >/dev/null
)
expect "file-size limit: exit code" $? 0

# The file says that it is not whole, where it took some of it.
if [ -n "$KP_REAL_CUPTI" ]; then
    (
        ulimit -f 600
        LD_LIBRARY_PATH="$build/fake" KPROF_LOG_FILE=/dev/null KPROF_EXPORT="$tmp/cut" KPROF_WINDOW=1 KPROF_SET=detailed \
            LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:+$KP_TEST_PRELOAD_FIRST:}$library" "$programs/p_many" 20 >/dev/null
    )
    expect "file-size limit, exported: exit code" $? 0
    "$build/kprof" report --page trace "$tmp/cut" 2>&1 | grep -q 'the file could not be fully written' ||
        fail "file-size limit, exported: the session passes for a whole one"
fi

finish
