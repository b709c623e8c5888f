#include "preload/program/unmapped_ranges.h"

#include <stddef.h>

#include "base/lock.h"
#include "base/room.h"

struct made {
    CUmemGenericAllocationHandle memory;
    CUdevice device;
};

static struct kp_lock *const lock = &kp_locks[KP_LOCK_FRESH];

/* Under the lock. Programs map what they make at once, so there are few. */
static struct made *made;
static size_t n_made;

static size_t place_of_handle(CUmemGenericAllocationHandle memory)
{
    size_t i = 0;
    while (i < n_made && made[i].memory != memory)
        i++;
    return i;
}

/* Memory that is not noted closes windows when it is mapped, nothing worse. */
static void take_handle_out(CUmemGenericAllocationHandle memory)
{
    size_t i = place_of_handle(memory);
    if (i < n_made)
        made[i] = made[--n_made];
}

void kp_fresh_made(CUmemGenericAllocationHandle memory, const CUmemAllocationProp *what)
{
    bool plain = what && what->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                 what->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                 !(what->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL);
    kp_lock_take(lock, KP_FOREVER);
    take_handle_out(memory); /* the driver reuses handles */
    if (plain && KP_ROOM(made, n_made))
        made[n_made++] = (struct made){memory, what->location.id};
    kp_lock_give(lock);
}

void kp_fresh_used(CUmemGenericAllocationHandle memory)
{
    kp_lock_take(lock, KP_FOREVER);
    take_handle_out(memory);
    kp_lock_give(lock);
}

bool kp_fresh_is(CUmemGenericAllocationHandle memory, CUdevice device)
{
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of_handle(memory);
    bool is = i < n_made && made[i].device == device;
    kp_lock_give(lock);
    return is;
}

void kp_fresh_forked(void)
{
    n_made = 0;
}
