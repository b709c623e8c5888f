#!/bin/sh
# Programs under small limits, or without their standard streams, give the same results as without the profiler.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser needs room and stack of its own"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: no real libcupti"; exit 77; }
command -v prlimit >/dev/null || { echo "skipped: no prlimit"; exit 77; }

p=$programs/p_process
export KPROF_SET=quick KPROF_EXPORT="$tmp/session" KPROF_FORCE_OVERWRITE=yes

# The launches are in the report, or a line says why not.
told() { # WHAT
    [ "$(reported)" = "$(launches)" ] && [ "$(account profiled)" = "$(launches)" ] && return
    grep -qE '^==(ERROR|WARNING)==|skipped \(' "$tmp/report" "$tmp/kprof.err" || { fail "$1: no word"; show; }
}

limited() { # LIMIT [PROGRAM...]
    limits=$1
    shift
    rm -f "$tmp/session"*
    [ $# -gt 0 ] || set -- "$p" none
    both "$limits" prlimit $limits "$@"
    told "$limits"
    count=$(grep -cE '^==(ERROR|WARNING)==' "$tmp/report")
    [ "$count" -lt 5 ] || { fail "$limits: $count lines of what went wrong"; show; }
}

for n in 4 5 6 8 12 16 32; do
    limited --nofile=$n
done
# The command needs few of its own.
LD_LIBRARY_PATH="$build/fake" prlimit --nofile=4 "$build/kprof" --quiet -- sh -c 'exit 7' >"$tmp/said" 2>&1
expect "the command with four files: status" "$?" 7
expect "the command with four files: errors" "$(cat "$tmp/said")" ""
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    LD_LIBRARY_PATH="$build/fake" unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' \
        sh "$build/kprof" --quiet -- sh -c 'exit 7' >"$tmp/said" 2>&1
    expect "the command without /proc: status" "$?" 7
fi
limited --nofile=8:1024
limited --nofile=8 "$p" forks
# Without optimisation the frames of the program and of the fakes alone are too large for the smallest stacks.
for kib in 32 64 128 256 1024; do
    for program in p_threads p_process; do
        [ $program = p_process ] && words=none || words=
        plain prlimit --stack=$((kib * 1024)) "$programs/$program" $words
        if [ "$plain_code" = 139 ] && [ $kib -le 64 ]; then
            echo "not tried: $program with $kib KiB of stack, which it overruns by itself in this build"
        else
            limited --stack=$((kib * 1024)) "$programs/$program" $words
        fi
    done
done
for kib in 4 64 128 512; do
    limited "--fsize=$((kib * 1024)) --core=0"
done
# Not even a line can be written, where stderr is a file.
both "no room" prlimit --fsize=0 --core=0 "$p" none
limited --memlock=0
limited --rttime=1000000
limited "--nice=0 --sigpending=0 --msgqueue=0"

for mib in 28 32 48 64 96 128 192 256 384 512 1024; do
    plain prlimit --as=$((mib << 20)) "$p" none
    [ "$plain_code" = 0 ] || continue
    limited --as=$((mib << 20))
    limited --data=$((mib << 20))
done

# No thread and no process more than the program itself is; root knows no such limit.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    mkdir -m 777 "$tmp/open"
    chmod 755 "$tmp"
    # Whoever that is may not be let into the folder of the build, or read its files: that right alone stays.
    as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override"
    $as_nobody prlimit --nproc=1 sh -c ': &' 2>/dev/null && fail "no processes: there is no limit"
    for n in 1 2; do
        KPROF_EXPORT=$tmp/open/session KPROF_LOG_FILE=$tmp/open/report \
            both "no processes: $n" $as_nobody prlimit --nproc=$n "$p" none
        cp "$tmp/open/report" "$tmp/report"
        expect "no processes: $n: launches profiled" "$(account profiled)" 4
    done
fi

# The program's own SIGXFSZ: one for each write of its own that was too large, and none of ours.
limited --fsize=4000000 "$p" too_large "$tmp/large"
limited --fsize=400000 "$p" too_large "$tmp/large"
grep -q '^refused writes: ' "$tmp/kprof.out" || { fail "no refused writes"; show; }
both "killed by SIGXFSZ" prlimit --fsize=4000000 --core=0 "$p" too_large_kills "$tmp/large"
expect "killed by SIGXFSZ" "$kprof_code" 153

# Without standard streams: what the program opens takes their numbers, and finds nothing but its own in it.
closed() { # REDIRECTIONS
    for place in stderr "$tmp/report"; do
        for part in plain profiled; do
            rm -f "$tmp/own"
            KPROF_LOG_FILE=$place $part sh -c "exec \"\$@\" $1" sh "$p" numbers "$tmp/own"
            cp "$tmp/own" "$tmp/own.$part"
        done
        same "closed: $1"
        cmp "$tmp/own.plain" "$tmp/own.profiled" || fail "closed: $1, log at $place: other files of the program's"
        [ -s "$tmp/own.plain" ] || fail "closed: $1: no file of the program's"
    done
    told "closed: $1"
}
closed '<&-'
closed '>&-'
closed '2>&-'
closed '<&- >&- 2>&-'
closed '>&- 2>&-'
KPROF_EXPORT= KPROF_LOG_FILE=stdout closed '>&-'

finish
