#!/usr/bin/env bash
# Launches that pass within the budget, on a GPU machine, after `make`: are their times, by activity records, those of a timeline
# of the same program, and what do the records cost? Prints a row a case: passed.py.
#   tests/gpu/passed.sh [OUT] [CASE...]     CASE: of tests/gpu/bounded/cases.txt (default: tenkinds crowd texture graph)
# Environment: KPROF_BUDGET, to let launches pass sooner (10s here).
. "$(dirname "$0")/gpu.inc"
. "$here/cases.inc"
[ $# -gt 0 ] || set -- tenkinds crowd texture graph
export KPROF_BUDGET=${KPROF_BUDGET:-10s}
list_cases "$here/bounded" -- "$@"
build_cases
code=0
echo "| case | launches | stood for | passed | with a record | mean of a kernel: median, worst | share off, points | without records |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
while read -r name command; do
    start=$(now)
    # shellcheck disable=SC2086 # a command
    timeout 100 $command >"$logs/$name.native" 2>/dev/null </dev/null || { echo "$name: ends natively with $?" && continue; }
    native=$(since "$start")
    # shellcheck disable=SC2086
    timeout 100 "$kprof" -f -o "$work/timeline.kprof" --page timeline -- $command >"$logs/$name.timeline" 2>&1 </dev/null
    start=$(now)
    # shellcheck disable=SC2086
    timeout 150 "$kprof" -f -o "$work/auto.kprof" --log-file "$logs/$name.report" -- $command >"$logs/$name.out" 2>/dev/null </dev/null
    took=$(since "$start")
    [ -s "$work/auto.kprof" ] && [ -s "$work/timeline.kprof" ] || { echo "FAILED: $name: no session" && code=1 && continue; }
    python3 "$here/passed.py" "$name" "$work/timeline.kprof" "$work/auto.kprof" || code=1
    echo "  $name: native $native s, with kprof $took s; $(grep -hoE 'profiling added [0-9.]+ s' "$logs/$name.report" | tail -1)"
done <"$work/cases"
pack_logs "$out/passed.tar.gz"
exit $code
