#!/usr/bin/env bash
# Rotation on a GPU: ResNet-18 training with every kernel and shape complete, what it adds, and the same results; values
# beside kernel replay with caches left alone, on patterns.cu launched again and again.
#   tests/gpu/rotate.sh OUT [STEPS [SET...]]
. "$(dirname "$0")/gpu.inc"
steps=${1:-30}
[ $# -gt 0 ] && shift
sets=${*:-basic}
export KPROF_STRICT=no
train=(python3 "$here/bench_resnet.py" --steps "$steps")
seconds() { sed -n 's/^bench: with results \([0-9.]*\) s$/\1/p' "$1" | tail -1; }

"${train[@]}" >"$work/native.out" 2>"$work/native.err"
echo "native: $(seconds "$work/native.err") s"
for set in $sets; do
    for each in 1 3; do
        for again in 1 2; do
            name=$set.$each.$again
            KPROF_SET=$set KPROF_REPLAY_MODE=rotate KPROF_ROTATE_LAUNCHES=$each KPROF_EXPORT=$out/rotate.$name.kprof \
                KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/rotate.$name.txt LD_PRELOAD=$lib \
                "${train[@]}" >"$work/$name.out" 2>"$work/$name.err"
            echo "$name: $(seconds "$work/$name.err") s; output $(cmp -s "$work/native.out" "$work/$name.out" && echo same || echo DIFFERS); $(grep -o '[0-9,]* launches seen.*' "$out/rotate.$name.txt" | head -1)"
            grep -E '==(ERROR|WARNING)==' "$work/$name.err" "$out/rotate.$name.txt" | head -3
        done
    done
done
python3 "$here/compare_rotate.py" "$out"/rotate.*.kprof
