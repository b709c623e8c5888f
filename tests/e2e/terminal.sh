#!/bin/sh
# Where the command's report goes, how wide it is, and what a long run prints.
. "$(dirname "$0")/e2e.inc"
release_only "what is printed is the same in every build; test_report_terminal runs in each"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }
unset KPROF_BRIEF_ABOVE COLUMNS

kprof() { # ARGUMENTS...
    LD_LIBRARY_PATH="$build/fake" LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:-}" timeout "$limit" "$build/kprof" "$@"
}

# Runs the command into a pipe with the given reader; the command's status is in $tmp/code.
piped() { # READER ARGUMENTS...
    reader=$1
    shift
    {
        kprof "$@" 2>"$tmp/err"
        echo $? >"$tmp/code"
    } | sh -c "$reader" >"$tmp/out"
}

has() { # FILE PATTERN WANTED
    expect "$2 in $1" "$(grep -c "$2" "$tmp/$1")" "$3"
}

plain "$programs/p_many" 40
expect "plain" "$plain_code" 0

# A file on stdout has what the program prints, and then CSV or JSON if that was asked for; a pipe has the report behind
# it, and stderr the other lines.
kprof "$programs/p_many" 40 >"$tmp/out" 2>"$tmp/err"
expect "a file: exit code" $? 0
cmp -s "$tmp/out" "$tmp/plain.out" || fail "a file: the program's output has changed"
has err '^==KPROF== 120 launches seen, 120 profiled' 1
piped cat "$programs/p_many" 40
expect "a pipe: exit code" "$(cat "$tmp/code")" 0
has out '^==KPROF== 120 launches seen, 120 profiled' 1
has out '^==KPROF== Profiling "' 0
has err '^==KPROF== Profiling "' 120
has err 'launches seen' 0
head -n "$(wc -l <"$tmp/plain.out")" "$tmp/out" | cmp -s - "$tmp/plain.out" || fail "a pipe: the program's output has changed"
piped cat --log-file stderr "$programs/p_many" 40
cmp -s "$tmp/out" "$tmp/plain.out" || fail "--log-file stderr: the program's output has changed"
has err 'launches seen' 1

for data in --csv --json; do
    kprof $data "$programs/p_many" 3 >"$tmp/out" 2>"$tmp/err"
    plain "$programs/p_many" 3
    head -n "$(wc -l <"$tmp/plain.out")" "$tmp/out" | cmp -s - "$tmp/plain.out" || fail "$data: the program's output is not first"
    tail -n "+$(($(wc -l <"$tmp/plain.out") + 1))" "$tmp/out" >"$tmp/data"
    kprof $data --log-file "$tmp/alone" "$programs/p_many" 3 >"$tmp/out" 2>/dev/null
    cmp -s "$tmp/out" "$tmp/plain.out" || fail "$data --log-file: the program's output has changed"
    expect "$data: lines as in a file" "$(wc -l <"$tmp/data")" "$(wc -l <"$tmp/alone")"
    [ "$(wc -l <"$tmp/data")" -gt 20 ] || fail "$data: stdout has no data"
    expect "$data: the first line" "$(head -n 1 "$tmp/data")" "$(head -n 1 "$tmp/alone")"
    kprof $data sh -c "'$programs/p_many' 3 >'$tmp/inner'" >"$tmp/out" 2>"$tmp/err"
    cmp -s "$tmp/inner" "$tmp/plain.out" || fail "$data: what a program below writes to a file of its own has changed"
    rm -f "$tmp/alone"
done
plain "$programs/p_many" 40

# Another file or pipe that a program below writes to is not this pipe.
for into in ">'$tmp/inner'" "| cat >'$tmp/inner'"; do
    piped cat sh -c "'$programs/p_many' 40 $into"
    cmp -s "$tmp/inner" "$tmp/plain.out" || fail "$into: the program's output has changed"
    has out 'launches seen' 0
    has err 'launches seen' 1
done

# A reader that has seen enough ends nothing; nothing is told of it. The report is far longer than a pipe holds.
piped 'head -n 1' --page details "$programs/p_many" 40
expect "a closed pipe: exit code" "$(cat "$tmp/code")" 0
grep -q 'ERROR\|WARNING\|Broken\|launches seen' "$tmp/err" && fail "a closed pipe is told of" && cat "$tmp/err"
piped 'head -n 1' --page details sh -c "'$programs/p_many' 40; kill -9 \$\$"
expect "a closed pipe, killed: exit code" "$(cat "$tmp/code")" 137
piped 'head -n 1' --page details sh -c "'$programs/p_many' 40; exit 7"
expect "a closed pipe: exit code" "$(cat "$tmp/code")" 7

# A long run is shown in brief: 120 launches of 2 kernels.
piped cat -o "$tmp/s" "$programs/p_many" 40
[ -f "$tmp/s.kprof" ] || fail "-o s makes no s.kprof"
expect "in brief: launches" "$(reported "$tmp/out")" 1
has out "^==KPROF== 1 of 120 launches in full, .*all: kprof report --page details [^ ]*\$" 1
has out '^==KPROF== 120 launches of 2 kernels, ' 1
[ "$(grep -n 'launches of 2 kernels' "$tmp/out" | cut -d: -f1)" -lt "$(grep -n 'Context 1' "$tmp/out" | cut -d: -f1)" ] || fail "in brief: the answer is not first"
"$build/kprof" report --page details "$tmp/s.kprof" >"$tmp/all"
expect "in the file: launches" "$(reported "$tmp/all")" 120
"$build/kprof" report "$tmp/s" >"$tmp/brief"
expect "of the file, in brief: launches" "$(reported "$tmp/brief")" 1
"$build/kprof" report --brief-above 120 "$tmp/s.kprof" >"$tmp/some"
expect "up to the bound, of 200 lines: launches" "$(reported "$tmp/some")" 1
"$build/kprof" report --metrics gpu__time_duration.sum -c 6 "$tmp/s.kprof" >"$tmp/some"
expect "up to both bounds: launches" "$(reported "$tmp/some")" 6
"$build/kprof" report "$source/examples/h200-demo.kprof" >"$tmp/some"
has some '^==KPROF== [0-9]* of 4 launches in full, ' 1
"$build/kprof" report -c 1 "$source/examples/h200-demo.kprof" >"$tmp/some"
expect "one launch that is longer: launches" "$(reported "$tmp/some")" 1
has some 'launches in full' 0

# Width and colours are those of the terminal; a file has neither colours nor broken lines.
widest() { # FILE
    sed 's/\r$//; s/ *$//; s/\x1b\[[0-9;]*m//g' "$tmp/$1" | awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }'
}
[ "$(widest brief)" -gt 90 ] || fail "a file has only $(widest brief) columns"
has brief "$(printf '\033')" 0
COLUMNS=80 "$build/kprof" report "$tmp/s.kprof" >"$tmp/narrow"
[ "$(widest narrow)" -le 80 ] || fail "COLUMNS=80 has lines of $(widest narrow) columns"
COLUMNS=80 "$build/kprof" diff "$tmp/s.kprof" "$tmp/s.kprof" >"$tmp/diff"
has diff 'launches compared, 0 of them changed' 1
[ "$(widest diff)" -le 80 ] || fail "COLUMNS=80 has lines of $(widest diff) columns in a comparison"
"$build/kprof" report --color always "$tmp/s.kprof" >"$tmp/coloured"
grep -q "$(printf '\033')\\[" "$tmp/coloured" || fail "--color always has no colour"
"$build/kprof" diff --color always --show all "$tmp/s.kprof" "$tmp/s.kprof" >"$tmp/coloured"
for part in '\[1m  ' '\[36mSection: '; do
    grep -q "$(printf '\033')$part" "$tmp/coloured" || fail "diff --color always has no $part"
done
"$build/kprof" diff --show all "$tmp/s.kprof" "$tmp/s.kprof" >"$tmp/diff"
sed 's/\x1b\[[0-9;]*m//g' "$tmp/coloured" | cmp -s - "$tmp/diff" || fail "colours change the text of a comparison"

# Kernels that were renamed in between are compared all the same, with names of the user.
printf '%s\n' "- Original: 'regex:^increment'" '- Renamed: first kernel' >"$tmp/names.yaml"
"$build/kprof" diff --show all --by kernel --rename-kernels "$tmp/names.yaml" "$tmp/s.kprof" "$tmp/s.kprof" >"$tmp/renamed"
has renamed '^  first kernel, averages of ' 1
KPROF_RENAME_KERNELS=$tmp/names.yaml "$build/kprof" diff --show all "$tmp/s.kprof" "$tmp/s.kprof" >"$tmp/renamed"
grep -q '^  first kernel (.*, launch ' "$tmp/renamed" || fail "KPROF_RENAME_KERNELS renames nothing in a comparison"
grep -q '^  increment' "$tmp/renamed" && fail "a comparison has the old name of a kernel"
# At 60 columns tables leave out what others tell nearly as well, rather than breaking each row.
COLUMNS=60 "$build/kprof" report --page summary,source,pm "$source/examples/h200-demo.kprof" >"$tmp/narrow"
has narrow '^    64.0 L2         49.3 UncoGlobaAcces transpose_naive(...)$' 1
has narrow '^      1      24,938  74.6% long_scoreboard$' 1
has narrow '^    L2 Throughput           %        89.15  %@' 1
# A drawing gives way before names and numbers are broken, and columns of numbers do before that on a narrow terminal.
for room in 80 100 120 200; do
    COLUMNS=$room "$build/kprof" report --page pm --print-units base "$source/examples/h200-demo.kprof" >"$tmp/narrow"
    [ "$(widest narrow)" -le $room ] || fail "the page pm has lines of $(widest narrow) columns of $room"
    has narrow '^    SM Tensor Pipe Throughput  %  .*  _*$' 4
    has narrow '^    PCIe Write  *byte/s .* [0-9],[0-9]\{3\},[0-9]\{3\},[0-9.]*  [^ ]*$' 4
done
has narrow '  @\{56\}$' 4
COLUMNS=60 "$build/kprof" report --print-details all "$source/tests/data/h200-source.kprof" >"$tmp/narrow"
has narrow '^    IMAD  2,097,152 |#*|$' 1

terminal() { # NAME COMMAND...: what the command writes to a terminal of $columns (90) columns
    TERMINAL_COLUMNS=${columns:-90} python3 - "$@" <<'END'
import fcntl, os, pty, struct, sys, termios
out, argv = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(os.environ["TERMINAL_COLUMNS"]), 0, 0))
    os.execvp(argv[0], argv)
with open(out, "wb") as f:
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        f.write(data)
os.waitpid(pid, 0)
END
}
if command -v python3 >/dev/null 2>&1; then
    export TERM=xterm
    terminal "$tmp/tty" "$build/kprof" report "$tmp/s.kprof"
    grep -q "$(printf '\033')\\[" "$tmp/tty" || fail "a terminal has no colour"
    [ "$(widest tty)" -le 90 ] || fail "a terminal of 90 columns has lines of $(widest tty)"
    [ "$(widest tty)" -gt 80 ] || fail "a terminal of 90 columns has only $(widest tty)"
    NO_COLOR=1 terminal "$tmp/tty" "$build/kprof" report "$tmp/s.kprof"
    has tty "$(printf '\033')\\[" 0
    terminal "$tmp/tty" "$build/kprof" diff --show all "$tmp/s.kprof" "$tmp/s.kprof"
    grep -q "$(printf '\033')\\[36m" "$tmp/tty" || fail "a comparison on a terminal has no colour"
    NO_COLOR=1 terminal "$tmp/tty" "$build/kprof" diff --show all "$tmp/s.kprof" "$tmp/s.kprof"
    has tty "$(printf '\033')\\[" 0
    terminal "$tmp/tty" "$build/kprof" report --color never "$tmp/s.kprof"
    has tty "$(printf '\033')\\[" 0
    LD_LIBRARY_PATH="$build/fake" terminal "$tmp/tty" "$build/kprof" "$programs/p_many" 40
    grep -q "$(printf '\033')\\[" "$tmp/tty" || fail "a terminal has no colour at the end of a run"

    # Neither a file nor a pipe depends on the terminal.
    terminal "$tmp/tty" sh -c "'$build/kprof' report '$tmp/s.kprof' | cat >'$tmp/paged'"
    sed 's/s\.kprof$/s/' "$tmp/paged" | cmp -s - "$tmp/brief" || fail "a pipe depends on the terminal"
    terminal "$tmp/tty" sh -c "'$build/kprof' report '$tmp/s.kprof' >'$tmp/file'"
    cmp -s "$tmp/file" "$tmp/paged" || fail "a file depends on the terminal"

    # All that the command says fits; lists in a pipe are whole, as programs read them.
    columns=60
    for what in --help doctor --list-sets --list-sections --list-rules --list-chips "--query-metrics --chip gh100" "--no-such-option"; do
        terminal "$tmp/tty" "$build/kprof" $what
        [ "$(widest tty)" -le 60 ] || fail "$what: a terminal of 60 columns has lines of $(widest tty)"
        [ "$(widest tty)" -gt 40 ] || fail "$what: a terminal of 60 columns has only $(widest tty)"
    done
    "$build/kprof" --list-rules >"$tmp/rules"
    terminal "$tmp/tty" sh -c "'$build/kprof' --list-rules | cat >'$tmp/paged'"
    cmp -s "$tmp/paged" "$tmp/rules" || fail "a list in a pipe depends on the terminal"
    LD_LIBRARY_PATH="$build/fake" terminal "$tmp/tty" "$build/kprof" "$programs/p_many" 40
    [ "$(widest tty)" -le 60 ] || fail "a run on a terminal of 60 columns has lines of $(widest tty)"
    has tty '^==KPROF== Profiling "' 120
fi

# A recorded training step of ResNet-18 (H100, the set basic, with a timeline): the answer is on one screen, its kernels
# are told apart, and the times are those of the program's own execution.
gzip -dc "$source/tests/data/h100-resnet.kprof.gz" >"$tmp/step.kprof"
"$build/kprof" report --page summary "$tmp/step.kprof" >"$tmp/step" 2>&1
[ "$(wc -l <"$tmp/step")" -le 60 ] || fail "the summary of a step has $(wc -l <"$tmp/step") lines"
has step '^==KPROF== Fix first: ' 1
has step '^==KPROF== 377 launches of 59 kernels, 8.07 ms of GPU time; gains are of that; the 15 longest:$' 1
"$build/kprof" report --page summary --top 0 "$tmp/step.kprof" 2>/dev/null | sed -n '/^  Time % Total/,/^$/p' |
    sed -n 's/^ *[0-9][0-9.]* .* us  *[0-9]* .\{40\}//p' | sort >"$tmp/names"
expect "a step: names" "$(wc -l <"$tmp/names")" 59
expect "a step: names that stand twice" "$(uniq -d "$tmp/names" | wc -l)" 0
"$build/kprof" report --page timeline "$tmp/step.kprof" >"$tmp/step" 2>&1
has step '^         0          731.73 ms    30.44 ms  4.16     701.29 ms  95.84             5.22 s   1,508$' 1
# A header is one line of a file, however long the name: each launch is found by it.
"$build/kprof" report --page details "$tmp/step.kprof" >"$tmp/step"
has step '^  [^ ].* ([0-9]*, [0-9]*, [0-9]*)x([0-9]*, [0-9]*, [0-9]*), Context [0-9]*, Stream [0-9]*, Device [0-9]*, CC [0-9]\.[0-9]$' 377
COLUMNS=120 "$build/kprof" report --page details "$tmp/step.kprof" >"$tmp/step"
[ "$(grep -c ', Context [0-9]*, Stream' "$tmp/step")" -lt 377 ] || fail "the headers are no test: all of them fit"

# On a narrow terminal no row lacks a name, and no column is empty; a file has all of them.
COLUMNS=60 "$build/kprof" report --page timeline "$tmp/step.kprof" >"$tmp/step" 2>&1
has step '^    Ran %               4.16$' 1
has step '^    Idle %              95.84$' 1
has step 'Launch$' 0
has step '^      Length Before  *Next$' 1
# What all launches lack is told once.
"$build/kprof" report --page source "$tmp/step.kprof" >"$tmp/step" 2>&1
has step '^  377 launches have no values by instruction: ' 1
[ "$(wc -l <"$tmp/step")" -le 8 ] || fail "a page without anything has $(wc -l <"$tmp/step") lines"

# With NVTX ranges the summary is one screen as well, and rules are named on each.
python3 "$source/tests/e2e/html_sessions.py" nested "$tmp/step.kprof" "$tmp/ranges.kprof" || fail "html_sessions.py nested"
for columns in 60 80 120; do
    for session in step ranges; do
        COLUMNS=$columns "$build/kprof" report --page summary "$tmp/$session.kprof" >"$tmp/step" 2>&1
        [ "$(wc -l <"$tmp/step")" -le 60 ] || fail "the summary of $session has $(wc -l <"$tmp/step") lines of $columns columns"
        [ "$(widest step)" -le $columns ] || fail "the summary of $session has lines of $(widest step) columns of $columns"
        has step '^  Time % .*By Rule  *Kernel$' 1
        grep -q '^     7.6 .*launch size  *3.9 Launc[hConfiguratio]* *bn_bw_1C1' "$tmp/step" || fail "no rule at $columns columns: $(sed -n '/Time %/,/^$/p' "$tmp/step")"
    done
    [ "$(grep -c '^     *[0-9][0-9.]*  *[0-9].*/$' "$tmp/step")" -ge 6 ] || fail "the summary lists few ranges at $columns columns"
done
COLUMNS=60 "$build/kprof" report --page summary --top 15 "$tmp/ranges.kprof" >"$tmp/step" 2>&1
has step 'the 15 longest:$' 1
# So has that of two sessions, after which the sum of both follows.
COLUMNS=60 "$build/kprof" report --page summary --top 15 "$tmp/step.kprof" "$tmp/ranges.kprof" >"$tmp/both" 2>&1
[ "$(widest both)" -le 60 ] || fail "the summary of two sessions has lines of $(widest both) columns of 60"
has both '^          gains are of that; the 15 longest:$' 3

# Two steps compared are one screen, too: what became slower, what faster, and how to see the rest.
python3 "$source/tests/e2e/html_sessions.py" changed "$tmp/step.kprof" "$tmp/changed.kprof" || fail "html_sessions.py changed"
for columns in 60 80 120; do
    COLUMNS=$columns "$build/kprof" diff "$tmp/step.kprof" "$tmp/changed.kprof" >"$tmp/diff"
    [ "$(wc -l <"$tmp/diff")" -le 60 ] || fail "two steps compared have $(wc -l <"$tmp/diff") lines of $columns columns"
    [ "$(widest diff)" -le $columns ] || fail "two steps compared have lines of $(widest diff) columns of $columns"
    has diff '^==KPROF== \(Slower\|Faster\) in B: ' 2
    has diff '^     *[+-][0-9.]* us ' 24
done
"$build/kprof" diff --top 0 "$tmp/step.kprof" "$tmp/changed.kprof" >"$tmp/diff"
has diff '^     *[+-][0-9.]* us ' 59
for all in "--brief-above 0" "--show changed"; do
    COLUMNS=9999 "$build/kprof" diff $all "$tmp/step.kprof" "$tmp/changed.kprof" >"$tmp/diff"
    has diff ', launch [0-9]* of A, [0-9]* of B$' 377
done

# The ranges of a timeline are frames, where the run had no others: their kernels add up to the time of all launches.
"$build/kprof" report --folded nvtx "$tmp/step.kprof" >"$tmp/folded" 2>"$tmp/err"
expect "folded nvtx: what is said" "$(cat "$tmp/err")" ""
expect "folded nvtx: outermost frames" "$(sed -n 's/^\(forward\|backward\|optimizer\);.*/\1/p' "$tmp/folded" | sort | uniq -c | tr -s ' \n' ' ')" " 1 backward 25 forward 2 optimizer "
expect "folded nvtx: sum" "$(awk '{s += $NF} END {printf "%d", s}' "$tmp/folded")" 8066208

# Stacks of what was not collected are kernels alone, which is told.
cp "$source/examples/h200-demo.kprof" "$tmp/demo.kprof"
for by in nvtx stack; do
    "$build/kprof" report --folded $by "$tmp/demo.kprof" >"$tmp/folded" 2>"$tmp/err"
    expect "folded $by: lines" "$(wc -l <"$tmp/folded")" "$(cut -d'(' -f1 <"$tmp/folded" | sort -u | wc -l)"
    has err '^==WARNING== no launch has .*, so each line is a kernel alone: ' 1
done
# What has no name is a frame all the same.
python3 "$source/tests/e2e/html_sessions.py" nameless "$tmp/demo.kprof" "$tmp/nameless.kprof" || fail "html_sessions.py nameless"
"$build/kprof" report --folded stack "$tmp/nameless.kprof" >"$tmp/folded"
expect "folded stacks without names" "$(sed 's/ [0-9]*$//' "$tmp/folded")" 'main;(no name);launch_kernel;?'
finish
