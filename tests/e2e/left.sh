#!/bin/sh
# Temporary folders are removed however the command ends: a reader that goes away, signals at each stage, a crash. A
# later run removes what SIGKILL leaves, once it is old; folders in use, and those of others, stay.
. "$(dirname "$0")/e2e.inc"
export LD_LIBRARY_PATH="$build/fake"
kprof=$(realpath "$build/kprof")
demo=$source/examples/h200-demo.kprof
mkdir "$tmp/own"
export TMPDIR="$tmp/own"
# A program that is killed while TSan's runtime starts leaves a file of that.
left() { expect "left after $1" "$(ls "$TMPDIR" | grep -v '^tsan\.rodata\.' | paste -sd' ')" "${2:-}"; }

# The reader of the output goes before anything is printed.
into_nothing() { # WHAT COMMAND...
    what=$1
    shift
    mkfifo "$tmp/pipe"
    (exec 3<"$tmp/pipe") &
    # In a shell of its own, as some shells say into the pipe by which signal a command has ended, and end themselves.
    { wait $! && (timeout "$limit" "$@" 2>&1); } >"$tmp/pipe" </dev/null
    rm "$tmp/pipe"
    left "$what"
}
into_nothing "application replay into a closed pipe" "$kprof" --replay-mode application --quiet -- "$programs/p_many" 20
into_nothing "application replay with lines into a closed pipe" "$kprof" --replay-mode application -- "$programs/p_many" 20
into_nothing "a run into a closed pipe" "$kprof" -- "$programs/p_many" 20
into_nothing "a report into a closed pipe" "$kprof" report "$demo"

# Signals to the command: while the program runs, which forwards them, and at once afterwards.
for signal in HUP INT QUIT TERM PIPE ABRT SEGV ALRM USR1; do
    timeout "$limit" "$kprof" --quiet -- sh -c "kill -$signal \$PPID; sleep 0.2" >/dev/null 2>&1
    left "SIG$signal as the program runs"
    timeout "$limit" "$kprof" --replay-mode application --quiet -- sh -c "kill -$signal \$PPID; sleep 0.2" >/dev/null 2>&1
    left "SIG$signal in application replay"
done
expect "the status after SIGTERM" "$("$kprof" --quiet -- sh -c 'kill -TERM $PPID; sleep 5' >/dev/null 2>&1; echo $?)" 143

# SIGKILL: a later run removes what is a week old, and nothing else.
"$kprof" --quiet -- sh -c 'kill -KILL $PPID' >/dev/null 2>&1
killed=$(ls "$TMPDIR")
expect "folders that SIGKILL leaves" "$(echo "$killed" | grep -c '^kprof\.......$')" 1
mkdir -m 700 "$TMPDIR/kprof-4999999-abcdef" "$TMPDIR/kprof-$$-abcdef" "$TMPDIR/kprof-results" "$TMPDIR/kprof.mine"
touch "$TMPDIR/kprof-4999999-abcdef/session.kprof" "$TMPDIR/kprof-$$-abcdef/session.kprof" "$TMPDIR/kprof-results/run.kprof" "$TMPDIR/kprof.mine/x"
mkdir -m 700 "$TMPDIR/kprof.used"
touch "$TMPDIR/kprof.used/status" "$TMPDIR/kprof.used/$$.kprof"
mkdir -m 755 "$TMPDIR/kprof.open"
touch "$TMPDIR/kprof.open/status"
mkdir "$tmp/linked"
touch "$tmp/linked/status"
ln -s "$tmp/linked" "$TMPDIR/kprof.linked"
ln -s "$tmp/linked" "$TMPDIR/$killed/link"
"$kprof" --quiet -- true >/dev/null 2>&1
expect "left by a young kill" "$(ls "$TMPDIR" | grep -cx "$killed")" 1
find "$TMPDIR" "$tmp/linked" -exec touch -h -d '8 days ago' {} +
"$kprof" --quiet -- true >/dev/null 2>&1
left "a later run" "kprof-$$-abcdef kprof-results kprof.linked kprof.mine kprof.open kprof.used"
[ -e "$tmp/linked/status" ] || fail "a link was followed"
rm -r "$TMPDIR"/*
finish
