#!/bin/sh
# CUDA graphs that allocate memory: their kernels are launches of the report if the graph's launch leaves the memory
# mapped until all repetitions are over. The fake driver breaks the context of a kernel that finds no memory.
. "$(dirname "$0")/e2e.inc"
one_thread

p=$programs/p_graph_memory

# Rows of the kernels of graphs, and of graphs.
nodes() {
    grep -c ', Graph [0-9]*, Node [0-9]*$' "$tmp/report"
}
wholes() {
    grep -c '^ *CUDA graph of 3 kernels, [01] cop[a-z]*, [12] memset[s]*, 1 memory allocation' "$tmp/report"
}
windows() {
    awk '$1 == "calls" && $3 == "cuptiCheckpointSave" { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}
told() { # REASON
    grep -c "a CUDA graph is one row of the report, not one for each kernel: $1\$" "$tmp/report"
}

apart() { # NAME CASE NODES PLAIN [WINDOWS]
    both "$1" "$p" "$2"
    expect "$1: rows of nodes" "$(nodes)" "$3"
    expect "$1: rows of graphs" "$(wholes)" 0
    expect "$1: profiled" "$(account profiled)" $(($3 + $4))
    expect "$1: notes" "$(grep -c 'Note:' "$tmp/report")" 0
    [ -z "${5:-}" ] || expect "$1: windows" "$(windows)" "$5"
}

whole() { # NAME CASE GRAPHS REASON
    both "$1" "$p" "$2"
    expect "$1: rows of nodes" "$(nodes)" 0
    expect "$1: rows of graphs" "$(wholes)" "$3"
    expect "$1: why" "$(told "$4")" 1
}

# A read would add a copy of the memory.
export KPROF_WINDOW_READS=off

# The same graph several times in a window, beside plain launches.
apart "a graph with memory" paired 9 2 1
apart "captured" from-stream 9 2 2
apart "in child graphs" child 12 1 1
KPROF_SECTION=LaunchStats apart "no counters" paired 9 2
KPROF_LAUNCH_SKIP=2 KPROF_LAUNCH_COUNT=3 both "three of them" "$p" paired
expect "three of them: profiled" "$(account profiled)" 3
KPROF_WINDOW_READS=on apart "with reads" paired 9 2

# What takes the memory from behind its addresses closes the window before.
apart "trimmed" trim 9 3 4
apart "destroyed" destroy 9 3
apart "another graph's launch" two 18 3 6
apart "another graph's instantiation" instantiate 6 1 2
apart "changed" changes 12 0 4
KPROF_KERNEL_NAME=tiny_increment both "another graph's launch, not wanted" "$p" two-kernels
expect "another graph's launch, not wanted: rows of nodes" "$(nodes)" 3

# The driver may take it by itself, where memory is short: then nothing is repeated.
both "memory is short" "$p" full
expect "memory is short: rows of nodes" "$(nodes)" 6
expect "memory is short: profiled" "$(account profiled)" 3
expect "memory is short: why" \
    "$(grep -c 'the driver has given up memory that a graph of the window allocated: not replayed' "$tmp/report")" 4

# The others are one row, with the reason.
allocates="graph that allocates memory"
whole "memory is kept" kept 3 "graph that leaves memory allocated"
whole "freed by the next launch" freed-by-launch 3 "$allocates, which its next launch may free"
whole "freed by another graph" across 6 "graph that leaves memory allocated"
expect "freed by another graph: why, too" "$(told "graph that frees memory of another one")" 1
FAKE_DEVICES=2 whole "on another device" elsewhere 3 "$allocates on another device"
FAKE_DEVICES=2 whole "for several devices" peers 3 "$allocates for the host or several devices"
whole "its memory is set" set 3 "graph with a copy or memset of memory that a graph allocates"
whole "its memory is copied" copied 3 "graph with a copy or memset of memory that a graph allocates"
both "its memory is set later" "$p" set-later
expect "its memory is set later: rows of nodes" "$(nodes)" 3
expect "its memory is set later: rows of graphs" "$(wholes)" 2
whole "a kernel that runs once" once 3 "$allocates, with a kernel that must run once or writes host memory"
KPROF_SET=quick whole "counted" paired 3 "$allocates, where launches are counted as they come"
KPROF_WINDOW=2 whole "more kernels than a window" paired 3 \
    "$allocates, with more kernels than a window has room for"
FAKE_FAIL=cuGraphMemAllocNodeGetParams:1 whole "it cannot be read" paired 3 "graph whose nodes could not be read"
FAKE_FAIL=cuGraphMemFreeNodeGetParams:1 whole "a free cannot be read" paired 3 "graph whose nodes could not be read"
FAKE_FAIL=cuptiCheckpointSave:1+ both "memory cannot be saved" "$p" paired
expect "memory cannot be saved: rows of nodes" "$(nodes)" 0
both "pinned memory" "$p" pinned
both "much pinned memory" "$p" much-pinned
expect "much pinned memory: rows of nodes" "$(nodes)" 0
expect "much pinned memory: why" "$(told "$allocates, with a kernel that can reach host memory")" 1

# A graph as one row is not told by its kernels where these are chosen by name.
KPROF_KERNEL_NAME=increment both "kept, by name" "$p" kept
expect "kept, by name: rows" "$(wholes)" 0
for mode in rotate range; do
    KPROF_REPLAY_MODE=$mode both "mode $mode" "$p" paired
done

finish
