#!/bin/sh
# Contexts of one device: one of them has the counters at a time, and the next window takes them from the others.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

p=$programs/p_contexts
# All launches have counters, whichever context they are in.
turns() { # NAME [NAME=VALUE...]
    name=$1
    shift
    for set; do export "${set?}"; done
    both "$name" "$p" turns
    expect "$name: seen" "$(account seen)" "$(launches)"
    expect "$name: profiled" "$(account profiled)" "$(launches)"
    ! grep -q 'HARDWARE_BUSY' "$tmp/report" "$tmp/kprof.err" || { fail "$name: busy"; show; }
}

turns "sessions" KPROF_SET=basic
turns "sessions with several lists" KPROF_SET=detailed
turns "range profiler" KPROF_SET=basic FAKE_FAIL=cuptiProfilerBeginSession:999

# The first context keeps the counters while a kernel of it waits. The launches of the second one are without them, say
# who has them, and wait for it three times, not for ever.
unended() { # NAME [NAME=VALUE...]
    name=$1
    shift
    both "$name" env KPROF_WINDOW=1 KPROF_DEBUG=window "$@" "$p" unended
    expect "$name: seen" "$(account seen)" "$(launches)"
    # The last one, too, if a thread of kprof's soon sees that the first context's kernel has ended.
    [ "$(account profiled)" -ge 1 ] || { fail "$name: no launch has counters"; show; }
    expect "$name: who has them" "$(grep -c '^==WARNING== cannot start the counters: context 1 of this process has them, and keeps them: its work has not finished$' "$tmp/report")" 1
    ! grep -q 'another tool' "$tmp/report" "$tmp/kprof.err" || { fail "$name: another tool"; show; }
    expect "$name: waits" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'has outlasted a wait of 200 ms$')" 3
}

unended "unended: sessions" KPROF_SET=basic
unended "unended: range profiler" KPROF_SET=basic FAKE_FAIL=cuptiProfilerBeginSession:999
unended "unended: one pass" KPROF_SET=quick

# Kernels of one context wait for those of another, with a limit of 5 s: neither the save of a green context, which waits
# for all work of the device, nor the end of a window may hold the other context's launch up for that long.
across() { # CONTEXTS KERNEL
    both "$1 $2" env KPROF_SET=basic "$p" "$1" "$2"
    expect "$1 $2: seen" "$(account seen)" "$(launches)"
    # How many depends on how soon a thread of kprof's sees that a kernel has ended.
    [ "$(account profiled)" -ge 1 ] || { fail "$1 $2: no launch has counters"; show; }
    grep -q 'made while work of another context of the device did not finish: [1-9]' "$tmp/report" ||
        { fail "$1 $2: launches that the waiting ones may wait for"; show; }
}
for kernel in gate pause; do
    across across $kernel
    across green $kernel
done
# Where the profiler is the first use of CUPTI, the driver makes no green contexts.
for pages in timeline timeline,details; do
    both "green, $pages" env KPROF_SET=basic KPROF_PAGE=$pages "$p" green pause
done
finish
