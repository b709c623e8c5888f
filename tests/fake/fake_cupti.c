/* LINK: -ldl -lpthread */
/*
 * A look-alike of libcupti.so.13. The target side (devices, ids, the range profiler, kernel activity, PC and PM
 * sampling, SASS metrics) is faked over the fake driver. It ends the process on misuse (see fake_common.h); the host
 * side (metrics, config images, numbers of passes) is the real library's, opened from the folder that KP_REAL_CUPTI
 * names. Without that folder host calls return CUPTI_ERROR_NOT_INITIALIZED.
 * FAKE_PROFILER_TAKES=BYTES[:KEPT]: what the range profiler takes of the device's memory when it first starts a pass,
 * and gives back when it is disabled; all but KEPT byte of the first time, which stay.
 */
#include <cuda.h>
#include <math.h>
#include <stdbool.h>
#include <time.h>

#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>

#include "fake_driver.h"
#include "fake_image.h"

#define AVAILABILITY_MAGIC "FAKEAVL1"

#define COUNT_CALL()                                                                                                   \
    static struct fake_counter counter_ = {__func__, 0, NULL};                                                         \
    int injected_;                                                                                                     \
    if (fake_count(&counter_, &injected_))                                                                             \
    return (CUptiResult)injected_

/* Counts the call and checks what the real library checks first. */
#define ENTER(params, type)                                                                                            \
    COUNT_CALL();                                                                                                      \
    if (!(params) || (params)->structSize != type##_STRUCT_SIZE || (params)->pPriv)                                    \
    return CUPTI_ERROR_INVALID_PARAMETER

/* The driver's lock, because the launch hook runs under it; its own only in a process without the driver. */
static pthread_mutex_t own_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static const struct fake_cuda_api *lock(void)
{
    const struct fake_cuda_api *api = fake_driver();

    if (api)
        api->lock();
    else
        pthread_mutex_lock(&own_lock);
    return api;
}

static void unlock(const struct fake_cuda_api **api)
{
    if (*api)
        (*api)->unlock();
    else
        pthread_mutex_unlock(&own_lock);
}

/* After failing to end PC sampling, the real library reads through null pointers. */
static bool torn_down;

static void need_whole(const char *function)
{
    if (torn_down)
        fake_misuse("%s: PC sampling could not be ended before", function);
}

static inline void need_usable(CUcontext ctx, const char *function)
{
    need_whole(function);
    fake_need_live(ctx, function);
}

#define LOCKED() const struct fake_cuda_api *lock_ __attribute__((cleanup(unlock), unused)) = lock()

/* The real library's handler also flushes the program's output. */
static void flush_stdout(void)
{
    fflush(stdout);
}

__attribute__((constructor)) static void flush_at_exit(void)
{
    atexit(flush_stdout);
}

/* --- the real library, for the host side --- */

/* Takes no lock: a thread that holds the loader's, in a library's constructor, calls the driver and this. */
static void *real_symbol(const char *name)
{
    static void *_Atomic opened;
    const char *folder = getenv("KP_REAL_CUPTI");
    char path[4096];
    void *handle = atomic_load(&opened);

    if (!handle && folder && *folder) {
        /* libcupti opens this one by its bare name: have it there already */
        snprintf(path, sizeof(path), "%s/libnvperf_host.so", folder);
        dlopen(path, RTLD_NOW | RTLD_LOCAL);
        snprintf(path, sizeof(path), "%s/libcupti.so.13", folder);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            fake_log("note pid=%d %s\n", (int)getpid(), dlerror());
        atomic_store(&opened, handle);
    }
    return handle ? dlsym(handle, name) : NULL;
}

#define FORWARD(function, type)                                                                                        \
    CUptiResult function(type *params)                                                                                 \
    {                                                                                                                  \
        CUptiResult (*real)(type *);                                                                                   \
                                                                                                                       \
        COUNT_CALL();                                                                                                  \
        *(void **)&real = real_symbol(#function);                                                                      \
        return real ? real(params) : CUPTI_ERROR_NOT_INITIALIZED;                                                      \
    }
FORWARD(cuptiProfilerHostGetSupportedChips, CUpti_Profiler_Host_GetSupportedChips_Params)
FORWARD(cuptiProfilerHostGetMaxNumHardwareMetricsPerPass, CUpti_Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params)

#include "cupti/host.c"

/* --- evaluation of the fake's own images --- */

static const struct fake_image *own_image(const uint8_t *bytes, size_t size)
{
    const struct fake_image *image = (const void *)bytes;

    if (!bytes || size < sizeof(*image) || memcmp(image->magic, FAKE_IMAGE_MAGIC, sizeof(image->magic)))
        return NULL;
    if (image->size != size)
        fake_misuse("a counter-data image of %zu bytes was given as %zu", (size_t)image->size, size);
    return image;
}

static uint64_t *image_metrics(const struct fake_image *image)
{
    return (uint64_t *)(uintptr_t)(image + 1);
}

static struct fake_image_range *image_ranges(const struct fake_image *image)
{
    return (struct fake_image_range *)(image_metrics(image) + image->n_metrics);
}

static uint64_t hash_base(const char *metric)
{
    return fake_hash(FAKE_HASH_START, metric, strcspn(metric, "."));
}

/* A number from 0 to 1 for a hash. */
static double draw(uint64_t hash)
{
    return (double)(hash >> 11) / 9007199254740992.0;
}

/* Makes each bit of a text's end change all bits of its hash. Source: the finalizer of MurmurHash3. */
static uint64_t scatter(uint64_t hash)
{
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

/* Hash of the metrics in the image being evaluated: launches of another group of counters are other launches. */
static __thread uint64_t group;

/* The factor of a launch whose kernel varies on purpose. FAKE_VARY=4: a normal deviation of 4 %, different for another
 * FAKE_SEED; FAKE_VARY=modes: every second launch has twice of everything. FAKE_SLOW=30 with a number: 30 % more of
 * everything. */
static double variation(const char *how, const char *metric, const char *kernel, size_t range)
{
    const char *seed = getenv("FAKE_SEED"), *slow = getenv("FAKE_SLOW");
    double sum = 0;

    if (!strcmp(how, "modes"))
        return (double)(range % 2 + 1);
    for (int i = 0; i < 12; i++) { /* a sum with a deviation of 1 */
        char text[1024];

        snprintf(text, sizeof(text), "%d\n%s\n%s\n%s\n%zu\n%llx", i, seed ? seed : "", metric, kernel, range,
                 (unsigned long long)group);
        sum += draw(scatter(fake_hash(FAKE_HASH_START, text, strlen(text))));
    }
    return (1 + strtod(slow ? slow : "0", NULL) / 100) * (1 + strtod(how, NULL) / 100 * (sum - 6));
}

double fake_cupti_value(const char *metric, const char *kernel, size_t range)
{
    size_t length = strlen(metric), ratio = strlen(".ratio");
    const char *how = getenv("FAKE_VARY");
    char text[1024];
    double u;

    snprintf(text, sizeof(text), "%s\n%s\n%zu", metric, kernel, how ? 0 : range);
    u = draw(fake_hash(FAKE_HASH_START, text, strlen(text)));
    if (how)
        return (1 + 1e6 * u) * variation(how, metric, kernel, range);
    if (strstr(metric, "pct"))
        return 100 * u;
    if (length > ratio && !strcmp(metric + length - ratio, ".ratio"))
        return 32 * u;
    if (strstr(metric, "per_second"))
        return 1e9 * (1 + u);
    return (double)(int64_t)(1 + 1e6 * u);
}

/* Every pass must have seen the same kernels, and they the same memory: that is what replay promises. Other processes
 * have other addresses. */
static void check_range(const struct fake_image *image, const struct fake_image_range *range)
{
    for (uint32_t p = 1; p < image->n_passes; p++) {
        if ((range->pass[p].chain != range->pass[0].chain && !image->processes) ||
            range->pass[p].kernels != range->pass[0].kernels)
            fake_misuse("range %s (%s): pass %u ran other kernels than pass 0", range->name, range->kernel, p);
        if (!image->processes && range->pass[p].data_chain != range->pass[0].data_chain)
            fake_misuse("range %s (%s): the memory in pass %u is not that of pass 0", range->name, range->kernel, p);
    }
}

static bool scheduled(const struct fake_image *image, const char *metric)
{
    const uint64_t *metrics = image_metrics(image), base = hash_base(metric);

    for (uint64_t i = 0; i < image->n_metrics; i++)
        if (metrics[i] == base)
            return true;
    return !image->n_metrics; /* a session's: its layout has no names */
}

static fake_passes bits(size_t from, size_t n)
{
    return (((fake_passes)1 << (n - 1) << 1) - 1) << from;
}

/* Returns true if the passes of the image are lists of their own, each from an add call, so that one of them has values
 * by itself. */
static bool takes_turns(const struct fake_image *image)
{
    const struct known_config *k = find_config(image->config);
    const uint64_t *at = NULL;
    struct added a;

    return k && next_added(k, &at, &a) && a.passes;
}

/* Returns true if the current config image counted the metric, in passes that the range was seen in. */
static bool counted(const struct fake_image *image, const struct fake_image_range *range, const char *metric)
{
    const struct known_config *k = find_config(image->config);
    uint64_t base = hash_base(metric);
    const uint64_t *at = NULL;
    struct added a;

    while (k && next_added(k, &at, &a)) {
        fake_passes needed = a.passes ? bits(a.pass, a.passes) : 0;

        for (uint64_t i = 0; i < a.n && (range->passes_seen & needed) == needed; i++)
            if (a.bases[i] == base)
                return true;
    }
    return !k;
}

/* The factor of a launch whose kind is known before it runs: with FAKE_VARY=number, launches with an odd number among
 * their arguments have twice of everything; with FAKE_VARY=after, those that follow another kernel do. */
static double kind_of(const struct fake_image_range *range)
{
    const char *how = getenv("FAKE_VARY");

    if (how && !strcmp(how, "number"))
        return 1 + range->number % 2;
    return how && !strcmp(how, "after") ? 1 + range->after_another : 1;
}

/* Returns true if a metric counts what kernels write to host memory. */
static bool is_of_host_writes(const char *metric)
{
    static const char sectors[] = "lts__t_sectors_srcunit_tex_aperture_sysmem_op_";
    const char *at = strstr(metric, sectors);

    if (!at)
        return false;
    at += strlen(sectors);
    return !strncmp(at, "write.", 6) || !strncmp(at, "red.", 4) || !strncmp(at, "atom.", 5);
}

static double value_in(const char *metric, const struct fake_image_range *range, size_t index)
{
    const char *best = getenv("FAKE_BEST_BLOCK");
    double threads = best ? atof(best) : 0;

    if (is_of_host_writes(metric) && !range->reaches_host)
        return 0;
    if (threads <= 0 || strncmp(metric, "gpu__time_duration.", strlen("gpu__time_duration.")) != 0)
        return kind_of(range) * fake_cupti_value(metric, range->kernel, index);
    return 1000 * (1 + fabs(range->threads - threads) / threads);
}

/* See cupti_pm.h. */
static bool evaluate_sample(CUpti_Profiler_Host_EvaluateToGpuValues_Params *params, CUptiResult *result);

static CUptiResult evaluate_real(const CUpti_Profiler_Host_EvaluateToGpuValues_Params *params)
{
    CUpti_Profiler_Host_EvaluateToGpuValues_Params copy = *params;
    struct host *h = host_of(params->pHostObject);
    CUptiResult result = h ? open_real(h) : CUPTI_ERROR_INVALID_PARAMETER;

    REAL("cuptiProfilerHostEvaluateToGpuValues", CUpti_Profiler_Host_EvaluateToGpuValues_Params);
    copy.pHostObject = h ? h->real : NULL;
    return result ? result : real(&copy);
}

CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *params)
{
    const struct fake_image_range *range;
    const struct fake_image *image;
    CUptiResult result;

    ENTER(params, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
    if (evaluate_sample(params, &result))
        return result;
    image = own_image(params->pCounterDataImage, params->counterDataImageSize);
    if (!image)
        return evaluate_real(params);
    if (!params->pHostObject || params->rangeIndex >= image->n_ranges)
        return CUPTI_ERROR_INVALID_PARAMETER;
    range = &image_ranges(image)[params->rangeIndex];
    if (range->passes_seen == bits(0, image->n_passes))
        check_range(image, range);
    else if (!takes_turns(image))
        return CUPTI_ERROR_UNKNOWN;
    group = image->n_metrics ? fake_hash(FAKE_HASH_START, image_metrics(image), image->n_metrics * sizeof(uint64_t))
                             : image->config;
    for (size_t i = 0; i < params->numMetrics; i++) {
        const char *metric = params->ppMetricNames[i];

        params->pMetricValues[i] = scheduled(image, metric) && counted(image, range, metric)
                                       ? value_in(metric, range, params->rangeIndex)
                                       : NAN;
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetRangeName(CUpti_Profiler_Host_GetRangeName_Params *params)
{
    const struct fake_image *image;

    ENTER(params, CUpti_Profiler_Host_GetRangeName_Params);
    image = own_image(params->pCounterDataImage, params->counterDataImageSize);
    if (!image) {
        REAL("cuptiProfilerHostGetRangeName", CUpti_Profiler_Host_GetRangeName_Params);
        return real(params);
    }
    if (params->rangeIndex >= image->n_ranges)
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->pRangeName = strdup(image_ranges(image)[params->rangeIndex].name);
    return CUPTI_SUCCESS;
}

/* --- library and device --- */

static bool initialised, is_out; /* it has left the driver alone, see cupti/detach.c */
static bool in_use;              /* for records, or a watch of images */

/* Returns false if another copy of this library is attached to the driver. */
static bool attach(void)
{
    const void *none = NULL, *own = &initialised;

    return !fake_driver() || atomic_compare_exchange_strong(fake_driver()->tool, &none, own) || none == own;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
    COUNT_CALL();
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

static const struct {
    CUptiResult code;
    const char *name, *text;
} results[] = {
#define RESULT(code, text)                                                                                             \
    {                                                                                                                  \
        code, #code, text                                                                                              \
    }
    RESULT(CUPTI_SUCCESS, "no error"),
    RESULT(CUPTI_ERROR_INVALID_PARAMETER, "a parameter is not valid"),
    RESULT(CUPTI_ERROR_INVALID_DEVICE, "the device is not valid"),
    RESULT(CUPTI_ERROR_INVALID_CONTEXT, "the context is not valid"),
    RESULT(CUPTI_ERROR_INVALID_OPERATION, "the operation is not allowed now"),
    RESULT(CUPTI_ERROR_OUT_OF_MEMORY, "out of memory"),
    RESULT(CUPTI_ERROR_HARDWARE, "hardware error"),
    RESULT(CUPTI_ERROR_NOT_INITIALIZED, "not initialised"),
    RESULT(CUPTI_ERROR_INVALID_METRIC_NAME, "no such metric"),
    RESULT(CUPTI_ERROR_HARDWARE_BUSY, "the counters are in use"),
    RESULT(CUPTI_ERROR_NOT_SUPPORTED, "not supported"),
    RESULT(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "virtual device"),
    RESULT(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "not permitted"),
    RESULT(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another subscriber"),
    RESULT(CUPTI_ERROR_INVALID_CHIP_NAME, "no such chip"),
    RESULT(CUPTI_ERROR_UNKNOWN, "unknown error"),
#undef RESULT
};

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    COUNT_CALL();
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].code == result) {
            *text = results[i].name;
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **text)
{
    COUNT_CALL();
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].code == result) {
            *text = results[i].text;
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    struct timespec ts;

    COUNT_CALL();
    need_whole(__func__);
    clock_gettime(CLOCK_REALTIME, &ts);
    *timestamp = (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext ctx, uint32_t *id)
{
    COUNT_CALL();
    need_usable(ctx, __func__);
    is_out = false;
    *id = (uint32_t)fake_driver()->context_id(ctx);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext ctx, uint32_t *id)
{
    COUNT_CALL();
    ctx = ctx ? ctx : fake_driver()->context_current();
    need_usable(ctx, __func__);
    *id = (uint32_t)fake_driver()->context_device(ctx);
    return CUPTI_SUCCESS;
}

enum { LEGACY_STREAM_ID = 7, PER_THREAD_STREAM_ID = 8, FIRST_CREATED_STREAM_ID = 13 };

/* Created streams are numbered in the order of the first questions about them, per context. */
static uint32_t number_of(CUcontext ctx, CUstream stream)
{
    static struct {
        CUcontext ctx;
        CUstream stream;
        uint32_t id;
    } asked[4096];
    static size_t n;
    uint32_t next = FIRST_CREATED_STREAM_ID;
    LOCKED();

    for (size_t i = 0; i < n; i++) {
        if (asked[i].ctx == ctx && asked[i].stream == stream)
            return asked[i].id;
        next += asked[i].ctx == ctx;
    }
    if (n == sizeof(asked) / sizeof(asked[0]))
        fake_misuse("more than %zu streams asked for", n);
    asked[n].ctx = ctx, asked[n].stream = stream, asked[n].id = next;
    return asked[n++].id;
}

CUptiResult cuptiGetStreamIdEx(CUcontext ctx, CUstream stream, uint8_t per_thread, uint32_t *id)
{
    COUNT_CALL();
    ctx = ctx ? ctx : fake_driver()->context_current();
    need_usable(ctx, __func__);
    if (stream == CU_STREAM_LEGACY || (!stream && !per_thread)) {
        *id = LEGACY_STREAM_ID;
        return CUPTI_SUCCESS;
    }
    if (stream == CU_STREAM_PER_THREAD || !stream) {
        *id = PER_THREAD_STREAM_ID;
        return CUPTI_SUCCESS;
    }
    if (fake_driver()->stream_ordinal(ctx, stream) < 0)
        return CUPTI_ERROR_INVALID_STREAM;
    *id = number_of(ctx, stream);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *params)
{
    ENTER(params, CUpti_Profiler_Initialize_Params);
    need_whole(__func__);
    if (!fake_driver() || !fake_driver()->initialised() || is_out)
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (!attach())
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (!in_use) /* as CUPTI 13.0 on an H200 */
        fake_driver()->refuse_green();
    initialised = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params *params)
{
    ENTER(params, CUpti_Profiler_DeInitialize_Params);
    initialised = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *params)
{
    ENTER(params, CUpti_Device_GetChipName_Params);
    need_whole(__func__);
    if (!fake_driver())
        return CUPTI_ERROR_NOT_INITIALIZED;
    params->pChipName = fake_driver()->chip_name((int)params->deviceIndex);
    return params->pChipName ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_DEVICE;
}

CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *params)
{
    ENTER(params, CUpti_Profiler_DeviceSupported_Params);
    if (!initialised)
        return CUPTI_ERROR_NOT_INITIALIZED;
    params->isSupported = params->architecture = params->sli = params->vGpu = params->confidentialCompute =
        params->cmp = params->wsl = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return CUPTI_SUCCESS;
}

static bool others_count(CUcontext ctx);

CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *params)
{
    static const char image[64] = AVAILABILITY_MAGIC;
    CUcontext ctx;

    ENTER(params, CUpti_Profiler_GetCounterAvailability_Params);
    if (!initialised)
        return CUPTI_ERROR_NOT_INITIALIZED;
    ctx = params->ctx ? params->ctx : fake_driver()->context_current();
    need_usable(ctx, __func__);
    {
        LOCKED();
        if (others_count(ctx))
            return CUPTI_ERROR_HARDWARE_BUSY;
    }
    if (params->pCounterAvailabilityImage) {
        if (params->counterAvailabilityImageSize < sizeof(image))
            return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
        memcpy(params->pCounterAvailabilityImage, image, sizeof(image));
    }
    params->counterAvailabilityImageSize = sizeof(image);
    return CUPTI_SUCCESS;
}

/* --- range profiler --- */

struct CUpti_RangeProfiler_Object {
    CUcontext ctx;
    bool disabled, configured, started, running, graph_seen, decoded, one_pass, ran;
    struct fake_image_range *in_range; /* of its own `ranges` */
    uint64_t *metrics;                 /* hashes of base names, of the last GetCounterDataSize */
    size_t n_metrics;
    CUpti_ProfilerRange mode;
    struct fake_image *image;
    struct fake_image_range *ranges; /* of the passes since SetConfig */
    size_t max_ranges, n_ranges, depth, n_dropped;
    size_t room; /* of the configuration that it first ran with: it never has more, as seen on the real library */
    uint32_t n_passes, pass;
    uint64_t config;  /* hash of the config image in force */
    uint32_t awaited; /* passes of its first configuration: no other is reported complete, as seen there */
    long taken;       /* of device memory, in bytes */
    bool session;     /* it belongs to session.c, */
    bool on;          /* and its switch is on; it is off otherwise */
    bool patched;     /* patched code has counted for it */
    struct CUpti_RangeProfiler_Object *next;
};

static CUpti_RangeProfiler_Object *objects;

/* Returns true if another context of the device has the counters: from its first pass on, or from the start of its
 * session. */
static bool others_count(CUcontext ctx)
{
    int device = fake_driver()->context_device(ctx);

    for (const CUpti_RangeProfiler_Object *object = objects; object; object = object->next)
        if (!object->disabled && (object->session || object->started) && object->ctx != ctx &&
            fake_driver()->context_state(object->ctx) == FAKE_LIVE &&
            fake_driver()->context_device(object->ctx) == device)
            return true;
    return false;
}

/* Returns the object after the checks common to all calls. */
static CUpti_RangeProfiler_Object *object_of(CUpti_RangeProfiler_Object *given, const char *function)
{
    CUpti_RangeProfiler_Object *object = objects;

    while (object && object != given)
        object = object->next;
    if (!object)
        fake_misuse("%s: not a range profiler object", function);
    if (object->disabled)
        fake_misuse("%s: the range profiler was disabled", function);
    need_usable(object->ctx, function);
    return object;
}

/* As on the real library: a name that was already pushed in this pass is the same range. */
static struct fake_image_range *open_range(CUpti_RangeProfiler_Object *object, const char *name)
{
    size_t index = object->n_ranges;
    struct fake_image_range *range;

    for (size_t i = 0; name && i < object->n_ranges; i++)
        if (!strcmp(object->ranges[i].name, name))
            return &object->ranges[i];
    if (object->session && index >= object->max_ranges) /* silently lost, as seen there */
        return NULL;
    if (index >= object->max_ranges || index >= object->image->max_ranges || index >= object->room) {
        object->n_dropped++;
        return NULL;
    }
    object->n_ranges++;
    range = &object->ranges[index];
    if (name)
        snprintf(range->name, sizeof(range->name), "%s", name);
    else
        snprintf(range->name, sizeof(range->name), "%zu", index);
    range->passes_seen |= (fake_passes)1 << object->pass;
    range->pass[object->pass] = (struct fake_image_pass){0, FAKE_HASH_START, FAKE_HASH_START};
    return range;
}

/* Returns true if the previous launch was of another kernel, counted or not. */
static bool comes_after_another(const struct fake_launch *launch)
{
    static uint64_t last;
    uint64_t name = fake_hash(FAKE_HASH_START, launch->name, strlen(launch->name));
    bool other = last != name;

    last = name;
    return other;
}

static void add_kernel(CUpti_RangeProfiler_Object *object, struct fake_image_range *range,
                       const struct fake_launch *launch, bool after_another)
{
    struct fake_image_pass *pass = &range->pass[object->pass];

    if (!pass->kernels++)
        snprintf(range->kernel, sizeof(range->kernel), "%s", launch->name);
    range->number = launch->number;
    range->after_another = after_another;
    range->reaches_host |= (uint32_t)launch->reaches_host;
    range->threads = launch->block[0] * launch->block[1] * launch->block[2];
    pass->chain = fake_hash(pass->chain, launch->name, strlen(launch->name));
    pass->chain = fake_hash(pass->chain, launch->grid, sizeof(launch->grid));
    pass->chain = fake_hash(pass->chain, launch->block, sizeof(launch->block));
    pass->chain = fake_hash(pass->chain, launch->cluster, sizeof(launch->cluster));
    pass->chain = fake_hash(pass->chain, &launch->shared_bytes, sizeof(launch->shared_bytes));
    pass->chain = fake_hash(pass->chain, &launch->cooperative, sizeof(launch->cooperative));
    pass->chain = fake_hash(pass->chain, &launch->args_hash, sizeof(launch->args_hash));
    pass->data_chain = fake_hash(pass->data_chain, &launch->data_hash, sizeof(launch->data_hash));
}

/* Between SetConfig and Disable: other parts of CUPTI do not get the counters then, as seen with CUPTI 13.0. */
static bool has_counters(const CUpti_RangeProfiler_Object *object)
{
    return object->configured && !object->disabled && fake_driver()->context_state(object->ctx) == FAKE_LIVE;
}

static bool range_profiler_has_counters(CUcontext ctx)
{
    const CUpti_RangeProfiler_Object *object = objects;

    while (object && (object->ctx != ctx || !has_counters(object)))
        object = object->next;
    return object;
}

static void note_activity(const struct fake_launch *launch);
static void note_own_kernel(const struct fake_launch *launch);
static bool patches(CUcontext ctx);
static void get_to_know(const struct fake_launch *launch, bool patched);
static void sample_launch(const struct fake_launch *launch);
static void count_launch(const struct fake_launch *launch);
static bool sampled_one_at_a_time(CUcontext ctx);

/* Call it when that may have changed. */
static void set_pace(CUcontext ctx)
{
    bool serial = sampled_one_at_a_time(ctx);

    for (const CUpti_RangeProfiler_Object *object = objects; object; object = object->next)
        serial |= object->ctx == ctx && object->running && object->mode == CUPTI_AutoRange &&
                  (!object->session || object->on);
    fake_driver()->one_at_a_time(ctx, serial);
}
static void sample_kernel(const struct fake_launch *launch);

/* Returns true if a pass that counts is running in the launch's context. */
static bool counts_in_ranges(const struct fake_launch *launch)
{
    for (const CUpti_RangeProfiler_Object *object = objects; object; object = object->next)
        if (object->running && object->ctx == launch->ctx && object->mode == CUPTI_AutoRange && !launch->from_graph &&
            (!object->session || object->on))
            return true;
    return false;
}

/* Shows a launch to all parts except the ranges. */
static void show_launch(const struct fake_launch *launch)
{
    note_activity(launch);
    if (counts_in_ranges(launch))
        note_own_kernel(launch);
    get_to_know(launch, patches(launch->ctx));
    sample_launch(launch);
    count_launch(launch);
    sample_kernel(launch);
}

/* Called by the fake driver for each kernel, in the thread that launches it. */
static void on_launch(const struct fake_launch *launch, void *data)
{
    LOCKED();

    bool after_another = comes_after_another(launch);

    (void)data;
    if (launch->cubin) /* only ranges include the driver's own kernels */
        show_launch(launch);
    for (CUpti_RangeProfiler_Object *object = objects; object; object = object->next) {
        struct fake_image_range *range;

        if (!object->running || object->ctx != launch->ctx || (object->session && !object->on))
            continue;
        if (object->mode == CUPTI_AutoRange && launch->from_graph) {
            object->graph_seen = true; /* no range of its own, and Stop fails: as measured */
            continue;
        }
        if (object->mode == CUPTI_AutoRange)
            range = open_range(object, NULL);
        else
            range = object->in_range;
        if (range)
            add_kernel(object, range, launch, after_another);
    }
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_RangeProfiler_Enable_Params);
    LOCKED();
    if (!initialised)
        return CUPTI_ERROR_NOT_INITIALIZED;
    need_usable(params->ctx, __func__);
    for (object = objects; object; object = object->next)
        if (object->ctx == params->ctx && !object->disabled)
            fake_misuse("%s: the context has a range profiler or a session already", __func__);
    object = calloc(1, sizeof(*object));
    if (!object)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    object->ctx = params->ctx;
    object->next = objects;
    objects = object;
    fake_driver()->set_launch_hook(on_launch, NULL);
    params->pRangeProfilerObject = object;
    return CUPTI_SUCCESS;
}

static void take_memory(CUpti_RangeProfiler_Object *object)
{
    const char *bytes = getenv("FAKE_PROFILER_TAKES");

    if (object->taken || !bytes)
        return;
    object->taken = atol(bytes);
    fake_driver()->take(object->ctx, object->taken);
}

static void give_memory(CUpti_RangeProfiler_Object *object)
{
    static bool kept;
    const char *bytes = getenv("FAKE_PROFILER_TAKES"), *stays = bytes ? strchr(bytes, ':') : NULL;

    if (!object->taken)
        return;
    if (stays && !kept)
        object->taken -= atol(stays + 1);
    kept = true;
    fake_driver()->take(object->ctx, -object->taken);
    object->taken = 0;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_RangeProfiler_Disable_Params);
    if (getenv("FAKE_PROFILER_TAKES") && fake_driver()->context_current())
        fake_driver()->wait(); /* like code that frees memory: a caller must not rely on less */
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    if (object->running)
        fake_misuse("%s: a pass is running: Stop comes first", __func__);
    object->disabled = true;
    give_memory(object);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_RangeProfiler_GetCounterDataSize_Params);
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    if (!params->pMetricNames || !params->numMetrics || !params->maxNumOfRanges ||
        params->maxNumRangeTreeNodes < params->maxNumOfRanges)
        return CUPTI_ERROR_INVALID_PARAMETER;
    object->metrics = fake_realloc(object->metrics, params->numMetrics * sizeof(*object->metrics));
    if (!object->metrics)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    object->n_metrics = params->numMetrics;
    for (size_t i = 0; i < params->numMetrics; i++)
        object->metrics[i] = hash_base(params->pMetricNames[i]);
    params->counterDataSize = sizeof(struct fake_image) + params->numMetrics * sizeof(*object->metrics) +
                              params->maxNumOfRanges * sizeof(struct fake_image_range);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *params)
{
    CUpti_RangeProfiler_Object *object;
    struct fake_image *image;
    size_t fixed;

    ENTER(params, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    fixed = sizeof(*image) + object->n_metrics * sizeof(*object->metrics);
    if (!params->pCounterData || !object->n_metrics || params->counterDataSize < fixed)
        return CUPTI_ERROR_INVALID_PARAMETER;
    image = (void *)params->pCounterData;
    memset(image, 0, params->counterDataSize);
    memcpy(image->magic, FAKE_IMAGE_MAGIC, sizeof(image->magic));
    image->size = params->counterDataSize;
    image->n_metrics = object->n_metrics;
    image->max_ranges = (uint32_t)((params->counterDataSize - fixed) / sizeof(struct fake_image_range));
    memcpy(image_metrics(image), object->metrics, object->n_metrics * sizeof(*object->metrics));
    return CUPTI_SUCCESS;
}

/* Only the real host library can read its config images. */
static CUptiResult passes_of(const uint8_t *config, size_t size, uint32_t *n)
{
    CUpti_Profiler_Host_GetNumOfPasses_Params params = {CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE, NULL,
                                                        size, (uint8_t *)(uintptr_t)config, 0};
    CUptiResult result = count_passes(&params);

    *n = (uint32_t)params.numOfPasses;
    if (!result && (!*n || *n > FAKE_MAX_PASSES))
        fake_misuse("a config image of %u passes; the fake holds up to %d", *n, FAKE_MAX_PASSES);
    return result;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *params)
{
    CUpti_RangeProfiler_Object *object;
    CUptiResult result;

    ENTER(params, CUpti_RangeProfiler_SetConfig_Params);
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    if (object->running)
        fake_misuse("%s: a pass is running", __func__);
    if (!params->pConfig || !params->configSize || !params->maxRangesPerPass ||
        (params->range != CUPTI_AutoRange && params->range != CUPTI_UserRange) || params->numNestingLevels != 1 ||
        params->minNestingLevel != 1 || !own_image(params->pCounterDataImage, params->counterDataImageSize))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (object->started && object->mode != params->range) /* as seen on the real library */
        return CUPTI_ERROR_INVALID_OPERATION;
    if (params->replayMode != CUPTI_UserReplay && params->replayMode != CUPTI_ApplicationReplay)
        return CUPTI_ERROR_NOT_SUPPORTED; /* the fake cannot replay by itself */
    if (params->passIndex && params->replayMode != CUPTI_ApplicationReplay)
        return CUPTI_ERROR_INVALID_PARAMETER;
    object->one_pass = params->replayMode == CUPTI_ApplicationReplay;
    object->ran = false;
    if (!object->started) { /* it keeps the first one that it ran, as seen on the real library */
        result = passes_of(params->pConfig, params->configSize, &object->n_passes);
        if (result)
            return result;
        object->config = fake_hash(FAKE_HASH_START, params->pConfig, params->configSize);
    }
    if (!object->awaited)
        object->awaited = object->n_passes;
    object->image = (void *)params->pCounterDataImage;
    if (object->image->n_passes && !params->passIndex)
        fake_misuse("%s: the counter-data image holds what earlier passes left", __func__);
    if (params->passIndex && (object->image->n_passes != object->n_passes || params->passIndex >= object->n_passes))
        return CUPTI_ERROR_INVALID_PARAMETER; /* application replay continues the image of the earlier passes */
    object->mode = params->range;
    object->max_ranges = params->maxRangesPerPass;
    object->ranges = fake_realloc(object->ranges, object->max_ranges * sizeof(*object->ranges));
    if (!object->ranges)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    memset(object->ranges, 0, object->max_ranges * sizeof(*object->ranges));
    for (size_t i = 0; params->passIndex && i < object->max_ranges && i < object->image->n_ranges; i++)
        object->ranges[i] = image_ranges(object->image)[i];
    object->image->processes += params->passIndex != 0;
    object->configured = true;
    object->pass = object->started ? object->pass % object->n_passes : (uint32_t)params->passIndex;
    object->n_dropped = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_RangeProfiler_Start_Params);
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    if (!object->configured)
        fake_misuse("%s: SetConfig comes first", __func__);
    if (others_count(object->ctx))
        return CUPTI_ERROR_HARDWARE_BUSY;
    if (object->running)
        fake_misuse("%s: started already", __func__);
    if (object->one_pass && object->ran)
        fake_misuse("%s: application replay has one pass of a process", __func__);
    if (object->pass == object->n_passes && object->ranges[0].passes_seen)
        fake_misuse("%s: all %u passes were run; SetConfig begins anew", __func__, object->n_passes);
    object->pass %= object->n_passes;
    if (fake_driver()->context_capturing(object->ctx))
        fake_misuse("%s: a stream of the context is capturing", __func__);
    if (!object->started)
        object->room = object->max_ranges;
    object->running = object->started = true;
    take_memory(object);
    set_pace(object->ctx);
    object->graph_seen = false;
    object->n_ranges = 0;
    object->depth = 0;
    object->in_range = NULL;
    return CUPTI_SUCCESS;
}

/* Returns how many kernels the pass has seen within its ranges. */
static unsigned kernels_in_pass(const CUpti_RangeProfiler_Object *object)
{
    unsigned n = 0;

    for (size_t i = 0; i < object->n_ranges; i++)
        n += object->ranges[i].pass[object->pass].kernels;
    return n;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *params)
{
    static struct fake_counter counter = {__func__, 0, NULL};
    CUpti_RangeProfiler_Object *object;
    unsigned kernels;
    int injected;
    LOCKED();

    if (!params || params->structSize != CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE || params->pPriv)
        return CUPTI_ERROR_INVALID_PARAMETER;
    object = object_of(params->pRangeProfilerObject, __func__);
    if (!object->running)
        fake_misuse("%s: no pass is running", __func__);
    if (fake_count(&counter, &injected)) { /* a pass that cannot be stopped is over anyway */
        object->running = false;
        set_pace(object->ctx);
        object->depth = 0;
        return (CUptiResult)injected;
    }
    if (object->depth)
        fake_misuse("%s: a range is open", __func__);
    object->running = false;
    set_pace(object->ctx);
    kernels = kernels_in_pass(object);
    object->pass++;
    object->ran = true;
    object->decoded = false;
    params->passIndex = object->pass % object->n_passes;
    params->targetNestingLevel = 1;
    params->isAllPassSubmitted = object->pass == object->n_passes && object->n_passes == object->awaited;
    fake_log("pass pid=%d ctx=%llu pass=%u of %u ranges=%zu kernels=%u\n", (int)getpid(),
             (unsigned long long)fake_driver()->context_id(object->ctx), object->pass, object->n_passes,
             object->n_ranges, kernels);
    return object->graph_seen ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_RangeProfiler_PushRange_Params);
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    if (!object->running || object->mode != CUPTI_UserRange || !params->pRangeName)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (!object->depth++)
        object->in_range = open_range(object, params->pRangeName);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *params)
{
    CUpti_RangeProfiler_Object *object;

    ENTER(params, CUpti_RangeProfiler_PopRange_Params);
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    if (!object->running || object->mode != CUPTI_UserRange)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (!object->depth)
        fake_misuse("%s: no range is open", __func__);
    if (!--object->depth)
        object->in_range = NULL;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *params)
{
    CUpti_RangeProfiler_Object *object;
    struct fake_image *image;

    ENTER(params, CUpti_RangeProfiler_DecodeData_Params);
    LOCKED();
    object = object_of(params->pRangeProfilerObject, __func__);
    if (object->running)
        fake_misuse("%s: a pass is running", __func__);
    if (!object->configured || !object->pass)
        return CUPTI_ERROR_INVALID_OPERATION;
    image = object->image;
    if (!own_image((const void *)image, image->size))
        fake_misuse("%s: the counter-data image was overwritten", __func__);
    image->n_passes = object->n_passes;
    image->config = object->config;
    image->n_ranges = 0;
    for (size_t i = 0; i < object->max_ranges && i < image->max_ranges; i++) {
        image_ranges(image)[i] = object->ranges[i];
        image->n_ranges += object->ranges[i].passes_seen != 0;
    }
    params->numOfRangeDropped = object->decoded ? 0 : object->n_dropped;
    image->n_dropped = (uint32_t)object->n_dropped;
    object->n_dropped = 0;
    object->decoded = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *params)
{
    const struct fake_image *image;

    ENTER(params, CUpti_RangeProfiler_GetCounterDataInfo_Params);
    image = own_image(params->pCounterDataImage, params->counterDataImageSize);
    if (!image)
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->numTotalRanges = image->n_ranges;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *params)
{
    const struct fake_image *image;

    ENTER(params, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
    image = own_image(params->pCounterDataImage, params->counterDataImageSize);
    if (!image || params->rangeIndex >= image->n_ranges)
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->rangeName = image_ranges(image)[params->rangeIndex].name;
    return CUPTI_SUCCESS;
}

#include "cupti_pm.h"

#include "cupti/session.c"

#include "cupti/activity.c"
#include "cupti/code.c"
#include "cupti/pcsampling.c"
#include "cupti/sass.c"
#include "cupti/detach.c"
