#!/bin/sh
# Random programs (p_random) print, return and misuse the same as without the profiler, however they are measured. The
# seed is printed: E2E_SEED=N draws the same programs again, E2E_RUNS=N makes N of them; `p_random SEED LENGTH STEP...`
# makes some steps alone.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }
one_thread

seed=${E2E_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
runs=${E2E_RUNS:-$(sanitised && echo 4 || echo 12)}
echo "seed $seed: again with E2E_SEED=$seed"
LENGTH=$(sanitised && echo 30 || echo 45)
# A device whose memory is quickly saved; a second free is the driver's error and no end of the process.
export FAKE_MEMORY=268435456 FAKE_DEVICES=2 FAKE_FREES_TWICE=1

# What a run is told besides, one a line; they take turns.
settings='KPROF_SAVE=changes KPROF_WINDOW_READS=on
KPROF_SET=quick
KPROF_REPLAY_MODE=rotate
KPROF_GRAPH_PROFILING=graph KPROF_SAVE=changes
KPROF_KERNEL_NAME=increment KPROF_WINDOW=2
FAKE_HOST_THREADS=1 RANDOM_TRAITS=0x3f2
KPROF_WINDOW_READS=off KPROF_SAVE=all FAKE_SAVE_TAKES=4194304
FAKE_COPY_MS=0.3
FAKE_MEMORY=20971520 RANDOM_TRAITS=0x747
KPROF_WINDOW=1 KPROF_LAUNCH_SKIP=5
FAKE_MEMORY=33554432 RANDOM_TRAITS=0x766 KPROF_SAVE=changes
KPROF_SECTION=LaunchStats KPROF_TIMELINE=yes'
n_settings=$(echo "$settings" | wc -l)

# Launches of graphs without a kernel, which are launches of the report.
bare_graphs() {
    awk '/^graph / { n += open; open = 1 } /api=cuGraphLaunch/ && /^launch / { open = 0 } END { print n + open }' "$tmp/plain.log"
}

# Each launch of the driver's is one that was seen. A graph that is one row is one, however many kernels it has.
counted() { # NAME
    grep -qE 'CUDA graph of|whole graph|graph (with|that) ' "$tmp/report" && return
    [ "$(bare_graphs)" = 0 ] || return
    expect "$1: seen" "$(account seen)" "$(launches)"
}

programs_from() { # FIRST
    i=$1
    while [ "$i" -lt "$runs" ]; do
        told=$(echo "$settings" | sed -n "$(((seed + i) % n_settings + 1))p")
        # shellcheck disable=SC2086
        both "p_random $((seed + i)) $LENGTH, $told" env $told "$programs/p_random" $((seed + i)) $LENGTH
        counted "p_random $((seed + i)) $LENGTH, $told"
        i=$((i + 2))
    done
}
one_half() { programs_from 0; }
other_half() { programs_from 1; }

# Programs that once did not: textures of host memory, which no argument of the launch tells of.
while read -r program told; do
    set -f
    # shellcheck disable=SC2086
    both "p_random $(echo "$program" | tr , ' '), $told" env $told "$programs/p_random" $(echo "$program" | tr , ' ')
    set +f
done <<END
10451,45,9,12 KPROF_SECTION=LaunchStats KPROF_TIMELINE=yes
8544,45,40,42,44 KPROF_SAVE=changes KPROF_WINDOW_READS=on
END

beside one_half
beside other_half
finish
