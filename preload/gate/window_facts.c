#include "preload/gate/window_facts.h"

#include <limits.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "preload/gate/fast_path.h"

/* Refusals by the driver that spoil a window: such a program makes errors all the time. */
enum { MOST_REFUSED = 16 };

/* The age, ms, from which a window closes when the program waits. A program killed after hours then loses little,
 * and closing takes a tenth of that. */
enum { OLD_MS = 2000 };

static atomic_uint epoch, unseen;
static atomic_long old_at_ms;
static atomic_uint_fast64_t opened;                /* windows so far */
static atomic_uint_fast64_t refused[MOST_REFUSED]; /* tickets of refused operations */

/* Dynamic shared memory of the launches in the open window: the most of each function, and the most of those that found
 * no place. Places are assigned inside the gate's exclusive section. */
enum { MOST_FUNCTIONS = 128 };
static struct {
    _Atomic(CUfunction) of;
    atomic_uint_fast64_t bytes;
} shared[MOST_FUNCTIONS];
static atomic_size_t n_shared;
static atomic_uint_fast64_t shared_by_others;
static atomic_bool watched, keeps_functions, by, replayed, spoiled, in_a_hurry, sets, met[KP_MET_KINDS];

bool kp_window_is_open(void)
{
    return atomic_load_explicit(&kp_gate_state.windows, memory_order_acquire);
}

bool kp_window_holds_back(void)
{
    return kp_window_takes_all() && !(atomic_load(&replayed) && atomic_load(&spoiled));
}

void kp_window_note_unseen(void)
{
    if (kp_window_is_open())
        atomic_fetch_add(&unseen, 1);
}

unsigned kp_flags_unseen(void)
{
    return atomic_load(&unseen);
}

bool kp_window_takes_all(void)
{
    return kp_window_is_open() && !atomic_load(&by);
}

bool kp_window_watches(void)
{
    return atomic_load_explicit(&watched, memory_order_acquire);
}

bool kp_window_closes_at_sync(void)
{
    return kp_flags_met(KP_MET_SHARED) || kp_flags_met(KP_MET_MANAGED) || kp_now_ms() > atomic_load(&old_at_ms);
}

bool kp_window_keeps(void)
{
    return kp_window_is_open() && atomic_load(&keeps_functions);
}

uint64_t kp_window_count(void)
{
    return atomic_load_explicit(&opened, memory_order_acquire);
}

void kp_window_spoil(void)
{
    atomic_store(&spoiled, true);
    atomic_store(&watched, false);
}

void kp_window_synchronised(void)
{
    if (kp_window_watches())
        atomic_fetch_add(&epoch, 1);
}

void kp_window_hurry(void)
{
    atomic_store(&in_a_hurry, true);
}

bool kp_window_needs_shared(CUfunction f, uint64_t bytes)
{
    bool needs = atomic_load(&shared_by_others) > bytes;
    size_t n = atomic_load(&n_shared);
    for (size_t i = 0; i < n && !needs; i++)
        needs = (!f || atomic_load(&shared[i].of) == f) && atomic_load(&shared[i].bytes) > bytes;
    return needs && kp_window_watches();
}

bool kp_window_sets_attributes(void)
{
    return atomic_load(&sets) && kp_window_watches();
}

void kp_window_shared_memory(void)
{
    atomic_store(&met[KP_MET_SHARED], true);
}

void kp_window_managed_memory(void)
{
    atomic_store(&met[KP_MET_MANAGED], true);
}

void kp_window_virtual_memory(void)
{
    atomic_store(&met[KP_MET_VIRTUAL], true);
}

void kp_window_heap_blocks(void)
{
    atomic_store(&met[KP_MET_HEAP_BLOCKS], true);
}

void kp_window_refused(uint64_t ticket)
{
    for (int i = 0; i < MOST_REFUSED; i++) {
        uint_fast64_t none = 0;
        if (atomic_compare_exchange_strong(&refused[i], &none, ticket))
            return;
    }
    kp_window_spoil();
}

/* ---- for this room ---- */

void kp_flags_opened(bool watches, bool keeps, bool lasts, bool lets_by)
{
    atomic_store(&by, lets_by);
    atomic_store(&keeps_functions, keeps);
    atomic_store(&spoiled, false);
    atomic_store(&shared_by_others, 0);
    atomic_store(&n_shared, 0);
    atomic_store(&sets, false);
    atomic_store(&old_at_ms, lasts ? LONG_MAX : kp_now_ms() + OLD_MS);
    atomic_fetch_add(&opened, 1);
    atomic_store(&replayed, watches);
    atomic_store(&watched, watches);
    atomic_store(&kp_gate_state.windows, 1);
}

void kp_flags_closed(void)
{
    atomic_store(&watched, false);
    atomic_store(&kp_gate_state.windows, 0);
}

bool kp_flags_spoiled(void)
{
    return atomic_load(&spoiled);
}

bool kp_flags_hurried(void)
{
    return atomic_load(&in_a_hurry);
}

void kp_flags_served(void)
{
    atomic_store(&met[KP_MET_SERVED], true);
}

bool kp_flags_met(enum kp_met what)
{
    return atomic_load(&met[what]);
}

unsigned kp_flags_epoch(void)
{
    return atomic_load(&epoch);
}

unsigned kp_flags_next_epoch(void)
{
    return atomic_fetch_add(&epoch, 1);
}

static void raise_to(atomic_uint_fast64_t *most, uint64_t bytes)
{
    if (bytes > atomic_load(most))
        atomic_store(most, bytes);
}

void kp_flags_note_shared(CUfunction f, uint64_t bytes)
{
    size_t i = 0, n = atomic_load(&n_shared);
    if (!bytes)
        return;
    while (i < n && atomic_load(&shared[i].of) != f)
        i++;
    if (i == MOST_FUNCTIONS) {
        raise_to(&shared_by_others, bytes);
    } else if (i < n) {
        raise_to(&shared[i].bytes, bytes);
    } else {
        atomic_store(&shared[i].of, f);
        atomic_store(&shared[i].bytes, bytes);
        atomic_store(&n_shared, n + 1);
    }
}

void kp_flags_note_setting(void)
{
    atomic_store(&sets, true);
}

void kp_flags_each_refused(void (*tell)(void *arg, uint64_t ticket), void *arg)
{
    for (int r = 0; r < MOST_REFUSED; r++) {
        uint64_t ticket = atomic_exchange(&refused[r], 0);
        if (ticket)
            tell(arg, ticket);
    }
}
