/*
 * Records the timeline of the program's own execution: CUPTI's activity records of devices, the NVTX ranges of threads,
 * and the times at which kprof held the program up. Does nothing until kp_timeline_begin, but kp_timeline_pause,
 * _resume and _flush do the same for durations.h.
 *
 * What kprof itself makes devices do is left out: while it repeats launches, CUPTI records nothing (kp_timeline_pause);
 * its other work is recognised by its time (kp_timeline_ours_begin), or its size (kp_timeline_ours_copy).
 *
 * Memory is bounded: CUPTI holds 64 MiB at most. KP_TIMELINE_MOST activities and as many launches are kept of a
 * process, and 65536 names; further ones are counted as dropped. What the session has stored is freed.
 *
 * Threads: any; a lock inside serialises. In a forked child nothing is recorded.
 */
#ifndef KP_PRELOAD_WHO_TIMELINE_H
#define KP_PRELOAD_WHO_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model/timeline.h"

struct kp_cupti;

enum { KP_TIMELINE_MOST = 1 << 21 };

/* Starts recording. `on_many` is called, on any thread, when many activities wait to be stored. Returns 0, or a code of
 * kp_library_explain. */
int kp_timeline_begin(const struct kp_cupti *c, void (*on_many)(void));
bool kp_timeline_is_on(void);
/* Returns true if it was ever on, so that activities may wait to be stored. */
bool kp_timeline_has_begun(void);
/* Stops permanently: CUPTI's buffers have other users from now on. Calls no function of CUPTI. */
void kp_timeline_stop(void);
/* Returns true if CUPTI did not resume recording after work of ours, which had stopped it. */
bool kp_timeline_refused(void);
void kp_timeline_forked(void);

/* Returns the time on the clock of the timeline, ns. Before it has started, a time that kp_timeline_range converts. */
int64_t kp_timeline_now(void);

/* ---- the program ---- */

/* Notes a range of a thread; `domain` "" is the default one. */
void kp_timeline_range(const char *domain, const char *name, uint64_t thread, int64_t start, int64_t end);

/* Note a launch of the program's own execution, on the launching thread: before the driver is called, and after it.
 * `grid` and `block` are those of a kernel; NULL: a graph. This thread must make no other note between the two. */
void kp_timeline_launching(const uint32_t *grid, const uint32_t *block);
void kp_timeline_launched(bool refused);
/* Says which launch of the report the last noted one is. */
void kp_timeline_profiled(uint64_t ordinal);
/* Does so for a kernel of the graph that was launched last. Call it in the gate's exclusive section. */
void kp_timeline_node(const uint32_t *grid, const uint32_t *block, uint64_t ordinal);

/* ---- kprof's own work; inside the gate's exclusive section ---- */

/* Start and end work of ours on a device, during which the program's context does nothing. */
void kp_timeline_pause(uint32_t context_id);
void kp_timeline_resume(void);
/* Do the same without switching the records off: what starts meanwhile in the context is left out. */
void kp_timeline_ours_begin(uint32_t context_id);
void kp_timeline_ours_end(void);
/* Leaves out one copy of so many bytes from device to device, which kprof is about to issue during the program's
 * work. */
void kp_timeline_ours_copy(uint32_t context_id, uint64_t bytes);
/* Call these before and after this thread's work for a launch: the time before the program's launch reaches the driver,
 * and the time after it, count as kprof holding the program up. */
int64_t kp_timeline_enter(void);
void kp_timeline_leave(int64_t entered);
/* Notes that kprof held the program up since then, until now. Less than 20 us are not noted. */
void kp_timeline_held(int64_t since);

/* ---- what was recorded ---- */

/* Collects CUPTI's records of activities that have ended; `all`: it will have no more. Calls CUPTI, so use it only when
 * the driver may be called. */
void kp_timeline_flush(bool all);
/* Hands over the activities that wait; the caller frees *at. Names are kept: kp_timeline_text. */
size_t kp_timeline_take(struct kp_activity **at, uint32_t *names);
/* Returns a name by its number; *mangled: it is the symbol of a kernel. Valid forever. */
const char *kp_timeline_text(uint32_t name, bool *mangled);
/* Returns how many activities found no room. */
uint64_t kp_timeline_dropped(void);
/* Returns the notes of all launches so far, in order, for kp_timeline_link: malloc'ed. NULL: there are none. */
struct kp_launch_note *kp_timeline_notes(size_t *n);

#endif
