#!/bin/sh
# The timeline: it shows what the program itself made devices do, and nothing that kprof does; profiled launches can be
# found on it; its page, its JSON and its trace agree.
. "$(dirname "$0")/e2e.inc"
one_thread
look() { # WHAT ARGUMENTS of timeline.py
    what=$1
    shift
    python3 "$source/tests/e2e/timeline.py" "$@" >"$tmp/said" || { fail "$what: $(cat "$tmp/said")"; show; }
}

export KPROF_EXPORT="$tmp/s.kprof" KPROF_FORCE_OVERWRITE=on

# Whatever windows do, the kernels are the program's own: replayed, counted once or let through.
recorded() { # CASE
    both "$1" env KPROF_TIMELINE=on "$programs/p_window" "$@"
    look "$1" same "$tmp/plain.log" "$tmp/s.kprof"
    look "$1: launches of the report" linked "$tmp/s.kprof"
    cp "$tmp/s.kprof" "$tmp/windows.kprof"
    both "$1, timeline alone" env -u KPROF_SET KPROF_PAGE=timeline "$programs/p_window" "$@"
    look "$1, timeline alone" same "$tmp/plain.log" "$tmp/s.kprof"
    look "$1: copies" copies "$tmp/windows.kprof" "$tmp/s.kprof"
    expect "$1, timeline alone: profiled" "$(account profiled)" 0
    for page in timeline:0 summary:1 details:1; do # who looks elsewhere is shown the way
        "$build/kprof" report --page ${page%:*} "$tmp/s.kprof" >"$tmp/stored" 2>&1
        expect "$1, timeline alone: hint of ${page%:*}" \
            "$(grep -c 'Nothing was counted because only the timeline was requested: --page timeline shows it' "$tmp/stored")" ${page#*:}
    done
}
# A sanitiser sees in a few cases what it would see in all.
for case in 'many 20' 'mixed' 'threads'; do
    recorded $case
done
if ! sanitised; then
    for case in 'memsets' 'copies-in' 'copies-within' 'events' 'reads' 'copies-out' 'allocates' 'reads-streams' 'frees'; do
        recorded $case
    done
fi
KPROF_WINDOW=1 recorded many 5
KPROF_SET=full recorded many 5 # warp samples: their part of CUPTI and that of the records take turns
KPROF_SET=quick KPROF_CACHE_CONTROL=none recorded many 5

# The trace has all of it, of one session and of several.
traced() { # WHAT
    "$build/kprof" report -f --trace-json "$tmp/trace.json" "$tmp/s.kprof" >"$tmp/said" 2>&1 || fail "$1: $(cat "$tmp/said")"
    [ -s "$tmp/said" ] && fail "$1: the trace comes with words: $(cat "$tmp/said")"
    look "$1: trace" trace "$tmp/s.kprof" "$tmp/trace.json"
    # Perfetto's own parser, where its binary is at hand
    [ -z "${KP_TRACE_PROCESSOR:-}" ] || look "$1: Perfetto" perfetto "$tmp/s.kprof" "$tmp/trace.json" "$KP_TRACE_PROCESSOR"
}
both "threads" env KPROF_TIMELINE=on "$programs/p_window" threads
traced "threads"
"$build/kprof" report --trace-json "$tmp/both.json" "$tmp/s.kprof" "$tmp/windows.kprof" || fail "a trace of two sessions"
expect "processes of two sessions" "$(python3 -c 'import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
print(len({e["pid"] for e in events}), len([e for e in events if e["name"] == "process_name"]))' "$tmp/both.json")" '4 4'

# Kernels of a graph are told apart, each with its own launch of the report.
both graphs env KPROF_TIMELINE=on "$programs/p_nodes"
look "graphs" same "$tmp/plain.log" "$tmp/s.kprof"
traced "graphs"
both "graphs as wholes" env KPROF_TIMELINE=on KPROF_GRAPH_PROFILING=graph "$programs/p_nodes"
look "graphs as wholes" same "$tmp/plain.log" "$tmp/s.kprof"

# Nothing is asked for: nothing is recorded.
both "without" "$programs/p_direct"
expect "without: rows" "$(python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM activity").fetchone()[0])' "$tmp/s.kprof")" 0
"$build/kprof" report --page timeline "$tmp/s.kprof" >"$tmp/stored" || fail "a session without a timeline"
grep -q 'No timeline was recorded: `kprof --timeline' "$tmp/stored" || fail "no timeline: $(cat "$tmp/stored")"
"$build/kprof" report --trace-json "$tmp/none.json" "$tmp/s.kprof" 2>"$tmp/said" || fail "a trace of no timeline"
grep -q '^==WARNING== no timeline was recorded' "$tmp/said" || fail "an empty trace is not told: $(cat "$tmp/said")"
python3 -m json.tool "$tmp/none.json" >/dev/null || fail "an empty trace is no JSON"
"$build/kprof" report --trace-json "$tmp/no/folder.json" "$tmp/s.kprof" 2>"$tmp/said" && fail "a trace into no folder"

# Records that CUPTI drops are told, and then no launch is looked for by the order of the records.
both "dropped" env KPROF_TIMELINE=on FAKE_ACTIVITY_DROPS=7 "$programs/p_direct"
grep -q 'The timeline lacks 7 activities' "$tmp/kprof.err" "$tmp/report" || { fail "dropped records are not told"; show; }
"$build/kprof" report --page timeline "$tmp/s.kprof" >"$tmp/stored"
grep -q '7 activities had no room' "$tmp/stored" || fail "the page does not tell dropped records"
# Small buffers change nothing.
both "small buffers" env KPROF_TIMELINE=on FAKE_ACTIVITY_BYTES=500 "$programs/p_window" many 20
look "small buffers" same "$tmp/plain.log" "$tmp/s.kprof"
# A CUPTI that does not record costs the timeline, and nothing else.
both "not recorded" env KPROF_TIMELINE=on FAKE_FAIL=cuptiActivityEnable:999 "$programs/p_direct"
grep -q '==WARNING== .*cannot record a timeline' "$tmp/kprof.err" "$tmp/report" || { fail "what is not recorded is not told"; show; }
expect "not recorded: profiled" "$(account profiled)" "$(launches)"
both "not recorded, nor counted" env KPROF_TIMELINE=on FAKE_FAIL=cuptiActivityEnable:1,cuptiProfilerInitialize:1 "$programs/p_direct"
grep -q '^==WARNING== cannot record a timeline: CUPTI_ERROR_INVALID_PARAMETER (1)$' "$tmp/kprof.err" "$tmp/report" ||
    { fail "not recorded, nor counted: the warning lacks CUPTI's own name of the error"; show; }
both "not recorded again" env KPROF_TIMELINE=on KPROF_WINDOW=1 FAKE_FAIL=cuptiActivityEnable:999:9 "$programs/p_window" many 5
grep -q '==WARNING== The timeline ends early' "$tmp/kprof.err" "$tmp/report" || { fail "a timeline that ends early is not told"; show; }
expect "not recorded again: profiled" "$(account profiled)" "$(launches)"
"$build/kprof" report --page timeline "$tmp/s.kprof" | grep -q 'Kernels by time' || fail "a timeline that ends early is lost"
both "not given" env KPROF_TIMELINE=on FAKE_FAIL=cuptiActivityFlushAll:999 "$programs/p_direct"

# NVTX: ranges of threads, and the range in which the kernel behind a gap was launched.
LD_LIBRARY_PATH=$build/fake "$programs/p_nvtx" >/dev/null
if [ $? != 77 ]; then
    both "ranges" env KPROF_TIMELINE=on "$programs/p_nvtx"
    look "ranges" linked "$tmp/s.kprof"
    traced "ranges"
    expect "ranges" "$(python3 -c 'import sqlite3, sys
print(" ".join(sorted(r[0] for r in sqlite3.connect(sys.argv[1]).execute("SELECT name FROM activities WHERE kind = 3"))))' \
        "$tmp/s.kprof")" 'backward conv epoch forward io@grüß/e io@read step'
    "$build/kprof" report --page timeline --csv "$tmp/s.kprof" >"$tmp/page.csv" || fail "the page as CSV"
    expect "ranges of gaps" "$(python3 -c 'import csv, sys
print(" ".join(sorted(r["NVTX Range"] for r in csv.DictReader(open(sys.argv[1], encoding="utf-8")) if r["Table"] == "gap")))' \
        "$tmp/page.csv")" ' backward conv forward io@grüß/e step'
    expect "launches of gaps" "$(python3 -c 'import csv, sys
print(" ".join(sorted(r["Launch ID"] for r in csv.DictReader(open(sys.argv[1], encoding="utf-8")) if r["Table"] == "gap")))' \
        "$tmp/page.csv")" '1 2 3 4 5 6'
    grep -q '^  Timeline$' "$tmp/report" && fail "the page is not asked for"
    "$build/kprof" report --page timeline "$tmp/s.kprof" >"$tmp/stored"
    grep -q 'Device 0: the largest of 6 gaps between kernels' "$tmp/stored" || fail "the page: $(cat "$tmp/stored")"
fi

finish
