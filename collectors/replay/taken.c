#include "collectors/replay/taken.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/debug.h"
#include "collectors/replay/by_device.h"
#include "collectors/replay/flush.h"
#include "collectors/replay/shadow.h"

static struct kp_by_device taken; /* of all contexts */
static atomic_uint_fast64_t gives;

uint64_t kp_taken_on(CUdevice device)
{
    return kp_by_device_sum(&taken, device);
}

uint64_t kp_taken_gives(void)
{
    return atomic_load(&gives);
}

/* Updates the context's part of the sums. */
static void tell(struct kp_taken *t, uint64_t counting, uint64_t lasting)
{
    atomic_fetch_add(&gives, counting - t->counting);
    t->counting = counting;
    t->lasting = lasting;
    kp_by_device_note(&taken, t->device, &t->told, counting + lasting);
}

static bool is_open(const struct kp_taken *t)
{
    return t && t->driver;
}

void kp_taken_open(struct kp_taken *t, const struct kp_driver *d, CUdevice device)
{
    *t = (struct kp_taken){.driver = d, .device = device, .open = true};
}

void kp_taken_close(struct kp_taken *t)
{
    if (is_open(t))
        tell(t, 0, 0);
}

/* Asks the driver. */
static void look(struct kp_taken *t)
{
    size_t left = 0, total;
    t->known = t->driver->cuMemGetInfo(&left, &total) == CUDA_SUCCESS;
    t->left = left;
    t->copies = kp_shadow_held_on(t->device) + kp_flush_held_on(t->device) + t->copied;
}

static uint64_t sum(uint64_t bytes, int64_t more)
{
    return more < 0 && bytes < (uint64_t)-more ? 0 : bytes + (uint64_t)more;
}

/* Asks again; returns how much more is used since, in bytes. */
static int64_t look_again(struct kp_taken *t)
{
    uint64_t left = t->left, copies = t->copies;
    bool known = t->known;
    look(t);
    return known && t->known ? (int64_t)(left - t->left) - (int64_t)(t->copies - copies) : 0;
}

/* Notes what was allocated since the driver was last asked. */
static void note(struct kp_taken *t)
{
    int64_t more = t->known ? look_again(t) : 0;
    if (!more)
        return;
    kp_debug(KP_DEBUG_REPLAY, "kprof uses %lld more bytes of device memory%s", (long long)more,
             t->enabled ? ", until the profiler is disabled" : "");
    if (t->enabled)
        tell(t, sum(t->counting, more), t->lasting);
    else
        tell(t, t->counting, sum(t->lasting, more));
}

void kp_taken_begin(struct kp_taken *t, bool looks)
{
    if (!is_open(t) || t->depth++)
        return;
    t->known = false;
    if (looks && t->open)
        look(t);
}

void kp_taken_end(struct kp_taken *t)
{
    if (!is_open(t) || --t->depth)
        return;
    note(t);
    t->known = false;
}

void kp_taken_window_over(struct kp_taken *t)
{
    if (is_open(t))
        t->open = t->enabled && !t->started;
}

void kp_taken_copied(struct kp_taken *t, uint64_t bytes)
{
    if (is_open(t))
        t->copied = bytes;
}

/* Ends a piece before the profiler's state changes. Outside kp_taken_begin the program may allocate meanwhile. */
static void change(struct kp_taken *t)
{
    if (t->known)
        note(t);
    else if (t->depth)
        look(t);
}

void kp_taken_enables(struct kp_taken *t)
{
    if (!is_open(t))
        return;
    change(t);
    tell(t, 0, t->lasting);
    t->enabled = t->open = true;
    t->started = false;
}

void kp_taken_disables(struct kp_taken *t)
{
    if (is_open(t))
        change(t);
}

/* What the first passes have left allocated lasts. */
void kp_taken_disabled(struct kp_taken *t)
{
    if (!is_open(t))
        return;
    int64_t rest = t->known ? (int64_t)t->counting + look_again(t) : 0;
    bool first = t->known && t->started && !t->left_over;
    t->left_over |= first;
    t->enabled = t->started = false;
    tell(t, 0, first && rest > 0 ? t->lasting + (uint64_t)rest : t->lasting);
}

void kp_taken_started(struct kp_taken *t)
{
    if (is_open(t))
        t->started = true;
}
