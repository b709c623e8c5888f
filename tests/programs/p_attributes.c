/* LINK: -lcuda */
/* Launches with every launch attribute that there is, one attribute each, and with some of a later CUDA unless an
 * argument is given: then what is launched is a range. What an attribute names is destroyed as soon as the launch is
 * made: another stream has waited for the event by then. */
#include <cudaProfiler.h>

#include "linked.h"

enum { N = 32, LATER = 15, LAST = 40, ROUNDS = 3 };

static struct session session;
static CUstream other;
static CUdeviceptr first, second;

static CUevent make_event(void)
{
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

static CUlaunchAttribute attribute_of(int id, CUevent *event)
{
    CUlaunchAttribute a;

    memset(&a, 0, sizeof(a));
    a.id = (CUlaunchAttributeID)id;
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        a.value.accessPolicyWindow = (CUaccessPolicyWindow){(void *)(uintptr_t)first, N * sizeof(int), 1,
                                                            CU_ACCESS_PROPERTY_STREAMING, CU_ACCESS_PROPERTY_NORMAL};
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        a.value.clusterDim.x = a.value.clusterDim.y = a.value.clusterDim.z = 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        a.value.programmaticEvent.event = *event = make_event();
        break;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        a.value.launchCompletionEvent.event = *event = make_event();
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        a.value.memSyncDomainMap.remote = 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        a.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
        break;
    default:
        a.value.pad[0] = 1;
    }
    return a;
}

/* Whether this driver's cuda.h lists it. */
static int is_listed(int id)
{
    return id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING && id != LATER;
}

/* Launches once for each attribute. Returns how many launches the driver took. */
static int launch_each(int last)
{
    int n = N, taken = 0;
    void *params[] = {&first, &n};

    for (int id = 0; id <= last; id++) {
        CUevent event = NULL;
        CUlaunchAttribute list[] = {attribute_of(CU_LAUNCH_ATTRIBUTE_IGNORE, NULL), attribute_of(id, &event)};
        CUlaunchConfig config = {1, 1, 1, N, 1, 1, 0, session.stream, list, 2};
        /* A name of its own for what is not to be repeated. */
        const char *name = is_listed(id) ? "increment" : "_Z9incrementPii";
        CUresult rc = cuLaunchKernelEx(&config, get_function(&linked, &session, name), params, NULL);

        printf("attribute %d: %d\n", id, (int)rc);
        taken += rc == CUDA_SUCCESS;
        if (!event)
            continue;
        MUST(cuStreamWaitEvent(other, event, 0));
        MUST(cuLaunchKernel(get_function(&linked, &session, "increment"), 1, 1, 1, N, 1, 1, 0, other,
                            (void *[]){&second, &n}, NULL));
        MUST(cuEventDestroy(event));
        memset(list, 0xff, sizeof(list));
    }
    return taken;
}

int main(int argc, char **argv)
{
    int taken = 0, last = argc > 1 ? LATER - 1 : LAST;

    (void)argv;
    open_session(&linked, &session, 0);
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    first = device_ints(&linked, (int[N]){0}, N);
    second = device_ints(&linked, (int[N]){0}, N);
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuProfilerStart());
        taken += launch_each(last);
        if (argc > 1)
            MUST(cuProfilerStop());
        /* Streams have attributes, too; what is set between launches holds for those after it. */
        CUstreamAttrValue value = {.priority = -i};
        MUST(cuStreamSetAttribute(session.stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    }
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuStreamSynchronize(other));
    report_number("first", sum_ints(&linked, first, N), (long long)taken * N);
    report_number("second", sum_ints(&linked, second, N), 2ll * ROUNDS * N);
    return program_wrong;
}
