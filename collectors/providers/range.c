/*
 * The counters of the plan's lists: in sessions if this CUPTI has them, because they start sooner, leave other launches
 * alone, and accept lists in any order; otherwise, for ranges, and in several runs by CUPTI's range profiler.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/room.h"
#include "base/text.h"
#include "collectors/providers/library.h"
#include "collectors/providers/provider.h"
#include "collectors/providers/sessions.h"
#include "collectors/replay/taken.h"
#include "cupti/target.h"

/* A decode error that is neither CUPTI's code nor an errno. */
enum { WRONG_RANGES = INT_MIN };

/* Room for counters grows in steps of four, so that a small window does not pay for emptying a large image. Above
 * LARGE_ROOM the steps are relatively smaller, because each range costs memory and time. */
enum { ROOM_STEP = 4, LARGE_ROOM = 256, LARGE_STEP = 64 };

/* The most threads that share an evaluation, and the fewest launches of each. A thread must be worth its start and, the
 * first time, the opening of its host. */
enum { MOST_THREADS = 4, LEAST_SHARE = 16 };

/* Room in a set of CPUs; the kernel refuses a set smaller than its own. */
enum { MOST_CPUS = 8192 };

struct lease {
    struct kp_image *image;
    const struct kp_config *config;
    size_t bytes;
    atomic_bool busy; /* in use; any thread may release it */
    struct lease *next;
};

/* The profiler of a context. */
struct range {
    struct kp_providers_setup *setup;
    struct kp_host *hosts[MOST_THREADS]; /* for evaluation: the caller's, and others opened on demand */
    struct kp_range *profiler;           /* enabled on the context */
    int stuck; /* CUPTI's code after a profiler could not be disabled, which prevents all further ones */
    enum kp_range_mode mode;
    bool afresh;                  /* each launch gets a newly enabled profiler */
    bool used;                    /* the profiler has run, in this `mode`, */
    size_t used_ranges;           /* with this room */
    struct kp_config used_config; /* and this list, of which only the image is kept */
    struct lease *leases;
    struct kp_sessions sessions; /* in place of the profiler */
    atomic_size_t held;          /* bytes of their counter data that are not evaluated yet */
    unsigned beside; /* the profiler counts launches alongside replays: it has so many of the next ones (has_beside) */
    size_t room;     /* 0 = unknown */
    /* Of the current window. */
    bool in_session;             /* a session replays the current list */
    size_t from, n_waiting;      /* counted but undecoded lists: the first one, how many */
    size_t awaited;              /* ranges of these */
    struct lease *lease;         /* of the current list */
    struct kp_chosen_data *data; /* of the ended passes of a session */
    bool marked;                 /* a launch's range is open */
    int hook;                    /* CUPTI's code of a failed push or pop */
    size_t seen, expected;       /* ranges */
};

/* The decoded counters of one list: in the image of a lease, or of a session. */
struct part {
    size_t list;
    struct lease *lease;
    struct kp_chosen_data *data;
    size_t bytes;  /* of the data, counted in `held` */
    bool borrowed; /* the data belongs to another part */
};

/* The decoded counters of a window. */
struct counted {
    struct range *r;
    struct kp_lists lists;
    struct part *parts;
    size_t n_parts;
    size_t *ranges; /* of each result */
    size_t n_results;
};

static struct range *own(const struct kp_providers *x)
{
    return kp_provider_own(x, &kp_provider_range);
}

static struct counted *gathered(const struct kp_providers *x)
{
    return x->gathered ? x->gathered->of[kp_provider_number(x, &kp_provider_range)] : NULL;
}

/* ---- images ---- */

static size_t room_step(size_t n, size_t most)
{
    size_t room = 1;
    if (n > most) /* with sweeps: two ranges per launch */
        most *= 2;
    while (room < n)
        room *= ROOM_STEP;
    if (room > LARGE_ROOM)
        room = (n + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
    return room > most && n <= most ? most : room;
}

static size_t lease_bytes(const struct range *r)
{
    size_t sum = 0;
    for (const struct lease *l = r->leases; l; l = l->next)
        sum += l->bytes;
    return sum;
}

/* Frees unused images until `wanted` more bytes fit within the limit. */
static void make_way_for_counters(struct range *r, size_t wanted)
{
    for (struct lease **link = &r->leases; *link && lease_bytes(r) + wanted > r->setup->memory;) {
        struct lease *l = *link;
        if (atomic_load(&l->busy)) {
            link = &l->next;
            continue;
        }
        *link = l->next;
        kp_image_free(l->image);
        free(l);
    }
}

/* Returns the smallest image with room for `ranges` that wastes no more than one step, because emptying an image copies
 * all of it. */
static struct lease *idle_lease(const struct range *r, const struct kp_config *config, size_t ranges)
{
    struct lease *best = NULL;
    for (struct lease *l = r->leases; l; l = l->next) {
        size_t room = kp_image_ranges(l->image);
        if (l->config == config && room >= ranges && room <= ROOM_STEP * ranges && !atomic_load(&l->busy) &&
            (!best || room < kp_image_ranges(best->image)))
            best = l;
    }
    return best;
}

static int new_lease(struct range *r, const struct kp_config *config, size_t room, size_t bytes, struct lease **out)
{
    struct lease *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    int rc = kp_image_make(r->profiler, config, room, &l->image);
    if (rc) {
        free(l);
        return rc;
    }
    l->config = config;
    l->bytes = bytes;
    l->next = r->leases;
    r->leases = l;
    *out = l;
    return 0;
}

/* Makes an image with `room`, or returns one with room for `ranges` that became idle meanwhile. */
static int make_lease(struct range *r, const struct kp_config *config, size_t ranges, size_t room, struct lease **out)
{
    size_t bytes = 0;
    int rc = kp_image_bytes(r->profiler, config, room, &bytes);
    if (rc)
        return rc;
    make_way_for_counters(r, bytes);
    if (lease_bytes(r) + bytes > r->setup->memory && r->leases) {
        r->setup->settle(); /* the images still being evaluated */
        if ((*out = idle_lease(r, config, ranges)))
            return 0;
        make_way_for_counters(r, bytes);
    }
    return new_lease(r, config, room, bytes, out);
}

/* ---- the profiler ---- */

/* Returns why nothing more can be collected in the context, CUPTI's code, or 0. */
static int why_stuck(const struct range *r)
{
    return r->stuck ? r->stuck : r->sessions.stuck;
}

static int enable(struct range *r)
{
    int ended = kp_sessions_end(&r->sessions, true);
    if (ended || r->stuck || r->profiler)
        return why_stuck(r);
    kp_taken_enables(r->setup->taken);
    int rc = kp_range_open(r->setup->cupti, r->setup->ctx, &r->profiler);
    if (rc)
        kp_taken_disabled(r->setup->taken);
    return rc;
}

/* Releases the hardware. If that fails, nothing more is collected in the context: a second profiler must not be enabled
 * alongside the first, and the other providers find the counters in use. */
static int disable(struct range *r)
{
    if (r->profiler)
        kp_taken_disables(r->setup->taken);
    int rc = kp_range_close(r->profiler);
    if (r->profiler && !rc)
        kp_taken_disabled(r->setup->taken);
    r->stuck = r->stuck ? r->stuck : rc;
    r->profiler = NULL;
    r->used = false;
    kp_sessions_end(&r->sessions, true);
    return why_stuck(r);
}

/* Disables the profiler while the program runs. KP_VENDOR: PC sampling never recognises a function that is first
 * launched while the profiler is enabled (CUPTI 13.0). */
static void leave_disabled(struct range *r)
{
    if (r->setup->kinds)
        disable(r);
}

/* Notes the image of the list that the profiler is configured for: the plan may end before. */
static int note_config(struct range *r, const struct kp_config *config)
{
    if (r->used && kp_config_same(&r->used_config, config))
        return 0;
    kp_config_free(&r->used_config);
    r->used_config.image = malloc(config->size ? config->size : 1);
    if (!r->used_config.image)
        return -ENOMEM;
    memcpy(r->used_config.image, config->image, config->size);
    r->used_config.size = config->size;
    return 0;
}

/* Returns true if the list can come next while the profiler stays enabled. */
static bool goes_on(const struct range *r, const struct kp_config *config)
{
    size_t turn = kp_range_turn(r->profiler);
    return kp_config_same(&r->used_config, config) && turn != KP_TURN_UNKNOWN && (config->turns || !turn);
}

/* Enables the profiler, after disabling it if needed. KP_VENDOR (CUPTI 13.0): a profiler handle cannot change its range
 * mode until it is disabled. Once it has run with some room, it drops further ranges even if configured for more. It
 * keeps the first list that it was configured for, and continues after the last pass that it ran: a window that ended
 * between two passes leaves it there. `room` is that of the image, and may exceed the window's need. */
static int enable_for(struct range *r, enum kp_range_mode mode, const struct kp_config *config, size_t room)
{
    if (r->used && (r->afresh || r->mode != mode || r->used_ranges < room || !goes_on(r, config)))
        disable(r);
    int rc = enable(r);
    if (!rc)
        rc = note_config(r, config);
    r->mode = mode;
    if (!r->used)
        r->used_ranges = room;
    r->used = !rc;
    return rc;
}

/* Returns the memory for one more launch of a list, in bytes; 0 if it is unknown. */
static size_t bytes_each(const struct range *r, const struct kp_config *list)
{
    size_t one = 0, two = 0;
    if (kp_image_bytes(r->profiler, list, 1, &one) || kp_image_bytes(r->profiler, list, 2, &two))
        return 0;
    return two > one ? two - one : 0;
}

/* Counts all lists of one plan, because they are held together until evaluation. */
static size_t room_together(const struct range *r, const struct kp_lists *lists, size_t room)
{
    size_t each = 0;
    for (size_t i = 0; i < lists->n; i++)
        each += bytes_each(r, &lists->at[i]);
    return each && r->setup->memory / each < room ? r->setup->memory / each : room;
}

/* Counts the largest list, because a window has one of them. */
static size_t room_in_turn(const struct range *r, const struct kp_lists *lists, size_t room)
{
    size_t most = 0;
    for (size_t i = 0; i < lists->n; i++) {
        size_t each = bytes_each(r, &lists->at[i]);
        most = each > most ? each : most;
    }
    return most && r->setup->memory / most < room ? r->setup->memory / most : room;
}

/* Returns true if a session may count the launches of a rotation. */
static bool has_session(struct range *r)
{
    return r->setup->chooses && !r->stuck && kp_sessions_suit(&r->sessions, &r->setup->one_pass);
}

/* Returns true if a session may replay the launches of a window. */
static bool replays_in_session(struct range *r)
{
    return !r->beside && !r->stuck && kp_sessions_suit(&r->sessions, &r->setup->replayed);
}

/* The number of windows that the range profiler replays after counting one itself, so that neither waits for the other
 * to start. Starting costs 0.1 to 0.2 s, and a window's passes may cost that much more than in a session. */
enum { MOST_BESIDE = 8 };

/* Returns true if a session may count launches alongside replays in sessions. Otherwise the range profiler does
 * both. */
static bool has_beside(struct range *r, size_t list)
{
    const struct kp_lists *lists = &r->setup->one_pass;
    return lists->at != r->setup->replayed.at && replays_in_session(r) && kp_sessions_suit(&r->sessions, lists) &&
           lists->at[list].passes == 1;
}

static size_t find_room(struct range *r)
{
    size_t most = r->setup->window ? r->setup->window : 1;
    if (r->room)
        return r->room;
    if (has_session(r)) {
        r->room =
            kp_sessions_fit(&r->sessions, &r->setup->one_pass, false, most < KP_CHOSEN_ROOM ? most : KP_CHOSEN_ROOM);
        return r->room ? r->room : 1;
    }
    if (replays_in_session(r)) {
        r->room = kp_sessions_fit(&r->sessions, &r->setup->replayed, true, most);
        return r->room ? r->room : 1; /* known later */
    }
    if (enable(r)) /* may be available later: do not cache */
        return most;
    const struct kp_lists *replayed = &r->setup->replayed, *in_turn = &r->setup->one_pass;
    r->room = room_in_turn(r, in_turn, most);
    if (replayed->at != in_turn->at)
        r->room = room_together(r, replayed, r->room);
    if (!r->room)
        r->room = 1;
    leave_disabled(r);
    return r->room;
}

/* Gets an image with room for `ranges`, and enables the profiler for it. */
static int take_lease(struct range *r, enum kp_range_mode mode, const struct kp_config *config, size_t ranges,
                      struct lease **out)
{
    struct lease *l = NULL;
    int rc = enable(r); /* otherwise the room is unknown */
    if (rc)
        return rc;
    if (!ranges)
        ranges = 1; /* no image has less */
    size_t room = room_step(ranges, find_room(r));
    l = idle_lease(r, config, ranges);
    rc = enable_for(r, mode, config, l ? kp_image_ranges(l->image) : room);
    if (!rc && !l) {
        rc = make_lease(r, config, ranges, room, &l);
        if (!rc) /* asks again, because it may have more room */
            rc = enable_for(r, mode, config, kp_image_ranges(l->image));
    }
    if (rc)
        return rc;
    atomic_store(&l->busy, true);
    *out = l;
    return 0;
}

/* Starts a pass of the list in a session. False: there is none. */
static bool start_session(struct range *r, size_t list)
{
    return has_session(r) && !(r->profiler && disable(r)) &&
           kp_sessions_choose(&r->sessions, &r->setup->one_pass, list, find_room(r));
}

/* ---- ranges ---- */

/* Returns true if each launch of the window is a range. */
static bool counts_each(const struct kp_providers_window *w)
{
    return w->mode == KP_RANGE_AUTO && !w->chooses;
}

static size_t ranges_expected(const struct kp_providers *x)
{
    const struct kp_providers_window *w = &x->window;
    size_t n = 0;
    for (size_t i = 0; i < w->n_launches; i++)
        if (counts_each(w))
            n += 1 + (x->swept && kp_provider_wants(w, i));
        else
            n += kp_provider_wants(w, i);
    return n;
}

/* Maps each launch with a result to its range. */
static void map_ranges(const struct kp_providers *x, struct counted *k)
{
    const struct kp_providers_window *w = &x->window;
    size_t range = 0;
    k->n_results = 0;
    for (size_t i = 0; i < w->n_launches; i++) {
        range += x->swept && counts_each(w) && kp_provider_wants(w, i);
        if (kp_provider_wants(w, i))
            k->ranges[k->n_results++] = range;
        range += counts_each(w) || kp_provider_wants(w, i);
    }
}

/* Keeps the first failure of a mark, for the explanation. */
static int mark(struct range *r, bool begin)
{
    int rc = kp_sessions_counts(&r->sessions) ? kp_chosen_count(r->sessions.session, begin)
             : begin                          ? kp_range_push(r->profiler)
                                              : kp_range_pop(r->profiler);
    r->marked = begin && !rc;
    if (rc && !r->hook)
        r->hook = rc;
    return rc;
}

/* ---- the provider ---- */

static int range_open(struct kp_providers *x)
{
    struct range *r = own(x);
    r->setup = &x->setup;
    r->sessions.setup = &x->setup;
    return kp_host_open(r->setup->cupti, r->setup->chip, r->setup->availability, &r->hosts[0]);
}

static void range_close(struct kp_providers *x, bool alive)
{
    struct range *r = own(x);
    if (alive) {
        disable(r);
        kp_sessions_end(&r->sessions, false);
    } else {
        kp_range_abandon(r->profiler);
    }
    kp_chosen_abandon(r->sessions.session); /* also one that did not end */
    kp_chosen_free(r->data);
    kp_config_free(&r->used_config);
    for (size_t i = 0; i < MOST_THREADS; i++)
        kp_host_close(r->hosts[i]);
    while (r->leases) {
        struct lease *l = r->leases;
        r->leases = l->next;
        kp_image_free(l->image);
        free(l);
    }
}

static size_t range_room(struct kp_providers *x)
{
    return find_room(own(x));
}

static size_t range_groups(struct kp_providers *x)
{
    return x->setup.replayed.n;
}

static size_t range_repeats(const struct kp_providers *x, size_t list)
{
    return x->setup.replayed.at[list].passes;
}

static const struct kp_lists *lists_of(const struct kp_providers *x)
{
    return x->window.counted ? &x->setup.one_pass : &x->setup.replayed;
}

static int range_window(struct kp_providers *x)
{
    struct range *r = own(x);
    r->hook = x->window.counted ? r->hook : 0;
    if (!x->window.counted)
        kp_sessions_end_again(&r->sessions);
    r->expected = ranges_expected(x);
    struct counted *k = x->gathered ? calloc(1, sizeof(*k)) : NULL;
    if (!k || !(k->ranges = calloc(x->window.n_launches + 1, sizeof(*k->ranges)))) {
        free(k);
        return -ENOMEM;
    }
    k->r = r;
    k->lists = *lists_of(x);
    map_ranges(x, k);
    x->gathered->of[kp_provider_number(x, &kp_provider_range)] = k;
    return 0;
}

/* Keeps the counters of a list, in the current data or lease. */
static int keep_part(struct kp_providers *x, size_t list, bool borrowed)
{
    struct range *r = own(x);
    struct counted *k = gathered(x);
    if (!k || !KP_ROOM(k->parts, k->n_parts))
        return -ENOMEM;
    struct part *part = &k->parts[k->n_parts++];
    *part = (struct part){.list = list, .lease = r->lease, .data = r->data, .borrowed = borrowed};
    if (r->data && !borrowed)
        kp_chosen_read(r->data, NULL, &part->bytes);
    atomic_fetch_add(&r->held, part->bytes);
    r->lease = NULL;
    x->gathered->any = true;
    return 0;
}

/* Returns true if a session has counted all launches. A session that has lost some is not used again. */
static bool has_all(struct range *r, size_t expected, size_t dropped)
{
    if (r->seen < expected && !dropped && kp_chosen_lacks())
        kp_sessions_end(&r->sessions, false);
    else if (r->seen < expected && !dropped)
        kp_sessions_give_up(&r->sessions, "session with all launches", WRONG_RANGES);
    return r->seen == expected && !dropped;
}

/* Decodes the lists that a session has counted: they share the data, which belongs to the first part. */
static int keep_waiting(struct kp_providers *x)
{
    struct range *r = own(x);
    size_t dropped = 0, n = r->n_waiting, kept = 0;
    r->n_waiting = 0;
    if (!n || !kp_sessions_counts(&r->sessions))
        return n ? -EIO : 0;
    int rc = kp_chosen_take(r->sessions.session, &r->data, &r->seen, &dropped);
    r->seen += rc ? 0 : dropped;
    if (rc)
        kp_sessions_give_up(&r->sessions, "decoding of a session", rc);
    if (!rc && !has_all(r, r->awaited, dropped))
        rc = WRONG_RANGES;
    while (!rc && kept < n && !(rc = keep_part(x, r->from + kept, kept)))
        kept++;
    if (!kept)
        kp_chosen_free(r->data);
    r->data = NULL;
    return rc;
}

/* Returns true if sessions can count such a window. */
static bool suits_sessions(const struct kp_providers *x)
{
    return x->window.mode == KP_RANGE_AUTO && !x->carry && !x->window.swept;
}

/* Returns true if a session may have the list: for replay, or alongside replays. */
static bool is_for_session(struct kp_providers *x, size_t list)
{
    struct range *r = own(x);
    return suits_sessions(x) && (x->window.counted ? has_beside(r, list) : replays_in_session(r));
}

/* Loads the list in a session. False: there is no session for it. */
static bool begin_in_session(struct kp_providers *x, size_t list, size_t ranges)
{
    struct range *r = own(x);
    const struct kp_lists *lists = lists_of(x);
    if (!is_for_session(x, list) || (r->profiler && disable(r)))
        return false;
    size_t room = room_step(ranges ? ranges : 1, find_room(r));
    if (r->n_waiting && kp_sessions_goes_on(&r->sessions, lists, list, room))
        return true;
    keep_waiting(x); /* its losses show as missing */
    r->from = list;
    if (atomic_load(&r->held) > r->setup->memory / 2)
        r->setup->settle();
    return kp_sessions_load(&r->sessions, lists, list, room);
}

static int begin_list(struct kp_providers *x, size_t list, size_t ranges)
{
    struct range *r = own(x);
    const struct kp_config *config = &lists_of(x)->at[list];
    r->in_session = begin_in_session(x, list, ranges);
    if (r->in_session)
        return 0;
    int rc = take_lease(r, x->window.mode, config, ranges, &r->lease);
    if (!rc && !x->carry) {
        rc = kp_range_begin(r->profiler, x->window.mode, r->lease->image);
        return rc || !config->turns ? rc : kp_range_skip(r->profiler, config->turn);
    }
    if (!rc && x->carry->pass)
        rc = kp_image_read(r->lease->image, x->carry->from);
    return rc ? rc : kp_range_resume(r->profiler, x->window.mode, r->lease->image, x->carry->pass);
}

static int range_begin(struct kp_providers *x)
{
    struct range *r = own(x);
    r->expected = ranges_expected(x);
    map_ranges(x, gathered(x));
    return begin_list(x, x->part, r->expected);
}

static int range_start(struct kp_providers *x)
{
    struct range *r = own(x);
    kp_taken_started(x->setup.taken);
    return r->in_session ? kp_sessions_start(&r->sessions) : kp_range_start(r->profiler);
}

static int range_count(struct kp_providers *x, size_t room)
{
    own(x)->hook = 0;
    own(x)->afresh = x->carry;
    if (x->part >= x->setup.one_pass.n)
        return -ENOENT;
    kp_sessions_end_again(&own(x)->sessions);
    if (suits_sessions(x) && start_session(own(x), x->part)) {
        x->window.chooses = own(x)->sessions.room;
        return 0;
    }
    int rc = begin_list(x, x->part, room);
    if (!rc && own(x)->in_session && !range_start(x))
        return 0;
    bool again = !rc && own(x)->in_session; /* sessions no longer count */
    own(x)->beside = MOST_BESIDE;
    if (again)
        rc = begin_list(x, x->part, room);
    return rc ? rc : range_start(x);
}

/* Opens and closes a launch's range only while nothing runs. */
static bool range_idle(const struct kp_providers *x, bool before)
{
    return before ? x->window.mode == KP_RANGE_USER || x->window.chooses : own(x)->marked;
}

static int range_before(struct kp_providers *x, struct kp_counters_launch *l)
{
    (void)l;
    return x->window.mode == KP_RANGE_USER || x->window.chooses ? mark(own(x), true) : 0;
}

static int range_after(struct kp_providers *x, struct kp_counters_launch *l)
{
    (void)l;
    return own(x)->marked ? mark(own(x), false) : 0;
}

/* Ends a session whose pass cannot be ended. */
static void end_running(struct range *r)
{
    if (r->sessions.session && kp_chosen_runs(r->sessions.session))
        kp_sessions_end(&r->sessions, false);
}

static int stop_session(struct range *r)
{
    size_t ranges = 0, dropped = 0;
    kp_chosen_free(r->data);
    int rc = kp_chosen_stop(r->sessions.session, &r->data, &ranges, &dropped);
    r->seen = ranges + dropped;
    end_running(r);
    if (!rc && dropped)
        return WRONG_RANGES;
    return rc ? rc : r->hook;
}

/* Ends a pass of a replay in the session. If that fails, the counts of earlier lists are kept. */
static int stop_replayed(struct kp_providers *x, const struct kp_config *list, bool *last)
{
    struct range *r = own(x);
    *last = true;
    if (!kp_sessions_counts(&r->sessions)) /* the pass has not started */
        return 0;
    int rc = kp_sessions_stop(&r->sessions, list, last);
    if (rc && !kp_chosen_runs(r->sessions.session))
        keep_waiting(x);
    if (rc)
        kp_sessions_give_up(&r->sessions, "end of a session's pass", rc);
    return rc ? rc : r->hook;
}

static int range_stop(struct kp_providers *x, bool *last)
{
    struct range *r = own(x);
    if (x->window.chooses) {
        *last = true;
        return stop_session(r);
    }
    const struct kp_config *list = &lists_of(x)->at[x->part];
    if (r->in_session)
        return stop_replayed(x, list, last);
    int rc = kp_range_stop(r->profiler, last);
    if (x->carry && !rc)
        *last = true; /* of this run */
    if (list->turns && !rc)
        *last = kp_range_turn(r->profiler) == (list->turn + list->passes) % list->turns;
    if (kp_range_runs(r->profiler) && disable(r))
        r->lease = NULL;      /* stays busy: CUPTI may still write to its image */
    return rc ? rc : r->hook; /* ranges and launches do not match */
}

/* Decodes at once, or together with the next list in the image. */
static int decode_replayed(struct kp_providers *x)
{
    struct range *r = own(x);
    const struct kp_lists *lists = lists_of(x);
    r->n_waiting++;
    r->awaited = r->expected;
    return x->part + 1 < lists->n && lists->at[x->part + 1].turn ? 0 : keep_waiting(x);
}

static int range_decode(struct kp_providers *x)
{
    struct range *r = own(x);
    size_t ranges = 0, dropped = 0;
    if (r->in_session)
        return decode_replayed(x);
    if (x->window.chooses) {
        int rc = has_all(r, r->expected, 0) ? keep_part(x, x->part, false) : WRONG_RANGES;
        r->data = rc ? r->data : NULL;
        return rc;
    }
    int rc = kp_range_decode(r->profiler, &ranges, &dropped);
    if (rc)
        return rc;
    r->seen = ranges + dropped;
    if (r->seen != r->expected || dropped)
        return WRONG_RANGES;
    return x->carry && !x->carry->last ? kp_image_write(r->lease->image, x->carry->to) : keep_part(x, x->part, false);
}

static void range_over(struct kp_providers *x)
{
    struct range *r = own(x);
    keep_waiting(x); /* a list after those has failed */
    if (r->beside && !x->window.counted && !x->window.alone)
        r->beside--;
    r->in_session = false;
    if (r->lease)
        atomic_store(&r->lease->busy, false);
    r->lease = NULL;
    kp_chosen_free(r->data);
    r->data = NULL;
    r->marked = false;
    if (x->window.chooses && x->window.last)
        kp_sessions_end(&r->sessions, false); /* its image uses host memory */
}

static int range_release(struct kp_providers *x)
{
    keep_waiting(x);
    return disable(own(x));
}

static bool range_stuck(const struct kp_providers *x)
{
    return why_stuck(own(x));
}

static struct kp_why range_explain(const struct kp_providers *x, int code)
{
    const struct range *r = own(x);
    if (r->hook)
        return kp_library_explain(x->setup.cupti, KP_REASON_NOT_MARKED, r->hook);
    if (code != WRONG_RANGES)
        return kp_why_of(KP_REASON_NONE, NULL);
    return kp_why_of(KP_REASON_OTHER_KERNELS,
                     kp_asprintf("the counters saw %zu kernels instead of %zu (another tool, or kernels of a library)",
                                 r->seen, r->expected));
}

static void range_free(void *of)
{
    struct counted *k = of;
    for (size_t p = 0; p < k->n_parts; p++) {
        if (k->parts[p].lease)
            atomic_store(&k->parts[p].lease->busy, false);
        if (!k->parts[p].borrowed)
            kp_chosen_free(k->parts[p].data);
        atomic_fetch_sub(&k->r->held, k->parts[p].bytes);
    }
    free(k->parts);
    free(k->ranges);
    free(k);
}

/* ---- evaluation ---- */

/* One part, shared by the threads that evaluate it. */
struct evaluation {
    const struct counted *k;
    const struct part *part;
    struct kp_result *const *results;
    atomic_size_t next; /* next launch not taken by any thread */
};

/* One of the threads. */
struct turn {
    struct evaluation *of;
    struct kp_host **host;
    pthread_t thread;
    int rc; /* of its first failed launch, */
    size_t at;
};

static int evaluate_launch(const struct evaluation *e, struct kp_host *host, size_t i, double *values)
{
    const struct counted *k = e->k;
    const struct kp_config *config = &k->lists.at[e->part->list];
    const uint8_t *image;
    size_t size;
    if (e->part->data)
        kp_chosen_read(e->part->data, &image, &size);
    else
        kp_image_data(e->part->lease->image, &image, &size);
    int rc = kp_host_evaluate(host, image, size, k->ranges[i], config->names, config->n_names + config->n_more, values);
    return rc ? rc : k->lists.store(k->lists.of, e->part->list, values, e->results[i]);
}

/* Evaluates launches until none are left. Without a host or memory, leaves them to the other threads. */
static void *take_launches(void *arg)
{
    struct turn *turn = arg;
    struct evaluation *e = turn->of;
    const struct kp_providers_setup *setup = e->k->r->setup;
    if (!*turn->host && kp_host_open(setup->cupti, setup->chip, setup->availability, turn->host))
        return NULL;
    const struct kp_config *list = &e->k->lists.at[e->part->list];
    double *values = calloc(list->n_names + list->n_more + 1, sizeof(*values));
    if (!values)
        return NULL;
    for (size_t i; (i = atomic_fetch_add(&e->next, 1)) < e->k->n_results;) {
        int rc = evaluate_launch(e, *turn->host, i, values);
        if (rc && !turn->rc) {
            turn->rc = rc;
            turn->at = i;
        }
    }
    free(values);
    return NULL;
}

/* Returns how many threads pay off for so many launches. Leaves one CPU to the program. */
static size_t threads_for(const struct range *r, size_t launches)
{
    cpu_set_t set[MOST_CPUS / CPU_SETSIZE];
    size_t n = launches / LEAST_SHARE;
    if (n < 2 || !r->setup->start || sched_getaffinity(0, sizeof(set), set))
        return 1;
    size_t cpus = (size_t)CPU_COUNT_S(sizeof(set), set);
    if (n >= cpus)
        n = cpus > 1 ? cpus - 1 : 1;
    return n < MOST_THREADS ? n : MOST_THREADS;
}

/* Returns the error of the first failed launch. */
static int evaluate_part(const struct counted *k, const struct part *part, struct kp_result *const *results)
{
    struct range *r = k->r;
    struct evaluation e = {.k = k, .part = part, .results = results};
    struct turn turns[MOST_THREADS];
    size_t n = 0, most = threads_for(r, k->n_results);
    for (size_t i = 0; i < most; i++)
        turns[i] = (struct turn){.of = &e, .host = &r->hosts[i], .at = SIZE_MAX};
    while (n + 1 < most && r->setup->start(take_launches, &turns[n + 1], &turns[n + 1].thread))
        n++;
    const struct turn *first = &turns[0];
    take_launches(&turns[0]);
    for (; n; n--) { /* joins, because libraries tear down their thread data after its function has returned */
        r->setup->join(turns[n].thread);
        if (turns[n].at < first->at)
            first = &turns[n];
    }
    if (!first->rc && atomic_load(&e.next) < k->n_results) /* no thread had memory */
        return -ENOMEM;
    return first->rc;
}

static int range_evaluate(void *of, struct kp_result *const *results)
{
    const struct counted *k = of;
    int rc = 0;
    for (size_t p = 0; p < k->n_parts; p++) {
        int one = evaluate_part(k, &k->parts[p], results);
        if (!rc)
            rc = one;
    }
    return rc;
}

const struct kp_provider kp_provider_range = {
    .what = KP_REASON_NOT_COUNTED,
    .size = sizeof(struct range),
    .flushes = true,
    .carries = true,
    .open = range_open,
    .close = range_close,
    .groups = range_groups,
    .repeats = range_repeats,
    .room = range_room,
    .window = range_window,
    .release = range_release,
    .stuck = range_stuck,
    .count = range_count,
    .begin = range_begin,
    .start = range_start,
    .idle = range_idle,
    .before = range_before,
    .after = range_after,
    .stop = range_stop,
    .decode = range_decode,
    .over = range_over,
    .explain = range_explain,
    .evaluate = range_evaluate,
    .free = range_free,
};
