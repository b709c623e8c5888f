#!/bin/sh
# What filters leave of a stored session is a session itself: it prints what the filters choose of the first one.
. "$(dirname "$0")/e2e.inc"
release_only "what is stored is the same in every build"

session=$tmp/demo.kprof step=$tmp/step.kprof
cp "$source/examples/h200-demo.kprof" "$session"
gzip -dc "$source/tests/data/h100-resnet.kprof.gz" >"$step"
kprof() { # ARGUMENTS...
    "$build/kprof" "$@"
}

# Nothing is lost: the JSON of a session has all of it, but for the account of what was left out.
without_account() { # FILE
    sed '/"launches_profiled"/d; /"skips"/,/\]/d; /"skipped"/,/\]/d' "$1"
}
for of in "$session" "$step"; do
    kprof report -o "$tmp/whole" "$of" 2>"$tmp/err" >"$tmp/out"
    expect "all launches: exit code" $? 0
    expect "all launches: stdout" "$(cat "$tmp/out")" ""
    kprof report --json "$of" >"$tmp/a"
    kprof report --json "$tmp/whole" >"$tmp/b"
    cmp -s "$tmp/a" "$tmp/b" || fail "all launches: the JSON of $of differs"
    rm "$tmp/whole.kprof"
done

# NAME FILTERS...: the pages of what is left are those of the filters.
left() {
    name=$1 of=$2
    shift 2
    rm -f "$tmp/left.kprof"
    kprof report "$@" -o "$tmp/left" "$of" 2>"$tmp/err" || fail "$name: $(cat "$tmp/err")"
    kprof report "$@" --csv --page raw "$of" >"$tmp/a" 2>/dev/null
    kprof report --csv --page raw "$tmp/left" >"$tmp/b" 2>/dev/null
    cmp -s "$tmp/a" "$tmp/b" || fail "$name: the page raw differs"
    kprof report --csv --page raw "$of" >"$tmp/c" 2>/dev/null
    [ "$(wc -l <"$tmp/b")" -lt "$(wc -l <"$tmp/c")" ] && [ "$(wc -l <"$tmp/b")" -gt 2 ] || fail "$name: the filters choose all launches, or none"
    kprof report "$@" --csv --page source "$of" >"$tmp/a" 2>/dev/null
    kprof report --csv --page source "$tmp/left" >"$tmp/b" 2>/dev/null
    cmp -s "$tmp/a" "$tmp/b" || fail "$name: the page source differs"
    launches=$(($(kprof report --csv --page trace "$tmp/left" | wc -l) - 1))
    expect "$name: what is said" "$(cat "$tmp/err")" "==KPROF== $launches of $(($(kprof report --csv --page trace "$of" | wc -l) - 1)) launches are in $tmp/left.kprof"
    kprof report --page details "$tmp/left" | grep -q "left out when the session was filtered: " || fail "$name: the account has nothing of it"
}
left kernel-name "$session" -k regex:transpose
left launch-skip "$session" -s 1 -c 2
left before-match "$session" --launch-skip-before-match 3
left kernel-id "$step" --kernel-id ::regex:nchwToNhwc:2
left shape "$step" -c 1 --filter-mode per-launch-config

# A timeline is the program's own, and stays whole.
kprof report -f -c 3 -o "$tmp/left" "$step" 2>/dev/null
kprof report --page timeline --csv "$step" >"$tmp/a"
kprof report --page timeline --csv "$tmp/left" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || fail "timeline: differs"

# A page that is asked for is printed, too.
kprof report -f -c 1 -o "$tmp/left" --page trace "$session" >"$tmp/out" 2>/dev/null
expect "a page: lines" "$(wc -l <"$tmp/out")" "$(kprof report -c 1 --page trace "$session" | wc -l)"

# Several sessions are several files.
kprof report -c 1 -o "$tmp/one.%i" "$session" "$step" 2>"$tmp/err"
expect "several: exit code" $? 0
[ -s "$tmp/one.1.kprof" ] && [ -s "$tmp/one.2.kprof" ] || fail "several: no two files"
kprof report -c 1 -o "$tmp/same" "$session" "$step" 2>"$tmp/err"
expect "several in one: exit code" $? 2
grep -q 'File exists' "$tmp/err" || fail "several in one: $(cat "$tmp/err")"

# Nothing is overwritten but a session, and never the one that is read.
before=$(cksum <"$session")
for to in "$session" "$tmp/demo"; do
    kprof report -f -c 1 -o "$to" "$session" 2>"$tmp/err"
    expect "onto itself: exit code" $? 2
    grep -q 'is the session that is read' "$tmp/err" || fail "onto itself: $(cat "$tmp/err")"
done
expect "onto itself: the file" "$(cksum <"$session")" "$before"
echo text >"$tmp/text.kprof"
kprof report -f -c 1 -o "$tmp/text" "$session" 2>"$tmp/err"
expect "onto a text: exit code" $? 2
expect "onto a text: the file" "$(cat "$tmp/text.kprof")" text
kprof report -k nothing -o "$tmp/none" "$session" 2>"$tmp/err"
expect "nothing chosen: exit code" $? 2
[ -e "$tmp/none.kprof" ] && fail "nothing chosen: a file is left"
# The variable is that of a run: a report with it writes nothing.
KPROF_EXPORT=$tmp/variable kprof report -c 1 "$session" >/dev/null 2>&1
[ -e "$tmp/variable.kprof" ] && fail "KPROF_EXPORT: kprof report writes a session"
finish
