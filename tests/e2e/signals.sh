#!/bin/sh
# A program's signal handler may exit, fork, leave by siglongjmp or pthread_exit, or call CUDA, whenever the signal
# comes. No signal with a handler is let in during a call of the allocator, the loader, stdio or threads that kprof
# makes on the main thread. A signal raised in such a call has its effect at kprof's next safe point. So the moment of a
# signal matters only by the next step at which kprof lets signals in, or checks for them: some hundred steps, for
# 50,000 calls. Steps are drawn with a seed that is printed: E2E_SEED=N draws the same again, E2E_RUNS=N draws N for
# each way to leave, 0 all of them (7,200 runs).
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser has an allocator and stacks of its own"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }
seed=${E2E_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
echo "seed $seed: again with E2E_SEED=$seed"

# Where the library calls what it passes on: doors and trampolines.
passed='^(kp_gate_common|cu[A-Z].*|cuda[A-Z].*|pointer_.*|kp_cu[A-Z].*|issue|issue_.*|kp_launch_issue.*|bare|exit|_exit|_Exit|quick_exit|go|end|call_main|dlclose|dlsym|dlvsym|kp_dlsym|kp_dlvsym)$'
SIGNAL_PASSES=$(nm -S --defined-only "$library" | python3 -c '
import re, sys
rows = [line.split() for line in sys.stdin]
print(*["%x %x" % (int(r[0], 16), int(r[0], 16) + int(r[1], 16)) for r in rows if len(r) == 4 and re.match(sys.argv[1], r[3])])
' "$passed")
export SIGNAL_PASSES E2E_PRELOAD_LAST="$build/e2e/signal.so"

leave() { # SET ACTION VARIABLE=POINT
    profiled env KPROF_SET="$1" SIGNAL_LIST="$tmp/list" "$3" "$programs/p_leave" "$2"
}

# Numbers below LIMIT, one a line.
draw() { # LIMIT SALT
    awk -v seed="$seed$2" -v limit="$1" -v runs="${E2E_RUNS:-3}" 'BEGIN {
        srand(seed)
        for (i = 1; i <= (runs ? runs : limit); i++)
            print runs ? int(rand() * limit) + 1 : i
    }'
}

# Without kprof a signal in the middle of the program gives these.
code_of() { # ACTION
    case $1 in
    exit | _exit | quick_exit) echo 7 ;;
    pthread_exit) echo 0 ;;
    *) echo 5 ;;
    esac
}

number() { # OF_WHAT
    sed -n "s/^\(calls .*\)*$1 \([0-9]*\).*/\2/p" "$tmp/list"
}

# The last points may come when the program has left main.
left() { # SET ACTION VARIABLE=POINT
    leave "$@"
    [ "$kprof_code" = "$(code_of "$2")" ] || [ "$kprof_code" = 5 ] || { fail "$*: exit code $kprof_code"; show; }
    grep -q WRONG "$tmp/kprof.out" && { fail "$*: a wrong result"; show; }
    grep -qE '^(misuse|forked)' "$tmp/kprof.log" 2>/dev/null && { fail "$*: $(grep -m 1 -E '^(misuse|forked)' "$tmp/kprof.log")"; show; }
    runs=$((runs + 1))
}

ways() { # SET
    set=$1 runs=0
    leave $set none SIGNAL_AT=0
    expect "$set: exit code" "$kprof_code" 5
    calls=$(number calls) steps=$(number steps)
    [ "${calls:-0}" -gt 10000 ] || fail "$set: only ${calls:-no} calls were seen"
    [ "${steps:-0}" -gt 100 ] || fail "$set: only ${steps:-no} steps were seen"
    expect "$set: calls in which a handler would run" "$(number open)" 0
    salt=0
    for action in exit _exit quick_exit longjmp pthread_exit fork fork_exit fork_exec launch; do
        salt=$((salt + 1))
        left $set $action SIGNAL_AT="$(E2E_RUNS=1 draw "$calls" $salt)"
        for point in $(draw "$steps" $salt); do
            left $set $action SIGNAL_STEP="$point"
        done
    done
    echo "$set: $steps steps, $runs runs"
}
of_quick() { ways quick; }
beside of_quick
ways basic

# In the middle of a replay: it ends soon where the program ends, and its memory is right; else it is finished.
leave basic exit SIGNAL_AT=$((calls / 2))
expect "exit in a replay: exit code" "$kprof_code" 7
grep -q 'the program ended in a signal handler while its launches were repeated' "$tmp/report" ||
    fail "exit in a replay: the report does not say why there are no counters"
leave basic longjmp SIGNAL_AT=$((calls / 2))
expect "siglongjmp in a replay: exit code" "$kprof_code" 5
expect "siglongjmp in a replay: output" "$(cat "$tmp/kprof.out")" "end: right"
expect "siglongjmp in a replay: launches" "$(account profiled)" 24
unset E2E_PRELOAD_LAST

# A signal that kills leaves a session, and a line says where.
"$build/kprof" -f -o "$tmp/killed.kprof" env LD_LIBRARY_PATH="$build/fake" "$programs/p_exit" sigint >"$tmp/out" 2>"$tmp/err"
expect "killed: exit code" $? 130
grep -q "was killed by signal 2 (.*); its measurements are in .*/killed.kprof: kprof report .*/killed.kprof" "$tmp/err" ||
    fail "killed: no line says where the session is"
finish
