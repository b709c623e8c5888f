// LINK: -lcupti
// The program is its own profiler for a while: it subscribes to CUPTI in the middle of its run, counts its launches by
// callbacks and by activity records, and unsubscribes. It does so twice.
#include "contact.cuh"
#include <cupti.h>

enum { N = 1 << 12, LAUNCHES = 15 };
static int callbacks, records;

static void CUPTIAPI called(void *, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    const CUpti_CallbackData *d = (const CUpti_CallbackData *)data;
    bool launch = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && launch && d->callbackSite == CUPTI_API_ENTER)
        callbacks++;
}
static void CUPTIAPI wanted(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = 1 << 20;
    *most = 0;
    *buffer = (uint8_t *)aligned_alloc(8, *size);
}
static void CUPTIAPI filled(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
    CUpti_Activity *r = NULL;
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS)
        records += r->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    free(buffer);
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), want = 0, step = 0;
    bool ok = true;
    for (int round = 0; round < 2; round++) {
        CUpti_SubscriberHandle handle;
        int results[7];
        callbacks = records = 0;
        for (int i = 0; i < LAUNCHES; i++, step++)
            mix<<<16, 256>>>(v, N, step);
        CK(cudaDeviceSynchronize());
        results[0] = cuptiSubscribe(&handle, (CUpti_CallbackFunc)called, NULL);
        results[1] = cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
        results[6] =
            cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
        results[2] = cuptiActivityRegisterCallbacks(wanted, filled);
        results[3] = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        for (int i = 0; i < LAUNCHES; i++, step++)
            mix<<<16, 256>>>(v, N, step);
        CK(cudaDeviceSynchronize());
        results[4] = cuptiActivityFlushAll(1);
        cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        results[5] = cuptiUnsubscribe(handle);
        printf("results");
        for (int r : results) {
            printf(" %d", r);
            ok = ok && r == 0;
        }
        printf("; callbacks %d, records %d\n", callbacks, records);
        ok = ok && callbacks == LAUNCHES && records == LAUNCHES;
    }
    for (int i = 0; i < LAUNCHES; i++, step++)
        mix<<<16, 256>>>(v, N, step);
    for (unsigned k = 0; k < step; k++)
        want = mixed(want, k);
    unsigned got = from_device(v + N - 1);
    printf("value %u\n", got);
    return verdict("owncupti", ok && got == want);
}
