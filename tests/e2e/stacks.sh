#!/bin/sh
# Small stacks: a program that manages with a small stack runs under kprof with little more, whatever is collected.
# kprof's own work has a stack of its own; only the calls that lead there use the program's.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser needs more of the program's stack than kprof"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
p=$programs/p_stacks
launches=24
more=4096 # bytes of the program's stack that kprof may take; gcc -O2 takes 1,300 to 2,050, of launches that it lets through

# A size that suffices the program without kprof.
enough() { # HOW
    for bytes in $(seq 8192 2048 131072); do
        LD_LIBRARY_PATH=$build/fake "$p" "$1" "$bytes" $launches >/dev/null 2>&1 && echo "$bytes" && return
    done
}

small() { # HOW WHAT
    both "$1, $2" "$p" "$1" "$bytes" $launches
    expect "$1, $2: seen" "$(account seen)" $launches
}

for how in thread exit coroutine signal last; do
    bytes=$(($(enough $how) + more))
    echo "$how: $bytes bytes"
    KPROF_SET=basic small $how basic
    KPROF_SET=full small $how full
    KPROF_SET=basic KPROF_CALL_STACK=native small $how "call stacks"
    KPROF_SET=quick KPROF_KERNEL_NAME=none small $how "none wanted"
    KPROF_SET=quick KPROF_REPLAY_MODE=rotate small $how rotation
    KPROF_SET=basic KPROF_SAVE=all small $how "all saved"
done
finish
