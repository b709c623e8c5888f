#!/bin/sh
# Saving by change: programs whose memory is saved this way print the same as without the profiler, and have the same
# report as when all memory is copied. The fake CUPTI ends a program whose memory in a pass differs from the first pass.
. "$(dirname "$0")/e2e.inc"
case "${KP_TEST_PRELOAD_FIRST:-}" in *libtsan*) echo "skipped: too slow under TSan"; exit 77 ;; esac
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

export KPROF_DEBUG=replay
p=$programs/p_save

# Saves by the checkpoint; saves by change, of the memory before a window or after the program's own execution of it;
# and how often these were tried and failed for that reason.
saves_of_all() {
    awk '$1 == "calls" && $3 == "cuptiCheckpointSave" { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}
saves_by_change() {
    grep -c 'debug replay.*: save.*: [0-9]* of [0-9]* blocks of memory differ' "$tmp/kprof.err"
}
refused() { # REASON
    grep -c "debug replay.*: memory cannot be saved by change: $1\$" "$tmp/kprof.err"
}

# The report without what differs from run to run: numbers of processes, times, and values that are the clock's.
bare_report() {
    grep -E ', Context [0-9]+, Stream|Note:|launch[es]* seen|==ERROR==|==WARNING==' "$tmp/report" |
        sed 's/ [0-9.]* m\{0,1\}s\>//; s/[0-9]* pass[es]*;.*//'
}

# A program with either way of saving: as many saves, the same report. By change, the checkpoint still makes so many. A
# sanitiser looks for what the code does wrong, and not at reports: the scripts of windows have the other way already.
either() { # NAME CHECKPOINTS COMMAND...
    pair=$1
    checkpoints=$2
    shift 2
    sanitised && {
        KPROF_SAVE=changes both "$pair, changes" "$@"
        return
    }
    KPROF_SAVE=all both "$pair, all" "$@"
    expect "$pair, all: saves by change" "$(saves_by_change)" 0
    bare_report >"$tmp/report.all"
    wanted=$(saves_of_all)
    KPROF_SAVE=changes both "$pair, changes" "$@"
    expect "$pair, changes: saves of all" "$(saves_of_all)" "$checkpoints"
    expect "$pair, changes: profiled" "$(account profiled)" "$(launches)"
    [ "$(saves_by_change)" -gt 0 ] || [ "$checkpoints" -gt 0 ] || fail "$pair: no saves by change"
    [ -z "${unsteady:-}" ] || return
    expect "$pair, changes: saves by change" "$(saves_by_change)" "$((wanted - checkpoints))"
    bare_report >"$tmp/report.changes"
    cmp -s "$tmp/report.all" "$tmp/report.changes" || {
        fail "$pair: another report"
        diff "$tmp/report.all" "$tmp/report.changes" | sed 's/^/    /'
    }
}

programs_of_windows() {
    export KPROF_WINDOW_READS="${1:-off}"
    for case in "many 100" memsets copies-in copies-within events allocates "closed-by free" pools maps "map-by again" "map-by twice" "map-by unmapped" attributes-change new-variable \
        libraries modules refusals frees copies-out registered; do
        # shellcheck disable=SC2086
        either "p_window $case, reads $KPROF_WINDOW_READS" 0 "$programs/p_window" $case
    done
}
with_reads() {
    programs_of_windows on
}

other_programs() {
    for case in p_pinned p_cudart p_many "p_harm none" "p_states constants" "p_states remaps" "p_states queue" "p_save kinds" \
        "p_save variables"; do
        # shellcheck disable=SC2086
        either "$case" 0 "$programs/"$case
    done
    unsteady=1 either "p_threads" 0 "$programs/p_threads"
}

# What cannot be listed is saved as before, and the reason is told.
fallbacks() {
    either "managed memory" 2 "$p" managed
    expect "managed memory: why" "$(refused "managed memory")" 2
    either "arrays" 1 "$programs/p_states" surface
    expect "arrays: why" "$(refused arrays)" 1
    KPROF_SAVE=changes both "two contexts" "$p" two-contexts
    expect "two contexts: why" "$(refused "memory of another context")" 1
    [ "$(saves_by_change)" -gt 0 ] || { fail "two contexts: none by change once the other one has ended"; show; }
    KPROF_SAVE=changes both "memory of graphs" "$programs/p_graph_memory" paired
    expect "memory of graphs: profiled" "$(account profiled)" "$(launches)"
    FAKE_FAIL=cuMemAddressReserve:2 KPROF_SAVE=changes both "no memory for the tables" "$p" variables
    # Small devices are never short of room for two copies.
    KPROF_SAVE=auto both "auto" "$p" variables
    expect "auto: saves by change" "$(saves_by_change)" 0
}

# A device that is nearly full: by itself it is saved by change, and each allocation gets what is left without the profiler.
full_devices() {
    for save in auto all changes; do
        FAKE_MEMORY=4294967296 KPROF_SAVE=$save both "whole device, $save" "$p" whole-device
        expect "whole device, $save: seen" "$(account seen)" "$(launches)"
    done
    [ "$(saves_by_change)" -gt 0 ] || { fail "whole device: no saves by change"; show; }
}

# What kprof keeps on the device between windows goes wherever the program lacks it, however it asks, and whatever else it does.
wanted_back() {
    export FAKE_MEMORY=2147483648 FAKE_DEVICES=2 FAKE_HOST_THREADS=1
    limit=120 # scans of that device run on the processor, which other tests share
    for case in pitched while-captured elsewhere beside-call; do
        KPROF_SAVE=changes both "$case" "$p" "$case"
        [ "$(saves_by_change)" -gt 0 ] || { fail "$case: no saves by change"; show; }
        grep -q 'error 0$' "$tmp/plain.out" || fail "$case: the driver refused"
    done
    FAKE_FAIL=cuMemAlloc_v2:2:2 KPROF_SAVE=changes both "refused once" "$p" refused-once
    expect "refused once: seen" "$(account seen)" "$(launches)"
}

# What shares state between launches, and what must not be run twice: the scripts' own checks hold, whatever saves the memory.
other_scripts() {
    unset KPROF_DEBUG
    for script in $(points states repeat); do
        KPROF_SAVE=changes sh "$(dirname "$0")/$script.sh" >"$tmp/$script.log" 2>&1 && continue
        fail "$script.sh with saves by change"
        cat "$tmp/$script.log"
    done
}

beside other_scripts
beside programs_of_windows
beside with_reads
beside other_programs
beside fallbacks
beside full_devices
beside wanted_back
# Libraries that another thread prepares its first launch with end with the process: exit() waits for it.
for round in $(rounds 4); do
    KPROF_SAVE=changes limit=60 both "exit amid another thread's first launch, round $round" "$p" exits-amid
done
finish
