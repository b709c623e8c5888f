// Each launch has another attribute: an access policy window, a priority, a memory sync domain, a map of domains, a
// carve-out, a completion event. The two events serve all launches in turn, and each stream is destroyed right after
// use.
#include "contact.cuh"

enum { N = 1 << 15, TIMES = 42, KINDS = 7 };

static int attributes_of(int kind, cudaLaunchAttribute *a, unsigned *x, cudaEvent_t e, int least)
{
    memset(a, 0, 2 * sizeof(*a));
    switch (kind) {
    case 0:
        a->id = cudaLaunchAttributeAccessPolicyWindow;
        a->val.accessPolicyWindow.base_ptr = x;
        a->val.accessPolicyWindow.num_bytes = N * 4;
        a->val.accessPolicyWindow.hitRatio = 0.5f;
        a->val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
        a->val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
        return 1;
    case 1:
        a->id = cudaLaunchAttributePriority;
        a->val.priority = least;
        return 1;
    case 2:
        a->id = cudaLaunchAttributeMemSyncDomain;
        a->val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
        return 1;
    case 3:
        a->id = cudaLaunchAttributeMemSyncDomainMap;
        a->val.memSyncDomainMap.default_ = 1;
        a->val.memSyncDomainMap.remote = 2;
        return 1;
    case 4:
        a->id = cudaLaunchAttributePreferredSharedMemoryCarveout;
        a->val.sharedMemCarveout = 50;
        return 1;
    case 5:
        a->id = cudaLaunchAttributeLaunchCompletionEvent;
        a->val.launchCompletionEvent.event = e;
        return 1;
    default:
        a[0].id = cudaLaunchAttributeProgrammaticEvent;
        a[0].val.programmaticEvent.event = e;
        a[0].val.programmaticEvent.triggerAtBlockStart = 1;
        a[1].id = cudaLaunchAttributePriority;
        a[1].val.priority = least;
        return 2;
    }
}

int main()
{
    unsigned *x = device_zeros<unsigned>(N), *y = device_zeros<unsigned>(N), want_x = 0, want_y = 0;
    cudaEvent_t events[2], order;
    cudaStream_t other;
    int least = 0, greatest = 0;
    CK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CK(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, greatest));
    CK(cudaEventCreateWithFlags(&events[0], cudaEventDisableTiming));
    CK(cudaEventCreateWithFlags(&events[1], cudaEventDisableTiming));
    CK(cudaEventCreateWithFlags(&order, cudaEventDisableTiming));
    for (int t = 0; t < TIMES; t++) {
        int kind = t % KINDS;
        cudaStream_t s;
        cudaLaunchAttribute a[2];
        cudaLaunchConfig_t c = {};
        CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
        if (t > 0)
            CK(cudaStreamWaitEvent(s, order, 0)); // of the stream that is gone
        c.gridDim = dim3(64);
        c.blockDim = dim3(256);
        c.stream = s;
        c.attrs = a;
        c.numAttrs = attributes_of(kind, a, x, events[t & 1], least);
        CK(cudaLaunchKernelEx(&c, mix, x, (int)N, (unsigned)t));
        want_x = mixed(want_x, t);
        if (kind >= 5) {
            CK(cudaStreamWaitEvent(other, events[t & 1], 0));
            mix<<<64, 256, 0, other>>>(y, N, t);
            want_y = mixed(want_y, t);
        }
        CK(cudaEventRecord(order, s));
        CK(cudaStreamDestroy(s));
    }
    CK(cudaEventSynchronize(order));
    CK(cudaStreamSynchronize(other));
    int done = (cudaEventQuery(events[0]) == cudaSuccess) + (cudaEventQuery(events[1]) == cudaSuccess);
    unsigned gx = from_device(x + 9), gy = from_device(y + N - 9);
    printf("values %u %u, events complete %d\n", gx, gy, done);
    return verdict("launchattrs", gx == want_x && gy == want_y && done == 2);
}
