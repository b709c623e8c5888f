/*
 * A session of CUPTI's profiler API: its passes count the launches between two switches, and no others. A switch takes
 * a microsecond. The range profiler of target.h counts every launch that a pass sees, for a millisecond each. Neither
 * has CUDA graphs that it counts, but here they may be launched while the switch is off.
 *
 * KP_VENDOR (CUPTI 13.0): a session takes another list before each of its passes; the room for results is that of its
 * begin. It begins 80 ms sooner than the range profiler, which first asks the device what counters it has. Launches
 * that are counted wait for all work of the context before; of those that are not, nothing changes. The API is
 * deprecated since 13.0, and a later CUPTI may lack it (kp_chosen_available).
 *
 * Errors: int results are 0, a negative errno, or a positive CUPTI code. Threads: the caller serialises calls for one
 * context, which is current.
 */
#ifndef KP_CUPTI_CHOSEN_H
#define KP_CUPTI_CHOSEN_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti/host.h"
#include "cupti/loader.h"

struct kp_chosen;

/* What a pass has counted. */
struct kp_chosen_data;

/* Whether this CUPTI has the functions of sessions. Without them, call nothing else here. */
bool kp_chosen_available(const struct kp_cupti *c);

/* Begins a session on `ctx`, with room for so many launches of a pass, of lists[0..n), which have layouts (or share the
 * image of one before them) and outlive it. Takes 70 ms and, for each launch, 0.8 ms and 0.6 MB of the device's memory.
 * Beside it no range profiler counts on the context. */
int kp_chosen_open(const struct kp_cupti *c, CUcontext ctx, const struct kp_config *lists, size_t n, size_t launches,
                   struct kp_chosen **out);
/* Ends the session after ending a pass that runs, and frees its memory. Safe on NULL. A code means that it
 * still has the counters. Use kp_chosen_abandon instead once the context is gone, or does not become idle, for which
 * the end would wait: it keeps the memory of a session that CUPTI may still write to. */
int kp_chosen_close(struct kp_chosen *s);
void kp_chosen_abandon(struct kp_chosen *s);

/* Tells that a pass had fewer ranges than launches that fit the session: later ones, of all contexts, begin with twice
 * the memory. False: it was told before. Any thread. */
bool kp_chosen_lacks(void);

/* Whether the session may take the list next. KP_VENDOR (CUPTI 13.0): behind a list that patched code counts it takes
 * no other than such lists; its end would read through a wrong pointer. */
bool kp_chosen_takes(const struct kp_chosen *s, const struct kp_config *list);
/* Whether the session has room for the image of a list that it was not opened for, and for so many launches. */
bool kp_chosen_fits(const struct kp_chosen *s, const struct kp_config *list, size_t launches);
/* Ends the session, but keeps the address of its image; a pass that runs is ended. Begins it again. Whether it rests. A
 * code of the first means that it still has the counters. */
int kp_chosen_rest(struct kp_chosen *s);
/* Tries once more to end a session that could not be ended, by kp_chosen_rest or kp_chosen_close. It rests then. */
int kp_chosen_end_again(struct kp_chosen *s);
int kp_chosen_wake(struct kp_chosen *s);
bool kp_chosen_rests(const struct kp_chosen *s);
/* Takes up a list that it takes, one of those that it was opened for, or that fits, with an empty image for so many
 * launches: no more than it was opened for. Its first pass comes next, even if an earlier list was left between two
 * passes. 0.1 to 0.3 ms a launch. */
int kp_chosen_load(struct kp_chosen *s, const struct kp_config *list, size_t launches);
/* Starts the next pass of the list, with the switch off: 1 to 60 ms. */
int kp_chosen_pass(struct kp_chosen *s);
/* Ends the pass, if one runs, 1 to 15 ms; *last: it was the last one of the list. */
int kp_chosen_end(struct kp_chosen *s, bool *last);
/* Decodes what the passes of the list have counted: as kp_chosen_stop. Another list is taken up next. */
int kp_chosen_take(struct kp_chosen *s, struct kp_chosen_data **data, size_t *n, size_t *dropped);

/* Takes up a list of one pass, and starts it. */
int kp_chosen_start(struct kp_chosen *s, const struct kp_config *list);
/* Turns the switch: launches of any thread in the context are counted from now on, or no longer. */
int kp_chosen_count(struct kp_chosen *s, bool on);
/* Ends the pass, if one runs, and decodes what it has counted: *data, to kp_chosen_free, is NULL after a failure.
 * *n receives the number of launches, *dropped of those without room. 2 to 10 ms. */
int kp_chosen_stop(struct kp_chosen *s, struct kp_chosen_data **data, size_t *n, size_t *dropped);
bool kp_chosen_runs(const struct kp_chosen *s);

/* Returns the counter data, for kp_host_evaluate: valid until it is freed. `data` may be NULL. Any thread, one at a
 * time.
 */
void kp_chosen_read(const struct kp_chosen_data *d, const uint8_t **data, size_t *size);
void kp_chosen_free(struct kp_chosen_data *d);

/* Computes the memory that a pass of any of the lists takes of the host, for so many launches, byte. */
int kp_chosen_bytes(const struct kp_cupti *c, const struct kp_config *lists, size_t n, size_t launches, size_t *bytes);

#endif
