#!/bin/sh
# The HTML report in a browser: the page of each recorded session opens without errors or requests. Its table, links and
# source view work, and its numbers match the CSV. Names that look like markup have no effect.
. "$(dirname "$0")/e2e.inc"
release_only "the file is the same in every build"
kprof=$(cd "$build" && pwd)/kprof
unset KPROF_BRIEF_ABOVE
folder=$tmp/html
mkdir "$folder"

cp "$source/examples/h200-demo.kprof" "$folder/demo.kprof"
cp "$source/tests/data/h200-source.kprof" "$folder/source.kprof"
make_session() { python3 "$source/tests/e2e/html_sessions.py" "$@" || fail "html_sessions.py $1"; }
make_session many "$folder/demo.kprof" "$folder/many.kprof" 2000
make_session many "$folder/demo.kprof" "$folder/some.kprof" 200
make_session strip "$folder/demo.kprof" "$folder/strip.kprof"
make_session untimed "$folder/demo.kprof" "$folder/untimed.kprof" 0 1 2 3
make_session untimed "$folder/demo.kprof" "$folder/timed.kprof" 3
make_session rotated "$folder/demo.kprof" "$folder/rotated.kprof"
make_session shared "$folder/demo.kprof" "$folder/shared.kprof"
make_session cutlass "$folder/demo.kprof" "$folder/cutlass.kprof"
make_session alike "$folder/demo.kprof" "$folder/alike.kprof"
make_session xmma "$folder/demo.kprof" "$folder/xmma.kprof"
gzip -dc "$source/tests/data/h100-resnet.kprof.gz" >"$folder/step.kprof"
make_session hostile "$folder/demo.kprof" "$folder/hostile.kprof"
make_session timeline "$folder/demo.kprof" "$folder/timeline.kprof" 2000
mv "$folder/hostile.kprof" "$tmp/hostile.kprof"
make_session timeline "$tmp/hostile.kprof" "$tmp/hostile-timeline.kprof" 300
make_session ptx "$tmp/hostile-timeline.kprof" "$folder/hostile.kprof"

for session in demo source some many strip untimed timed rotated shared cutlass alike xmma step timeline hostile; do
    "$kprof" report --html "$folder/$session.html" "$folder/$session.kprof" >"$tmp/said" 2>&1 || fail "--html of $session: $(cat "$tmp/said")"
    expect "$session: what is said" "$(cat "$tmp/said")" ""
done
# A new file can be read by those who may read the sessions, less what the umask takes.
mkdir "$tmp/modes"
cp "$folder/demo.kprof" "$tmp/modes/a.kprof"
cp "$folder/demo.kprof" "$tmp/modes/b.kprof"
# EXPECTED UMASK MODE-A MODE-B: modes of what is made of the two sessions
modes() {
    chmod "$3" "$tmp/modes/a.kprof"
    chmod "$4" "$tmp/modes/b.kprof"
    for option in "report --html" "diff --html" "report --trace-json"; do
        rm -f "$tmp/modes/new"
        (umask "$2" && "$kprof" $option "$tmp/modes/new" "$tmp/modes/a.kprof" "$tmp/modes/b.kprof" >"$tmp/said" 2>&1) || fail "$option: $(cat "$tmp/said")"
        expect "$option: a file made of sessions with modes $3 and $4, umask $2" "$(stat -c %a "$tmp/modes/new")" "$1"
    done
}
modes 600 022 600 600
modes 600 022 644 600
modes 640 022 640 664
modes 644 022 644 644
modes 664 002 664 666
modes 600 077 644 644
expect "files left beside it" "$(ls "$folder" | grep -c 'html\.')" 0

# What cannot be written is told, and leaves the old file.
"$kprof" report --html /nonesuch/x.html "$folder/demo.kprof" 2>"$tmp/said"
expect "status where there is no folder" $? 2
grep -q '^==ERROR== cannot write /nonesuch/x.html: No such file or directory; make its folder, or choose another path$' "$tmp/said" || fail "no folder: $(cat "$tmp/said")"
"$kprof" report --html "$folder/both.html" "$folder/demo.kprof" "$folder/nonesuch.kprof" 2>"$tmp/said"
expect "status where one of two sessions is missing" $? 2
[ -s "$folder/both.html" ] || fail "the other session is not written"
"$kprof" report --html /dev/full "$folder/demo.kprof" 2>"$tmp/said"
expect "status on a full disk" $? 1
expect "what is said on a full disk" "$(cat "$tmp/said")" "==ERROR== cannot write /dev/full: No space left on device"

for option in "report --html" "diff --html" "report --trace-json"; do
    "$kprof" $option "$folder" -f "$folder/demo.kprof" "$folder/demo.kprof" >"$tmp/out" 2>"$tmp/said"
    expect "status of $option on a folder" $? 2
    expect "$option on a folder" "$(cat "$tmp/said")" "==ERROR== cannot write $folder: it is a folder; name a file in it"
done

# What a link names is replaced, with its mode, and the link stays; a link to nothing makes what it names.
mkdir "$tmp/links" "$tmp/links/there"
echo old >"$tmp/links/there/kept.html"
chmod 600 "$tmp/links/there/kept.html"
ln -s there/kept.html "$tmp/links/near"
ln -s "$tmp/links/near" "$tmp/links/far"
ln -s there/new.html "$tmp/links/new"
ln -s round "$tmp/links/round"
[ "$(id -u)" != 0 ] || chown 1:1 "$tmp/links/there/kept.html"
owned=$(stat -c '%a %u:%g' "$tmp/links/there/kept.html")
for option in "report --html" "diff --html" "report --trace-json"; do
    "$kprof" $option "$tmp/links/far" "$folder/timeline.kprof" "$folder/timeline.kprof" >"$tmp/out" 2>"$tmp/said"
    expect "status of $option on a file that exists" $? 2
    expect "$option on a file that exists" "$(cat "$tmp/said")" \
        "==ERROR== cannot write $tmp/links/far: the file exists; use --force-overwrite, or name another file"
    expect "$option: the file that exists" "$(cat "$tmp/links/there/kept.html")" old
    "$kprof" $option "$tmp/links/far" -f "$folder/timeline.kprof" "$folder/timeline.kprof" >"$tmp/out" 2>&1 || fail "$option on a link: $(cat "$tmp/out")"
    expect "$option: the links" "$(readlink "$tmp/links/near") $(readlink "$tmp/links/far")" "there/kept.html $tmp/links/near"
    [ "$(stat -c %s "$tmp/links/there/kept.html")" -gt 1000 ] || fail "$option does not write what a link names"
    expect "$option: mode and owner" "$(stat -c '%a %u:%g' "$tmp/links/there/kept.html")" "$owned"
    echo old | cp /dev/stdin "$tmp/links/there/kept.html"
done
"$kprof" report --html "$tmp/links/new" "$folder/demo.kprof" || fail "--html on a link to nothing"
[ -L "$tmp/links/new" ] || fail "a link to nothing is replaced"
cmp -s "$tmp/links/there/new.html" "$folder/demo.html" || fail "a link to nothing: another file"
"$kprof" report --html "$tmp/links/round" "$folder/demo.kprof" 2>"$tmp/said"
expect "a link to itself" "$? $(cat "$tmp/said")" "1 ==ERROR== cannot write $tmp/links/round: Too many levels of symbolic links"
expect "files beside links" "$(ls "$tmp/links" "$tmp/links/there" | grep -c 'html\.\|\..*\.')" 0

# Pipes and descriptors are written through, and nobody reads what is in them. A descriptor's file keeps what it has.
mkfifo "$tmp/links/fifo"
ln -s fifo "$tmp/links/to-fifo"
for target in fifo to-fifo; do
    timeout 20 cat "$tmp/links/fifo" >"$tmp/out" &
    timeout 20 "$kprof" report --html "$tmp/links/$target" "$folder/demo.kprof" || fail "--html on $target"
    wait $!
    cmp -s "$tmp/out" "$folder/demo.html" || fail "--html on $target: another file"
done
[ -p "$tmp/links/fifo" ] && [ -L "$tmp/links/to-fifo" ] || fail "a pipe is replaced"
begin=$(timeout 20 "$kprof" report --html /dev/fd/1 "$folder/demo.kprof" | head -c 20)
expect "the pipe of /dev/fd/1" "$begin" "$(head -c 20 "$folder/demo.html")"
# A lone `-` is stdout, and no file of that name is made.
mkdir "$tmp/dash"
(cd "$tmp/dash" && "$kprof" report --html - "$folder/demo.kprof" >"$tmp/out" && cmp -s "$tmp/out" "$folder/demo.html") || fail "--html -"
(cd "$tmp/dash" && "$kprof" report --trace-json - "$folder/demo.kprof" 2>/dev/null | python3 -m json.tool >/dev/null) || fail "--trace-json -"
(cd "$tmp/dash" && "$kprof" report --html - --trace-json "$tmp/trace" "$folder/demo.kprof" 2>/dev/null | cmp -s - "$folder/demo.html") ||
    fail "--html - beside a trace"
expect "files named -" "$(ls "$tmp/dash")" ""
(cd "$tmp/dash" && "$kprof" report --html ./- "$folder/demo.kprof") && cmp -s "$tmp/dash/-" "$folder/demo.html" || fail "--html ./-"
ln -s /dev/fd/7 "$tmp/links/descriptor"
for target in /dev/fd/7 "$tmp/links/descriptor"; do
    { echo first >&7 && "$kprof" report --html "$target" "$folder/demo.kprof" && echo last >&7; } 7>"$tmp/links/out" || fail "--html on $target"
    { echo first && cat "$folder/demo.html" && echo last; } | cmp -s - "$tmp/links/out" || fail "--html on $target: another file"
done
[ -L "$tmp/links/descriptor" ] || fail "a link to a descriptor is replaced"
python3 - "$kprof" "$folder/demo.kprof" >"$tmp/out" <<'END' || fail "--html on a socket"
import socket, subprocess, sys
ours, theirs = socket.socketpair()
child = subprocess.Popen([sys.argv[1], "report", "--html", f"/dev/fd/{theirs.fileno()}", sys.argv[2]], pass_fds=[theirs.fileno()])
theirs.close()
sys.stdout.write(ours.makefile(newline="").read())
sys.exit(child.wait(20))
END
cmp -s "$tmp/out" "$folder/demo.html" || fail "--html on a socket: another file"

# A session is not replaced: the name of the HTML file was forgotten, which is told before anything is read.
cp "$folder/demo.kprof" "$folder/kept.kprof"
for option in report diff; do
    "$kprof" $option --html "$folder/kept.kprof" "$folder/demo.kprof" "$folder/demo.kprof" >"$tmp/out" 2>"$tmp/said"
    expect "status of $option --html on a session" $? 2
    expect "what $option --html on a session says" "$(cat "$tmp/said")" \
        "==ERROR== --html needs the name of the file to write, but $folder/kept.kprof is a session: write --html NEW-FILE $folder/kept.kprof"
    cmp -s "$folder/demo.kprof" "$folder/kept.kprof" || fail "$option --html replaces a session"
done
rm -f "$folder/kept.kprof"
"$kprof" report --html "$folder/none.html" 2>"$tmp/said"
expect "status of report --html without a session" $? 2
[ ! -e "$folder/none.html" ] || fail "without a session, a file is written"
"$kprof" report --html "$folder/none.html" --csv --page raw "$folder/demo.kprof" 2>"$tmp/said"
expect "status of --html with --csv" $? 0
expect "what --html with --csv says" "$(cat "$tmp/said")" "==WARNING== --page has no effect with --html
==WARNING== --csv has no effect with --html"
cmp -s "$folder/none.html" "$folder/demo.html" || fail "--csv changes the HTML"
rm -f "$folder/none.html"

# What no launch passes is told beside the file, as stdout may be what it goes to.
"$kprof" report --html "$folder/none.html" -k nosuch "$folder/demo.kprof" >"$tmp/out" 2>"$tmp/said"
expect "status where no launch passes" $? 2
expect "stdout where no launch passes" "$(cat "$tmp/out")" ""
grep -q "^==KPROF== No launch is shown: no kernel of this session matches 'nosuch'" "$tmp/said" || fail "no launch passes: $(cat "$tmp/said")"
rm -f "$folder/none.html"

# Two sessions, and two beside each other; the text of the comparison stays.
make_session slower "$folder/demo.kprof" "$folder/slower.kprof"
"$kprof" report --html "$folder/two.html" "$folder/demo.kprof" "$folder/slower.kprof" || fail "--html of two sessions"
"$kprof" diff "$folder/demo.kprof" "$folder/slower.kprof" >"$tmp/plain"
"$kprof" diff --html "$folder/compare.html" "$folder/demo.kprof" "$folder/slower.kprof" >"$tmp/said"
expect "status of diff --html" $? 0
cmp -s "$tmp/plain" "$tmp/said" || fail "diff --html changes the text"
"$kprof" diff --html "$folder/limit.html" --fail-above 5% "$folder/demo.kprof" "$folder/slower.kprof" >/dev/null
expect "status of diff --html above a limit" $? 1
[ -s "$folder/limit.html" ] || fail "above a limit, no file is written"

# Four beside each other: the third lacks a kernel of the first, the last has a name that would be markup, and none of its kernels.
make_session other "$folder/demo.kprof" "$folder/other.kprof"
odd="$tmp/<img src=x onerror=window.hacked=1>.kprof"
cp "$tmp/hostile.kprof" "$odd"
"$kprof" diff --html "$folder/three.html" --fail-above 150% "$folder/demo.kprof" "$folder/slower.kprof" "$folder/other.kprof" >"$tmp/out" 2>"$tmp/said"
expect "status of diff of three" $? 0
expect "headings of diff of three" "$(grep '^==KPROF== Comparison' "$tmp/out")" "==KPROF== Comparison 1 of 2: A with B
==KPROF== Comparison 2 of 2: A with C"
"$kprof" diff --html "$folder/beside.html" "$folder/demo.kprof" "$folder/slower.kprof" "$folder/other.kprof" "$odd" >"$tmp/out" 2>"$tmp/said"
expect "status of diff with one that has none of the launches" $? 1
expect "what diff says of it" "$(cat "$tmp/said")" "==ERROR== $folder/demo.kprof and $odd have no launch in common: nothing was compared"
expect "sessions in the file of four" "$(grep -o '"command":' "$folder/beside.html" | wc -l)" 4

# A kernel that has no duration in one of two did not become faster.
for with in timed untimed; do
    "$kprof" diff --html "$folder/to-$with.html" "$folder/demo.kprof" "$folder/$with.kprof" >"$tmp/out" 2>&1
    [ -s "$folder/to-$with.html" ] || fail "diff --html with $with: $(cat "$tmp/out")"
done
rm -f "$folder/three.html" "$folder/limit.html" "$folder/slower.kprof" "$folder/other.kprof"

# The same sessions beside each other, and in one report: each can be told from the other on pages that show one of them.
make_session many "$folder/demo.kprof" "$tmp/few.kprof" 20
make_session timeline "$tmp/few.kprof" "$tmp/again.kprof" 30
"$kprof" diff --html "$folder/frames.html" "$tmp/again.kprof" "$tmp/again.kprof" >/dev/null || fail "diff --html of the same"
"$kprof" report --html "$folder/twice.html" "$tmp/again.kprof" "$tmp/again.kprof" || fail "--html of the same"

# Folded stacks add up to the time of all launches.
total=$("$kprof" report --csv --page raw --metrics gpu__time_duration.sum "$folder/some.kprof" | python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))[1:]
print(sum(int(row["gpu__time_duration.sum"]) for row in rows))')
for by in stack nvtx; do
    "$kprof" report --folded $by "$folder/some.kprof" >"$tmp/folded" || fail "--folded $by"
    expect "--folded $by: sum" "$(awk '{s += $NF} END {printf "%d", s}' "$tmp/folded")" "$total"
    expect "--folded $by: lines of one stack" "$(sed 's/ [0-9]*$//' "$tmp/folded" | sort | uniq -d | wc -l)" 0
done
grep -q '^step 3;forward;void ns::kernel_[0-9]*<' "$tmp/folded" || fail "--folded nvtx names no ranges"
"$kprof" report --folded stack "$folder/some.kprof" | grep -q '^main;step_2;launch_kernel;void ns::kernel_' || fail "--folded stack names no frames"
"$kprof" report --folded tree "$folder/some.kprof" 2>"$tmp/said"
expect "status of an unknown kind" $? 2

# --open starts the desktop's browser; where there is none, it says where the report is.
mkdir "$tmp/bin"
printf '#!/bin/sh\necho "$1" >"%s/opened"\n' "$tmp" >"$tmp/bin/xdg-open"
chmod +x "$tmp/bin/xdg-open"
env -u DISPLAY -u WAYLAND_DISPLAY -u BROWSER "$kprof" report --open "$folder/demo.kprof" 2>"$tmp/said"
expect "status without a desktop" $? 1
grep -q 'no browser to show the report in, there is no desktop here; the report is /.*/report.html$' "$tmp/said" || fail "no desktop: $(cat "$tmp/said")"
DISPLAY=:9 PATH=$tmp/bin:$PATH "$kprof" report --open --html "$folder/opened.html" "$folder/demo.kprof" || fail "--open"
expect "what was opened" "$(cat "$tmp/opened")" "$folder/opened.html"
DISPLAY=:9 PATH=$tmp/bin:$PATH "$kprof" report --open "$folder/demo.kprof" || fail "--open without --html"
cmp -s "$(cat "$tmp/opened")" "$folder/demo.html" || fail "--open shows another file"
rm -f "$folder/opened.html"
# Without --html the file is among temporary ones. It stays for a day; nothing else is removed, nor what a link leads to.
mkdir -p -m 700 "$tmp/shown/kprof-report-ABCDEF" "$tmp/shown/kprof-report-fresh1" "$tmp/shown/kprof-report-others" "$tmp/shown/kept"
touch -d '2 days ago' "$tmp/shown/kprof-report-ABCDEF/report.html" "$tmp/shown/kprof-report-others/notes" "$tmp/shown/kept/report.html"
touch "$tmp/shown/kprof-report-fresh1/report.html"
ln -s kept "$tmp/shown/kprof-report-linked"
TMPDIR=$tmp/shown DISPLAY=:9 PATH=$tmp/bin:$PATH "$kprof" report --open "$folder/demo.kprof" || fail "--open among others"
case $(cat "$tmp/opened") in
"$tmp"/shown/kprof-report-??????/report.html) ;;
*) fail "--open writes $(cat "$tmp/opened")" ;;
esac
[ -s "$(cat "$tmp/opened")" ] || fail "--open removes what it shows"
expect "files of --open" "$(cd "$tmp/shown" && find . -path "${tmp:+./$(basename "$(dirname "$(cat "$tmp/opened")")")}" -prune -o ! -type d -print | sort | tr '\n' ' ')" \
    "./kept/report.html ./kprof-report-fresh1/report.html ./kprof-report-linked ./kprof-report-others/notes "
[ ! -e "$tmp/shown/kprof-report-ABCDEF" ] || fail "--open leaves the folder of an old report"

# At the end of a run: of the exported session, of one that nobody asked for, of two processes in one file or in one each.
of_run() { # ARGUMENTS of kprof
    LD_LIBRARY_PATH=$build/fake KPROF_BRIEF_ABOVE=50 "$kprof" --quiet --page timeline "$@" >"$tmp/out" 2>"$tmp/said"
}
mkdir "$tmp/run"
LD_LIBRARY_PATH=$build/fake "$programs/p_direct" >"$tmp/plain"
of_run --html "$tmp/run/one.html" --export "$tmp/run/one.kprof" "$programs/p_direct"
expect "status of a run with HTML" $? 0
cmp -s "$tmp/out" "$tmp/plain" || fail "a run with HTML has other output"
"$kprof" report --html "$tmp/run/later.html" "$tmp/run/one.kprof"
cmp -s "$tmp/run/one.html" "$tmp/run/later.html" || fail "the HTML of a run is another one than that of its export"
rm "$tmp/run"/*
twice="$programs/p_direct; $programs/p_direct"
of_run --html "$tmp/run/both.html" sh -c "$twice"
expect "sessions in one file" "$(grep -o '"command":' "$tmp/run/both.html" | wc -l)" 2
of_run --html "$tmp/run/%p.html" sh -c "$twice"
expect "files of two processes" "$(ls "$tmp/run" | grep -c '^[0-9]*.html$')" 2
expect "files beside them" "$(ls "$tmp/run" | grep -vc 'html$')" 0
of_run --html "$tmp/run/killed.html" sh -c "$programs/p_direct; kill -9 \$\$"
expect "status of a killed run with HTML" $? 137
[ -s "$tmp/run/killed.html" ] || fail "a killed run writes no HTML"
{ KPROF_HTML=/dev/fd/7 of_run "$programs/p_direct"; } 7>"$tmp/run/through.html" || fail "KPROF_HTML on a descriptor"
[ "$(head -c 15 "$tmp/run/through.html")" = "$(head -c 15 "$tmp/run/killed.html")" ] || fail "KPROF_HTML on a descriptor writes another file"
# What is in the way is told before the program runs, and at the end where it came meanwhile.
not_run() { # WHAT WHY FILE ARGUMENTS of kprof...
    what=$1 why=$2 file=$3
    shift 3
    of_run "$@" --html "$file" "$programs/p_direct"
    expect "$what: status" $? 2
    expect "$what: what is said" "$(cat "$tmp/said")" "==ERROR== --html: $file: $why; the program was not started"
    expect "$what: output" "$(cat "$tmp/out")" ""
    of_run "$@" --strict --html "$file" "$programs/p_direct"
    expect "$what, strict: status" $? 88
}
lost="it is a session, which would be overwritten; name another file"
cp "$folder/demo.kprof" "$tmp/run/kept"
echo old >"$tmp/run/old.html"
not_run "no folder" "No such file or directory" /nonesuch/x.html
not_run "a folder in the way" "it is a folder; name a file in it" "$tmp/run" -f
not_run "a session in the way" "$lost" "$tmp/run/kept" -f
not_run "a file in the way" "the file exists; use --force-overwrite, or %p or %r in the name" "$tmp/run/old.html"
expect "a file in the way" "$(cat "$tmp/run/old.html")" old
of_run -f --html "$tmp/run/old.html" "$programs/p_direct"
expect "status of a run with -f and HTML" $? 0
[ "$(wc -c <"$tmp/run/old.html")" -gt 1000 ] || fail "a run with -f does not replace the HTML"
cmp -s "$folder/demo.kprof" "$tmp/run/kept" || fail "a run with --html replaces a session"
late() { # WHY COMMAND FILE ARGUMENTS of kprof...
    why=$1 command=$2 file=$3
    shift 3
    of_run "$@" --html "$file" sh -c "$command; $programs/p_direct"
    code=$?
    grep -qF "==ERROR== cannot write $file: $why" "$tmp/said" || fail "$why: $(cat "$tmp/said")"
}
mkdir "$tmp/run/gone"
late "No such file or directory; make its folder, or choose another path" "rmdir $tmp/run/gone" "$tmp/run/gone/x.html"
expect "status of a run whose HTML cannot be written" $code 0
late "$lost" "cp $folder/demo.kprof $tmp/run/late.html" "$tmp/run/late.html"
cmp -s "$folder/demo.kprof" "$tmp/run/late.html" || fail "a run with --html replaces a session that came meanwhile"
late "the file exists; use --force-overwrite, or name another file" "echo new >$tmp/run/new.html" "$tmp/run/new.html" --strict
expect "status of a strict run whose HTML cannot be written" $code 88
expect "a file that came meanwhile" "$(cat "$tmp/run/new.html")" new
KPROF_HTML=$tmp/run/alone.html KPROF_EXPORT=$tmp/run/alone.kprof LD_LIBRARY_PATH=$build/fake LD_PRELOAD=$library "$programs/p_direct" >"$tmp/out" 2>"$tmp/said"
grep -q "^==WARNING== No HTML is written with LD_PRELOAD alone; .kprof report --html FILE $tmp/run/alone.kprof. writes it" "$tmp/said" ||
    fail "the library alone says: $(cat "$tmp/said")"

for name in chromium chromium-browser google-chrome; do
    chromium=$(command -v $name) && break
done
if [ -z "${chromium:-}" ]; then
    [ $failures -eq 0 ] || finish
    echo "skipped: no Chromium to look at the pages with"
    exit 77
fi
timeout 290 python3 "$source/tests/e2e/html_browser.py" "$chromium" "$kprof" "$folder" || fail "in the browser"
finish
