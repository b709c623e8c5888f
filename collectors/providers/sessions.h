/*
 * Sessions of CUPTI's profiler (cupti/chosen.h), by which lists are counted: those of a rotation for chosen launches,
 * and the passes of a replay. Lists that share an image are taken up together, by the first of them, which has the
 * layout.
 *
 * Errors: bool results are false where no session counts, and the range profiler takes its place; others are codes of
 * kp_library_explain. Threads: as kp_providers.
 */
#ifndef KP_COLLECTORS_PROVIDERS_SESSIONS_H
#define KP_COLLECTORS_PROVIDERS_SESSIONS_H

#include "collectors/providers/providers.h"
#include "cupti/chosen.h"

/* The sessions of a context, one at a time. */
struct kp_sessions {
    const struct kp_providers_setup *setup;
    struct kp_chosen *session;    /* NULL = there is none */
    const struct kp_config *of;   /* lists that it was begun for */
    size_t room;                  /* of it, launches */
    bool none;                    /* none can be had */
    int stuck;                    /* CUPTI's code after one could not be ended, */
    struct kp_chosen *unended;    /* which is tried once more; NULL = none is */
    const struct kp_config *head; /* first list of the image that it has taken up; NULL = none */
    size_t launches;              /* that this image has room for */
    size_t next;                  /* the pass of it that comes next */
};

/* Whether sessions may count these lists: this CUPTI has them, and each image has its layout. */
bool kp_sessions_suit(struct kp_sessions *s, const struct kp_lists *lists);

/* Returns how many launches fit the memory for counter data, `most` at most and at least 1; 0 when it is not known. A
 * launch has the image of one list; `together`: those of all lists, and an empty one of each besides. */
size_t kp_sessions_fit(const struct kp_sessions *s, const struct kp_lists *lists, bool together, size_t most);

/* Ends the session; `rests`: its image is kept for the next one. Returns the code of one that could not be ended, now
 * or before: nothing more is collected in the context then, unless the next window ends it. */
int kp_sessions_end(struct kp_sessions *s, bool rests);

/* Tries once more to end a session that could not be ended in a window before. Where it ends, all is as it was. */
void kp_sessions_end_again(struct kp_sessions *s);

/* Ends the session, for the range profiler to count from now on, which tells why if it cannot either. A code that
 * passes, of memory or of counters that others have, is no reason against further sessions. Returns false. */
bool kp_sessions_give_up(struct kp_sessions *s, const char *what, int code);

/* Whether a session counts now. */
bool kp_sessions_counts(const struct kp_sessions *s);

/* Takes up lists[i] for so many launches of a pass: it and those behind it in its image come next. */
bool kp_sessions_load(struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches);
/* Whether lists[i] comes next without that, behind the list before it. */
bool kp_sessions_goes_on(const struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches);

/* Starts a pass of lists[i], of one pass and an image of its own, with room for so many chosen launches. */
bool kp_sessions_choose(struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches);

/* Start the next pass of what was taken up, which counts all launches; end it. *last: it was the last of `list`. A code
 * of the start means that no session counts any more. A code of the end with kp_chosen_runs: the pass goes on. */
int kp_sessions_start(struct kp_sessions *s);
int kp_sessions_stop(struct kp_sessions *s, const struct kp_config *list, bool *last);

#endif
