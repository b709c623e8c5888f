#!/bin/sh
# Kinds of state that launches of a window share: queues, constants, arrays, pools, remapped memory, host functions,
# values that another thread spins on. The program's output and end are its own, every launch is accounted for, with
# windows that survive reads and without.
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

# A kernel that finds the address of pinned memory in device memory: its first window is repeated, and tells. From then on it is
# counted once each time. The counters that tell are no rows.
ring() {
    limit=60 both ring "$p" ring
    expect "ring: seen" "$(account seen)" "$(launches)"
    expect "ring: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    expect "ring: executions" "$(grep -c '^launch .*name=ring_put$' "$tmp/kprof.log")" $((1 + 1 + 9 + 6))
    expect "ring: told" "$(grep -c '^==WARNING== ring_put writes host memory that no argument points into' "$tmp/report")" 1
    expect "ring: others told" "$(grep -c 'WARNING.* writes host memory' "$tmp/report")" 1
    expect "ring: notes" "$(grep -c 'Note: writes host memory that no argument points into, not replayed' "$tmp/report")" 1
    # Debug lines say which counter it was.
    KPROF_DEBUG=window profiled "$p" ring
    expect "ring: the counter" "$(cat "$tmp/kprof.err" "$tmp/report" | grep -cE 'debug window .*: ring_put.*: lts__t_sectors_srcunit_tex_aperture_sysmem_op_write.sum is [1-9]')" 1
    expect "ring: counters of others" "$(cat "$tmp/kprof.err" "$tmp/report" | grep 'aperture_sysmem' | grep -cv 'ring_put')" 0
    profiled env KPROF_PAGE=raw "$p" ring
    expect "ring: rows" "$(grep -c 'aperture_sysmem' "$tmp/report")" 0
    profiled env KPROF_PAGE=raw KPROF_METRICS=lts__t_sectors_srcunit_tex_aperture_sysmem_op_write.sum "$p" ring
    [ "$(grep -c 'aperture_sysmem_op_write.sum' "$tmp/report")" -gt 0 ] || { fail "ring: the row that was asked for"; show; }
    expect "ring: one pass" "$(grep -c '^==WARNING== ring_put writes .* was repeated for 1 pass, ' "$tmp/report")" 1
}

# Its first window is evaluated beside the program, but before the next one opens.
ring_late() {
    limit=60 both ring-late "$p" ring-late
    expect "ring-late: executions" "$(grep -c '^launch .*name=ring_put$' "$tmp/kprof.log")" $((1 + 1 + 9 + 6))
    expect "ring-late: told" "$(grep -c '^==WARNING== ring_put writes host memory that no argument points into' "$tmp/report")" 1
}

without_reads() {
    export KPROF_WINDOW_READS=off
    states queue 1
    states host-rewrites 1
    states remaps 12
    states constants 1
    states surface 1
    states mipmap 6
    ring
    ring_late
    both prints-and-reads "$p" prints-and-reads
    expect "prints-and-reads: lines" "$(grep -c '^kernel prints' "$tmp/kprof.out")" 6
    # Nothing of the program's is there to be written: it has no pinned memory.
    expect "prints-and-reads: writes to host memory told" "$(grep -c 'writes host memory' "$tmp/report")" 0
    expect "prints-and-reads: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
}

with_reads() {
    export KPROF_WINDOW_READS=on
    states queue 1
    states host-rewrites 1
    states constants 1
    states surface 1
    states mipmap 2
    ring
    both prints-and-reads "$p" prints-and-reads
    expect "prints-and-reads: lines" "$(grep -c '^kernel prints' "$tmp/kprof.out")" 6
    # Nothing of the program's is there to be written: it has no pinned memory.
    expect "prints-and-reads: writes to host memory told" "$(grep -c 'writes host memory' "$tmp/report")" 0
    expect "prints-and-reads: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    # The pinned memory that kprof makes for itself is none of the program's.
    both reads-then-prints "$p" reads-then-prints
    expect "reads-then-prints: profiled" "$(account profiled)" "$(launches)"
    expect "reads-then-prints: writes to host memory told" "$(grep -c 'writes host memory' "$tmp/report")" 0
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
