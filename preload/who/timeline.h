/*
 * Records the timeline of the program's own execution: what CUPTI's activity records tell of devices, the NVTX ranges
 * of threads, and the times at which kprof held the program up. Does nothing until kp_timeline_begin.
 *
 * What kprof itself makes devices do is left out: while it repeats launches, CUPTI records nothing (kp_timeline_pause);
 * other work of its own is told by its time (kp_timeline_ours_begin), or its size (kp_timeline_ours_copy).
 *
 * Memory is bounded: CUPTI holds 64 MiB at most. KP_TIMELINE_MOST activities and as many launches are kept of a
 * process, and 65536 names; further ones are counted as dropped. What the session has taken is freed.
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

/* Begins to record. `on_many` is called, on any thread, when many activities wait to be taken. 0, or a code of
 * kp_library_explain. */
int kp_timeline_begin(const struct kp_cupti *c, void (*on_many)(void));
bool kp_timeline_is_on(void);
/* Whether it was on at some time, so that activities may wait to be taken. */
bool kp_timeline_has_begun(void);
/* Stops for good: others use CUPTI's buffers from now on. Calls no function of CUPTI. */
void kp_timeline_stop(void);
/* Whether CUPTI did not go on recording after work of ours, which stopped it, too. */
bool kp_timeline_refused(void);
void kp_timeline_forked(void);

/* Returns the time on the clock of the timeline, ns. Before it has begun, a time that kp_timeline_range converts. */
int64_t kp_timeline_now(void);

/* ---- the program ---- */

/* Notes a range of a thread; `domain` "" is the default one. */
void kp_timeline_range(const char *domain, const char *name, uint64_t thread, int64_t start, int64_t end);

/* Note a launch of the program's own execution, on the launching thread: before the driver is called, and after it.
 * `grid` and `block` are those of a kernel; NULL: a graph. Between the two no other note of this thread may come. */
void kp_timeline_launching(const uint32_t *grid, const uint32_t *block);
void kp_timeline_launched(bool refused);
/* Says which launch of the report the last noted one is. */
void kp_timeline_profiled(uint64_t ordinal);
/* Says this of a kernel of the graph that was launched last. Call it in the gate's exclusive section. */
void kp_timeline_node(const uint32_t *grid, const uint32_t *block, uint64_t ordinal);

/* ---- kprof's own work; inside of the gate's exclusive section ---- */

/* Begins and ends work of ours on a device, in which the program's context does nothing. */
void kp_timeline_pause(uint32_t context_id);
void kp_timeline_resume(void);
/* Do the same without switching the records off: what begins meanwhile in the context is left out. */
void kp_timeline_ours_begin(uint32_t context_id);
void kp_timeline_ours_end(void);
/* Leaves out one copy of so many bytes from device to device, which kprof is about to issue beside the program's work.
 */
void kp_timeline_ours_copy(uint32_t context_id, uint64_t bytes);
/* Stand around what this thread does for a launch: the time before the program's launch reaches the driver, and that
 * behind it, are times at which kprof held the program up. */
int64_t kp_timeline_enter(void);
void kp_timeline_leave(int64_t entered);
/* Notes that kprof held the program up since then, until now. Less than 20 us are not noted. */
void kp_timeline_held(int64_t since);

/* ---- what was recorded ---- */

/* Takes over CUPTI's records of activities that have ended; `all`: it will have no more. Calls CUPTI, so only where the
 * driver may be called. */
void kp_timeline_flush(bool all);
/* Hands over the activities that wait; the caller frees *at. Names are kept: kp_timeline_text. */
size_t kp_timeline_take(struct kp_activity **at, uint32_t *names);
/* Returns a name by its number; *mangled: it is the symbol of a kernel. Valid for ever. */
const char *kp_timeline_text(uint32_t name, bool *mangled);
/* Returns how many activities found no room. */
uint64_t kp_timeline_dropped(void);
/* Returns the notes of all launches so far, in order, for kp_timeline_link: malloc'ed. NULL: there are none. */
struct kp_launch_note *kp_timeline_notes(size_t *n);

#endif
