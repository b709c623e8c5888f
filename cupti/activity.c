/*
 * Activity records, for two purposes, possibly at the same time.
 *
 * A probe reads facts about a launch that only a record has: the shared-memory configuration that the driver chose, and
 * the registers that it really gives a thread. (A Hopper kernel never runs with fewer than 16, whatever its attribute
 * says.) The configuration follows no published rule: it is not the smallest carve-out that fits the resident blocks.
 * Both are therefore read from one extra launch, once per function, block size and shared-memory size.
 *
 * A watch hands the records of all kernels, copies and memsets to a sink, with their times.
 *
 * CUPTI's buffer callbacks carry no user pointer, so the current collection is a static. Threads: callers serialise;
 * CUPTI also calls back on threads of its own.
 */
#include "cupti/target.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "cupti/internal.h"

enum {
    BUFFER_SIZE = 1 << 20,
    BUFFER_ALIGN = 8,
    MOST_BUFFERS = 64, /* how many CUPTI holds at a time; without a buffer it drops records, and counts them */
    ENDED_ONLY = 0,    /* for a flush: whole buffers whose activities have ended */
};

static struct {
    const struct kp_cupti *c;
    struct kp_executed *records;
    size_t n, cap;
    bool registered;
    _Atomic(kp_record_sink *) sinks[2]; /* of the watch, and of kp_activity_on */
    atomic_int buffers;
    _Atomic(uint8_t *) spare; /* the last one that was given back */
    atomic_uint_fast64_t dropped;
    bool kernels;  /* the watch is for kernels alone */
    bool watching; /* the watch's kinds are on */
} run;

enum { OF_WATCH, OF_ON, SINKS };

/* Kernels come first. */
static const CUpti_ActivityKind watched[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                             CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

enum { WATCHED = sizeof watched / sizeof *watched };

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
    kp_work_begin(); /* CUPTI calls from within the program's calls */
    *buffer = NULL;
    if (atomic_fetch_add(&run.buffers, 1) < MOST_BUFFERS && !(*buffer = atomic_exchange(&run.spare, NULL)))
        *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_SIZE);
    if (!*buffer)
        atomic_fetch_sub(&run.buffers, 1);
    *size = *buffer ? BUFFER_SIZE : 0;
    *max_records = 0;
    kp_work_end();
}

/* ---- the two receivers ---- */

/* CUPTI launches a kernel of its own after each counted range; it is no activity of the program. Only its name and its
 * shape in the record give it away (seen with CUPTI 13.0 on GH100). */
static bool is_own(const CUpti_ActivityKernel10 *k)
{
    return k->name && !strcmp(k->name, "WaitNs") && k->gridX == 1 && k->gridY == 1 && k->gridZ == 1 && k->blockX == 1 &&
           k->blockY == 1 && k->blockZ == 1;
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
    e->in_graph = k->graphId != 0;
}

/* Returns a phrase for a direction of a copy; A is an array of the device. */
static const char *direction(unsigned kind)
{
    static const char *const phrases[] = {
        [CUPTI_ACTIVITY_MEMCPY_KIND_HTOD] = "memcpy HtoD", [CUPTI_ACTIVITY_MEMCPY_KIND_DTOH] = "memcpy DtoH",
        [CUPTI_ACTIVITY_MEMCPY_KIND_HTOA] = "memcpy HtoA", [CUPTI_ACTIVITY_MEMCPY_KIND_ATOH] = "memcpy AtoH",
        [CUPTI_ACTIVITY_MEMCPY_KIND_ATOA] = "memcpy AtoA", [CUPTI_ACTIVITY_MEMCPY_KIND_ATOD] = "memcpy AtoD",
        [CUPTI_ACTIVITY_MEMCPY_KIND_DTOA] = "memcpy DtoA", [CUPTI_ACTIVITY_MEMCPY_KIND_DTOD] = "memcpy DtoD",
        [CUPTI_ACTIVITY_MEMCPY_KIND_HTOH] = "memcpy HtoH", [CUPTI_ACTIVITY_MEMCPY_KIND_PTOP] = "memcpy PtoP",
    };
    const char *phrase = kind < sizeof phrases / sizeof *phrases ? phrases[kind] : NULL;
    return phrase ? phrase : "memcpy";
}

#define PLACED(what, r)                                                                                                \
    {                                                                                                                  \
        .kind = (what), .device = (int)(r)->deviceId, .context_id = (r)->contextId, .stream_id = (r)->streamId,        \
        .start_ns = (int64_t)(r)->start, .end_ns = (int64_t)(r)->end, .correlation = (r)->correlationId,               \
        .ordinal = -1, .graph = (r)->graphId                                                                           \
    }

static void hand_kernel(kp_record_sink *sink, const CUpti_ActivityKernel10 *k)
{
    struct kp_device_record r = {PLACED(KP_ACTIVITY_KERNEL, k), k->name ? k->name : "",
                                 (uint32_t)k->dynamicSharedMemory};
    const int32_t shape[] = {k->gridX, k->gridY, k->gridZ, k->blockX, k->blockY, k->blockZ};
    for (int i = 0; i < 3; i++) {
        r.activity.grid[i] = (uint32_t)shape[i];
        r.activity.block[i] = (uint32_t)shape[3 + i];
    }
    sink(&r);
}

static void hand_copy(kp_record_sink *sink, const CUpti_ActivityMemcpy6 *m)
{
    struct kp_device_record r = {PLACED(KP_ACTIVITY_COPY, m), direction(m->copyKind), 0};
    r.activity.bytes = m->bytes;
    sink(&r);
}

static void hand_peer_copy(kp_record_sink *sink, const CUpti_ActivityMemcpyPtoP4 *m)
{
    struct kp_device_record r = {PLACED(KP_ACTIVITY_COPY, m), direction(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP), 0};
    r.activity.bytes = m->bytes;
    sink(&r);
}

static void hand_set(kp_record_sink *sink, const CUpti_ActivityMemset4 *m)
{
    struct kp_device_record r = {PLACED(KP_ACTIVITY_SET, m), "memset", 0};
    r.activity.bytes = m->bytes;
    sink(&r);
}

static void hand_to(kp_record_sink *sink, const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        hand_kernel(sink, (const CUpti_ActivityKernel10 *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        hand_copy(sink, (const CUpti_ActivityMemcpy6 *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
        hand_peer_copy(sink, (const CUpti_ActivityMemcpyPtoP4 *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        hand_set(sink, (const CUpti_ActivityMemset4 *)record);
}

static void hand_on(const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && is_own((const CUpti_ActivityKernel10 *)record))
        return;
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        note((const CUpti_ActivityKernel10 *)record);
    for (int i = 0; i < SINKS; i++) {
        kp_record_sink *sink = atomic_load(&run.sinks[i]);
        if (sink)
            hand_to(sink, record);
    }
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t lost = 0;
    (void)size;
    kp_work_begin();
    while (valid && KP_CALL(run.c, cuptiActivityGetNextRecord, buffer, valid, &record) == CUPTI_SUCCESS)
        hand_on(record);
    if (buffer) {
        free(atomic_exchange(&run.spare, buffer));
        atomic_fetch_sub(&run.buffers, 1);
    }
    if (atomic_load(&run.sinks[OF_WATCH]) && run.c->cuptiActivityGetNumDroppedRecords &&
        KP_CALL(run.c, cuptiActivityGetNumDroppedRecords, ctx, stream, &lost) == CUPTI_SUCCESS)
        atomic_fetch_add(&run.dropped, lost);
    kp_work_end();
}

static int ready(const struct kp_cupti *c)
{
    run.c = c;
    if (run.registered)
        return 0;
    int rc = KP_CALL(c, cuptiActivityRegisterCallbacks, give_buffer, take_buffer);
    run.registered = !rc;
    return rc;
}

/* ---- the probe ---- */

bool kp_activity_available(const struct kp_cupti *c)
{
    return c->cuptiActivityRegisterCallbacks && c->cuptiActivityEnable && c->cuptiActivityDisable &&
           c->cuptiActivityFlushAll && c->cuptiActivityGetNextRecord;
}

int kp_activity_begin(const struct kp_cupti *c)
{
    run.records = NULL;
    run.n = run.cap = 0;
    int rc = ready(c);
    if (!rc && atomic_load(&run.sinks[OF_WATCH]))
        rc = KP_CALL(c, cuptiActivityFlushAll, ENDED_ONLY); /* the watch's records are not the probe's */
    return rc ? rc : KP_CALL(c, cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

int kp_activity_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n)
{
    *n = 0;
    run.records = records;
    run.n = 0;
    run.cap = cap;
    int rc = KP_CALL(c, cuptiActivityFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), rc2 = 0;
    if (!run.watching)
        rc2 = KP_CALL(c, cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    *n = run.n;
    run.records = NULL;
    return rc ? rc : rc2;
}

int kp_activity_on(const struct kp_cupti *c, kp_record_sink *sink)
{
    int rc = ready(c);
    if (rc)
        return rc;
    atomic_store(&run.sinks[OF_ON], sink);
    return run.watching ? 0 : KP_CALL(c, cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

int kp_activity_off(const struct kp_cupti *c)
{
    return run.watching ? 0 : KP_CALL(c, cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

void kp_activity_detached(void)
{
    run.registered = false;
}

/* ---- the watch ---- */

bool kp_watch_available(const struct kp_cupti *c)
{
    return kp_activity_available(c) && c->cuptiGetTimestamp;
}

uint64_t kp_watch_now(const struct kp_cupti *c)
{
    uint64_t now = 0;
    return KP_CALL(c, cuptiGetTimestamp, &now) == CUPTI_SUCCESS ? now : 0;
}

static int switch_kinds(const struct kp_cupti *c, bool on)
{
    int first = 0;
    for (int i = 0; i < (run.kernels ? 1 : WATCHED); i++) {
        int rc = on ? KP_CALL(c, cuptiActivityEnable, watched[i]) : KP_CALL(c, cuptiActivityDisable, watched[i]);
        /* A CUPTI may lack peer copies alone. */
        if (rc && !first && watched[i] != CUPTI_ACTIVITY_KIND_MEMCPY2)
            first = rc;
    }
    run.watching = on && !first;
    return first;
}

int kp_watch_begin(const struct kp_cupti *c, kp_record_sink *sink, bool kernels)
{
    int rc = ready(c);
    if (rc)
        return rc;
    run.kernels = kernels;
    atomic_store(&run.sinks[OF_WATCH], sink);
    rc = switch_kinds(c, true);
    if (rc) {
        switch_kinds(c, false);
        atomic_store(&run.sinks[OF_WATCH], NULL);
    }
    return rc;
}

int kp_watch_pause(const struct kp_cupti *c)
{
    int rc = KP_CALL(c, cuptiActivityFlushAll, ENDED_ONLY);
    int rc2 = switch_kinds(c, false);
    return rc ? rc : rc2;
}

int kp_watch_resume(const struct kp_cupti *c)
{
    return switch_kinds(c, true);
}

int kp_watch_flush(const struct kp_cupti *c, bool all)
{
    return KP_CALL(c, cuptiActivityFlushAll, all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : ENDED_ONLY);
}

uint64_t kp_watch_dropped(void)
{
    return atomic_load(&run.dropped);
}
