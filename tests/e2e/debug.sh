#!/bin/sh
# What KPROF_DEBUG shows of the internals: opening and closing windows with the reasons, calls that close them, passes,
# plans. In addition, a strategy that is in no release runs in libkprof_toy.so, without a change to the windows' own
# files.
. "$(dirname "$0")/e2e.inc"

shown() { # DOMAIN PATTERN
    grep -cE "^==KPROF== debug $1 \[[0-9]+\]: $2" "$tmp/kprof.err"
}

windows() {
    KPROF_WINDOW_READS=off KPROF_DEBUG=window both "windows" "$programs/p_window" copies-out
    opens=$(shown window 'opens \(replay\): context 1$')
    [ "$opens" -gt 2 ] || fail "windows: $opens opens"
    expect "windows: closes" "$(shown window 'closes \(replay\): cuMem[A-Za-z]*(_v2)?; launches [0-9]+, with results')" "$opens"
    expect "windows: in turn" "$(sed -n 's/.*debug window \[[0-9]*\]: \([a-z]*s\) (.*/\1/p' "$tmp/kprof.err" | paste -sd' ' |
        sed 's/opens closes *//g')" ""
    launches=$(sed -n 's/.*closes .* launches \([0-9]*\), .*/\1/p' "$tmp/kprof.err" | awk '{n += $1} END {print n}')
    grep -q "^==KPROF== $launches launches seen" "$tmp/report" || fail "windows: $launches launches are not all"
    expect "windows: others" "$(grep 'KPROF== debug' "$tmp/kprof.err" | grep -vc ' debug window ')" 0
}

obstacles() {
    KPROF_DEBUG=window both "a kernel with a heap" "$programs/p_repeat" heap
    shown window 'opens \(count\): context 1, one launch that allocates or frees memory of the device.s heap' >/dev/null ||
        { fail "a kernel with a heap: its reason"; show; }
    KPROF_SET=quick KPROF_DEBUG=window both "quick" "$programs/p_window" many 20
    expect "quick: opens" "$(shown window 'opens \(count\): context 1$')" 1
    expect "quick: closes" "$(shown window 'closes \(count\): ')" 1
}

others() {
    KPROF_DEBUG=gate,replay,plan both "others" "$programs/p_window" closed-by capture
    expect "others: plans" "$(shown plan '4 sections and metrics .* [0-9]+ metrics, 9 passes, made ahead$')" 1
    expect "others: first passes" "$(shown replay 'pass 1 of 9 of a window of ')" "$(shown replay 'pass 9 of 9 of a window of ')"
    [ "$(shown replay 'rehearsal of a window of ')" -gt 1 ] || fail "others: rehearsals"
    expect "others: times" "$(shown replay '[0-9]+ launches, 9 passes, ms: restores [0-9.]+, .*, decode [0-9.]+$')" \
        "$(shown replay 'rehearsal of a window of ')"
    expect "others: calls that close windows" "$(shown gate 'cuStreamBeginCapture_v2 closes the window$')" 1
    expect "others: windows" "$(shown window '')" 0
}

# Threads open the libraries of metrics ahead of a launch that may be wanted, and plan. Where none is, nobody waits for
# them.
opened_ahead() { # NAME LINES PLANS
    expect "ahead, $1: opened" "$(shown plan 'the planning library is open, ahead of the first launch; [0-9]+ ms$')" "$2"
    expect "ahead, $1: made" "$(shown plan 'a plan for GH100 is made, ahead of the first launch; [0-9]+ ms$')" "$2"
    expect "ahead, $1: plans" "$(shown plan '.* sections and metrics .* passes, made ahead$')" "$3"
    expect "ahead, $1: other plans" "$(shown plan '.* sections and metrics .* passes$')" 0
}

planned_here() { # NAME
    expect "ahead, $1: made" "$(shown plan 'a plan for [A-Z0-9]+ is made, ahead of the first launch')" 0
    expect "ahead, $1: made ahead" "$(shown plan '.* sections and metrics .*, made ahead$')" 0
    [ "$(shown plan '.* sections and metrics .* passes$')" -gt 0 ] || fail "ahead, $1: no plan"
}

ahead() {
    for set in basic quick; do
        KPROF_SET=$set KPROF_DEBUG=plan both "ahead, $set" "$programs/p_window" many 20
        opened_ahead "$set" 1 1
        KPROF_SET=$set KPROF_KERNEL_NAME=nothing KPROF_DEBUG=plan both "ahead, $set, no such kernel" "$programs/p_window" many 20
        opened_ahead "$set, no such kernel" 0 0
    done
    KPROF_SET=quick KPROF_LAUNCH_SKIP=10 KPROF_DEBUG=plan both "ahead, later" "$programs/p_window" many 20
    opened_ahead "later" 1 1
    KPROF_SET=quick KPROF_PROFILE_FROM_START=off KPROF_DEBUG=plan both "ahead, outside" "$programs/p_window" many 20
    opened_ahead "outside" 0 0
    # Several chips have this capability.
    FAKE_CC=8.6 KPROF_DEBUG=plan both "ahead, one of several chips" "$programs/p_window" many 20
    planned_here "one of several chips"
    # Counters of writes to pinned memory join a plan that was made ahead, in no further pass.
    KPROF_DEBUG=plan both "ahead, no pinned memory" "$programs/p_window" many 20
    without=$(sed -n "s/.* sections and metrics .*: \([0-9]*\) metrics, 9 passes, made ahead$/\1/p" "$tmp/kprof.err")
    KPROF_DEBUG=plan both "ahead, pinned memory" "$programs/p_pinned"
    opened_ahead "pinned memory" 1 1
    with=$(sed -n "s/.* sections and metrics .*: \([0-9]*\) metrics, 9 passes, made ahead$/\1/p" "$tmp/kprof.err")
    [ "${with:-0}" -gt "${without:-0}" ] || fail "ahead, pinned memory: $with metrics, $without without"
    # The program ends, most likely while the worker plans for what nobody launches.
    for set in basic full; do
        KPROF_SET=$set KPROF_LAUNCH_SKIP=100000 KPROF_DEBUG=plan both "ahead, $set, in vain" "$programs/p_many" 1000
        expect "ahead, $set, in vain: plans" "$(shown plan '.* sections and metrics ')" 0
    done
}

# The library that plans is opened while cuInit runs, which takes as long on a machine with a GPU. Where that fails,
# nothing is told.
early() {
    FAKE_INIT_MS=300 KPROF_DEBUG=plan both "early" "$programs/p_init"
    expect "early: opened" "$(shown plan 'the planning library was opened from cuInit on; [0-9]+ ms$')" 1
    opened_ahead "early" 1 1
    FAKE_INIT_MS=300 KPROF_KERNEL_NAME=nothing KPROF_DEBUG=plan both "early, no such kernel" "$programs/p_init"
    expect "early, no such kernel" "$(shown plan '')" 0
    FAKE_INIT_FAILS=2 KPROF_DEBUG=plan both "cuInit fails twice" "$programs/p_init" 3
    opened_ahead "cuInit fails twice" 1 1
    for most in 1 2; do
        FAKE_INIT_MS=60 FAKE_INIT_FAILS=2 KPROF_DEBUG=plan both "cuInit fails $most" "$programs/p_init" $most
        expect "cuInit fails $most: lines" "$(wc -l <"$tmp/kprof.err") $(cat "$tmp/report" 2>/dev/null | wc -l)" "0 0"
    done
    [ "${KP_TEST_VARIANT:-}" != tsan ] || return 0 # as in locks
    FAKE_INIT_FAILS=1 KPROF_LOG_FILE=$tmp/of.%p both "a child after cuInit failed" "$programs/p_init" 1 fork
    expect "a child: reports" "$(grep -lE '^==KPROF== 20 launches seen, 20 profiled' "$tmp"/of.* | wc -l)" 2
    rm -f "$tmp"/of.*
}

# A launch by a library's constructor holds the loader's lock, which opening needs: it waits for that some seconds at most.
# CUPTI refuses to plan while another thread of ours stands in the midst of that.
constructors() {
    case ${KP_TEST_VARIANT:-release} in
    release) set -- "300 -1" "300 0" "0 20" "0 60" "0 130" "150 10" ;;
    *) set -- "300 -1" ;; # a sanitiser takes ten times as long
    esac
    for times; do
        from=$(date +%s)
        KPROF_SET=quick both "constructor, $times" "$programs/p_init" 1 plugin $times "$programs/init_plugin"
        [ $(($(date +%s) - from)) -lt 20 ] || fail "constructor, $times: $(($(date +%s) - from)) s"
        [ "$(account profiled)" = 9 ] || grep -q 'cannot plan the collection' "$tmp/report" "$tmp/kprof.err" ||
            fail "constructor, $times: profiled: $(account profiled), and no reason"
    done
}

# Two threads start CUDA, one of them in a constructor: each would wait for a lock that the other one has.
together() {
    case ${KP_TEST_VARIANT:-release} in
    release) set -- 0 700 900 1200 2000 3000 4000 5000 6000 9000 ;;
    *) set -- 700 3000 ;;
    esac
    for us; do
        from=$(date +%s)
        PLUGIN_MS=60 KPROF_SET=quick both "together, $us us" "$programs/p_init" 1 together $us "$programs/init_plugin"
        [ $(($(date +%s) - from)) -lt 20 ] || fail "together, $us us: $(($(date +%s) - from)) s"
    done
}

# CUPTI's folder may be another one when CUDA starts at last.
folders() {
    FAKE_INIT_FAILS=1 FAKE_INIT_MS=15 profiled "$programs/p_init" 2 setenv KPROF_CUPTI_DIR /nowhere
    grep -q 'libcupti not found in /nowhere' "$tmp/report" "$tmp/kprof.err" || { fail "folders: another one is not taken" && show; }
}

locks() {
    KPROF_DEBUG=lock both "locks" "$programs/p_threads"
    waits=$(shown lock 'waits for [A-Z_]*, which thread [0-9]+ holds$')
    [ "$waits" = "$(shown lock '(has [A-Z_]* after|gives up [A-Z_]* after) [0-9]+ ms')" ] || fail "locks: $waits waits"
    # TSan takes the threads that a child does not have for its own: see forks.sh.
    [ "${KP_TEST_VARIANT:-}" != tsan ] || return 0
    KPROF_DEBUG=fork both "forks" "$programs/p_window" forks
    [ "$(shown fork 'a forked child: ')" -gt 0 ] || fail "forks: none"
}

# They go to stderr also where the report goes elsewhere, and nowhere without being asked for.
silent() {
    both "silent" "$programs/p_window" copies-out
    expect "silent: lines" "$(grep -c ' debug ' "$tmp/kprof.err")" 0
    KPROF_LOG_FILE=stdout KPROF_DEBUG=window profiled "$programs/p_window" copies-out
    expect "on stdout" "$(grep -c 'KPROF== debug' "$tmp/kprof.out")" 0
    [ "$(shown window '')" -gt 4 ] || fail "on stderr beside a report on stdout"
}

# Four launches make a window of the toy's.
toy() {
    library=$build/e2e/libkprof_toy.so
    KPROF_DEBUG=window both "a toy" "$programs/p_window" many 20
    seen=$(sed -n 's/^==KPROF== \([0-9]*\) launches seen, .*/\1/p' "$tmp/report")
    [ "${seen:-0}" -ge 20 ] || fail "a toy: ${seen:-no} launches seen"
    expect "a toy: windows" "$(shown window 'closes \(toy\): the maximum number of launches; launches 4, with results 4')" $((seen / 4))
    expect "a toy: told" "$(grep -c '^==WARNING== the toy counts nothing of 4 launches' "$tmp/kprof.err" "$tmp/report" | awk -F: '{n += $2} END {print n}')" 1
}

# A process that stands still in the middle of a window, seen from outside.
in_gdb() {
    case ${KP_TEST_VARIANT:-release} in asan | ubsan | tsan) return ;; esac
    gdb -nx -batch -ex 'python print("ready")' 2>/dev/null | grep -q ready || { echo "without gdb: kprof-gdb.py is not checked"; return; }
    LD_LIBRARY_PATH="$build/fake" gdb -nx -batch -ex 'set startup-with-shell off' -ex 'set breakpoint pending on' \
        -ex "set environment LD_PRELOAD $library" -ex 'set environment KPROF_LOG_FILE /dev/null' \
        -ex 'break kp_collector_replay' -ex run -ex "source $source/tools/kprof-gdb.py" -ex kprof \
        --args "$programs/p_window" copies-out >"$tmp/gdb" 2>&1 </dev/null
    for line in 'phase: AWAKE, of process [0-9]+$' 'gate: armed, held by one thread alone; 0 calls in flight, ' \
        'window: open, strategy replay; 1 launches, 1 with results, 0 operations$' 'worker: ' \
        "lock GATE: held by thread [0-9]+, gdb's thread 1\$"; do
        grep -qE "^$line" "$tmp/gdb" || fail "gdb: no line: $line: $(tail -6 "$tmp/gdb")"
    done
}

beside windows
beside in_gdb
beside obstacles
beside others
beside ahead
beside early
beside constructors
beside together
beside folders
beside locks
beside silent
beside toy
finish
