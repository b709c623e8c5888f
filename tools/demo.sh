#!/bin/sh
# Usage: NVCC=path CUPTI_LIBDIR=folder demo.sh BUILD
# Profiles the example on this machine's GPU, or prints the report of a session that was recorded on one.
set -eu
build=$1
session=examples/h200-demo.kprof

no_gpu_because=
if ! nvidia-smi -L >/dev/null 2>&1 && [ ! -e /dev/nvidia0 ]; then
    no_gpu_because='this machine has no NVIDIA GPU'
elif [ ! -x "${NVCC:-}" ]; then
    no_gpu_because='there is a GPU, but no nvcc to build the example with'
fi

# Further commands are printed after the report, which is longer than a screen.
if [ -n "$no_gpu_because" ]; then
    echo "demo: $no_gpu_because; this is the detailed set of a session recorded on an H200"
    "$build/kprof" report --set detailed "$session"
    echo "demo: more of this session:"
    echo "demo: the summary alone: $build/kprof report --page summary $session"
    echo "demo: all sections, with charts and tables: $build/kprof report --print-details all $session"
    echo "demo: source lines and instructions: $build/kprof report --page source $session"
    echo "demo: utilization over time: $build/kprof report --page pm $session"
    echo "demo: one file for a browser: $build/kprof report --html demo.html $session"
    exit
fi

mkdir -p "$build/examples"
for source in examples/*.cu; do
    program=$build/examples/$(basename "$source" .cu)
    # -arch=native: the example only needs to run here.
    "$NVCC" -O2 -lineinfo -arch=native -o "$program" "$source"
    echo "demo: KPROF_SET=${KPROF_SET:-detailed} LD_PRELOAD=$build/libkprof.so $program"
    KPROF_SET=${KPROF_SET:-detailed} KPROF_CUPTI_DIR=${KPROF_CUPTI_DIR:-$CUPTI_LIBDIR} \
        LD_PRELOAD=$PWD/$build/libkprof.so "$program"
done
