#!/usr/bin/env bash
# Programs on which replay of every launch takes long: natively, and under kprof, which must end in bounded time. Prints a
# row a case as soon as it is through, and writes the table.
#   tests/gpu/bounded.sh OUT [CASE...]     CASE: some of tests/gpu/bounded/cases.txt, by their names; default: all
# Environment: SETTINGS (default; of default, kernel, rotation, quick; - for none), LIMIT (seconds a profiled run may take
# above the native time, 75), UNTIL (seconds from the script's start, 420: what is left then is left out), JOBS (native runs
# at a time, 3), TRACES (1: record the order of the launches of each case, too: launch_trace.py), BOUNDED (another folder
# for tests/gpu/bounded), NVCC. OUT gets bounded.md, the table; bounded.json; bounded.tar.gz, all logs and reports; with
# TRACES traces.tar.gz.
. "$(dirname "$0")/gpu.inc"
. "$here/cases.inc"
unset KPROF_BRIEF_ABOVE COLUMNS # the report is what a user gets

list_cases "${BOUNDED:-$here/bounded}" -- "$@"
# What the Python programs import comes from the disk while the others are compiled.
sed -n 's/^[^ ]* \([^ ]*\.py\).*/\1/p' "$work/list" | sort -u | while read -r source; do
    sed -n '/^import /p' "$source" | paste -sd';'
done | xargs -r -d '\n' -P 8 -n 1 python3 -c >/dev/null 2>&1 &
warming=$!
build_cases
wait "$warming"
echo "built in $SECONDS s"

python3 "$here/bounded.py" --kprof "$kprof" --cases "$work/cases" --out "$out" --logs "$logs" --jobs "${JOBS:-3}" \
    --limit "${LIMIT:-75}" --until "$((${UNTIL:-420} - SECONDS))" --settings "${SETTINGS:-default}" ${TRACES:+--traces}
code=$?
pack_logs "$out/bounded.tar.gz"
echo "$SECONDS s"
exit $code
