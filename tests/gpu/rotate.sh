#!/usr/bin/env bash
# Rotation on a GPU: ResNet-18 training until every kernel and shape is complete. Shows what it adds to the run, its windows
# and what closed them, the share of complete kernels, and that results are the same. Takes two minutes.
#   tests/gpu/rotate.sh OUT [STEPS [SET...]]
#   tests/gpu/rotate.sh OUT values [STEPS]     two rotations of ResNet-18 with the default of three launches for each group, and
#   three steps with kernel replay and caches left alone: how far their values agree
#   tests/gpu/rotate.sh OUT rest [STEPS]     steps of ResNet-18 long after a rotation has come to its end, in turns
#   with native ones
#   tests/gpu/rotate.sh OUT programs [NAME...]     other programs, once each: decode (200 tokens, detailed), jax (default
#   settings, basic), and each executable of the folder PROGRAMS where it is set (basic; for samples with a device heap)
. "$(dirname "$0")/gpu.inc"
steps=${1:-40}
[ $# -gt 0 ] && shift
sets=${*:-basic}
most=45 # seconds of a run
export KPROF_STRICT=no
train=(python3 "$here/bench_resnet.py" --steps "$steps")
seconds() { sed -n 's/^bench: with results \([0-9.]*\) s$/\1/p' "$1" | tail -1; }

# Sums up the windows of a log: what they took, and what closed them.
windows() { # LOG...
    cat "$@" | awk '
        /closes \(rotate\): / {
            n++; why = $0; sub(/.*closes \(rotate\): /, "", why); sub(/; launches .*/, "", why); closers[why]++
            match($0, /; launches [0-9]+/); launches += substr($0, RSTART + 11, RLENGTH - 11)
            match($0, /with results [0-9]+/); wanted += substr($0, RSTART + 13, RLENGTH - 13)
        }
        / ms of ours/ { match($0, /took [0-9.]+/); ms += substr($0, RSTART + 5, RLENGTH - 5) }
        /counted in one pass, ms:/ {
            for (i = 1; i < NF; i++) {
                if ($i == "start") start += $(i + 1); if ($i == "launches" && $(i + 1) ~ /^[0-9]/) counting += $(i + 1)
                if ($i == "stop") stop += $(i + 1); if ($i == "decode") decode += $(i + 1)
            }
        }
        END {
            printf "  windows %d, launches in them %d, of these with results %d; %.2f s within kprof\n", n, launches, wanted, ms / 1e3
            printf "  s: start %.2f, between start and stop %.2f, stop %.2f, decode %.2f\n", start / 1e3, counting / 1e3, stop / 1e3, decode / 1e3
            for (why in closers) printf "  %5d closed by %s\n", closers[why], why
        }'
}

# A program natively and with a rotation: what it adds to the whole run, and how many kernels and shapes came to their end.
rotate_program() { # NAME SET COMMAND...
    local name=$1 set=$2 start native code
    shift 2
    start=$(now)
    "$@" >"$work/$name.plain" 2>/dev/null
    code=$?
    native=$(since "$start")
    start=$(now)
    KPROF_SET=$set KPROF_REPLAY_MODE=rotate KPROF_EXPORT=$out/rotate.$name.kprof KPROF_FORCE_OVERWRITE=yes \
        KPROF_LOG_FILE=$out/rotate.$name.txt KPROF_DEBUG=window,replay LD_PRELOAD=$lib timeout 120 "$@" \
        >"$work/$name.out" 2>"$work/$name.err"
    echo "$name, $set: exit code $? ($code natively); native $native s, added" \
        "$(awk -v a="$native" -v b="$(since "$start")" 'BEGIN { printf "%.2f", b - a }') s;" \
        "output $(cmp -s "$work/$name.plain" "$work/$name.out" && echo same || echo DIFFERS);" \
        "$(grep -o '[0-9,]* launches seen.*' "$out/rotate.$name.txt" | head -1)"
    windows "$out/rotate.$name.txt" "$work/$name.err"
    python3 - "$out/rotate.$name.kprof" <<'END'
import sqlite3, sys

of = sqlite3.connect(sys.argv[1]).execute("select count(*), sum(groups_counted = groups) from launch where alike > 0").fetchone()
print(f"  kernels and shapes with all groups: {of[1] or 0} of {of[0]}")
END
    grep -hE '==(ERROR|WARNING)==' "$work/$name.err" "$out/rotate.$name.txt" | head -3
}

if [ "$steps" = programs ]; then
    wanted=" ${*:-decode jax} "
    [[ $wanted != *" decode "* ]] || TOKENS=200 rotate_program decode detailed python3 "$here/frameworks.py" decode
    [[ $wanted != *" jax "* ]] || rotate_program jax basic python3 "$here/jax_steps.py"
    for program in ${PROGRAMS:+"$PROGRAMS"/*}; do
        rotate_program "${program##*/}" basic "$program"
    done
    exit 0
fi

if [ "$steps" = rest ]; then
    KPROF_SET=basic KPROF_ROTATE_LAUNCHES=1 KPROF_LOG_FILE=$out/rest.txt python3 "$here/turns.py" "$lib" "${1:-40}"
    code=$?
    grep -o '[0-9,]* launches seen.*' "$out/rest.txt" | head -1
    exit $code
fi

if [ "$steps" = values ]; then
    export KPROF_SET=basic KPROF_FORCE_OVERWRITE=yes
    train=(python3 "$here/bench_resnet.py" --steps "${1:-40}")
    for run in 1 2; do
        KPROF_REPLAY_MODE=rotate KPROF_EXPORT=$out/values.$run.kprof KPROF_LOG_FILE=$out/values.$run.txt LD_PRELOAD=$lib \
            timeout 100 "${train[@]}" >"$work/$run.out" 2>"$work/$run.err"
        echo "rotation $run: exit code $?; $(grep -o '[0-9,]* launches seen.*' "$out/values.$run.txt" | head -1)"
    done
    KPROF_CACHE_CONTROL=none KPROF_EXPORT=$out/replayed.kprof KPROF_LOG_FILE=$out/replayed.txt LD_PRELOAD=$lib \
        timeout 100 python3 "$here/bench_resnet.py" --steps 3 >"$work/replayed.out" 2>"$work/replayed.err"
    echo "kernel replay: exit code $?; $(grep -o '[0-9,]* launches seen.*' "$out/replayed.txt" | head -1)"
    exec python3 "$here/compare_rotate.py" "$out"/values.[12].kprof --kernel "$out/replayed.kprof"
fi

"${train[@]}" >"$work/native.out" 2>"$work/native.err"
native=$(seconds "$work/native.err")
echo "native: $native s"
for set in $sets; do
    for run in 1.1 1.2 3.1; do
        name=$set.$run
        KPROF_SET=$set KPROF_REPLAY_MODE=rotate KPROF_ROTATE_LAUNCHES=${run%.*} KPROF_EXPORT=$out/rotate.$name.kprof \
            KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/rotate.$name.txt KPROF_DEBUG=window,replay LD_PRELOAD=$lib \
            timeout "$most" "${train[@]}" >"$work/$name.out" 2>"$work/$name.err"
        took=$(seconds "$work/$name.err")
        echo "$name: $took s, added $(awk -v a="$native" -v b="$took" 'BEGIN { printf "%.2f", b - a }') s;" \
            "output $(cmp -s "$work/native.out" "$work/$name.out" && echo same || echo DIFFERS);" \
            "$(grep -o '[0-9,]* launches seen.*' "$out/rotate.$name.txt" | head -1)"
        windows "$out/rotate.$name.txt" "$work/$name.err"
        grep -hE '==(ERROR|WARNING)==' "$work/$name.err" "$out/rotate.$name.txt" | head -3
        cp "$work/$name.err" "$out/rotate.$name.err"
    done
done
python3 "$here/compare_rotate.py" "$out"/rotate.*.kprof
