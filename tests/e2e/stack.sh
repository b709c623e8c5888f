#!/bin/sh
# Call stacks of launches: the functions, files and lines of a program that launches in known ways (p_stack; a launch
# with a grid of N + 1 blocks is its way N). Lines are found by the comments at the end of source lines.
. "$(dirname "$0")/e2e.inc"
sources=$source/tests/programs

# The frames of the launch with that grid, without the places of files and without what is around main.
frames() { # GRID [REPORT]
    awk -v head="  increment ($1, 1, 1)x" '
        index($0, head) == 1 { mine = 1; next }
        /^  [^ ]/ { mine = 0 }
        mine && /^    Call Stack$/ { in_stack = 1; next }
        !/^        / { in_stack = 0 }
        mine && in_stack { sub(/^ */, ""); print }' "${2:-$tmp/report}" |
        sed 's@ at [^ ]*/\([^/ ]*\) (@ at \1 (@' | sed '/^main /q'
}
line_of() { grep -n "/\* $1 \*/" "$sources/${2:-p_stack.c}" | cut -d: -f1; }
at() { echo "$1 at p_stack.c:$(line_of "$2") (p_stack)"; }
inner="$(at launch LAUNCH)
$(at helper HELPER)"

both "native stacks" env KPROF_CALL_STACK=native KPROF_EXPORT="$tmp/stacks.kprof" "$programs/p_stack"
expect "a helper" "$(frames 1 | head -n 3)" "$inner
$(at main ROUND)"
[ "$(grep -c '(libkprof)' "$tmp/report")" = 0 ] || fail "a function of the profiler's in a call stack"
expect "inlined" "$(frames 2)" "$inner
$(at inlined INLINED)
$(at main MAIN)"
expect "recursion" "$(frames 3 | grep -c "^$(at recurse RECURSION)$")" 3
expect "a deep one is cut" "$(frames 4 | wc -l) $(frames 4 | tail -n 1 | grep -c '^and [0-9]* outer frames$')" "21 1"
expect "a thread" "$(frames 5 | head -n 3)" "$inner
$(at thread THREAD)"
# Without optimisation assembly has the line of what is compiled before it.
names_of() { frames "$1" | sed 's/ at .*//; s/ (p_stack)$//'; }
expect "no tables, a frame pointer" "$(names_of 6)" "launch
bare
main"
expect "no tables, no frame pointer" "$(names_of 7)" "launch
blind"
expect "a coroutine" "$(frames 8 | head -n 3)" "$inner
$(at coroutine COROUTINE)"
for grid in 9 10; do # opened, closed, and opened again
    expect "a library that was closed" "$(frames $grid | sed -n '2,3p' | sed 's/:[0-9]* / /')" "plugin_launch at stack_plugin.c (stack_plugin)
from_plugin at p_stack.c (p_stack)"
done

# The table at the end: the first way is gone three times.
sed -n '/^  Launches by Call Stack$/,/^$/p' "$tmp/report" >"$tmp/table"
[ -s "$tmp/table" ] || { fail "no table of call stacks"; show; }
expect "stacks in the table" "$(grep -c '^    [0-9]* launch' "$tmp/table")" 10
expect "the one of the loop" "$(grep -A 3 '^    3 launches' "$tmp/table" | tail -n 3 | sed 's@ at [^ ]*/@ at @; s/^ *//')" "$inner
$(at main ROUND)"

# What is stored reads the same.
"$build/kprof" report "$tmp/stacks.kprof" >"$tmp/later" 2>&1
for grid in 1 2 3 4 5 6 7 8 9 10; do
    expect "stored, grid $grid" "$(frames $grid "$tmp/later")" "$(frames $grid)"
done

# Launches that are not profiled have none, and without the option nothing has.
both "chosen ones" env KPROF_CALL_STACK=native KPROF_LAUNCH_SKIP=3 KPROF_LAUNCH_COUNT=1 "$programs/p_stack"
expect "stacks of chosen launches" "$(grep -c '^    Call Stack$' "$tmp/report")" 1
expect "the chosen launch" "$(frames 2 | sed -n '3p')" "$(at inlined INLINED)"
both "without the option" "$programs/p_stack"
grep -q 'Call Stack' "$tmp/report" && fail "stacks that nobody asked for"

# Python's functions, alone and among native ones. A sanitiser in the interpreter would find its own.
python_frames() { frames "$1" | sed -n "/$2/,/<module>/p"; }
py() { echo "$1 at stack_launch.py:$(grep -n "# $2$" "$script" | cut -d: -f1) (Python)"; }
script=$(realpath "$(dirname "$0")/stack_launch.py")
if command -v python3 >/dev/null && [ -z "${KP_TEST_PRELOAD_FIRST:-}${KP_TEST_PRELOAD_PLAIN:-}" ]; then
    for kinds in python native,python; do
        both "$kinds" env KPROF_CALL_STACK=$kinds python3 "$script"
        # before 3.11 a method's name comes without its class
        expect "$kinds: a method" "$(python_frames 1 '^launch at' | sed 's/^forward/Net.forward/')" "$(py launch LAUNCH)
$(py Net.forward FORWARD)
$(py '<module>' NET)"
        expect "$kinds: a callback of C code" "$(python_frames 2 '^launch at')" "$(py launch LAUNCH)
$(py key KEY)
$(py '<module>' SORT)"
        grep -q '_PyEval_EvalFrameDefault' "$tmp/report" && fail "$kinds: frames of the interpreter"
    done
    grep -q '^        [^ ].*libffi' "$tmp/report" || fail "native frames inside of Python's"
else
    echo "without python3, or with a sanitiser: Python's frames are not looked at"
fi

# Without the library of symbols: names of exported functions, and one line that says what to install.
mkdir "$tmp/alone"
cp "$library" "$tmp/alone/"
library=$tmp/alone/libkprof.so
both "without symbols" env KPROF_CALL_STACK=native "$programs/p_stack"
expect "the warning" "$(grep -c '^==WARNING== Call stacks have no files and lines: .*libdw1' "$tmp/report")" 1
expect "exported names" "$(grep -c '__libc_start_main (libc.so.6)' "$tmp/report" | sed 's/^[1-9][0-9]*$/some/')" some
grep -q 'p_stack.c' "$tmp/report" && fail "lines from nowhere"

finish
