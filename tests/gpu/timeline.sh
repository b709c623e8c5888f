#!/usr/bin/env bash
# The timeline on a GPU machine, after `make`: what it costs a launch, and whether session, trace and the program agree.
#   tests/gpu/timeline.sh [OUT] [N]     OUT: where files go (default build/gpu); N: launches of the long row (20000)
# KP_TRACE_PROCESSOR=BINARY: Perfetto's trace_processor_shell, with PyPI's perfetto: its own parser looks at the traces, too.
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
n=${1:-20000}
repeat=20
# To a file: some of it runs in subshells, whose output is a number.
fail() { echo "FAILED: $*" | tee -a "$work/failed" >&2; }
look() { python3 "$root/tests/e2e/timeline.py" "$@" >"$work/said" || fail "$1 $2: $(cat "$work/said")"; }
sqlite() { python3 -c 'import sqlite3, sys; [print(*r) for r in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])]' "$@"; }

cd "$work" || exit 1
nvcc -O2 -std=c++17 -arch="$arch" -o timeline "$here/timeline.cu" -ldl || { echo "cannot build timeline"; exit 1; }

# Runs the program five times; prints the median of the ns a launch.
ns_of() { # FILE COMMAND...
    local file=$1
    shift
    for _ in 1 2 3 4 5; do
        timeout 200 "$@" >"$work/$file.out" 2>"$work/$file.err" || fail "$file: exit code $?: $(tail -2 "$work/$file.err")"
        cmp -s "$work/plain.out" "$work/$file.out" || [ "$file" = plain ] || fail "$file: other output"
        sed -n 's/^\([0-9]*\) ns a launch$/\1/p' "$work/$file.err"
    done | sort -n | sed -n 3p
}

native=$(ns_of plain ./timeline "$n" $repeat)
let_through=$(ns_of through env KPROF_PROFILE_FROM_START=off KPROF_QUIET=on KPROF_LOG_FILE=/dev/null LD_PRELOAD=$lib ./timeline "$n" $repeat)
alone=$(ns_of alone env KPROF_PAGE=timeline KPROF_QUIET=on KPROF_LOG_FILE="$out/timeline.report" KPROF_EXPORT="$out/timeline.kprof" \
    KPROF_FORCE_OVERWRITE=on LD_PRELOAD=$lib ./timeline "$n" $repeat)
grep -E '==(WARNING|ERROR)==' "$work/alone.err" "$out/timeline.report"

# The session has each activity of the program, and nothing else.
kernels=$((n + 1 + 2 * repeat + repeat / 5))
copies=$((2 * repeat + 2))
got=$(sqlite "$out/timeline.kprof" "SELECT sum(kind = 0), sum(kind = 1), sum(kind = 2) FROM activity")
[ "$got" = "$kernels $copies 2" ] || fail "timeline alone: $got kernels, copies and memsets instead of $kernels $copies 2"
long=$(sqlite "$out/timeline.kprof" "SELECT count(*) FROM activity WHERE kind = 0 AND end_ns - start_ns > 100000000")
[ "$long" = 0 ] || fail "$long kernels of more than 100 ms"

# Trace, page and session agree.
"$kprof" report -f --trace-json "$out/timeline.json" "$out/timeline.kprof" || fail "the trace"
look trace "$out/timeline.kprof" "$out/timeline.json"
[ -z "${KP_TRACE_PROCESSOR:-}" ] || look perfetto "$out/timeline.kprof" "$out/timeline.json" "$KP_TRACE_PROCESSOR"
in_session=$(sqlite "$out/timeline.kprof" "SELECT sum(end_ns - start_ns) FROM activity WHERE kind = 0")
in_trace=$(python3 -c 'import json, sys
print(sum(round(e["dur"] * 1000) for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X" and e["cat"] == "kernel"))' \
    "$out/timeline.json")
[ "$in_session" = "$in_trace" ] || fail "kernels take $in_session ns in the session, $in_trace in the trace"
"$kprof" report -f --html "$out/timeline.html" "$out/timeline.kprof" || fail "the HTML file"
"$kprof" report --page timeline --csv "$out/timeline.kprof" >"$out/timeline.csv" || fail "the page"
python3 - "$out/timeline.csv" $((repeat / 5)) <<'END' || fail "the gaps"
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["Table"] == "gap"]
pauses = [r for r in rows if 20e6 <= int(r["Length (ns)"]) < 60e6]
if len(pauses) != int(sys.argv[2]):
    sys.exit(f"{len(pauses)} pauses of 20 ms instead of {sys.argv[2]}: {[r['Length (ns)'] for r in rows]}")
if not all("busy" in r["Next"] for r in pauses):
    sys.exit("the kernel behind a pause is not busy()")
if any(r["NVTX Range"] for r in rows) and not all(r["NVTX Range"] == "after a pause" for r in pauses):
    sys.exit(f"the ranges behind pauses: {[r['NVTX Range'] for r in pauses]}")
END

# Beside counting: the program's own launches are on it once, those of repetitions are not.
for set in basic quick; do
    KPROF_SET=$set KPROF_TIMELINE=on KPROF_QUIET=on KPROF_LOG_FILE="$out/timeline.$set.report" KPROF_EXPORT="$out/timeline.$set.kprof" \
        KPROF_FORCE_OVERWRITE=on LD_PRELOAD=$lib timeout 300 ./timeline 1000 $repeat >"$work/$set.out" 2>"$work/$set.err" ||
        fail "$set: exit code $?"
    ./timeline 1000 $repeat 2>/dev/null | cmp -s - "$work/$set.out" || fail "$set: other output"
    grep -E '==(WARNING|ERROR)==' "$work/$set.err" "$out/timeline.$set.report"
    got=$(sqlite "$out/timeline.$set.kprof" "SELECT sum(kind = 0), sum(kind = 1), sum(kind = 2) FROM activity")
    [ "$got" = "$((1001 + 2 * repeat + repeat / 5)) $copies 2" ] ||
        fail "$set: $got kernels, copies and memsets instead of $((1001 + 2 * repeat + repeat / 5)) $copies 2"
    look linked "$out/timeline.$set.kprof"
    # The counters' duration is of a repetition; it should be near that of the program's own execution.
    sqlite "$out/timeline.$set.kprof" "SELECT '$set: ' || n.name || ': own execution ' || round(avg(a.end_ns - a.start_ns)) || ' ns, counted ' || round(avg(m.value)) || ' ns'
        FROM activity a JOIN launch l ON l.ordinal = a.ordinal JOIN metrics m ON m.launch = l.id AND m.name = 'gpu__time_duration.sum'
        JOIN activity_name n ON n.id = a.name GROUP BY n.name"
done

echo
echo "| run of $n launches | ns a launch | more than native |"
echo "| --- | --- | --- |"
echo "| native | $native | |"
echo "| kprof, nothing profiled | $let_through | $((${let_through:-0} - ${native:-0})) |"
echo "| kprof --page timeline | $alone | $((${alone:-0} - ${native:-0})) |"
echo
failures=$(cat "$work/failed" 2>/dev/null | wc -l)
echo "kernels take $in_session ns in the session and $in_trace in the trace; $failures failures"
[ $failures = 0 ]
