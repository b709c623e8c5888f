#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"
#include "cupti/source.h"

enum {
    RECORDS = 4096,           /* taken at once */
    SCRATCH = 16 << 20,       /* bytes of host memory between the device's buffer and the records */
    DEVICE_BUFFER = 32 << 20, /* as in ncu */
    WORKER_SLEEP_MS = 10,     /* CUPTI's threads may sleep, because samples are taken launch by launch */
    MOST_ROUNDS = 1 << 16,    /* a library that always claims to have more must not hang the program */
};

struct kp_pcsamp {
    const struct kp_cupti *c;
    CUcontext ctx;
    int interval;
    size_t buffer;
    char **names; /* of the reasons, by index */
    size_t n_names;
    CUpti_PCSamplingData *taken, *left; /* filled by take; and what remains when sampling is disabled */
    struct kp_pcsamp *next;
};

/* The ones that CUPTI refused to end: its threads may still write to their records, so they are never freed. */
static struct kp_pcsamp *_Atomic kept;

static bool available(const struct kp_cupti *c)
{
    return c->cuptiPCSamplingEnable && c->cuptiPCSamplingDisable && c->cuptiPCSamplingSetConfigurationAttribute &&
           c->cuptiPCSamplingGetConfigurationAttribute && c->cuptiPCSamplingGetNumStallReasons &&
           c->cuptiPCSamplingGetStallReasons && c->cuptiPCSamplingStart && c->cuptiPCSamplingStop &&
           c->cuptiPCSamplingGetData;
}

/* ---- records ---- */

static void free_records(CUpti_PCSamplingData *d)
{
    if (!d)
        return;
    if (d->pPcData)
        free(d->pPcData[0].stallReason);
    free(d->pPcData);
    free(d);
}

/* Makes records; their reasons share one block, which the first record points to. */
static CUpti_PCSamplingData *make_records(size_t records, size_t reasons)
{
    CUpti_PCSamplingData *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->size = sizeof(*d);
    d->collectNumPcs = records;
    d->pPcData = calloc(records, sizeof(*d->pPcData));
    CUpti_PCSamplingStallReason *block = calloc(records * (reasons + 1), sizeof(*block));
    if (!d->pPcData || !block) {
        free(block);
        free(d->pPcData);
        free(d);
        return NULL;
    }
    for (size_t i = 0; i < records; i++) {
        d->pPcData[i].size = sizeof(*d->pPcData);
        d->pPcData[i].stallReason = block + i * (reasons + 1);
    }
    return d;
}

/* ---- reasons ---- */

/* Keeps names by index, which may differ from their order in the list. */
static int keep_names(struct kp_pcsamp *p, const uint32_t *indexes, char *const *names, size_t n)
{
    size_t highest = 0;
    for (size_t i = 0; i < n; i++)
        if (indexes[i] > highest && indexes[i] < UINT16_MAX)
            highest = indexes[i];
    p->names = calloc(highest + 1, sizeof(*p->names));
    if (!p->names)
        return -ENOMEM;
    p->n_names = highest + 1;
    for (size_t i = 0; i < n; i++)
        if (indexes[i] <= highest && !p->names[indexes[i]] && !(p->names[indexes[i]] = strdup(names[i])))
            return -ENOMEM;
    for (size_t i = 0; i < p->n_names; i++)
        if (!p->names[i] && !(p->names[i] = strdup("")))
            return -ENOMEM;
    return 0;
}

static int ask_names(struct kp_pcsamp *p, size_t n)
{
    CUpti_PCSamplingGetStallReasonsParams get = {.size = CUpti_PCSamplingGetStallReasonsParamsSize, .ctx = p->ctx};
    char *block = calloc(n + 1, CUPTI_STALL_REASON_STRING_SIZE);
    get.numStallReasons = n;
    get.stallReasonIndex = calloc(n + 1, sizeof(*get.stallReasonIndex));
    get.stallReasons = calloc(n + 1, sizeof(*get.stallReasons));
    int rc = -ENOMEM;
    if (block && get.stallReasonIndex && get.stallReasons) {
        for (size_t i = 0; i < n; i++)
            get.stallReasons[i] = block + i * CUPTI_STALL_REASON_STRING_SIZE;
        rc = KP_CALL(p->c, cuptiPCSamplingGetStallReasons, &get);
        if (!rc)
            rc = keep_names(p, get.stallReasonIndex, get.stallReasons, n);
    }
    free(get.stallReasons);
    free(get.stallReasonIndex);
    free(block);
    return rc;
}

static int read_reasons(struct kp_pcsamp *p)
{
    size_t n = 0;
    CUpti_PCSamplingGetNumStallReasonsParams get = {
        .size = CUpti_PCSamplingGetNumStallReasonsParamsSize, .ctx = p->ctx, .numStallReasons = &n};
    int rc = KP_CALL(p->c, cuptiPCSamplingGetNumStallReasons, &get);
    return rc ? rc : ask_names(p, n);
}

/* ---- configuration ---- */

static int configure(struct kp_pcsamp *p, int interval)
{
    CUpti_PCSamplingConfigurationInfo info[] = {
        {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE,
         .attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED},
        {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL,
         .attributeData.enableStartStopControlData.enableStartStopControl = 1},
        {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE,
         .attributeData.scratchBufferSizeData.scratchBufferSize = SCRATCH},
        {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE,
         .attributeData.hardwareBufferSizeData.hardwareBufferSize = p->buffer},
        {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN,
         .attributeData.workerThreadPeriodicSleepSpanData.workerThreadPeriodicSleepSpan = WORKER_SLEEP_MS},
        {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER,
         .attributeData.samplingDataBufferData.samplingDataBuffer = p->left},
        {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD,
         .attributeData.samplingPeriodData.samplingPeriod = (uint32_t)(interval + KP_PCSAMP_INTERVAL_BASE)},
    };
    CUpti_PCSamplingConfigurationInfoParams set = {.size = CUpti_PCSamplingConfigurationInfoParamsSize, .ctx = p->ctx};
    set.pPCSamplingConfigurationInfo = info;
    set.numAttributes = sizeof(info) / sizeof(*info) - (interval == KP_PCSAMP_INTERVAL_AUTO);
    int rc = KP_CALL(p->c, cuptiPCSamplingSetConfigurationAttribute, &set);
    for (size_t i = 0; !rc && i < set.numAttributes; i++)
        rc = (int)info[i].attributeStatus;
    return rc;
}

static int read_interval(struct kp_pcsamp *p)
{
    CUpti_PCSamplingConfigurationInfo info = {.attributeType =
                                                  CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD};
    CUpti_PCSamplingConfigurationInfoParams get = {.size = CUpti_PCSamplingConfigurationInfoParamsSize, .ctx = p->ctx};
    get.pPCSamplingConfigurationInfo = &info;
    get.numAttributes = 1;
    int rc = KP_CALL(p->c, cuptiPCSamplingGetConfigurationAttribute, &get);
    p->interval = (int)info.attributeData.samplingPeriodData.samplingPeriod - KP_PCSAMP_INTERVAL_BASE;
    return rc;
}

int kp_pcsamp_open(const struct kp_cupti *c, CUcontext ctx, int interval, size_t buffer, struct kp_pcsamp **out)
{
    CUpti_PCSamplingEnableParams enable = {.size = CUpti_PCSamplingEnableParamsSize, .ctx = ctx};
    *out = NULL;
    if (!available(c))
        return -ENOSYS;
    struct kp_pcsamp *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->c = c;
    p->ctx = ctx;
    p->buffer = buffer ? buffer : DEVICE_BUFFER;
    int rc = KP_CALL(c, cuptiPCSamplingEnable, &enable);
    if (rc) {
        free(p);
        return rc;
    }
    rc = read_reasons(p);
    if (!rc && (!(p->taken = make_records(RECORDS, p->n_names)) || !(p->left = make_records(RECORDS, p->n_names))))
        rc = -ENOMEM;
    if (!rc)
        rc = configure(p, interval);
    if (!rc)
        rc = read_interval(p);
    if (rc)
        kp_pcsamp_close(p);
    else
        *out = p;
    return rc;
}

void kp_pcsamp_abandon(struct kp_pcsamp *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_names; i++)
        free(p->names[i]);
    free(p->names);
    free_records(p->taken);
    free_records(p->left);
    free(p);
}

int kp_pcsamp_close(struct kp_pcsamp *p)
{
    if (!p)
        return 0;
    CUpti_PCSamplingDisableParams disable = {.size = CUpti_PCSamplingDisableParamsSize, .ctx = p->ctx};
    int rc = KP_CALL(p->c, cuptiPCSamplingDisable, &disable);
    if (!rc) {
        kp_pcsamp_abandon(p);
        return 0;
    }
    kp_cupti_lose();
    p->next = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &p->next, p))
        ;
    return rc;
}

int kp_pcsamp_start(struct kp_pcsamp *p)
{
    CUpti_PCSamplingStartParams start = {.size = CUpti_PCSamplingStartParamsSize, .ctx = p->ctx};
    return KP_CALL(p->c, cuptiPCSamplingStart, &start);
}

int kp_pcsamp_stop(struct kp_pcsamp *p)
{
    CUpti_PCSamplingStopParams stop = {.size = CUpti_PCSamplingStopParamsSize, .ctx = p->ctx};
    return KP_CALL(p->c, cuptiPCSamplingStop, &stop);
}

int kp_pcsamp_interval(const struct kp_pcsamp *p)
{
    return p->interval;
}

size_t kp_pcsamp_buffer(const struct kp_pcsamp *p)
{
    return p->buffer;
}

const char *const *kp_pcsamp_reasons(const struct kp_pcsamp *p, size_t *n)
{
    *n = p->n_names;
    return (const char *const *)p->names;
}

/* Passes a record on. Records share the library's strings, one for each function, so they are not freed. */
static void hand_out(const struct kp_pcsamp *p, const CUpti_PCSamplingPCData *d,
                     void (*fn)(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples), void *arg)
{
    struct kp_pc pc = {.crc = (uint32_t)d->cubinCrc, .function = d->functionName, .offset = (uint32_t)d->pcOffset};
    if (!pc.function)
        return;
    for (size_t i = 0; i < d->stallReasonCount; i++) {
        size_t reason = d->stallReason[i].pcSamplingStallReasonIndex;
        if (reason < p->n_names && *p->names[reason] && d->stallReason[i].samples)
            fn(arg, &pc, reason, d->stallReason[i].samples);
    }
}

int kp_pcsamp_take(struct kp_pcsamp *p, struct kp_pcsamp_totals *totals,
                   void (*fn)(void *arg, const struct kp_pc *pc, size_t reason, uint64_t samples), void *arg)
{
    CUpti_PCSamplingGetDataParams get = {.size = CUpti_PCSamplingGetDataParamsSize, .ctx = p->ctx};
    CUpti_PCSamplingData *d = p->taken;
    get.pcSamplingData = d;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        d->totalNumPcs = d->remainingNumPcs = 0;
        d->totalSamples = d->droppedSamples = 0;
        int rc = KP_CALL(p->c, cuptiPCSamplingGetData, &get);
        if (rc)
            return rc;
        totals->samples += d->totalSamples;
        totals->dropped += d->droppedSamples;
        for (size_t i = 0; i < d->totalNumPcs && i < RECORDS; i++)
            hand_out(p, &d->pPcData[i], fn, arg);
        if (!d->remainingNumPcs || !d->totalNumPcs)
            break;
    }
    return 0;
}
