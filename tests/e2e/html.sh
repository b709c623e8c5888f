#!/bin/sh
# The HTML report in a browser: the page of each recorded session opens without an error or a request, its table, links and
# source view work, its numbers are those of the CSV, and names that look like markup do nothing.
. "$(dirname "$0")/e2e.inc"
release_only "the file is the same in every build"
kprof=$build/kprof
unset KPROF_BRIEF_ABOVE
folder=$tmp/html
mkdir "$folder"

cp "$source/examples/h200-demo.kprof" "$folder/demo.kprof"
cp "$source/tests/data/h200-source.kprof" "$folder/source.kprof"
make_session() { python3 "$source/tests/e2e/html_sessions.py" "$@" || fail "html_sessions.py $1"; }
make_session many "$folder/demo.kprof" "$folder/many.kprof" 2000
make_session hostile "$folder/demo.kprof" "$folder/hostile.kprof"

for session in demo source many hostile; do
    "$kprof" report --html "$folder/$session.html" "$folder/$session.kprof" >"$tmp/said" 2>&1 || fail "--html of $session: $(cat "$tmp/said")"
    expect "$session: what is said" "$(cat "$tmp/said")" ""
done
expect "mode of the file" "$(stat -c %a "$folder/demo.html")" "$(printf '%o' $((0666 & ~$(umask))))"
expect "files left beside it" "$(ls "$folder" | grep -c 'html\.')" 0

# What cannot be written is told, and leaves the old file.
"$kprof" report --html /nonesuch/x.html "$folder/demo.kprof" 2>"$tmp/said"
expect "status where there is no folder" $? 1
grep -q '^==ERROR== cannot write /nonesuch/x.html: No such file or directory$' "$tmp/said" || fail "no folder: $(cat "$tmp/said")"
"$kprof" report --html "$folder/both.html" "$folder/demo.kprof" "$folder/nonesuch.kprof" 2>"$tmp/said"
expect "status where one of two sessions is missing" $? 2
[ -s "$folder/both.html" ] || fail "the other session is not written"
"$kprof" report --html /dev/full "$folder/demo.kprof" 2>"$tmp/said"
expect "status on a full disk" $? 1

for name in chromium chromium-browser google-chrome; do
    chromium=$(command -v $name) && break
done
if [ -z "${chromium:-}" ]; then
    [ $failures -eq 0 ] || finish
    echo "skipped: no Chromium to look at the pages with"
    exit 77
fi
timeout 240 python3 "$source/tests/e2e/html_browser.py" "$chromium" "$kprof" "$folder" || fail "in the browser"
finish
