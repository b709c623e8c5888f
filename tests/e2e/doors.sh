#!/bin/sh
# Every way of reaching the driver: all launches are seen and reported, each once, and the program is not changed.
. "$(dirname "$0")/e2e.inc"
one_thread

# graphs.sh has them node by node
export KPROF_GRAPH_PROFILING=graph

# Launches that reach the driver and must not be replayed: one that spans devices, graphs with a host function.
not_replayed() { # PROGRAM
    case $1 in
    p_legacy) echo 1 ;;
    p_graph) echo 2 ;;
    *) echo 0 ;;
    esac
}

# A launch that the driver refuses (one is in p_extra) is no launch: it is neither seen nor skipped.
for p in p_direct p_dlopen p_dlvsym p_getproc p_next p_extra p_legacy p_graph p_many p_cudart; do
    both $p "$programs/$p"
    expect "$p: launches seen" "$(account seen)" "$(launches)"
    expect "$p: launches skipped" "$(account skipped)" "$(not_replayed $p)"
    expect "$p: launches profiled" "$(account profiled)" $(($(launches) - $(not_replayed $p)))
    expect "$p: launches reported" "$(reported)" "$(account profiled)"
done

# Launches into a capturing stream do not run: only those outside and the graph's are seen.
both p_capture "$programs/p_capture"
expect "p_capture: launches seen" "$(account seen)" "$(launches)"

# Another interposer after the profiler: what it counts is more, as each pass is a launch, but nothing else changes.
plain env LD_PRELOAD="$programs/next_shim" "$programs/p_direct"
E2E_PRELOAD_LAST=$programs/next_shim profiled "$programs/p_direct"
for out in plain kprof; do
    grep -v '^next_shim' "$tmp/$out.out" >"$tmp/$out.cut"
    mv "$tmp/$out.cut" "$tmp/$out.out"
done
same "with a shim"
expect "with a shim: launches seen" "$(account seen)" "$(launches)"

finish
