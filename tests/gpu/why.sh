#!/usr/bin/env bash
# Where values of kprof are further from ncu's than ncu's from each other: the same counters in several ways of running,
# so that what makes the difference can be seen. Needs what run.sh needs.
#   tests/gpu/why.sh [OUT] [CASE...]     CASE: l2 (all kernels of patterns), spill (default: both); WAYS="NAME ...": only
#   these ways, as ncu, ncu-warm, kprof, kprof-warm
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
cases=${*:-l2 spill}
# What changes where local memory lies, or how large the L1 is: STACK, byte of local memory a thread may have at least;
# CARVE, percent of the L1 that is shared memory for `spill`; LMEM, local memory is never given back.
sed 's|size_t B = 256u << 20;|&\
    if (getenv("LMEM")) CK(cudaSetDeviceFlags(cudaDeviceLmemResizeToMax));\
    if (getenv("STACK")) CK(cudaDeviceSetLimit(cudaLimitStackSize, atoi(getenv("STACK"))));\
    if (getenv("CARVE")) CK(cudaFuncSetAttribute(spill, cudaFuncAttributePreferredSharedMemoryCarveout, atoi(getenv("CARVE"))));|
    s|puts("patterns OK");|&\
    size_t stack; CK(cudaDeviceGetLimit(\&stack, cudaLimitStackSize)); fprintf(stderr, "stack limit %zu byte\\n", stack);|' \
    "$here/patterns.cu" >"$work/patterns.cu"
nvcc -O2 -arch="$arch" -o "$work/patterns" "$work/patterns.cu" || exit 1

l2=lts__t_requests.sum,lts__t_requests_srcunit_tex.sum,lts__t_requests_srcunit_ltcfabric.sum,lts__t_sectors.sum
l2=$l2,lts__t_sectors_srcunit_tex.sum,lts__t_sectors_srcunit_ltcfabric.sum,lts__t_tag_requests.sum
local=launch__shared_mem_config_size,launch__local_mem_per_thread,l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct,l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum
local=$local,dram__bytes_write.sum,dram__bytes_read.sum,gpu__time_duration.sum,sm__warps_active.avg.pct_of_peak_sustained_active
metrics=$l2,$local

asked() { case " ${WAYS:-$1} " in *" $1 "*) ;; *) false ;; esac; }
# Each way leaves a CSV of the raw page.
ncu_way() { # NAME OPTIONS...
    local name=$1
    shift
    asked "$name" || return
    timeout 120 ncu --clock-control none --csv --page raw --print-units base --metrics "$metrics" "$@" "$work/patterns" \
        >"$out/why.$name.csv" 2>"$work/err" || echo "FAILED: $name"
    sed -n "s/^stack limit/$name: &/p" "$work/err"
}
kprof_way() { # NAME ENV...
    local name=$1
    shift
    asked "$name" || return
    env "$@" KPROF_METRICS=$metrics KPROF_CSV=on KPROF_PAGE=raw KPROF_PRINT_UNITS=base KPROF_LOG_FILE="$out/why.$name.csv" \
        LD_PRELOAD="$lib" "$work/patterns" >/dev/null 2>"$work/err" || echo "FAILED: $name"
    sed -n "s/^stack limit/$name: &/p" "$work/err"
}
l2_ways() {
    ncu_way ncu
    ncu_way ncu-again
    ncu_way ncu-warm --cache-control none
    ncu_way ncu-application --replay-mode application
    kprof_way kprof X=1
    kprof_way kprof-again X=1
    kprof_way kprof-warm KPROF_CACHE_CONTROL=none
    kprof_way kprof-window1 KPROF_WINDOW=1
}
spill_ways() {
    local way
    for way in X=1 X=2 STACK=512 STACK=1024 STACK=2048 STACK=4096 STACK=8192 CARVE=0 CARVE=50 CARVE=100 LMEM=1; do
        export "${way?}"
        ncu_way "ncu-$way" -k spill
        kprof_way "kprof-$way" KPROF_KERNEL_NAME=spill
        unset "${way%=*}"
    done
}
for case in $cases; do "${case}_ways"; done

python3 - "$out" "$metrics" <<'PY'
import csv, glob, os, sys
out, metrics = sys.argv[1], sys.argv[2].split(",")
ways = [os.path.basename(p)[4:-4] for p in sorted(glob.glob(os.path.join(out, "why.*.csv")), key=os.path.getmtime)]
values = {}
for way in ways:
    path = os.path.join(out, "why.%s.csv" % way)
    lines = open(path, errors="replace").read().splitlines() if os.path.exists(path) else []
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = list(csv.DictReader(lines[start:]))
    for row in rows:
        name = row.get("Kernel Name", "").split("(")[0].split("<")[0].split()
        for m in metrics:
            try:
                values[way, name[-1], m] = float((row.get(m) or "").replace(",", ""))
            except (ValueError, IndexError):
                pass
kernels = list(dict.fromkeys(k for _, k, _ in values))
for m in metrics:
    print("## " + m)
    print("| way | " + " | ".join(kernels) + " |")
    print("| --- |" + " --- |" * len(kernels))
    for w in ways:
        print("| %s | %s |" % (w, " | ".join("%.6g" % values[w, k, m] if (w, k, m) in values else "-" for k in kernels)))
PY
