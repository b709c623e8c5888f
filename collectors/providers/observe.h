/*
 * Notes of the program's own run: the images of its modules, and what only an activity record tells of a launch.
 *
 * Errors: as library.h has them. Threads: images may be asked for by any thread; a probe is one at a time.
 */
#ifndef KP_COLLECTORS_PROVIDERS_OBSERVE_H
#define KP_COLLECTORS_PROVIDERS_OBSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/launches.h"

struct kp_cupti;

/* From now on the image of every module that is loaded is kept, up to `most` byte in all; and, whatever its size, each
 * for which `always` holds, which is called by any thread. Once a process, before the modules are loaded. */
int kp_images_keep(const struct kp_cupti *c, size_t most, bool (*always)(const void *image, size_t size));
/* The i-th image that was kept; valid for ever. NULL when there are no more. */
const void *kp_images_at(size_t i, size_t *size);
/* The image with that CRC; valid for ever. NULL when it was not kept. */
const void *kp_images_find(uint32_t crc, size_t *size);

/* Whether launches can be probed at all. */
bool kp_probe_available(const struct kp_cupti *c);
/* Between begin and end the kernels launched are noted, at most `cap`; *n receives how many. Outside of passes, and
 * while nobody else in the process reads activity records. */
int kp_probe_begin(const struct kp_cupti *c);
int kp_probe_end(const struct kp_cupti *c, struct kp_executed *records, size_t cap, size_t *n);

#endif
