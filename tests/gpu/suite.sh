#!/usr/bin/env bash
# The GPU suite, for machines that are lent by the call. Needs what run.sh needs.
#   tests/gpu/suite.sh OUT PART...     PART: 1 (choose.sh, source.sh; two GPUs for the ranks), 2 (full.sh, why.sh), 3 (run.sh
#   without these), 4 (bench.sh), 5 (timeline.sh, app_replay.sh, rotate.sh), 6 (asks.sh, save.sh), 7 (full.sh and rotate.sh
#   with other programs), 8 (app_replay.sh with PyTorch, which takes minutes alone): the whole, less than ten minutes each.
#   GPU=N: the device that parts of one GPU run on (0), so that two parts may run beside each other. CUTLASS_EXAMPLES,
#   PROGRAMS: what part 7 takes along, see these scripts
#   tests/gpu/suite.sh OUT short [NAME...]     a bit of each script, by the rows of tests/gpu/short.txt (NAME: some of them), in
#   560 s on one GPU. A part that runs out of time is ended, and the others go on. OUT gets summary.md, which is printed
#   last, results.csv with the same rows, and suite.tar.gz with all logs. Copy results.csv to tests/gpu/ and run `make tables`
#   to have them in docs/performance.md. PARTS=FILE: other rows. COMMIT: what is measured, where git does not know it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
failures=0
# What a launch costs is measured with every launch; bounded.sh and contact.sh are about the budget.
export KPROF_BUDGET=${KPROF_BUDGET-none}
gpu=${GPU:-0}
# All but the ranks is meant for one GPU.
step() { # LIMIT NAME ARGUMENTS...
    local limit=$1 name=$2 start=$SECONDS
    shift 2
    timeout "$limit" bash "$here/$name" "$out" "$@" >"$out/$name.txt" 2>"$out/$name.err"
    local code=$?
    cat "$out/$name.txt"
    echo "#### $name $*: exit code $code, $((SECONDS - start)) s"
    [ $code -eq 0 ] || failures=$((failures + 1))
}

# ---- the short suite ----
# Ends all processes of a session. `timeout` would miss what a script runs under a `timeout` of its own.
end_session() { # ID
    local signal p stat
    for signal in TERM KILL; do
        for p in /proc/[0-9]*; do
            # Fields after the name, which may have spaces: state, parent, group, session.
            read -r stat <"$p/stat" || continue
            set -- "$1" ${stat##*) }
            [ "$5" != "$1" ] || kill -$signal "${p#/proc/}"
        done
        sleep 1
    done 2>/dev/null
}

# Runs a row. Leaves its output in a folder, and what became of it in the list.
short_part() { # NAME LIMIT VAR=VALUE... SCRIPT ARGUMENT...
    local name=$1 limit=$2 vars=() start=$SECONDS pid code=0
    shift 2
    while [[ $1 == *=* ]]; do
        vars+=("$1")
        shift
    done
    local folder=$logs/$name script=$1
    [[ $script == /* ]] || script=$here/$script
    shift
    mkdir -p "$folder"
    env "${vars[@]}" setsid bash "$script" "$folder" "$@" >"$folder/out" 2>"$folder/err" </dev/null &
    pid=$!
    while kill -0 $pid 2>/dev/null && ((SECONDS - start < limit)); do sleep 0.2; done
    if kill -0 $pid 2>/dev/null; then
        end_session $pid
        code=time
    fi
    # One that even KILL does not end, as the driver may hold it, is left behind.
    [ $code = time ] || wait $pid 2>/dev/null || code=$?
    echo "#### $name: ${script##*/} $*: exit code $code, $((SECONDS - start)) s of $limit"
    printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$code" $((SECONDS - start)) "$limit" "${vars[*]} ${script##*/} $*" >>"$logs/parts.tsv"
    [ $code = 0 ] || failures=$((failures + 1))
}

# Everything so far: a machine that is taken away leaves what was measured.
keep() {
    python3 "$here/summary.py" "$logs" "$out/results.csv" "$commit" "$machine" >"$out/summary.md"
    find "$logs" -type f -size -16M -printf '%P\n' | tar -C "$logs" -cf "$out/suite.tar" -T -
}

# The GPU, its driver, and ncu's version: one line.
machine_name() {
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader -i "${CUDA_VISIBLE_DEVICES%%,*}" | sed 's/, /, driver /'
    ncu --version | sed -n 's/^Version \([0-9.]*[0-9]\).*/, ncu \1/p'
}

short() { # NAME...
    local name seconds rest spare=0
    logs=$(mktemp -d)
    trap 'rm -rf "$logs"' EXIT
    export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
    commit=${COMMIT:-$(git -C "$here" rev-parse --short=8 HEAD 2>/dev/null)}
    machine=$(machine_name 2>/dev/null | tr -d '\n')
    while read -r name seconds rest <&3; do
        case $name in '' | '#'*) continue ;; esac
        [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
        local start=$SECONDS
        # What parts before have left is theirs to use.
        eval "short_part $name $((seconds + spare)) $rest"
        keep
        spare=$((spare + seconds - (SECONDS - start)))
    done 3<"${PARTS:-$here/short.txt}"
    [ -e "$logs/parts.tsv" ] || { echo "no part of: $*" >&2 && exit 2; }
    gzip -f "$out/suite.tar"
    echo "$failures of $(wc -l <"$logs/parts.tsv") parts failed or ran out of time, $SECONDS s in all"
    cat "$out/summary.md"
    exit $((failures > 0))
}

mkdir -p "$out"
[ "${1:-}" != short ] || { shift && short "$@"; }
for part; do
    case $part in
    1)
        step 250 choose.sh
        CUDA_VISIBLE_DEVICES=$gpu step 330 source.sh
        ;;
    2)
        export CUDA_VISIBLE_DEVICES=$gpu
        step 420 full.sh
        step 160 why.sh
        ;;
    3) CUDA_VISIBLE_DEVICES=$gpu step 580 run.sh alone ;;
    4) CUDA_VISIBLE_DEVICES=$gpu step 580 bench.sh ;;
    5)
        export CUDA_VISIBLE_DEVICES=$gpu
        step 120 timeline.sh
        LIMIT=225 step 240 app_replay.sh patterns order
        step 220 rotate.sh 40 basic
        ;;
    6)
        export CUDA_VISIBLE_DEVICES=$gpu
        step 60 asks.sh
        step 520 save.sh
        ;;
    7)
        export CUDA_VISIBLE_DEVICES=$gpu
        NCU_RUNS=1 step 400 full.sh decode ${CUTLASS_EXAMPLES:+cutlass}
        step 180 rotate.sh programs
        ;;
    8) LIMIT=560 CUDA_VISIBLE_DEVICES=$gpu step 580 app_replay.sh torch ;;
    *) echo "no part $part" >&2 && exit 2 ;;
    esac
done
echo "$failures failures in the suite"
[ $failures -eq 0 ]
