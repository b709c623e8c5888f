#!/bin/sh
# A program that sets a locale with decimal commas, and a kprof that runs in one: every number in the report, in CSV, in
# JSON and in the session is as in the C locale.
. "$(dirname "$0")/e2e.inc"
release_only "locales are the same in every build"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

# Where the sources of locales are not installed, the parts that matter are in a source of our own.
export LOCPATH="$tmp/locales"
mkdir "$LOCPATH"
localedef -c -i de_DE -f UTF-8 "$LOCPATH/de_DE.UTF-8" >"$tmp/localedef" 2>&1
export LC_ALL=de_DE.UTF-8
p=$programs/p_locale
export KPROF_FORCE_OVERWRITE=yes
plain "$p"
grep -q '^locale: de_DE.UTF-8, .*567,125$' "$tmp/plain.out" ||
    { echo "skipped: no locale with decimal commas: $(cat "$tmp/localedef")"; exit 77; }

# Times, process numbers and the session's name differ between runs.
masked() { # FILE
    sed -E "s|$tmp/[A-Za-z_.0-9-]+|SESSION|g" "$1" | sed -E 's/^==KPROF== (Connected|Disconnected|Profiling|.* spent profiling).*//; s/\[[0-9]+\] p_locale/p_locale/'
}

values() { # SESSION
    python3 - "$1" <<'END'
import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(
        "SELECT launch, n.name, unit, kind, typeof(value), value, instances FROM metric JOIN name n ON n.id = metric.name"
        " ORDER BY launch, n.name"):
    print(*row)
END
}

# The run itself: in the program's locale, and in C.
for set in basic detailed; do
    for l in C de_DE.UTF-8; do
        KPROF_SET=$set KPROF_EXPORT=$tmp/$l.kprof LC_ALL=$l both "$set, $l" "$p"
        masked "$tmp/report" >"$tmp/$l.report"
        values "$tmp/$l.kprof" >"$tmp/$l.values"
    done
    [ -s "$tmp/C.values" ] || fail "$set: no values"
    cmp "$tmp/C.report" "$tmp/de_DE.UTF-8.report" || fail "$set: another report"
    diff "$tmp/C.values" "$tmp/de_DE.UTF-8.values" >"$tmp/diff" || fail "$set: other values: $(head -n 5 "$tmp/diff")"
done

# The command, on one session.
for options in '--page details' '--page raw --csv' '--page details --csv' '--json' '--page trace' \
    '--page summary --csv' '--page session' '--print-units base --page raw'; do
    LC_ALL=C "$build/kprof" report $options "$tmp/C.kprof" >"$tmp/C.out" 2>&1 || fail "report $options"
    "$build/kprof" report $options "$tmp/C.kprof" >"$tmp/de.out" 2>&1
    cmp "$tmp/C.out" "$tmp/de.out" || fail "report $options: other text"
    [ -s "$tmp/C.out" ] || fail "report $options: nothing"
done
LC_ALL=C "$build/kprof" report --json "$tmp/C.kprof" | python3 -c 'import json, sys; json.load(sys.stdin)' ||
    fail "no JSON"

# Options with fractions, and those of section files, are read with a point.
LC_ALL=C "$build/kprof" diff --fail-above 0.5 "$tmp/C.kprof" "$tmp/de_DE.UTF-8.kprof" >"$tmp/C.out" 2>&1
code=$?
"$build/kprof" diff --fail-above 0.5 "$tmp/C.kprof" "$tmp/de_DE.UTF-8.kprof" >"$tmp/de.out" 2>&1
expect "diff: exit code" $? $code
cmp "$tmp/C.out" "$tmp/de.out" || fail "diff: other text"

finish
