#!/bin/sh
# Whatever fails in kprof's own libraries, the program does not notice, launches are still counted, and the report says
# that something is missing.
. "$(dirname "$0")/e2e.inc"
one_thread

faulty() { # WHAT PROGRAM [NAME=VALUE...]
    what="$1, $2"
    program=$programs/$2
    shift 2
    plain "$program"
    profiled env "$@" "$program"
    same "$what"
    expect "$what: launches seen" "$(account seen)" "$(launches)"
    expect "$what: launches not finished" "$(account 'not finished')" 0
}

# Counters are lost: the report says why.
broken() { # WHAT [NAME=VALUE...]
    fault=$1
    shift
    for p in p_direct $(sanitised || echo p_nodes); do
        faulty "$fault" $p "$@"
        grep -qE 'CUPTI_ERROR_|libcupti|checkpoint|permission|counters' "$tmp/report" "$tmp/kprof.err" ||
            { fail "$what: no word of it"; show; }
    done
}

# Something else is lost: all launches are profiled.
hurt() { # WHAT [NAME=VALUE...]
    fault=$1
    shift
    faulty "$fault" p_direct "$@"
    expect "$what: launches profiled" "$(account profiled)" "$(launches)"
}

# CUPTI's result codes.
invalid=1 memory=8 busy=26 unsupported=27 privileges=35 subscribers=39 unknown=999

for f in cuptiProfilerInitialize cuptiDeviceGetChipName \
    cuptiProfilerHostInitialize cuptiProfilerHostConfigAddMetrics cuptiProfilerHostGetConfigImageSize \
    cuptiProfilerHostGetConfigImage cuptiProfilerHostGetNumOfPasses \
    cuptiProfilerHostEvaluateToGpuValues cuptiProfilerEndPass cuptiProfilerFlushCounterData \
    cuptiRangeProfilerGetCounterDataInfo; do
    broken "$f fails" FAKE_FAIL=$f:$unknown
done
# Sessions fail, and the range profiler, too.
no_session=cuptiProfilerBeginSession:$unknown
for f in cuptiRangeProfilerEnable cuptiRangeProfilerSetConfig cuptiRangeProfilerGetCounterDataSize \
    cuptiRangeProfilerCounterDataImageInitialize cuptiRangeProfilerDecodeData; do
    broken "$f fails" FAKE_FAIL=$f:$unknown,$no_session
done
# Without sessions the range profiler counts.
for f in cuptiProfilerBeginSession cuptiProfilerSetConfig cuptiProfilerCounterDataImageCalculateSize \
    cuptiProfilerCounterDataImageInitialize cuptiProfilerCounterDataImageInitializeScratchBuffer; do
    hurt "$f fails" FAKE_FAIL=$f:$unknown
done
for f in cuptiProfilerGetCounterAvailability cuptiProfilerHostGetMetricProperties cuptiGetContextId cuptiGetStreamIdEx cuptiActivityEnable; do
    hurt "$f fails" FAKE_FAIL=$f:$unknown
done
broken "another process counts" FAKE_FAIL=cuptiRangeProfilerEnable:1,$no_session
grep -rq 'another process may be counting on this GPU' "$tmp/report" "$tmp/kprof.err" || { fail "no word of another process"; show; }
broken "no permission" FAKE_FAIL=cuptiProfilerBeginSession:$privileges,cuptiRangeProfilerEnable:$privileges,cuptiProfilerGetCounterAvailability:$privileges
grep -rq 'NVreg_RestrictProfilingToAdminUsers=0' "$tmp/report" "$tmp/kprof.err" || { fail "no remedy for permission"; show; }
broken "counters busy" FAKE_FAIL=cuptiRangeProfilerEnable:$busy,$no_session
broken "another subscriber" FAKE_FAIL=cuptiRangeProfilerEnable:$subscribers,$no_session
broken "no memory to save" FAKE_FAIL=cuptiCheckpointSave:$memory
broken "no memory to save, once" FAKE_FAIL=cuptiCheckpointSave:$memory:2
broken "not supported" FAKE_FAIL=cuptiRangeProfilerStart:$unsupported,$no_session
broken "Start fails in the middle" FAKE_FAIL=cuptiRangeProfilerStart:$unknown:12,$no_session
broken "Stop fails in the middle" FAKE_FAIL=cuptiRangeProfilerStop:$unknown:12,$no_session
broken "decoding fails in the middle" FAKE_FAIL=cuptiRangeProfilerDecodeData:$invalid:2,$no_session
broken "a pass fails to begin" FAKE_FAIL=cuptiProfilerBeginPass:$unknown:12
broken "a pass fails to end" FAKE_FAIL=cuptiProfilerEndPass:$unknown:12
broken "the switch fails" FAKE_FAIL=cuptiProfilerEnableProfiling:$unknown:3
broken "decoding a session fails" FAKE_FAIL=cuptiProfilerFlushCounterData:$invalid:2
# What fails in sessions for good costs a window, and the range profiler counts the others.
for f in cuptiProfilerEndPass cuptiProfilerFlushCounterData; do
    KPROF_WINDOW=1 broken "$f fails, windows of one" FAKE_FAIL=$f:$unknown
    [ "$(account profiled)" -ge 1 ] || { fail "$f fails: no other window has counters"; show; }
done
broken "an unknown chip" FAKE_CC=99.0

# Without the libraries.
mkdir "$tmp/bare" "$tmp/half"
for l in libcuda.so.1 libcuda.so libcudart.so.13 libcudart.so; do
    cp -P "$build/fake/$l" "$tmp/bare/"
    cp -P "$build/fake/$l" "$tmp/half/"
done
cp "$build/fake/libcupti.so.13" "$tmp/half/"
# Some library of that name, or one that a toolkit has installed would be found instead.
cp "$build/fake/libcudart.so.13" "$tmp/half/libcheckpoint.so"
E2E_PATH=$tmp/half broken "no functions in libcheckpoint"
E2E_PATH=$tmp/bare broken "no libcupti" KPROF_CUPTI_DIR="$tmp/bare"
# The driver tells what it knows all the same, and the rest is missing for a reason.
E2E_PATH=$tmp/bare broken "no libcupti, metrics by name" KPROF_CUPTI_DIR="$tmp/bare" \
    KPROF_METRICS=device__attribute_warp_size,sm__cycles_active.avg
grep -q '^    device__attribute_warp_size  *32$' "$tmp/report" || { fail "no libcupti: nothing of the driver"; show; }
grep -q '^    n/a: sm__cycles_active.avg: libcupti not found' "$tmp/report" || { fail "no libcupti: no reason"; show; }

finish
