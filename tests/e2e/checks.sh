#!/bin/sh
# The checks of the source fail on what they are for.
. "$(dirname "$0")/e2e.inc"
release_only "the source is the same in every build"

# --- check-functions ---
if command -v pmccabe >/dev/null; then
    printf 'int one(int x)\n{\n    return x;\n}\n' >"$tmp/good.c"
    { echo 'int long_one(int x)' && echo '{' && yes '    x++;' | head -60 && echo '    return x;' && echo '}'; } >"$tmp/long.c"
    # A file whose end pmccabe does not find: its functions would be counted as those of a class.
    { printf 'struct s {\n    _Atomic(const struct t *) field;\n};\n' && cat "$tmp/good.c"; } >"$tmp/unread.c"
    in_check() { "$source/tools/check_functions.sh" "$@" >"$tmp/said" 2>&1; }
    in_check "$tmp/good.c" || fail "check-functions fails on a short function: $(cat "$tmp/said")"
    expect "check-functions prints its sum alone" "$(cat "$tmp/said")" "check-functions: 1 functions, 0 too large"
    in_check "$tmp/long.c" && fail "check-functions lets a long function through"
    in_check "$tmp/good.c" "$tmp/unread.c" && fail "check-functions lets a file through that pmccabe cannot follow"
    grep -q 'unread.c.*expected closing' "$tmp/said" || fail "check-functions does not name the file: $(cat "$tmp/said")"
else
    echo "check-functions: skipped, pmccabe is missing"
fi

# --- check-layers: includes that go in a circle ---
mkdir -p "$tmp/tree/cmd"
cd "$tmp/tree" || exit 1
printf 'cmd\nstraight cmd\n' >rooms.txt
touch cmd/a.h cmd/b.h
echo '#include "cmd/b.h"' >cmd/a.c
"$source/tools/check_layers.py" >"$tmp/said" || fail "check-layers: $(cat "$tmp/said")"
echo '#include "cmd/a.h"' >cmd/b.c
"$source/tools/check_layers.py" >"$tmp/said" && fail "check-layers lets a circle of includes through"
grep -qx 'a circle of includes: cmd/a cmd/b' "$tmp/said" || fail "check-layers does not name the circle: $(cat "$tmp/said")"

# --- check-layers: calls that go in a circle ---
rm cmd/*
echo 'void kp_b(void); void kp_a(void) { kp_b(); }' >cmd/a.c
echo 'void kp_b(void) {}' >cmd/b.c
made() { # compiles both
    mkdir -p objects/cmd
    for file in a b; do ${CC:-gcc} -c -o objects/cmd/$file.c.o cmd/$file.c || fail "no compiler"; done
}
made
"$source/tools/check_layers.py" objects >"$tmp/said" || fail "check-layers, calls: $(cat "$tmp/said")"
echo 'void kp_a(void); void kp_b(void) { kp_a(); }' >cmd/b.c
made
"$source/tools/check_layers.py" objects >"$tmp/said" && fail "check-layers lets a circle of calls through"
grep -qx 'a circle of files: cmd/a.c cmd/b.c' "$tmp/said" || fail "check-layers does not name the files: $(cat "$tmp/said")"

finish
