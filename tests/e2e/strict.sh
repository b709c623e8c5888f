#!/bin/sh
# A run that is not what was asked for does not look like it: everything that can be checked is checked before the
# program starts, and no export of an earlier run remains. With --strict each kind of failure has an exit status of its
# own.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }
cd "$tmp" || exit 1
case $build in /*) ;; *) build=$OLDPWD/$build ;; esac
programs=$build/programs
p=$programs/p_direct

run() { # ARGUMENTS of kprof
    rm -f report ran
    LD_LIBRARY_PATH="${E2E_PATH:-$build/fake}" LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:-}" timeout "$limit" "${command-$build/kprof}" \
        --log-file "${log-report}" "$@" >kprof.out 2>kprof.err
    code=$?
}
said() { cat kprof.err report 2>/dev/null; }
show() { said | grep '^==' | sed 's/^/    /'; }
says() { # WHAT PATTERN COUNT
    [ "$(said | grep -c -e "$2")" = "$3" ] || { fail "$1: not $3 times '$2'"; said | sed 's/^/    /'; }
}
# The status of a kind, as the command tells it.
status_of() { "$build/kprof" --list-words | sed -n "s/^status\t\([0-9]*\)\t$1\t.*/\1/p"; }

# A kind of failure: without --strict the program's status stays, with it there is another and a line. Of a program that
# fails itself the status stays, too.
covered=
kind() { # NAME [OPTION...] -- COMMAND of sh
    name=$1 options=
    shift
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    covered="$covered $name"
    wanted=$(status_of "$name")
    [ -n "$wanted" ] || fail "there is no failure $name"
    if ! sanitised; then
        # shellcheck disable=SC2086
        run $options sh -c "$2"
        expect "$name, not strict: status" "$code" 0
        says "$name, not strict" '^==ERROR== strict' 0
    fi
    # shellcheck disable=SC2086
    run --strict $options sh -c "$2"
    expect "$name: status" "$code" "$wanted"
    says "$name" "^==ERROR== strict: $name: .*; the exit status is $wanted\$" 1
    sanitised && return
    # shellcheck disable=SC2086
    run --strict $options sh -c "{ $2; }; exit 7"
    expect "$name of a program that fails: status" "$code" 7
    says "$name of a program that fails" "^==ERROR== strict: $name: .*; the exit status is that of the program" 1
}

# Nothing fails.
run --strict -o good.kprof "$p"
expect "nothing fails: status" "$code" 0
says "nothing fails" strict 0
[ -s good.kprof ] || fail "nothing fails: no export"
run --strict sh -c "exit 3"
expect "no CUDA and 3: status" "$code" 3

# --- before the program starts ---
early() { # KIND PATTERN ARGUMENTS of kprof...
    kind=$1 pattern=$2
    shift 2
    if ! sanitised; then
        run "$@" sh -c ': >ran'
        expect "$*: status" "$code" 2
        says "$*" "^==ERROR== .*$pattern" 1
        [ ! -e ran ] || fail "$*: the program ran"
    fi
    run --strict "$@" sh -c ': >ran'
    expect "$*, strict: status" "$code" "$(status_of "$kind")"
    [ ! -e ran ] || fail "$*, strict: the program ran"
}
cp good.kprof before
mkdir folder
export NAME=goo
early export "$tmp/good.kprof: the file exists; use --force-overwrite" -o good.kprof
early export "$tmp/good.kprof: the file exists" -o '%q{NAME}d'
early export "$tmp/folder: it is a folder; name a file in it" -f -o folder
early export "/proc/sys: it is a folder; name a file in it" -o /proc/sys
early export "/dev/null: that is not a regular file" -o /dev/null
echo "what I know" >notes.txt
early export "$tmp/notes.txt: it is not a session and would be overwritten" -f -o notes.txt
expect "a file that is no session" "$(cat notes.txt)" "what I know"
log=good.kprof early log "$tmp/good.kprof: it is a session, which would be overwritten"
FOLDER=$tmp/none early export "$tmp/none/x.kprof: No such file" -o '%q{FOLDER}/x.kprof'
early export "$tmp/none/x.%p.kprof: No such file" -o none/x.%p
early export "$tmp/good.kprof/x.kprof: Not a directory" -f -o good.kprof/x
[ "$(id -u)" = 0 ] || { chmod 555 folder && early export "folder/x.kprof: Permission denied" -o folder/x && chmod 755 folder; }
# Even root makes no file there: only an attempt tells.
early report "--html: /proc/x.html: " --html /proc/x.html
early report "--html: /proc/x.%p.html: " --html /proc/x.%p.html
early export "--export: /proc/x.kprof: " -o /proc/x.kprof
log=/proc/log early log "/proc/log: "
# What counts is the place that a link names.
ln -s /proc/log there
log=there early log "there: "
rm there
if [ "$(id -u)" != 0 ]; then
    mkdir closed
    ln -s ../out.html closed/link
    chmod 555 closed
    run --set quick --html closed/link "$p"
    [ -s out.html ] || fail "a link in a closed folder to an open one is refused"
    log=closed/link run -f --set quick "$p"
    expect "a log by a link in a closed folder: status" "$code" 0
    chmod 755 closed
fi
long=$(printf '%0250d' 0)
early export "File name too long" -o "$long"
: >folder/old.html
[ "$(id -u)" = 0 ] || { chmod 555 folder && early report "folder/old.html: Permission denied" -f --html folder/old.html && chmod 755 folder; }
rm folder/old.html
[ "$(ls folder)" = "" ] || fail "the attempts left files: $(ls folder)"
log=none/log early log "$tmp/none/log: No such file"
log=folder early log "$tmp/folder: Is a directory"
early metric '--metrics: CUPTI has no metric "gpu__time_duratio.sum"; did you mean gpu__time_duration.sum?' --metrics gpu__time_duratio.sum
early metric 'metric to sample "sm__cycle_active.avg"; did you mean pmsampling:sm__cycles_active.avg?' --metrics pmsampling:sm__cycle_active.avg
early metric 'no metric "dram__bytes.summ"' --metrics 'dram__bytes.summ
x'
early metric 'no group "memory_chrt"; did you mean group:memory_chart?' --metrics group:memory_chrt
cmp -s good.kprof before || fail "an export that exists was changed"
early cupti "--cupti-dir: none: No such file" --cupti-dir none
early cupti "--cupti-dir: good.kprof: Not a directory" --cupti-dir good.kprof
early cupti "--cupti-dir: folder: the folder has no libcupti; the program was not started" --cupti-dir folder
early option "--kernel-name: foo: the replay modes range and app-range profile whole ranges" --replay-mode range -k foo
early option "--kernel-id: :::1: the replay modes range and app-range" --replay-mode app-range --kernel-id :::1
# What only each process knows is not refused.
for name in 'r.%r' 'i.%i'; do
    : >r.0
    : >i.1
    run -o "$name" sh -c ': >ran'
    [ -e ran ] || fail "-o $name is refused"
done

# --- an export that is not this run's ---
run -o nothing.kprof true
says "-o without CUDA" "^==KPROF== Nothing was written to $tmp/nothing.kprof. Unless a line above" 1
[ ! -e nothing.kprof ] || fail "-o without CUDA makes a file"
run -f -o good.kprof true
[ ! -e good.kprof ] || fail "-f leaves an earlier session of which nothing is new"
says "-f without CUDA" "^==KPROF== Nothing was written to $tmp/good.kprof; --force-overwrite has removed the earlier file. Unless" 1
cp before good.kprof
run -f --set nosuch -o good.kprof "$p"
cmp -s good.kprof before || fail "-f costs an earlier session where an option is wrong"
run -f -o good.kprof "$p"
expect "-f: status" "$code" 0
cmp -s good.kprof before && fail "-f leaves an earlier session"
run -f -o before no-such-program
expect "no such program: status" "$code" 127
[ -s before ] || fail "a program that there is not costs the earlier session"
run -o late.kprof sh -c ": >late.kprof; $p"
expect "an export made meanwhile: status" "$code" 0
says "an export made meanwhile" "cannot create '$tmp/late.kprof': File exists" 1
says "an export made meanwhile" "^==ERROR== nothing was written to $tmp/late.kprof, .* not from this run$" 1
run -o here.kprof sh -c "cd folder && $p" # where the command was started
[ -s here.kprof ] || fail "a relative export: not where the command was started"

run --strict -o taken.kprof sh -c "$p; rm taken.kprof" # a session that is gone is a failure of its own
expect "an export that the program removes: status" "$code" "$(status_of export)"

# --- names that hold line breaks, tabs and % ---
odd=$(printf 'a\tb%%c\nd') pattern=$(printf 'a\tb%%%%c\nd')
mkdir "$odd"
ln -s "$(realpath "$build/fake")" "$odd/cupti"
cd "$odd" || exit 1
for mode in kernel application; do
    log=$pattern.log TMPDIR=$tmp/$odd run -f --strict --replay-mode $mode -o "$pattern.k" --html "$pattern.html" \
        --cupti-dir "$tmp/$odd/cupti" "$p"
    expect "odd names, $mode: status" "$code" 0
    says "odd names, $mode" '^==\(ERROR\|WARNING\)==' 0
    expect "odd names, $mode: files" "$(ls -A | wc -l)" 9 # of two lines each: the export, the page and the log
    "$build/kprof" report "$odd.k" | grep -q axpy || fail "odd names, $mode: the export is no report"
done
"$build/kprof" diff "$odd.k" "$odd.k" >/dev/null 2>kprof.err
expect "odd names: diff warns in one line" "$(cat kprof.err | wc -l)" 1
cd "$tmp" || exit 1

# --- metrics of which there are some ---
run --metrics gpu__time_duratio.sum,smsp__inst_executed.sum "$p"
expect "one of two metrics: status" "$code" 0
says "one of two metrics" 'gpu__time_duratio' 1
says "one of two metrics" '^==WARNING== --metrics: .*did you mean gpu__time_duration.sum?' 1
says "one of two metrics" '^    smsp__inst_executed.sum ' 19
run --set basic --metrics gpu__time_duratio.sum "$p"
expect "a wrong metric beside a set: status" "$code" 0
says "a wrong metric beside a set" 'did you mean gpu__time_duration.sum?' 1
says "a wrong metric beside a set" '^    Section: Occupancy$' 19

run --strict --set basic --metrics gpu__time_duratio.sum true # nobody uses CUDA, who could tell once more
expect "a wrong metric and no CUDA: status" "$code" "$(status_of metric)"
says "a wrong metric and no CUDA" '^==ERROR== strict: metric: .*(also: no-cuda)' 1

# --- each kind ---
kind no-cuda -- true
kind no-match -k nothing -- "$p >/dev/null"
kind no-match --target-processes-filter nothing -- "$p >/dev/null"
kind metric --metrics a__b,launch__grid_size -- "$p >/dev/null"
kind export -o taken.kprof -- "rm -f taken.kprof; mkdir taken.kprof; $p >/dev/null; rmdir taken.kprof"
log=gone/log
mkdir gone
kind log -- "rm -r gone; $p >/dev/null; mkdir gone"
unset log
: >options
kind option --config options -- "echo 'sett = basic' >options; $p >/dev/null; : >options"
kind incomplete -- "$programs/p_exit sigkill >/dev/null 2>&1; true"
kind no-launch -- "$programs/p_ranks /bin/true >/dev/null"
NVTX_INJECTION64_PATH=$build/libnone.so kind ranges --nvtx -- "$programs/p_nvtx >/dev/null"
mkdir alone # without the library of names
cp "$build/kprof" "$build/libkprof.so" alone
command=alone/kprof
kind stacks --call-stack=native -- "$p >/dev/null"
unset command
export FAKE_FAIL=cuptiProfilerBeginSession:35,cuptiRangeProfilerEnable:35
kind permission -- "$p >/dev/null"
FAKE_FAIL=cuptiProfilerBeginSession:26,cuptiRangeProfilerEnable:26
kind counters -- "$p >/dev/null"
FAKE_FAIL=cuptiCheckpointRestore:999
kind damage -- "$p >/dev/null"
unset FAKE_FAIL
mkdir bare
cp -P "$build"/fake/libcuda.so* "$build"/fake/libcudart.so* bare/
: >bare/libcupti.so # is there, and cannot be loaded
E2E_PATH=$tmp/bare kind cupti --cupti-dir "$tmp/bare" -- "$p >/dev/null"
kind in-part --fallback quick -- "$programs/p_window exported >/dev/null"
kind not-counted -- "$programs/p_capture >/dev/null"
# A static program: one that ends at once.
if ${CC:-cc} -static -nostdlib -o static -x c - 2>/dev/null <<'END'
void _start(void) { __asm__("mov $60, %eax\n xor %edi, %edi\n syscall"); }
END
then
    covered="$covered not-followed"
    run --strict ./static
    expect "not-followed: status" "$code" "$(status_of not-followed)"
    says "not-followed" 'static cannot be profiled: it is statically linked\.$' 1
    run ./static
    expect "not-followed, not strict: status" "$code" 0
fi
# A program for musl, as far as its loader's name goes. This one does what musl's does with a library that needs glibc.
mkdir lib
if ${CC:-cc} -static-pie -nostdlib -fno-builtin -O1 -fno-stack-protector -o lib/ld-musl-x86_64.so.1 -x c - 2>/dev/null <<'END' &&
static void end(long code) { __asm__ volatile("syscall" : : "a"(60L), "D"(code)); }
static int begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return !*with;
}
__attribute__((used)) void look(long *stack)
{
    for (char **e = (char **)stack + *stack + 2; *e; e++)
        for (char *c = begins(*e, "LD_PRELOAD=") ? *e : ""; *c; c++)
            if (begins(c, "libkprof.so"))
                end(127);
    end(5);
}
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call look");
END
    ${CC:-cc} -pie -fPIE -nostdlib -Wl,--dynamic-linker="$PWD/lib/ld-musl-x86_64.so.1" -o musl -x c - 2>/dev/null <<'END'
void _start(void) {}
END
then
    LD_PRELOAD=$library ./musl
    expect "for musl, a library: status" $? 127
    run ./musl
    expect "for musl: status" "$code" 5
    says "for musl" 'musl cannot be profiled: its C library is musl, not glibc\.$' 1
fi

# With the library alone, the line at the end.
preloaded() { LD_LIBRARY_PATH="$build/fake" LD_PRELOAD="${KP_TEST_PRELOAD_FIRST:+$KP_TEST_PRELOAD_FIRST:}$build/libkprof.so" \
    "$@" >kprof.out 2>kprof.err; code=$?; }
rm -f report
KPROF_STRICT=1 KPROF_KERNEL_NAME=nothing preloaded "$p"
expect "the library alone: status" "$code" 0
says "the library alone" "^==ERROR== strict: no-match: .*; under the kprof command the exit status would be $(status_of no-match)$" 1
KPROF_STRICT=1 KPROF_EXPORT=good.kprof preloaded "$p"
says "the library alone, export" "^==ERROR== strict: export: " 1
KPROF_STRICT=1 preloaded "$p"
says "the library alone, nothing fails" strict 0

# Every kind is made to happen here, but for some: they need an older driver, a reader of the report that is gone, or memory
# that has run out.
for kind in $("$build/kprof" --list-words | sed -n 's/^status\t[0-9]*\t\([a-z-]*\)\t.*/\1/p'); do
    case " $covered driver report memory " in
    *" $kind "*) ;;
    *) fail "nothing makes the failure $kind happen" ;;
    esac
done
finish
