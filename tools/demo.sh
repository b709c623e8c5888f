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

if [ -n "$no_gpu_because" ]; then
    echo "demo: $no_gpu_because; this is the basic set of a session recorded on an H200. All of it, with charts and tables:"
    echo "demo: $build/kprof report --print-details all $session"
    echo "demo: the hottest lines of four other kernels that were recorded there, with source and instructions:"
    echo "demo: $build/kprof report --page source --source-folders tests/gpu tests/data/h200-source.kprof"
    exec "$build/kprof" report --set basic "$session"
fi

mkdir -p "$build/examples"
for source in examples/*.cu; do
    program=$build/examples/$(basename "$source" .cu)
    # -arch=native: the example needs to run here only.
    "$NVCC" -O2 -lineinfo -arch=native -o "$program" "$source"
    echo "demo: LD_PRELOAD=$build/libkprof.so $program"
    KPROF_CUPTI_DIR=${KPROF_CUPTI_DIR:-$CUPTI_LIBDIR} LD_PRELOAD=$PWD/$build/libkprof.so "$program"
done
