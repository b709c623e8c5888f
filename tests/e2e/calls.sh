#!/bin/sh
# A failed call of kprof's own does not mislead it: see calls.py. `E2E_RUNS=0 tests/e2e/calls.py FOLDER` tries every
# point of every case. Here: where memory is, with a save by change; what kprof asks of graphs, and its own captures and
# instantiations, which a later change of the graph may not need; and any call of a case drawn at random.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }
release_only "a campaign of the release build"

export E2E_JOBS=2
succeeds campaign python3 "$source/tests/e2e/calls.py" "$tmp" \
    'save-kinds=4=cuMemGet|cuPointer|cuMemUnmap' \
    'reads=4=cuCtxGetCurrent|cuCtxSynchronize' \
    'maps=2=cuMemcpyDtoDAsync|cuMemUnmap|cuMemAlloc' \
    'range-attributes=2=cuEventCreate|cuFuncGet' \
    'graphmem-set=2=cuGraph' \
    'nodes=6=cuGraph|Capture|cuStreamCreate' \
    'nodes-quick=3=cuEventRecord|cuMemsetD32|cuMemcpy3D|cuLaunchKernel' \
    any=1
finish
