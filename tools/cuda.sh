#!/bin/sh
# Usage: cuda.sh OUTPUT.mk "ROOT ..."
# Writes the locations of the CUDA headers, CUPTI's libraries and nvcc: those of the first toolkit at ROOT that has
# everything needed, or else of NVIDIA's wheels, which pip fetches into build/deps.
set -eu

output=$1
roots=$2
build=$(dirname "$output")
deps=$build/deps

# Everything from one place: CUPTI's headers and those of the driver must be of the same release.
headers='cuda.h cudaTypedefs.h cuda_runtime_api.h cudaProfiler.h crt/host_defines.h
         cupti_range_profiler.h cupti_profiler_host.h cupti_checkpoint.h nvperf_cuda_host.h'
libraries='libcupti.so.13 libnvperf_host.so'
wheels='nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88
        nvidia-cuda-profiler-api==13.0.85 nvidia-nvtx==13.0.85'

include_dirs() { # of a toolkit, existing ones
    for dir in "$1/include" "$1/targets/x86_64-linux/include" "$1/extras/CUPTI/include"; do
        [ -d "$dir" ] && echo "$dir"
    done
    return 0
}

library_dirs() {
    for dir in "$1/lib64" "$1/lib" "$1/targets/x86_64-linux/lib" "$1/extras/CUPTI/lib64"; do
        [ -d "$dir" ] && echo "$dir"
    done
    return 0
}

# Prints the first directory of the remaining arguments that has the file, or nothing.
dir_with() {
    file=$1
    shift
    for dir in "$@"; do
        [ -e "$dir/$file" ] && echo "$dir" && return 0
    done
    return 0
}

# Prints what a toolkit lacks, or nothing.
missing_in() {
    for header in $headers; do
        [ -n "$(dir_with "$header" $(include_dirs "$1"))" ] || echo "$header"
    done
    for library in $libraries; do
        [ -n "$(dir_with "$library" $(library_dirs "$1"))" ] || echo "$library"
    done
}

# One line: what failed, and the workaround.
give_up() {
    echo "cuda: no toolkit of CUDA 13 with CUPTI, and $*: set CUDA_HOME to such a toolkit" >&2
    exit 1
}

# A pip that may download, even if the distribution does not let it install.
find_pip() {
    for python in python3 "$build/venv/bin/python"; do
        if "$python" -m pip --version >/dev/null 2>&1; then
            echo "$python -m pip"
            return
        fi
    done
    if python3 -m venv "$build/venv" >/dev/null 2>&1; then
        echo "$build/venv/bin/python -m pip"
        return
    fi
    give_up "no pip to fetch NVIDIA's wheels with ('make setup' installs it)"
}

fetch_wheels() {
    stamp=$deps/$(echo $wheels | cksum | cut -d' ' -f1).complete
    if [ ! -e "$stamp" ]; then
        echo "cuda: fetching NVIDIA's wheels into $deps ($(echo $wheels))" >&2
        pip=$(find_pip)
        rm -rf "$deps"
        mkdir -p "$deps/wheels"
        $pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$deps/wheels" $wheels \
            > "$deps/pip.log" 2>&1 || give_up "pip cannot fetch NVIDIA's wheels ($(sed -n 's/^ERROR: //p' "$deps/pip.log" | tail -n 1))"
        for wheel in "$deps"/wheels/*.whl; do
            python3 -m zipfile -e "$wheel" "$deps"
        done
        rm -r "$deps/wheels"
        : > "$stamp"
    fi
    echo "$PWD/$deps/nvidia/cu13"
}

found=
for root in $roots; do
    [ -d "$root" ] || continue
    missing=$(missing_in "$root" | tr '\n' ' ')
    if [ -z "$missing" ]; then
        found=$root
        break
    fi
    echo "cuda: $root is not used, it lacks: $missing" >&2
done
[ -n "$found" ] || found=$(fetch_wheels)

missing=$(missing_in "$found" | tr '\n' ' ')
if [ -n "$missing" ]; then
    echo "cuda: $found lacks: $missing" >&2
    exit 1
fi

nvcc=$(command -v nvcc || true)
[ -x "$found/bin/nvcc" ] && nvcc=$found/bin/nvcc

mkdir -p "$build"
{
    echo "CUDA_SEARCHED := $roots"
    echo "CUDA_CPPFLAGS := $(include_dirs "$found" | sed 's/^/-isystem /' | tr '\n' ' ')"
    echo "CUPTI_LIBDIR := $(dir_with libcupti.so.13 $(library_dirs "$found"))"
    echo "NVCC := $nvcc"
} > "$output"
echo "cuda: headers and CUPTI from $found"
