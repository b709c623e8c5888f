#!/bin/sh
# Programs that profile themselves: their CUPTI calls work as without kprof, which steps aside before such a call and
# resumes after they have stopped. Launches in between pass through, with the reason.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
export KPROF_SET=basic
each=3 # launches of a letter

says() { # TEXT
    cat "$tmp/report" "$tmp/kprof.err" | grep -c "$1"
}

# Runs the program by letters (see p_profiler.c): so many of its letters launch while it uses CUPTI itself.
uses() { # LETTERS ASIDE TOLD_BACK
    for program in p_profiler p_profiler_linked; do
        what="$program $1"
        both "$what" "$programs/$program" "$1"
        expect "$what: seen" "$(account seen)" "$(launches)"
        expect "$what: profiled" "$(account profiled)" $(($(launches) - $2 * each))
        expect "$what: let through" "$(account skipped)" $(($2 * each))
        expect "$what: said" "$(says 'WARNING.*the program uses CUPTI itself')" $(($2 > 0))
        expect "$what: said to be back" "$(says 'launches are profiled again')" "$3"
        expect "$what: no other words" "$(grep -cE '^==(ERROR|WARNING)==' "$tmp/report")" $(($2 > 0))
    done
}

uses slul 1 1          # before the first launch
uses lslulslul 2 1     # several times
uses olsoul 1 1        # while a window is open
uses olrsaldul 1 1     # records: none of kprof's repetitions among them
uses lrsalduolrsaldul 2 1
uses ltsltultrtaltdl 2 1 # in other threads
uses lqlul 0 0         # a subscription to what no launch does
uses olrae 0 0         # exit() with records on
uses sfl 0 0           # ends CUPTI before kprof uses it
uses lsfl 0 0          # and after
uses lslflsul 1 1
KPROF_SET=full uses lslul 1 1
KPROF_WINDOW=1 uses lsalduol 1 1

# What launches of a rotation have counted is kept.
KPROF_REPLAY_MODE=rotate both rotation "$programs/p_profiler" lslul
expect "rotation: seen" "$(account seen)" "$(launches)"
expect "rotation: let through" "$(says 'made while the program used CUPTI itself: 3')" 1

# A timeline ends where another user of the records comes.
for letters in lslul lrsaldul; do
    KPROF_TIMELINE=yes both "timeline $letters" "$programs/p_profiler" $letters
    expect "timeline $letters: said" "$(says 'the timeline ends where another user of CUPTI')" 1
done

# So does the recording of launches that pass within a budget: the program's records are its own.
for letters in lslul lrsaldul llrsalduolrsaldul lsflsul ltsltul; do
    KPROF_BUDGET=0.00001 both "a budget, $letters" "$programs/p_profiler" $letters
    expect "a budget, $letters: seen" "$(account seen)" "$(launches)"
    expect "a budget, $letters: accounted" "$(($(account profiled) + $(account skipped)))" "$(launches)"
done

# Another copy of CUPTI: only one of the two can be attached to the driver, the first. What the program looks up in its own
# is kprof's then.
mkdir "$tmp/other"
cp "$build/fake/libcupti.so.13" "$tmp/other/"
export PROFILER_CUPTI="$tmp/other/libcupti.so.13" KPROF_CUPTI_DIR="$build/fake"
for letters in lslfl olslflslfl lslul lrsaldul; do
    both "a copy, $letters" "$programs/p_profiler" $letters
    expect "a copy, $letters: seen" "$(account seen)" "$(launches)"
    expect "a copy, $letters: let through" "$(account skipped)" $(($(echo $letters | tr -cd s | wc -c) * each))
    expect "a copy, $letters: profiled" $(($(account seen) - $(account profiled))) "$(account skipped)"
    expect "a copy, $letters: said to be back" "$(says 'launches are profiled again')" 1
done
# One that came first leaves no place for kprof, which says so.
both "a copy that came first" "$programs/p_profiler" qlul
[ "$(says "cannot start CUPTI's profiler")" -gt 0 ] || fail "a copy that came first: no reason"
finish
