#!/bin/sh
# The budget: each kernel and shape is measured, further launches of it as far as the time goes, and the program is what
# it is without a profiler. The prices are those of a slow save, so that no machine is too slow for a case.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

export KPROF_SET=basic
# What is written beside the report, too.
says() { # NAME TEXT
    in_case "$1" || return 0
    cat "$tmp/report" "$tmp/kprof.err" | tr -s ' \n' ' ' | grep -qF -- "$2" || { fail "$1: not said: $2"; show; }
}
silent() { # NAME TEXT
    in_case "$1" || return 0
    ! cat "$tmp/report" "$tmp/kprof.err" | tr -s ' \n' ' ' | grep -qF -- "$2" || { fail "$1: said: $2"; show; }
}

# 12 launches of one shape and one of a new one in each of 5 steps. A window costs 0.8 s and holds one launch: that is worth
# three of the first shape, and one of each other.
dear() {
    export KPROF_BUDGET=60s KPROF_WINDOW=1 FAKE_SAVE_MS=800
    KPROF_EXPORT=$tmp/dear.kprof both "dear windows" "$programs/p_shapes" 5
    expect "dear windows, seen" "$(account seen)" 65
    expect "dear windows, profiled" "$(account profiled)" 8
    says "dear windows, why" "of a kernel and shape already counted: 57"
    says "dear windows, from when on" "launches of kernels and shapes that have results pass from here on"
    says "dear windows, the end" "all 6 kernels and shapes have results"
    expect "dear windows, what the first stands for" \
        "$(grep -c 'Launches: this one and 57 of this kernel and shape that passed' "$tmp/report")" 1
    expect "dear windows, the same in JSON" "$(stored --json "$tmp/dear.kprof" | grep -cE '"stands_for": ?58\b')" 1
}

query() { # FILE SQL
    python3 -c 'import sqlite3, sys
print(*("|".join("%.12g" % (v or 0) for v in row) for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])))' "$@"
}

# What passes is timed by records: 100 ns and 1 ns a block, as tests/fake/cupti/activity.c has it. Of the shapes that are
# measured while records are on, the program's own launch is recorded, and no repetition. A program that fits has none.
recorded() {
    export KPROF_BUDGET=60s KPROF_WINDOW=1 FAKE_SAVE_MS=800
    KPROF_EXPORT=$tmp/recorded.kprof both "records" "$programs/p_shapes" 4 3
    expect "records: launches and times" "$(query "$tmp/recorded.kprof" "SELECT grid_x, alike, recorded, recorded_ns FROM launch
        WHERE alike > 1 AND grid_x > 4 ORDER BY grid_x")" "5|4|4|420 6|4|4|424 7|4|4|428 8|4|4|432"
    # Of the first shape, how many pass depends on the machine: those that do while a window is open are not recorded.
    expect "records: of many" "$(query "$tmp/recorded.kprof" "SELECT alike > 44 AND recorded BETWEEN alike - 3 AND alike
        AND recorded_ns = 104 * recorded FROM launch WHERE alike > 4")" 1
    many=$(query "$tmp/recorded.kprof" "SELECT recorded FROM launch WHERE alike > 4")
    says "records: in the report" "records have the times of $many, "
    expect "records: in JSON" "$(stored --json "$tmp/recorded.kprof" | tr -d ' \n' | grep -c "\"recorded\":{\"launches\":$many,")" 1
    # Launches as they were measured, and the others by records.
    all=$(query "$tmp/recorded.kprof" "SELECT round(sum(m.value + (max(alike, 1) - 1) * ifnull(recorded_ns / recorded, 0)))
        FROM launch l JOIN metric m ON m.launch = l.id JOIN name n ON n.id = m.name WHERE n.name = 'gpu__time_duration.sum'")
    expect "records: in the summary" \
        "$(stored --page summary --csv --print-units base "$tmp/recorded.kprof" | tail -n 1 | cut -d, -f 2)" "\"$all\""
    FAKE_FAIL=cuptiActivityEnable:1 both "without records" "$programs/p_shapes" 4 3
    says "without records, which says so" "their times were not recorded, and sums take this one's"
    export KPROF_DEBUG=plan
    both "records, which begin" "$programs/p_shapes" 1 1
    says "records, which begin" "kernels that pass are timed by records: 0"
    KPROF_BUDGET=none both "no need of records" "$programs/p_shapes" 1 1
    silent "no need of records" "timed by records"
}

# A window costs more than a 60th of the budget: nothing is replayed after the first one, and the rest of the kinds recur.
recurs() {
    export KPROF_BUDGET=3s KPROF_WINDOW=1 FAKE_SAVE_MS=100
    for of in "p_many 60" "p_shapes 30" p_contexts p_graph p_nodes p_threads "p_states queue" p_rest "p_repeat order" p_shared \
        "p_chosen few 40" "p_random 7" "p_random 8" "p_random 9"; do
        both "recurs: $of" "$programs/${of%% *}" $(expr "$of" : '[^ ]* \(.*\)')
        expect "recurs, accounted: $of" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
    done
    both "recurs: the kinds" "$programs/p_many" 60
    says "recurs, from when on" "nothing is replayed any more"
    says "recurs, the end" "all 2 kernels and shapes have results"
    expect "recurs, entries" "$(reported)" 2
    KPROF_REPLAY_MODE=kernel both "without a bound" "$programs/p_shapes" 1
    expect "without a bound, profiled" "$(account profiled)" 13
}

# So little that the first launch takes all of it.
spent() {
    export KPROF_BUDGET=0.00001
    for of in "p_shapes 30" p_contexts p_graph p_nodes p_threads "p_many 30" "p_states queue" p_pinned "p_repeat order"; do
        both "spent: $of" "$programs/${of%% *}" $(expr "$of" : '[^ ]* \(.*\)')
        says "spent, which says so: $of" "is spent: all further launches pass unmeasured"
        expect "spent, accounted: $of" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
    done
    # The first kernel has a result and stands for all of its launches, also those after the end; the other one came too
    # late, and is what a further run should add.
    KPROF_EXPORT=$tmp/spent.kprof both "spent: two kernels" "$programs/p_many" 30
    says "spent: what to add" "of 1 kernel. What a further run should add: ==KPROF== -k 'regex:^(append)\$' ==KPROF== lacks shapes: append"
    expect "spent: what to add, in JSON" "$(stored --json "$tmp/spent.kprof" | tr -d '\n ' |
        grep -c '"kernels_lacking":\[{"name":"append","count":0}\],"further_run":"-k.regex:^(append)\$')" 1
    expect "spent: what the first stands for" "$(query "$tmp/spent.kprof" "SELECT alike FROM launch")" 60
    KPROF_KERNEL_NAME="regex:^(append)\$" KPROF_BUDGET=60s both "spent: added" "$programs/p_many" 30
    expect "spent: added" "$(account profiled)" 30
    silent "spent: nothing to add" "What a further run should add"
    KPROF_SET=quick both "spent, quick" "$programs/p_shapes" 30
    says "spent, quick: why" "after the budget was spent"
    export KPROF_BUDGET=0.05
    for of in "p_shapes 30" p_contexts p_graph p_nodes p_threads "p_many 60" p_shared "p_random 7" "p_random 8" "p_random 9"; do
        both "a little: $of" "$programs/${of%% *}" $(expr "$of" : '[^ ]* \(.*\)')
        expect "a little, accounted: $of" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
    done
}

# The counters of the first window are refused. Its context plans again, also where a launch has closed the window that was
# judged before.
refused() {
    export KPROF_BUDGET=100m
    for of in p_contexts p_threads p_attributes "p_random 8"; do
        FAKE_FAIL=cuptiProfilerBeginPass:1:1 both "refused: $of" "$programs/${of%% *}" $(expr "$of" : '[^ ]* \(.*\)')
        expect "refused, accounted: $of" "$(($(account profiled) + $(account skipped)))" "$(account seen)"
        expect "refused, planned again: $of" "$(grep -c 'calls .* cuptiProfilerGetCounterAvailability ' "$tmp/kprof.log")" 1
    done
}

# A program that fits into it, and the option's values.
fits() {
    for value in 100m none 0; do
        KPROF_BUDGET=$value both "fits: $value" "$programs/p_shapes" 5
        expect "fits: $value, profiled" "$(account profiled)" 65
        silent "fits: $value, says nothing" "pass from here on"
    done
    expect "a wrong value" "$("$build/kprof" --budget soon "$programs/p_shapes" 2>&1 | grep -c "'soon' is not a time")" 1
}

beside dear
beside recorded
beside recurs
beside spent
beside refused
beside fits
finish
