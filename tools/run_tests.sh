#!/bin/bash
# Usage: run_tests.sh LIMIT LOGS TEST...
# Runs each test for at most LIMIT seconds, five at a time on two processors, because many of them wait for something; those
# of tests/longest first. A test is a cmocka program, whose own counts are added up, or an end-to-end script (*.sh),
# which reports by TAP which of its cases have passed (exit code 77: skipped). Prints a line when a test has ended, with
# its elapsed and processor seconds, then the logs of failed tests, and last the totals.
set -u

# Expected texts are those of a file.
unset COLUMNS NO_COLOR

# Found once for all scripts; see e2e.inc.
KP_TEST_PYTHON=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)
export KP_TEST_PYTHON

# NAME=VALUE words for the cmocka programs only.
TEST_ENV=${KP_TEST_ENV:-}

sum() { # of the number in group 1 of a sed pattern, over the lines of a log
    sed -n "s/$1/\1/p" "$2" | awk '{n += $1} END {print n + 0}'
}

# Leaves NAME.log and NAME.sum (passed, failed, skipped, exit code) in the folder of the logs.
one() { # LIMIT LOGS TEST [again]
    local name log spent code p=0 f=0 s=0 run
    name=$(basename "$3")
    log=$2/$name.log
    # TSan's fixed memory layout does not fit every kernel's address randomisation; some containers forbid to turn it off.
    run="timeout --kill-after=10 $1"
    setarch "$(uname -m)" -R true 2>/dev/null && run="$run setarch $(uname -m) -R"
    case $name in
    *.sh) ;;
    *) run="$run env ${KP_TEST_SHIM:+LD_PRELOAD=$KP_TEST_SHIM} $TEST_ENV" ;;
    esac
    TIMEFORMAT='%0R s, %1U + %1S'
    spent=$({ time $run "$3" >"$log" 2>&1 </dev/null; } 2>&1; echo "code $?")
    code=${spent##*code }
    spent=$(echo "$spent" | grep -m 1 ' s, ')
    # The leak checker stops the process with ptrace to inspect it, and gives up if that fails: then nothing was
    # checked.
    if [ -z "${4:-}" ] && grep -q 'LeakSanitizer has encountered a fatal error' "$log"; then
        one "$1" "$2" "$3" again
        return
    fi
    case $name in
    *.sh)
        p=$(grep -c '^ok [0-9]* - ' "$log")
        f=$(grep -c '^not ok [0-9]* - ' "$log")
        [ $code -eq 77 ] && s=1
        # Without its TAP it ended too early.
        [ $code -ne 77 ] && [ $f -eq 0 ] && { [ $code -ne 0 ] || ! grep -q '^1\.\.[0-9]' "$log"; } && f=1
        ;;
    *)
        p=$(sum '^\[  PASSED  \] \([0-9]*\) test(s).*' "$log")
        s=$(sum '^\[  SKIPPED \] .*\([0-9][0-9]*\) test(s).*' "$log")
        f=$(sum '^ *\([0-9]*\) FAILED TEST(S).*' "$log")
        f=$((f + $(grep -c '^\[  FAILED  \] GROUP' "$log")))
        # Nothing counted, but a bad exit status: a crash, a sanitiser's report at exit, the time limit.
        [ $code -ne 0 ] && [ $f -eq 0 ] && f=1
        ;;
    esac
    echo "$p $f $s $code" >"$2/$name.sum"
    echo "$name: $p passed, $f failed, $s skipped ($spent)"
}

# Long tests, which would end last, start first; each with a NUL after it.
longest_first() {
    printf '%s\n' "$@" | awk 'NR == FNR { place[$1] = NR; next } { name = $0; sub(/.*\//, "", name)
        print (name in place ? place[name] : 9999) "\t" $0 }' "$(dirname "$0")/../tests/longest" - | sort -sn | cut -f 2 | tr '\n' '\0'
}

if [ "$1" = --one ]; then
    shift
    one "$@"
    exit 0
fi

limit=$1
logs=$2
shift 2
passed=0
failed=0
skipped=0
rm -rf "$logs"
mkdir -p "$logs"
longest_first "$@" | xargs -0 -n 1 -P "${KP_TEST_JOBS:-$((($(nproc) * 5 + 1) / 2))}" "$0" --one "$limit" "$logs"

for test in "$@"; do
    name=$(basename "$test")
    # Without its totals, whatever ran the test was killed.
    p=0 f=1 s=0 code=1
    [ -e "$logs/$name.sum" ] && read -r p f s code <"$logs/$name.sum"
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + s))
    if [ "$f" -ne 0 ]; then
        echo "$name failed:"
        [ "$code" -eq 124 ] && echo "  stopped after $limit s"
        sed 's/^/  /' "$logs/$name.log"
    fi
done

if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
