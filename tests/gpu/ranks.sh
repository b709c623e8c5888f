#!/usr/bin/env bash
# Two ranks with NCCL on two GPUs, each with a rotation of its own: the same loss and weights as natively, no hang, and what
# each rank has of NCCL's kernels and of the others. Needs what run.sh needs, and two GPUs.
#   tests/gpu/ranks.sh [OUT [SET [RUNS]]]     SET: full; RUNS: 3. STEPS: of the training (300)
# Prints a table.
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
set=${1:-full} runs=${2:-3}
export STEPS=${STEPS:-300} CUBLAS_WORKSPACE_CONFIG=:4096:8
train=(torchrun --nproc-per-node 2 "$here/torch_ranks.py")
failures=0

# Of a session: entries with all groups, and rows with a value and without, of NCCL's kernels and of the others.
tell() { # SESSION
    python3 - "$1" <<'END'
import sqlite3, sys

db = sqlite3.connect(sys.argv[1])
for name, where in (("NCCL's", ""), ("others", "NOT ")):
    chosen = f"FROM launch WHERE demangled {where}LIKE '%nccl%'"
    keys = db.execute(f"SELECT count(*), coalesce(sum(groups_counted = groups), 0) {chosen}").fetchone()
    rows = db.execute(f"SELECT count(*), coalesce(sum(value IS NOT NULL), 0) FROM metric WHERE kind IN (1, 2) AND launch IN (SELECT id {chosen})")
    print(f"  {name}: {keys[1]} of {keys[0]} kernels and shapes complete, {rows.fetchone()[1]} values")
END
}

start=$(now)
timeout 100 "${train[@]}" >"$work/plain" 2>"$work/plain.err" || { tail -3 "$work/plain.err" && exit 1; }
echo "natively: $(since "$start" 1) s; $(cat "$work/plain")"
for run in $(seq "$runs"); do
    rm -f "$work"/run.*.kprof "$out"/ranks.*.txt
    start=$(now)
    KPROF_SET=$set KPROF_REPLAY_MODE=rotate KPROF_EXPORT=$work/run.%r.kprof KPROF_FORCE_OVERWRITE=yes KPROF_LOG_FILE=$out/ranks.%r.txt \
        KPROF_STRICT=no LD_PRELOAD=$lib timeout 150 "${train[@]}" >"$work/out" 2>"$work/err"
    code=$?
    same=same
    [ $code = 0 ] && cmp -s "$work/plain" "$work/out" || { same=OTHER && failures=$((failures + 1)); }
    echo "run $run, $set: $(since "$start" 1) s, exit code $code, loss and weights $same"
    for rank in 0 1; do
        grep -o '[0-9,]* launches seen.*' "$out/ranks.$rank.txt" | head -1 | cut -c1-200
        tell "$work/run.$rank.kprof"
        grep -hE '==(ERROR|WARNING)==' "$out/ranks.$rank.txt" "$work/err" | sort | uniq -c | head -3 | cut -c1-200
    done
done
"$kprof" report --ranks "$work"/run.*.kprof >"$out/ranks.report" 2>&1 || { echo "FAILED: report --ranks" && failures=$((failures + 1)); }
grep -A12 'Rank' "$out/ranks.report" | head -16 | cut -c1-160
echo "$failures failures"
[ "$failures" -eq 0 ]
