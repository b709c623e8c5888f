#!/usr/bin/env bash
# Programs that were not written for kprof: NVIDIA's cuda-samples, folders 0_Introduction to 4_CUDA_Libraries, each built
# with the static and with the shared CUDA runtime, run plain and profiled, and compared. Prints tables.
#   tests/gpu/real.sh OUT SAMPLES [OPTIONS of real.py...]     SAMPLES: a checkout of cuda-samples; nothing in it is
#   changed but the folder b/, which gets the builds; one that is there already is used. Needs cmake. SAMPLES may be -:
#   the programs of frameworks.py instead.
. "$(dirname "$0")/gpu.inc"
if [ "${1:-}" = - ]; then
    shift
    python3 "$here/real.py" --library "$lib" --out "$out" --frameworks "$@"
    exit
fi
samples=$(cd "${1:?folder of cuda-samples}" && pwd) || exit 1
shift

# Each sample is a project of its own: one that lacks a library (OpenGL, MPI, FreeImage) leaves the others alone.
build_one() { # VARIANT SOURCE
    [ -f "${2:-}/CMakeLists.txt" ] || return
    local b=$samples/b/$1/$(basename "$2")
    [ -e "$b/.built" ] && return
    mkdir -p "$b/src"
    cp -r "$2/." "$b/src"
    # One architecture compiles in a ninth of the time.
    sed -i '/set(CMAKE_CUDA_ARCHITECTURES/d; s|\.\./\.\./\.\./|'"$samples"'/|g' "$b/src/CMakeLists.txt"
    if ! { cmake -S "$b/src" -B "$b" -DCMAKE_CUDA_ARCHITECTURES="${arch#sm_}" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CUDA_RUNTIME_LIBRARY="$1" -DCMAKE_CUDA_COMPILER="$cuda/bin/nvcc" -DCUDAToolkit_ROOT="$cuda" &&
        cmake --build "$b"; } >"$b.log" 2>&1; then
        rm -rf "$b"
        return
    fi
    rm -rf "$b/src" "$b/CMakeFiles"
    touch "$b/.built"
}
export -f build_one
export samples arch cuda
for variant in Static Shared; do
    printf "$variant\0%s\0" "$samples"/Samples/[0-4]_*/*/ | xargs -0 -n 2 -P "$(nproc)" bash -c 'build_one "$@"' build
done

python3 "$here/real.py" --library "$lib" --out "$out" --samples "$samples" "$@"
