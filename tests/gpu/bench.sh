#!/usr/bin/env bash
# What profiling costs, kprof beside ncu in the same run: prints one table. Needs what run.sh needs.
#   tests/gpu/bench.sh [OUT] [GROUP...]     OUT: where the table (bench.md) and the details (bench.log) go (default
#   build/gpu); GROUP: launches passes sync one quick unselected threads resnet scaler pinned footprint (default: all of them)
export LC_ALL=C # numbers with a point
. "$(dirname "$0")/gpu.inc"
groups=${*:-launches passes sync one quick unselected threads resnet scaler pinned footprint}
log=$out/bench.log
: >"$log"
bench=$work/bench_launches
nvcc -O2 -arch="$arch" -o "$bench" "$here/bench_launches.cu" || exit 1

# The heads and charts of ncu's full set, as far as one add call takes them on GH100: 153 metrics, 20 passes.
peak=avg.pct_of_peak_sustained
metrics=(
    # throughput, compute, memory
    {sm__,gpu__compute_memory_,lts__,gpu__dram_}throughput.${peak}_elapsed l1tex__throughput.${peak}_{active,elapsed}
    gpu__time_duration.sum gpc__cycles_elapsed.{max,avg.per_second} dram__cycles_elapsed.avg.per_second
    sm__inst_{executed,issued}.avg.per_cycle_active sm__inst_executed.avg.per_cycle_elapsed
    sm__{instruction_throughput,inst_issued,memory_throughput}.${peak}_elapsed
    sm__inst_issued.max.pct_of_peak_sustained_elapsed
    gpu__compute_memory_{access,request}_throughput.${peak}_elapsed
    dram__bytes.sum.per_second {l1tex,lts}__t_sector_hit_rate.pct
    lrc__ilc_input_sectors.sum lrc__average_ilc_output_sector_compression_achieved_rate.pct
    lrc__average_ilc_input_sector_success_rate.pct
    # pipes
    sm__pipe_{alu,fma,fp64,tensor,tensor_op_{dmma,hmma,imma},shared,tma}_cycles_active.${peak}_{elapsed,active}
    sm__inst_executed_pipe_{adu,alu,cbu,fma,fma_type_fp16,fp64,lsu,tex,tma,uniform,xu}.${peak}_{elapsed,active}
    sm__inst_executed_pipe_tensor_op_{dmma,gmma,hmma,imma}.${peak}_{elapsed,active}
    # memory tables and chart
    smsp__sass_average_data_bytes_per_sector_mem_{global,local}_op_{ld,st}.{ratio,max_rate}
    l1tex__t_sector_pipe_lsu_mem_{global,local}_op_{ld,st}_hit_rate.pct lts__t_sector_op_{read,write}_hit_rate.pct
    lts__t_sectors_srcunit_tex{,_aperture_peer,_aperture_sysmem}_lookup_miss.sum
    # schedulers, warp states, instructions, branches
    smsp__warps_active.avg.{per_cycle_active,peak_sustained} smsp__warps_eligible.avg.per_cycle_active
    smsp__issue_{inst0,active}.${peak}_active smsp__issue_active.avg.per_cycle_active
    smsp__average_{warp_latency_per_inst_issued,warps_active_per_inst_executed}.ratio
    smsp__thread_inst_executed{,_pred_on}_per_inst_executed.ratio
    smsp__average_warps_issue_stalled_{barrier,branch_resolving,dispatch_stall,drain,gmma,imc_miss}_per_issue_active.ratio
    smsp__average_warps_issue_stalled_{lg_throttle,long_scoreboard,math_pipe_throttle,membar}_per_issue_active.ratio
    smsp__average_warps_issue_stalled_{mio_throttle,misc,no_instruction,not_selected}_per_issue_active.ratio
    smsp__average_warps_issue_stalled_{selected,short_scoreboard,sleeping,tex_throttle,wait}_per_issue_active.ratio
    smsp__inst_{executed,issued}.{sum,avg} smsp__inst_executed_op_branch.sum
    smsp__sass_average_branch_targets_threads_uniform.pct smsp__sass_branch_targets_threads_divergent.avg
    # occupancy, distribution
    sm__warps_active.avg.{pct_of_peak_sustained,per_cycle}_active
    {sm,smsp,l1tex,lts,dram}__cycles_active.{avg,max,min,sum} {sm,smsp,l1tex,lts,dram}__cycles_elapsed.sum
)
list=$(IFS=, && echo "${metrics[*]}")

# ---- running; `opts` are ncu's options of a case, `vars` kprof's environment, `limit` seconds a run ----
opts=() vars=() limit=100
failures=0
fault= # of the case at hand
seconds() { sed -n 's/^bench: .*with results \([0-9.]*\) s$/\1/p' "$1" | tail -1; }
launch_seconds() { sed -n 's/^bench: launches \([0-9.]*\) s.*/\1/p' "$1" | tail -1; }
fail() {
    fault="${fault:+$fault, }**FAILED**: $*"
    failures=$((failures + 1))
    echo "FAILED: $name: $*" | tee -a "$log"
}
# A formula over $1, $2 …, printed with FORMAT; n/a where a value is missing.
calc() { # FORMAT FORMULA VALUE...
    local format=$1 formula=$2 v
    shift 2
    for v; do
        [ -n "$v" ] && [ "$v" != n/a ] || { echo n/a; return; }
    done
    echo "$@" | awk "{ d = $formula; if (d ~ /inf|nan/) print \"n/a\"; else printf \"$format\", d }" 2>/dev/null || echo n/a
}

native() { # NAME COMMAND...
    name=$1 fault=
    shift
    local start
    start=$(now)
    timeout -k 5 $limit "$@" >"$work/$name.plain" 2>"$work/$name.err"
    local code=$?
    native_wall=$(since "$start") native_s=$(seconds "$work/$name.err") native_loop=$(launch_seconds "$work/$name.err")
    echo "native $name: exit $code, process $native_wall s, work $native_s s: $*" >>"$log"
    [ $code = 0 ] || fail "natively: exit $code: $(tail -1 "$work/$name.plain" "$work/$name.err" | tr '\n' ' ')"
}

kprof() { # NAME COMMAND... ; after native NAME
    name=$1
    shift
    local start last report=$work/$name.report
    rm -f "$report"
    start=$(now)
    timeout -k 5 $limit env "${vars[@]}" KPROF_QUIET=yes KPROF_LOG_FILE="$report" LD_PRELOAD="$lib" "$@" \
        >"$work/$name.kprof" 2>"$work/$name.kprof.err"
    kprof_code=$?
    kprof_wall=$(since "$start") kprof_s=$(seconds "$work/$name.kprof.err")
    kprof_loop=$(launch_seconds "$work/$name.kprof.err")
    last=$(grep -E 'launch(es)? seen' "$report" 2>/dev/null | tail -1)
    seen=$(echo "$last" | grep -oE '[0-9,]+ launch(es)? seen' | grep -oE '^[0-9,]+' | tr -d ,)
    profiled=$(echo "$last" | grep -oE '[0-9,]+ profiled' | grep -oE '^[0-9,]+' | tr -d ,)
    {
        echo "kprof $name: exit $kprof_code, process $kprof_wall s, work $kprof_s s: $(echo "${vars[@]}" | cut -c1-80) $*"
        echo "  $last"
        grep -hE '==(WARNING|ERROR)==' "$report" "$work/$name.kprof.err" | sort | uniq -c | sort -rn | head -6
    } >>"$log" 2>/dev/null
    [ $kprof_code = 0 ] || fail "exit $kprof_code"
    cmp -s "$work/$name.plain" "$work/$name.kprof" || {
        fail "other output"
        diff "$work/$name.plain" "$work/$name.kprof" | head -6 >>"$log"
    }
}

ncu_run() { # NAME COUNT COMMAND... : sets ncu_s, ncu_wall, ncu_loop; ncu_done: launches that it profiled
    local start name=$1 count=$2
    shift 2
    start=$(now)
    timeout -k 5 $limit ncu --clock-control none --log-file "$work/$name.ncu" "${opts[@]}" ${count:+-c $count} "$@" \
        >/dev/null 2>"$work/$name.ncu.err"
    local code=$?
    ncu_wall=$(since "$start") ncu_s=$(seconds "$work/$name.ncu.err") ncu_loop=$(launch_seconds "$work/$name.ncu.err")
    ncu_done=$(grep -c '==PROF== Profiling' "$work/$name.ncu")
    {
        echo "ncu $name: exit $code, process $ncu_wall s, work $ncu_s s, $ncu_done launches: $(echo "${opts[@]}" | cut -c1-80)"
        grep -E '==(WARNING|ERROR)==' "$work/$name.ncu" | sort | uniq -c | head -3
    } >>"$log"
}

# ms a launch under ncu: MORE launches against FEW, so that its start-up is not in it. Measured once for each set of options
# and way of launching.
declare -A known_cost
ncu_cost() { # NAME FEW MORE COMMAND...
    local key="${opts[*]} ${6:-}" few=$2 more=$3 name=$1 few_s
    shift 3
    if [ -z "${known_cost[$key]:-}" ]; then
        ncu_run "$name" "$few" "$@"
        few_s=$ncu_s
        [ "$ncu_done" = "$few" ] || few_s=
        ncu_run "$name" "$more" "$@"
        [ "$ncu_done" = "$more" ] || ncu_s=
        known_cost[$key]=$(calc %.1f "(\$2 - \$1) * 1000 / \$3" "$few_s" "$ncu_s" $((more - few)))
    fi
    ncu_ms=${known_cost[$key]}
}

# ---- the table ----
table=()
judge() { # RATIO MUST
    [ "$2" = - ] && { echo -; return; }
    [ "$1" = n/a ] && { echo "$2: not measured"; return; }
    awk -v r="$1" -v m="$2" 'BEGIN { print m (r >= m ? ": met" : ": **missed**") }'
}
row() { # CASE NATIVE NCU KPROF PER-LAUNCH RATIO MUST
    table+=("| $1 | $2 | $3 | $4${fault:+, $fault} | $5 | $6 | $7 |")
    echo "row: ${table[-1]}" >>"$log" # the table is lost when the time runs out
    echo "  done: $1" >&2
}
# The row of a case that native, kprof and ncu_cost have just measured.
row_by_launch() { # CASE MUST
    local ms ratio
    ms=$(calc %.2f "(\$1 - \$2) * 1000 / \$3" "$kprof_s" "$native_s" "$profiled")
    ratio=$(calc %.1f "\$1 / \$2" "$ncu_ms" "$ms")
    row "$1" "${native_s:-n/a} s" "$ncu_ms ms a launch" "${kprof_s:-n/a} s, $profiled of $seen profiled" "$ms ms" "$ratio" \
        "$(judge "$ratio" "$2")"
}
by_launch() { # CASE NAME MUST COMMAND...
    local label=$1 name=$2 must=$3
    shift 3
    native "$name" "$@"
    kprof "$name" "$@"
    ncu_cost "$name" 4 12 "$@"
    row_by_launch "$label" "$must"
}

basic=(--set basic --apply-rules no)
many=(--metrics "$list")

launches() {
    opts=("${basic[@]}") vars=(KPROF_SET=basic)
    by_launch "400 launches, basic, cold caches" basic 18 "$bench" 400
    local all_s=$kprof_s all=$profiled
    fault=
    vars=(KPROF_SET=basic KPROF_LAUNCH_COUNT=1)
    kprof basic "$bench" 400
    row "the same, each launch after the first" - "$ncu_ms ms a launch" "first launch and set-up: ${kprof_s:-n/a} s" \
        "$(calc %.2f "(\$1 - \$2) * 1000 / (\$3 - 1)" "$all_s" "$kprof_s" "$all") ms" - -
    opts=("${basic[@]}" --cache-control none) vars=(KPROF_SET=basic KPROF_CACHE_CONTROL=none)
    by_launch "400 launches, basic, cache control none" basic-none 33 "$bench" 400
}

passes() {
    opts=("${many[@]}") vars=(KPROF_METRICS="$list")
    by_launch "400 launches, ${#metrics[@]} metrics, cold caches (aim 25)" many 16 "$bench" 400
    opts=("${many[@]}" --cache-control none) vars=(KPROF_METRICS="$list" KPROF_CACHE_CONTROL=none)
    by_launch "400 launches, ${#metrics[@]} metrics, cache control none" many-none 33 "$bench" 400
}

sync() {
    opts=("${basic[@]}") vars=(KPROF_SET=basic)
    by_launch "400 launches, each waited for, basic" basic-sync - "$bench" 400 sync
    vars=(KPROF_SET=basic KPROF_WINDOW=1)
    by_launch "16 launches, each waited for, basic, KPROF_WINDOW=1" basic-one 1.5 "$bench" 16 sync
    opts=("${many[@]}") vars=(KPROF_METRICS="$list")
    by_launch "400 launches, each waited for, ${#metrics[@]} metrics" many-sync - "$bench" 400 sync
    vars=(KPROF_METRICS="$list" KPROF_WINDOW=1)
    by_launch "16 launches, each waited for, ${#metrics[@]} metrics, KPROF_WINDOW=1" many-one 1.5 "$bench" 16 sync
}

# Of numbers, without those that are missing.
sorted() { printf '%s\n' "$@" | grep '[0-9]' | sort -g; }
least() { sorted "$@" | head -1; }
median() { sorted "$@" | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "n/a" }'; }
span() { sorted "$@" | awk 'NR == 1 { a = $1 } { b = $1 } END { print NR ? a " to " b : "n/a" }'; }

whole_process() { # CASE NAME
    local n='' k='' u='' fault_found='' i ratio
    for i in 1 2 3; do
        native "$2" "$bench" 1
        kprof "$2" "$bench" 1
        fault_found=${fault:-$fault_found}
        ncu_run "$2" "" "$bench" 1
        n="$n $native_wall" k="$k $kprof_wall" u="$u $ncu_wall"
    done
    n=$(least $n) k=$(least $k) u=$(least $u)
    ratio=$(calc %.2f "\$1 / \$2" "$u" "$k")
    fault=$fault_found
    row "$1" "$n s" "$u s" "$k s, $profiled of $seen profiled" - "$ratio" "$(judge "$ratio" 2)"
}
one() {
    opts=("${basic[@]}") vars=(KPROF_SET=basic)
    whole_process "one launch, whole process, best of 3, basic" one-basic
    opts=("${many[@]}") vars=(KPROF_METRICS="$list")
    whole_process "one launch, whole process, best of 3, ${#metrics[@]} metrics" one-many
}

quick() {
    opts=("${basic[@]}") vars=(KPROF_SET=quick)
    by_launch "400 launches, quick set (ncu: basic)" quick 300 "$bench" 400
    local few_s=$kprof_s few_native=$native_s few=$profiled ms ratio
    native quick-more "$bench" 2000
    kprof quick-more "$bench" 2000
    ms=$(calc %.3f "((\$1 - \$2) - (\$3 - \$4)) * 1000 / (\$5 - \$6)" "$kprof_s" "$native_s" "$few_s" "$few_native" \
        "$profiled" "$few")
    ratio=$(calc %.1f "\$1 / \$2" "$ncu_ms" "$ms")
    row "quick set, each launch of 2,000 above those of 400" "${native_s:-n/a} s" "$ncu_ms ms a launch" \
        "${kprof_s:-n/a} s, $profiled of $seen profiled" "$ms ms" "$ratio" -
}

# Single runs move by more than what kprof adds, so each takes its turn nine times.
unselected() {
    local n=() k=() u fault_found='' i native_us kprof_us above
    opts=(-k nomatch --set basic) vars=(KPROF_KERNEL_NAME=nomatch)
    for i in {1..9}; do
        native unselected "$bench" 20000 tiny
        kprof unselected "$bench" 20000 tiny
        [ "$seen" = 20000 ] && [ "$profiled" = 0 ] || fail "$profiled of $seen profiled"
        fault_found=${fault:-$fault_found}
        n+=("$(calc %.3f "\$1 * 1e6 / 20000" "$native_loop")") k+=("$(calc %.3f "\$1 * 1e6 / 20000" "$kprof_loop")")
    done
    ncu_run unselected "" "$bench" 2000 tiny
    u=$(calc %.3f "\$1 * 1e6 / 2000" "$ncu_loop")
    native_us=$(median "${n[@]}") kprof_us=$(median "${k[@]}")
    above=$(calc %.3f "\$1 - \$2" "$kprof_us" "$native_us")
    echo "us a launch, run by run: native ${n[*]}; kprof ${k[*]}" >>"$log"
    fault=$fault_found
    row "20,000 launches, none selected, median of 9 in turn (ncu: 2,000)" "$native_us us a launch ($(span "${n[@]}"))" \
        "$u us a launch" "$kprof_us us a launch ($(span "${k[@]}"))" "$above us above native" \
        "$(calc %.1f "\$1 / \$2" "$u" "$kprof_us")" \
        "0.2 us above native: $(calc %s "(\$1 <= 0.2) ? \"met\" : \"**missed**\"" "$above")"
}

# Whole processes: what a user waits for.
threads() {
    local case bench=$work/threads plain
    nvcc -O2 -arch="$arch" -o "$bench" "$here/threads.cu" || return
    native threads "$bench" 64 20
    plain=$native_wall
    native threads "$bench" 64 20
    plain=$(least "$plain" "$native_wall")
    for case in KPROF_KERNEL_NAME=nomatch KPROF_SET=quick KPROF_SET=basic; do
        vars=("$case")
        kprof threads "$bench" 64 20
        row "64 threads, 20 launches each, $case, whole process" "$plain s" - "$kprof_wall s" \
            "$(calc %.1f "\$1 / \$2" "$kprof_wall" "$plain") times plain" - \
            "10 times plain: $(calc %s "(\$1 <= 10 * \$2) ? \"met\" : \"**missed**\"" "$kprof_wall" "$plain")"
        fault=
    done
}

trained() { # NAME CASE MUST OPTION...
    local case=$2 must=$3 command=(python3 "$here/bench_resnet.py" "${@:4}") first total
    opts=("${basic[@]}" -s 500) vars=(KPROF_SET=basic) limit=200
    native "$1" "${command[@]}"
    first=$(cat "$work/$1.plain")
    native "$1" "${command[@]}"
    [ "$first" = "$(cat "$work/$1.plain")" ] || fail "the program itself is not deterministic"
    kprof "$1" "${command[@]}"
    ncu_cost "$1" 5 25 "${command[@]}"
    total=$(calc %.0f "\$1 * \$2 / 1000" "$ncu_ms" "$seen")
    row_by_launch "$case, 3 training steps, basic (ncu: 20 launches, scaled: $total s)" "$must"
    {
        echo "losses, native and kprof:"
        paste -d '|' "$work/$1.plain" "$work/$1.kprof"
    } >>"$log"
    limit=100
}
resnet() { trained resnet "ResNet-18" 15; }
scaler() { trained scaler "ResNet-18, fp16 with GradScaler" 15 --scaler; }
pinned() {
    local command=(python3 "$here/bench_resnet.py" --pinned --steps 2)
    vars=(KPROF_SET=basic) limit=150
    native pinned "${command[@]}"
    [ ! -s "$work/resnet.plain" ] || [ "$(grep ^step "$work/resnet.plain" | head -2)" = "$(grep ^step "$work/pinned.plain")" ] ||
        fail "other losses natively than without pinned memory"
    kprof pinned "${command[@]}"
    ncu_ms=n/a
    row_by_launch "ResNet-18, 2 steps, batches from a pinned loader, basic" -
    limit=100
}

footprint() {
    local gb owned
    vars=(KPROF_SET=basic)
    # MiB of the first of the devices that the program sees
    owned=$(nvidia-smi -i "${CUDA_VISIBLE_DEVICES:-0}" --query-gpu=memory.total --format=csv,noheader,nounits | head -1)
    for gb in 0.128 4 40 100; do
        if awk -v gb=$gb -v owned="$owned" 'BEGIN { exit !(gb * 1000 > owned) }'; then
            fault=
            row "200 launches, basic, footprint $gb GB" - - "not run: the GPU has $owned MiB" - - -
            continue
        fi
        native "footprint-$gb" "$bench" 200 $gb
        kprof "footprint-$gb" "$bench" 200 $gb
        ncu_ms=n/a
        row_by_launch "200 launches, basic, footprint $gb GB (exit code $kprof_code)" -
    done
}

for group in $groups; do
    case $group in
    launches | passes | sync | one | quick | unselected | threads | resnet | scaler | pinned | footprint)
        started=$(now)
        $group
        echo "group $group: $(since "$started") s" | tee -a "$log" >&2
        ;;
    *) echo "no group $group" >&2 && exit 2 ;;
    esac
done

{
    echo "| case | native | ncu | kprof | kprof per launch | ratio | must |"
    echo "| --- | --- | --- | --- | --- | --- | --- |"
    printf '%s\n' "${table[@]}"
    echo
    echo "Times are those of the launches until their results are on the host. kprof per launch: time above native, set-up"
    echo "included, by launches profiled. ncu: time of 12 profiled launches less that of 4, by 8 (ResNet: 25, 5, 20), so"
    echo "without its set-up. Ratio: ncu per launch by kprof per launch; whole processes by their wall time."
    echo "$failures failures"
} | tee "$out/bench.md"
[ $failures -eq 0 ]
