#include "cupti/chosen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mapped_pages.h"
#include "cupti/internal.h"
#include "cupti/raw.h"

#ifndef MREMAP_DONTUNMAP /* since Linux 5.7; older kernels refuse it */
#define MREMAP_DONTUNMAP 4
#endif

enum {
    NAME_BYTES = 16,         /* the longest range name: ranges are named by number */
    SCRATCH_BYTES = 1 << 16, /* at least: an image for 192 launches needs 7,680 (CUPTI 13.0), another might need more */
};

/* What an image has room for. */
struct shape {
    const struct kp_config *list; /* NULL = there is no image */
    size_t launches;
};

struct kp_chosen {
    const struct kp_cupti *c;
    CUcontext ctx;
    uint8_t *data;      /* the image, emptied for each list that is loaded */
    size_t room;        /* of the image, for the largest list */
    size_t size;        /* of the current image */
    struct shape empty; /* the current image, until a pass writes to it */
    struct shape last;  /* the latest image */
    struct shape kept_of;
    uint8_t *kept_empty; /* a copy of such an image, of `kept_size` bytes */
    size_t kept_size;
    uint8_t *scratch;
    size_t scratch_size;
    size_t launches;
    const struct kp_config *smallest; /* list whose image starts a session */
    bool begun, configured, running, on;
    bool patched;           /* it has had a list that is counted by patched code */
    bool unended;           /* ending it has failed: CUPTI may still write to its memory */
    struct kp_chosen *kept; /* the previous one that did not end */
};

struct kp_chosen_data {
    uint8_t *data;
    size_t size, room; /* of the image and of its memory */
};

bool kp_chosen_available(const struct kp_cupti *c)
{
    return c->cuptiProfilerCounterDataImageCalculateSize && c->cuptiProfilerCounterDataImageInitialize &&
           c->cuptiProfilerCounterDataImageCalculateScratchBufferSize &&
           c->cuptiProfilerCounterDataImageInitializeScratchBuffer && c->cuptiProfilerBeginSession &&
           c->cuptiProfilerEndSession && c->cuptiProfilerSetConfig && c->cuptiProfilerUnsetConfig &&
           c->cuptiProfilerBeginPass && c->cuptiProfilerEndPass && c->cuptiProfilerEnableProfiling &&
           c->cuptiProfilerDisableProfiling && c->cuptiProfilerFlushCounterData && kp_raw_lays_out(c);
}

static CUpti_Profiler_CounterDataImageOptions options_of(const struct kp_config *list, size_t launches)
{
    return (CUpti_Profiler_CounterDataImageOptions){.structSize = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE,
                                                    .pCounterDataPrefix = list->layout,
                                                    .counterDataPrefixSize = list->layout_size,
                                                    .maxNumRanges = (uint32_t)launches,
                                                    .maxNumRangeTreeNodes = (uint32_t)launches,
                                                    .maxRangeNameLength = NAME_BYTES};
}

static int bytes_of(const struct kp_cupti *c, const CUpti_Profiler_CounterDataImageOptions *o, size_t *bytes)
{
    KP_PARAMS(CUpti_Profiler_CounterDataImage_CalculateSize_Params, p);
    p.pOptions = o;
    p.sizeofCounterDataImageOptions = o->structSize;
    int rc = KP_CALL(c, cuptiProfilerCounterDataImageCalculateSize, &p);
    *bytes = p.counterDataImageSize;
    return rc;
}

int kp_chosen_bytes(const struct kp_cupti *c, const struct kp_config *lists, size_t n, size_t launches, size_t *bytes)
{
    int rc = 0;
    *bytes = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        if (!lists[i].layout)
            continue;
        const CUpti_Profiler_CounterDataImageOptions o = options_of(&lists[i], launches);
        size_t one = 0;
        rc = bytes_of(c, &o, &one);
        if (one > *bytes)
            *bytes = one;
    }
    return rc;
}

/* ---- the image ---- */

/* Makes the scratch memory fit the current image. Allocates it on first use. */
static int make_scratch(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params, c);
    KP_PARAMS(CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params, i);
    c.counterDataImageSize = i.counterDataImageSize = s->size;
    c.pCounterDataImage = i.pCounterDataImage = s->data;
    int rc = KP_CALL(s->c, cuptiProfilerCounterDataImageCalculateScratchBufferSize, &c);
    if (!rc && !s->scratch) {
        s->scratch_size = c.counterDataScratchBufferSize;
        s->scratch = malloc(s->scratch_size > SCRATCH_BYTES ? s->scratch_size : SCRATCH_BYTES);
        rc = s->scratch ? 0 : -ENOMEM;
    }
    if (!rc && c.counterDataScratchBufferSize > s->scratch_size && c.counterDataScratchBufferSize > SCRATCH_BYTES)
        rc = -ENOSPC;
    if (rc)
        return rc;
    i.counterDataScratchBufferSize = c.counterDataScratchBufferSize;
    i.pCounterDataScratchBuffer = s->scratch;
    return KP_CALL(s->c, cuptiProfilerCounterDataImageInitializeScratchBuffer, &i);
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    return a->list == b->list && a->launches == b->launches;
}

static void forget_kept(struct kp_chosen *s)
{
    kp_pages_give(s->kept_empty, s->kept_size);
    s->kept_empty = NULL;
    s->kept_of = (struct shape){.list = NULL};
}

/* Keeps a copy of the empty image: copying takes a third of the time of making one. */
static void keep_empty(struct kp_chosen *s, const struct shape *of)
{
    forget_kept(s);
    s->kept_empty = kp_pages_take(s->size);
    if (!s->kept_empty)
        return;
    memcpy(s->kept_empty, s->data, s->size);
    s->kept_size = s->size;
    s->kept_of = *of;
}

static int initialise(struct kp_chosen *s, const CUpti_Profiler_CounterDataImageOptions *o)
{
    KP_PARAMS(CUpti_Profiler_CounterDataImage_Initialize_Params, p);
    p.pOptions = o;
    p.sizeofCounterDataImageOptions = o->structSize;
    p.counterDataImageSize = s->size;
    p.pCounterDataImage = s->data;
    return KP_CALL(s->c, cuptiProfilerCounterDataImageInitialize, &p);
}

/* Makes an empty image for `launches` launches per pass of the list. */
static int make_image(struct kp_chosen *s, const struct kp_config *list, size_t launches)
{
    const struct shape shape = {.list = list, .launches = launches};
    if (same_shape(&shape, &s->empty))
        return 0;
    const CUpti_Profiler_CounterDataImageOptions o = options_of(list, launches);
    int rc = bytes_of(s->c, &o, &s->size);
    if (!rc && s->size > s->room)
        rc = -ENOSPC;
    if (rc)
        return rc;
    if (same_shape(&shape, &s->kept_of))
        memcpy(s->data, s->kept_empty, s->size);
    else
        rc = initialise(s, &o);
    if (!rc && same_shape(&shape, &s->last) && !same_shape(&shape, &s->kept_of))
        keep_empty(s, &shape);
    if (!rc)
        rc = make_scratch(s);
    s->last = shape;
    s->empty = rc ? (struct shape){.list = NULL} : shape;
    return rc;
}

/* Makes room for the image of any list. */
static int make_room(struct kp_chosen *s, const struct kp_config *lists, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lists[i].layout && (!s->smallest || lists[i].layout_size < s->smallest->layout_size))
            s->smallest = &lists[i];
    if (!s->smallest)
        return -EINVAL;
    int rc = kp_chosen_bytes(s->c, lists, n, s->launches, &s->room);
    return rc || (s->data = kp_pages_take(s->room)) ? rc : -ENOMEM;
}

static void *copy_image(const struct kp_chosen *s)
{
    void *to = kp_pages_take(s->room);
    if (to)
        memcpy(to, s->data, s->size);
    return to ? to : MAP_FAILED;
}

/* Hands the image over, and leaves its address without one. Copies it if mremap cannot help. The kernel chooses the
 * place, because it may refuse a given address only after it has given up the old one. */
static struct kp_chosen_data *take_image(struct kp_chosen *s)
{
    struct kp_chosen_data *d = calloc(1, sizeof(*d));
    void *to = d ? mremap(s->data, s->room, s->room, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) : MAP_FAILED;
    if (d && to == MAP_FAILED)
        to = copy_image(s);
    if (to == MAP_FAILED) {
        free(d);
        return NULL;
    }
    d->data = to;
    d->size = s->size;
    d->room = s->room;
    return d;
}

/* Releases the image's memory: the next pass makes another image. */
static void give_image(struct kp_chosen *s)
{
    s->empty = (struct shape){.list = NULL};
    madvise(s->data, s->room, MADV_DONTNEED);
}

void kp_chosen_read(const struct kp_chosen_data *d, const uint8_t **data, size_t *size)
{
    if (data)
        *data = d->data;
    *size = d->size;
}

void kp_chosen_free(struct kp_chosen_data *d)
{
    if (!d)
        return;
    kp_pages_give(d->data, d->room);
    free(d);
}

/* ---- the session ---- */

/* A pass had fewer ranges than it should have. */
static atomic_bool lacked;

bool kp_chosen_lacks(void)
{
    return !atomic_exchange(&lacked, true);
}

/* Returns how many ranges to ask for. KP_VENDOR (CUPTI 13.0, H200): a session has two buffers of that many ranges; a
 * pass fills both, and silently drops what comes after. Each range needs 0.55 MB of device memory, and 0.4 ms. */
static size_t ranges_to_ask(const struct kp_chosen *s)
{
    bool two = !strcmp(kp_cupti_version(s->c), "13.0") && !atomic_load(&lacked);
    return two ? (s->launches + 1) / 2 : s->launches;
}

int kp_chosen_wake(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_BeginSession_Params, p);
    p.ctx = s->ctx;
    p.counterDataImageSize = s->room;
    p.pCounterDataImage = s->data;
    p.range = CUPTI_AutoRange;
    p.replayMode = CUPTI_UserReplay;
    p.maxRangesPerPass = ranges_to_ask(s);
    p.maxLaunchesPerPass = s->launches;
    int rc = kp_cupti_room();
    if (!rc)
        rc = make_image(s, s->smallest, s->launches);
    p.counterDataScratchBufferSize = s->scratch_size;
    p.pCounterDataScratchBuffer = s->scratch;
    if (!rc)
        rc = KP_CALL(s->c, cuptiProfilerBeginSession, &p);
    s->begun = !rc;
    return rc;
}

bool kp_chosen_rests(const struct kp_chosen *s)
{
    return !s->begun;
}

int kp_chosen_open(const struct kp_cupti *c, CUcontext ctx, const struct kp_config *lists, size_t n, size_t launches,
                   struct kp_chosen **out)
{
    struct kp_chosen *s = calloc(1, sizeof(*s));
    *out = NULL;
    if (!s)
        return -ENOMEM;
    s->c = c;
    s->ctx = ctx;
    s->launches = launches;
    int rc = kp_cupti_room();
    if (!rc)
        rc = make_room(s, lists, n);
    if (!rc)
        rc = kp_chosen_wake(s);
    if (rc)
        kp_chosen_abandon(s);
    else
        *out = s;
    return rc;
}

/* Keeps a session that has not ended: CUPTI may still write to its memory. */
static void keep(struct kp_chosen *s)
{
    static struct kp_chosen *_Atomic kept;
    s->kept = atomic_exchange(&kept, s);
}

void kp_chosen_abandon(struct kp_chosen *s)
{
    if (!s)
        return;
    if (!kp_chosen_rests(s) || s->unended) {
        keep(s);
        return;
    }
    kp_pages_give(s->data, s->room);
    forget_kept(s);
    free(s->scratch);
    free(s);
}

static int unset(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_UnsetConfig_Params, p);
    p.ctx = s->ctx;
    int rc = s->configured ? KP_CALL(s->c, cuptiProfilerUnsetConfig, &p) : 0;
    s->configured &= rc != 0;
    return rc;
}

bool kp_chosen_takes(const struct kp_chosen *s, const struct kp_config *list)
{
    return !s->patched || kp_config_patches(list);
}

bool kp_chosen_fits(const struct kp_chosen *s, const struct kp_config *list, size_t launches)
{
    size_t bytes = 0;
    return launches <= s->launches && list->layout && !kp_chosen_bytes(s->c, list, 1, launches, &bytes) &&
           bytes <= s->room;
}

int kp_chosen_load(struct kp_chosen *s, const struct kp_config *list, size_t launches)
{
    if (!kp_chosen_takes(s, list) || launches > s->launches)
        return -EINVAL;
    int rc = unset(s);
    if (!rc)
        rc = make_image(s, list, launches);
    if (rc)
        return rc;
    s->patched = kp_config_patches(list);
    KP_PARAMS(CUpti_Profiler_SetConfig_Params, c);
    c.ctx = s->ctx;
    c.pConfig = list->image;
    c.configSize = list->size;
    c.minNestingLevel = 1;
    c.numNestingLevels = 1;
    c.targetNestingLevel = 1;
    rc = KP_CALL(s->c, cuptiProfilerSetConfig, &c);
    s->configured = !rc;
    return rc;
}

int kp_chosen_pass(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_BeginPass_Params, b);
    b.ctx = s->ctx;
    int rc = KP_CALL(s->c, cuptiProfilerBeginPass, &b);
    s->running = !rc;
    s->empty = (struct shape){.list = NULL};
    return rc;
}

int kp_chosen_start(struct kp_chosen *s, const struct kp_config *list)
{
    int rc = kp_chosen_load(s, list, s->launches);
    return rc ? rc : kp_chosen_pass(s);
}

int kp_chosen_count(struct kp_chosen *s, bool on)
{
    KP_PARAMS(CUpti_Profiler_EnableProfiling_Params, e);
    KP_PARAMS(CUpti_Profiler_DisableProfiling_Params, d);
    if (s->on == on)
        return 0;
    e.ctx = d.ctx = s->ctx;
    int rc = on ? KP_CALL(s->c, cuptiProfilerEnableProfiling, &e) : KP_CALL(s->c, cuptiProfilerDisableProfiling, &d);
    if (!rc)
        s->on = on;
    return rc;
}

int kp_chosen_end(struct kp_chosen *s, bool *last)
{
    KP_PARAMS(CUpti_Profiler_EndPass_Params, e);
    *last = false;
    if (!s->running)
        return 0;
    int rc = kp_chosen_count(s, false);
    if (rc)
        return rc;
    s->running = false;
    e.ctx = s->ctx;
    rc = KP_CALL(s->c, cuptiProfilerEndPass, &e);
    *last = e.allPassesSubmitted != 0;
    return rc;
}

/* Writes the counts of the passes into the image. */
static int flush(const struct kp_chosen *s, size_t *dropped)
{
    KP_PARAMS(CUpti_Profiler_FlushCounterData_Params, f);
    f.ctx = s->ctx;
    int rc = KP_CALL(s->c, cuptiProfilerFlushCounterData, &f);
    *dropped = f.numRangesDropped;
    return rc;
}

static int count_ranges(const struct kp_chosen *s, size_t *n)
{
    KP_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, i);
    i.pCounterDataImage = s->data;
    i.counterDataImageSize = s->size;
    int rc = KP_CALL(s->c, cuptiRangeProfilerGetCounterDataInfo, &i);
    *n = i.numTotalRanges;
    return rc;
}

int kp_chosen_take(struct kp_chosen *s, struct kp_chosen_data **data, size_t *n, size_t *dropped)
{
    *data = NULL;
    *n = *dropped = 0;
    int rc = flush(s, dropped);
    if (!rc)
        rc = count_ranges(s, n);
    if (!rc)
        rc = (*data = take_image(s)) ? 0 : -ENOMEM;
    give_image(s);
    return rc;
}

int kp_chosen_stop(struct kp_chosen *s, struct kp_chosen_data **data, size_t *n, size_t *dropped)
{
    bool last;
    *data = NULL;
    *n = *dropped = 0;
    if (!s->running)
        return 0;
    int rc = kp_chosen_end(s, &last);
    if (!rc)
        return kp_chosen_take(s, data, n, dropped);
    if (!s->running) /* otherwise ending is tried again, and needs it */
        give_image(s);
    return rc;
}

bool kp_chosen_runs(const struct kp_chosen *s)
{
    return s->running;
}

static int end_session(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_EndSession_Params, p);
    p.ctx = s->ctx;
    int rc = KP_CALL(s->c, cuptiProfilerEndSession, &p);
    if (rc == KP_CUPTI_LOST) /* a lost CUPTI has nothing to end */
        rc = 0;
    s->unended = rc != 0;
    s->begun = s->configured = s->patched = false;
    give_image(s);
    return rc;
}

int kp_chosen_end_again(struct kp_chosen *s)
{
    return s->unended ? end_session(s) : kp_chosen_rest(s);
}

int kp_chosen_rest(struct kp_chosen *s)
{
    bool last, ran = s->running;
    size_t dropped;
    int rc = kp_chosen_end(s, &last);
    if (!rc && ran)
        rc = flush(s, &dropped);
    if (!s->begun || s->running)
        return rc;
    rc = unset(s); /* the pass's failure no longer matters */
    if (rc && rc != KP_CUPTI_LOST)
        return rc;
    return end_session(s);
}

int kp_chosen_close(struct kp_chosen *s)
{
    int rc = s ? kp_chosen_rest(s) : 0;
    if (rc)
        keep(s);
    else
        kp_chosen_abandon(s);
    return rc;
}
