#!/bin/bash
# The fifteen tests of windows that survive reads, E2E_ROUNDS times each, to find a race that is lost once in a hundred
# runs. Output and end are the program's own in each round, and the counts of the report are those of the first round.
# E2E_TESTS="3 11" runs some of them. tests/RESULTS.md has the table of the tests, and the results of 50 rounds.
. "$(dirname "$0")/e2e.inc"

[ -n "${E2E_ROUNDS:-}" ] || { echo "skipped: E2E_ROUNDS=N says how often"; exit 77; }
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }
export KPROF_WINDOW_READS=on FAKE_FREES_TWICE=1
limit=${E2E_LIMIT:-60}

# Launches that the driver was given, and what the report counts but for times; for threads without the number of passes, which
# is that of windows, and so of their turns.
counts() { # HOW
    sed -n 's/^==KPROF== \([0-9,]* launch[es]* seen.*\); [0-9.]* m*s spent.*/\1/p' "$tmp/report" |
        if [ "$1" = threads ]; then sed 's/; [0-9,]* pass[es]*//'; else cat; fi
    [ "$1" = threads ] || grep -c '^launch ' "$tmp/kprof.log"
}

# A row of the table: HOW is `same`, `threads`, or `some` where the clock decides which launches have counters.
row() { # NUMBER HOW PROGRAM [CASE]...
    number=$1
    how=$2
    shift 2
    case " ${E2E_TESTS:-$number} " in *" $number "*) ;; *) return ;; esac
    began=$(date +%s)
    before_row=$failures
    program=$1
    shift
    for round in $(seq "$E2E_ROUNDS"); do
        what="$number, $program $*, round $round"
        both "$what" "$programs/$program" "$@"
        expect "$what: seen" "$(account seen)" "$(launches)"
        expect "$what: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
        { cat "$tmp/plain.out"; echo "exit $plain_code"; [ "$how" = some ] || counts "$how"; } >"$tmp/this"
        [ "$round" = 1 ] && cp "$tmp/this" "$tmp/first"
        cmp -s "$tmp/first" "$tmp/this" || { fail "$what: not as the first"; diff "$tmp/first" "$tmp/this"; }
    done
    echo "$number: $program $*${KPROF_SAVE:+, save $KPROF_SAVE}: $E2E_ROUNDS rounds in $(($(date +%s) - began)) s, $((failures - before_row)) differences"
}

# Scans of the device run on the processor here: a small one, where the test does not need more.
small() { # COMMAND...
    FAKE_MEMORY=268435456 "$@"
}

row 1 same p_window reads-bound 10
row 2 same p_window reads-differ-once 10
row 3 same p_states queue
FAKE_COPY_MS=5 row 4 same p_repeat order
row 5 same p_window reads-back 10
row 6 same p_states host-rewrites
for KPROF_SAVE in all changes; do
    export KPROF_SAVE
    small row 7 same p_states full-pools
    small row 8 same p_states freed-twice
done
unset KPROF_SAVE
row 9 some p_window reads-progress
row 10 same p_states ring
row 11 threads p_states spins
row 12 same p_states remaps
for KPROF_SAVE in all changes; do
    export KPROF_SAVE
    row 13 same p_states constants
    row 13 same p_states surface
    row 13 same p_states mipmap
done
unset KPROF_SAVE
row 14 same p_states prints-and-reads
row 14 same p_repeat launches
row 14 same p_repeat heap
FAKE_MEMORY=1073741824 row 15 same p_save whole-device
finish
