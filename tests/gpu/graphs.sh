#!/usr/bin/env bash
# CUDA graphs node by node, beside ncu: rows of the same launches, and what they cost. Needs what run.sh needs.
#   tests/gpu/graphs.sh [OUT] [FOLDER]     FOLDER: built programs of cuda-samples that launch graphs, one a file; each
#   runs in it. CASES="NAME ...": captured, compiled, torch-step (default: all; empty: FOLDER alone); MOST: launches under ncu (30)
. "$(dirname "$0")/gpu.inc"
folder=${1:-}
most=${MOST:-30} # launches of each program under ncu
opts=() vars=() # of a case

seen() { # REPORT: how many launches, how many of them profiled
    grep -oE '[0-9,]+ launch(es)? seen, [0-9,]+ profiled' "$1" | tail -1
}
# Names without template arguments, namespaces and types, which ncu leaves out of some; grids and blocks, in order.
kernels() { # REPORT
    sed -nE 's/^  ([^ ].*) (\([0-9, ]+\)x\([0-9, ]+\)), Context.*/\2 \1/p' "$1" |
        sed -E 's/^(\([^)]*\)x\([^)]*\)) (void )?([A-Za-z0-9_:<]*::)?([A-Za-z0-9_]+)[<(].*/\1 \4/'
}

# Rows beside ncu's of the first launches.
beside_ncu() { # NAME COMMAND...
    local name=$1 start ms native
    shift
    start=$(now)
    "$@" >"$out/$name.plain" 2>/dev/null
    native=$(since "$start")
    for i in 1 2; do
        start=$(now)
        timeout 100 ncu --clock-control none --graph-profiling node --set basic -c $most "${opts[@]}" --log-file "$out/$name.ncu$i" "$@" \
            >/dev/null 2>&1
        ms=$(since "$start")
    done
    start=$(now)
    env KPROF_SET=basic KPROF_LAUNCH_COUNT=$most "${vars[@]}" KPROF_LOG_FILE="$out/$name.report" LD_PRELOAD="$lib" \
        timeout 100 "$@" >"$out/$name.kprof" 2>"$out/$name.err"
    echo "| $name | exit code $? | same output: $(cmp -s "$out/$name.plain" "$out/$name.kprof" && echo yes || echo no) |" \
        "$(seen "$out/$name.report") | native $native s, kprof $(since "$start") s, ncu $ms s |"
    kernels "$out/$name.report" >"$work/kprof.names"
    kernels "$out/$name.ncu1" >"$work/ncu.names"
    echo "launches of ncu: $(wc -l <"$work/ncu.names"), of kprof: $(wc -l <"$work/kprof.names");" \
        "in the same order with the same grids: $(cmp -s "$work/kprof.names" "$work/ncu.names" && echo yes || echo no)"
    cmp -s "$work/kprof.names" "$work/ncu.names" || diff "$work/kprof.names" "$work/ncu.names" | head -4 | cut -c1-160
    python3 "$here/compare.py" "$out/$name.report" "$out/$name.ncu1" "$out/$name.ncu2" >"$out/$name.rows"
    tail -${TABLE:-12} "$out/$name.rows"
    rm -f "$out/$name".{plain,kprof,err}
}

# Time of all launches, without ncu.
cost() { # NAME SET
    local start native time
    start=$(now)
    python3 "$here/frameworks.py" "$1" >"$out/$1.plain" 2>/dev/null
    native=$(since "$start")
    start=$(now)
    KPROF_SET=$2 KPROF_DEBUG=window KPROF_LOG_FILE=$out/$1.$2 LD_PRELOAD=$lib timeout 150 python3 "$here/frameworks.py" "$1" \
        >"$out/$1.out" 2>"$out/$1.$2.err"
    local code=$?
    time=$(since "$start")
    echo "| $1, $2 | exit code $code | same output: $(cmp -s "$out/$1.plain" "$out/$1.out" && echo yes || echo no) |" \
        "$(seen "$out/$1.$2"), of graphs $(grep -c ', Graph [0-9]*, Node' "$out/$1.$2") |" \
        "native $native s, kprof $time s | windows $(grep -c ' opens' "$out/$1.$2.err") |"
    grep -E '==(WARNING|ERROR)==' "$out/$1.$2" "$out/$1.$2.err" | cut -c1-220 | sort | uniq -c | head -5
    grep -oE "[0-9.]+ s spent profiling" "$out/$1.$2" | tail -1
}

for p in ${folder:+"$folder"/*}; do
    [ -x "$p" ] && [ -f "$p" ] && (cd "$folder" && beside_ncu "$(basename "$p")" "$p")
done
for case in ${CASES-captured compiled torch-step}; do
    case $case in
    captured) cost captured basic && cost captured quick ;;
    compiled) cost compiled quick ;;
    torch-step)
        opts=(--profile-from-start off) vars=(KPROF_PROFILE_FROM_START=off)
        beside_ncu torch-step python3 "$here/frameworks.py" captured
        ;;
    *) echo "no case $case" >&2 && exit 2 ;;
    esac
done
