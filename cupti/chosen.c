#include "cupti/chosen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "cupti/internal.h"
#include "cupti/raw.h"

#ifndef MREMAP_DONTUNMAP /* of Linux 5.7; older kernels refuse it */
#define MREMAP_DONTUNMAP 4
#endif

/* The longest name of a range, which has a number for a name. */
enum { NAME_BYTES = 16 };

struct kp_chosen {
    const struct kp_cupti *c;
    CUcontext ctx;
    uint8_t *data; /* the image, a private view of a file that has it as it is before a pass */
    size_t size;
    uint8_t *scratch;
    size_t scratch_size;
    size_t launches;
    bool begun, configured, running, on;
    bool patched;           /* it has counted a list by patched code */
    struct kp_chosen *kept; /* the one before that did not end */
};

struct kp_chosen_data {
    uint8_t *data;
    size_t size;
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

static CUpti_Profiler_CounterDataImageOptions options_of(const uint8_t *prefix, size_t size, size_t launches)
{
    return (CUpti_Profiler_CounterDataImageOptions){.structSize = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE,
                                                    .pCounterDataPrefix = prefix,
                                                    .counterDataPrefixSize = size,
                                                    .maxNumRanges = (uint32_t)launches,
                                                    .maxNumRangeTreeNodes = (uint32_t)launches,
                                                    .maxRangeNameLength = NAME_BYTES};
}

int kp_chosen_bytes(const struct kp_cupti *c, const uint8_t *prefix, size_t size, size_t launches, size_t *bytes)
{
    const CUpti_Profiler_CounterDataImageOptions o = options_of(prefix, size, launches);
    KP_PARAMS(CUpti_Profiler_CounterDataImage_CalculateSize_Params, p);
    p.pOptions = &o;
    p.sizeofCounterDataImageOptions = o.structSize;
    int rc = KP_CALL(c, cuptiProfilerCounterDataImageCalculateSize, &p);
    *bytes = p.counterDataImageSize;
    return rc;
}

/* ---- the image ---- */

/* Writes the image as it is before a pass into the file. */
static int write_empty(const struct kp_chosen *s, int file, const CUpti_Profiler_CounterDataImageOptions *o)
{
    KP_PARAMS(CUpti_Profiler_CounterDataImage_Initialize_Params, p);
    uint8_t *view = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (view == MAP_FAILED)
        return -ENOMEM;
    p.pOptions = o;
    p.sizeofCounterDataImageOptions = o->structSize;
    p.counterDataImageSize = s->size;
    p.pCounterDataImage = view;
    int rc = KP_CALL(s->c, cuptiProfilerCounterDataImageInitialize, &p);
    munmap(view, s->size);
    return rc;
}

static int make_scratch(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params, p);
    p.counterDataImageSize = s->size;
    p.pCounterDataImage = s->data;
    int rc = KP_CALL(s->c, cuptiProfilerCounterDataImageCalculateScratchBufferSize, &p);
    if (rc)
        return rc;
    s->scratch_size = p.counterDataScratchBufferSize;
    s->scratch = malloc(s->scratch_size ? s->scratch_size : 1);
    if (!s->scratch)
        return -ENOMEM;
    KP_PARAMS(CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params, i);
    i.counterDataImageSize = s->size;
    i.pCounterDataImage = s->data;
    i.counterDataScratchBufferSize = s->scratch_size;
    i.pCounterDataScratchBuffer = s->scratch;
    return KP_CALL(s->c, cuptiProfilerCounterDataImageInitializeScratchBuffer, &i);
}

/* Makes an unnamed file of that size. Negative where the process may have none: beyond its limit of file sizes, the
 * kernel would send it a signal. */
static int make_file(size_t size)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur < size)
        return -1;
    return kp_descriptor_memory("kprof-counters");
}

/* Makes the image. A private view of a file is emptied in no time: pages that a pass wrote are given up. */
static int make_image(struct kp_chosen *s, const uint8_t *prefix, size_t size, size_t launches)
{
    const CUpti_Profiler_CounterDataImageOptions o = options_of(prefix, size, launches);
    int rc = kp_chosen_bytes(s->c, prefix, size, launches, &s->size);
    if (rc)
        return rc;
    int file = make_file(s->size);
    if (file < 0)
        return -ENOTSUP;
    rc = posix_fallocate(file, 0, (off_t)s->size) ? -ENOMEM
                                                  : write_empty(s, file, &o); /* a hole could lack memory later */
    void *data = rc ? MAP_FAILED : mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (data == MAP_FAILED)
        return rc ? rc : -ENOMEM;
    s->data = data;
    return make_scratch(s);
}

static void *copy_image(const struct kp_chosen *s)
{
    void *to = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to != MAP_FAILED)
        memcpy(to, s->data, s->size);
    return to;
}

/* Hands the image on, and leaves an empty one in its place. Without mremap's help it is copied. The kernel chooses the
 * place: before Linux 5.13 it refuses views of files only after it has given up a place that is named. The C library
 * passes a place on in any case, and the kernel refuses one that is no page's. */
static struct kp_chosen_data *take_image(struct kp_chosen *s)
{
    struct kp_chosen_data *d = calloc(1, sizeof(*d));
    void *to = d ? mremap(s->data, s->size, s->size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) : MAP_FAILED;
    if (d && to == MAP_FAILED)
        to = copy_image(s);
    if (to == MAP_FAILED) {
        free(d);
        return NULL;
    }
    d->data = to;
    d->size = s->size;
    return d;
}

/* Empties the image: a pass must not find what another one has left. */
static void empty_image(struct kp_chosen *s)
{
    madvise(s->data, s->size, MADV_DONTNEED);
}

void kp_chosen_read(const struct kp_chosen_data *d, const uint8_t **data, size_t *size)
{
    *data = d->data;
    *size = d->size;
}

void kp_chosen_free(struct kp_chosen_data *d)
{
    if (!d)
        return;
    munmap(d->data, d->size);
    free(d);
}

/* ---- the session ---- */

int kp_chosen_wake(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_BeginSession_Params, p);
    p.ctx = s->ctx;
    p.counterDataImageSize = s->size;
    p.pCounterDataImage = s->data;
    p.counterDataScratchBufferSize = s->scratch_size;
    p.pCounterDataScratchBuffer = s->scratch;
    p.range = CUPTI_AutoRange;
    p.replayMode = CUPTI_UserReplay;
    p.maxRangesPerPass = s->launches;
    p.maxLaunchesPerPass = s->launches;
    int rc = kp_cupti_room();
    if (!rc)
        rc = KP_CALL(s->c, cuptiProfilerBeginSession, &p);
    s->begun = !rc;
    return rc;
}

bool kp_chosen_rests(const struct kp_chosen *s)
{
    return !s->begun;
}

int kp_chosen_open(const struct kp_cupti *c, CUcontext ctx, const uint8_t *prefix, size_t size, size_t launches,
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
        rc = make_image(s, prefix, size, launches);
    if (!rc)
        rc = kp_chosen_wake(s);
    if (rc)
        kp_chosen_abandon(s);
    else
        *out = s;
    return rc;
}

void kp_chosen_abandon(struct kp_chosen *s)
{
    if (!s)
        return;
    if (s->data)
        munmap(s->data, s->size);
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

int kp_chosen_start(struct kp_chosen *s, const struct kp_config *list)
{
    if (!kp_chosen_takes(s, list))
        return -EINVAL;
    int rc = unset(s);
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
    if (rc)
        return rc;
    KP_PARAMS(CUpti_Profiler_BeginPass_Params, b);
    b.ctx = s->ctx;
    rc = KP_CALL(s->c, cuptiProfilerBeginPass, &b);
    s->running = !rc;
    return rc;
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

/* Ends the pass; afterwards the image has its data. */
static int end_pass(struct kp_chosen *s, size_t *dropped)
{
    KP_PARAMS(CUpti_Profiler_EndPass_Params, e);
    KP_PARAMS(CUpti_Profiler_FlushCounterData_Params, f);
    int rc = kp_chosen_count(s, false);
    if (rc)
        return rc;
    s->running = false;
    e.ctx = f.ctx = s->ctx;
    rc = KP_CALL(s->c, cuptiProfilerEndPass, &e);
    if (!rc)
        rc = KP_CALL(s->c, cuptiProfilerFlushCounterData, &f);
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

int kp_chosen_stop(struct kp_chosen *s, struct kp_chosen_data **data, size_t *n, size_t *dropped)
{
    *data = NULL;
    *n = *dropped = 0;
    if (!s->running)
        return 0;
    int rc = end_pass(s, dropped);
    if (!rc)
        rc = count_ranges(s, n);
    if (!rc)
        rc = (*data = take_image(s)) ? 0 : -ENOMEM;
    empty_image(s);
    return rc;
}

bool kp_chosen_runs(const struct kp_chosen *s)
{
    return s->running;
}

int kp_chosen_rest(struct kp_chosen *s)
{
    KP_PARAMS(CUpti_Profiler_EndSession_Params, p);
    size_t dropped;
    int rc = s->running ? end_pass(s, &dropped) : 0;
    if (!s->begun || s->running)
        return rc;
    rc = unset(s); /* a failure of the pass is over then */
    if (rc && rc != KP_CUPTI_LOST)
        return rc;
    p.ctx = s->ctx;
    rc = KP_CALL(s->c, cuptiProfilerEndSession, &p);
    s->begun = s->configured = s->patched = false;
    empty_image(s);
    return rc == KP_CUPTI_LOST ? 0 : rc; /* a CUPTI that is given up has nothing to end */
}

int kp_chosen_close(struct kp_chosen *s)
{
    static struct kp_chosen *_Atomic kept;
    int rc = s ? kp_chosen_rest(s) : 0;
    if (rc) /* CUPTI may still write to its memory */
        s->kept = atomic_exchange(&kept, s);
    else
        kp_chosen_abandon(s);
    return rc;
}
