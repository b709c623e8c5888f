#include "preload/window/signs.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/lock.h"
#include "preload/window/window.h"

/* Operations of a window that the driver may refuse before it is given up: a program that errs all the time. */
enum { MOST_REFUSED = 16 };

/* A window that has been open for so long closes where the program waits, so that a program which is killed after hours
 * has lost little: closing takes a tenth of that, ms. */
enum { OLD_MS = 2000 };

static atomic_uint epoch;
static atomic_long old_at_ms;
static atomic_uint_fast64_t refused[MOST_REFUSED]; /* tickets of operations that the driver did not take */

static atomic_uint_fast64_t shared_bytes; /* the most dynamic shared memory of a launch in the open window */
static atomic_bool is_open, watches, spoiled, in_a_hurry, shared_memory, managed_memory, virtual_memory, heap_blocks;

bool kp_window_is_open(void)
{
    return atomic_load_explicit(&is_open, memory_order_acquire);
}

bool kp_window_watches(void)
{
    return atomic_load_explicit(&watches, memory_order_acquire);
}

bool kp_window_closes_at_sync(void)
{
    return atomic_load(&shared_memory) || atomic_load(&managed_memory) || kp_now_ms() > atomic_load(&old_at_ms);
}

void kp_window_spoil(void)
{
    atomic_store(&spoiled, true);
    atomic_store(&watches, false);
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

bool kp_window_needs_shared(uint64_t bytes)
{
    return kp_window_watches() && atomic_load(&shared_bytes) > bytes;
}

void kp_window_shared_memory(void)
{
    atomic_store(&shared_memory, true);
}

void kp_window_managed_memory(void)
{
    atomic_store(&managed_memory, true);
}

void kp_window_virtual_memory(void)
{
    atomic_store(&virtual_memory, true);
}

void kp_window_heap_blocks(void)
{
    atomic_store(&heap_blocks, true);
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

/* ---- the window's side ---- */

void kp_signs_open(bool watching)
{
    atomic_store(&spoiled, false);
    atomic_store(&shared_bytes, 0);
    atomic_store(&old_at_ms, kp_now_ms() + OLD_MS);
    atomic_store(&watches, watching);
    atomic_store(&is_open, true);
}

void kp_signs_closed(void)
{
    atomic_store(&watches, false);
    atomic_store(&is_open, false);
}

bool kp_signs_spoiled(void)
{
    return atomic_load(&spoiled);
}

bool kp_signs_in_a_hurry(void)
{
    return atomic_load(&in_a_hurry);
}

unsigned kp_signs_epoch(bool waits)
{
    return waits ? atomic_fetch_add(&epoch, 1) : atomic_load(&epoch);
}

void kp_signs_note_shared(uint64_t bytes)
{
    if (bytes > atomic_load(&shared_bytes))
        atomic_store(&shared_bytes, bytes);
}

uint64_t kp_signs_refused(void)
{
    uint64_t ticket = 0;
    for (int i = 0; !ticket && i < MOST_REFUSED; i++)
        ticket = atomic_exchange(&refused[i], 0);
    return ticket;
}

bool kp_signs_shared_memory(void)
{
    return atomic_load(&shared_memory);
}

bool kp_signs_managed_memory(void)
{
    return atomic_load(&managed_memory);
}

bool kp_signs_virtual_memory(void)
{
    return atomic_load(&virtual_memory);
}

bool kp_signs_heap_blocks(void)
{
    return atomic_load(&heap_blocks);
}
