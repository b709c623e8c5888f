#!/bin/sh
# Data with passes of its own, over a whole session: PC sampling, SASS metrics and PM sampling do the program no harm.
# Their sections and pages show what the fake library says about its kernels: instructions of lines in fake_kernels.cu.
# The arithmetic instruction, at which a warp waits for what it has loaded, is the 8th of each kernel. A failure costs
# only what failed.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

# Launches of p_direct.
LAUNCHES=19
export KPROF_SET=full

# What is collected here is what has passes of its own: the counters of the full set are planned for seconds each time.
programs_own() {
    unset KPROF_SET
    export KPROF_SECTION=SourceCounters,PmSampling
}

harmless() {
    programs_own
    for p in p_direct p_dlopen p_dlvsym p_getproc p_next p_extra p_legacy p_nodes p_capture p_fail p_many p_cudart \
        p_nocuda p_pinned p_nvtx; do
        both "$p" "$programs/$p"
        [ "$p" = p_direct ] && sampled "$p"
        [ "$p" = p_nocuda ] || expect "$p: launches seen" "$(account seen)" "$(launches)"
    done
    for end in return exit _exit quick_exit abort sigterm sigkill segv reset release destroy thread_exit fork; do
        both "end by $end" "$programs/p_exit" $end
    done
    both "a closed reader" "$programs/p_harm" lose_reader
    both "a fork" "$programs/p_harm" vfork
}

harmless_windows() {
    programs_own
    for what in synchronised memsets copies-in copies-out copies-within events allocates refusals refused-first graphs \
        prints shared-limit libraries managed registered exported forks reset threads waiting-thread fault \
        waits-outside waits-for-launch 'closed-by module' 'closed-by stream' 'closed-by dtoh-async' 'mixed 3' \
        'end-by exit' 'end-by _exit'; do
        # shellcheck disable=SC2086
        both "$what" "$programs/p_window" $what
        expect "$what: accounted" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
    done
    for devices in 1 2; do
        FAKE_DEVICES=$devices both "threads, $devices devices" "$programs/p_threads"
        expect "threads, $devices devices: profiled" "$(account profiled)" "$(launches)"
    done
}

# The first place of each table of lines.
first_places() {
    awk '/^    Hottest Lines/ { wanted = 1 } wanted && /^        [^ ]/ { print $1; wanted = 0 }' "$1"
}

# All launches have a table of lines, with samples; that of the arithmetic comes first in those of axpy_inplace, where 32
# warps execute three instructions of it.
sampled() { # NAME
    expect "$1: tables of lines" "$(grep -c '^    Hottest Lines.*; [0-9,]* samples, one every 2,048 cycles$' "$tmp/report")" $LAUNCHES
    expect "$1: hottest lines" "$(first_places "$tmp/report" | grep -c '^fake_kernels\.cu:[1-9][0-9]*$')" $LAUNCHES
    expect "$1: the hottest one" "$(first_places "$tmp/report" | head -n 1)" fake_kernels.cu:17
    expect "$1: its row" "$(grep -m 1 '^      1 ' "$tmp/report" | awk '{print $4, $5}')" "long_scoreboard 96"
}

sections() {
    both "sections" "$programs/p_direct"
    expect "sections: profiled" "$(account profiled)" $LAUNCHES
    for s in 'Source Counters' 'PM Sampling'; do
        expect "sections: $s" "$(grep -c "^    Section: $s\$" "$tmp/report")" $LAUNCHES
    done
    grep -q '^==WARNING==' "$tmp/report" && { fail "sections: a warning"; show; }
    sampled "sections"
    grep -q 'Hottest line: fake_kernels.cu:' "$tmp/report" || { fail "advice names no line"; show; }
    # one pass each, in one series with those of the counters
    expect "sections: passes of one window" "$(grep -c ' - 0: 37 passes,' "$tmp/report")" 1

    # Functions that are launched the first time while the range profiler has been on: all but the first's.
    KPROF_WINDOW=1 both "windows of one" "$programs/p_direct"
    sampled "windows of one"
    KPROF_CACHE_CONTROL=none both "no cache control" "$programs/p_direct"
    sampled "no cache control"
    # what a chip cannot sample is told, and what it can is sampled
    both "not on this chip" env -u KPROF_SET KPROF_SECTION=PmSampling_WarpStates "$programs/p_direct"
    grep -q '^==WARNING== 15 of 15 metrics are not sampled over time, .* they cannot be counted in one pass on GH100$' \
        "$tmp/report" || { fail "not on this chip: no word of it"; show; }
    # a metric of these may be named as any other
    listed=smsp__pcsamp_sample_count,thread_inst_executed
    both "metrics by their names" env -u KPROF_SET KPROF_METRICS=$listed "$programs/p_direct"
    for name in smsp__pcsamp_sample_count thread_inst_executed; do
        expect "$name by its name" "$(grep -c "^    $name .* [0-9,]*\$" "$tmp/report")" $LAUNCHES
    done
    # what only the code tells is told to whom asks for it
    told=launch__barrier_count,launch__function_pcs,launch__uses_cdp
    both "the code, by name" env -u KPROF_SET KPROF_METRICS=$told "$programs/p_direct"
    for name in barrier_count:0 function_pcs:1 uses_cdp:0; do
        expect "$name" "$(grep -c "^    launch__${name%:*}  *${name#*:}\$" "$tmp/report")" $LAUNCHES
    done
    for pair in $(points _not_issued:19 :0); do
        group=smsp__pcsamp_warp_stall_reasons${pair%:*}
        both "$group" env -u KPROF_SET KPROF_METRICS="group:$group" "$programs/p_direct"
        grep -E '^    smsp__pcsamp_warps_issue_stalled_[a-z_]+ +[a-z]+ +[0-9,]+$' "$tmp/report" >"$tmp/rows"
        expect "$group: rows" "$(wc -l <"$tmp/rows")" $((19 * LAUNCHES))
        expect "$group: not issued" "$(grep -c '_not_issued ' "$tmp/rows")" $((${pair#*:} * LAUNCHES))
    done
    both "a wrong name" env -u KPROF_SET KPROF_METRICS=smsp__pcsamp_sample_cout "$programs/p_direct"
    grep -q 'did you mean smsp__pcsamp_sample_count?' "$tmp/report" || { fail "a wrong name: no word of it"; show; }
    KPROF_SET=basic both "the set basic" "$programs/p_direct"
    grep -q 'Hottest Lines' "$tmp/report" && { fail "lines that nobody asked for"; show; }
    grep -qE '^calls pid=[0-9]+ cupti(PCSampling|SassMetrics|PmSampling|GetCubinCrc)' "$tmp/kprof.log" &&
        { fail "the set basic: asks for more than counters"; show; }
    KPROF_SET=quick both "the set quick" "$programs/p_direct"
    grep -q '^calls pid=[0-9]* cuptiRegisterComputeCrc' "$tmp/kprof.log" ||
        { fail "the set quick: does not look at code, which tells what waits for the host"; show; }
}

# Fields of a page in CSV, none of which holds a bar.
fields() { tr -d '\r' <"$tmp/report" | sed -n 's/","/|/g; s/^"//; s/"$//p'; }

pages() {
    unset KPROF_SET # the page says what to collect
    one="KPROF_LAUNCH_COUNT=1"
    both "page source" env KPROF_PAGE=source $one "$programs/p_direct"
    grep -q 'Note: fake_kernels.cu was not found' "$tmp/report" || { fail "page source: no word of the missing file"; show; }
    sed -n '/^    SASS: axpy_inplace$/,$p' "$tmp/report" >"$tmp/sass"
    expect "page source: lines" "$(grep -c '^  - fake_kernels.cu:' "$tmp/sass")" 8
    expect "page source: opcodes" "$(grep '^      [0-9a-f][0-9a-f]* ' "$tmp/sass" | awk '{print $NF}' | uniq | tr '\n' ' ')" \
        'LDC S2R IMAD ISETP EXIT LDG FFMA BRA STG EXIT BRA NOP '
    # 4 blocks of 256 threads are 32 warps; each loads 8 sectors where 4 would do
    expect "page source: the load" "$(grep ' LDG$' "$tmp/sass" | awk '{print $(NF-2), $(NF-1)}')" "32 256/128"
    samples=$(sed -n 's/^    Hottest Lines.*; \([0-9,]*\) samples.*/\1/p' "$tmp/report" | tr -d ,)

    both "page source, PTX" env KPROF_PAGE=source KPROF_PRINT_SOURCE=sass,ptx $one "$programs/p_direct"
    grep '^  - PTX:' "$tmp/report" >"$tmp/ptx"
    expect "page source: lines of PTX" "$(sed 's/^  - PTX:[1-9][0-9]* | add.u32  %r1, %r1, //' "$tmp/ptx" | tr '\n' ' ')" \
        '0; 1; 2; 3; 7; 8; 9; 10; '
    both "page source, CSV" env KPROF_PAGE=source KPROF_CSV=on $one "$programs/p_direct"
    fields >"$tmp/fields"
    expect "page source, CSV: rows" "$(wc -l <"$tmp/fields")" $((1 + 16))
    expect "page source, CSV: samples" "$(awk -F'|' '
        NR == 1 { for (i = 1; i <= NF; i++) stall[i] = $i ~ /^smsp__pcsamp_warps_issue_stalled_/ && $i !~ /_not_issued$/ }
        NR > 1 { for (i = 1; i <= NF; i++) if (stall[i]) n += $i }
        END { print n }' "$tmp/fields")" "$samples"
    expect "page source, CSV: threads" "$(awk -F'|' '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "thread_inst_executed") at = i }
        NR > 1 { n += $at }
        END { print n }' "$tmp/fields")" $((12 * 1024))

    metric=TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed
    both "page pm" env KPROF_PM_SAMPLING_INTERVAL=1500 KPROF_SECTION=PmSampling KPROF_PAGE=pm KPROF_CACHE_CONTROL=none $one "$programs/p_direct"
    # the log tells all samples: the kernel's, and three idle ones before and after it
    taken=$(sed -n 's/^sampled .* samples=\([0-9]*\) .*/\1/p' "$tmp/kprof.log" | tail -n 1)
    expect "page pm: samples" "$(sed -n 's/^    \([0-9]*\) samples, one every 1.50 us;.*/\1/p' "$tmp/report")" $((taken - 6))
    expect "page pm: rows" "$(grep -cE '^    (SM Active|DRAM Read Throughput|L2 Throughput)  ' "$tmp/report")" 3
    both "page pm, CSV" env KPROF_PM_SAMPLING_INTERVAL=1500 KPROF_SECTION=PmSampling KPROF_PAGE=pm KPROF_CSV=on $one "$programs/p_direct"
    fields | grep "^0|$metric|" >"$tmp/fields"
    expect "page pm, CSV: samples" "$(wc -l <"$tmp/fields")" $((taken - 6))
    expect "page pm, CSV: the first time" "$(head -n 1 "$tmp/fields" | cut -d'|' -f3-5)" '%|0|1500'
    for sample in 0 $((taken - 7)); do # but for the last digits
        value=$(LD_LIBRARY_PATH="$build/fake" "$programs/fake_value" $metric axpy_inplace $sample)
        expect "page pm, CSV: sample $sample" "$(grep "^0|$metric|%|$sample|" "$tmp/fields" | cut -d'|' -f6 | cut -c1-13)" \
            "$(echo "$value" | cut -c1-13)"
    done
    both "sampled by name" env KPROF_METRICS=pmsampling:sm__cycles_active.avg KPROF_PAGE=pm KPROF_CSV=on $one "$programs/p_direct"
    expect "sampled by name" "$(fields | grep -c '^0|sm__cycles_active.avg|')" $((taken - 6))
}

# All that ncu takes; CUPTI's longest interval is 2 to the power of 31.
intervals() {
    unset KPROF_SET
    for pair in $(points auto:2048 0:32 9:16384 10:32768 26:2147483648 27:2147483648 31:2147483648); do
        both "interval ${pair%:*}" env KPROF_WARP_SAMPLING_INTERVAL="${pair%:*}" KPROF_LAUNCH_COUNT=1 KPROF_PAGE=raw \
            KPROF_SECTION=SourceCounters "$programs/p_direct"
        expect "interval ${pair%:*}" "$(sed -n 's/^ *smsp__pcsamp_interval_cycles  *cycle  *//p' "$tmp/report" | tr -d ,)" \
            "${pair#*:}"
    done
    both "interval 32" env KPROF_WARP_SAMPLING_INTERVAL=32 "$programs/p_direct"
    grep -q 'KPROF_WARP_SAMPLING_INTERVAL: 32 is too large; the highest value is 31' "$tmp/kprof.err" ||
        { fail "interval 32: no word of it"; show; }
}

# What is printed of a session later is what was printed at its end.
stored() {
    unset KPROF_SET
    both "stored" env KPROF_EXPORT="$tmp/session.kprof" KPROF_PAGE=source "$programs/p_direct"
    "$build/kprof" report --page source "$tmp/session.kprof" >"$tmp/later" 2>&1 || fail "kprof report"
    for file in report later; do
        sed -n '/^\[/,$p' "$tmp/$file" | grep -v '^==' >"$tmp/$file.cut"
    done
    expect "stored: tables of lines" "$(grep -c '^    Hottest Lines' "$tmp/later.cut")" $LAUNCHES
    cmp -s "$tmp/report.cut" "$tmp/later.cut" || { fail "stored: another page"; diff "$tmp/report.cut" "$tmp/later.cut" | head -n 20; }
    both "stored, pm" env KPROF_SECTION=PmSampling KPROF_EXPORT="$tmp/pm.kprof" KPROF_PAGE=pm "$programs/p_direct"
    "$build/kprof" report --page pm "$tmp/pm.kprof" >"$tmp/later" 2>&1 || fail "kprof report --page pm"
    expect "stored, pm: rows" "$(grep -c '^    SM Active  ' "$tmp/later")" $LAUNCHES
    expect "stored, pm" "$(grep '^    SM Active  ' "$tmp/later")" "$(grep '^    SM Active  ' "$tmp/report")"

    # With the text of the file, which is gone when it is read.
    mkdir "$tmp/src"
    for line in $(seq 1 400); do echo "line_$line();"; done >"$tmp/src/fake_kernels.cu"
    for import in $(points yes no); do
        both "import-source=$import" env -C "$tmp/src" KPROF_IMPORT_SOURCE=$import KPROF_SECTION=SourceCounters \
            KPROF_EXPORT="$tmp/$import.kprof" "$programs/p_direct"
    done
    rm -r "$tmp/src"
    for import in $(points yes no); do
        "$build/kprof" report --page source "$tmp/$import.kprof" >"$tmp/later" 2>&1 || fail "kprof report"
        [ $import = yes ] && wanted=1 || wanted=0
        expect "import-source=$import: text" "$(grep -c 'line_17();' "$tmp/later" | sed 's/^[1-9][0-9]*$/1/')" $wanted
        "$build/kprof" report --page source --print-source ptx "$tmp/$import.kprof" >"$tmp/ptx" 2>&1 || fail "kprof report"
        expect "import-source=$import: PTX" "$(grep -c '\.visible \.entry axpy_inplace()$' "$tmp/ptx" | sed 's/^[1-9][0-9]*$/1/')" $wanted
        expect "import-source=$import: no PTX" "$(grep -c 'Note: the session has no PTX of it: ' "$tmp/ptx" | sed 's/^[1-9][0-9]*$/1/')" $((1 - wanted))
        [ $import = no ] || expect "import-source=yes: notes" "$(grep -c 'was not found' "$tmp/later")" 0
    done
}

# What fails is missed with one line, whichever place of a session it fails at; all else is there.
missing() { # FUNCTION [NTH]: sets what is left
    what="$1${2:+, call $2} fails"
    both "$what" env FAKE_FAIL="$1:999${2:+:$2}" KPROF_PAGE=details,source "$programs/p_direct"
    expect "$what: profiled" "$(account profiled)" $LAUNCHES
    expect "$what: warnings" "$(grep -c '^==WARNING==' "$tmp/report")" "${warnings:-1}"
    expect "$what: speed of light" "$(grep -c '^    Section: GPU Speed Of Light Throughput$' "$tmp/report")" $LAUNCHES
    expect "$what: no counters" "$(grep -c 'cannot\|not replayed' "$tmp/report")" 0
    samples=$(grep -cE '^    Hottest (Lines|Instructions): .*; [0-9,]* samples' "$tmp/report")
    counted=$(grep -cE ' [1-9][0-9]* +[1-9][0-9]*/[1-9][0-9]* +LDG$' "$tmp/report")
    series=$(grep -c '^    # Pass Groups  *1$' "$tmp/report")
}

# Whether the report tells of the fault. What begins to sample fails so beside another process, too, which the line says.
told() { # FAULT WHAT
    case $1 in
    *GetData | *FlushData | *DecodeData) after= ;;
    *) after='; another process may be counting on this GPU (a profiled run, DCGM), and only .*' ;;
    esac
    grep -q "^==WARNING== $2: CUPTI_ERROR_UNKNOWN (999)$after\$" "$tmp/report" || { fail "$1: no word of it"; show; }
}

faults() {
    unset KPROF_SET
    export KPROF_SECTION=SpeedOfLight,SourceCounters,PmSampling
    for f in $(points cuptiPCSamplingGetData cuptiPCSamplingEnable cuptiPCSamplingStart); do
        missing $f
        told $f "warp states are not sampled"
        expect "$f: sampled, counted, series" "$samples $counted $series" "0 $LAUNCHES $LAUNCHES"
    done
    for f in $(points cuptiSassMetricsFlushData cuptiSassMetricsSetConfig cuptiSassMetricsEnable); do
        missing $f
        told $f "instructions are not counted"
        expect "$f: sampled, series" "$samples $series" "$LAUNCHES $LAUNCHES"
    done
    for f in $(points cuptiPmSamplingEnable cuptiPmSamplingStart cuptiPmSamplingDecodeData); do
        missing $f
        told $f "nothing is sampled over time"
        expect "$f: sampled, counted, series" "$samples $counted $series" "$LAUNCHES $LAUNCHES 0"
    done
    # Once, in a later window: the others have what they had.
    for f in $(points cuptiSassMetricsFlushData cuptiPCSamplingGetData cuptiPmSamplingStart); do
        KPROF_WINDOW=4 missing $f 7
    done
    warnings=0 missing cuptiRegisterComputeCrcCallback
    expect "no images: samples" "$samples" $LAUNCHES
    expect "no images: without lines" "$(first_places "$tmp/report" | grep -c 'fake_kernels.cu')" 0
    # Code without an image has no lines, and the rest of its values.
    warnings=0 missing cuptiGetCubinCrc
    expect "no CRC: samples" "$samples" $LAUNCHES
    # After this one CUPTI must be left alone, by later windows and later contexts, too: it has taken parts of itself down.
    for p in p_direct "p_window reset"; do
        # shellcheck disable=SC2086
        KPROF_TIMELINE=on KPROF_WINDOW=4 both "sampling that does not end, $p" \
            env FAKE_FAIL=cuptiPCSamplingDisable:999 "$programs/"$p
        grep -q '^==WARNING== .*: CUPTI could not end its sampling' "$tmp/report" ||
            { fail "sampling that does not end, $p: no word of it"; show; }
    done
}

# A context that ends takes CUPTI's list of what is counted by instruction with it, before the process would trip over it.
contexts() {
    programs_own
    for end in reset release destroy; do
        both "contexts: $end" "$programs/p_exit" $end
    done
    both "a context after another" "$programs/p_window" reset
    expect "a context after another: lists" "$(grep -c '^calls .* cuptiSassMetricsSetConfig 1$' "$tmp/kprof.log")" 1
    grep -q '^==WARNING== instructions are not counted: CUPTI does so no more' "$tmp/report" ||
        { fail "a context after another: no word of what it lacks"; show; }
}

# A launch that the driver refuses when it is made again. In the pass of one kind the launches from there on miss what
# that kind has, with the reason, and one line tells of it; in a pass of the counters, or before, the window has none.
refusals() {
    unset KPROF_SET
    sampled_over_time=sm__cycles_active.avg
    listed=gpu__time_duration.sum,smsp__pcsamp_sample_count,thread_inst_executed,pmsampling:$sampled_over_time
    why='the driver refused a launch when it was run again: CUDA_ERROR_INVALID_VALUE'
    # The first two windows are of three such launches each, the third of four. All of a window are made by the program,
    # once without counters, and in four passes: sampled, for the counters, counted by instruction, sampled over time. By
    # itself the program makes 17, which are not to fail without the profiler.
    while read -r nth missed lost kind; do
        what="launch $nth is refused"
        both "$what" env FAKE_FAIL=cuLaunchKernel:1:"$nth" KPROF_METRICS=$listed "$programs/p_direct"
        expect "$what: warnings" "$(grep -c '^==WARNING==' "$tmp/report")" 1
        if [ "$lost" = all ]; then
            expect "$what: profiled" "$(account profiled)" $((LAUNCHES - missed))
            continue
        fi
        expect "$what: profiled" "$(account profiled)" $LAUNCHES
        grep -qxF "==WARNING== $kind in a window: $why" "$tmp/report" || { fail "$what: no word of it"; show; }
        expect "$what: say why" "$(grep -cF "    n/a: $lost: $why" "$tmp/report")" "$missed"
        expect "$what: missing" "$(grep -c "^    $lost .*(!) n/a\$" "$tmp/report")" "$missed"
        expect "$what: missing in all" "$(grep -c '(!) n/a$' "$tmp/report")" "$missed"
    done <<END
23 3 all
25 3 smsp__pcsamp_sample_count warp states are not sampled
27 1 smsp__pcsamp_sample_count warp states are not sampled
29 3 all
33 1 thread_inst_executed instructions are not counted
32 2 thread_inst_executed instructions are not counted
34 3 $sampled_over_time nothing is sampled over time
50 4 all
60 1 $sampled_over_time nothing is sampled over time
END
}

# A disassembler of our own, of the kernel axpy_inplace.
write_disassembler() {
    mkdir -p "$tmp/tools"
    cat >"$tmp/tools/nvdisasm" <<'END'
#!/bin/sh
echo '.section .text.axpy_inplace,"ax",@progbits'
i=0
while [ $i -lt 64 ]; do
    [ $i = 5 ] && text='@!P0 LDG.E.CONSTANT R2, desc[UR4][R2.64]' || text='FFMA.FTZ R1, R2, R3, R4'
    printf '/*%04x*/ %s ;\n' $((16 * i)) "$text"
    i=$((i + 1))
done
END
    chmod +x "$tmp/tools/nvdisasm"
}

# Opcodes with modifiers are asked for by name, and so is the disassembly that tells them; sizes need none.
modifiers() {
    all=sass__inst_executed_per_opcode_with_modifier_all
    write_disassembler
    unset KPROF_SET
    export KPROF_LAUNCH_COUNT=1 KPROF_PAGE=raw KPROF_PRINT_METRIC_INSTANCES=values
    both "modifiers" env PATH="$tmp/tools:$PATH" KPROF_METRICS=$all "$programs/p_direct"
    expect "modifiers" "$(sed -n "s/^    $all  *//p" "$tmp/report")" "384 (352; 32)"
    both "sizes" env PATH="$tmp/tools:$PATH" KPROF_METRICS=memory_access_size_type "$programs/p_direct"
    expect "sizes" "$(sed -n 's/^    memory_access_size_type  *inst  *//p' "$tmp/report")" "64 (64)"
    tr -s '\n ' ' ' <"$tmp/report" | grep -q "$all.*: the kernel's code was not disassembled" ||
        { fail "no reason why there are no modifiers"; show; }
}

# A program that is killed leaves the code and the counts of the windows that were closed.
killed() {
    programs_own
    for end in sigkill abort; do
        rm -f "$tmp/session"
        KPROF_WINDOW=1 both "$end" env KPROF_EXPORT="$tmp/session" "$programs/p_exit" $end
        "$build/kprof" report --page source "$tmp/session" >"$tmp/stored" 2>&1 || fail "$end: the session cannot be read"
        expect "$end: launches" "$(reported "$tmp/stored")" 2
        expect "$end: hottest lines" "$(first_places "$tmp/stored" | grep -c '^fake_kernels\.cu:[0-9]*7$')" 2
        expect "$end: instructions" "$(grep -c ' FFMA$' "$tmp/stored" | sed 's/^[1-9][0-9]*$/some/')" some
        "$build/kprof" report --page pm "$tmp/session" >"$tmp/stored" 2>&1
        expect "$end: series" "$(grep -c '^    SM Active  ' "$tmp/stored")" 2
    done
}

# Under a sanitiser the programs that the others have run are enough: each of them takes minutes there.
programs_too="harmless_windows harmless"
[ -n "${KP_TEST_PRELOAD_FIRST:-}" ] && programs_too=
these="$programs_too faults contexts modifiers sections pages intervals refusals stored killed"
case "${KP_TEST_PRELOAD_FIRST:-}" in *libtsan*) these="sections killed" ;; esac
for part in $these; do
    beside "$part"
done
finish
