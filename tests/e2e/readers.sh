#!/bin/sh
# Programs that were written for ncu's output read that of `kprof ncu`: every launch and every metric of recorded sessions.
. "$(dirname "$0")/e2e.inc"
release_only "what is printed is the same in every build"
[ -n "${python:-}" ] || { echo "skipped: no python3"; exit 77; }
unset COLUMNS # a file has whole lines without it

for recorded in examples/h200-demo.kprof tests/data/h200-source.kprof tests/data/h100-resnet.kprof.gz; do
    session=$tmp/$(basename "${recorded%.gz}")
    gzip -dcf "$source/$recorded" >"$session"
    python3 "$source/tests/readers/readers.py" "$build/kprof" "$session" >"$tmp/said" 2>&1 || fail "$(basename "$session"): $(tail -n 1 "$tmp/said" | cut -c1-400)"
    expect "$(basename "$session"): launches" "$(sed -n 's/^\([0-9]*\) launches, [0-9]* metrics, .*/\1/p' "$tmp/said")" "$(python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM launch").fetchone()[0])' "$session")"
done
finish
