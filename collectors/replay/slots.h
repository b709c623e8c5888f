/*
 * Room for copies of blocks of device memory: on the device first, then in pinned host memory. It grows. Part of it may
 * move from the device to the host; otherwise it is freed as a whole.
 *
 * Threads: the caller serialises calls. The context must be current.
 */
#ifndef KP_COLLECTORS_REPLAY_SLOTS_H
#define KP_COLLECTORS_REPLAY_SLOTS_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

enum { KP_SLOT_BYTES = 64 << 10 };

/* How to start a thread that runs fn(arg) with all signals blocked, and how to wait for its end. start may be NULL. */
struct kp_threads {
    bool (*start)(void *(*fn)(void *arg), void *arg, pthread_t *thread);
    void (*join)(pthread_t thread);
};

/* How much memory the slots may use. */
struct kp_slot_room {
    uint64_t device_left; /* bytes of device memory that stay free */
    uint64_t host;        /* bytes of host memory that may be added to what is used */
};

struct kp_slots;

/* Makes an empty set; NULL without memory. */
struct kp_slots *kp_slots_open(const struct kp_driver *d, CUdevice device, const struct kp_threads *threads);

/* Makes sure that `n` slots are free. False: `room` does not allow that much memory. */
bool kp_slots_reserve(struct kp_slots *s, size_t n, const struct kp_slot_room *room);

/* Makes up to `n` slots free on the device. Returns how many are. */
size_t kp_slots_reserve_device(struct kp_slots *s, size_t n, const struct kp_slot_room *room);

/* Return one of the reserved slots, on the device if possible; free one. */
uint32_t kp_slots_take(struct kp_slots *s);
void kp_slots_give(struct kp_slots *s, uint32_t slot);

bool kp_slots_is_on_device(const struct kp_slots *s, uint32_t slot);

/* Moves the last `bytes` on the device, or slightly more, to the host: slots keep their numbers and contents. Copies
 * alongside any running work. False: the host lacks the memory (`most`, bytes), or the device holds less. */
bool kp_slots_leave_device(struct kp_slots *s, uint64_t bytes, uint64_t most);

/* Returns a slot's address for the device. */
CUdeviceptr kp_slots_at(const struct kp_slots *s, uint32_t slot);

/* Returns how much of the device's memory the slots use, in bytes. */
uint64_t kp_slots_on_device(const struct kp_slots *s);

/* Frees the set. `context_alive` false: the context is gone, so only host memory is freed. NULL: nothing. */
void kp_slots_close(struct kp_slots *s, bool context_alive);

#endif
