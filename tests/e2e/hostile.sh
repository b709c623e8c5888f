#!/bin/bash
# Hostile files, folders and names: nothing in them controls kprof, or whoever reads its report.
. "$(dirname "$0")/e2e.inc"
one_thread

kprof=$build/kprof

# --- texts ---

# Sessions with one table each whose texts forge a line and send escapes; JSON lists stay what they are.
# A sanitiser sees in one of them what it would see in both.
both="$source/tests/data/h200-source.kprof $source/examples/h200-demo.kprof"
# shellcheck disable=SC2086,SC2046
python3 - $(points $both) "$tmp" <<'END' || fail "no sessions"
import shutil, sqlite3, sys
hostile = "=cmd\n==KPROF== FORGED\r\x1b[31m\x07\u009b2J\u202e\u2028end"
*sources, folder = sys.argv[1:]
for source in sources:
    tables = [r[0] for r in sqlite3.connect(source).execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        path = f"{folder}/{source.rsplit('/', 1)[1]}-{table}"
        shutil.copy(source, path)
        db = sqlite3.connect(path)
        for column in [r[1] for r in db.execute(f"PRAGMA table_info({table})") if "TEXT" in r[2] or not r[2]]:
            if column not in ("instances", "offsets", "values", "sections", "set"):
                db.execute(f"""UPDATE OR IGNORE {table} SET "{column}" = coalesce("{column}", '') || ?
                               WHERE typeof("{column}") <> 'integer' AND typeof("{column}") <> 'real'""", (hostile,))
        db.commit()
END

# No line is forged, and nothing but text reaches the terminal.
clean() { # WHAT FILE
    if grep -a -q '^==KPROF== FORGED' "$2"; then fail "$1: a line is forged"; fi
    if LC_ALL=C grep -a -q -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]' "$2"; then
        fail "$1: an escape gets through"
    fi
}

told=0
for session in "$tmp"/*.kprof-*; do
    "$kprof" report --page details,raw,session,summary,trace,source,pm --print-details all \
        --print-metric-instances details --print-metric-name label-name "$session" >"$tmp/out" 2>&1
    grep -a -q FORGED "$tmp/out" && told=$((told + 1))
    clean "pages of $(basename "$session")" "$tmp/out"
    "$kprof" report --print-summary per-kernel "$session" >"$tmp/out" 2>&1
    clean "summary of $(basename "$session")" "$tmp/out"
    "$kprof" report --metrics gpu__time,x "$session" >"$tmp/out" 2>&1
    clean "metrics of $(basename "$session")" "$tmp/out"
    "$kprof" diff "$session" "$source/examples/h200-demo.kprof" >"$tmp/out" 2>&1
    clean "diff of $(basename "$session")" "$tmp/out"
    "$kprof" report --json "$session" >"$tmp/out" 2>"$tmp/err"
    clean "errors of JSON of $(basename "$session")" "$tmp/err"
    clean "JSON of $(basename "$session")" "$tmp/out"
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$tmp/out" || fail "JSON of $(basename "$session")"
done
[ $told -gt "$(sanitised && echo 5 || echo 12)" ] || fail "the texts of $told sessions were shown"

# What is CSV holds the texts as they are.
session=$tmp/h200-source.kprof-session
sqlite_text() { python3 -c 'import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.execute("PRAGMA synchronous=OFF"); d.execute(sys.argv[2]); d.commit()' "$@"; }
sqlite_text "$session" "UPDATE session SET host = '=1+1', exe = '/bin/-x'"
"$kprof" report --page session --csv "$session" 2>/dev/null | grep -q '"=1+1"' || fail "CSV does not keep its texts"
rm -f "$tmp"/*.kprof-*

# --- damage ---

# What cannot be read is told, also where the rest is printed.
for harm in "DELETE FROM code" "UPDATE location SET parent = position" "DELETE FROM source_file"; do
    cp "$source/tests/data/h200-source.kprof" "$tmp/harmed"
    sqlite_text "$tmp/harmed" "$harm"
    "$kprof" report --page details,source "$tmp/harmed" >"$tmp/out" 2>"$tmp/err"
    expect "$harm: lines that tell" "$(grep -c 'is damaged or truncated, and lacks some of the code' "$tmp/err")" 1
done
"$kprof" report --page details,source "$source/tests/data/h200-source.kprof" 2>&1 >/dev/null | grep damaged &&
    fail "a sound session is called damaged"
# Times that no clock shows.
sqlite_text "$tmp/harmed" "UPDATE session SET start_unix_ns = -9223372036854775807, end_unix_ns = 9223372036854775807"
"$kprof" report --page session "$tmp/harmed" >"$tmp/out" 2>&1
expect "times without end: exit status" $? 0
grep -q 'Time  *-' "$tmp/out" && fail "a program took less than no time"

# 1 is for values that differ, which a damaged file does not say.
head -c 300000 "$source/examples/h200-demo.kprof" >"$tmp/cut"
"$kprof" diff "$tmp/cut" "$source/examples/h200-demo.kprof" >"$tmp/out" 2>&1
expect "diff of a file that was cut: exit status" $? 2

# Few descriptors are called what they are.
(
    exec >"$tmp/out" 2>&1
    ulimit -n 8
    exec "$kprof" report "$source/examples/h200-demo.kprof"
)
grep -q 'Too many open files' "$tmp/out" || fail "few descriptors: $(cat "$tmp/out")"

# --- expressions ---

# A sanitiser's own memory is no memory of ours, and takes more than any such limit.
limited() { # COMMAND...
    case ${KP_TEST_VARIANT:-} in asan | tsan) ;; *) ulimit -v 4000000 ;; esac
    timeout "$limit" "$@"
}
nested=$(printf '(%.0s' $(seq 60000))1$(printf ')%.0s' $(seq 60000))
refused() { # WHY ARGUMENTS...
    why=$1
    shift
    (limited "$kprof" "$@" /bin/true >"$tmp/out" 2>&1)
    expect "$2: exit status" $? 2
    grep -q "$why" "$tmp/out" || fail "$2: no reason"
}
refused "longer than the limit" --kernel-id "$nested:::"
refused "unrecognized character follows" -k 'regex:\y'
refused "too large" -k 'regex:((a{1,255}){1,255}){1,255}'
(limited "$kprof" --kernel-id '((2*)*)*((2*)*)*:::' /bin/true >/dev/null 2>&1)
expect "a repetition of repetitions: exit status" $? 0

# --- the session of a program with LD_PRELOAD alone ---

# In a folder that all may write to, it lies in one of its own, which nobody else may enter; at the end both are gone.
mkdir -m 1777 "$tmp/all"
(
    umask 0
    TMPDIR=$tmp/all KPROF_WINDOW=1 KPROF_SECTION=LaunchStats LD_LIBRARY_PATH=$build/fake KPROF_LOG_FILE=/dev/null \
        LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:+$KP_TEST_PRELOAD_FIRST:}$library" \
        exec "$programs/p_many" 100000 >/dev/null 2>&1
) &
pid=$!
for _ in $(seq 300); do
    session=$(echo "$tmp"/all/*/*.kprof)
    [ -s "$session" ] && break
    sleep 0.1
done
kill -9 $pid
wait $pid 2>/dev/null
expect "mode of the session" "$(stat -c %a "$session")" 600
expect "mode of its folder" "$(stat -c %a "$(dirname "$session")")" 700
expect "what lies in the folder of all" "$(find "$tmp/all" -mindepth 1 -maxdepth 1 | wc -l)" 1
rm -rf "${tmp:?}/all/"*
TMPDIR=$tmp/all KPROF_SECTION=LaunchStats profiled "$programs/p_many" 3
expect "p_many: exit code" "$kprof_code" 0
expect "what is left at the end" "$(find "$tmp/all" -mindepth 1 | wc -l)" 0

finish
