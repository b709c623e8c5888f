#!/bin/sh
# Choosing launches, processes and the time: each option with a program whose launches are known, and which runs as
# without the profiler.
. "$(dirname "$0")/e2e.inc"
one_thread

# p_window mixed 2: five rounds of append (grid 2, block 1), increment, increment (block 64), in one stream.
mixed="$programs/p_window mixed 2"
# p_many 4: four rounds of increment (stream 13), append (13), increment (14).
many="$programs/p_many 4"
# A kernel that is local to its file, with nvcc's name for it, after three launches of others.
own=__nv_static_21__1e1ceecd_4_a_cu_main__Z10static_addPii
static="$programs/p_series $own"
# p_threads: four threads with a stream each, spread over two devices; six times increment (grid 1) and atomic_count.
threads="$programs/p_threads"

# The header lines of what was profiled, shortened to NAME STREAM.
names() {
    sed -n 's/^  \([a-z_]*\)\>.*, Stream \([0-9]*\), Device.*/\1 \2/p' "$tmp/report"
}

chosen() { # WHAT PROFILED COMMAND...
    what=$1
    wanted=$2
    shift 2
    both "$what" "$@"
    expect "$what: profiled" "$(account profiled)" "$wanted"
    expect "$what: seen" "$(account seen)" "$(launches)"
}

says() { # WHAT TEXT
    grep -qF -- "$2" "$tmp/report" || { fail "$1: not said: $2"; show; }
}

silent() { # WHAT TEXT
    grep -qF -- "$2" "$tmp/report" && { fail "$1: said: $2"; show; }
}

# The log is the report's file only once a process is one to profile.
tells() { # WHAT TEXT
    grep -qF -- "$2" "$tmp/kprof.err" || { fail "$1: not on stderr: $2"; show; }
}

by_name() {
    KPROF_KERNEL_NAME=append chosen "name" 5 $mixed
    KPROF_KERNEL_NAME=increment KPROF_KERNEL_NAME_BASE=mangled chosen "mangled, of C" 10 $mixed
    KPROF_KERNEL_NAME=_Z12axpy_inplacePKfPffi KPROF_KERNEL_NAME_BASE=mangled chosen "mangled" 3 "$programs/p_direct"
    KPROF_KERNEL_NAME='regex:^void tests::' KPROF_KERNEL_NAME_BASE=demangled chosen "demangled" 2 "$programs/p_direct"
    KPROF_KERNEL_NAME='regex:^void tests::' chosen "function" 0 "$programs/p_direct"
    KPROF_KERNEL_NAME=static_add chosen "function of a static kernel" 1 $static
    KPROF_KERNEL_NAME='static_add(int *, int)' KPROF_KERNEL_NAME_BASE=demangled chosen "demangled, of a static kernel" 1 $static
    grep -q '^  static_add(int \*, int) (4, 1, 1)x(128, 1, 1), ' "$tmp/report" || { fail "name of a static kernel"; show; }
    KPROF_KERNEL_NAME=$own KPROF_KERNEL_NAME_BASE=mangled chosen "mangled, of a static kernel" 1 $static
    KPROF_KERNEL_NAME=incremnet chosen "a name nearby" 0 $mixed
    says "the name nearby" "==KPROF==   did you mean 'increment'?"
    KPROF_KERNEL_NAME='inc.*' chosen "an expression without its prefix" 0 $mixed
    says "an expression without its prefix" "==KPROF==   did you mean 'regex:inc.*'?"
    KPROF_KERNEL_NAME=crem chosen "a part of a name" 0 $mixed
    says "a part of a name" "==KPROF==   did you mean 'regex:crem'?"
    KPROF_KERNEL_NAME='regex:^(?!incr)' chosen "none that begins so" 5 $mixed
    KPROF_KERNEL_NAME='regex:\d' chosen "a digit" 0 $mixed
    KPROF_KERNEL_NAME='regex:((((([a-z]|_)*)*)*)*)*$(?<=!)' chosen "an expression without end" 0 $mixed
    says "an expression without end" "==WARNING== kernel-name takes too long to match 'app"
    KPROF_KERNEL_NAME=none KPROF_KERNEL_NAME_BASE=demangled chosen "no such name" 0 "$programs/p_direct"
    says "no such name" "change KPROF_KERNEL_NAME"
    says "no such name" "seen: axpy_inplace(const float *, float *, float, int) (3)"
}

# Graphs as wholes have no name: whoever chooses by name is told how many there were.
graphs_by_name() {
    export KPROF_GRAPH_PROFILING=graph
    KPROF_KERNEL_NAME=append chosen "name beside graphs" 4 "$programs/p_window" graphs
    says "name beside graphs" "6 skipped (whole graphs, which have no kernel name or id to select by: 6)"
    KPROF_KERNEL_NAME=none chosen "no such name beside graphs" 0 "$programs/p_window" graphs
    says "no such name beside graphs" "not selected by kernel-name: 4"
    says "no such name beside graphs" "seen: append (4)"
    KPROF_KERNEL_ID=::increment: chosen "id beside graphs" 0 "$programs/p_window" refused-graphs
    says "id beside graphs" "all launches were of whole CUDA graphs"
    unset KPROF_GRAPH_PROFILING
}

by_id() {
    KPROF_KERNEL_ID=::increment:2 chosen "second invocation" 1 $mixed
    KPROF_KERNEL_ID=::append:2,4,9 chosen "two of three invocations" 2 $mixed
    KPROF_KERNEL_ID=':::1|.*0' chosen "invocations by expression" 3 $mixed
    expect "invocations by expression" "$(names | sort | tr '\n' ' ')" "append 13 increment 13 increment 13 "
    KPROF_KERNEL_ID=::regex:^inc: chosen "name by expression" 10 $mixed
    KPROF_KERNEL_ID=1:14:: chosen "stream" 4 $many
    expect "stream" "$(names | sort -u)" "increment 14"
    KPROF_KERNEL_ID=:13:increment:3 chosen "invocation in a stream" 1 $many
    KPROF_KERNEL_ID=:14:append: chosen "no such id" 0 $many
    says "no such id" "change KPROF_KERNEL_ID"
    says "no such id" "seen: append, Context 1, Stream 13 (4)"
    says "no such id" "seen: increment, Context 1, Stream 14 (4)"
    KPROF_KERNEL_ID=2::: chosen "no such context" 0 $many
    KPROF_KERNEL_ID=:regex:x:1 both "a wrong id" $many
    tells "a wrong id" "KPROF_KERNEL_ID: 'regex' is not a valid stream"
    KPROF_GRAPH_PROFILING=graph KPROF_KERNEL_ID=:::1 chosen "whole graphs have no id" 1 "$programs/p_window" graphs
    FAKE_DEVICES=2 KPROF_KERNEL_ID=:13:increment: both "stream of each context" "$threads"
    expect "stream of each context: streams" "$(names | sort -u)" "increment 13"
    expect "stream of each context: profiled" "$(account profiled)" 12
}

by_number() {
    KPROF_LAUNCH_SKIP_BEFORE_MATCH=4 KPROF_KERNEL_NAME=append chosen "skip before match" 3 $mixed
    KPROF_LAUNCH_SKIP_BEFORE_MATCH=99 chosen "skip all before match" 0 $mixed
    says "skip all before match" "lower KPROF_LAUNCH_SKIP_BEFORE_MATCH"
    KPROF_LAUNCH_SKIP_BEFORE_MATCH=2 KPROF_KERNEL_NAME=increment KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=4 \
        chosen "all three" 4 $mixed
    KPROF_LAUNCH_SKIP=99 KPROF_KERNEL_NAME=append chosen "skip all matching" 0 $mixed
    says "skip all matching" "lower KPROF_LAUNCH_SKIP ("
    export FAKE_DEVICES=2
    KPROF_LAUNCH_COUNT=3 chosen "count" 3 "$threads"
    KPROF_LAUNCH_COUNT=3 KPROF_FILTER_MODE=per-gpu chosen "count per device" 6 "$threads"
    for d in 0 1; do
        expect "count on device $d" "$(grep -c "Device $d, CC" "$tmp/report")" 3
    done
    # increment is launched with one shape, atomic_count with one for each of the four threads
    KPROF_LAUNCH_SKIP=1 KPROF_LAUNCH_COUNT=2 KPROF_FILTER_MODE=per-launch-config chosen "count per shape" 10 "$threads"
    unset FAKE_DEVICES
    KPROF_GRAPH_PROFILING=graph KPROF_LAUNCH_COUNT=1 KPROF_FILTER_MODE=per-launch-config chosen "one per shape" 2 "$programs/p_window" graphs
    KPROF_FILTER_MODE=per-gpus both "a wrong mode" $mixed
    tells "a wrong mode" "did you mean 'per-gpu'?"
}

by_device() {
    export FAKE_DEVICES=2
    KPROF_DEVICES=1 chosen "device 1" 24 "$threads"
    expect "device 1: lines" "$(grep -c 'Device 1, CC' "$tmp/report")" 24
    KPROF_DEVICES=0,1 chosen "both devices" 48 "$threads"
    KPROF_DEVICES=1 KPROF_KERNEL_ID=::increment:1,2 chosen "invocations on a device" 2 "$threads"
    KPROF_DEVICES=5 chosen "no such device" 0 "$threads"
    says "no such device" "change KPROF_DEVICES"
    says "no such device" "seen: Device 0 ("
    says "no such device" "seen: Device 1 ("
    unset FAKE_DEVICES
    KPROF_DEVICES=1 chosen "device without launches" 0 $mixed
    silent "device without launches" "seen: Device 1"
}

# p_window old: two launches, 2.3 s, two launches. The first ones may come late on a slow machine.
by_time() {
    export KPROF_SECTION=LaunchStats
    KPROF_DELAY=2200ms chosen "delay" 2 "$programs/p_window" old
    KPROF_DURATION=2.2 chosen "duration" 2 "$programs/p_window" old
    KPROF_DELAY=2.1 KPROF_DURATION=200ms chosen "a time without launches" 0 "$programs/p_window" old
    says "a time without launches" "change KPROF_DELAY and KPROF_DURATION"
    KPROF_DELAY=5m chosen "too late" 0 $mixed
    says "too late" "lower KPROF_DELAY"
    KPROF_DURATION=5m chosen "long" 15 $mixed
}

# p_exit fork_exec: three launches, and a child that runs the program anew: two launches.
by_process() {
    export KPROF_LOG_FILE="$tmp/report.%p"
    child="$programs/p_exit fork_exec"
    reports() {
        find "$tmp" -name 'report.*' | wc -l
    }
    total() {
        cat "$tmp"/report.* 2>/dev/null | grep -cE '^  [^ ].*, Context [0-9]+, Stream [0-9]+, Device'
    }
    processes() { # WHAT REPORTS LAUNCHES
        rm -f "$tmp"/report.*
        both "$1" $child
        expect "$1: reports" "$(reports)" "$2"
        expect "$1: launches" "$(total)" "$3"
    }
    processes "all processes" 2 5
    KPROF_TARGET_PROCESSES=application-only processes "the application only" 1 3
    tells "the application only" "(p_exit) is left alone: not the application itself (target-processes)"
    KPROF_TARGET_PROCESSES_FILTER='q_exit,regex:^p_' processes "processes by name" 2 5
    KPROF_TARGET_PROCESSES_FILTER='exit,regex:^q' processes "no such process" 0 0
    tells "no such process" "(p_exit) is left alone: not selected by target-processes-filter"
    expect "no such process: lines" "$(grep -c 'left alone' "$tmp/kprof.err")" 2
    KPROF_QUIET=on KPROF_TARGET_PROCESSES_FILTER=x processes "quiet" 0 0
    expect "quiet: lines" "$(grep -c 'left alone' "$tmp/kprof.err")" 0

    # The application is what the library was loaded into first: here a shell, which stays.
    rm -f "$tmp"/report.*
    KPROF_TARGET_PROCESSES=application-only both "below a shell" sh -c "$programs/p_direct; true"
    expect "below a shell: reports" "$(reports)" 0
    KPROF_TARGET_PROCESSES=application-only both "in place of a shell" sh -c "exec $programs/p_direct"
    expect "in place of a shell: reports" "$(reports)" 1

    # A forked child says so, in the log of its parent.
    rm -f "$tmp"/report.*
    both "a forked child" "$programs/p_exit" fork
    expect "a forked child: lines" "$(cat "$tmp"/report.* | grep -c 'forked from [0-9]* after CUDA had started, was left alone')" 1
    rm -f "$tmp"/report.*
    both "an executing child" $programs/p_exit fork_exec
    expect "an executing child: lines" "$(cat "$tmp"/report.* | grep -c 'forked from')" 0
}

# A report of all launches chooses those that a run would have profiled.
in_reports() {
    KPROF_EXPORT=$tmp/many.kprof both "all launches" $many
    KPROF_EXPORT=$tmp/static.kprof both "all launches and a static kernel's" $static
    KPROF_EXPORT=$tmp/direct.kprof both "all launches of other names" "$programs/p_direct"
    KPROF_EXPORT=$tmp/ranges.kprof KPROF_NVTX=on both "all launches with ranges" "$programs/p_nvtx"
    KPROF_EXPORT=$tmp/graphs.kprof KPROF_GRAPH_PROFILING=graph both "all launches and graphs" "$programs/p_window" graphs
    export FAKE_DEVICES=2
    KPROF_EXPORT=$tmp/devices.kprof both "all launches of two devices" "$threads"
    while read -r session variable value program; do
        case $session in devices) export FAKE_DEVICES=2 ;; *) unset FAKE_DEVICES ;; esac
        flag=--$(echo "${variable#KPROF_}" | tr 'A-Z_' 'a-z-')
        base=
        case $value in _Z*) base=mangled ;; esac
        both "$flag $value" env "$variable=$value" KPROF_KERNEL_NAME_BASE="${base:-function}" $program
        "$build/kprof" report "$flag" "$value" --kernel-name-base "${base:-function}" "$tmp/$session.kprof" >"$tmp/chosen"
        expect "$flag $value: launches of the report" "$(reported "$tmp/chosen")" "$(account profiled)"
        [ "$(reported "$tmp/chosen")" -gt 0 ] || fail "$flag $value: nothing is chosen"
    done <<EOF
many KPROF_KERNEL_ID ::append:2 $many
many KPROF_KERNEL_ID :13::1 $many
direct KPROF_KERNEL_NAME _Z12axpy_inplacePKfPffi $programs/p_direct
static KPROF_KERNEL_NAME static_add $static
static KPROF_KERNEL_ID ::static_add: $static
ranges KPROF_NVTX_INCLUDE forward/ $programs/p_nvtx
ranges KPROF_NVTX_EXCLUDE forward/ $programs/p_nvtx
devices KPROF_DEVICES 1 $threads
EOF
    # By device, and by kernel, grid and block: as the run counts them.
    for mode in per-gpu per-launch-config; do
        KPROF_FILTER_MODE=$mode KPROF_LAUNCH_SKIP=1 KPROF_LAUNCH_COUNT=2 both "$mode" $threads
        for page in details summary; do
            "$build/kprof" report --filter-mode $mode -s 1 -c 2 --page $page "$tmp/devices.kprof" >"$tmp/chosen"
            grep -q "Shown above: the $(account profiled) of 48 stored launches" "$tmp/chosen" || fail "$mode, $page: $(tail -n 1 "$tmp/chosen")"
        done
    done
    # Dynamic shared memory tells launches apart, too.
    KPROF_EXPORT=$tmp/between.kprof both "other shared memory" "$programs/p_between" limit-up-and-down
    "$build/kprof" report --filter-mode per-launch-config -c 1 --page summary "$tmp/between.kprof" >"$tmp/chosen"
    KPROF_FILTER_MODE=per-launch-config KPROF_LAUNCH_COUNT=1 both "other shared memory, one of each" "$programs/p_between" limit-up-and-down
    expect "other shared memory: profiled" "$(account profiled)" 3
    grep -q 'Shown above: the 3 of ' "$tmp/chosen" || fail "other shared memory: $(tail -n 1 "$tmp/chosen")"
    unset FAKE_DEVICES
    "$build/kprof" report -k increment "$tmp/graphs.kprof" >"$tmp/chosen"
    grep -q 'Left out because they have no kernel name: [0-9]* launches of whole graphs$' "$tmp/chosen" ||
        fail "graphs that a name leaves out are not told"
    "$build/kprof" report --devices 5 "$tmp/graphs.kprof" >"$tmp/chosen"
    grep -q 'none of this session passes devices\.$' "$tmp/chosen" || fail "a choice without a launch is not told"
    # the name is right, and not what is in the way
    "$build/kprof" report -k increment --devices 5 --nvtx-exclude a/ "$tmp/graphs.kprof" >"$tmp/chosen"
    grep -q 'none of this session passes kernel-name, devices and nvtx-exclude\.$' "$tmp/chosen" ||
        fail "several choices without a launch are not told"
}

for part in by_name graphs_by_name by_id by_number by_device by_time by_process in_reports; do
    beside "$part"
done
finish
