#!/bin/sh
# CUDA graphs node by node: each kernel of a graph is a launch of the report, and the program's own execution is the
# graph's.
. "$(dirname "$0")/e2e.inc"
one_thread

# A read would add a copy of the memory.
export KPROF_WINDOW_READS=off

p=$programs/p_nodes
KERNELS=23 # 3 launches, and 7 graphs of three kernels, one of them with one disabled

# How many rows the report has of a node, by its grid.
rows() { # NODE GRID
    grep -c "^ *increment ($2, 1, 1)x(32, 1, 1), .*, Graph 1, Node $1\$" "$tmp/report"
}

# Graph launches that reached the driver; those of one node are ours, which a record tells the configuration of.
graphs() {
    grep '^graph ' "$tmp/kprof.log" | grep -vc ' nodes=1 '
}

by_node() { # NAME
    both "$1" "$p"
    expect "$1: seen" "$(account seen)" $KERNELS
    expect "$1: profiled" "$(account profiled)" $KERNELS
    expect "$1: the first node, as made" "$(rows 0 2)" 3
    expect "$1: the first node, changed" "$(rows 0 1)" 3
    expect "$1: the child's first node" "$(rows 4 1)" 7
    expect "$1: the child's second node" "$(rows 5 2)" 7
    expect "$1: notes" "$(grep -c 'Note:' "$tmp/report")" 0
}

export KPROF_EXPORT=$tmp/nodes.kprof KPROF_FORCE_OVERWRITE=yes
by_node "one by one"
unset KPROF_EXPORT KPROF_FORCE_OVERWRITE
# The program's own execution alone is of graphs. What changes between them closes no window.
expect "one by one: graphs" "$(graphs)" 7
expect "one by one: windows" "$(awk '$1 == "calls" && $3 == "cuptiCheckpointSave" { n += $4 } END { print n + 0 }' \
    "$tmp/kprof.log")" 2

"$build/kprof" report --json "$tmp/nodes.kprof" >"$tmp/json"
expect "one by one: nodes in the JSON" "$(grep -c '"node": 4' "$tmp/json")" 7
expect "one by one: rows of the stored session" "$("$build/kprof" report "$tmp/nodes.kprof" | grep -c ', Graph 1, Node 5$')" 7

# More kernels than a window has room for, and launches that are counted as they come: no graph is launched.
KPROF_WINDOW=2 by_node "windows of two"
expect "windows of two: graphs" "$(graphs)" 1 # with the disabled node it fits
KPROF_SET=quick by_node "counted"
expect "counted: graphs" "$(graphs)" 0
KPROF_SECTION=LaunchStats by_node "no counters"
expect "no counters: graphs" "$(graphs)" 7

# A graph that the device can launch, too, runs as the program makes it.
for set in basic quick; do
    KPROF_SET=$set both "by the device, $set" "$p" device
    expect "by the device, $set: graphs" "$(graphs)" 7
    expect "by the device, $set: profiled" "$(account profiled)" 3
    expect "by the device, $set: skipped" "$(account skipped)" 7
    grep -q 'graph that the device can launch, not counted: 7' "$tmp/report" || { fail "by the device, $set: no reason"; show; }
done

# Filters look at kernels.
KPROF_LAUNCH_SKIP=2 KPROF_LAUNCH_COUNT=3 both "three of them" "$p"
expect "three of them: profiled" "$(account profiled)" 3
expect "three of them: seen" "$(account seen)" $KERNELS
# CUPTI's records of plain launches have the configuration of another one, once a graph was instantiated.
configs() {
    echo $(sed -n 's/^ *Shared Memory Configuration Size  *//p' "$tmp/report" | sed 's/Kbyte *//')
}
# Launches of the driver in graphs, of which the program makes one.
in_graphs() {
    grep -c '^launch .* api=cuGraphLaunch' "$tmp/kprof.log"
}
KPROF_METRICS=gpu__time_duration.sum both "no configurations" "$programs/p_configs"
few=$(in_graphs)
both "configurations" "$programs/p_configs"
expect "configurations" "$(configs)" "32.77 65.54 65.54 65.54 32.77"
expect "configurations: launches in graphs" "$(in_graphs)" $((few + 1)) # the plain launches share its configuration
KPROF_LAUNCH_SKIP=1 both "configurations, the first skipped" "$programs/p_configs"
expect "configurations, the first skipped" "$(configs)" "65.54 65.54 65.54 32.77"
FAKE_FAIL=cuptiDeviceGetChipName:35 both "configurations of launches that run once" "$programs/p_configs"
expect "configurations of launches that run once" "$(configs)" "32.77 (!) n/a (!) n/a (!) n/a 32.77"
expect "configurations of launches that run once: why" "$(grep -c 'after a graph was instantiated' "$tmp/report")" 6
# A graph that the driver does not take leaves its launch without the configuration, and with its counters.
for call in cuStreamBeginCapture_v2:1:2 cuStreamEndCapture:1:2 cuGraphInstantiateWithFlags:1:2 cuGraphLaunch:1:2; do
    FAKE_FAIL=$call+ profiled "$programs/p_configs"
    plain "$programs/p_configs"
    same "configurations, $call"
    expect "configurations, $call: profiled" "$(account profiled)" 5
    expect "configurations, $call: told" "$(configs)" "32.77 (!) n/a (!) n/a (!) n/a 32.77"
done
KPROF_KERNEL_NAME=other both "another name" "$p"
expect "another name: profiled" "$(account profiled)" 0
expect "another name: seen" "$(account seen)" $KERNELS

# As wholes.
KPROF_GRAPH_PROFILING=graph both "as wholes" "$p"
expect "as wholes: profiled" "$(account profiled)" 10
expect "as wholes: rows" "$(grep -c '^ *CUDA graph of 3 kernels, 1 copy, 1 memset, 1 event record,' "$tmp/report")" 7

# Copies from the host and back, and a host function at the end; the program goes on from what it reads.
saves() {
    awk '$1 == "calls" && $3 == "cuptiCheckpointSave" { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}
export KPROF_WINDOW_READS=on
both "by the host" "$p" increment
expect "by the host: profiled" "$(account profiled)" 6
expect "by the host: rows" "$(grep -c ', Graph 1, Node 1$' "$tmp/report")" 6
expect "by the host: graphs" "$(graphs)" 6
expect "by the host: saves" "$(saves)" 6 # the first read of each place closes a window; two copies each
# A host function may change what was copied: it is not compared.
both "a host function at the end" "$p" increment calls
expect "a host function at the end: profiled" "$(account profiled)" 6
expect "a host function at the end: graphs" "$(graphs)" 6
# Another value in each execution: the program keeps its own.
both "it varies" "$p" varies
expect "it varies: seen" "$(account seen)" 6
expect "it varies: graphs" "$(graphs)" 6
# Registered memory keeps what the host writes there; without room for that each graph has a window of its own.
both "beside registered memory" "$p" registered
expect "beside registered memory: profiled" "$(account profiled)" 12
expect "beside registered memory: saves" "$(saves)" 2
FAKE_MEMORY=1073741824 both "beside registered memory, no room" "$p" registered
expect "beside registered memory, no room: profiled" "$(account profiled)" 12
expect "beside registered memory, no room: saves" "$(saves)" 4
KPROF_WINDOW_READS=off both "reads close windows" "$p" varies
expect "reads close windows: profiled" "$(account profiled)" 6
KPROF_SET=quick both "by the host, counted" "$p" increment calls
expect "by the host, counted: profiled" "$(account profiled)" 6
expect "by the host, counted: graphs" "$(graphs)" 0

# What the driver refuses is no launch: not a graph's kernels, not one that is a whole.
KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=2 both "refused" "$programs/p_window" refused-graphs
expect "refused: seen" "$(account seen)" 6
expect "refused: profiled" "$(account profiled)" 2
expect "refused: rows" "$(grep -c ', Graph 1, Node 1$' "$tmp/report") $(grep -c ', Graph 1, Node 0$' "$tmp/report")" "1 1"
KPROF_GRAPH_PROFILING=graph KPROF_LAUNCH_SKIP=2 KPROF_LAUNCH_COUNT=1 both "refused, whole" "$programs/p_window" refused-graphs
expect "refused, whole: seen" "$(account seen)" 3
expect "refused, whole: profiled" "$(account profiled)" 1

# A graph that cannot be taken apart is not told by its kernels where these are chosen by name.
KPROF_KERNEL_NAME=increment both "a host function" "$programs/p_graph"
expect "a host function: profiled" "$(account profiled)" 6

finish
