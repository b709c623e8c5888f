#!/bin/sh
# The checks of the source fail on the faults that they are for.
. "$(dirname "$0")/e2e.inc"
release_only "the source is the same in every build"

# --- check-functions ---
if command -v pmccabe >/dev/null; then
    printf 'int one(int x)\n{\n    return x;\n}\n' >"$tmp/good.c"
    { echo 'int long_one(int x)' && echo '{' && yes '    x++;' | head -60 && echo '    return x;' && echo '}'; } >"$tmp/long.c"
    # A file in which pmccabe misses the end: its functions would be counted as those of a class.
    { printf 'struct s {\n    _Atomic(const struct t *) field;\n};\n' && cat "$tmp/good.c"; } >"$tmp/unread.c"
    in_check() { "$source/tools/check_functions.sh" "$@" >"$tmp/said" 2>&1; }
    in_check "$tmp/good.c" || fail "check-functions fails on a short function: $(cat "$tmp/said")"
    expect "check-functions prints its sum alone" "$(cat "$tmp/said")" "check-functions: 1 functions, 0 too large"
    in_check "$tmp/long.c" && fail "check-functions lets a long function through"
    in_check "$tmp/good.c" "$tmp/unread.c" && fail "check-functions lets a file through that pmccabe cannot follow"
    grep -q 'unread.c.*expected closing' "$tmp/said" || fail "check-functions does not name the file: $(cat "$tmp/said")"
    echo '/* none */' >"$tmp/none.c"
    in_check "$tmp/none.c" && fail "check-functions is content with files without a function"
    (
        PATH=$tmp/empty
        in_check "$tmp/good.c"
    ) && fail "check-functions is content without pmccabe"
    grep -q 'pmccabe is missing' "$tmp/said" || fail "check-functions does not say what is missing: $(cat "$tmp/said")"
else
    echo "check-functions: skipped, pmccabe is missing"
fi

# --- the runner of tests, and the cases of its scripts ---
script() { # NAME <LINES
    { echo '#!/bin/sh' && echo ". $source/tests/e2e/e2e.inc" && cat; } >"$tmp/$1.sh"
    chmod +x "$tmp/$1.sh"
}
in_runner() { # CASES NAME...
    cases=$1
    shift
    KP_TEST_CASES=$cases "$source/tools/run_tests.sh" 60 "$tmp/logs" "$@" >"$tmp/said" 2>&1
}
script good <<'END'
expect "one: what" 1 1
expect "one: else" 1 1
part() {
    expect "one" 1 1
    expect "two" 1 1
}
beside part
finish
END
script bad <<'END'
expect "one: what" 1 1
expect "one: else" 1 2
expect "two" 1 1
finish
END
script early <<'END'
expect "one" 1 1
END
script dies <<'END'
part() {
    expect "one" 1 1
    exit 3
}
beside part
finish
END
in_runner "" "$tmp/good.sh" || fail "the runner: good cases: $(cat "$tmp/said")"
expect "the runner: cases are counted" "$(tail -n 1 "$tmp/said")" "3 passed, 0 failed"
in_runner "" "$tmp/bad.sh" && fail "the runner: is content with a case that fails"
expect "the runner: a case that fails" "$(tail -n 1 "$tmp/said")" "1 passed, 1 failed"
expect "the runner: the name of a case that fails" "$(grep -c '^  not ok 1 - one$' "$tmp/said")" 1
in_runner "" "$tmp/early.sh" && fail "the runner: is content with a script that does not come to its end"
in_runner "" "$tmp/dies.sh" && fail "the runner: is content with a part that ends the script"
expect "the runner: a part that ends" "$(tail -n 1 "$tmp/said")" "1 passed, 1 failed"
for cases in two 't*|none'; do
    in_runner "$cases" "$tmp/bad.sh" || fail "the runner: the cases $cases of bad ones: $(cat "$tmp/said")"
done
in_runner one "$tmp/bad.sh" && fail "the runner: is content with a chosen case that fails"
in_runner none "$tmp/good.sh" && fail "the runner: is content with no case"
for cases in part 'part/*' 'o*|part/two'; do
    in_runner "$cases" "$tmp/good.sh" || fail "the runner: the cases $cases: $(cat "$tmp/said")"
    grep '^ok' "$tmp/logs/good.sh.log" | sed 's/.* - //' >"$tmp/ran"
    case $cases in o*) wanted='one part/one part/two' ;; *) wanted='part/one part/two' ;; esac
    expect "the runner: the cases $cases" "$(xargs <"$tmp/ran")" "$wanted"
done

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

# --- check-layers: names that say two things ---
rm -r cmd objects
mkdir -p cmd base report/model
in_names() { "$source/tools/check_names.py" "$@" >"$tmp/said" 2>&1; }
echo 'static int one(int x)
{
    return x;
}

int kp_a_one(void)
{
    return one(1);
}' >cmd/a.c
: >allow
in_names allow || fail "check-names: $(cat "$tmp/said")"
sed 's/kp_a_one/kp_a_two/' cmd/a.c >cmd/b.c
in_names allow && fail "check-names lets a static name through that a room has twice"
grep -qx 'static cmd one 2: new' "$tmp/said" || fail "check-names does not name it: $(cat "$tmp/said")"
in_names --write allow
in_names allow || fail "check-names does not allow what it has written: $(cat "$tmp/said")"
sed 's/kp_a_one/kp_a_three/' cmd/a.c >cmd/c.c
in_names allow && fail "check-names lets a third static function through"
rm cmd/b.c cmd/c.c
in_names allow && fail "check-names lets a line stay that is not needed"
grep -qx 'static cmd one 2: not needed any more; take it out' "$tmp/said" || fail "check-names does not name the line: $(cat "$tmp/said")"
: >allow
sed 's/kp_a_one/kp_a_two/' cmd/a.c >report/model/b.c
in_names allow && fail "check-names lets a prefix of two rooms through"
grep -qx 'prefix a cmd report/model: new' "$tmp/said" || fail "check-names does not name the prefix: $(cat "$tmp/said")"
sed 's/kp_a_one/kp_b_one/' cmd/a.c >report/model/b.c
in_names allow || fail "check-names, two rooms: $(cat "$tmp/said")"
sed 's/kp_a_one/kp_c_one/' cmd/a.c >base/b.c
in_names allow && fail "check-names lets two units of one name through"
grep -qx 'unit b base report/model: new' "$tmp/said" || fail "check-names does not name the unit: $(cat "$tmp/said")"
echo 'plain b base report/model' >allow
in_names allow || fail "check-names does not allow what the folder tells: $(cat "$tmp/said")"
in_names --write allow
expect "check-names keeps what the folder tells" "$(cat allow)" "plain b base report/model"

finish
