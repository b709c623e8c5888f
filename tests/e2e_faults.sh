#!/bin/sh
# Whatever fails in kprof's own libraries, the program does not notice, launches are still counted, and the report says
# that something is missing.
. "$(dirname "$0")/e2e.inc"

broken() { # WHAT [NAME=VALUE...]: of p_direct and p_threads
    what=$1
    shift
    for p in p_direct p_graph; do
        plain "$programs/$p"
        profiled env "$@" "$programs/$p"
        same "$what, $p"
        expect "$what, $p: launches seen" "$(account seen)" "$(launches)"
        grep -q '^==\(KPROF\|WARNING\|ERROR\)==' "$tmp/report" "$tmp/kprof.err" || { fail "$what, $p: not a word"; show; }
    done
}

# CUPTI's result codes.
invalid=1 memory=8 busy=26 unsupported=27 privileges=35 subscribers=39 unknown=999

for f in cuptiProfilerInitialize cuptiDeviceGetChipName cuptiProfilerGetCounterAvailability \
    cuptiProfilerHostInitialize cuptiProfilerHostConfigAddMetrics cuptiProfilerHostGetConfigImageSize \
    cuptiProfilerHostGetConfigImage cuptiProfilerHostGetNumOfPasses cuptiProfilerHostGetMetricProperties \
    cuptiProfilerHostEvaluateToGpuValues cuptiRangeProfilerEnable cuptiRangeProfilerSetConfig \
    cuptiRangeProfilerGetCounterDataSize cuptiRangeProfilerCounterDataImageInitialize cuptiRangeProfilerDecodeData \
    cuptiRangeProfilerGetCounterDataInfo cuptiGetContextId cuptiGetStreamIdEx cuptiActivityEnable; do
    broken "$f fails" FAKE_FAIL=$f:$unknown
done
broken "no permission" FAKE_FAIL=cuptiRangeProfilerEnable:$privileges,cuptiProfilerGetCounterAvailability:$privileges
grep -rq 'NVreg_RestrictProfilingToAdminUsers=0' "$tmp/report" "$tmp/kprof.err" || { fail "no remedy for permission"; show; }
broken "counters busy" FAKE_FAIL=cuptiRangeProfilerEnable:$busy
broken "another subscriber" FAKE_FAIL=cuptiRangeProfilerEnable:$subscribers
broken "no memory to save" FAKE_FAIL=cuptiCheckpointSave:$memory
broken "no memory to save, once" FAKE_FAIL=cuptiCheckpointSave:$memory:2
broken "not supported" FAKE_FAIL=cuptiRangeProfilerStart:$unsupported
broken "Start fails in the middle" FAKE_FAIL=cuptiRangeProfilerStart:$unknown:12
broken "Stop fails in the middle" FAKE_FAIL=cuptiRangeProfilerStop:$unknown:12
broken "decoding fails in the middle" FAKE_FAIL=cuptiRangeProfilerDecodeData:$invalid:2
broken "an unknown chip" FAKE_CC=99.0

# Without the libraries.
mkdir "$tmp/bare" "$tmp/half"
for l in libcuda.so.1 libcuda.so libcudart.so.13 libcudart.so; do
    cp -P "$build/fake/$l" "$tmp/bare/"
    cp -P "$build/fake/$l" "$tmp/half/"
done
cp "$build/fake/libcupti.so.13" "$tmp/half/"
E2E_PATH=$tmp/half broken "no libcheckpoint"
E2E_PATH=$tmp/bare broken "no libcupti" KPROF_CUPTI_DIR="$tmp/bare"

finish
