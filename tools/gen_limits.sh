#!/bin/sh
# Usage: gen_limits.sh
# Prints docs/limits.md as Markdown: the reasons (report/model/reasons.def) that have a ground, and the limits without a
# message. `make tables` writes the file.
set -eu
export LC_ALL=C
source=$(dirname "$0")/..

cat <<'END'
# Limits of a profiled program

kprof leaves a program's results, output and exit code as they are. These are the limits of what it can count, and why.
`report/model/reasons.def` has a row for each reason; `tools/gen_limits.sh` makes this page from the rows that give a
ground. A session, JSON and CSV name a reason by its key.
END
{
    echo '#define KP_REASON(id, key, kind, text, advice, why) ROW kind | key | text | advice | why END'
    echo '#include "report/model/reasons.def"'
} | ${CC:-cc} -E -P -I"$source" - | tr '\n' ' ' | sed 's/ROW /\n/g' | sed '1d; s/ END.*//; s/"  *"//g; s/"//g; s/ *| */|/g' |
    awk -F '|' '
    BEGIN {
        heading["UNCOUNTED"] = "Launches that are not counted"
        heading["ONCE"] = "Launches that are counted once"
        heading["WHOLE"] = "Graphs that are one row"
        heading["CLOSE"] = "What closes a window"
        heading["FAILURE"] = "Windows and contexts without counters"
        heading["VALUE"] = "Values that are n/a"
        heading["LIMIT"] = "Limits without a message"
        about["ONCE"] = "They are counted in full by `--replay-mode application`. Otherwise the first launch of a kernel and shape is counted\nin one pass, and later ones [take turns](manual.md#what-is-not-replayed)."
        about["CLOSE"] = "Each window costs a series of passes, for `basic` nine starts and stops."
    }
    $5 == "" && $1 != "LIMIT" { next }
    $1 != kind {
        kind = $1
        print "\n## " heading[kind] (kind in about ? "\n" about[kind] : "") "\n\n| what | why | what to do |\n| --- | --- | --- |"
    }
    { print "| " $3 " | " $5 " | " $4 " |" }' | sed 's/|  |/| |/g'
