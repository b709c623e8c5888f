/*
 * Sessions of CUPTI's profiler (cupti/chosen.h), which count lists: those of a rotation for chosen launches, and the
 * passes of a replay. Lists that share an image are loaded together, through the first of them, which has the layout.
 *
 * Errors: bool results are false if no session counts, and the range profiler counts instead; int results are codes for
 * kp_library_explain. Threads: see kp_providers.
 */
#ifndef KP_COLLECTORS_PROVIDERS_SESSIONS_H
#define KP_COLLECTORS_PROVIDERS_SESSIONS_H

#include "collectors/providers/providers.h"
#include "cupti/chosen.h"

/* The sessions of a context, one at a time. */
struct kp_sessions {
    const struct kp_providers_setup *setup;
    struct kp_chosen *session;    /* NULL = there is none */
    const struct kp_config *of;   /* lists that it was started for */
    size_t room;                  /* of the session, launches */
    bool none;                    /* sessions are not available */
    int stuck;                    /* CUPTI's code after a session could not be ended, */
    struct kp_chosen *unended;    /* which is tried once more; NULL = there is none */
    const struct kp_config *head; /* first list of the loaded image; NULL = none */
    size_t launches;              /* that this image has room for */
    size_t next;                  /* its next pass */
};

/* Returns true if sessions may count these lists: this CUPTI has them, and each image has its layout. */
bool kp_sessions_suit(struct kp_sessions *s, const struct kp_lists *lists);

/* Returns how many launches fit the memory for counter data, from 1 to `most`; 0 if it is unknown. A launch has the
 * image of one list; `together`: those of all lists, plus an empty one of each. */
size_t kp_sessions_fit(const struct kp_sessions *s, const struct kp_lists *lists, bool together, size_t most);

/* Ends the session; `rests`: its image is kept for the next one. Returns the code of a session that could not be ended,
 * now or earlier: nothing more is collected in the context then, unless the next window ends it. */
int kp_sessions_end(struct kp_sessions *s, bool rests);

/* Tries once more to end a session that could not be ended in an earlier window. If it ends, everything works again. */
void kp_sessions_end_again(struct kp_sessions *s);

/* Ends the session, so that the range profiler counts from now on, and explains it if it cannot either. A temporary
 * code (memory, or counters in use elsewhere) does not rule out further sessions. Returns false. */
bool kp_sessions_give_up(struct kp_sessions *s, const char *what, int code);

/* Returns true if a session counts now. */
bool kp_sessions_counts(const struct kp_sessions *s);

/* Loads lists[i] for so many launches per pass: it and the later lists of its image come next. */
bool kp_sessions_load(struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches);
/* Returns true if lists[i] comes next without loading, after the list before it. */
bool kp_sessions_goes_on(const struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches);

/* Starts a pass of lists[i], of one pass and an image of its own, with room for so many chosen launches. */
bool kp_sessions_choose(struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches);

/* Start the next pass of what was loaded, which counts all launches; end it. *last: it was the last of `list`. A code
 * from the start means that sessions no longer count. A code from the end with kp_chosen_runs: the pass continues. */
int kp_sessions_start(struct kp_sessions *s);
int kp_sessions_stop(struct kp_sessions *s, const struct kp_config *list, bool *last);

#endif
