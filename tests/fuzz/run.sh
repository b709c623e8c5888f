#!/bin/bash
# Usage: run.sh BUILD SECONDS RUNS JOBS HARNESS...
# Runs each harness of BUILD on its kept inputs, JOBS of them at a time. Then runs each for SECONDS seconds or, where RUNS is
# not empty, for that many runs. Below BUILD are left: inputs/NAME, what is new and goes where no other went;
# findings/NAME-..., what ends a run; logs/NAME.log. Prints a table; the exit status is 0 without a finding.
set -u
here=tests/fuzz

# The longest input of a harness, in bytes, where it is not 256.
longest() {
    case $1 in
    cubin) echo 36000 ;;
    section | disassemble) echo 1024 ;;
    esac
}

seeds() { # NAME: folders of inputs to begin with
    local of=$build/seeds/$1
    [ ! -d "$here/corpus/$1" ] || echo "$here/corpus/$1"
    case $1 in
    cubin) mkdir -p "$of" && cp tests/data/{inline,parts}.*.cubin "$of" && echo "$of" ;;
    esac
}

stat() { sed -n "s/^stat::$1: *//p" "$2" | tail -n 1; }

one() { # NAME
    local log=$build/logs/$1.log own=$build/inputs/$1 begun code=0 limit max
    mkdir -p "$own"
    max=$(longest "$1")
    limit=-max_total_time=$seconds
    [ -z "$runs" ] || limit=-runs=$runs
    # An input of a few bytes is no program of statements.
    [ "$1" != session ] || limit="$limit -len_control=0"
    [ ! -f "$here/dict/$1.dict" ] || limit="$limit -dict=$here/dict/$1.dict"
    begun=$(date +%s)
    "$build/$1" $limit -max_len="${max:-256}" -reload=0 -timeout=20 -report_slow_units=20 -rss_limit_mb=2048 \
        -malloc_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$build/findings/$1-" "$own" $(seeds "$1") \
        >"$log" 2>&1 </dev/null || code=$?
    printf '%-12s %10s %8s %11s  %s\n' "$1" "$(stat number_of_executed_units "$log")" $(($(date +%s) - begun)) \
        "$(stat new_units_added "$log")" "$([ $code = 0 ] && echo none || echo "1: $log")" | tee "$build/logs/$1.row"
    return $code
}

build=$1 seconds=$2 runs=$3 jobs=$4
shift 4
export -f one longest seeds stat
export build seconds runs here
# What costs most of a sanitiser is what it keeps of freed memory and of callers; a finding is run again without this.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=8:malloc_context_size=0}
mkdir -p "$build/logs" "$build/findings"
TMPDIR=$(mktemp -d) && export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
printf '%-12s %10s %8s %11s  %s\n' harness runs seconds 'new inputs' finding
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'one {}' && exit 0
for name in "$@"; do
    grep -q 'none$' "$build/logs/$name.row" && continue
    grep -m 1 -E 'ERROR: |runtime error: |^fuzz: ' "$build/logs/$name.log"
    file=$(sed -n 's/.*Test unit written to //p' "$build/logs/$name.log" | tail -n 1)
    echo "again with: $build/$name ${file:-$build/inputs/$name}"
done
exit 1
