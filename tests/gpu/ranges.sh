#!/usr/bin/env bash
# Range replay beside ncu's, on programs of ranges.cu. Needs what run.sh needs.
#   tests/gpu/ranges.sh [OUT]
# Prints a table of values, and whether a range of two streams takes less than its kernels one by one. Takes less than a
# minute. MODE=app-range: the program runs once for each pass, with kprof and with ncu; one more program has in its ranges
# what cannot be repeated. Less than a minute, too.
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
failures=0
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }

cd "$work" || exit 1
nvcc -O2 -arch="$arch" -o ranges "$here/ranges.cu" || { fail "build ranges" && exit 1; }
metrics=gpu__time_duration.sum,smsp__inst_executed.sum,dram__bytes_read.sum,lts__t_sectors.sum,sm__warps_active.avg.pct_of_peak_sustained_active

mode=${MODE:-range}
programs="streams pipeline"
[ "$mode" = range ] || programs="streams pipeline anything"

for name in $programs; do
    include=""
    [ $name = pipeline ] && include="--nvtx-include step/"
    ./ranges $name >"$out/ranges.$name.plain" 2>"$out/ranges.$name.times"
    # shellcheck disable=SC2086
    timeout 60 "$kprof" --replay-mode $mode --metrics $metrics --page raw --csv $include --log-file "$out/ranges.$name.csv" \
        ./ranges $name >"$out/ranges.$name.out" 2>"$out/ranges.$name.err" || fail "$name: exit code $?"
    # Each run prints what the program prints.
    sort -u "$out/ranges.$name.out" | cmp -s - <(sort -u "$out/ranges.$name.plain") || fail "$name: other output"
    grep -hE '==(WARNING|ERROR)==' "$out/ranges.$name.err" "$out/ranges.$name.csv" | sort | uniq -c | head -5
    # shellcheck disable=SC2086
    timeout 90 ncu --replay-mode $mode --clock-control none --metrics $metrics --page raw --csv --print-units base \
        ${include:+--nvtx $include} ./ranges $name >"$out/ranges.$name.ncu" 2>&1 || echo "ncu, $name: $(tail -2 "$out/ranges.$name.ncu")"
done
# Its kernels one by one.
[ "$mode" != range ] || "$kprof" --metrics gpu__time_duration.sum --profile-from-start off --page raw --csv --log-file "$out/ranges.kernels.csv" \
    ./ranges streams >/dev/null 2>&1 || fail "kernel replay"
# And the whole of a report once.
if [ "$mode" = range ]; then
    "$kprof" --replay-mode range --set full --log-file "$out/ranges.full.txt" ./ranges streams >/dev/null 2>"$out/ranges.full.err" ||
        fail "set full"
    grep -E '^  [^ ].*, Context' "$out/ranges.full.txt"
    grep -hE '==(WARNING|ERROR)==' "$out/ranges.full.err" | head -5
fi

python3 - "$out" "$metrics" "$mode" "$programs" <<'END' || failures=$((failures + 1))
import csv, sys
out, metrics, mode, programs = sys.argv[1], sys.argv[2].split(","), sys.argv[3], sys.argv[4].split()

def rows(path):
    lines = open(path).read().splitlines()
    first = next((i for i, l in enumerate(lines) if l.startswith('"ID"')), len(lines))
    return list(csv.DictReader(l for l in lines[first:] if l.startswith('"')))[1:]  # the first row has the units

def number(row, metric):
    try:
        return float(row[metric].replace(",", ""))
    except (KeyError, ValueError):
        return float("nan")

bad, durations = 0, []
print("| range | metric | kprof | ncu | kprof / ncu |\n| --- | --- | --- | --- | --- |")
for name in programs:
    expected = 2
    ours, theirs = rows(out + "/ranges.%s.csv" % name), rows(out + "/ranges.%s.ncu" % name)
    if len(ours) != expected or len(theirs) != expected:
        print("FAILED: %s: %d ranges of kprof, %d of ncu, not %d" % (name, len(ours), len(theirs), expected))
        bad += 1
    for i, mine in enumerate(ours):
        other = theirs[i] if i < len(theirs) else {}
        for metric in metrics:
            a, b = number(mine, metric), number(other, metric)
            print("| %s | %s | %.6g | %.6g | %.3f |" % (mine.get("Kernel Name", "?"), metric, a, b, a / b if b else float("nan")))
            # The same launches execute the same instructions, whoever counts; but for the heap, which has locks.
            if mode != "range" and name != "anything" and metric == "smsp__inst_executed.sum" and not abs(a - b) <= 0.01 * b:
                print("FAILED: %s: other instructions than under ncu" % name)
                bad += 1
            if mode != "range" and a != a:
                print("FAILED: %s: no %s" % (name, metric))
                bad += 1
        if name == "streams":
            durations.append(number(mine, metrics[0]))
if mode != "range":
    sys.exit(bad > 0)
kernels = [number(r, metrics[0]) for r in rows(out + "/ranges.kernels.csv")]
each = len(kernels) // 2
if len(durations) == 2 and each:
    for what, duration, of in (("two streams", durations[0], kernels[:each]), ("one stream", durations[1], kernels[each:])):
        print("%s: the range takes %.3f ms, its %d kernels one by one %.3f ms: %.2f" %
              (what, duration / 1e6, len(of), sum(of) / 1e6, duration / sum(of)))
    if durations[0] > 0.75 * sum(kernels[:each]):
        print("FAILED: the kernels of two streams did not run side by side")
        bad += 1
else:
    print("FAILED: no durations")
    bad += 1
sys.exit(bad > 0)
END
cat "$out"/ranges.*.times
[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
