#!/bin/bash
# Usage: selftest.sh BUILD OBJECTS JOBS, with COMPILE, LINK and REST, what a harness is made with, in the environment
# Shows that the harnesses find what they are for: each is built with a fault in the code that it looks into, one of
# bugs.txt. It must end with a finding within a minute and a half. A fault whose line has changed is a failure, too.
set -u
here=tests/fuzz

one() { # NAME|SOURCE|SED
    local name source edit place log status=missed
    IFS='|' read -r name source edit <<<"$1"
    place=$build/broken/$name-$(echo "$edit" | cksum | cut -d' ' -f1)
    log=$place/log
    rm -rf "$place"
    mkdir -p "$place/$(dirname "$source")" "$place/inputs"
    sed "$edit" "$source" >"$place/$source"
    if cmp -s "$source" "$place/$source"; then
        status='not there any more'
    # A harness that includes the source takes the one of the first folder. The libraries' one is not taken then.
    elif ! $COMPILE -iquote "$place" -w -c "$here/fuzz_$name.c" -o "$place/harness.o" 2>"$log" ||
        ! { grep -q "#include \"$source\"" "$here/fuzz_$name.c" ||
            $COMPILE -w -c "$place/$source" -o "$place/source.o" 2>>"$log"; } ||
        ! $LINK -o "$place/harness" "$place"/*.o $REST 2>>"$log"; then
        status='cannot be built'
    else
        [ "$name" != cubin ] || cp tests/data/{inline,parts}.*.cubin "$place/inputs"
        cp "$here/corpus/$name"/* "$place/inputs" 2>/dev/null
        "$place/harness" -max_total_time=90 -timeout=20 -rss_limit_mb=2048 -max_len=16384 -len_control=0 -reload=0 \
            -artifact_prefix="$place/finding-" "$place/inputs" >"$log" 2>&1 </dev/null || status=found
        # It is the fault that was found only if the same input is well without it.
        [ $status = missed ] || "$build/$name" "$place"/finding-* >>"$log" 2>&1 </dev/null || status='found something else'
    fi
    printf '%-12s %-26s %s\n' "$name" "$source" "$status"
    [ "$status" = found ]
}

build=$1 jobs=$3
export -f one
export build here COMPILE LINK REST
grep -v '^#' "$here/bugs.txt" | tr '\n' '\0' | xargs -0 -P "$jobs" -I{} bash -c 'one "$1"' _ {}
