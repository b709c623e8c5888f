#!/usr/bin/env bash
# Programs that ask the driver between launches: each answer natively and profiled. Kernels that write host memory
# unseen, kernels that wait for another, and what is done before the first launch. Needs what run.sh needs.
#   tests/gpu/asks.sh [OUT] [CASE...]     CASE: those of asks.cu (default: all)
# Prints a table, and takes less than a minute.
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
failures=0
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }
cases=${*:-free pools addresses capture harmless writes waiting start}

nvcc -O2 -arch="$arch" -o "$work/asks" "$here/asks.cu" -lcuda || exit 1

lines() { # NAME PATTERN: how many lines of kprof's own match
    grep -cE "$2" "$out/asks.$1.err"
}

# What counters say that kernels have written to host memory, to be printed below the table.
sectors() { # NAME
    cat "$out/asks.$1.err" "$out/asks.$1.txt" | sed -nE '/aperture_sysmem|no news/s/.*debug window [^:]*: //p
        /^==WARNING== .*host memory that no argument/p' | sort | uniq -c | sed "s/^/$1: /" >>"$work/sectors"
}

# What a case is for, beside the same answers. Sets what was seen.
judge() { # NAME
    local told
    seen=$(sed -n 's/.* launches seen, \([0-9]*\) profiled.* \([0-9]*\) passes.*/\1 profiled, \2 passes/p' "$out/asks.$1.txt")
    told=$(cat "$out/asks.$1.err" "$out/asks.$1.txt" | grep -c 'host memory that no argument points into')
    case $1 in
    free | pools) seen="$seen; closed by the query: $(lines "$1" 'closes \(replay\): cuMem(GetInfo|PoolGetAttribute)')" ;;
    harmless) [ "$told" -eq 0 ] || fail "$1: told of writes to host memory" ;;
    writes) [ "$told" -gt 0 ] || fail "$1: not told of writes to host memory" ;;
    waiting) seen="$seen; rehearsals, ms: $(sed -n 's/.* rehearsals \([0-9.]*\),.*/\1/p' "$out/asks.$1.err" | paste -sd' ')" ;;
    start) [ "$(lines "$1" 'passes, made ahead$')" -gt 0 ] || fail "$1: the plan was not made ahead"
        seen="$seen; ahead: $(sed -n 's/.*ahead of the first launch; \([0-9]* ms\)$/\1/p' "$out/asks.$1.err" | paste -sd' ')" ;;
    esac
}

echo "| case | answers | native s | profiled s | seen |"
echo "| --- | --- | --- | --- | --- |"
for name in $cases; do
    started=$(now)
    rm -f "$out/asks.$name".* # an earlier run's
    timeout 60 "$work/asks" "$name" >"$out/asks.$name.native" || fail "$name: natively $?"
    native=$(since "$started" 2)
    started=$(now)
    KPROF_DEBUG=plan,replay,window KPROF_LOG_FILE=$out/asks.$name.txt LD_PRELOAD=$lib timeout 60 "$work/asks" "$name" \
        >"$out/asks.$name.out" 2>"$out/asks.$name.err" || fail "$name: exit code $?"
    profiled=$(since "$started" 2)
    same=same
    cmp -s "$out/asks.$name.native" "$out/asks.$name.out" || { same=DIFFER && fail "$name: other answers"; }
    judge "$name"
    sectors "$name"
    echo "| $name | $same | $native | $profiled | $seen |"
    [ $same = same ] || diff "$out/asks.$name.native" "$out/asks.$name.out" | head -20
done
cat "$work/sectors"
echo "$failures failures"
[ "$failures" -eq 0 ]
