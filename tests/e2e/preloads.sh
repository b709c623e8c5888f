#!/bin/sh
# Other preloaded libraries, before the profiler and after it: another allocator, another clock, another tool; and the
# profiler by a relative name. The program behaves as with the other library alone, and everything is profiled.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser has an allocator of its own"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

export KPROF_SET=quick

# A library's path in Debian's folders, or its bare name elsewhere; nothing where there is none.
find_library() { # NAME...
    for name in "$@"; do
        for folder in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib; do
            [ -e "$folder/$name" ] && echo "$folder/$name" && return
        done
    done
}

everything() { # WHAT
    expect "$1: launches seen" "$(account seen)" "$(launches)"
    expect "$1: launches profiled" "$(account profiled)" "$(launches)"
    expect "$1: launches reported" "$(reported)" "$(launches)"
    ! grep -E '^==(ERROR|WARNING)==' "$tmp/report" || fail "$1: words"
}

beside_other() { # LIBRARY PROGRAM...
    other=$1
    shift
    what="$(basename "$other"), $(basename "$1")"
    KP_TEST_PRELOAD_PLAIN=$other plain "$@"
    KP_TEST_PRELOAD_FIRST=$other profiled "$@"
    same "$what, before kprof"
    everything "$what, before kprof"
    E2E_PRELOAD_LAST=$other profiled "$@"
    same "$what, after kprof"
    everything "$what, after kprof"
}

programs_beside() { # LIBRARY
    beside_other "$1" "$programs/p_direct"
    beside_other "$1" "$programs/p_getproc"
    beside_other "$1" "$programs/p_many" 5
    beside_other "$1" "$programs/p_process" forks
    KPROF_WINDOW=1 beside_other "$1" "$programs/p_threads"
}

programs_beside "$build/e2e/tool.so"
beside_other "$build/e2e/tool.so" "$programs/p_exit" _exit
grep -q '^tool: 1 exits, looked up: some, not its own: 0$' "$tmp/kprof.err" || { fail "the tool saw nothing"; show; }

jemalloc=$(find_library libjemalloc.so.2)
if [ -n "$jemalloc" ]; then
    programs_beside "$jemalloc"
    MALLOC_CONF=junk:true,abort_conf:true beside_other "$jemalloc" "$programs/p_many" 5
else
    echo "no jemalloc here"
fi

# Clocks that run backwards from the host's, stand still, or run ten times as fast.
faketime=$(find_library faketime/libfaketimeMT.so.1 libfaketimeMT.so.1)
if [ -n "$faketime" ]; then
    for clock in '-30d' '2020-12-24 20:30:00' '@2020-12-24 20:30:00 x10' '+1y x0.1'; do
        export FAKETIME="$clock"
        beside_other "$faketime" "$programs/p_direct"
        KPROF_WINDOW=1 beside_other "$faketime" "$programs/p_threads"
    done
    unset FAKETIME
else
    echo "no faketime here"
fi

# By a name that only fits the folder that the program starts in; it goes elsewhere later.
cd "$build" || exit 1
plain "$programs/p_process" gone
library=./libkprof.so profiled "$programs/p_process" gone
same "a relative name"
everything "a relative name"
KPROF_CALL_STACK=native library=./libkprof.so profiled "$programs/p_process" gone_first
everything "a relative name, another folder from the start"
cd / || exit 1

finish
