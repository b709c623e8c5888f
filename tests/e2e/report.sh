#!/bin/sh
# The report on the fake's launches: header lines, sections by chip, values, selection.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

# Header lines: demangled names, shapes, streams.
profiled "$programs/p_direct"
for line in 'axpy_inplace (4, 1, 1)x(256, 1, 1), Context 1, Stream 13, Device 0, CC 9.0' \
    'axpy_inplace(const float *, float *, float, int) (4, 1, 1)x(256, 1, 1), Context 1, Stream 13, Device 0, CC 9.0' \
    'atomic_count (3, 2, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0' \
    'void tests::increment<int, (int)4>(T1 *, int) (2, 2, 1)x(16, 8, 1), Context 1, Stream 13, Device 0, CC 9.0'; do
    grep -qxF "  $line" "$tmp/report" || { fail "no header line: $line"; show; }
done

# Each chip's sections.
for cc in 7.5 8.0 8.6 8.9 9.0 10.0 12.0; do
    export FAKE_CC=$cc
    both "CC $cc" "$programs/p_extra"
    expect "CC $cc: launches reported" "$(reported)" 2
    grep -q "Device 0, CC $cc\$" "$tmp/report" || { fail "CC $cc: not in the header line"; show; }
    for section in 'GPU Speed Of Light Throughput' 'Launch Statistics' 'Occupancy' 'GPU and Memory Workload Distribution'; do
        expect "CC $cc: $section" "$(grep -c "^    Section: $section\$" "$tmp/report")" 2
    done
done
unset FAKE_CC

# A metric's value is the one that the counters gave, for the right kernel.
metric=smsp__inst_executed.sum
KPROF_METRICS=$metric profiled "$programs/p_extra"
for kernel in scale_struct increment; do
    value=$(LD_LIBRARY_PATH="$build/fake" "$programs/fake_value" $metric $kernel 0)
    shown=$(grep -A20 "^  $kernel (" "$tmp/report" | grep -m1 "$metric" | awk '{print $NF}' | tr -d ,)
    expect "$metric of $kernel" "$shown" "$value"
done

# A name that there is not is told of by the option that has it.
unknown() { # OPTION PAGE
    KPROF_PAGE=$2 both "$1" env "KPROF_$1=gpu__time_duratio.sum" "$programs/p_extra"
    grep -q "KPROF_$1: GH100 has no metric .* did you mean gpu__time_duration.sum?" "$tmp/report" "$tmp/kprof.err" ||
        { fail "$1: no word of the unknown metric"; show; }
}
unknown METRICS details
unknown TRACE_COLUMNS trace
grep -q 'program runs unprofiled' "$tmp/report" "$tmp/kprof.err" || { fail "nothing known: not told"; show; }

# In a list it costs a warning, once, and the others are collected.
KPROF_METRICS=gpu__time_duratio.sum,smsp__inst_executed.sum both "one of two metrics" "$programs/p_extra"
cat "$tmp/report" "$tmp/kprof.err" >"$tmp/said"
expect "one of two metrics: warnings" "$(grep -c '^==WARNING== KPROF_METRICS: GH100 has no metric "gpu__time_duratio.sum"; did you mean gpu__time_duration.sum?$' "$tmp/said")" 1
expect "one of two metrics: the other" "$(grep -c '^    smsp__inst_executed.sum ' "$tmp/said")" 2
expect "one of two metrics: profiled" "$(account profiled)" 2

# Selection.
counted() { # WHAT WANTED [NAME=VALUE...]
    what=$1 wanted=$2
    shift 2
    profiled env "$@" "$programs/p_direct"
    expect "$what" "$(reported)" "$wanted"
    expect "$what: launches seen" "$(account seen)" 19
}
counted 'everything' 19
counted 'one name' 5 KPROF_KERNEL_NAME=append
counted 'a function name of a C++ kernel' 6 KPROF_KERNEL_NAME=axpy_inplace
counted 'a regular expression' 11 KPROF_KERNEL_NAME='regex:^a[xp]p'
counted 'no such name' 0 KPROF_KERNEL_NAME=nothing_like_it
counted 'skip' 16 KPROF_LAUNCH_SKIP=3
counted 'count' 4 KPROF_LAUNCH_COUNT=4
counted 'skip and count among matches' 2 KPROF_KERNEL_NAME=append KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=5

# Lists that are given again grow, in all sub-commands; what holds one value has the last one.
demo=$source/examples/h200-demo.kprof
expect "two sections in two flags" "$("$build/kprof" report --section SpeedOfLight --section=Occupancy "$demo" | grep -c '^    Section: ')" 8
expect "two metrics in two flags" "$("$build/kprof" report --metrics launch__grid_size --metrics launch__block_size "$demo" | grep -c '^    launch__\(grid\|block\)_size ')" 8
expect "two metrics of a comparison" "$("$build/kprof" diff --show all --metrics launch__grid_size --metrics launch__block_size "$demo" "$demo" | grep -c 'launch__\(grid\|block\)_size')" 8
expect "two names" "$("$build/kprof" report --section LaunchStats -k nothing_like_it -k transpose_tiled "$demo" | grep -c '^    Section: ')" 1
# A line says that it does, and which value takes all names; that value does.
"$build/kprof" report --section LaunchStats -k nothing_like_it -k transpose_tiled "$demo" 2>&1 >/dev/null | head -n 1 >"$tmp/said"
expect "two names: a line" "$(cat "$tmp/said")" \
    "==WARNING== --kernel-name is given 2 times; the last one counts: transpose_tiled; for all of them: --kernel-name 'regex:^nothing_like_it\$|^transpose_tiled\$'"
"$build/kprof" report --section LaunchStats -k transpose_naive -k transpose_tiled "$demo" 2>&1 >/dev/null | sed "s/.*--kernel-name '//; s/'\$//" >"$tmp/all"
expect "two names: both" "$("$build/kprof" report --section LaunchStats -k "$(cat "$tmp/all")" "$demo" | grep -c '^    Section: ')" 2
"$build/kprof" diff --show all --show changed --fail-above 500 --fail-above 600 --threshold 1 --threshold 1 "$demo" "$demo" 2>"$tmp/said" >&2
expect "flags of the comparison" "$(grep '^==WARNING== --' "$tmp/said")" "==WARNING== --show is given 2 times; the last one counts: changed"

# A session that was cut off says so.
head -c 20000 "$demo" >"$tmp/cut.kprof"
"$build/kprof" report "$tmp/cut.kprof" >"$tmp/said" 2>&1
expect "a session that was cut off: status" $? 1
expect "a session that was cut off" "$(cat "$tmp/said")" \
    "==ERROR== cannot read '$tmp/cut.kprof': database disk image is malformed; it is damaged or truncated: copy it again, or record it anew"

# When nothing was selected the kernels that were there are named.
KPROF_KERNEL_NAME=nothing_like_it profiled "$programs/p_direct"
grep -q atomic_count "$tmp/report" || { fail "kernels that were seen are not named"; show; }
# A session's file is made for a launch that is wanted, or where the user asked for it.
expect "nothing selected: files of our own" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'Session file')" 0
KPROF_EXPORT="$tmp/none.kprof" KPROF_KERNEL_NAME=nothing_like_it profiled "$programs/p_direct"
"$build/kprof" report "$tmp/none.kprof" >"$tmp/stored" 2>&1
grep -q atomic_count "$tmp/stored" || { fail "kernels that were seen are not named in a stored session"; cat "$tmp/stored"; }
profiled "$programs/p_direct"
expect "something selected: files of our own" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'Session file')" 1

# The stored session gives the same launches, without CUDA.
KPROF_EXPORT="$tmp/session.%p" KPROF_LOG_FILE="$tmp/report" profiled "$programs/p_direct"
"$build/kprof" report "$tmp"/session.* >"$tmp/stored" 2>"$tmp/stored.err" || { fail "kprof report"; cat "$tmp/stored.err"; }
sed -n '/^\[/,$p' "$tmp/report" | grep -v '^==' >"$tmp/report.cut"
sed -n '/^\[/,$p' "$tmp/stored" | grep -v '^==' >"$tmp/stored.cut"
cmp -s "$tmp/report.cut" "$tmp/stored.cut" || { fail "kprof report differs"; diff "$tmp/report.cut" "$tmp/stored.cut" | head -n 20; }

# The command sets the same environment.
plain "$programs/p_direct"
FAKE_LOG="$tmp/kprof.log" LD_LIBRARY_PATH="$build/fake" LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:-}" \
    "$build/kprof" --kernel-name append --log-file "$tmp/report" -- "$programs/p_direct" >"$tmp/kprof.out" 2>"$tmp/kprof.err"
kprof_code=$?
same "kprof command"
expect "kprof command: launches reported" "$(reported)" 5

# What a run leaves is for its owner alone, and has no variable that others put behind the prefixes of frameworks.
rm -f "$tmp/own".*
(umask 022
    export TF_TOKEN_app_terraform_io=hush TF_VAR_db_password=hush TORCH_TOKEN=hush NCCL_DEBUG=seen
    LD_LIBRARY_PATH="$build/fake" "$build/kprof" --quiet --page session -k append -o "$tmp/own.kprof" --html "$tmp/own.html" --log-file "$tmp/own.log" -- \
        "$programs/p_direct" >/dev/null 2>"$tmp/kprof.err") || { fail "a run with a session, HTML and a log"; show; }
expect "modes of what a run leaves" "$(cd "$tmp" && stat -c '%a %n' own.* | paste -sd' ')" "600 own.html 600 own.kprof 600 own.log"
for file in html kprof log; do
    ! grep -qa 'hush\|TF_TOKEN\|TORCH_TOKEN' "$tmp/own.$file" || fail "a secret is in the $file"
    grep -qa NCCL_DEBUG "$tmp/own.$file" || [ $file = html ] || fail "NCCL_DEBUG is not in the $file"
done

# Mistakes: one line with the nearest name, and the program runs unprofiled.
KPROF_SECTIONS=LaunchStats both "a misspelt option" "$programs/p_direct"
grep -q 'KPROF_SECTION' "$tmp/kprof.err" || { fail "the nearest option is not named"; show; }
KPROF_SET=bsic both "a misspelt set" "$programs/p_direct"
grep -q 'basic' "$tmp/kprof.err" || { fail "the nearest set is not named"; show; }

# Charts of a section have rows of the same label, which are other metrics.
"$build/kprof" report --csv --print-details all -c 1 --section ComputeWorkloadAnalysis "$source/examples/h200-demo.kprof" >"$tmp/csv"
expect "rows of charts" "$(grep -c '"Compute Workload Analysis","ALU",' "$tmp/csv")" 4
# CSV has no instances: where the page has metrics with some, a line says where they are.
demo=$source/examples/h200-demo.kprof
for page in details raw trace; do
    "$build/kprof" report --csv --page $page "$demo" >"$tmp/csv" 2>"$tmp/err"
    [ $page = raw ] && wanted=1 || wanted=0
    expect "CSV of the page $page: lines about instances" "$(grep -c 'instances use --json' "$tmp/err")" $wanted
    expect "CSV of the page $page: lines on stderr" "$(wc -l <"$tmp/err")" $wanted
done
"$build/kprof" report --json "$demo" | grep -q '"instances"' || fail "JSON has no instances"
"$build/kprof" report --csv --print-metric-instances values "$demo" >"$tmp/csv" 2>"$tmp/err"
expect "instances in CSV" "$(cat "$tmp/err")" "==WARNING== --print-metric-instances has no effect with --csv"
# A file that cannot be made is told of before the work.
"$build/kprof" diff --html /proc/x.html "$source/examples/h200-demo.kprof" "$source/examples/h200-demo.kprof" >"$tmp/out" 2>"$tmp/err"
expect "a comparison that cannot be written: exit code" $? 1
expect "a comparison that cannot be written: output" "$(cat "$tmp/out")" ""
grep -q "==ERROR== cannot write /proc/x.html: " "$tmp/err" || { fail "a comparison that cannot be written"; cat "$tmp/err"; }
"$build/kprof" diff --html /proc/self/fd/77 "$source/examples/h200-demo.kprof" "$source/examples/h200-demo.kprof" >"$tmp/out" 2>"$tmp/err"
expect "a descriptor that is not open: exit code" $? 1
expect "a descriptor that is not open: output" "$(cat "$tmp/out")" ""
# The longest name that a file can have.
long=$tmp/$(printf '%0255d' 0)
"$build/kprof" report --html "$long" "$source/examples/h200-demo.kprof" || fail "a long name is refused"
[ -s "$long" ] || fail "no file of a long name"
# A file that is named twice, by whatever path, is told of; two sessions are not.
KPROF_EXPORT=$tmp/one.kprof KPROF_FORCE_OVERWRITE=yes profiled "$programs/p_extra"
cp "$tmp/one.kprof" "$tmp/other.kprof"
ln -sf one.kprof "$tmp/link.kprof"
stored "$tmp/one.kprof" "$tmp/other.kprof" >"$tmp/out" 2>"$tmp/err"
expect "two sessions: warnings" "$(grep -c 'counted twice' "$tmp/err")" 0
stored "$tmp/one.kprof" "$tmp/other.kprof" "$tmp/link.kprof" >"$tmp/out" 2>"$tmp/err"
expect "one session twice: exit code" $? 0
grep -q "==WARNING== $tmp/link.kprof is the same file as $tmp/one.kprof: its launches are counted twice" "$tmp/err" ||
    { fail "one session twice: no warning"; cat "$tmp/err"; }
# The device's attributes are stored once, and are columns of each launch; not where metrics are chosen.
"$build/kprof" report --page raw --csv "$tmp/one.kprof" >"$tmp/csv" 2>"$tmp/err"
expect "attributes of the device" "$(python3 - "$tmp/csv" "$tmp/one.kprof" "$source/collectors/facts/device_metrics.def" <<'END'
import csv, re, sqlite3, sys
rows = list(csv.reader(open(sys.argv[1])))
head, launches = rows[0], rows[2:]
of_table = re.findall(r'^KP_DEVICE_\w+\("([^"]*)"', open(sys.argv[3]).read(), re.M)
names = [n for n in head if n.startswith(("device__attribute_", "numa__", "nvlink__")) or n == "launch__uses_vgpu"]
filled = [sum(r[head.index(n)] != "n/a" for n in names) for r in launches]
db = sqlite3.connect(sys.argv[2])
stored = db.execute("SELECT count(*) FROM metrics WHERE name LIKE 'device__attribute_%'").fetchone()[0]
print(sorted(of_table) == names, head == head[:11] + sorted(head[11:]), len(set(filled)), min(filled) > 100, stored < len(names),
      launches[0][head.index("device__attribute_compute_capability_major")])
END
)" "True True 1 True True 9"
"$build/kprof" report --page raw --csv --metrics launch__grid_size "$tmp/one.kprof" >"$tmp/csv" 2>"$tmp/err"
expect "attributes beside chosen metrics" "$(head -n 1 "$tmp/csv" | grep -c device__attribute)" 0
"$build/kprof" report --json "$tmp/one.kprof" >"$tmp/json" 2>"$tmp/err"
expect "attributes in JSON" "$(python3 -c 'import json, sys
a = json.load(open(sys.argv[1]))["devices"][0]["attributes"]
print(a["device__attribute_compute_capability_major"], len(a) > 100)' "$tmp/json")" "9 True"
finish
