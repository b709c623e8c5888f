/*
 * What the program itself uses CUPTI for: its own profiler, or a framework's. While it has launch callbacks, activity
 * records or counters, kprof leaves CUPTI alone.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_CONTEXTS_OTHER_CUPTI_H
#define KP_PRELOAD_CONTEXTS_OTHER_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

/* What a CUPTI function means for other users of CUPTI. The arguments are those of the function. */
enum kp_other_effect {
    KP_OTHER_PASSES,       /* changes what all users share: no other user may be in the middle of something */
    KP_OTHER_SUBSCRIBES,   /* there can be only one subscriber */
    KP_OTHER_UNSUBSCRIBES, /* ends its callbacks, too */
    KP_OTHER_CALLBACK,     /* (enable, subscriber, domain, id) */
    KP_OTHER_DOMAIN,       /* (enable, subscriber, domain) */
    KP_OTHER_DOMAINS,      /* (enable, subscriber) */
    KP_OTHER_BUFFERS,      /* there is only one pair of functions that supply and return record buffers */
    KP_OTHER_RECORDS,      /* (kind) */
    KP_OTHER_NO_RECORDS,
    KP_OTHER_RECORDS_OF, /* (context, kind) */
    KP_OTHER_NO_RECORDS_OF,
    KP_OTHER_COUNTS, /* counts or samples until it is ended */
    KP_OTHER_COUNTS_NOT,
    KP_OTHER_FINALIZES, /* ends everything */
};

enum { KP_OTHER_ARGS = 4 };

/* Returns true if the call starts something for which kprof has to be out of the way. */
bool kp_other_begins(enum kp_other_effect effect, const uint64_t *args);

/* Call these before and after such a call: the program holds CUPTI in between. */
void kp_other_enter(void);
void kp_other_leave(void);

/* Notes what a successful call has started or ended. `beside`: it went to a copy of CUPTI other than kprof's, which
 * cannot be used while that copy has a subscriber. */
void kp_other_note(enum kp_other_effect effect, const uint64_t *args, bool beside);

/* Returns true while the program has CUPTI do something. */
bool kp_other_holds(void);
/* Returns true if the program has left something in kprof's copy of CUPTI that cuptiFinalize would end. */
bool kp_other_has_state(void);

#endif
