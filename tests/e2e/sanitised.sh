#!/bin/sh
# Programs built with a sanitiser, whose runtime ends a process that opens libraries the way CUPTI does: the program
# runs as without the profiler, its launches are listed without counters, and one line says why.
. "$(dirname "$0")/e2e.inc"

case ${KP_TEST_VARIANT:-} in
asan | tsan) echo "skipped: the profiler is built with a sanitiser itself"; exit 77 ;;
esac

for sanitiser in Address:p_asan Thread:p_tsan; do
    program=${sanitiser#*:} name=${sanitiser%:*}Sanitizer
    export KPROF_LOG_FILE="$tmp/report"
    plain "$programs/$program"
    expect "$program: plain" "$plain_code" 0
    # by the command, which lets AddressSanitizer start behind a preloaded library
    rm -f "$tmp/report" "$tmp/kprof.log"
    FAKE_LOG="$tmp/kprof.log" LD_LIBRARY_PATH="$build/fake" timeout "$limit" "$build/kprof" run "$programs/$program" \
        >"$tmp/kprof.out" 2>"$tmp/kprof.err"
    kprof_code=$?
    same "$program"
    expect "$program: launches seen" "$(account seen)" "$(launches)"
    expect "$program: one line" "$(grep -c "^==WARNING== .*built with $name" "$tmp/report")" 1
    # by LD_PRELOAD alone
    ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" both "$program, preloaded" "$programs/$program"
    expect "$program, preloaded: launches seen" "$(account seen)" "$(launches)"
done

finish
