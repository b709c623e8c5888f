#!/bin/sh
# Windows: launches that share one series of passes. The programs' output and end are their own, every launch is
# accounted for, and the calls of the fakes show how many windows there were.
. "$(dirname "$0")/e2e.inc"

# Programs of many small windows take minutes there.
case "${KP_TEST_PRELOAD_FIRST:-}" in *libtsan*) echo "skipped: too slow under TSan"; exit 77 ;; esac

# A read at the end of a program would add a copy of the memory everywhere; part `reads` has it on.
export KPROF_WINDOW_READS=off

# Passes of the basic set on the fake's chip, and of one measured window of it.
PASSES=9
p=$programs/p_window

# How often a function of the look-alikes was called.
calls() { # NAME
    awk -v name="$1" '$1 == "calls" && $3 == name { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}

passes() {
    grep -c '^pass ' "$tmp/kprof.log"
}

# A case of p_window: as it is without the profiler, with so many windows; all launches have results but for those that
# `unprofiled` says. A window that no launch came to, as the driver refused it, has been saved for nothing: `empty`.
windows() { # NAME WINDOWS COMMAND...
    name=$1
    n=$2
    shift 2
    both "$name" "$@"
    expect "$name: windows" "$(calls cuptiCheckpointSave)" "$((n + ${empty:-0}))"
    expect "$name: passes" "$(passes)" "$((n * PASSES))"
    expect "$name: launches seen" "$(account seen)" "$(launches)"
    expect "$name: launches profiled" "$(account profiled)" "$(($(launches) - ${unprofiled:-0}))"
}

# What the run says closed its windows, in the last pair of runs; "" = it says nothing.
closers() { # TEXT
    expect "$name: closed by" "$(sed -n 's/^==KPROF== .* because windows were closed by: //p' "$tmp/report" "$tmp/kprof.err")" "$1"
}

# How many launches a window holds.
how_many() {
    windows "100 launches" 1 "$p" many 100
    windows "100 launches, each with a synchronisation" 1 "$p" synchronised 100
    KPROF_WINDOW=1 windows "windows of one" 20 "$p" many 20
    KPROF_WINDOW=10 windows "windows of ten" 10 "$p" many 100
    KPROF_CACHE_CONTROL=none windows "no cache control" 1 "$p" many 100
    KPROF_LAUNCH_COUNT=5 both "five launches" "$p" many 20
    expect "five launches: passes" "$(passes)" $PASSES
    expect "five launches: profiled" "$(account profiled)" 5
    expect "five launches: seen" "$(account seen)" 20
    KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=5 KPROF_WINDOW=2 both "five launches, two by two" "$p" many 20
    expect "five launches, two by two: windows" "$(calls cuptiCheckpointSave)" 3
    expect "five launches, two by two: profiled" "$(account profiled)" 5

    # Little memory for counters: several windows, every launch in one of them.
    KPROF_WINDOW_MEMORY=1M both "little memory" "$p" many 300
    expect "little memory: launches profiled" "$(account profiled)" 300
    [ "$(calls cuptiCheckpointSave)" -gt 1 ] || { fail "little memory: one window"; show; }
}

# What leaves a window open.
leaves_it_open() {
    windows "memsets" 1 "$p" memsets
    windows "copies to the device" 1 "$p" copies-in
    windows "copies within the device" 1 "$p" copies-within
    windows "events" 1 "$p" events
    windows "an allocation" 1 "$p" closed-by alloc
    windows "new memory" 1 "$p" allocates
    KPROF_SECTION=LaunchStats KPROF_METRICS=sm__cycles_elapsed.avg both "new memory beside a long launch" "$p" allocates-beside
    expect "new memory beside a long launch: windows" "$(calls cuptiCheckpointSave)" 1
    expect "new memory beside a long launch: profiled" "$(account profiled)" 3
    windows "freed memory" 1 "$p" closed-by free
    windows "an allocation in a stream" 1 "$p" closed-by alloc-async
    windows "memory of pools" 1 "$p" pools
    windows "memory that is mapped" 1 "$p" maps
    windows "an event destroyed" 1 "$p" closed-by event
    windows "a host function" 1 "$p" closed-by host-function
    windows "a stream destroyed" 1 "$p" closed-by stream
    windows "attributes of functions" 1 "$p" attributes
    windows "attributes that change" 1 "$p" attributes-change
    windows "modules without variables" 1 "$p" plain-modules
    windows "a module loaded" 1 "$p" closed-by module
    windows "a module with a variable" 1 "$p" new-variable
    windows "functions of libraries" 1 "$p" libraries
    # The first launches of modules bring variables along.
    KPROF_CACHE_CONTROL=none windows "first launches of modules" 1 "$p" modules
    # The second and the third bring two variables each: copied as they are launched, in the rehearsal and in each pass.
    # Two copies are waited for at once, as each launch of the rehearsal is; at the end of each repetition a stream is asked.
    expect "first launches of modules: copies" "$(calls cuMemcpyDtoDAsync_v2)" $((2 * 2 * (PASSES + 2)))
    expect "first launches of modules: waits" "$(calls cuStreamQuery)" $((3 * (PASSES + 2) + 8))
    KPROF_LAUNCH_SKIP=3 unprofiled=3 windows "modules launched of before" 1 "$p" modules
    KPROF_LAUNCH_SKIP=2 unprofiled=2 windows "modules launched of before, but one" 1 "$p" modules
    KPROF_LAUNCH_SKIP=1 unprofiled=1 windows "modules launched of before, but two" 1 "$p" modules
    windows "graphs that come and go" 1 "$p" graphs-made
    windows "textures" 1 "$p" textures
    windows "surfaces" 1 "$p" surfaces
    windows "new memory of rows" 1 "$p" pitched
    windows "new pinned memory" 1 "$p" pinned-fresh
    windows "pinned memory freed" 1 "$p" pinned-freed
    windows "modules unloaded" 1 "$p" unloads
    windows "settings of a pool" 1 "$p" pool-settings
    windows "caches of kernels to come" 1 "$p" caches
    windows "code that is linked" 1 "$p" links
    windows "refusals" 1 "$p" refusals
    empty=1 windows "first launch refused" 1 "$p" refused-first
}

# What kprof wrote to memory of its own is not in the program's next allocations.
unwritten() {
    export FAKE_HANDS_ON=1
    for save in all changes; do
        KPROF_SAVE=$save both "unwritten memory, save $save" "$p" fresh
        expect "unwritten memory, save $save: passes" "$(passes)" $PASSES
    done
    KPROF_SET=full both "unwritten memory, full" "$p" fresh
    KPROF_SET=quick both "unwritten memory, quick" "$p" fresh
    KPROF_REPLAY_MODE=rotate both "unwritten memory, turns" "$p" fresh
    KPROF_TIMELINE=on both "unwritten memory, timeline" "$p" fresh
    KPROF_WINDOW_READS=on both "unwritten memory, a read" "$p" fresh
}

# Queries of memory are answered as without the window, which stays where the answer is known.
asks() {
    for save in all changes; do
        export KPROF_SAVE=$save FAKE_SAVE_TAKES=6291456 FAKE_FREES_TWICE=1 FAKE_PROFILER_TAKES=77594624
        both "free memory, save $save" "$p" asks-free
        expect "free memory, save $save: passes" "$(passes)" $PASSES
        both "free memory beside maps, save $save" "$p" asks-maps
        expect "free memory beside maps, save $save: passes" "$(passes)" $PASSES
        both "free memory in parts of blocks, save $save" "$p" asks-free-parts
        expect "free memory in parts of blocks, save $save: passes" "$(passes)" $((4 * PASSES))
        FAKE_DEVICES=2 both "free memory of another device, save $save" "$p" asks-free-elsewhere
        expect "free memory of another device, save $save: passes" "$(passes)" $((2 * PASSES))
        both "freed memory, save $save" "$p" asks-freed
        expect "freed memory, save $save: passes" "$(passes)" $PASSES
        both "memory of a pool, save $save" "$p" asks-pool
        expect "memory of a pool, save $save: passes" "$(passes)" $((3 * PASSES))
        both "what a pool reserves, save $save" "$p" asks-pool-reserve
        # What the profiler takes is free for the program: its allocations get it, also with a window open.
        both "all that is free, save $save" "$p" asks-between
        KPROF_REPLAY_MODE=rotate both "all that is free, rotation, save $save" "$p" asks-between
        # The profiler is disabled behind each window, and leaves something behind when it is first.
        for takes in 77594624:4194304 4194304:4194304; do
            KPROF_SECTION=SourceCounters FAKE_PROFILER_TAKES=$takes both "what stays, $takes, save $save" "$p" asks-free-parts
        done
        unset KPROF_SAVE FAKE_SAVE_TAKES FAKE_FREES_TWICE FAKE_PROFILER_TAKES
    done
}

# What closes it.
closes_it() {
    for what in dtoh dtoh-async capture; do
        windows "closed by $what" 2 "$p" closed-by $what
    done
    windows "a variable of a module that kernels of others reach" 2 "$p" variable-elsewhere
    windows "memory freed between launches" 1 "$p" frees
    # What is mapped had contents before, or other ways lead to it; access is another one than before; memory goes.
    for what in again twice before unmapped unused; do
        windows "a map of memory, $what" 2 "$p" map-by $what
    done
    both "a map of memory, captured" "$p" map-by captured
    for what in refused rights; do
        windows "a map of memory, $what" 3 "$p" map-by $what
    done
    # The driver refuses to free what is no allocation, and all while a stream is captured.
    for what in mapped pinned captured captured-later; do
        both "a free that is refused, $what" "$p" frees-refused $what
    done
    # Each further allocation needs what the window keeps.
    FAKE_MEMORY=1073741824 KPROF_SAVE=all windows "most of the memory freed" 4 "$p" frees-most
    windows "the cache of a kernel before" 2 "$p" caches-again
    # A window keeps 256 MiB of freed host memory.
    windows "much pinned memory freed" 2 "$p" pinned-large
    # No room is left to sweep a cache.
    KPROF_CACHE_CONTROL=none FAKE_MEMORY=268435456 KPROF_SAVE=all windows "most of the memory mapped" 4 "$p" maps-most
    KPROF_GRAPH_PROFILING=graph windows "whole graphs between kernels" 8 "$p" graphs
    windows "too much shared memory" 1 "$p" shared-limit

    windows "copies to host memory" 9 "$p" copies-out
    closers "cuMemcpyDtoDAsync_v2 (4), cuMemcpyAsync (4), cuMemcpyDtoH_v2 (1)"
    windows "memory that a replay would rewind" 9 "$p" registered
    closers "pinned memory that a replay would restore (8), cuMemcpyDtoH_v2 (1)"
    windows "calls that have doors of their own" 5 "$p" closed-at-doors
    closers "cuMemHostRegister (2), cuMemHostUnregister (2), cuMemcpyDtoH_v2 (1)"
    KPROF_WINDOW=1 windows "windows of one" 16 "$p" copies-out
    closers "" # as was asked for
    windows "a window open for long" 2 "$p" old
    windows "a context reset" 2 "$p" reset
    both "a kernel that fails" "$p" fault
    expect "a kernel that fails: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
}

# Launches that are not selected.
unselected() {
    # Up to 16 of them between two that are selected take part, more close the window.
    export KPROF_KERNEL_NAME=append
    unprofiled=$((5 * 16)) windows "16 unselected in between" 1 "$p" mixed 16
    unprofiled=$((5 * 17)) windows "17 unselected in between" 5 "$p" mixed 17
    unset KPROF_KERNEL_NAME
}

# Kernels that print.
prints() {
    both "kernels that print" "$p" prints 10
    expect "kernels that print: passes" "$(passes)" $PASSES
    expect "kernels that print: lines" "$(grep -c '^kernel prints' "$tmp/kprof.out")" 10
}

# Threads.
threads() {
    for window in $(sanitised || echo 1) $(for round in $(rounds 3); do echo 7 512; done); do # 160 series of passes with windows of one: a busy machine takes long
        limit=120 KPROF_WINDOW=$window both "threads, windows of $window" "$p" threads
        expect "threads, windows of $window: profiled" "$(account profiled)" "$(launches)"
    done
    windows "threads that map memory" 1 "$p" maps-threads
    both "a thread that waits" "$p" waiting-thread
    expect "a thread that waits: seen" "$(account seen)" "$(launches)"
}

# Kernels that wait.
waiting() {
    for what in waits-for-host waits-for-registered waits-for-managed waits-for-launch waits-long; do
        limit=60 both "$what" "$p" $what
        expect "$what: seen" "$(account seen)" "$(launches)"
        expect "$what: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    done
    # What the profiler takes is given back to a program that lacks it, but not waited for without end.
    FAKE_PROFILER_TAKES=77594624 limit=60 both "too little memory beside a kernel that waits" "$p" waits-and-fails
    expect "too little memory beside a kernel that waits: seen" "$(account seen)" "$(launches)"
    # One that a later launch ends: the rehearsal waits 0.1 s more than twice what the window took, here twice. Two waits
    # of the longest kind would be 4 s.
    KPROF_DEBUG=replay both "the rehearsal's patience" "$p" waits-for-launch
    rehearsal=$(sed -n 's/.* 0 passes, ms: .*rehearsals \([0-9]*\).*/\1/p' "$tmp/kprof.err")
    [ "${rehearsal:-0}" -ge 200 ] && [ "$rehearsal" -lt 4000 ] || fail "the rehearsal's patience: ${rehearsal:-no} ms"
}

# Memory that others see.
seen_by_others() {
    export KPROF_FALLBACK=quick
    windows "managed memory" 8 "$p" managed
    windows "registered memory" 9 "$p" registered # the last two after its end
    # Two launches before; from then on a replay would rewind what others write: each is counted as it comes.
    both "exported memory" "$p" exported
    expect "exported memory: profiled" "$(account profiled)" "$(launches)"
    expect "exported memory: saves" "$(calls cuptiCheckpointSave)" 1
    expect "exported memory: passes" "$(passes)" $((PASSES + 6))
    grep -q 'shared with other processes' "$tmp/report" || { fail "exported memory: no note in the report"; show; }
    # Registered memory in which another process writes. Before and after, windows of two launches; in between, the first
    # of them that can reach host memory is watched only.
    for how in anonymous memfd; do
        both "registered, $how" "$programs/p_shared" $how
        expect "registered, $how: profiled" "$(account profiled)" $(($(launches) - 1))
        expect "registered, $how: saves" "$(calls cuptiCheckpointSave)" 2
        expect "registered, $how: passes" "$(passes)" $((2 * PASSES + 7))
        expect "registered, $how: notes" "$(grep -c 'other processes can map is registered' "$tmp/report")" 7
    done
    for how in read-only private; do
        both "registered, $how" "$programs/p_shared" $how
        expect "registered, $how: profiled" "$(account profiled)" "$(launches)"
        expect "registered, $how: notes" "$(grep -c 'is registered' "$tmp/report")" 0
    done
    unset KPROF_FALLBACK
}

# Pinned memory: the host's values stay.
pinned() {
    both "pinned memory" "$programs/p_pinned"
    expect "pinned memory: profiled" "$(account profiled)" "$(launches)"
    # What their arguments tell is no news.
    expect "pinned memory: told" "$(grep -c 'writes host memory that no argument' "$tmp/report")" 0
    # A kernel that leaves pinned memory alone shares windows.
    windows "pinned memory that is read" 1 "$p" pinned-read
    # The host writes it between launches: each of these closes the window of the one before.
    windows "pinned memory that the host changes" 8 "$p" pinned-changed
    # The kernel writes it after all: from then on its launches have windows of their own.
    windows "pinned memory that is written after all" 13 "$p" pinned-written
}

# Windows with reads are saved twice: before, and as the program's own execution left them.
read_windows() { # NAME WINDOWS PASSES COMMAND...
    name=$1
    n=$2
    passes=$3
    shift 3
    both "$name" "$@"
    expect "$name: saves" "$(calls cuptiCheckpointSave)" "$((2 * n))"
    expect "$name: passes" "$(passes)" "$passes"
    expect "$name: launches seen" "$(account seen)" "$(launches)"
    expect "$name: launches profiled" "$(account profiled)" "$(($(launches) - ${unprofiled:-0}))"
}

# What the host reads, which the program goes on from.
reads() {
    export KPROF_WINDOW_READS=on
    # At its first visit each of four sites closes a window, which is of one launch but for the last.
    read_windows "reads" 5 $((5 * PASSES)) "$p" reads 10
    # Then one of 8 reads a site, as one was equal, and one of 72.
    read_windows "reads of long" 7 $((7 * PASSES)) "$p" reads 100
    # Another value in the fourth repetition, once; from then on its site closes windows, before it is read.
    both "reads that differ once" "$p" reads-differ-once 10
    expect "reads that differ once: saves" "$(calls cuptiCheckpointSave)" 13
    expect "reads that differ once: without counters" "$(grep -c 'value that differed in a repetition' "$tmp/report")" 0
    both "reads that differ always" "$p" reads-differ-always 10
    expect "reads that differ always: saves" "$(calls cuptiCheckpointSave)" 13
    # Trusted, and then different: the repetition ends before the launch that would be out of bounds. What was launched
    # before that is counted; what comes after has run.
    # However many come after, the second window holds 8 reads.
    for rounds in $(points 10 30); do
        both "reads that bound a loop" "$p" reads-bound $rounds
        expect "reads that bound a loop: saves" "$(calls cuptiCheckpointSave)" $((rounds - 3))
        expect "reads that bound a loop: profiled" "$(account profiled)" $((3 * rounds - 18))
        expect "reads that bound a loop: without counters" \
            "$(grep -c 'value that differed in a repetition' "$tmp/report")" 18
    done
    # The same where memory is new in the window: it is as the program's own execution left it.
    for new in reads-new reads-mapped; do
        for save in all changes; do
            KPROF_SAVE=$save both "$new, save $save" "$p" $new 10
            expect "$new, save $save: seen" "$(account seen)" "$(launches)"
            expect "$new, save $save: passes" "$(passes)" $((4 * PASSES))
        done
    done
    read_windows "reads that are copied back" 3 $((3 * PASSES)) "$p" reads-back 10
    read_windows "reads of rows" 3 $((3 * PASSES)) "$p" reads-rows 10
    read_windows "reads of several streams" 3 $((3 * PASSES)) "$p" reads-streams 10
    # A kernel waits for what the program does with a value: the window goes on, and is reported without counters.
    limit=60 both "reads beside a kernel that waits" "$p" reads-progress
    expect "reads beside a kernel that waits: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    # The device has no room for a second copy.
    FAKE_MEMORY=1073741824 both "reads without room" "$p" reads 10
    expect "reads without room: saves" "$(calls cuptiCheckpointSave)" 30
    grep -q "no room for a second copy" "$tmp/report" "$tmp/kprof.err" || { fail "reads without room: no word"; show; }
    # Half of a small device is never free: all of a save goes to the host.
    FAKE_MEMORY=104857600 KPROF_SAVE_TIME=0.000001 both "a save that takes long" "$p" many 20
    expect "a save that takes long: saves" "$(calls cuptiCheckpointSave)" 0
    grep -q '20 launches of 1 kernel' "$tmp/report" || { fail "a save that takes long: launches"; show; }
    grep -q "^==WARNING== saving the .* do not fit into the rest of the device: launches are not replayed (save-time" "$tmp/report" ||
        { fail "a save that takes long: no word"; show; }
    FAKE_MEMORY=104857600 KPROF_SAVE_TIME=0 both "a save that may take long" "$p" many 20
    expect "a save that may take long: saves" "$(calls cuptiCheckpointSave)" 1
    # There was room when the program read, but not when the window closed. The first window held one launch.
    # It fills a gigabyte, which takes a second: once is enough for all builds.
    if ! sanitised; then
        # When the memory is freed, launches are replayed again.
        FAKE_MEMORY=536870912 KPROF_FALLBACK=quick KPROF_SAVE_TIME=0.000001 both "a save that took long" "$p" frees-most
        expect "a save that took long: replayed" "$(grep -c 'Profiling "append" - [0-9]: 9 passes' "$tmp/report")" 4
        limit=90 FAKE_MEMORY=2147483648 both "reads, then no room" "$p" reads-then-fills
        expect "reads, then no room: saves" "$(calls cuptiCheckpointSave)" 3
        expect "reads, then no room: profiled" "$(account profiled)" 1
        grep -q 'no room for a second copy of it: not replayed' "$tmp/report" || { fail "reads, then no room: no note"; show; }
    fi
    # Memory that a replay rewinds is put back as the program's own execution left it.
    read_windows "registered memory" 2 $((2 * PASSES)) "$p" registered
    read_windows "reads into registered memory" 6 $((6 * PASSES)) "$p" registered-reads 10
    # The last window reads 96 MiB; the option takes it back to what is always logged.
    read_windows "large reads" 3 $((3 * PASSES)) "$p" registered-large 6
    KPROF_WINDOW_MEMORY=64M read_windows "large reads, little memory" 4 $((4 * PASSES)) "$p" registered-large 6
    FAKE_MEMORY=1073741824 windows "registered memory without room" 9 "$p" registered
    closers "pinned memory that a replay would restore (8), cuMemcpyDtoH_v2 (1)"
    for window in $(points 512 7); do
        limit=120 KPROF_WINDOW=$window both "reads of threads, windows of $window" "$p" threads
        expect "reads of threads, windows of $window: profiled" "$(account profiled)" "$(launches)"
    done
    export KPROF_WINDOW_READS=off
}

# What is hard to repeat: the program's results stay, and so do the counters.
between() {
    b=$programs/p_between
    # Set again as the program has set it, in order, up or down.
    windows "a limit that is lowered and raised" 2 "$b" limit-up-and-down
    # The window that holds the variables of one module must not count as that of the other's.
    windows "two modules of one image" 2 "$b" twin-modules
    # A thread is in a call that ends when another one has launched something.
    limit=60 both "a call that waits for another thread's" "$b" memset-waits
    expect "a call that waits: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    # Its window is left, and what that held is given back later.
    both "a context that comes and goes" "$b" context-between
    export KPROF_WINDOW_READS=on
    limit=60 both "a read that waits for another thread" "$b" read-waits
    expect "a read that waits: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    # What is copied back from pinned memory has to arrive there first. Each of two sites closes a window at its first
    # read; the third window ends at the 8th read of one site, as one was equal before, and the fourth with the program.
    read_windows "results that come back" 4 $((4 * PASSES)) "$b" back-and-forth
    export KPROF_WINDOW_READS=off
}

# One pass: nothing is saved, and only what may make a launch wait closes it.
quick() {
    export KPROF_SET=quick
    both "quick" "$p" many 600
    expect "quick: passes" "$(passes)" 3
    expect "quick: saves" "$(calls cuptiCheckpointSave)" 0
    expect "quick: profiled" "$(account profiled)" 600
    for what in dtoh dtoh-async alloc alloc-async free module stream event capture host-function batch; do
        both "quick, $what" "$p" closed-by $what
        case $what in capture | host-function | batch) windows=2 ;; *) windows=1 ;; esac
        expect "quick, $what: passes" "$(passes)" $windows
        expect "quick, $what: saves" "$(calls cuptiCheckpointSave)" 0
        expect "quick, $what: profiled" "$(account profiled)" 6
    done
    for what in allocates maps memsets copies-in copies-out copies-within events refusals managed registered prints libraries exported; do
        # The first launch of a kernel that can reach host memory is only watched.
        [ "$what" = managed ] && unprofiled=2 || unprofiled=0
        both "quick, $what" "$p" "$what"
        expect "quick, $what: passes" "$(passes)" 1
        expect "quick, $what: saves" "$(calls cuptiCheckpointSave)" 0
        expect "quick, $what: profiled" "$(account profiled)" "$(($(launches) - unprofiled))"
    done
    unprofiled=0
    unprofiled=4
    both "quick, kernels of a communication library" "$p" waits-outside
    expect "quick, communication: profiled" "$(account profiled)" "$(($(launches) - unprofiled))"
    unprofiled=0
    both "quick, threads" "$p" threads
    expect "quick, threads: profiled" "$(account profiled)" "$(launches)"
    for what in waits-for-host waits-for-registered; do
        limit=60 both "quick, $what" "$p" $what
        expect "quick, $what: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
    done
    unset KPROF_SET
}

# Kernels that wait for other processes are let through, where everything else is replayed.
outside() {
    unprofiled=4
    both "kernels of a communication library" "$p" waits-outside
    expect "communication: profiled" "$(account profiled)" 4
    expect "communication: skipped" "$(account skipped)" 4
    expect "communication: saves" "$(calls cuptiCheckpointSave)" 4
    expect "communication: passes" "$(passes)" $((4 * PASSES))
    grep -q 'not replayed: 4' "$tmp/report" || { fail "communication: no word in the report"; show; }
    unprofiled=0
}

# Ends with a window open.
ends() {
    for what in return exit _exit quick_exit; do
        both "end by $what" "$p" end-by $what
        expect "end by $what: accounted" "$(($(account profiled) + $(account skipped)))" 3
    done
    both "fork" "$p" forks
    expect "fork: profiled" "$(account profiled)" 4
    for where in synchronise free; do
        limit=60 both "ended by a signal's handler in $where" "$p" ended-in $where signal
        expect "ended by a signal's handler in $where: code" "$kprof_code" 9
        expect "ended by a signal's handler in $where: seen" "$(account seen)" 3
    done
    limit=60 both "ended beside a kernel that waits" "$p" left-waiting
    expect "ended beside a kernel that waits: accounted" "$(($(account profiled) + $(account skipped)))" 3
    # Another thread's exit() while a kernel does not end.
    limit=60 both "ended by another thread" "$p" ended-in synchronise exit
    expect "ended by another thread: seen" "$(account seen)" 3
}

# Under ASan those that differ in what kprof's own code does; the rest, which differ in what the program calls, would take
# minutes there.
these="waiting closes_it asks unwritten ends quick how_many threads reads leaves_it_open seen_by_others pinned unselected prints outside between"
[ -n "${KP_TEST_PRELOAD_FIRST:-}" ] && these="waiting ends threads reads seen_by_others"
for part in $these; do
    beside "$part"
done
finish
