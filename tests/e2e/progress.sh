#!/bin/sh
# Progress messages of a long run, and those about windows that hold few launches: on stderr, never on stdout, none with
# --quiet, and none if everything is fast.
. "$(dirname "$0")/e2e.inc"

limit=120

still() {
    grep -c '==KPROF== Still working' "$1"
}

# Whether there are as many lines as the call alone makes. A busy machine has more: one for each 9 s since `began`.
told() { # WHAT LINES LEAST
    most=$((($(date +%s) - began) / 9))
    [ "$2" -ge "$3" ] && { [ "$2" -le "$3" ] || [ "$2" -le "$most" ]; } || { fail "$1: $2 instead of $3 to $most"; show; }
}

# One long call of the driver.
long_save() {
    began=$(date +%s)
    export FAKE_SLOW=cuptiCheckpointSave:19000:1
    both "a long save" "$programs/p_window" many 20
    told "a long save: lines" "$(still "$tmp/report")" 2
    told "a long save: what" "$(grep -c 'Still working after [0-9]* s: saving [0-9.]* GB of device memory' "$tmp/report")" 2
}

quiet() {
    export FAKE_SLOW=cuptiCheckpointSave:10000:1
    KPROF_QUIET=yes both "a long save, quiet" "$programs/p_window" many 20
    expect "a long save, quiet: lines" "$(still "$tmp/report")" 0
}

# Where the report goes to stdout, these lines do not.
to_stdout() {
    began=$(date +%s)
    export FAKE_SLOW=cuptiCheckpointRestore:10000:3
    KPROF_LOG_FILE=stdout profiled "$programs/p_window" many 20
    expect "a long pass: on stdout" "$(still "$tmp/kprof.out")" 0
    told "a long pass: on stderr" "$(still "$tmp/kprof.err")" 1
    grep -q 'pass 2 of 9 of a window of 20 launches' "$tmp/kprof.err" || { fail "a long pass: which"; show; }
}

# Windows of one launch each, one of which took long. Where all take a second and more, a line for that comes first, by
# another rule.
slow_windows() {
    each='[0-9.]* launches/s: windows hold 1.[0-9] launches and take'
    line="==KPROF== \(Slow, $each [0-9.]*\|$each [1-9][0-9.]*\) s each, closed by"
    export FAKE_SLOW=cuptiCheckpointSave:2500:2
    both "slow windows" "$programs/p_window" copies-out
    expect "slow windows: lines" "$(grep -c "$line" "$tmp/report")" 1
    grep -q "$line cuMem.*--set quick .*--filter-mode per-launch-config --launch-count 1" "$tmp/report" ||
        { fail "slow windows: what costs less"; show; }
}

# Windows of many launches: what the run costs, without a warning.
cost() {
    export FAKE_SLOW=cuptiCheckpointSave:5200:1
    KPROF_WINDOW=10 both "cost" "$programs/p_window" many 40
    expect "cost: lines" "$(grep -c '==KPROF== [0-9.]* launches/s: windows hold 10.0 launches and take [0-9.]* s each, closed by the maximum number of launches (3)\. Faster: --set quick' "$tmp/report")" 1
    expect "cost: lines in all" "$(grep -c 'launches/s' "$tmp/report")" 1
}

# Windows of a rotation are short, and have no line of their own: they add up.
rotation() {
    began=$(date +%s)
    [ -n "$KP_REAL_CUPTI" ] || return
    export FAKE_SLOW=cuptiProfilerBeginPass:9300:1 KPROF_REPLAY_MODE=rotate
    KPROF_METRICS=lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum,lts__t_sectors_op_read_lookup_hit.sum \
        both "a rotation" "$programs/p_many" 40
    told "a rotation: lines" "$(still "$tmp/report")" 1
    grep -q 'Still working after [0-9]* s: counting group [12] of 2; [0-2] of [12] kernels and shapes are complete' "$tmp/report" ||
        { fail "a rotation: what"; show; }
}

# Where a line for each launch tells of progress, none is added.
told_by_launches() {
    export FAKE_SLOW=cuptiCheckpointSave:2500:0
    KPROF_WINDOW=4 both "lines of launches" "$programs/p_window" many 20
    expect "lines of launches: lines" "$(still "$tmp/report")" 0
}

nothing_to_say() {
    both "fast" "$programs/p_window" many 20
    expect "fast: lines" "$(still "$tmp/report")" 0
    expect "fast: slow" "$(grep -c "launches/s" "$tmp/report")" 0
    sanitised && return # these windows are slow
    both "few windows, fast" "$programs/p_window" copies-out
    expect "few windows, fast: slow" "$(grep -c "launches/s" "$tmp/report")" 0
}

beside long_save
beside quiet
beside to_stdout
beside slow_windows
beside cost
beside nothing_to_say
beside rotation
beside told_by_launches
finish
