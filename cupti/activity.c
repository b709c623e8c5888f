/*
 * Facts of a launch that only an activity record has. They are the shared-memory configuration that the driver
 * chose, and the registers that it really gives a thread. (A Hopper kernel never runs with fewer than 16, whatever
 * its attribute says.) The configuration follows no published rule: it is not the smallest carve-out that fits the
 * resident blocks. So both are read from one extra launch, once for each function, block size and shared-memory
 * size.
 *
 * CUPTI's buffer callbacks carry no user pointer, so the current collection is a static. Threads: the callers
 * serialise.
 */
#include "cupti/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"

enum { BUFFER_SIZE = 1 << 20, BUFFER_ALIGN = 8 };

static struct {
    const struct kp_cupti *c;
    struct kp_executed *records;
    size_t n, cap;
    bool registered;
} run;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_SIZE);
    *size = *buffer ? BUFFER_SIZE : 0;
    *max_records = 0;
}

static void note(const CUpti_ActivityKernel10 *k)
{
    if (!run.records || run.n >= run.cap)
        return;
    struct kp_executed *e = &run.records[run.n++];
    snprintf(e->name, sizeof(e->name), "%s", k->name ? k->name : "");
    e->shared_config_size = k->sharedMemoryExecuted;
    e->block[0] = (uint32_t)k->blockX;
    e->block[1] = (uint32_t)k->blockY;
    e->block[2] = (uint32_t)k->blockZ;
    e->dynamic_shared = (uint32_t)k->dynamicSharedMemory;
    e->registers = k->registersPerThread;
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)ctx;
    (void)stream;
    (void)size;
    while (valid && run.c->cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            note((const CUpti_ActivityKernel10 *)record);
    free(buffer);
}

bool kp_activity_available(const struct kp_cupti *c)
{
    return c->cuptiActivityRegisterCallbacks && c->cuptiActivityEnable && c->cuptiActivityDisable &&
           c->cuptiActivityFlushAll && c->cuptiActivityGetNextRecord;
}

int kp_activity_begin(const struct kp_cupti *c)
{
    run.c = c;
    run.records = NULL;
    run.n = run.cap = 0;
    if (!run.registered) {
        int rc = c->cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
        if (rc)
            return rc;
        run.registered = true;
    }
    return c->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

int kp_activity_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n)
{
    run.records = records;
    run.n = 0;
    run.cap = cap;
    int rc = c->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    int rc2 = c->cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    *n = run.n;
    run.records = NULL;
    return rc ? rc : rc2;
}
