#!/bin/sh
# Usage: run_tests.sh LIMIT LOGS TEST...
# Runs each test for at most LIMIT seconds: a cmocka program, whose own counts are added up, or an end-to-end script
# (*.sh), which is one test (exit code 77: skipped). Prints the log of what failed, and last the sums.
set -u
limit=$1
logs=$2
shift 2

# NAME=VALUE words for the cmocka programs alone.
TEST_ENV=${KP_TEST_ENV:-}

passed=0
failed=0
skipped=0
rm -rf "$logs"
mkdir -p "$logs"

# TSan's fixed memory layout does not fit every kernel's address randomisation; some containers forbid to turn it off.
run="timeout --kill-after=10 $limit"
setarch "$(uname -m)" -R true 2>/dev/null && run="$run setarch $(uname -m) -R"

sum() { # of the number in group 1 of a sed pattern, over the lines of the log
    sed -n "s/$1/\1/p" "$log" | awk '{n += $1} END {print n + 0}'
}

for test in "$@"; do
    name=$(basename "$test")
    log=$logs/$name.log
    start=$(date +%s)
    case $name in
    *.sh) $run "$test" >"$log" 2>&1 </dev/null ;;
    *) $run env ${KP_TEST_SHIM:+LD_PRELOAD="$KP_TEST_SHIM"} $TEST_ENV "$test" >"$log" 2>&1 </dev/null ;;
    esac
    code=$?
    took=$(($(date +%s) - start))
    case $name in
    *.sh)
        p=0 f=0 s=0
        case $code in
        0) p=1 ;;
        77) s=1 ;;
        *) f=1 ;;
        esac
        ;;
    *)
        p=$(sum '^\[  PASSED  \] \([0-9]*\) test(s).*')
        s=$(sum '^\[  SKIPPED \] .*\([0-9][0-9]*\) test(s).*')
        f=$(sum '^ *\([0-9]*\) FAILED TEST(S).*')
        f=$((f + $(grep -c '^\[  FAILED  \] GROUP' "$log")))
        # Nothing counted and yet a bad end: a crash, a sanitiser's report at exit, the time limit.
        [ $code -ne 0 ] && [ $f -eq 0 ] && f=1
        ;;
    esac
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + s))
    echo "$name: $p passed, $f failed, $s skipped (${took} s)"
    if [ $f -ne 0 ]; then
        [ $code -eq 124 ] && echo "  stopped after $limit s"
        sed 's/^/  /' "$log"
    fi
done

if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
