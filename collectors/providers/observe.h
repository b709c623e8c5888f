/*
 * Records facts about the program's own run: the images of its modules, and launch facts that only an activity record
 * has.
 *
 * Errors: as in library.h. Threads: any thread may ask for images; one probe at a time.
 */
#ifndef KP_COLLECTORS_PROVIDERS_OBSERVE_H
#define KP_COLLECTORS_PROVIDERS_OBSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/activities.h"
#include "collectors/model/launches.h"

struct kp_cupti;

/* Keeps the image of every module loaded from now on, up to `most` bytes in total; beyond that, only those for which
 * `always` returns true, on any thread. Call this once per process, before the modules are loaded. */
int kp_images_keep(const struct kp_cupti *c, size_t most, bool (*always)(const void *image, size_t size));
/* Returns the i-th kept image; valid for ever. NULL if there are no more. */
const void *kp_images_at(size_t i, size_t *size);
/* Returns the image with that CRC; valid for ever. NULL if not kept. */
const void *kp_images_find(uint32_t crc, size_t *size);

/* Returns true if launches can be probed. */
bool kp_providers_probe_available(const struct kp_cupti *c);
/* Record the kernels launched between begin and end, at most `cap`; *n receives their number. Use them outside passes,
 * except for a launch that is counted once, and while nobody else in the process reads activity records. */
int kp_providers_probe_begin(const struct kp_cupti *c);
int kp_providers_probe_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n);

/* Hand records of the kernels launched between the two calls to `sink`, once they have ended; see cupti/target.h.
 * kp_observe_flush hands on what has ended. */
int kp_providers_record_on(const struct kp_cupti *c, kp_record_sink *sink);
int kp_providers_record_off(const struct kp_cupti *c);

/* ---- records of everything that runs on devices, or of kernels alone; see kp_watch_begin of cupti/target.h ---- */

bool kp_observe_available(const struct kp_cupti *c);
uint64_t kp_observe_now(const struct kp_cupti *c); /* any thread */
int kp_observe_begin(const struct kp_cupti *c, kp_record_sink *sink, bool kernels);
int kp_observe_pause(const struct kp_cupti *c);
int kp_observe_resume(const struct kp_cupti *c);
int kp_observe_flush(const struct kp_cupti *c, bool all);
uint64_t kp_observe_dropped(void); /* any thread */

#endif
