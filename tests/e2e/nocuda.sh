#!/bin/sh
# A process that never uses CUDA: no library is opened, nothing is printed, no file appears, and no time is lost.
. "$(dirname "$0")/e2e.inc"

both p_nocuda "$programs/p_nocuda"
[ -e "$tmp/report" ] && [ -s "$tmp/report" ] && { fail "a report of nothing"; show; }
[ -s "$tmp/kprof.err" ] && { fail "words on stderr"; show; }
both "a shell with a pipe" sh -c 'echo one | cat; exit 9'
both "true" true

# 200 processes: less than 2 ms each of the processor's time, as other work may hold it; sanitisers aside.
if [ -z "${KP_TEST_PRELOAD_FIRST:-}" ]; then
    measure() { # of 200 times `true`, in ms
        (
            i=0
            while [ $i -lt 200 ]; do
                env "$@" /bin/true
                i=$((i + 1))
            done
            times
        ) | tail -n 1 | tr 'ms' '  ' | awk '{ printf "%d\n", 60000 * $1 + 1000 * $2 + 60000 * $3 + 1000 * $4 }'
    }
    measure A=1 >/dev/null
    without=$(measure LD_PRELOAD=)
    with=$(measure LD_PRELOAD="$library")
    echo "200 times true: $without ms without, $with ms with"
    [ $((with - without)) -lt 400 ] || fail "more than 2 ms a process"
fi

finish
