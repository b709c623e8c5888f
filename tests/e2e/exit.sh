#!/bin/sh
# A program ends as it would have without kprof, however it ends, and the launches that had finished are in the report.
# If a signal killed it, the launches of closed windows are in the session. The report's first lines name the signal,
# and so does an exported report.
. "$(dirname "$0")/e2e.inc"

# For the programs that are killed: each launch is a window.
killed() {
    case $1 in
    abort | segv | sigterm | sigint | sigkill) export KPROF_WINDOW=1 ;;
    *) unset KPROF_WINDOW ;;
    esac
}

# TSan has a thread of its own, which keeps a process whose main thread has ended alive for ever.
[ "${KP_TEST_VARIANT:-}" = tsan ] && last= || last="pthread_exit last_thread handler"
for end in return exit _exit quick_exit abort sigterm sigint sigkill segv reset release destroy thread_exit fork fork_exec cancelled $last; do
    killed $end
    both $end "$programs/p_exit" $end
    case $end in
    abort | segv | sigterm | sigint | sigkill) # no signal handler is changed: nothing can be written at the end
        session=$(sed -n 's/^==KPROF== Session file \([^,]*\),.*/\1/p' "$tmp/report")
        "$build/kprof" report "$session" >"$tmp/stored" 2>&1 || fail "$end: the session left behind cannot be read"
        expect "$end: launches in the session left behind" "$(reported "$tmp/stored")" 2
        continue
        ;;
    fork_exec) continue ;;    # two processes write to one file name
    destroy | fork | pthread_exit | last_thread | handler) wanted=3 ;;
    *) wanted=2 ;;
    esac
    expect "$end: launches reported" "$(reported)" $wanted
    expect "$end: launches seen" "$(account seen)" $wanted
done

# Several threads end the process at once: one report, whole, and the status that it has without the profiler.
for round in $(rounds 6); do
    for end in exits exit_return all_ways nested; do
        both "$end, round $round" "$programs/p_exit" $end
        expect "$end, round $round: launches reported" "$(reported)" 2
        expect "$end, round $round: accounts" "$(grep -c 'launches seen' "$tmp/report")" 1
    done
done

# Before glibc 2.41 this crashes without the profiler. The handlers are called by one thread, the other waits.
for round in $(rounds 3); do
    profiled "$programs/p_exit" crowd
    expect "main returns among many handlers, round $round: exit code" "$kprof_code" 7
    expect "main returns among many handlers, round $round: launches reported" "$(reported)" 2
done

# A sanitiser makes all frames larger, and knows no stack of ours.
sanitised || for end in small_exit small__exit; do
    both "$end" "$programs/p_exit" $end
    expect "$end: launches reported" "$(reported)" 2
done

# kprof makes an exit long enough to be cancelled in it: what natively ends the process still does.
profiled "$programs/p_exit" cancelled_exit
expect "an exit that is cancelled: exit code" "$kprof_code" 4
expect "an exit that is cancelled: output" "$(tail -n 1 "$tmp/kprof.out")" "the last exit handler"
expect "an exit that is cancelled: launches reported" "$(reported)" 2

both "a handler that launches behind the report" "$programs/p_exit" behind
expect "a handler that launches behind the report: launches reported" "$(reported)" 2
expect "a handler that launches behind the report: told" \
    "$(grep -c '^==KPROF== 1 launch was made after the report, while the program ended$' "$tmp/report")" 1

both "exit from a destructor" "$programs/p_exit" destructor
expect "exit from a destructor: launches reported" "$(reported)" 2
# From glibc 2.41 on exit() lets nobody pass, and such a program hangs by itself.
if [ "$(printf '%s\n' 2.41 "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" | sort -V | head -n 1)" != 2.41 ]; then
    both "an exit handler waits for a thread that exits" "$programs/p_exit" joined
    expect "an exit handler waits for a thread that exits: launches reported" "$(reported)" 2
fi

# A launch that waits for the end of a window meanwhile is let through: planning needs libraries that are gone by then.
for round in $(rounds 4); do
    both "launches beside the end" "$programs/p_exit" beside
    expect "launches beside the end: accounted" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
done

# A report takes longer than an exit. Meanwhile the calls of other threads succeed. Natively one in some hundred runs is caught in
# one as the driver ends, so that there is nothing to compare with. TSan sleeps a second at the end, longer than threads are held.
[ "${KP_TEST_VARIANT:-}" = tsan ] || for round in $(rounds 4); do
    for how in basic detailed rotate; do
        case $how in
        rotate) export KPROF_REPLAY_MODE=rotate KPROF_SET=basic ;;
        *) export KPROF_REPLAY_MODE=kernel KPROF_SET=$how ;;
        esac
        profiled "$programs/p_exit" checked
        expect "checked calls beside the end, $how: exit code" "$kprof_code" 7
        expect "checked calls beside the end, $how: accounts" "$(grep -c 'launches seen' "$tmp/report")" 1
    done
    unset KPROF_REPLAY_MODE KPROF_SET
done

# A thread ends the process while the report is being written into a pipe. Its reader is slower than what a wait for another
# thread's work is given.
twice() {
    mkfifo "$tmp/pipe"
    python3 - "$tmp/pipe" >"$tmp/report.read" <<'END' &
import fcntl, os, sys, time
pipe = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(pipe, 1031, 4096)  # F_SETPIPE_SZ
os.write(1, os.read(pipe, 1000))
time.sleep(14)
while text := os.read(pipe, 65536):
    os.write(1, text)
END
    reader=$!
    KPROF_LOG_FILE="$tmp/pipe" KPROF_SET=detailed profiled "$programs/p_exit" twice
    wait $reader
    mv "$tmp/report.read" "$tmp/report"
    expect "twice: exit code" "$kprof_code" 7
    expect "twice: launches reported" "$(reported)" 2
    expect "twice: launches seen" "$(account seen)" 2
}
beside twice

# It takes long to plan, where many metrics are asked for; the third call is for the launch beside the end.
if [ -n "$KP_REAL_CUPTI" ]; then
    FAKE_SLOW=cuptiProfilerHostConfigAddMetrics:5000:3 profiled "$programs/p_exit" planning
    expect "planning beside the end: exit code" "$kprof_code" 7
    expect "planning beside the end: misuse" "$(grep -c MISUSE "$tmp/kprof.err")" 0
    expect "planning beside the end: slow" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
    # The library takes long to open on a busy machine: the first launch waits for it.
    for ms in 500 2500; do
        KP_HOST_ANSWERS= FAKE_SLOW=cuptiProfilerHostInitialize:$ms:1 both "a library that opens in $ms ms" "$programs/p_direct"
        expect "a library that opens in $ms ms: profiled" "$(account profiled)" "$(launches)"
        grep -q 'CUPTI_ERROR' "$tmp/report" "$tmp/kprof.err" && fail "a library that opens in $ms ms: $(grep -h 'CUPTI_ERROR' "$tmp/report" "$tmp/kprof.err" | head -n 1)"
    done
    # The launch that has waited for a plan of the worker, which the end has stopped, makes one. The end waits for it.
    KP_HOST_ANSWERS= FAKE_SLOW=cuptiProfilerInitialize:300:1 profiled "$programs/p_exit" first
    expect "the first launch beside the end: exit code" "$kprof_code" 7
    expect "the first launch beside the end: misuse" "$(grep -c MISUSE "$tmp/kprof.err")" 0
fi

for end in return _exit abort sigterm sigint sigkill segv; do
    rm -f "$tmp/session"
    export KPROF_EXPORT="$tmp/session"
    killed $end
    both "$end, exported" "$programs/p_exit" $end
    unset KPROF_EXPORT
    "$build/kprof" report "$tmp/session" >"$tmp/stored" 2>&1 || fail "$end, exported: the stored session cannot be read"
    expect "$end, exported: launches" "$(reported "$tmp/stored")" 2
    [ $failures -eq 0 ] || sed 's/^/    stored: /' "$tmp/stored" | head -n 20
done

unset KPROF_WINDOW

# An exit from a handler that interrupts the results being put together hung two times out of five.
if ! sanitised; then # their allocators have locks of their own
    seed=${E2E_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
    echo "seed $seed: again with E2E_SEED=$seed"
    for round in $(rounds 12); do
        export ALARM_US=$((15000 + (seed + round) % 16 * 600))
        KPROF_SET=quick both "exit from a handler of an alarm, round $round" "$programs/p_exit" alarm
        expect "exit from a handler of an alarm, round $round: code" "$kprof_code" 7
        [ $failures -eq 0 ] || break
    done
fi

# Parent and child that runs a program anew: one report each.
KPROF_LOG_FILE="$tmp/report.%p" profiled "$programs/p_exit" fork_exec
count=0 total=0
for file in "$tmp"/report.*; do
    count=$((count + 1))
    total=$((total + $(reported "$file")))
done
expect "fork_exec: reports" $count 2
expect "fork_exec: launches reported" $total 5

finish
