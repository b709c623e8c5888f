#include "preload/who/timeline.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/room.h"
#include "base/wait_limits.h"
#include "base/work.h"
#include "base/text.h"
#include "collectors/providers/observe.h"
#include "preload/who/durations.h"

enum {
    MANY = 1 << 16,       /* number of waiting activities at which the session is asked to store them */
    MOST_NAMES = 1 << 16, /* a power of 2 */
    NAME_SLOTS = 2 * MOST_NAMES,
    NAME_MOST = 4096, /* bytes; longer ones are cut */
    CHUNK = 4096,     /* launch notes that are allocated together */
    CHUNKS = KP_TIMELINE_MOST / CHUNK,
    SPANS = 1024, /* how many times of our own work are kept, the latest ones */
    OURS = 1024,  /* how many copies of ours may be awaited */
};

static const int64_t short_hold_ns = 20000;

/* Work of ours on a device. */
struct span {
    uint32_t context_id;
    int64_t start, end; /* INT64_MAX: it goes on */
};

/* A copy of ours that is expected. */
struct awaited {
    uint32_t context_id;
    uint64_t bytes; /* 0: none */
    int64_t since;
};

struct name {
    uint64_t hash;
    bool mangled;
    char text[];
};

static struct {
    struct kp_lock *lock;
    const struct kp_cupti *c;
    void (*on_many)(void);
    int64_t offset; /* CUPTI's clock minus ours, when the timeline started */

    struct kp_activity *waiting; /* this and the following under the lock */
    size_t n_waiting;
    bool asked;    /* on_many was called for what waits */
    uint64_t kept; /* activities in total */
    uint64_t dropped;
    struct name **names; /* by number */
    uint32_t n_names;
    uint32_t *slots; /* of the names by their hash: number + 1 */
    struct kp_launch_note *notes[CHUNKS];
    size_t n_notes;
    struct span spans[SPANS];
    size_t n_spans; /* in total */
    struct awaited ours[OURS];
    size_t n_ours; /* in total */
} line = {.lock = &kp_locks[KP_LOCK_TIMELINE]};

static atomic_bool on, begun, not_resumed;

#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL size_t own_note;   /* number + 1 of this thread's last launch; 0 = none */
THREAD_LOCAL int64_t own_since; /* when this thread started to work for kprof; 0: it does not */

bool kp_timeline_is_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

bool kp_timeline_has_begun(void)
{
    return atomic_load(&begun);
}

bool kp_timeline_refused(void)
{
    return atomic_load(&not_resumed);
}

/* ---- clocks: times before the timeline started are by our own clock, and marked by being negative ---- */

int64_t kp_timeline_now(void)
{
    int64_t now = kp_timeline_is_on() ? (int64_t)kp_observe_now(line.c) : 0;
    return now ? now : -(int64_t)kp_clock_ns();
}

static int64_t converted(int64_t t)
{
    return t < 0 ? line.offset - t : t;
}

/* ---- under the lock ---- */

/* Waits shortly for threads that append, and not at all for this one: a signal handler may have interrupted it. Without
 * the lock an activity is lost, nothing worse. */
static bool enter(void)
{
    kp_work_begin(); /* CUPTI calls from within the program's calls, too */
    bool entered = kp_lock_take(line.lock, kp_limit_first(KP_WAIT_TIMELINE));
    if (!entered)
        kp_work_end();
    return entered;
}

static void leave(void)
{
    kp_lock_give(line.lock);
    kp_work_end();
}

/* Returns the number of a name; 0, the empty name, if there is no room or memory for it. */
static uint32_t number_of(const char *text, bool mangled)
{
    size_t len = strnlen(text, NAME_MOST);
    uint64_t hash = kp_hash(text, len, mangled);
    for (size_t i = hash;; i++) {
        uint32_t *slot = &line.slots[i & (NAME_SLOTS - 1)];
        const struct name *known = *slot ? line.names[*slot - 1] : NULL;
        if (known && (known->hash != hash || strncmp(known->text, text, len) != 0 || known->text[len]))
            continue;
        if (known)
            return *slot - 1;
        struct name *n = line.n_names < MOST_NAMES ? realloc(NULL, sizeof *n + len + 1) : NULL;
        if (!n)
            return 0;
        n->hash = hash;
        n->mangled = mangled;
        memcpy(n->text, text, len);
        n->text[len] = '\0';
        line.names[line.n_names] = n;
        *slot = ++line.n_names;
        return *slot - 1;
    }
}

static bool has_room(void)
{
    return line.kept < KP_TIMELINE_MOST && KP_ROOM(line.waiting, line.n_waiting);
}

static void add(const struct kp_activity *a, const char *name, bool mangled)
{
    if (!has_room()) {
        line.dropped++;
        return;
    }
    struct kp_activity *to = &line.waiting[line.n_waiting++];
    *to = *a;
    to->name = number_of(name, mangled);
    line.kept++;
}

/* Returns true if this is a copy of ours that was awaited, and stops awaiting it. */
static bool is_awaited(const struct kp_activity *a)
{
    size_t oldest = line.n_ours > OURS ? line.n_ours - OURS : 0;
    for (size_t i = oldest; a->kind == KP_ACTIVITY_COPY && i < line.n_ours; i++) {
        struct awaited *o = &line.ours[i % OURS];
        if (o->bytes && o->bytes == a->bytes && o->context_id == a->context_id && a->start_ns >= o->since) {
            o->bytes = 0;
            return true;
        }
    }
    return false;
}

/* Returns true if kprof made the device do this in a time noted as its own. */
static bool is_within(const struct kp_activity *a)
{
    size_t oldest = line.n_spans > SPANS ? line.n_spans - SPANS : 0;
    for (size_t i = line.n_spans; i > oldest; i--) {
        const struct span *s = &line.spans[(i - 1) % SPANS];
        if (s->context_id == a->context_id && a->start_ns >= s->start && a->start_ns < s->end)
            return true;
        if (s->end < a->start_ns)
            return false; /* older ones ended before */
    }
    return false;
}

static bool is_ours(const struct kp_activity *a, const char *name)
{
    return is_within(a) || (!strcmp(name, "memcpy DtoD") && is_awaited(a));
}

/* Adds an activity, and asks for all to be stored if there are many. */
static void add_locked(const struct kp_activity *a, const char *name, bool mangled)
{
    if (!enter())
        return;
    if (a->kind == KP_ACTIVITY_RANGE || a->kind == KP_ACTIVITY_KPROF || !is_ours(a, name))
        add(a, name, mangled);
    bool ask = line.n_waiting >= MANY && !line.asked;
    line.asked |= ask;
    leave();
    if (ask && line.on_many)
        line.on_many();
}

/* ---- records ---- */

static void take_record(const struct kp_device_record *r)
{
    kp_durations_add(r);
    /* A record without times belongs to an activity that had not ended, or never ran. */
    if (kp_timeline_is_on() && r->activity.start_ns && r->activity.end_ns >= r->activity.start_ns)
        add_locked(&r->activity, r->name, r->activity.kind == KP_ACTIVITY_KERNEL);
}

int kp_timeline_begin(const struct kp_cupti *c, void (*on_many)(void))
{
    if (!kp_observe_available(c))
        return -ENOTSUP;
    line.names = line.names ? line.names : calloc(MOST_NAMES, sizeof(struct name *));
    line.slots = line.slots ? line.slots : calloc(NAME_SLOTS, sizeof *line.slots);
    if (!line.names || !line.slots)
        return -ENOMEM;
    line.n_spans = line.n_ours = 0;
    line.c = c;
    line.on_many = on_many;
    number_of("", false);
    line.offset = (int64_t)kp_observe_now(c) - (int64_t)kp_clock_ns();
    atomic_store(&on, true);
    int rc = kp_observe_begin(c, take_record, false);
    atomic_store(&on, !rc);
    atomic_store(&begun, !rc);
    return rc;
}

void kp_timeline_stop(void)
{
    atomic_store(&on, false);
}

void kp_timeline_forked(void)
{
    kp_durations_stop();
    atomic_store(&on, false);
    atomic_store(&begun, false);
}

/* ---- the program ---- */

void kp_timeline_range(const char *domain, const char *name, uint64_t thread, int64_t start, int64_t end)
{
    char text[NAME_MOST];
    struct kp_activity a = {.kind = KP_ACTIVITY_RANGE, .device = KP_NO_DEVICE, .ordinal = -1, .thread = thread};
    if (!kp_timeline_is_on())
        return;
    a.start_ns = converted(start);
    a.end_ns = converted(end);
    if (!*domain) {
        add_locked(&a, name, false);
        return;
    }
    size_t len = strnlen(domain, sizeof text / 2 - 1), rest = strnlen(name, sizeof text / 2 - 1);
    memcpy(text, domain, len);
    text[len] = '@';
    memcpy(text + len + 1, name, rest);
    text[len + 1 + rest] = '\0';
    add_locked(&a, text, false);
}

/* Returns the room of a note, under the lock; NULL beyond the bound. */
static struct kp_launch_note *note_at(size_t i)
{
    if (i >= KP_TIMELINE_MOST)
        return NULL;
    if (!line.notes[i / CHUNK])
        line.notes[i / CHUNK] = realloc(NULL, CHUNK * sizeof(struct kp_launch_note));
    return line.notes[i / CHUNK] ? &line.notes[i / CHUNK][i % CHUNK] : NULL;
}

static size_t add_note(const struct kp_launch_note *note)
{
    struct kp_launch_note *to = note_at(line.n_notes);
    if (!to)
        return 0;
    *to = *note;
    return ++line.n_notes;
}

void kp_timeline_launching(const uint32_t *grid, const uint32_t *block)
{
    own_note = 0;
    if (!kp_timeline_is_on())
        return;
    if (own_since)
        kp_timeline_held(own_since);
    const struct kp_launch_note note = {.launched_ns = kp_timeline_now(),
                                        .ordinal = -1,
                                        .thread = (uint64_t)kp_thread_id(),
                                        .shape = grid ? kp_timeline_shape(grid, block) : 0,
                                        .is_graph = !grid};
    if (!enter())
        return;
    own_note = add_note(&note);
    leave();
}

void kp_timeline_launched(bool refused)
{
    if (own_since)
        own_since = kp_timeline_now();
    if (!own_note || !refused || !enter())
        return;
    note_at(own_note - 1)->refused = true;
    leave();
}

void kp_timeline_profiled(uint64_t ordinal)
{
    if (!own_note || !enter())
        return;
    note_at(own_note - 1)->ordinal = (int64_t)ordinal;
    leave();
}

void kp_timeline_node(const uint32_t *grid, const uint32_t *block, uint64_t ordinal)
{
    if (!kp_timeline_is_on())
        return;
    const struct kp_launch_note note = {
        .ordinal = (int64_t)ordinal, .shape = kp_timeline_shape(grid, block), .is_node = true};
    if (!enter())
        return;
    add_note(&note);
    leave();
}

/* ---- our own work ---- */

static void begin_span(uint32_t context_id)
{
    const struct span s = {context_id, kp_timeline_now(), INT64_MAX};
    if (!enter())
        return;
    line.spans[line.n_spans++ % SPANS] = s;
    leave();
}

static void end_span(void)
{
    int64_t now = kp_timeline_now();
    if (!enter())
        return;
    if (line.n_spans)
        line.spans[(line.n_spans - 1) % SPANS].end = now;
    leave();
}

void kp_timeline_pause(uint32_t context_id)
{
    kp_durations_pause();
    if (!kp_timeline_is_on())
        return;
    begin_span(context_id);
    kp_observe_pause(line.c);
}

void kp_timeline_resume(void)
{
    kp_durations_resume();
    if (!kp_timeline_is_on())
        return;
    if (kp_observe_resume(line.c)) {
        atomic_store(&not_resumed, true);
        kp_timeline_stop();
    }
    end_span();
}

void kp_timeline_ours_begin(uint32_t context_id)
{
    if (kp_timeline_is_on())
        begin_span(context_id);
}

void kp_timeline_ours_end(void)
{
    if (kp_timeline_is_on())
        end_span();
}

void kp_timeline_ours_copy(uint32_t context_id, uint64_t bytes)
{
    if (!kp_timeline_is_on())
        return;
    const struct awaited o = {context_id, bytes, kp_timeline_now()};
    if (!enter())
        return;
    line.ours[line.n_ours++ % OURS] = o;
    leave();
}

void kp_timeline_held(int64_t since)
{
    struct kp_activity a = {.kind = KP_ACTIVITY_KPROF, .device = KP_NO_DEVICE, .ordinal = -1};
    if (!kp_timeline_is_on())
        return;
    a.start_ns = converted(since);
    a.end_ns = kp_timeline_now();
    if (a.end_ns - a.start_ns >= short_hold_ns)
        add_locked(&a, "", false);
}

int64_t kp_timeline_enter(void)
{
    own_since = kp_timeline_is_on() ? kp_timeline_now() : 0;
    return own_since;
}

void kp_timeline_leave(int64_t entered)
{
    if (entered && own_since)
        kp_timeline_held(own_since);
    own_since = 0;
}

/* ---- what was recorded ---- */

void kp_timeline_flush(bool all)
{
    kp_durations_flush(all);
    if (!kp_timeline_is_on())
        return;
    kp_observe_flush(line.c, false);
    if (all)
        kp_observe_flush(line.c, true);
}

size_t kp_timeline_take(struct kp_activity **at, uint32_t *names)
{
    *at = NULL;
    *names = 0;
    if (!enter())
        return 0;
    size_t n = line.n_waiting;
    *at = line.waiting;
    *names = line.n_names;
    line.waiting = NULL;
    line.n_waiting = 0;
    line.asked = false;
    leave();
    return n;
}

const char *kp_timeline_text(uint32_t name, bool *mangled)
{
    bool entered = enter();
    const struct name *n = entered && name < line.n_names ? line.names[name] : NULL;
    if (entered)
        leave();
    *mangled = n && n->mangled;
    return n ? n->text : "";
}

uint64_t kp_timeline_dropped(void)
{
    if (!enter())
        return 1; /* the thread that holds the lock is about to add one */
    uint64_t n = line.dropped;
    leave();
    return n + kp_observe_dropped();
}

struct kp_launch_note *kp_timeline_notes(size_t *n)
{
    *n = 0;
    if (!enter())
        return NULL;
    struct kp_launch_note *all = line.n_notes ? malloc(line.n_notes * sizeof *all) : NULL;
    *n = all ? line.n_notes : 0;
    for (size_t i = 0; i < *n; i++)
        all[i] = *note_at(i);
    leave();
    return all;
}
