#!/bin/sh
# Processes that a program starts, and changes that it makes to itself: other namespaces, no descriptors, another root,
# another user, no folder. The program's behaviour does not change, its launches are counted, and kprof reports what it
# can no longer do.
. "$(dirname "$0")/e2e.inc"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }

p=$programs/p_process
export KPROF_SET=quick KPROF_EXPORT="$tmp/session"
chmod 755 "$tmp"
mkdir "$tmp/root"

# Lines about what went wrong, in the report or on stderr.
words() {
    cat "$tmp/report" "$tmp/kprof.err" | grep -E '^==(ERROR|WARNING)=='
}

case_of() { # NAME [FILE]
    rm -f "$tmp/session"*
    both "$*, windows of $KPROF_WINDOW" "$p" "$@"
    expect "$name: exit code" "$kprof_code" 0
}

# Nothing is lost, but for what has a driver of its own in a namespace of the dynamic linker: a line says so.
whole() { # NAME [FILE]
    case_of "$@"
    expect "$name: launches seen" "$(account seen)" 4
    expect "$name: launches profiled" "$(account profiled)" 4
    other=$(words | grep -v 'opened with dlmopen has a CUDA driver of its own')
    [ -z "$other" ] || fail "$name: $other"
    case $1 in namespaces*) apart=1 ;; *) apart=0 ;; esac
    expect "$name: words" "$(words | wc -l)" $apart
    stored --page raw "$tmp/session" >"$tmp/stored" 2>&1 || fail "$name: $(cat "$tmp/stored")"
    expect "$name: launches stored" "$(reported "$tmp/stored")" 4
    expect "$name: a whole session" "$(grep -c 'had not finished' "$tmp/stored")" 0
}

# The session file is out of reach: all launches are in the report, and the file says that it is not whole.
cut_off() { # NAME [FILE]
    case_of "$@"
    expect "$name: launches profiled" "$(account profiled)" 4
    expect "$name: launches reported" "$(reported)" 4
    words | grep -q 'results from here on are in the report only' || { fail "$name: no word of the session"; show; }
    expect "$name: words" "$(words | wc -l)" 1
    stored --page raw "$tmp/session" >"$tmp/stored" 2>&1 || fail "$name: $(cat "$tmp/stored")"
    expect "$name: a session that is not whole" "$(grep -c 'had not finished' "$tmp/stored")" 1
}

# No file can be made at all.
nothing() { # NAME [FILE]
    case_of "$@"
    expect "$name: words" "$(words | grep -c 'the program runs unprofiled$')" 1
    [ ! -e "$tmp/session" ] || fail "$name: a session"
}

# Slow under TSan, and what TSan looks at is in other scripts.
[ "${KP_TEST_VARIANT:-}" != tsan ] || { echo "skipped: too slow under TSan"; exit 77; }
[ "${KP_TEST_VARIANT:-}" = asan ] && windows=1 || windows="1 100"
for window in $windows; do
    export KPROF_WINDOW=$window
    for c in none forks vforks spawns pipes gone gone_first namespaces namespaces_first; do
        whole $c
    done
    for c in close_rest close_rest_first; do
        rm -f "$tmp/mine"
        whole $c "$tmp/mine"
        expect "$name: the program's own file" "$(uniq "$tmp/mine")" mine # of both runs
    done
    [ "$(id -u)" -eq 0 ] || continue
    cut_off root "$tmp/root"
    cut_off drop
    nothing root_first "$tmp/root"
    nothing drop_first
done

# A program that has gone where no library is has no counters, and the report says so.
if [ "$(id -u)" -eq 0 ]; then
    unset KPROF_EXPORT
    KPROF_LOG_FILE=stderr both "root_first, report to stderr" "$p" root_first "$tmp/root"
    cp "$tmp/kprof.err" "$tmp/report"
    expect "$name: launches seen" "$(account seen)" 4
    grep -q '^==WARNING==.*libcupti' "$tmp/report" || { fail "$name: no word of libcupti"; show; }
else
    echo "not as root: no other root or user tried"
fi

finish
