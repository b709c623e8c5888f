#!/usr/bin/env bash
# The GPU suite: run on a machine with a GPU, CUDA 13, ncu and PyTorch, after `make`. Prints tables.
#   tests/gpu/run.sh [OUT] [quick|alone|rows]     OUT: where logs go (default build/gpu); alone: neither full.sh nor
#   bench.sh; quick: nor all launches of the PyTorch step; rows: the first table only. ROWS="NAME ...": only these rows of it,
#   and graphs.basic.node, graphs.quick.graph and so on. NCU_RUNS: how often ncu runs (3)
. "$(dirname "$0")/gpu.inc"
quick=${1:-}
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

echo "## $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $(ncu --version | grep -o 'Version [0-9.]*'), kprof $("$kprof" --version | tail -1)"

cd "$work" || exit 1
asked() { case " ${ROWS:-$1} " in *" $1 "*) ;; *) false ;; esac; }
built=()
build() { # NAME SOURCE FLAG... ; unless no row needs it
    case " ${ROWS:-$1} patterns " in *" $1"[" ."]*) ;; *) return ;; esac
    built+=("$1")
    nvcc -O2 -arch="$arch" "${@:3}" -o "$1" "$here/$2" &
}
build patterns patterns.cu
build patterns_shared patterns.cu -cudart shared
build inplace inplace.cu -std=c++17
build windows windows.cu -std=c++17
build windows_per_thread windows.cu -std=c++17 --default-stream per-thread
build rewind rewind.cu -std=c++17 -rdc=true -lcuda -lcudadevrt
build order order.cu -std=c++17
build reads reads.cu -std=c++17
build graphs graphs.cu -std=c++17
wait
for program in "${built[@]}"; do
    [ -x "$program" ] || fail "build $program"
done
gcc -O1 -I"$cuda/include" -o driver "$here/driver.c" -L"$cuda/lib64/stubs" -lcuda || fail "build driver"
gcc -O1 -DBY_DLOPEN -I"$cuda/include" -o driver_dlopen "$here/driver.c" -ldl || fail "build driver_dlopen"
gcc -O1 -shared -fPIC -I"$cuda/include" -I"$cupti/include" -o trace_count.so "$here/trace_count.c" -L"$cupti/lib64" \
    -L"$cuda/lib64" -lcupti -Wl,-rpath,"$cupti/lib64" || fail "build trace_count"

# ---- every launch seen, results untouched ----
echo
echo "| program | kernels by CUPTI's trace | kprof: launches seen | profiled | skipped | same output | exit code | ms a launch |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
row() { # NAME GRAPHS COMMAND... ; GRAPHS: the program launches graphs, whose kernels the trace counts one by one
    name=$1 graphs=$2
    shift 2
    asked "$name" || return
    timeout 200 "$@" >"$out/$name.plain" 2>"$out/$name.plain.err"
    plain=$?
    TRACE_COUNT_FILE=$work/$name.count CUDA_INJECTION64_PATH=$work/trace_count.so timeout 200 "$@" >/dev/null 2>&1
    traced=$(cat "$work/$name.count" 2>/dev/null || echo none)
    KPROF_LOG_FILE=$out/$name.report LD_PRELOAD=$lib timeout 400 "$@" >"$out/$name.profiled" 2>"$out/$name.profiled.err"
    code=$?
    last=$(grep 'launches* seen' "$out/$name.report" | tail -1)
    seen=$(echo "$last" | grep -oE '[0-9,]+ launch(es)? seen' | grep -oE '^[0-9,]+' | tr -d ,)
    profiled=$(echo "$last" | grep -oE '[0-9,]+ profiled' | grep -oE '^[0-9,]+' | tr -d ,)
    skipped=$(echo "$last" | grep -oE '[0-9,]+ skipped.*;' | sed 's/; [0-9,]* pass.*//')
    ms=$(grep 'Profiling "' "$out/$name.report" | grep -oE '[0-9.]+ ms$' | awk '{ n++; s += $1 } END { if (n) printf "%.0f", s / n }')
    same=no
    cmp -s "$out/$name.plain" "$out/$name.profiled" && same=yes
    echo "| $name | $traced | $seen | $profiled | $skipped | $same | $plain, $code | $ms |"
    [ "$same" = yes ] || { fail "$name: other output"; diff "$out/$name.plain" "$out/$name.profiled" | head -6; }
    [ $plain = 0 ] || fail "$name: exit code $plain without kprof: $(tail -1 "$out/$name.plain")"
    [ $plain = $code ] || fail "$name: exit code $code instead of $plain"
    [ "$graphs" = graphs ] || [ "$traced" = "$seen" ] || fail "$name: $seen launches seen, $traced traced"
    grep -E '==(WARNING|ERROR)==' "$out/$name.report" "$out/$name.profiled.err" | sort | uniq -c | head -5
}
row patterns - ./patterns
row patterns_shared - ./patterns_shared
row driver - ./driver
row driver_dlopen - ./driver_dlopen
row inplace graphs ./inplace
row windows graphs ./windows
row windows_per_thread graphs ./windows_per_thread 50
# Memory that is mapped between launches joins their window.
for save in all changes; do
    asked windows || break
    KPROF_SAVE=$save KPROF_DEBUG=window KPROF_LOG_FILE=$out/maps.$save.report LD_PRELOAD=$lib timeout 120 ./windows maps \
        >"$out/maps.$save" 2>"$out/maps.$save.err" || fail "maps between launches, save $save: $(tail -1 "$out/maps.$save")"
    opened=$(grep -c ' opens (replay)' "$out/maps.$save.err")
    closed=$(grep -cE ' closes \(replay\): cuMem(AddressReserve|Create|Map|SetAccess|Release);' "$out/maps.$save.err")
    echo "maps between launches, save $save: $opened windows, $closed of them closed by the calls that map"
    [ "$opened" -gt 0 ] && [ "$closed" = 0 ] || fail "maps between launches, save $save: they close windows"
done
row rewind graphs ./rewind
row order - ./order
row reads - ./reads
row graphs graphs ./graphs
for how in "basic node" "basic graph" "quick node" "quick graph"; do
    set -- $how
    name=graphs.$1.$2
    asked "$name" || continue
    KPROF_SET=$1 KPROF_GRAPH_PROFILING=$2 KPROF_METRICS=smsp__inst_executed.sum KPROF_EXPORT=$out/$name.kprof \
        KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/$name LD_PRELOAD=$lib ./graphs >/dev/null
    "$kprof" report --page raw --csv "$out/$name.kprof" >"$out/$name.csv"
    echo "graphs, $how: $(python3 "$here/compare_graphs.py" "$out/$name.csv")" || fail "graphs, $how"
done
row triton - python3 "$here/triton_add.py"
row cupy - python3 "$here/cupy_add.py"
[ "$quick" != quick ] || export KPROF_LAUNCH_COUNT=40
row torch_step - python3 "$here/torch_step.py"
unset KPROF_LAUNCH_COUNT

[ "$quick" != rows ] || { echo "$failures failures"; exit $((failures > 0)); }

# ---- every row of the basic set beside ncu ----
runs=${NCU_RUNS:-3}
for i in $(seq "$runs"); do
    start=$(now)
    timeout 120 ncu --clock-control none --set basic --apply-rules no ./patterns >"$out/ncu.$i" 2>&1
    ncu_wall=$(since "$start" 2)
done
start=$(now)
./patterns >/dev/null
native_wall=$(since "$start" 2)
start=$(now)
KPROF_EXPORT=$out/patterns.kprof KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/kprof.basic LD_PRELOAD=$lib ./patterns >/dev/null
kprof_wall=$(since "$start" 2)
start=$(now)
KPROF_CACHE_CONTROL=none KPROF_LOG_FILE=$out/kprof.none LD_PRELOAD=$lib ./patterns >/dev/null
none_wall=$(since "$start" 2)
echo
python3 "$here/compare.py" "$out/kprof.basic" $(seq -f "$out/ncu.%g" "$runs") || fail "an exact row differs"
if [ "$runs" -ge 3 ]; then
    echo
    echo "ncu beside itself (run 3 against runs 1 and 2):"
    python3 "$here/compare.py" "$out/ncu.3" "$out/ncu.1" "$out/ncu.2" | grep '^|'
fi
"$kprof" report "$out/patterns.kprof" >"$out/stored.txt" 2>&1 || fail "kprof report"
diff <(grep -v '==KPROF==' "$out/kprof.basic") <(grep -v '==KPROF==' "$out/stored.txt") >/dev/null || fail "the stored session gives another report"

echo
echo "| the 14 launches of patterns | wall s | ms a launch above native |"
echo "| --- | --- | --- |"
for r in "native $native_wall" "ncu-basic $ncu_wall" "kprof-basic $kprof_wall" "kprof-basic-warm-caches $none_wall"; do
    set -- $r
    echo "$1 $2 $native_wall" | awk '{ printf "| %s | %s | %.0f |\n", $1, $2, ($2 - $3) * 1000 / 14 }'
done

# ---- the quick set beside ncu ----
echo
quick_runs=$((runs < 2 ? runs : 2))
for i in $(seq $quick_runs); do
    timeout 120 ncu --clock-control none --cache-control none --csv --page raw --print-units base \
        --metrics "$(python3 "$here/compare_quick.py" --list)" ./patterns >"$out/quick.$i.csv" 2>/dev/null
done
KPROF_SET=quick KPROF_LOG_FILE=$out/kprof.quick LD_PRELOAD=$lib ./patterns >/dev/null
python3 "$here/compare_quick.py" "$out/kprof.quick" $(seq -f "$out/quick.%g.csv" $quick_runs) || fail "the quick set"

# ---- one launch in one small program ----
echo
start=$(now)
timeout 60 ncu --clock-control none --set basic --apply-rules no -c 1 ./driver >/dev/null 2>&1
one_ncu=$(since "$start" 2)
start=$(now)
KPROF_LAUNCH_COUNT=1 KPROF_LOG_FILE=$out/one LD_PRELOAD=$lib ./driver >/dev/null
echo "one launch in one small program: ncu $one_ncu s, kprof $(since "$start" 2) s"

# ---- what profiling costs ----
if [ -z "$quick" ]; then
    echo
    "$here/full.sh" "$out" || fail "full.sh"
    echo
    "$here/bench.sh" "$out" || fail "bench.sh"
fi
echo "$failures failures"
[ $failures -eq 0 ]
