#!/bin/sh
# NVTX: the ranges of each launch, and launches chosen by them. Launch number N of the program has a grid of N + 1
# blocks: 0 in `step`; 1 in `forward`; 2 in `conv` and the start-end range `epoch`; 3 also in two ranges of domain `io`;
# 4 in `step` again; 5 in `backward` of another thread; 6 in none.
. "$(dirname "$0")/e2e.inc"

# The program forks, and the way in which TSan's programs end (tests/shim) writes a child's copy of buffered output.
case "${KP_TEST_PRELOAD_FIRST:-}" in *libtsan*) echo "skipped: a forked child writes twice under TSan"; exit 77 ;; esac

nm -D --defined-only "$library" | grep -q ' T InitializeInjectionNvtx2$' || fail "no InitializeInjectionNvtx2 is exported"

LD_LIBRARY_PATH=$build/fake "$programs/p_nvtx" >/dev/null
[ $? = 77 ] && echo "skipped: no NVTX headers" && exit 77

# Numbers of the launches in the report.
taken() {
    sed -n 's/^  increment (\([0-9]*\), 1, 1)x.*/\1/p' "$tmp/report" | while read -r blocks; do
        printf '%s ' $((blocks - 1))
    done
}

# OPTIONS (NAME=VALUE), then the launches that they leave
chosen() {
    wanted=$1
    shift
    both "$*" env "$@" "$programs/p_nvtx"
    expect "$*" "$(taken)" "$wanted"
    expect "$*: launches seen" "$(account seen)" 7
}

chosen '1 2 3 ' KPROF_NVTX_INCLUDE=forward/
chosen '0 1 2 3 4 ' KPROF_NVTX_INCLUDE=step/
chosen '0 4 ' 'KPROF_NVTX_INCLUDE=step]'
chosen '2 3 ' KPROF_NVTX_INCLUDE=step/+/conv
chosen '2 3 ' KPROF_NVTX_INCLUDE=step/*/conv]
chosen '2 3 ' KPROF_NVTX_INCLUDE=epoch
chosen '3 ' KPROF_NVTX_INCLUDE=io@read/
chosen '3 ' 'KPROF_NVTX_INCLUDE=regex:i.@^re.*d/g[^e/]'
chosen '5 ' 'KPROF_NVTX_INCLUDE=[backward'
chosen '1 5 ' 'KPROF_NVTX_INCLUDE=forward];backward/'
chosen '0 4 5 6 ' KPROF_NVTX_EXCLUDE=forward/
chosen '1 ' KPROF_NVTX_INCLUDE=forward/ KPROF_NVTX_EXCLUDE=epoch
# a launch of another thread is inside the ranges of the first one only where the process counts
chosen '0 1 2 3 4 5 ' KPROF_NVTX_INCLUDE=step/ KPROF_NVTX_PUSH_POP_SCOPE=process
grep -q '^    NVTX Push/Pop of Thread [0-9]*: step$' "$tmp/report" || { fail "the other thread's range"; show; }
# with other filters: what they leave out does not count
chosen '2 3 ' KPROF_NVTX_INCLUDE=forward/ KPROF_LAUNCH_SKIP=1
chosen '1 ' KPROF_NVTX_INCLUDE=forward/ KPROF_LAUNCH_COUNT=1 KPROF_WINDOW=1

# What each launch is made in; a filter does not matter.
both "all ranges" env KPROF_NVTX=on KPROF_EXPORT="$tmp/all.kprof" "$programs/p_nvtx"
expect "all launches" "$(taken)" '0 1 2 3 4 5 6 '
nvtx_lines() { grep '^    NVTX ' "$1" | grep -v 'NVTX Thread\|NVTX Stream'; }
nvtx_lines "$tmp/report" >"$tmp/lines"
cat >"$tmp/wanted" <<'END'
    NVTX Push/Pop: step
    NVTX Push/Pop: step / forward
    NVTX Push/Pop: step / forward / conv
    NVTX Start/End: epoch
    NVTX Push/Pop: step / forward / conv / io@read (category disk, payload -42) / io@grüß/e
    NVTX Start/End: epoch
    NVTX Push/Pop: step
    NVTX Push/Pop: backward
END
cmp -s "$tmp/lines" "$tmp/wanted" || { fail "the ranges of the launches"; diff "$tmp/wanted" "$tmp/lines"; }
expect "named thread" "$(grep -c '^    NVTX Thread: main thread ([0-9]*)$' "$tmp/report")" 6
expect "named stream" "$(grep -c '^    NVTX Stream: compute$' "$tmp/report")" 7
"$build/kprof" report "$tmp/all.kprof" >"$tmp/stored" || fail "the stored session"
nvtx_lines "$tmp/stored" | cmp -s - "$tmp/wanted" || fail "the ranges of the stored session"

# What needs ranges has them collected: names, and a summary by ranges.
both "names" env KPROF_PRINT_NVTX_RENAME=kernel KPROF_PAGE=trace "$programs/p_nvtx"
expect "names" "$(sed -n 's/^\([^ ]*increment\) *|.*/\1/p' "$tmp/report" | paste -sd' ')" \
    'step/increment forward/increment conv/increment grüß/e/increment step/increment backward/increment increment'
both "by ranges" env KPROF_PRINT_SUMMARY=per-nvtx "$programs/p_nvtx"
expect "by ranges" "$(sed -n 's/^  \(.*NVTX range.*\), Invocations/\1:/p' "$tmp/report" | paste -sd' ')" \
    'NVTX range step/: 5 NVTX range forward/: 3 NVTX range conv/: 2 NVTX range epoch: 2 NVTX range io@read/: 1 NVTX range io@grüß\/e/: 1 NVTX range backward/: 1 In no NVTX range: 1'
"$build/kprof" report --csv --print-nvtx-rename kernel --page raw "$tmp/all.kprof" >"$tmp/stored" || fail "the stored names"
expect "stored names" "$(grep -c '"forward/increment"' "$tmp/stored")" 1
expect "columns" "$(head -n 1 "$tmp/stored" | tr , '\n' | grep -c '_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"')" 2
"$build/kprof" report --page summary "$tmp/all.kprof" | grep -q '^ NVTX ranges' || fail "ranges on the summary page"

# Nothing matched: the ranges that were there, as a filter would name them.
chosen '' KPROF_NVTX_INCLUDE=nowhere/
for range in 'step/' 'forward/' 'epoch' 'io@read/' 'io@grüß\/e/' 'backward/'; do
    grep -qF "==KPROF==   range seen: $range (1)" "$tmp/report" || { fail "$range is not listed"; show; }
done
grep -q 'did you mean' "$tmp/report" && { fail "nothing is near"; show; }
chosen '' KPROF_NVTX_INCLUDE=forwrad/
grep -qF "==KPROF==   did you mean 'forward/'?" "$tmp/report" || { fail "a range is near"; show; }
"$build/kprof" report --nvtx-include forwrad/ "$tmp/all.kprof" >"$tmp/stored"
grep -qF "none of this session is inside 'forwrad/' (nvtx-include); did you mean 'forward/'?" "$tmp/stored" ||
    fail "a stored range is near: $(cat "$tmp/stored")"
grep -qF '==KPROF==   range seen: forward/ (3)' "$tmp/stored" || fail "stored ranges: $(cat "$tmp/stored")"
grep -q '  seen: increment' "$tmp/stored" && fail "kernels, where a range was asked for: $(cat "$tmp/stored")"
both "no ranges" env KPROF_NVTX_INCLUDE=nowhere/ "$programs/p_direct"
grep -q 'no NVTX range was opened' "$tmp/report" || { fail "no range is told"; show; }

# Another tool's injection is left alone.
both "another tool" env KPROF_NVTX=on NVTX_INJECTION64_PATH=/opt/tool/other.so "$programs/p_nvtx"
grep -q '^    NVTX' "$tmp/report" && { fail "ranges of another tool"; show; }
expect "another tool is named" "$(cat "$tmp/kprof.err" "$tmp/report" | grep -c '^==WARNING== NVTX .* /opt/tool/other.so')" 1

# The environment is what it was, unless NVTX is asked for. A shell may write into it.
for value in off no ''; do
    profiled env KPROF_NVTX=$value sh -c 'echo "[$NVTX_INJECTION64_PATH]"'
    expect "not asked for: $value" "$(cat "$tmp/kprof.out")" '[]'
done
for shell in sh bash; do
    command -v $shell >/dev/null || continue
    KPROF_NVTX=1 profiled $shell -c 'echo "[$NVTX_INJECTION64_PATH]"'
    expect "asked for, $shell" "$(cat "$tmp/kprof.out")" '[libkprof.so]'
done

finish
