#!/usr/bin/env bash
# Saving by change: programs that own most of the device, natively and profiled. Needs what run.sh needs, PyTorch and JAX.
#   tests/gpu/save.sh [OUT]
# Prints a table: whether the output is the native one, and the time of the whole program, of the first save and of the
# restores. Also what a launch costs in windows of 100 launches and more. Takes two to four minutes.
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
failures=0
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }
most=${SAVE_SECONDS:-150} # for each program

total=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -1)
nvcc -O2 -arch="$arch" -o "$work/bench_launches" "$here/bench_launches.cu" || fail "build bench_launches"

run() { # NAME WAY COMMAND...
    local name=$1 way=$2 started
    shift 2
    started=$(now)
    "$@" >"$out/save.$name.native" 2>"$out/save.$name.native.err" || fail "$name: natively $?"
    echo "$(since "$started")" >"$out/save.$name.times"
    started=$(now)
    KPROF_SAVE=$way KPROF_SAVE_TIME=0 KPROF_DEBUG=replay,window KPROF_LOG_FILE=$out/save.$name.txt LD_PRELOAD=$lib timeout "$most" "$@" \
        >"$out/save.$name.out" 2>"$out/save.$name.err" || fail "$name: exit code $?"
    echo "$(since "$started")" >>"$out/save.$name.times"
    names="$names $name"
}
names=
# shellcheck disable=SC2153
for case in ${SAVE_CASES:-jax written full bench}; do
    case $case in
    jax) run jax auto python3 "$here/jax_steps.py" ;;
    written) if [ "$total" -gt 120000 ]; then run owned-60-written-10 auto python3 "$here/torch_big.py" 60 10 3; else
        run owned-40-written-8 auto python3 "$here/torch_big.py" 40 8 3; fi ;;
    full) if [ "$total" -gt 120000 ]; then run owned-100-written-2 auto python3 "$here/torch_big.py" 100 2 3; else
        run owned-60-written-2 auto python3 "$here/torch_big.py" 60 2 3; fi ;;
    bench) gb=$([ "$total" -gt 120000 ] && echo 40 || echo 30)
        run launches-$gb-all all "$work/bench_launches" 200 "$gb"
        run launches-$gb-changes changes "$work/bench_launches" 200 "$gb" ;;
    *) fail "no case $case" ;;
    esac
done

python3 - "$out" $names <<'END' || failures=$((failures + 1))
import re, sys
out, names = sys.argv[1], sys.argv[2:]
print("| program | output | native s | profiled s | opening; first save of 1 GB and more: GB, ms | restores: median ms | windows | "
      "ms a launch, median of those of 100 and more | closed by |")
print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
bad = 0
for name in names:
    base = f"{out}/save.{name}"
    err = open(base + ".err", errors="replace").read()
    same = open(base + ".native").read() == open(base + ".out").read()
    times = open(base + ".times").read().split()
    saves = [(float(mb), float(ms)) for mb, ms in re.findall(r" save: \d+ of \d+ blocks of memory differ, ([\d.]+) MB copied, ([\d.]+) ms", err)]
    back = sorted(float(ms) for ms in re.findall(r"restore: .* ([\d.]+) ms\n", err))
    windows = re.findall(r"closes \(replay\): (.*); launches (\d+).*\n(?:.*\n)*?.*closed; it took ([\d.]+) ms", err)
    long = [(int(n), float(ms)) for _, n, ms in windows if int(n) >= 100]
    reasons = {}
    for why, n, _ in windows:
        reasons[why] = reasons.get(why, 0) + 1
    most = ", ".join(f"{k} {v}" for k, v in sorted(reasons.items(), key=lambda kv: -kv[1])[:2])
    refused = sorted(set(re.findall(r"cannot be saved by change: (.*)", err)))
    big = [f"{mb / 1e3:.1f}, {ms:.0f}" for mb, ms in saves if mb >= 1000]
    first = f"{saves[0][1]:.0f} ms; {big[0] if big else '-'}" if saves else "by the checkpoint" + "".join("; " + r for r in refused)
    bad += not same
    each = sorted(ms / n for n, ms in long)
    print(f"| {name} | {'the same' if same else 'OTHER'} | {times[0]} | {times[1]} | {first} | "
          f"{back[len(back) // 2] if back else '-'} | {len(windows)} | {format(each[len(each) // 2], '.1f') if each else '-'} | {most} |")
    lines = [l for l in (open(base + ".native.err").read() + err).splitlines() if "first result" in l or "took" in l and "step" in l]
    print("\n".join("    " + l for l in lines))
sys.exit(bad > 0)
END
echo "$failures failures"
[ $failures -eq 0 ]
