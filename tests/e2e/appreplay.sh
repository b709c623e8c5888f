#!/bin/sh
# Application replay: the program runs once per pass, and the command joins the counts of the runs. The values are those
# of kernel replay; runs that differ are reported; whatever happens, the program ends like its first run.
. "$(dirname "$0")/e2e.inc"

one_thread
export LD_LIBRARY_PATH="$build/fake" KPROF_WINDOW=1
p=$programs/p_window
limit=${E2E_LIMIT:-120} # a series is a dozen programs
counter=$tmp/counter

# Runs the command with application replay; out, err and report hold its output.
replayed() { # FLAGS... PROGRAM ARGUMENTS...
    rm -f "$tmp/report" "$counter"
    LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:-}" timeout "$limit" "$build/kprof" --replay-mode application \
        --log-file "$tmp/report" "$@" >"$tmp/kprof.out" 2>"$tmp/kprof.err"
    code=$?
}

# The same in five runs rather than eleven, for what does not depend on what is counted.
FEW=5
metric=l1tex__throughput.avg.pct_of_peak_sustained_elapsed
few() { # FLAGS... PROGRAM ARGUMENTS...
    replayed --metrics "$metric" "$@"
}

# Kernel replay of the same, as the report that is wanted.
wanted() { # FLAGS... PROGRAM ARGUMENTS...
    LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:-}" timeout "$limit" "$build/kprof" --log-file "$tmp/wanted" "$@" >/dev/null 2>&1
}

# Nothing is left in TMPDIR.
clean() { # NAME
    left=$(find "$tmp" -maxdepth 1 -name 'kprof*' -type d)
    [ -z "$left" ] || { fail "$1: left $left"; find "$tmp" -path "$tmp/kprof*"; }
}

# The columns of both, without the numbers of the processes. Application replay has no roll-ups beside what a section names.
rows() { # FILE OTHER
    python3 - "$1" "$2" <<'END'
import csv, sys
both = set(next(csv.reader(open(sys.argv[2])))) - {"Process ID"}
table = list(csv.reader(open(sys.argv[1])))
keep = [i for i, column in enumerate(table[0]) if column in both]
for row in table:
    print("\t".join(row[i] for i in keep))
END
}

same_values() { # NAME FLAGS... PROGRAM ARGUMENTS...
    name=$1
    shift
    replayed --csv --page raw "$@"
    expect "$name: exit code" "$code" 0
    wanted --csv --page raw "$@"
    rows "$tmp/report" "$tmp/wanted" >"$tmp/a"
    rows "$tmp/wanted" "$tmp/report" >"$tmp/b"
    [ -s "$tmp/a" ] || fail "$name: no rows"
    cmp "$tmp/a" "$tmp/b" || { fail "$name: other values than by kernel replay"; show; }
    expect "$name: warnings" "$(grep -cE 'WARNING|ERROR' "$tmp/kprof.err")" "${warnings:-0}"
    clean "$name"
}

# A program that counts its runs: $n is the number of this one.
counting='n=$(cat '$counter' 2>/dev/null || echo 0); n=$((n + 1)); echo $n >'$counter';'

equal_values() {
    same_values "basic" "$programs/p_direct"
    same_values "one shape after another" --metrics "$metric" "$p" many 5
    same_values "metrics" --metrics sm__throughput.avg.pct_of_peak_sustained_elapsed,sm__cycles_elapsed.max "$programs/p_direct"
    same_values "no counter" --section LaunchStats "$programs/p_direct"
    KPROF_CACHE_CONTROL=none same_values "no cache control" --metrics "$metric" "$p" many 3
    warnings=1 same_values "graphs" "$programs/p_graph" # that of the first run is not repeated
    KPROF_GRAPH_PROFILING=graph same_values "graphs as wholes" --metrics "$metric" "$programs/p_graph"
    same_values "some launches" --metrics "$metric" -s 2 -c 3 "$programs/p_direct"
    # What is chosen by the kernel's duration differs where the machine stalls.
    same_values "all providers" --section MemoryWorkloadAnalysis,SourceCounters,PmSampling --warp-sampling-interval 6 \
        --pm-sampling-interval 2000 --pm-sampling-buffer-size 32M "$p" many 2
}

# Throughputs that take several passes are the largest of their constituents, where CUPTI's libraries tell these.
throughputs() {
    [ -e "$KP_REAL_CUPTI/libnvperf_host.so" ] || return 0
    mkdir "$tmp/cupti"
    ln -s "$(realpath "$build/fake")"/libc* "$KP_REAL_CUPTI/libnvperf_host.so" "$tmp/cupti/"
    LD_LIBRARY_PATH=$tmp/cupti replayed --cupti-dir "$tmp/cupti" --csv --page raw --metrics \
        lts__throughput,breakdown:lts__throughput,sm__throughput,breakdown:sm__throughput,dram__bytes.sum "$p" many 2
    expect "throughputs: exit code" "$code" 0
    python3 - "$tmp/report" "$tmp/kprof.err" <<'END' || fail "throughputs"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))[1:]
assert len(rows) == 2, rows
for row in rows:
    assert not [n for n, v in row.items() if "n/a" in v and "pct" in n], row
    for unit in "lts__", "sm__":
        whole = unit + "throughput.avg.pct_of_peak_sustained_elapsed"
        # sm__throughput has constituents of other units: only those of the list are there
        parts = [float(v) for n, v in row.items() if n.endswith(".avg.pct_of_peak_sustained_elapsed") and n != whole]
        own = [float(v) for n, v in row.items() if n.startswith(unit) and n.endswith(".avg.pct_of_peak_sustained_elapsed") and n != whole]
        assert float(row[whole]) in parts and float(row[whole]) >= max(own), (whole, row[whole], own)
# Constituents that nobody asked for are not shown.
assert not [n for n in rows[0] if n.startswith("l1tex__")], rows[0]
END
    replayed --cupti-dir "$tmp/cupti" --csv --page raw --metrics lts__throughput "$p" many 1
    expect "throughputs: metrics shown" "$(head -1 "$tmp/report" | tr , '\n' | grep -c 'lts__')" 1
}

# Each counted launch finds cold caches; the first run flushes nothing.
flushes() { # RUN
    mkdir -p "$tmp/shared"
    KPROF_REPLAY_MODE=application KPROF_REPLAY_RUN=$1 KPROF_REPLAY_FOLDER=$tmp/shared profiled "$p" many 7
    calls cuMemcpyDtoDAsync_v2
}
calls() { # FUNCTION
    awk -v f="$1" '$1 == "calls" && $3 == f { n += $4 } END { print n + 0 }' "$tmp/kprof.log"
}

caches() {
    expect "caches: first run" "$(flushes 1)" 0
    expect "caches: second run" "$(KPROF_WINDOW=512 flushes 2)" 8 # one to prepare
    expect "caches: pages" "$(calls cuMemcpy2DAsync_v2)" 14 # two allocations a launch
    expect "caches: left alone" "$(KPROF_CACHE_CONTROL=none flushes 2)" 0
    expect "caches: left alone, pages" "$(calls cuMemcpy2DAsync_v2)" 0
    rm -rf "$tmp/shared"
}

# Kernels that must not run twice: kernel replay counts them in part, application replay in full. Each run makes each launch
# once.
once() {
    for case in heap heap-blocks launches virtual-host; do
        plain "$programs/p_repeat" $case
        few "$programs/p_repeat" $case
        expect "$case: exit code" "$code" "$plain_code"
        # Of memory on the host no list tells which kernels reach it: the first launch of each of the two is watched.
        [ $case = virtual-host ] && watched=2 || watched=0
        expect "$case: launches" "$(reported)" $(($(launches) - watched))
        expect "$case: notes" "$(grep -c 'Note:' "$tmp/report")" 0
        expect "$case: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0
        for _ in $(seq $FEW); do cat "$tmp/plain.out"; done | cmp -s - "$tmp/kprof.out" || fail "$case: other output"
    done
}

# What the user is told, and where the session goes.
report() {
    replayed -o "$tmp/kept.kprof" -f "$p" many 4
    expect "report: exit code" "$code" 0
    grep -q '; application replay, 11 runs$' "$tmp/report" || { fail "report: no word of the runs"; show; }
    expect "report: launches" "$(reported)" 4
    expect "report: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0
    expect "report: progress of the first run" "$(grep -c 'Profiling ".*" - [0-3]: the first run is without counters$' "$tmp/report")" 4
    expect "report: output of each run" "$(grep -c '^  entries' "$tmp/kprof.out")" 11
    "$build/kprof" report --page session "$tmp/kept.kprof" >"$tmp/session" 2>&1
    grep -q 'Replay  *application replay, 11 runs' "$tmp/session" || { fail "report: session page"; cat "$tmp/session"; }
    "$build/kprof" report --json "$tmp/kept.kprof" | grep -q '"replay": *"application replay, 11 runs"' || fail "report: JSON"
    replayed -o "$tmp/kept.kprof" "$p" many 4
    [ "$code" -ne 0 ] || fail "report: an export that exists is replaced"
    clean "report"
}

# Runs that make other launches than the first one.
other_launches() {
    few sh -c "$counting [ \$n != 3 ] && exec $p many 4; exec $p many 5"
    expect "one more: exit code" "$code" 0
    expect "one more: launches" "$(reported)" 4
    grep -q 'WARNING.* run 3 of process [0-9]* made 5 launches instead of 4: 4 of the first run have no partner in it, and 5 of it none' "$tmp/kprof.err" || { fail "one more: partners"; show; }
    grep -q 'run 3 of the program has no such launch' "$tmp/report" || { fail "one more: no reason"; show; }

    few --app-replay-mode relaxed sh -c "$counting [ \$n != 3 ] && exec $p many 4; exec $p many 5"
    grep -q 'run 3 .*0 of the first run have no partner in it, and 1 of it none' "$tmp/kprof.err" || { fail "relaxed: partners"; show; }
    expect "relaxed: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0

    few --app-replay-mode relaxed sh -c "$counting [ \$n != 2 ] && exec $p many 4; exec $p many 3"
    grep -q 'run 2 .*1 of the first run has no partner in it, and 0 of it none' "$tmp/kprof.err" || { fail "one less: partners"; show; }
    grep -q "1 of $FEW runs of the program has no such launch, the first of them run 2" "$tmp/report" || { fail "one less: no note"; show; }

    few --app-replay-mode strict sh -c "$counting [ \$n != 3 ] && exec $p many 4; exec $p many 5"
    grep -q 'run 3 .*is left out (app-replay-mode strict): its launch 4 is .* instead of no launch' "$tmp/kprof.err" || { fail "strict: not told"; show; }
    clean "other launches"
}

# Runs that end otherwise: the end is that of the first one.
other_ends() {
    few sh -c "$counting $p many 2; exit \$n"
    expect "exit codes: the first one's" "$code" 1
    grep -q 'WARNING.* run 2 of the program ended with exit code 2, the first one with exit code 1' "$tmp/kprof.err" || { fail "exit codes: not told"; show; }
    expect "exit codes: launches" "$(reported)" 2
    few sh -c "$counting [ \$n != 4 ] || kill -SEGV \$\$; exec $p many 2"
    expect "a killed run: the first one's" "$code" 0
    grep -q 'run 4 of the program ended by signal 11 ' "$tmp/kprof.err" || { fail "a killed run: not told"; show; }
    grep -q 'run 4 has no session of process' "$tmp/kprof.err" || { fail "a killed run: session"; show; }
    expect "a killed run: launches" "$(reported)" 2
    few sh -c "$counting $p many 2; kill -KILL \$\$"
    expect "the first one killed" "$code" 137
    grep -q "1 of $FEW runs were made because the program was killed" "$tmp/kprof.err" || { fail "the first one killed: not told"; show; }
    expect "the first one killed: runs" "$(cat "$counter")" 1
    printf '#!/bin/sh\nrm -f "$0"\nexec %s many 2\n' "$p" >"$tmp/once"
    chmod +x "$tmp/once"
    few "$tmp/once"
    expect "a program that removes itself" "$code" 0
    grep -q "1 of $FEW runs were made because the next one could not be started" "$tmp/kprof.err" || { fail "removes itself: not told"; show; }
    expect "a program that removes itself: launches" "$(reported)" 2
    clean "other ends"
}

# A signal to the command ends the series, and what was collected is reported.
interrupted() {
    few sh -c "$counting [ \$n = 2 ] && $p many 2 && kill -INT \$PPID && sleep 5; exec $p many 2"
    expect "interrupted: exit code" "$code" 0
    expect "interrupted: runs" "$(cat "$counter")" 2
    grep -q "2 of $FEW runs were made because a signal ended the series" "$tmp/kprof.err" || { fail "interrupted: not told"; show; }
    grep -q 'run 3 of the program was not made' "$tmp/report" || { fail "interrupted: no reason"; show; }
    expect "interrupted: launches" "$(reported)" 2
    clean "interrupted"
}

# What the program reads.
input() {
    printf 'some text\n' >"$tmp/text"
    rm -f "$counter"
    "$build/kprof" --quiet --replay-mode application --metrics "$metric" --log-file "$tmp/report" sh -c "cat; exec $p many 1" <"$tmp/text" >"$tmp/kprof.out" 2>"$tmp/kprof.err"
    expect "a file: read by each run" "$(grep -c 'some text' "$tmp/kprof.out")" $FEW
    expect "a file: warnings" "$(grep -c WARNING "$tmp/kprof.err")" 0
    "$build/kprof" --quiet --replay-mode application --metrics "$metric" --log-file "$tmp/report" sh -c "cat; exec $p many 1" </dev/null >"$tmp/kprof.out" 2>"$tmp/kprof.err"
    expect "/dev/null: warnings" "$(grep -c WARNING "$tmp/kprof.err")" 0
    cat "$tmp/text" | "$build/kprof" --quiet --replay-mode application --metrics "$metric" --log-file "$tmp/report" sh -c "cat; exec $p many 1" >"$tmp/kprof.out" 2>"$tmp/kprof.err"
    expect "a pipe: read by one run" "$(grep -c 'some text' "$tmp/kprof.out")" 1
    expect "a pipe: told once" "$(grep -c 'stdin is a pipe' "$tmp/kprof.err")" 1
}

# Where the counters cannot be read, there is no use in more runs.
hopeless() {
    FAKE_FAIL=cuptiRangeProfilerEnable:35 replayed --strict sh -c "$counting exec $p many 2"
    expect "no permission: strict" "$code" 84
    expect "no permission: runs" "$(cat "$counter")" 2
    grep -q '2 of 11 runs were made because the counters cannot be read' "$tmp/kprof.err" || { fail "no permission: not told"; show; }
    expect "no permission: profiled" "$(account profiled)" 0
    clean "no permission"
}

# What fails in CUPTI costs values, and is said once; the runs go on.
faults() {
    for fault in cuptiRangeProfilerSetConfig cuptiRangeProfilerDecodeData cuptiPCSamplingEnable cuptiSassMetricsSetConfig \
        cuptiPmSamplingEnable cuptiProfilerGetCounterAvailability; do
        FAKE_FAIL=$fault:999 few --section SourceCounters,PmSampling sh -c "$counting exec $p many 2"
        expect "$fault: exit code" "$code" 0
        expect "$fault: launches" "$(reported)" 2
        expect "$fault: output" "$(grep -c 'entries: 4' "$tmp/kprof.out")" "$(cat "$counter")"
        sort "$tmp/kprof.err" | grep -E 'WARNING|ERROR' | uniq -d >"$tmp/twice"
        [ -s "$tmp/twice" ] && { fail "$fault: said twice"; cat "$tmp/twice"; }
        [ "$fault" = cuptiProfilerGetCounterAvailability ] || grep -qhE 'WARNING|ERROR' "$tmp/kprof.err" "$tmp/report" || { fail "$fault: no word of it"; show; }
        clean "$fault"
    done
}

# What cannot be done, in one line.
refused() {
    KPROF_REPLAY_MODE=application both "without the command" "$p" many 2
    grep -q 'KPROF_REPLAY_MODE=application runs the program several times, which the kprof command does: kprof --replay-mode application PROGRAM' "$tmp/kprof.err" "$tmp/report" || { fail "without the command: not told"; show; }
    expect "without the command: calls of the profiler" "$(grep -c '^pass ' "$tmp/kprof.log")" 0
    replayed --app-replay-match names "$p" many 2
    expect "a bad value" "$code" 2
    grep -q "did you mean 'name'" "$tmp/kprof.err" || { fail "a bad value: not told"; show; }
    replayed no-such-program
    expect "no program" "$code" 127
    replayed true
    expect "no CUDA" "$code" 0
    clean "refused"
}

# Children of the program have sessions of their own.
processes() {
    few sh -c "$p many 2; $p many 3"
    expect "two processes: launches" "$(reported)" 5
    expect "two processes: reports" "$(grep -c "application replay, $FEW runs" "$tmp/report")" 2
    expect "two processes: n/a" "$(grep -c '(!) n/a' "$tmp/report")" 0
    clean "two processes"
}

# With a sanitiser, what the runs leave and how they are joined; the rest is the same in every build, and takes minutes.
series_parts="equal_values throughputs caches once report other_launches other_ends interrupted input hopeless faults refused processes"
sanitised && series_parts="other_launches refused"
for part in $series_parts; do
    $part
done
finish
