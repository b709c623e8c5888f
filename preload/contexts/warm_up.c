#include "preload/contexts/warm_up.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/wait_limits.h"
#include "collectors/plan/chips.h"
#include "collectors/providers/library.h"
#include "collectors/providers/tables.h"
#include "preload/os/exit_first.h"
#include "preload/os/guard.h"
#include "preload/os/progress.h"
#include "preload/os/worker.h"

/* What its threads are doing, or about to start; waits happen in the kernel. EARLY: it opens what a plan needs before
 * the plan is asked for. */
enum { IDLE, EARLY, OPENING, PLANNING };
static atomic_int busy;
static atomic_int opens_other; /* 1: it opens the counting library; waits happen in the kernel */
static struct kp_lock *const opening = &kp_locks[KP_LOCK_WARMING];

/* When it opens early: after a pause that is longer than a cuInit without a device; at once, for a launch; or never,
 * because the program ends and would wait for something that nobody needs. */
enum { AFTER_A_PAUSE, AT_ONCE, NEVER };
static atomic_int when;

/* A launch by a library's constructor holds the loader's lock, which a thread needs to open libraries, and may need
 * where it first touches their thread-local data: the wait for it must end when that stands still. Ids of the thread
 * that has the lock and opens, and of the one that plans. */
static atomic_int opener, planner;

static struct {
    const struct kp_cupti *early; /* opens what a plan needs, before one is asked for; NULL = not requested */
    atomic_long early_ms;         /* time that it took; -1 = not yet known */
    const struct kp_cupti *library;
    struct kp_cupti *copy; /* owned by its threads: the first launch completes the other one */
    struct kp_ahead wish;
    struct kp_plan *_Atomic plan;
} ahead = {.early_ms = -1};

/* The library was asked to stop: a launch that comes anyway must not get what it has left. */
static atomic_bool stopped;

static bool is_wanted(void)
{
    return atomic_load(&when) != NEVER;
}

static bool is_needed(void)
{
    bool needed = is_wanted();
    if (!needed)
        atomic_store(&stopped, true);
    return needed;
}

static void open_part(const struct kp_cupti *c, enum kp_library_part part, atomic_long *took_ms)
{
    kp_lock_take(opening, KP_FOREVER);
    atomic_store(&opener, kp_thread_id());
    long start = kp_now_ms();
    kp_library_warm(c, part);
    if (took_ms)
        atomic_store(took_ms, kp_now_ms() - start);
    kp_lock_give(opening);
    kp_exit_first(); /* before the exit handlers of the libraries that another thread may use for planning by then */
}

/* Waits while the word has that value. */
static void wait_while(atomic_int *word, int value, long most_ms)
{
    long start = kp_now_ms(), waited = 0;
    while (atomic_load(word) == value && (waited = kp_now_ms() - start) < most_ms)
        kp_lock_wait_while(word, value, most_ms - waited);
}

/* ---- before the plan is known ---- */

static void join(void *thread)
{
    kp_worker_thread_join((pthread_t)(uintptr_t)thread);
}

/* Ends a thread that may have waited in the loader. It is none of the worker's, because threads that have the loader's
 * lock may wait for those to end; the worker joins it once its work is done. The C library runs exit handlers on the
 * thread that ends last, which may be this one. */
static void *end(void)
{
    kp_worker_submit(join, (void *)(uintptr_t)kp_worker_thread_own());
    return NULL;
}

static void *open_early(void *unused)
{
    int step = EARLY;
    (void)unused;
    KP_GUARDED;
    wait_while(&when, AFTER_A_PAUSE, kp_limit_first(KP_WAIT_PAUSE));
    if (is_wanted())
        open_part(ahead.early, KP_LIBRARY_PLANS, &ahead.early_ms);
    end();
    atomic_compare_exchange_strong(&busy, &step, IDLE); /* a plan may have been asked for meanwhile */
    kp_wake_all(&busy);
    return NULL;
}

void kp_ahead_open(const struct kp_cupti *c)
{
    static atomic_bool started;
    int idle = IDLE;
    pthread_t thread;
    if (!is_wanted() || atomic_load(&started) || !atomic_compare_exchange_strong(&busy, &idle, EARLY))
        return;
    ahead.early = c;
    atomic_store(&started, kp_worker_thread_start(open_early, NULL, &thread));
    if (!atomic_load(&started))
        atomic_store(&busy, IDLE);
}

/* ---- the plan ---- */

/* Makes the library open what it opens at its first use, which needs the loader's lock. */
static void use_once(const char *chip)
{
    struct kp_host *host;
    kp_lock_take(opening, KP_FOREVER);
    atomic_store(&opener, kp_thread_id());
    kp_library_complete(ahead.copy);
    if (!kp_tables_open(ahead.copy, KP_TABLES_COUNTED, chip, NULL, &host))
        kp_tables_close(host);
    kp_lock_give(opening);
    kp_exit_first();
}

/* Opens what a plan for the chip needs (NULL = there will be no plan). */
static void open_for_plan(const char *chip)
{
    long start = kp_now_ms();
    if (is_needed())
        open_part(ahead.library, KP_LIBRARY_PLANS, NULL);
    if (atomic_load(&ahead.early_ms) >= 0)
        kp_debug(KP_DEBUG_PLAN, "the planning library was opened from cuInit on; %ld ms", atomic_load(&ahead.early_ms));
    if (chip && is_needed())
        use_once(chip);
    if (is_wanted())
        kp_debug(KP_DEBUG_PLAN, "the planning library is open, ahead of the first launch; %ld ms", kp_now_ms() - start);
}

/* A plan that fails is made again at the first launch, which reports why. */
static void plan(const char *chip)
{
    const struct kp_ahead *w = &ahead.wish;
    long start = kp_now_ms();
    struct kp_plan *made = NULL;
    char *err = NULL;
    int rc = kp_plan_make(ahead.copy, chip, NULL, w->major, w->minor, w->sections, w->n_sections, w->metrics, w->how,
                          &made, &err);
    free(err);
    if (rc)
        return;
    if (!is_needed() || atomic_load(&stopped)) { /* metrics are missing from it */
        kp_plan_free(made);
        return;
    }
    kp_debug(KP_DEBUG_PLAN, "a plan for %s is made, ahead of the first launch; %ld ms", chip, kp_now_ms() - start);
    atomic_store(&ahead.plan, made);
}

static void go(int to)
{
    atomic_store(&busy, to);
    kp_wake_all(&busy);
}

static void *plan_and_end(void *chip)
{
    KP_GUARDED;
    atomic_store(&planner, kp_thread_id());
    plan(chip);
    kp_exit_first();
    go(IDLE);
    return NULL;
}

/* Opens the counting library. A launching thread does not wait for it but opens it too, because it may already have the
 * loader's lock. */
static void open_other(void)
{
    if (is_wanted())
        open_part(ahead.library, KP_LIBRARY_COUNTS, NULL);
    atomic_store(&opens_other, 0);
    kp_wake_all(&opens_other);
}

/* Plans in a separate thread while the other library opens: both take about as long. */
static void *work(void *unused)
{
    const char *chip = ahead.copy ? kp_chip_only(ahead.wish.major, ahead.wish.minor) : NULL;
    pthread_t other;
    (void)unused;
    KP_GUARDED;
    open_for_plan(chip);
    bool opens = is_needed(), beside = false;
    atomic_store(&opens_other, opens);
    if (opens && chip) {
        go(PLANNING);
        beside = kp_worker_thread_start(plan_and_end, (void *)(uintptr_t)chip, &other);
        if (!beside)
            plan_and_end((void *)(uintptr_t)chip);
    }
    if (opens)
        open_other();
    if (beside)
        kp_worker_thread_join(other);
    kp_library_free(ahead.copy);
    kp_exit_first();
    go(IDLE);
    return end();
}

void kp_ahead_begin(const struct kp_cupti *c, const struct kp_ahead *wish)
{
    ahead.library = c;
    ahead.wish = *wish;
    ahead.copy = wish->major ? kp_library_copy(c, is_needed) : NULL;
    atomic_store(&when, AT_ONCE);
    atomic_store(&busy, OPENING);
    pthread_t thread;
    if (kp_worker_thread_start(work, NULL, &thread))
        return;
    kp_library_free(ahead.copy);
    atomic_store(&busy, IDLE);
}

/* Returns the current step if it is one of the two, else IDLE. */
static int step_of(int a, int b)
{
    int step = atomic_load(&busy);
    return step == a || step == b ? step : IDLE;
}

/* Waits while one of these steps goes on, as long as its thread makes progress, even on a busy machine. */
static void wait_while_it_works(int a, int b, atomic_int *thread)
{
    double had, has = -1;
    do {
        had = has;
        wait_while(&busy, a, kp_limit_first(KP_WAIT_WARM_UP));
        wait_while(&busy, b, kp_limit_first(KP_WAIT_WARM_UP));
        has = atomic_load(thread) ? kp_thread_cpu_time(atomic_load(thread)) : -1;
    } while (step_of(a, b) && has > had);
}

void kp_ahead_give_up(void)
{
    atomic_store(&when, NEVER);
    kp_wake_all(&when);
    wait_while(&busy, EARLY, kp_limit_first(KP_WAIT_GIVE_UP));
    kp_worker_drain(kp_limit_first(KP_WAIT_GIVE_UP));
}

void kp_ahead_wait(bool needed)
{
    atomic_store(&when, needed ? AT_ONCE : NEVER);
    kp_wake_all(&when);
    /* KP_VENDOR (CUPTI 13.0): cuptiProfilerHostInitialize fails with CUPTI_ERROR_UNKNOWN while another thread is in its
     * first call of it. */
    if (needed) {
        wait_while_it_works(EARLY, OPENING, &opener);
    } else {
        wait_while(&busy, EARLY, kp_limit_first(KP_WAIT_WARM_UP));
        wait_while(&busy, OPENING, kp_limit_first(KP_WAIT_WARM_UP));
    }
    bool tells = needed && atomic_load(&busy) == PLANNING;
    if (tells)
        kp_progress_begin("planning what to collect", true);
    /* An exit in a handler, or a launch in a constructor, may hold what the thread waits for. */
    wait_while_it_works(PLANNING, PLANNING, &planner);
    if (tells)
        kp_progress_end();
    if (!needed)
        wait_while(&opens_other, 1, kp_limit_first(KP_WAIT_WARM_UP));
    if (atomic_load(&busy) != IDLE) /* the launching thread goes on without it */
        atomic_store(&when, NEVER);
}

struct kp_plan *kp_ahead_take(const char *chip, int major, int minor, unsigned how)
{
    const struct kp_ahead *w = &ahead.wish;
    const char *planned = kp_chip_only(w->major, w->minor);
    if (!planned || strcmp(planned, chip) || w->major != major || w->minor != minor || w->how != how)
        return NULL;
    return atomic_exchange(&ahead.plan, NULL);
}

void kp_ahead_forked(void)
{
    atomic_store(&busy, IDLE);
    atomic_store(&opens_other, 0);
}
