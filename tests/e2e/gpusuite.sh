#!/bin/bash
# The short GPU suite without a GPU: its scripts parse. A part that runs out of time is ended with everything that it
# started, and the rest continues. The table shows what their output says.
. "$(dirname "$0")/e2e.inc"
release_only "it is the same in every build"
gpu=$source/tests/gpu

for script in "$gpu"/*.sh "$gpu/gpu.inc"; do
    bash -n "$script" || fail "$script does not parse"
done
while read -r name seconds rest; do
    case $name in '' | '#'*) continue ;; esac
    eval "set -- $rest"
    while [[ $1 == *=* ]]; do shift; done
    [ -e "$gpu/$1" ] || fail "short.txt: $name: no script $1"
    sum=$((${sum:-0} + seconds))
done <"$gpu/short.txt"
[ "$sum" -le 560 ] || fail "short.txt: $sum s in all"

# What parts print, in the form of their scripts.
cat >"$tmp/told.sh" <<'END'
case $1 in
*/timeline) printf '| native | 5100 | |\n| kprof --page timeline | 6400 | 1300 |\n' ;;
*/app_replay) echo '| patterns | 14 | 200 of 210 | 0 | 6 | 7.5 | 3.0 | 22.5 | yes |' ;;
*/rotate) printf 'basic.1.1: 2.5 s; output same; 800 launches seen, 800 profiled\nrotate.basic.1.1.kprof: 60 keys, 58 complete, 9 launches alike, 9 counted\n' ;;
*/graphs) echo '| torch-step | exit code 0 | same output: yes | 12 launches seen, 12 profiled | native 5.0 s, kprof 7.0 s, ncu 13.0 s |' ;;
*/why) printf '## lts__t_requests.sum\n| way | a | b |\n| --- | --- | --- |\n| ncu | 100 | 50 |\n| kprof | 101 | 60 |\n' ;;
*/source) echo '| phases, 1 launches | 0.4 | 4.4 | 1.4 | 4000 | 1000 | 4.0 |' ;;
*/choose) echo 'stacks: 20 of 20 launches' ;;
*/full) printf '| all | 1000 | 970 (97.0 %%) |\n| all | 130 | 123 | 5 |\n| patterns, full, 14 launches | 0.4 | 28.4 | 4.6 | 2000 | 300 | 6.7 |\n' ;;
*/run) printf '| patterns | 14 | 14 | 14 |  | yes | 0, 0 | 66 |\n| Occupancy | 182 | 179 (98.4 %%) |\none launch in one small program: ncu 2.2 s, kprof 1.1 s\nFAILED: something\n' && exit 1 ;;
*/bench) echo 'row: | 400 launches, basic | 0.1 s | 334.5 ms a launch | 5 s, 400 of 400 profiled | 12.8 ms | 26.1 | 18: met |' >"$1/bench.log" ;;
*/real) echo '| triton | Python | 11 | 3.80 | 5.0 | 109.1 | yes | 9.0 | 472.7 | yes |' ;;
esac
END
# A part that hangs as ncu's do: under a `timeout` of its own.
cp "$(command -v sleep)" "$tmp/sleeps"
echo "timeout 77 $tmp/sleeps 60" >"$tmp/hangs.sh"
echo "hangs 1 $tmp/hangs.sh" >"$tmp/parts"
for part in timeline app_replay rotate graphs why source choose full run bench real; do
    echo "$part 60 WHAT='a b' $tmp/told.sh $part" >>"$tmp/parts"
done
COMMIT=0123abcd PARTS=$tmp/parts bash "$gpu/suite.sh" "$tmp/out" short >"$tmp/said" 2>&1
expect "exit status of a suite with failures" $? 1
pgrep -f "$tmp/sleeps" >/dev/null && fail "what a part started runs on"

row() { # TEXT: a line of the table
    tr -s ' ' <"$tmp/said" | grep -qF -- "$1" || fail "the table lacks: $1"
}
row '| **hangs** | `hangs.sh` | | | **ran out of its 1 s** |'
row '| **run** | `WHAT=a b told.sh run` | | | **exit code 1** |'
row '| | kprof --page timeline | 6400 ns a launch, 1300 above native | | | |'
row '| | patterns, application replay, 14 launches | 6 runs, 7.5 s (kernel replay 3.0), ncu 22.5 s; 200 of 210 rows agree, 0 n/a | 3.0 | same exit code: yes | |'
row '| | set.launches.run basic.1.1 | 2.5 s; 800 launches seen, 800 profiled | | output same | |'
row '| | rotate.basic.1.1 | 58 of 60 keys complete | | | |'
row '| | torch-step: 12 launches seen, 12 profiled | native 5.0 s, kprof 7.0, ncu 13.0 | 4.0 | exit code 0, same output: yes | |'
row '| | lts__t_requests.sum | cold 1 of 2; warm 0 of 0 kernels within 3 % | | | |'
row '| | full set of phases, 1 launches | 1000, ncu 4000 ms a launch | 4.0 | | |'
row '| | stacks | 20 of 20 launches | | | |'
row '| | values of the full page | 970 of 1000 agree | 97.0 % | | |'
row '| | messages of the rules | 123 of 130 the same, 5 only kprof'
row '| | patterns, full, 14 launches | 300, ncu 2000 ms a launch | 6.7 | | |'
row '| | patterns: launches | seen 14 of 14 traced, profiled 14; 66 ms each | | same output: yes; exit codes 0, 0 | |'
row '| | Occupancy: rows | 179 of 182 agree | 98.4 % | | |'
row '| | one launch, whole process | 1.1, ncu 2.2 s | 2.0 | | |'
row '| | 400 launches, basic | 5 s, 400 of 400 profiled, 12.8 ms; ncu 334.5 ms a launch; native 0.1 s | 26.1 | 18: met | |'
row '| | triton, 11 launches; native 3.80 s | quick 5.0 s, basic 9.0 s | | the same: yes, yes | |'
row 'run: FAILED: something'
expect "the files that are left" "$(ls "$tmp/out" | tr '\n' ' ')" "results.csv suite.tar.gz summary.md "
tar -tzf "$tmp/out/suite.tar.gz" | grep -q '^bench/bench.log$' || fail "the logs lack bench.log"
[ "$(wc -c <"$tmp/out/summary.md")" -le 12000 ] || fail "the table is too long"

# docs/performance.md: made of the results that are kept. Those of any run make one, but not those of two, too many, or none.
performance() { "$gpu/performance.py" "$1" >"$tmp/page.md" 2>"$tmp/said.page"; }
refused() { # WHAT FILE WORDS
    performance "$2" && fail "performance.py makes a page of $1"
    grep -qF -- "$3" "$tmp/said.page" || fail "performance.py, $1: not said: $3: $(cat "$tmp/said.page")"
}
performance "$gpu/results.csv" || fail "performance.py: $(cat "$tmp/said.page")"
diff "$source/docs/performance.md" "$tmp/page.md" || fail "docs/performance.md is stale, run make tables"
[ "$(wc -c <"$source/docs/performance.md")" -le 8192 ] || fail "docs/performance.md has more than 8 KB"
performance "$tmp/out/results.csv" || fail "performance.py: $(cat "$tmp/said.page")"
grep -qF '| 0123abcd | ' "$tmp/page.md" || fail "the page lacks the commit"
for text in '| 400 launches, basic | 5 s, 400 of 400 profiled, 12.8 ms; ncu 334.5 ms a launch; native 0.1 s | 26.1 | 18: met |' \
    '| values of the full page | 970 of 1000 agree | 97.0 % | |' '## Other programs'; do
    grep -qF -- "$text" "$tmp/page.md" || fail "the page lacks: $text"
done
{ cat "$gpu/results.csv" && sed 1d "$tmp/out/results.csv"; } >"$tmp/two.csv"
refused "two runs" "$tmp/two.csv" 'rows of 2 runs'
head -1 "$gpu/results.csv" >"$tmp/none.csv"
refused "no row" "$tmp/none.csv" 'rows of 0 runs'
awk 'NR == 1 || $0 ~ /,bench,/ { for (i = NR > 1 ? 60 : 1; i; i--) print }' "$gpu/results.csv" >"$tmp/many.csv"
refused "too many rows" "$tmp/many.csv" 'more than 8192'
sed 's/,bench,/,nosuch,/' "$gpu/results.csv" >"$tmp/part.csv"
refused "a part that it does not know" "$tmp/part.csv" 'no heading for nosuch'

[ $failures -eq 0 ] || cat "$tmp/said"

# graphs.sh over a folder alone, of one script.
mkdir -p "$tmp/stubs" "$tmp/programs"
for stub in nvidia-smi ncu; do printf '#!/bin/sh\n' >"$tmp/stubs/$stub"; done
printf '#!/bin/sh\necho sum: 5\n' >"$tmp/programs/summing"
chmod +x "$tmp/stubs"/* "$tmp/programs/summing"
PATH=$tmp/stubs:$PATH CASES= bash "$gpu/graphs.sh" "$tmp/graphs" "$tmp/programs" >"$tmp/said" 2>/dev/null
expect "graphs.sh, a folder alone: exit status" $? 0
expect "graphs.sh, a folder alone: programs" "$(sed -n 's/^| \([^|]* | exit code [0-9]*\) | same output: .*/\1/p' "$tmp/said")" "summing | exit code 0"
PATH=$tmp/stubs:$PATH CASES=none bash "$gpu/graphs.sh" "$tmp/graphs" >"$tmp/said" 2>&1
expect "graphs.sh, no case none: exit status" $? 2

# app_replay.sh with a bound of time: the program that is running is cut off, the next one is left out, and both have rows.
cat >"$tmp/stubs/nvcc" <<'END'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho sum: 5\nexec sleep 60\n' >"$2"
chmod +x "$2"
END
chmod +x "$tmp/stubs/nvcc"
start=$SECONDS
PATH=$tmp/stubs:$PATH LIMIT=4 timeout 40 bash "$gpu/app_replay.sh" "$tmp/app" patterns order >"$tmp/said" 2>"$tmp/app.err"
code=$?
[ $code != 124 ] || fail "app_replay.sh goes on when its time is over"
[ $((SECONDS - start)) -lt 30 ] || fail "app_replay.sh takes $((SECONDS - start)) s of its 4"
row '| patterns | 0 | '
row '| order | | no time left | | | | | | |'
row 'Metrics of several passes: no time left'

# bench.sh unselected: native and profiled runs in turn, and the median of each. Their times are 7, 4, 1, 8, 5, 2, 9, 6 and
# 3 steps above the least.
cat >"$tmp/turns" <<'END'
#!/bin/sh
how=native us=40000
[ -z "$LD_PRELOAD" ] || {
    how=kprof us=41000
    echo "==KPROF== 20,000 launches seen, 0 profiled, 20,000 skipped" >"$KPROF_LOG_FILE"
}
echo $how >>TURNS
echo "bench: launches 0.0$((us + $(grep -c $how TURNS) * 7 % 10 * 2000)) s, with results 0.1 s" >&2
echo "20000 launches, checksum 1"
END
sed -i "s|TURNS|$tmp/taken|g" "$tmp/turns"
chmod +x "$tmp/turns"
printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp %s "$2"\n' "$tmp/turns" >"$tmp/stubs/nvcc"
PATH=$tmp/stubs:$PATH timeout 60 bash "$gpu/bench.sh" "$tmp/bench" unselected >"$tmp/said" 2>"$tmp/bench.err"
expect "bench.sh unselected: exit status" $? 0
expect "bench.sh unselected: runs" "$(tr '\n' ' ' <"$tmp/taken")" "$(printf 'native kprof %.0s' {1..9})"
row '| 20,000 launches, none selected, median of 9 in turn (ncu: 2,000) | 2.500 us a launch (2.100 to 2.900) | n/a us a launch | 2.550 us a launch (2.150 to 2.950) | 0.050 us above native | n/a | 0.2 us above native: met |'

# real.py over samples that are scripts: cut off, it ends what runs, and prints what there is.
samples=$tmp/samples
sample() { # NAME, and the script on stdin
    mkdir -p "$samples/b/Static/$1"
    touch "$samples/b/Static/$1/.built"
    { echo '#!/bin/sh' && cat; } >"$samples/b/Static/$1/$1"
    chmod +x "$samples/b/Static/$1/$1"
}
sample good <<<'sleep 0.3; echo "sum: 5"'
sample other <<<'sleep 0.2; echo "sum: $(echo "$LD_PRELOAD" | grep -c .)"'
# Timings that are the same in both plain runs, and what only resembles them.
sample timings <<<'[ -n "$LD_PRELOAD" ] && t=9.25 || t=2.73
printf "memcopy:\t$t\nkernel:\t\t$t\nnon-streamed:\t$t (5.46 expected)\n4 streams:\t$t (2.10 expected)\n"'
for line in 'kernel: 2.73' 'a kernel:\t2.73' 'kernel:\t273' 'streams:\t2.73' 'memcopy of 4 streams:\t2.73'; do
    resembles=$((${resembles:-0} + 1))
    sample "resembles$resembles" <<<"[ -n \"\$LD_PRELOAD\" ] && printf '${line/73/74}\n' || printf '$line\n'"
done
sample slow <<<'[ -z "$LD_PRELOAD" ] || { touch '"$tmp"'/slow; '"$tmp"'/sleeps 61 & '"$tmp"'/sleeps 61; }; echo "sum: 5"'
echo '{}' >"$samples/test_args.json"

real() { # OPTIONS...
    exec python3 "$gpu/real.py" --library "$library" --out "$tmp/real" --samples "$samples" --variants Static --gpus 1 \
        --sets quick "$@" >"$tmp/said" 2>&1
}
told() { # NAME TEXT: a line of what it says
    tr -s ' ' <"$tmp/said" | grep -qF -- "$2" || { fail "real.py, $1: not said: $2"; cat "$tmp/said"; }
}
what_there_is() { # NAME WHY
    told "$1" '| good | Static | 0 | '
    told "$1" "DIFFERS: other (Static, quick): 'sum: 0' is 'sum: 1'"
    told "$1" "left out: slow (Static): $2: quick"
    pgrep -f "$tmp/sleeps" >/dev/null && fail "real.py, $1: what a program started runs on"
    expect "real.py, $1: rows" "$(python3 -c 'import json,sys
 # the longer one first, as measured
print(sorted(json.loads(line)["name"] for line in open(sys.argv[1])))' "$tmp/real/real.jsonl")" "['good', 'other', 'slow']"
    expect "real.py, $1: all" "$(python3 -c 'import json,sys; print(len(json.load(open(sys.argv[1]))))' "$tmp/real/real.json")" 3
}

(real --only good,other)
expect "real.py: exit status" $? 1
told whole '| other | Static | 0 | '
(real --only "timings,$(seq -s, -f resembles%g $resembles)")
expect "real.py: what only resembles timings" "$(grep -c '^DIFFERS: resembles' "$tmp/said")" $resembles
grep -q 'DIFFERS: timings' "$tmp/said" && fail "real.py: timings are taken for a result"
for signal in TERM INT; do
    rm -rf "$tmp/slow" "$tmp/real"
    real --only good,other,slow --limit 300 &
    pid=$!
    until [ -e "$tmp/slow" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
    kill -$signal $pid
    wait $pid
    expect "real.py, SIG$signal: exit status" $? $((128 + $(kill -l $signal)))
    what_there_is "SIG$signal" "cut off by SIG$signal"
done
rm -rf "$tmp/real"
(real --only good,other,slow --limit 300 --until 8)
what_there_is "--until" "no time was left"

# contact.sh over scripts and a program for the fakes: each end has its word, and those that say SKIP, do not build, or fail
# natively are left out. Those that vary natively have another try.
cat >"$tmp/stubs/nvcc" <<END
#!/bin/sh
while [ "\$1" != -o ]; do shift; done
case \$3 in
*/bad.cu) exit 1 ;;
*/p_nodes.cu) cp "$(realpath "$programs")/p_nodes" "\$2" ;;
*) sed 's|^//|#|; 1i#!/bin/sh' "\$3" >"\$2" ;;
esac
chmod +x "\$2"
END
mkdir -p "$tmp/contact"
contact() { # NAME, and what it does on stdin
    cat >"$tmp/contact/$1.cu"
}
contact bad </dev/null
contact p_nodes </dev/null
contact lacks <<<'echo "SKIP no thing"'
contact hangs <<<"[ -z \"\$LD_PRELOAD\" ] || { $tmp/sleeps 62 & $tmp/sleeps 62; }; echo ok"
contact codes <<<'[ -z "$LD_PRELOAD" ] || exit 3; echo "$1"'
contact differs <<<'echo "sum: ${#LD_PRELOAD}"'
contact settles <<<'mkdir "$0.ran" && n=1 || n=2; [ -z "$LD_PRELOAD" ] || n=3; echo "sum: $n"'
contact varies <<<'mkdir "$0.ran" || exit 4'
printf '# said otherwise\nlibnone.so codes.cu\ncodes-two codes.cu two\n' >"$tmp/contact/cases.txt"
PATH=$tmp/stubs:$PATH CUDA_HOME=$tmp/none CONTACT=$tmp/contact LIMIT=16 SETTINGS="basic preload" CUDA_VISIBLE_DEVICES=0 \
    LD_LIBRARY_PATH=$(realpath "$build/fake") bash "$gpu/contact.sh" "$tmp/met" >"$tmp/said" 2>&1
expect "contact.sh: exit status" $? 1
pgrep -f "$tmp/sleeps" >/dev/null && fail "contact.sh: what a program started runs on"
expect "contact.sh: rows" "$(sed -E -n '/^\| case/,/^$/s/^\| ([^ ]*) \| [0-9.]* (.*) \|$/\1 \2/p' "$tmp/said" | sed -E 's/ [0-9]+\.[0-9] / /g; s/ +/ /g; s/ $//')" \
    "codes-two | CODE 3 no account | CODE 3 no account
bad | |
differs | DIFF no account | DIFF no account
hangs | HANG no account | HANG no account
lacks | |
p_nodes | ok 23/23 | ok 23/23
settles | DIFF no account | DIFF no account
varies | |"
for text in 'bad: does not build' 'lacks: left out: SKIP no thing' 'varies: left out: ends natively with 4, 4' \
    "differs (basic, preload): DIFF: 'sum: 0' is 'sum: " 'basic: 1 of 5 as natively'; do
    grep -qF -- "$text" "$tmp/said" || fail "contact.sh: not said: $text"
done
expect "contact.sh: files" "$(ls "$tmp/met" | tr '\n' ' ')" "contact.json contact.md contact.tar.gz "
PATH=$tmp/stubs:$PATH bash "$gpu/contact.sh" "$tmp/met" nosuch >"$tmp/said" 2>&1
expect "contact.sh, no such case: exit status" $? 2

# bounded.sh over the same: what kprof says of kinds is in the table, "about" leaves a hundredth, and launches are traced.
mkdir -p "$tmp/bounded"
bounded() { # NAME, and what it does on stdin
    cat >"$tmp/bounded/$1.cu"
}
bounded bad </dev/null
bounded p_nodes </dev/null
bounded lacks <<<'echo "SKIP no thing"'
bounded fails <<<'exit 4'
bounded hangs <<<"[ -z \"\$LD_PRELOAD\" ] || { echo '==KPROF== Profiling k' >\"\$KPROF_LOG_FILE\"; $tmp/sleeps 63; }; echo ok"
bounded near <<<'[ -z "$LD_PRELOAD" ] && echo "about 1.00 of 3" || echo "about 1.005 of 3"'
bounded far <<<'[ -z "$LD_PRELOAD" ] && echo "about 1.00 of 3" || echo "about 1.02 of 3"'
bounded codes <<<'[ -z "$LD_PRELOAD" ] || exit 3'
cat >"$tmp/bounded/says.cu" <<'END'
[ -z "$LD_PRELOAD" ] || echo "==KPROF== 7,192 launches seen, 98 profiled
==KPROF== $1" | tr _ ' ' >"$KPROF_LOG_FILE"
END
cat >"$tmp/bounded/cases.txt" <<'END'
# said otherwise
all says.cu all_98_kernels_and_shapes_have_results;_profiling_added_2.5_s
some says.cu 1,511_of_1,600_kernels_and_shapes_have_results;_the_others
END
PATH=$tmp/stubs:$PATH CUDA_HOME=$tmp/none BOUNDED=$tmp/bounded LIMIT=16 TRACES=1 LD_LIBRARY_PATH=$(realpath "$build/fake") \
    bash "$gpu/bounded.sh" "$tmp/met" >"$tmp/said" 2>&1
expect "bounded.sh: exit status" $? 1
pgrep -f "$tmp/sleeps" >/dev/null && fail "bounded.sh: what a program started runs on"
expect "bounded.sh: rows" "$(sed -E -n 's/^\| ([a-z])/\1/p' "$tmp/said" | sed -E 's/-?[0-9]+\.[0-9]/S/g; s/ +/ /g; s/ \|$//')" \
    "case | launches seen | native, s | with kprof, s | added, s | measured | kinds with results | verdict
all | 7,192 | S | S | S | 98 | 98 of 98 | ok
some | 7,192 | S | S | S | 98 | 1511 of 1600 | ok
bad | | | | | | | does not build
codes | | S | S | S | 0 | | differs
fails | | S | | | | | ends natively with 4
far | | S | S | S | 0 | | differs
hangs | | S | S | S | 1 | | no end
lacks | | S | | | | | SKIP no thing
near | | S | S | S | 0 | | ok
p_nodes | 23 | S | S | S | 23 | all | ok"
for text in "far: default: 'about 1.00 of 3' is 'about 1.02 of 3'" '# p_nodes, '; do
    grep -qF -- "$text" "$tmp/said" || fail "bounded.sh: not said: $text"
done
expect "bounded.sh: files" "$(ls "$tmp/met" | grep -v contact | tr '\n' ' ')" "bounded.json bounded.md bounded.tar.gz traces.tar.gz "
PATH=$tmp/stubs:$PATH CUDA_HOME=$tmp/none BOUNDED=$tmp/bounded UNTIL=0 bash "$gpu/bounded.sh" "$tmp/met" near >"$tmp/said" 2>&1
grep -q '^| near .* | no time was left |$' "$tmp/said" || fail "bounded.sh: runs without time"

finish
