#!/bin/sh
# Kinds of state that launches of a window share: queues, constants, arrays, pools, remapped memory, host functions, values that
# another thread spins on. The program's output and end are its own, every launch is accounted for, with reads that survive and without.
. "$(dirname "$0")/e2e.inc"

case "${KP_TEST_PRELOAD_FIRST:-}" in *libtsan*) echo "skipped: too slow under TSan"; exit 77 ;; esac
p=$programs/p_states
export FAKE_FREES_TWICE=1 # the program does, on purpose

# A case: all launches have results, in so many windows of the basic set's 9 passes, whatever saves the memory for them.
states() { # CASE WINDOWS
    case=$1
    limit=60 both "$case" "$p" "$case"
    expect "$case: seen" "$(account seen)" "$(launches)"
    expect "$case: profiled" "$(account profiled)" "$(launches)"
    expect "$case: passes" "$(grep -c '^pass ' "$tmp/kprof.log")" $((9 * $2))
}

without_reads() {
    export KPROF_WINDOW_READS=off
    states queue 1
    states host-rewrites 1
    states remaps 12
    states constants 1
    states surface 1
    states mipmap 6
    both prints-and-reads "$p" prints-and-reads
    expect "prints-and-reads: lines" "$(grep -c '^kernel prints' "$tmp/kprof.out")" 6
    expect "prints-and-reads: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
}

with_reads() {
    export KPROF_WINDOW_READS=on
    states queue 1
    states host-rewrites 1
    states constants 1
    states surface 1
    states mipmap 2
    both prints-and-reads "$p" prints-and-reads
    expect "prints-and-reads: lines" "$(grep -c '^kernel prints' "$tmp/kprof.out")" 6
    expect "prints-and-reads: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    limit=60 both spins "$p" spins
    expect "spins: profiled" "$(account profiled)" "$(launches)"
}

# Most of the memory, again and again: what a window keeps of it is given back before an allocation fails.
nearly_full() {
    # A save by change reads all of it in each pass, on the processor here: half a minute.
    export FAKE_MEMORY=536870912 KPROF_SAVE=all
    states full-pools 6
    states freed-twice 4
}

beside without_reads
beside with_reads
beside nearly_full
finish
