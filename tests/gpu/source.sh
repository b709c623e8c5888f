#!/usr/bin/env bash
# What is sampled and counted by instruction and over time, beside ncu's full set. Needs what run.sh needs.
#   tests/gpu/source.sh [OUT] [CASE...]     CASE: patterns, torch, triton, phases, cost, demo (default: all); NCU_RUNS: how
#   often ncu samples each (3)
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
cases=${*:-patterns torch triton phases cost demo}
failures=0
costs=()

build() { nvcc -O2 -lineinfo -arch="$arch" -o "$work/$1" "$here/$1.cu" || exit 1; }

# Runs kprof alone and ncu alone on a program, and compares by instruction.
beside() { # NAME LAUNCHES COMMAND...
    local name=$1 launches=$2 profile=on start native wall ncu_wall i
    shift 2
    [ "$name" = torch ] && profile=off
    start=$(now) && "$@" >"$work/plain" 2>/dev/null && native=$(since "$start")
    start=$(now)
    KPROF_PROFILE_FROM_START=$profile KPROF_SET=full KPROF_EXPORT=$work/$name.kprof KPROF_FORCE_OVERWRITE=yes \
        KPROF_LOG_FILE=$out/$name.log LD_PRELOAD=$lib timeout 300 "$@" >"$work/kprof.out"
    [ $? = 0 ] && cmp -s "$work/plain" "$work/kprof.out" || { echo "FAILED: $name: other output or exit code" && failures=$((failures + 1)); }
    wall=$(since "$start")
    grep -E '==(WARNING|ERROR)==' "$out/$name.log" | sort | uniq -c | head -5
    start=$(now)
    timeout 300 ncu --clock-control none --profile-from-start $profile --set full --import-source yes -f -o "$work/$name" "$@" >/dev/null 2>&1
    ncu_wall=$(since "$start")
    echo "## $name"
    local runs=("$work/$name.kprof" "$work/$name.ncu-rep")
    if [ "$name" != phases ]; then # what varies from run to run
        for i in $(seq $((${NCU_RUNS:-3} - 1))); do
            timeout 300 ncu --clock-control none --profile-from-start $profile --section SourceCounters --import-source yes \
                -f -o "$work/$name.$i" "$@" >/dev/null 2>&1
            KPROF_PROFILE_FROM_START=$profile KPROF_SECTION=SourceCounters KPROF_EXPORT=$work/$name.$i.kprof \
                KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$work/log LD_PRELOAD=$lib timeout 300 "$@" >/dev/null
            runs+=("$work/$name.$i.kprof" "$work/$name.$i.ncu-rep")
        done
    fi
    python3 "$here/compare_source.py" "${runs[@]}"
    if [ "$name" = torch ] || [ "$name" = triton ]; then
        KPROF_PROFILE_FROM_START=$profile KPROF_SECTION=SourceCounters KPROF_WINDOW=1 KPROF_EXPORT=$work/$name.alone.kprof \
            KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$work/log LD_PRELOAD=$lib timeout 300 "$@" >/dev/null
        echo "### $name, each launch in a window of its own: samples"
        python3 "$here/compare_source.py" "$work/$name.alone.kprof" "$work/$name"*.ncu-rep | grep -E 'stall|hottest|the same|    [a-z_]+ +kprof'
    fi
    [ "$name" != phases ] || python3 "$here/compare_series.py" "$work/$name.kprof" "$work/$name.ncu-rep"
    cp "$work/$name.kprof" "$out/" 2>/dev/null
    costs+=("| $name, $launches launches | $native | $ncu_wall | $wall | $(awk -v a="$native" -v b="$ncu_wall" -v c="$wall" -v n="$launches" 'BEGIN { printf "%.0f | %.0f | %.1f", (b - a) * 1000 / n, (c - a) * 1000 / n, (b - a) / (c - a) }') |")
}

# A window of 200 launches, full set; ncu profiles 20 of them, its time a launch does not depend on how many.
cost() {
    local start native wall ncu_wall
    build bench_launches
    start=$(now) && "$work/bench_launches" 200 >/dev/null && native=$(since "$start")
    start=$(now)
    KPROF_SET=full KPROF_LOG_FILE=$out/cost.log LD_PRELOAD=$lib "$work/bench_launches" 200 >/dev/null
    wall=$(since "$start")
    start=$(now)
    ncu --clock-control none --set full -c 20 -f -o "$work/cost" "$work/bench_launches" 200 >/dev/null 2>&1
    ncu_wall=$(since "$start")
    costs+=("| 200 launches (ncu: 20) | $native | $ncu_wall | $wall | $(awk -v a="$native" -v b="$ncu_wall" -v c="$wall" 'BEGIN { x = (b - a) * 1000 / 20; y = (c - a) * 1000 / 200; printf "%.0f | %.0f | %.1f", x, y, x / y }') |")
}

# The session that `make demo` prints where there is no GPU; it becomes examples/h200-demo.kprof. The folder is in it.
demo() {
    local folder=/tmp/demo
    mkdir -p $folder && cp "$root/examples/transpose.cu" "$lib" "$(dirname "$lib")/libkprof-symbols.so" $folder || return
    (cd $folder && nvcc -O2 -lineinfo -arch="$arch" -o transpose transpose.cu &&
        KPROF_SET=full KPROF_IMPORT_SOURCE=yes KPROF_EXPORT=h200-demo.kprof KPROF_LOG_FILE=demo.log \
            LD_PRELOAD=$folder/libkprof.so ./transpose && cp h200-demo.kprof demo.log "$out") ||
        { echo "FAILED: demo" && failures=$((failures + 1)); }
    rm -rf $folder
}

for case in $cases; do
    case $case in
    patterns) build patterns && beside patterns 14 "$work/patterns" ;;
    torch) beside torch 16 python3 "$here/torch_ops.py" ;;
    triton) beside triton 3 python3 "$here/triton_add.py" ;;
    phases) build phases && KPROF_PAGE=details,pm beside phases 1 "$work/phases" && sed -n '/Section: PM Sampling/,/Section: Compute/p' "$out/phases.log" ;;
    cost) cost ;;
    demo) demo ;;
    *) echo "no case $case" >&2 && exit 2 ;;
    esac
done
echo "| case | native s | ncu s | kprof s | ncu, ms a launch | kprof, ms a launch | ratio |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
printf '%s\n' "${costs[@]}"
echo "$failures failures"
[ $failures -eq 0 ]
