#!/bin/sh
# Every program of tests/programs as a control: with the profiler, with the defaults and with a window per launch, its
# output and exit status are the same as without. New programs in the folder are included.
. "$(dirname "$0")/e2e.inc"

# Programs that need more than themselves, and where they are run.
elsewhere() { # NAME
    case $1 in
    p_mpi | p_ranks) echo mpi.sh ;;
    p_stack) echo stack.sh ;; # prints addresses
    p_deep) echo deep.sh ;;   # takes the library that it opens
    p_asan | p_tsan) # two sanitisers do not go into one process
        [ -z "${KP_TEST_PRELOAD_FIRST:-}" ] || echo sanitised.sh
        ;;
    esac
}

export FAKE_FREES_TWICE=1 # p_random does, on purpose

# A program built with AddressSanitizer does not start behind another library unless it is told to; see sanitised.sh.
export ASAN_OPTIONS="verify_asan_link_order=0:$ASAN_OPTIONS"

# Most of them are run by another script, too.
[ "${KP_TEST_VARIANT:-}" != tsan ] || { echo "skipped: too slow under TSan"; exit 77; }
[ "${KP_TEST_VARIANT:-}" = asan ] && windows=default || windows="default 1"

ran=0
for program in "$programs"/p_*; do
    name=$(basename "$program")
    [ -x "$program" ] && [ -z "$(elsewhere "$name")" ] || continue
    plain "$program"
    # 127: it cannot even start, and nothing would be compared.
    [ "$plain_code" -lt 126 ] || { fail "$name: exit code $plain_code without the profiler"; show; }
    for window in $windows; do
        KPROF_SET=quick KPROF_WINDOW=${window#default} profiled "$program"
        same "$name, window $window"
    done
    ran=$((ran + 1))
done
[ $ran -ge 20 ] || fail "only $ran programs"

finish
