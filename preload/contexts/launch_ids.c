#include "preload/contexts/launch_ids.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "base/wait_limits.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "report/model/model.h"

enum { KNOWN = 512 };

/* Ids by the driver's own ids, which are never reused. CUPTI's differ, and asking for them needs the gate. */
static struct {
    struct known {
        bool valid;
        unsigned long long driver_context, driver_stream;
        uint64_t context, stream;
    } slots[KNOWN];
} known;

static struct kp_lock *const lock = &kp_locks[KP_LOCK_LAUNCH_IDS];

/* Makes `ctx` current. *pushed: it was not, or the driver did not say. */
static bool enter(const struct kp_driver *d, CUcontext ctx, bool *pushed)
{
    CUcontext before = NULL;
    bool there = d->cuCtxGetCurrent(&before) == CUDA_SUCCESS && before == ctx;
    *pushed = !there && d->cuCtxPushCurrent(ctx) == CUDA_SUCCESS;
    return there || *pushed;
}

static void leave(const struct kp_driver *d, bool pushed)
{
    CUcontext popped;
    if (pushed)
        d->cuCtxPopCurrent(&popped);
}

/* Counts contexts that may have ended. */
static atomic_uint ended;

/* The last context of this thread and its device. */
static __thread struct {
    CUcontext ctx;
    CUdevice device;
    unsigned ended;
} last __attribute__((tls_model("initial-exec")));

void kp_place_forget(void)
{
    atomic_fetch_add(&ended, 1);
}

static int device_of(const struct kp_driver *d, CUcontext ctx, bool current)
{
    CUdevice device = -1;
    bool pushed = false;
    unsigned now = atomic_load(&ended);
    if (last.ctx == ctx && last.ended == now)
        return last.device;
    if (!current && !enter(d, ctx, &pushed))
        return -1;
    if (d->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        device = -1;
    leave(d, pushed);
    last.ctx = device < 0 ? NULL : ctx;
    last.device = device;
    last.ended = now;
    return device;
}

int kp_place_device(const struct kp_driver *d, const struct kp_launch *l)
{
    bool current;
    KP_GUARDED;
    CUcontext ctx = kp_launch_context(d, l, &current);
    return ctx ? device_of(d, ctx, current) : -1;
}

/* Fills the driver's ids of `k`. */
static bool read_key(const struct kp_driver *d, const struct kp_launch *l, CUcontext ctx, struct known *k)
{
    CUstream stream = kp_launch_stream(l);
    return d->cuCtxGetId(ctx, &k->driver_context) == CUDA_SUCCESS &&
           d->cuStreamGetId(stream, &k->driver_stream) == CUDA_SUCCESS;
}

static struct known *slot_of(const struct known *k)
{
    return &known.slots[(k->driver_stream * 31 + k->driver_context) % KNOWN];
}

static bool look_up(struct known *k)
{
    kp_lock_take(lock, KP_FOREVER);
    const struct known *s = slot_of(k);
    bool found = s->valid && s->driver_context == k->driver_context && s->driver_stream == k->driver_stream;
    if (found)
        *k = *s;
    kp_lock_give(lock);
    return found;
}

static void keep(const struct known *k)
{
    kp_lock_take(lock, KP_FOREVER);
    *slot_of(k) = *k;
    slot_of(k)->valid = true;
    kp_lock_give(lock);
}

/* Asks for ids inside the exclusive section. Unknown ids are 0, which no report has. */
static void ask(const struct kp_context_setup *setup, const struct kp_launch *l, CUcontext ctx, struct known *k,
                char **bad_input)
{
    struct kp_context *c = kp_gate_is_armed() ? kp_context_get(setup, ctx, bad_input) : NULL;
    if (!c)
        return;
    k->context = c->id;
    k->stream = kp_context_stream_id(setup, c, l->stream, l->ptsz);
}

static enum kp_reason find(const struct kp_context_setup *setup, const struct kp_launch *l, CUcontext ctx,
                           struct known *k, char **bad_input)
{
    bool has_key = read_key(setup->driver, l, ctx, k);
    if (has_key && look_up(k))
        return KP_REASON_NONE;
    KP_ALONE gate = kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE));
    if (!gate.in)
        return KP_REASON_BUSY;
    bool captures = kp_gate_captures() > 0; /* setting up a context could break a capture */
    if (!captures)
        ask(setup, l, ctx, k, bad_input);
    kp_gate_end_alone(&gate);
    if (has_key && k->context)
        keep(k);
    return captures ? KP_REASON_CAPTURE : KP_REASON_NONE;
}

enum kp_reason kp_place_ids(const struct kp_context_setup *setup, const struct kp_launch *l, uint64_t *context,
                            uint64_t *stream, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    struct known k = {.valid = false};
    bool current, pushed = false;
    enum kp_reason why = KP_REASON_NONE;
    *bad_input = NULL;
    KP_GUARDED;
    CUcontext ctx = kp_launch_context(d, l, &current);
    if (ctx && (current || enter(d, ctx, &pushed))) {
        why = find(setup, l, ctx, &k, bad_input);
        leave(d, pushed);
    }
    *context = k.context;
    *stream = k.stream;
    return why;
}
