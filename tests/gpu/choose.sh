#!/usr/bin/env bash
# Who made launches, which are chosen, and what is taken elsewhere, on PyTorch programs. Needs what run.sh needs.
#   tests/gpu/choose.sh [OUT] [CASE...]     CASE: loader, stacks, trace, ranks (two GPUs), diff, options (default: all)
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
cases=${*:-loader stacks trace ranks diff options}
failures=0

fail() { echo "FAILED: $*" && failures=$((failures + 1)); }
launches() { sqlite "$1" "SELECT count(*) FROM launch"; }
sqlite() { python3 -c 'import sqlite3, sys; [print(*r) for r in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])]' "$@"; }

# Same output with and without, and the session.
same() { # NAME COMMAND... ; options come from the environment
    local name=$1
    shift
    env -u KPROF_SET "$@" >"$work/plain" 2>/dev/null
    KPROF_EXPORT=$work/$name.kprof KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/$name.log LD_PRELOAD=$lib "$@" >"$work/with" 2>"$work/err"
    [ $? = 0 ] && cmp -s "$work/plain" "$work/with" || fail "$name: other output or exit code: $(head -c 300 "$work/with")"
}

loader() {
    export KPROF_SET=basic
    KPROF_NVTX=on same loader python3 "$here/torch_loader.py"
    echo "loader: $(launches "$work/loader.kprof") launches, $(sqlite "$work/loader.kprof" "SELECT count(DISTINCT launch) FROM launch_range") in ranges"
    KPROF_NVTX_INCLUDE='batch 2/' same thread python3 "$here/torch_loader.py"
    KPROF_NVTX_INCLUDE='batch 2/' KPROF_NVTX_PUSH_POP_SCOPE=process same process python3 "$here/torch_loader.py"
    echo "batch 2: $(launches "$work/thread.kprof") launches of its thread, $(launches "$work/process.kprof") of the process (autograd's thread)"
    [ "$(launches "$work/process.kprof")" -gt "$(launches "$work/thread.kprof")" ] || fail "process scope finds no more than thread scope"
    KPROF_KERNEL_NAME='regex:Kernel2|gemm' same gemm python3 "$here/torch_loader.py"
    KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=2 same some python3 "$here/torch_loader.py"
    echo "gemm: $(launches "$work/gemm.kprof"); skip 3, count 2: $(launches "$work/some.kprof")"
    [ "$(launches "$work/some.kprof")" = 2 ] || fail "launch-count"
    "$kprof" report --print-summary per-nvtx --page raw "$work/loader.kprof" >"$out/per-nvtx.txt" || fail per-nvtx
}

stacks() {
    export KPROF_SET=basic
    KPROF_CALL_STACK=native,python same stacks python3 "$here/torch_loader.py"
    echo "stacks: $(sqlite "$work/stacks.kprof" "SELECT count(DISTINCT stack) FROM launch WHERE stack > 0") of $(launches "$work/stacks.kprof") launches"
    sqlite "$work/stacks.kprof" "SELECT f.function, f.line, count(DISTINCT l.id) FROM launch l JOIN frame f ON f.stack = l.stack WHERE f.kind = 1 GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 6"
    [ "$(sqlite "$work/stacks.kprof" "SELECT count(*) FROM frame WHERE kind = 1 AND function LIKE '%product%' AND file LIKE '%torch_loader.py'")" -gt 0 ] || fail "no Python frame of product()"
    [ "$(sqlite "$work/stacks.kprof" "SELECT count(*) FROM frame WHERE kind = 0 AND function LIKE '%at::%'")" -gt 0 ] || fail "no native frame of PyTorch"
    grep -m1 -A14 'Call Stack' "$out/stacks.log"
}

trace() {
    unset KPROF_SET
    KPROF_PAGE=trace same trace python3 "$here/torch_step.py"
    echo "trace of a training step: $(grep -cE '\| +[0-9]' "$out/trace.log") lines"
    grep -v '^==' "$out/trace.log" | sed -n '1,12p'
}

ranks() {
    export KPROF_SET=basic
    local run="python3 -m torch.distributed.run --nproc-per-node 2 $here/torch_ranks.py"
    $run >"$work/plain" 2>/dev/null
    KPROF_EXPORT=$work/rank%r.kprof KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/ranks.%r.%p.log LD_PRELOAD=$lib timeout 120 $run >"$work/with" 2>"$work/err"
    [ $? = 0 ] && cmp -s "$work/plain" "$work/with" || fail "ranks: other output: $(cat "$work/with"; tail -3 "$work/err")"
    for r in 0 1; do echo "rank $r: $(launches "$work/rank$r.kprof") launches, $(sqlite "$work/rank$r.kprof" "SELECT count(*) FROM launch WHERE reason = ''") profiled"; done
    "$kprof" report "$work/rank0.kprof" "$work/rank1.kprof" --page summary >"$out/ranks.txt" || fail "merged report"
    sqlite "$work/rank1.kprof" "SELECT reason, count FROM skip"
}

diff_builds() {
    unset KPROF_SET
    for s in 1 32; do
        nvcc -O2 -lineinfo -arch="$arch" -DSTRIDE=$s -o "$work/scale" "$here/scale.cu"
        KPROF_SET=detailed KPROF_EXPORT=$out/scale$s.kprof KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$work/log LD_PRELOAD=$lib "$work/scale" >/dev/null
    done
    "$kprof" diff "$out/scale1.kprof" "$out/scale32.kprof" --fail-above 5% >"$out/diff.txt"
    echo "diff: exit status $? (1: slower by more than 5 %), $(grep -c . "$out/diff.txt") lines"
    grep -E "Duration|Uncoalesced|Throughput" "$out/diff.txt" | head -8
}

# What an option adds to launches that pass uncounted, and to launches that are profiled.
options() {
    unset KPROF_SET
    nvcc -O2 -arch="$arch" -o "$work/bench" "$here/bench_launches.cu"
    local native
    us() { "$@" 2>&1 >/dev/null | sed -n 's/.*launches \([0-9.]*\) s, with.*/\1/p'; }
    each() { # LAUNCHES [ENV...]
        local n=$1
        shift
        for _ in 1 2 3; do us env "$@" "$work/bench" $n tiny; done | sort -n | awk -v n="$n" 'NR == 2 { printf "%.2f", $1 * 1e6 / n }'
    }
    native=$(each 100000)
    echo "| option | us a launch that is let through (native $native) | ms a launch profiled in one pass |"
    echo "| --- | --- | --- |"
    for option in none KPROF_NVTX=on KPROF_CALL_STACK=native KPROF_CALL_STACK=native,python KPROF_KERNEL_ID=::nothing:1 KPROF_DEVICES=1; do
        local through profiled
        [ "$option" = none ] && set -- X=1 || set -- "$option"
        through=$(each 100000 "$@" KPROF_KERNEL_NAME=nothing KPROF_LOG_FILE="$work/log" LD_PRELOAD="$lib")
        profiled=$(us env "$@" KPROF_SET=quick KPROF_LOG_FILE="$work/log" LD_PRELOAD="$lib" "$work/bench" 1000 tiny | awk '{ printf "%.3f", $1 * 1e3 / 1000 }')
        case $option in KPROF_KERNEL_ID*|KPROF_DEVICES*) profiled=- ;; esac
        echo "| $option | $through | $profiled |"
    done
}

for case in $cases; do
    echo "## $case"
    case $case in
    loader) loader ;;
    stacks) stacks ;;
    trace) trace ;;
    ranks) ranks ;;
    diff) diff_builds ;;
    options) options ;;
    *) echo "no case $case" >&2 && exit 2 ;;
    esac
done
echo "$failures failures"
[ $failures -eq 0 ]
