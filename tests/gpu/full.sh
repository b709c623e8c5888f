#!/usr/bin/env bash
# Every value and every rule of ncu's full details page beside kprof's, and what it costs. Needs what run.sh needs.
#   tests/gpu/full.sh [OUT] [PROGRAM...]     PROGRAM: patterns, torch, cost (default: these three); decode: a step of greedy
#   decoding by transformers; cutlass: the first launches of each example of CUTLASS in CUTLASS_EXAMPLES, a folder of programs
#   that cutlass.sh builds. NCU_RUNS: how often ncu runs (3)
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
programs=${*:-patterns torch cost}
runs=${NCU_RUNS:-3}
nvcc -O2 -arch="$arch" -o "$work/patterns" "$here/patterns.cu" || exit 1
failures=0
costs=()
profile=on # whether profiling begins with the program
first=0    # launches that are compared; 0: all

# What a program prints but for its own timings.
untimed() { grep -viE 'ms$|runtime|gflop|tflop|seconds| time' "$1"; }

compare_program() { # NAME COMMAND...
    local name=$1 start i files=() ncu_wall native wall launches code count=()
    shift
    if [ "$first" != 0 ]; then
        count=(--launch-count "$first")
        local -x KPROF_LAUNCH_COUNT=$first
    fi
    start=$(now)
    "$@" >"$work/plain"
    native=$(since "$start")
    for i in $(seq "$runs"); do
        start=$(now)
        timeout 200 ncu --clock-control none --profile-from-start $profile --set full --print-details all "${count[@]}" \
            --print-metric-name name --print-units base --log-file "$work/$name.ncu.$i" "$@" >/dev/null 2>&1
        ncu_wall=$(since "$start")
        files+=("$work/$name.ncu.$i")
    done
    gzip -c "${files[@]}" >"$out/$name.ncu.gz"
    start=$(now)
    KPROF_PROFILE_FROM_START=$profile KPROF_SET=full KPROF_PRINT_DETAILS=all KPROF_EXPORT=$work/$name.kprof \
        KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/$name.full LD_PRELOAD=$lib timeout 200 "$@" >"$work/kprof.out"
    code=$?
    wall=$(since "$start")
    cp "$work/$name.kprof" "$out/" 2>/dev/null
    cmp -s <(untimed "$work/plain") <(untimed "$work/kprof.out") && [ $code = 0 ] || { echo "FAILED: $name: other output or exit code $code" && failures=$((failures + 1)); }
    grep -E '==(WARNING|ERROR)==' "$out/$name.full" | sort | uniq -c | head -5
    echo "## $name: kprof beside $runs runs of ncu"
    python3 "$here/compare_full.py" "$work/$name.kprof" "${files[@]}"
    [ "$runs" -lt 3 ] || { echo "ncu's first run beside its others:" && python3 "$here/compare_full.py" --no-exceptions --ncu "${files[@]}"; }
    if [ "$name" = torch ]; then
        KPROF_PROFILE_FROM_START=$profile KPROF_SET=full KPROF_WINDOW=1 KPROF_EXPORT=$work/$name.alone.kprof \
            KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/$name.alone LD_PRELOAD=$lib timeout 200 "$@" >/dev/null
        echo "## $name, each launch in a window of its own"
        python3 "$here/compare_full.py" "$work/$name.alone.kprof" "${files[@]}"
    fi
    echo "## $name: the rules"
    python3 "$here/compare_rules.py" "$out/$name.full" "${files[0]}"
    launches=$(grep -c '==PROF== Profiling' "$work/$name.ncu.1")
    costs+=("| $name, full, $launches launches | $native | $ncu_wall | $wall | $(awk -v a="$native" -v b="$ncu_wall" -v c="$wall" -v n="$launches" 'BEGIN { printf "%.0f | %.0f | %.1f", (b - a) * 1000 / n, (c - a) * 1000 / n, (b - a) / (c - a) }') |")
}

# Launches of one window; ncu profiles 20 of them, its time a launch does not depend on how many.
cost() { # SET
    local start native wall ncu_wall
    start=$(now) && "$work/bench_launches" 200 >/dev/null 2>&1 && native=$(since "$start")
    start=$(now)
    timeout 200 ncu --clock-control none --set "$1" -c 20 -f -o "$work/cost" "$work/bench_launches" 200 >/dev/null 2>&1
    ncu_wall=$(since "$start")
    start=$(now)
    KPROF_SET=$1 KPROF_LOG_FILE=$out/cost.$1 LD_PRELOAD=$lib timeout 200 "$work/bench_launches" 200 >/dev/null 2>&1
    wall=$(since "$start")
    costs+=("| 200 launches (ncu: 20), $1 | $native | $ncu_wall | $wall | $(awk -v a="$native" -v b="$ncu_wall" -v c="$wall" 'BEGIN { x = (b - a) * 1000 / 20; y = (c - a) * 1000 / 200; printf "%.0f | %.0f | %.1f", x, y, x / y }') |")
}

for program in $programs; do
    case $program in
    cost) nvcc -O2 -arch="$arch" -o "$work/bench_launches" "$here/bench_launches.cu" && cost detailed && cost full ;;
    patterns) compare_program patterns "$work/patterns" ;;
    torch) profile=off compare_program torch python3 "$here/torch_ops.py" ;;
    decode) profile=off compare_program decode python3 "$here/frameworks.py" decode_step ;;
    cutlass)
        for example in "${CUTLASS_EXAMPLES:?folder of examples}"/*; do
            [ -x "$example" ] || continue
            options=(--iterations=1)
            [ "${example##*/}" != basic_gemm ] || options=() # it takes sizes alone
            first=8 compare_program "cutlass.${example##*/}" "$example" "${options[@]}"
        done
        ;;
    *) echo "no program $program" >&2 && exit 2 ;;
    esac
done

echo "| case | native s | ncu s | kprof s | ncu, ms a launch | kprof, ms a launch | ratio |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
printf '%s\n' "${costs[@]}"
echo "$failures failures"
[ $failures -eq 0 ]
