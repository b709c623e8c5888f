#!/bin/sh
# Small stacks: a program that manages with a small stack runs under kprof with little more, whatever is collected.
# kprof's own work has a stack of its own; only the calls that lead there use the program's.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser needs more of the program's stack than kprof"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
p=$programs/p_stacks
quiet="env FAKE_LOG=" # the fake's log takes more of a stack than a launch
launches=24
more=2048       # bytes of the program's stack that kprof may take, in pages of the test
let_through=800 # that a launch takes which is let through: 688 with gcc -O2, 720 where a stream is captured, 784 with clang -O0
known=384       # and where the table of such launches knows it: 288 with gcc -O2, 368 with clang -O0

# A size that suffices the program without kprof.
enough() { # HOW
    for bytes in $(seq 4096 2048 131072); do
        LD_LIBRARY_PATH=$build/fake "$p" "$1" "$bytes" $launches >/dev/null 2>&1 && echo "$bytes" && return
    done
}

small() { # HOW WHAT
    both "$1, $2" $quiet "$p" "$1" "$bytes" $launches
    expect "$1, $2: seen" "$(account seen)" $launches
}

# How many bytes deeper than without kprof the deepest launch goes.
deeper() { # HOW
    without=$(LD_LIBRARY_PATH=$build/fake "$p" "$1" 65536 $launches | sed -n 's/^deepest //p')
    profiled $quiet KPROF_SET=quick KPROF_KERNEL_NAME=none "$p" "$1" 65536 $launches
    with=$(sed -n 's/^deepest //p' "$tmp/kprof.out")
    [ -n "$without" ] && [ -n "$with" ] && echo $((with - without))
}

for how in same new captured; do
    bytes=$(deeper $how)
    echo "$how: $bytes bytes deeper"
    most=$([ $how = same ] && echo $known || echo $let_through)
    [ "${bytes:-9999}" -le "$most" ] || fail "$how: a launch takes ${bytes:-?} bytes of the program's stack"
done

# 16 KiB for a thread and 8 KiB for a handler, as programs have them, unless that is too little without kprof: a processor with
# more registers saves more of them there.
for how in thread exit coroutine signal last; do
    case $how in thread | exit) bytes=16384 ;; *) bytes=8192 ;; esac
    without=$(enough $how)
    [ "$without" -le $bytes ] || bytes=$((without + more))
    echo "$how: $bytes bytes"
    KPROF_SET=basic small $how basic
    KPROF_SET=full small $how full
    KPROF_SET=basic KPROF_CALL_STACK=native small $how "call stacks"
    KPROF_SET=quick KPROF_KERNEL_NAME=none small $how "none wanted"
    KPROF_SET=quick KPROF_REPLAY_MODE=rotate small $how rotation
    KPROF_SET=basic KPROF_SAVE=all small $how "all saved"
done
finish
