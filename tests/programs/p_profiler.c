/* LINK: -lcuda -ldl -lpthread */
/*
 * A program that is its own profiler. The first argument says what it does, a letter each:
 *   l  launches, and waits for them          o  launches, without a wait
 *   s  subscribes to CUPTI's callbacks, and has it call back at the driver's calls
 *   q  subscribes, and has it call back at nothing that launches do
 *   u  ends the subscription                 r  registers functions for buffers of records
 *   a  has kernels recorded                  d  ends that, and says how many records came
 *   f  ends CUPTI from within a callback     t  does the next letter in another thread
 *   e  calls exit()
 * It finds CUPTI's functions by dlsym, in the file PROFILER_CUPTI if that is set; p_profiler_linked.c is linked to
 * them. Of each call it prints the code.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>

#include "linked.h"

enum { N = 64, LAUNCHES = 3 };

static struct session session;
static CUdeviceptr values;
static CUpti_SubscriberHandle subscriber;
static long launches, records;
static CUptiResult ended = CUPTI_ERROR_UNKNOWN;

#ifdef LINKED
#define CALL(function, ...) function(__VA_ARGS__)
#else
static void *library(void)
{
    static void *opened;
    const char *path = getenv("PROFILER_CUPTI");

    if (!opened && !(opened = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL)))
        printf("%s\n", dlerror());
    return opened;
}

#define CALL(function, ...) ((__typeof__(&function))dlsym(library(), #function))(__VA_ARGS__)
#endif
#define SAY(function, ...) printf("%s: %d\n", #function, (int)CALL(function, ##__VA_ARGS__))

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    (void)user, (void)domain, (void)id;
    if (((const CUpti_CallbackData *)data)->callbackSite == CUPTI_API_EXIT)
        ended = CALL(cuptiFinalize);
}

static void CUPTIAPI give(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = 1 << 20;
    *buffer = malloc(*size);
    *most = 0;
}

static void CUPTIAPI take(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;

    (void)ctx, (void)stream, (void)size;
    while (CALL(cuptiActivityGetNextRecord, buffer, valid, &record) == CUPTI_SUCCESS)
        records++;
    free(buffer);
}

static void launch(int wait)
{
    CUfunction f = get_function(&linked, &session, "increment");
    int n = N;
    void *params[] = {&values, &n};

    for (int i = 0; i < LAUNCHES; i++, launches++)
        MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, session.stream, params, NULL));
    if (wait)
        MUST(cuStreamSynchronize(session.stream));
}

static void end_cupti(void)
{
    CUdevice device;

    SAY(cuptiEnableCallback, 1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice);
    MUST(cuCtxGetDevice(&device));
    printf("ended: %d\n", (int)ended);
}

static void act(char what)
{
    switch (what) {
    case 'l':
    case 'o':
        launch(what == 'l');
        break;
    case 's':
    case 'q':
        SAY(cuptiSubscribe, &subscriber, on_call, NULL);
        if (what == 's')
            SAY(cuptiEnableDomain, 1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
        break;
    case 'u':
        SAY(cuptiUnsubscribe, subscriber);
        break;
    case 'r':
        SAY(cuptiActivityRegisterCallbacks, give, take);
        break;
    case 'a':
        SAY(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        break;
    case 'd':
        SAY(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        SAY(cuptiActivityFlushAll, 1);
        printf("records: %ld\n", records);
        break;
    case 'f':
        end_cupti();
        break;
    case 'e':
        exit(program_wrong);
    default:
        printf("%c?\n", what);
    }
}

static void *act_apart(void *what)
{
    MUST(cuCtxSetCurrent(session.ctx));
    act(*(const char *)what);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; *what && strchr("rq", *what); what++) /* before CUDA is initialised */
        act(*what);
    open_session(&linked, &session, 0);
    values = device_ints(&linked, (const int[N]){0}, N);
    for (; *what; what++) {
        pthread_t thread;

        if (*what != 't') {
            act(*what);
        } else if (*++what) {
            pthread_create(&thread, NULL, act_apart, (void *)what);
            pthread_join(thread, NULL);
        }
    }
    MUST(cuStreamSynchronize(session.stream));
    report_number("increments", sum_ints(&linked, values, N), (long long)N * launches);
    close_session(&linked, &session);
    return program_wrong;
}
