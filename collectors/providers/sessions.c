#include "collectors/providers/sessions.h"

#include <errno.h>

#include "base/debug.h"
#include "collectors/replay/taken.h"

/* Returns the first of the lists that share an image with lists[i]. */
static const struct kp_config *head_of(const struct kp_lists *lists, size_t i)
{
    while (i && lists->at[i].turn)
        i--;
    return &lists->at[i];
}

bool kp_sessions_suit(struct kp_sessions *s, const struct kp_lists *lists)
{
    if (s->none || s->stuck)
        return false;
    s->none = !kp_chosen_available(s->setup->cupti);
    bool suit = !s->none;
    for (size_t i = 0; i < lists->n; i++) {
        const struct kp_config *head = head_of(lists, i);
        suit &= head->layout && head->turns == lists->at[i].turns;
    }
    return suit;
}

/* Returns the memory for one more launch of counter data, in bytes; 0 if it is unknown. */
static size_t session_bytes(const struct kp_sessions *s, const struct kp_config *lists, size_t n)
{
    size_t one = 0, two = 0;
    if (kp_chosen_bytes(s->setup->cupti, lists, n, 1, &one) || kp_chosen_bytes(s->setup->cupti, lists, n, 2, &two))
        return 0;
    return two > one ? two - one : 0;
}

size_t kp_sessions_fit(const struct kp_sessions *s, const struct kp_lists *lists, bool together, size_t most)
{
    size_t each = together ? 0 : session_bytes(s, lists->at, lists->n);
    for (size_t i = 0; together && i < lists->n; i++)
        each += 2 * session_bytes(s, &lists->at[i], 1);
    uint64_t fit = each ? s->setup->memory / each : 0;
    if (!each)
        return 0;
    return fit < most ? fit ? fit : 1 : most;
}

int kp_sessions_end(struct kp_sessions *s, bool rests)
{
    if (!s->session || ((rests || s->stuck) && kp_chosen_rests(s->session)))
        return s->stuck;
    bool counts = !kp_chosen_rests(s->session);
    if (counts)
        kp_taken_disables(s->setup->taken);
    int rc = rests ? kp_chosen_rest(s->session) : kp_chosen_close(s->session);
    s->unended = rc ? s->session : NULL; /* its memory stays */
    if (!rc && counts)
        kp_taken_disabled(s->setup->taken);
    s->stuck = rc; /* a session that has ended after all is tried again */
    s->head = NULL;
    if (!rests)
        s->session = NULL;
    return s->stuck;
}

void kp_sessions_end_again(struct kp_sessions *s)
{
    struct kp_chosen *unended = s->unended;
    s->unended = NULL;
    if (!unended)
        return;
    kp_taken_disables(s->setup->taken);
    s->stuck = kp_chosen_end_again(unended);
    if (!s->stuck)
        kp_taken_disabled(s->setup->taken);
    kp_debug(KP_DEBUG_REPLAY, "second try to end a session: code %d", s->stuck);
}

bool kp_sessions_counts(const struct kp_sessions *s)
{
    return s->session && !kp_chosen_rests(s->session);
}

bool kp_sessions_give_up(struct kp_sessions *s, const char *what, int code)
{
    kp_debug(KP_DEBUG_REPLAY, "no %s: code %d", what, code);
    kp_sessions_end(s, false);
    s->none = code != -ENOMEM && code != KP_CUPTI_OUT_OF_MEMORY && code != KP_CUPTI_BUSY; /* these are temporary */
    return false;
}

/* Starts a session with room for so many launches. */
static bool begin_session(struct kp_sessions *s, const struct kp_lists *lists, size_t launches)
{
    if (kp_sessions_end(s, false))
        return false;
    kp_taken_enables(s->setup->taken);
    int rc = kp_chosen_open(s->setup->cupti, s->setup->ctx, lists->at, lists->n, launches, &s->session);
    s->of = lists->at;
    s->room = launches;
    if (!rc)
        return true;
    kp_taken_disabled(s->setup->taken);
    return kp_sessions_give_up(s, "session", rc);
}

/* Makes the existing session accept the list. */
static bool take_up(struct kp_sessions *s, const struct kp_config *list)
{
    if (!kp_chosen_takes(s->session, list) && kp_sessions_end(s, true))
        return false;
    if (!kp_chosen_rests(s->session))
        return true;
    kp_taken_enables(s->setup->taken);
    int rc = kp_chosen_wake(s->session);
    if (!rc)
        return true;
    kp_taken_disabled(s->setup->taken);
    return kp_sessions_give_up(s, "further session", rc);
}

/* Returns true if there is a session for the list: one that was started for it, or for lists with images as large. */
static bool has_room(const struct kp_sessions *s, const struct kp_lists *lists, const struct kp_config *list,
                     size_t launches)
{
    return s->session && (s->of == lists->at ? s->room >= launches : kp_chosen_fits(s->session, list, launches));
}

/* Makes a session that accepts the list, with room for so many launches. */
static bool provide(struct kp_sessions *s, const struct kp_lists *lists, const struct kp_config *list, size_t launches)
{
    return has_room(s, lists, list, launches) ? take_up(s, list) : begin_session(s, lists, launches);
}

bool kp_sessions_load(struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches)
{
    const struct kp_config *head = head_of(lists, i);
    if (!kp_sessions_suit(s, lists) || !provide(s, lists, head, launches))
        return false;
    kp_taken_started(s->setup->taken);
    int rc = kp_chosen_load(s->session, head, launches);
    s->head = head;
    s->launches = launches;
    s->next = 0;
    while (!rc && s->next < lists->at[i].turn) { /* earlier lists that are not counted */
        bool last;
        rc = kp_chosen_pass(s->session);
        if (!rc)
            rc = kp_chosen_end(s->session, &last);
        s->next++;
    }
    return rc ? kp_sessions_give_up(s, "list in a session", rc) : true;
}

bool kp_sessions_goes_on(const struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches)
{
    return kp_sessions_counts(s) && s->head == head_of(lists, i) && s->launches == launches && s->next &&
           s->next == lists->at[i].turn;
}

bool kp_sessions_choose(struct kp_sessions *s, const struct kp_lists *lists, size_t i, size_t launches)
{
    const struct kp_config *list = &lists->at[i];
    if (!list->image || list->turns || list->passes != 1 || !provide(s, lists, list, launches))
        return false;
    kp_taken_started(s->setup->taken);
    s->head = NULL;
    int rc = kp_chosen_start(s->session, list);
    return rc ? kp_sessions_give_up(s, "pass of a session", rc) : true;
}

int kp_sessions_start(struct kp_sessions *s)
{
    int rc = kp_chosen_pass(s->session);
    if (!rc)
        rc = kp_chosen_count(s->session, true);
    if (rc)
        kp_sessions_give_up(s, "pass of a session", rc);
    return rc;
}

int kp_sessions_stop(struct kp_sessions *s, const struct kp_config *list, bool *last)
{
    bool all = false;
    int rc = kp_chosen_end(s->session, &all);
    s->next++;
    *last = all || s->next == list->turn + list->passes;
    return rc;
}
