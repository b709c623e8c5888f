#!/usr/bin/env bash
# The whole GPU suite in parts of less than ten minutes each, for machines that are lent by the call. Needs what run.sh
# needs; part 1 two GPUs for the ranks.
#   tests/gpu/suite.sh OUT PART...     PART: 1 (choose.sh, source.sh), 2 (full.sh, why.sh), 3 (run.sh without these), 4
#   (bench.sh), 5 (timeline.sh, app_replay.sh, rotate.sh)
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
failures=0
# All but the ranks is meant for one GPU.
step() { # LIMIT NAME ARGUMENTS...
    local limit=$1 name=$2 start=$SECONDS
    shift 2
    timeout "$limit" "$here/$name" "$out" "$@" >"$out/$name.txt" 2>"$out/$name.err"
    local code=$?
    cat "$out/$name.txt"
    echo "#### $name $*: exit code $code, $((SECONDS - start)) s"
    [ $code -eq 0 ] || failures=$((failures + 1))
}
mkdir -p "$out"
for part; do
    case $part in
    1)
        step 250 choose.sh
        CUDA_VISIBLE_DEVICES=0 step 330 source.sh
        ;;
    2)
        export CUDA_VISIBLE_DEVICES=0
        step 420 full.sh
        step 160 why.sh
        ;;
    3) CUDA_VISIBLE_DEVICES=0 step 580 run.sh alone ;;
    4) CUDA_VISIBLE_DEVICES=0 step 580 bench.sh ;;
    5)
        export CUDA_VISIBLE_DEVICES=0
        step 120 timeline.sh
        step 240 app_replay.sh
        step 220 rotate.sh 40 basic
        ;;
    *) echo "no part $part" >&2 && exit 2 ;;
    esac
done
echo "$failures failures in the suite"
[ $failures -eq 0 ]
