#include "base/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/debug.h"
#include "base/wait_limits.h"
#include "base/work.h"

enum {
    WAITED_FOR = 1 << 30 /* thread ids are below 2^22 */
};

static __thread int own_id __attribute__((tls_model("initial-exec")));
static __thread bool forking __attribute__((tls_model("initial-exec")));
/* Between our handlers of a fork: handlers that a library registered before ours run there, and may call the driver. */
static __thread bool between __attribute__((tls_model("initial-exec")));
static __thread bool held[KP_LOCKS] __attribute__((tls_model("initial-exec"))); /* during a fork by this thread */

struct kp_lock kp_locks[KP_LOCKS] = {
#define KP_LOCK(name, fork, file, what) {.rank = KP_LOCK_##name},
#include "base/locks.def"
#undef KP_LOCK
};

static const enum {
    HELD,
    FREED,
    EACH
} at_fork[KP_LOCKS] = {
#define KP_LOCK(name, fork, file, what) fork,
#include "base/locks.def"
#undef KP_LOCK
};

static const char *const names[KP_LOCKS] = {
#define KP_LOCK(name, fork, file, what) #name,
#include "base/locks.def"
#undef KP_LOCK
};

static bool broken[KP_LOCKS];

int kp_thread_id(void)
{
    if (!own_id)
        own_id = (int)syscall(SYS_gettid);
    return own_id;
}

double kp_thread_cpu_time(int id)
{
    enum { PER_THREAD = 4, SCHEDULED = 2 };
    struct timespec spent;
    if (syscall(SYS_clock_gettime, (clockid_t)(~(unsigned)id << 3 | PER_THREAD | SCHEDULED), &spent))
        return -1;
    return (double)spent.tv_sec * 1e9 + (double)spent.tv_nsec;
}

long kp_now_ms(void)
{
    struct timespec t = {0};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double kp_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void kp_nap(long waited_ms)
{
    enum { LEAST_US = 50, MOST_US = 5000, SHARE = 16 };
    long us = waited_ms < MOST_US * SHARE / 1000 ? waited_ms * 1000 / SHARE : MOST_US;
    nanosleep(&(struct timespec){.tv_nsec = (us > LEAST_US ? us : LEAST_US) * 1000}, NULL);
    kp_safe_point();
}

void kp_lock_wait_while(atomic_int *word, int value, long ms)
{
    int before = errno;
    const long most = kp_span_ms(KP_SPAN_LOCK_HOLDER), point = kp_span_ms(KP_SPAN_SAFE_POINT);
    long left = ms == KP_FOREVER || ms > most ? most : ms;
    bool points = kp_safe_point();
    do {
        long slice = points && left > point ? point : left;
        struct timespec limit = {.tv_sec = slice / 1000, .tv_nsec = slice % 1000 * 1000000};
        bool over = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0) && errno == ETIMEDOUT;
        left = over ? left - slice : 0;
        kp_safe_point();
    } while (left > 0 && atomic_load(word) == value);
    errno = before;
}

static void wake(atomic_int *word, int threads)
{
    int before = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
    errno = before;
}

void kp_wake_all(atomic_int *word)
{
    wake(word, INT_MAX);
}

static bool has_ended(int id)
{
    int before = errno;
    bool ended = syscall(SYS_tgkill, getpid(), id, 0) && errno == ESRCH;
    errno = before;
    return ended;
}

/* ---- the order ---- */

#ifdef KP_CHECK_LOCKS

_Static_assert(KP_LOCKS <= 64, "a bit each");

static __thread uint64_t taken __attribute__((tls_model("initial-exec"))); /* locks that this thread holds, by rank */

static _Noreturn void complain(int rank, int held_rank)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "lock order: a thread that holds %s waits for %s\n", names[held_rank],
                     names[rank]);
    if (write(STDERR_FILENO, line, (size_t)n) != n)
        n = 0;
    abort();
}

/* Ignores waits with a limit, which cannot deadlock. */
static void check_order(const struct kp_lock *l, long patience_ms)
{
    uint64_t above = taken >> l->rank;
    if (patience_ms == KP_FOREVER && above)
        complain(l->rank, l->rank + __builtin_ctzll(above));
}

static void note_taken(const struct kp_lock *l)
{
    taken |= UINT64_C(1) << l->rank;
}

static void note_given(const struct kp_lock *l)
{
    taken &= ~(UINT64_C(1) << l->rank);
}

void kp_locks_at_end(void)
{
    taken = 0;
}

#else

static void check_order(const struct kp_lock *l, long patience_ms)
{
    (void)l, (void)patience_ms;
}

static void note_taken(const struct kp_lock *l)
{
    (void)l;
}

static void note_given(const struct kp_lock *l)
{
    (void)l;
}

void kp_locks_at_end(void)
{
}

#endif

/* ---- taking and giving ---- */

/* Tries once: takes the lock, or announces that this thread waits for it. */
static bool take_or_announce(struct kp_lock *l, int *word, bool look)
{
    *word = atomic_load(&l->word);
    if (!*word || (look && has_ended(*word & ~WAITED_FOR)))
        return atomic_compare_exchange_strong(&l->word, word, kp_thread_id() | WAITED_FOR);
    if (!(*word & WAITED_FOR) && atomic_compare_exchange_strong(&l->word, word, *word | WAITED_FOR))
        *word |= WAITED_FOR;
    return false;
}

/* Takes the lock; after a wait, marks it as waited for: other threads may still be waiting. */
static bool take_lock(struct kp_lock *l, long patience_ms)
{
    int word = 0;
    if (atomic_compare_exchange_strong(&l->word, &word, kp_thread_id())) /* most locks are free */
        return true;
    if (patience_ms != KP_FOREVER && (word & ~WAITED_FOR) == kp_thread_id())
        return false;
    bool tells = kp_debug_shows(KP_DEBUG_LOCK); /* reports the end of a wait only if it reported the start */
    if (tells)
        kp_debug_line(KP_DEBUG_LOCK, "waits for %s, which thread %d holds", names[l->rank], word & ~WAITED_FOR);
    long start = kp_now_ms(), waited = 0;
    while (!take_or_announce(l, &word, waited >= kp_span_ms(KP_SPAN_LOCK_HOLDER))) {
        waited = kp_now_ms() - start;
        if (patience_ms != KP_FOREVER && waited >= patience_ms) {
            if (tells)
                kp_debug_line(KP_DEBUG_LOCK, "gives up %s after %ld ms; thread %d holds it", names[l->rank], waited,
                              word & ~WAITED_FOR);
            return false;
        }
        if (word & WAITED_FOR)
            kp_lock_wait_while(&l->word, word, patience_ms == KP_FOREVER ? KP_FOREVER : patience_ms - waited);
    }
    if (tells)
        kp_debug_line(KP_DEBUG_LOCK, "has %s after %ld ms", names[l->rank], kp_now_ms() - start);
    return true;
}

static void give_held(void);

bool kp_lock_take(struct kp_lock *l, long patience_ms)
{
    if (between)
        give_held();
    check_order(l, patience_ms);
    bool got = take_lock(l, patience_ms);
    if (got)
        note_taken(l);
    return got;
}

void kp_lock_give(struct kp_lock *l)
{
    note_given(l);
    if (atomic_exchange(&l->word, 0) & WAITED_FOR)
        wake(&l->word, 1);
}

sigset_t kp_signals_hold(void)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* of this thread, on Linux */
    return before;
}

void kp_signals_let(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* ---- forks ---- */

static void (*then)(void);

/* Signals wait over a fork: a handler that leaves for good would leave the locks taken. */
static __thread sigset_t before_it __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
    long start = kp_now_ms();
    before_it = kp_signals_hold();
    forking = true;
    for (int i = 0; i < KP_LOCKS; i++) {
        long left = kp_limit_first(KP_WAIT_FORK_LOCKS) - (kp_now_ms() - start);
        held[i] = at_fork[i] == HELD && kp_lock_take(&kp_locks[i], left > 0 ? left : 0);
    }
    between = true;
}

/* Gives back what the thread holds for a fork: at its end, or as soon as another library's handler needs a lock. Held
 * locks would stop that handler for ever; the child may then find what another thread was changing. */
static void give_held(void)
{
    between = false;
    for (int i = KP_LOCKS - 1; i >= 0; i--)
        if (held[i]) {
            held[i] = false;
            kp_lock_give(&kp_locks[i]);
        }
    forking = false;
}

static void in_parent(void)
{
    give_held();
    kp_signals_let(&before_it);
}

static void in_child(void)
{
    for (int i = 0; i < KP_LOCKS; i++) {
        broken[i] = !held[i];
        held[i] = false;
        atomic_store(&kp_locks[i].word, 0);
    }
    kp_locks_at_end(); /* the child holds none */
    own_id = 0;
    forking = between = false;
    then();
    kp_signals_let(&before_it);
}

/* Some C libraries have pthread_atfork as a static helper; in all of them it calls this. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
extern void *__dso_handle __attribute__((visibility("hidden")));

void kp_locks_watch_forks(void (*child)(void))
{
    then = child;
    __register_atfork(before_fork, in_parent, in_child, &__dso_handle);
}

bool kp_locks_broken(int lock)
{
    return broken[lock];
}

bool kp_locks_forking(void)
{
    return forking;
}
