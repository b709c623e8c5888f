#!/usr/bin/env bash
# Application replay beside ncu's, on three programs. Needs what run.sh needs; PyTorch for the last program.
#   tests/gpu/app_replay.sh [OUT] [PROGRAM...]     PROGRAM: patterns, order, torch (default: all)
# SECTIONS="ID ...": other sections. LIMIT=N: seconds for all of it; what finds no time is cut off or left out, and says so in
# its row. Prints a table last: rows that agree, runs and seconds of both. Then, for metrics that take
# several passes by themselves, whether their counter data has come through all runs (KP_VENDOR of cupti/target.h).
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
programs=${*:-patterns order torch}
sections=${SECTIONS:-SpeedOfLight MemoryWorkloadAnalysis LaunchStats Occupancy}
limit=${LIMIT:-0}
failures=0
# Whether the time is over.
over() { [ "$limit" != 0 ] && ((SECONDS >= limit)); }
# Runs a command for that many seconds at most, and no longer than there is time.
within() { # SECONDS COMMAND...
    local most=$1
    shift
    ! over || return 124
    [ "$limit" = 0 ] || ((limit - SECONDS >= most)) || most=$((limit - SECONDS))
    timeout "$most" "$@"
}
# What a table has for the seconds of a command that began at START and ended with CODE.
seconds_of() { # START CODE
    if [ "$2" = 124 ]; then echo "cut off"; else since "$1" 1; fi
}
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }

cd "$work" || exit 1
nvcc -O2 -arch="$arch" -o patterns "$here/patterns.cu" || fail "build patterns"
nvcc -O2 -arch="$arch" -std=c++17 -o order "$here/order.cu" || fail "build order"

# The program of that name, and which of its launches.
command_of() {
    case $1 in
    patterns) program="./patterns" ranges="" ;;
    order) program="./order" ranges="" ;;
    torch) program="python3 $here/torch_step.py" ranges="-s 20 -c 12" ;;
    *) fail "no program $1" ;;
    esac
}

flags=""
for section in $sections; do flags="$flags --section $section"; done

# Rows without a value in a report of kprof's.
missing() { grep -cE '\(!\) n/a|  n/a$' "$1"; }

table="| program | launches | rows that agree | n/a | runs of kprof | s, kprof | s, kernel replay of kprof | s, ncu | same exit code |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for name in $programs; do
    command_of "$name"
    if over; then
        table="$table
| $name | | no time left | | | | | | |"
        continue
    fi
    within 600 $program >"$out/app.$name.plain" 2>/dev/null
    plain=$?
    start=$(now)
    # shellcheck disable=SC2086
    within 1500 "$kprof" --replay-mode application $flags $ranges -o "$out/app.$name.kprof" -f --log-file "$out/app.$name.txt" \
        $program >"$out/app.$name.out" 2>"$out/app.$name.err"
    code=$?
    ours=$(seconds_of "$start" $code)
    grep -E '==(WARNING|ERROR)==' "$out/app.$name.err" "$out/app.$name.txt" | sort | uniq -c | head -8
    start=$(now)
    within 600 "$kprof" $flags $ranges --log-file "$out/kernel.$name.txt" $program >/dev/null 2>&1
    kernel=$(seconds_of "$start" $?)
    start=$(now)
    within 1500 ncu --replay-mode application --clock-control none $flags $ranges $program >"$out/ncu.$name.txt" 2>&1
    theirs=$(seconds_of "$start" $?)
    within 1500 ncu --replay-mode application --clock-control none $flags $ranges $program >"$out/ncu2.$name.txt" 2>&1
    python3 "$here/compare.py" "$out/app.$name.txt" "$out/ncu.$name.txt" "$out/ncu2.$name.txt" >"$out/compare.$name.txt"
    agree=$(awk -F'|' '/^\| [A-Z].*%\)/ { split($4, a, " "); ok += a[1]; n += $3 } END { if (n) print ok " of " n }' "$out/compare.$name.txt")
    tail -12 "$out/compare.$name.txt"
    python3 "$here/compare.py" "$out/app.$name.txt" "$out/kernel.$name.txt" | tail -3
    runs=$(grep -oE 'application replay, [0-9]+ runs' "$out/app.$name.txt" | tail -1 | grep -oE '[0-9]+')
    launches=$(grep -cE '^  [^ ].*, Context [0-9]+, Stream [0-9]+, Device' "$out/app.$name.txt" 2>/dev/null)
    launches=${launches:-0}
    same=yes
    [ $code = 124 ] && same="cut off"
    [ $plain = $code ] || [ $code = 124 ] || { same=no; fail "$name: exit code $code instead of $plain"; }
    [ "$launches" -gt 0 ] || [ $code = 124 ] || fail "$name: no launch in the report: $(tail -3 "$out/app.$name.err")"
    # Each run prints what the program prints.
    copies=$(($(wc -l <"$out/app.$name.out") / ($(wc -l <"$out/app.$name.plain") + ($(wc -l <"$out/app.$name.plain") == 0))))
    [ "$copies" = "$runs" ] || [ $code = 124 ] || echo "$name: output of $copies runs, of $runs"
    table="$table
| $name | $launches | ${agree:-see compare.$name.txt} | $(missing "$out/app.$name.txt") | $runs | $ours | $kernel | $theirs | $same |"
done

# Compares metrics that take several passes by themselves, of both ways.
several_passes() {
    local several=sm__mio_inst_issued.avg.pct_of_peak_sustained_elapsed,lts__t_sector_hit_rate.pct,l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_elapsed,sm__throughput.avg.pct_of_peak_sustained_elapsed mode
    for mode in application kernel; do
        within 600 "$kprof" --replay-mode $mode --metrics $several --page raw --csv --log-file "$out/several.$mode.csv" ./patterns >/dev/null 2>"$out/several.$mode.err" ||
            { over && echo "Metrics of several passes: cut off" && return || fail "metrics of several passes, $mode"; }
    done
    echo
    echo "Metrics of several passes: kernel, metric, kernel replay, application replay"
    python3 - "$out/several.kernel.csv" "$out/several.application.csv" "$several" <<'END' || fail "metrics of several passes"
import csv, sys
kernel, application = ([dict(r) for r in csv.DictReader(open(p))] for p in sys.argv[1:3])
bad = 0
for k, a in zip(kernel[1:], application[1:]):  # the first row has the units
    for metric in sys.argv[3].split(","):
        mine, other = a.get(metric, ""), k.get(metric, "")
        try:
            good = abs(float(mine) - float(other)) <= max(0.05 * abs(float(other)), 1)
        except ValueError:
            good = False
        bad += not good
        print("%-28.28s %-62s %12.12s %12.12s%s" % (k["Kernel Name"], metric, other, mine, "" if good else "   <-- differs"))
sys.exit(bad > 0.1 * len(kernel) * 4)
END
}
if over; then echo "Metrics of several passes: no time left"; else several_passes; fi
echo
echo "$table"
[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
