/*
 * A session of CUPTI's profiler API: its passes count only the launches made while a switch is on. Turning it takes a
 * microsecond. The range profiler of target.h counts every launch that a pass sees, for a millisecond each. Neither can
 * count CUDA graphs, but here they may be launched while the switch is off.
 *
 * KP_VENDOR (CUPTI 13.0): a session accepts another list before each of its passes; the room for results is fixed when
 * it starts. It starts 80 ms sooner than the range profiler, which first asks the device what counters it has. Counted
 * launches wait for all earlier work of the context; other launches are not affected. The API is deprecated since 13.0,
 * and a later CUPTI may lack it (kp_chosen_available).
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

/* Returns true if this CUPTI has the functions of sessions. Without them, call nothing else here. */
bool kp_chosen_available(const struct kp_cupti *c);

/* Starts a session on `ctx`, with room for `launches` launches per pass of lists[0..n), which must have layouts (or
 * share the image of an earlier one) and outlive it. Costs 70 ms and, per launch, 0.8 ms and 0.6 MB of device memory.
 * Meanwhile no range profiler may count on the context. */
int kp_chosen_open(const struct kp_cupti *c, CUcontext ctx, const struct kp_config *lists, size_t n, size_t launches,
                   struct kp_chosen **out);
/* Ends the session after ending a running pass, and frees its memory. Safe on NULL. A code means that it still holds
 * the counters. Use kp_chosen_abandon instead once the context is gone, or if it does not become idle, which ending
 * would wait for: that keeps the memory of a session that CUPTI may still write to. */
int kp_chosen_close(struct kp_chosen *s);
void kp_chosen_abandon(struct kp_chosen *s);

/* Reports that a pass had fewer ranges than launches that fit the session: later sessions, of all contexts, start with
 * twice the memory. False if that was reported before. Any thread. */
bool kp_chosen_lacks(void);

/* Returns true if the session accepts the list next. KP_VENDOR (CUPTI 13.0): after a list that is counted by patched
 * code it accepts only such lists; ending it would otherwise read through a bad pointer. */
bool kp_chosen_takes(const struct kp_chosen *s, const struct kp_config *list);
/* Returns true if the session has room for the image of a list that it was not opened for, and for `launches`
 * launches. */
bool kp_chosen_fits(const struct kp_chosen *s, const struct kp_config *list, size_t launches);
/* End the session (and its running pass) but keep the address of its image; start it again; return true while it is
 * ended in this way. A code from the first means that it still holds the counters. */
int kp_chosen_rest(struct kp_chosen *s);
/* Tries once more to end a session that kp_chosen_rest or kp_chosen_close could not end. It rests then. */
int kp_chosen_end_again(struct kp_chosen *s);
int kp_chosen_wake(struct kp_chosen *s);
bool kp_chosen_rests(const struct kp_chosen *s);
/* Loads a list that the session accepts, one that it was opened for or that fits, with an empty image for `launches`
 * launches, at most as many as it was opened for. The list's first pass comes next, even if an earlier list was left
 * between two passes. 0.1 to 0.3 ms per launch. */
int kp_chosen_load(struct kp_chosen *s, const struct kp_config *list, size_t launches);
/* Starts the next pass of the list, with the switch off: 1 to 60 ms. */
int kp_chosen_pass(struct kp_chosen *s);
/* Ends the pass, if one runs, in 1 to 15 ms; *last: it was the list's last one. */
int kp_chosen_end(struct kp_chosen *s, bool *last);
/* Decodes the counts of the list's passes, like kp_chosen_stop. Load another list next. */
int kp_chosen_take(struct kp_chosen *s, struct kp_chosen_data **data, size_t *n, size_t *dropped);

/* Loads a list of one pass, and starts it. */
int kp_chosen_start(struct kp_chosen *s, const struct kp_config *list);
/* Turns the switch: launches of any thread in the context are counted from now on, or no longer. */
int kp_chosen_count(struct kp_chosen *s, bool on);
/* Ends the pass, if one runs, and decodes its counts: *data, to kp_chosen_free, is NULL after a failure. *n receives
 * the number of launches, *dropped the number without room. 2 to 10 ms. */
int kp_chosen_stop(struct kp_chosen *s, struct kp_chosen_data **data, size_t *n, size_t *dropped);
bool kp_chosen_runs(const struct kp_chosen *s);

/* Returns the counter data, for kp_host_evaluate: valid until it is freed. `data` may be NULL. Any thread, one at a
 * time.
 */
void kp_chosen_read(const struct kp_chosen_data *d, const uint8_t **data, size_t *size);
void kp_chosen_free(struct kp_chosen_data *d);

/* Computes the host memory that a pass of any of the lists needs for `launches` launches, in bytes. */
int kp_chosen_bytes(const struct kp_cupti *c, const struct kp_config *lists, size_t n, size_t launches, size_t *bytes);

#endif
