#include "preload/os/worker.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/lock.h"
#include "base/traps.h"
#include "base/work.h"
#include "preload/os/guard.h"
#include "preload/os/symbols.h"

/* For SQLite and CUPTI's evaluation. Only touched pages use memory. */
enum { STACK_BYTES = 1 << 20 };

struct job {
    void (*fn)(void *arg);
    void *arg;
    struct job *next;
};

/* The thread ends when the queue is empty, and the next job starts another. An idle thread of ours would keep a process
 * alive whose own threads have all ended. Starting one costs far less than a window. Only our own locks are used,
 * because waits for them can be limited if a signal handler ends the program. */
static struct {
    struct job *first, **end;
    pthread_t thread;
    bool unjoined;      /* the thread was started and has not been joined */
    atomic_int running; /* 1: a thread runs and will look at the queue again; waits happen in the kernel */
    bool forked;
} queue = {.end = &queue.first};
static struct kp_lock *const queue_lock = &kp_locks[KP_LOCK_WORKER];

static __thread bool on_worker;

/* Removes the next job; NULL if there is none, and then no more are accepted. */
static struct job *next_job(void)
{
    kp_lock_take(queue_lock, KP_FOREVER);
    struct job *j = queue.first;
    if (j) {
        queue.first = j->next;
        if (!j->next)
            queue.end = &queue.first;
    } else {
        atomic_store(&queue.running, 0);
    }
    kp_lock_give(queue_lock);
    if (!j)
        kp_wake_all(&queue.running);
    return j;
}

static void *work(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "kprof");
    KP_GUARDED;
    on_worker = true;
    for (struct job *j; (j = next_job()); free(j))
        j->fn(j->arg);
    /* The C library runs the exit handlers on the thread that ends last, which may be this one. */
    on_worker = false;
    return NULL;
}

struct threads {
    int (*create)(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
    int (*set_stack)(pthread_attr_t *attr, size_t size);
    int (*join)(pthread_t thread, void **result);
    int (*key_create)(pthread_key_t *key, void (*at_end)(void *value));
    int (*set_specific)(pthread_key_t key, const void *value);
};

/* Finds a pthread function, which glibc before 2.34 keeps outside libc. If dlopen loaded the driver into a program
 * without threads, the program's own lookups do not see libpthread. */
static void *find_function(const char *name)
{
    const struct kp_dl *dl = kp_symbols_dl();
    void *found = dl->sym(RTLD_DEFAULT, name);
    void *library = !found && dl->open ? dl->open("libpthread.so.0", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return library ? dl->sym(library, name) : found;
}

static struct threads find_threads(void)
{
    struct threads t = {.create = NULL};
    void *create = find_function("pthread_create"), *set_stack = find_function("pthread_attr_setstacksize");
    void *join = find_function("pthread_join");
    void *key_create = find_function("pthread_key_create"), *set_specific = find_function("pthread_setspecific");
    memcpy(&t.create, &create, sizeof(create));
    memcpy(&t.set_stack, &set_stack, sizeof(set_stack));
    memcpy(&t.join, &join, sizeof(join));
    memcpy(&t.key_create, &key_create, sizeof(key_create));
    memcpy(&t.set_specific, &set_specific, sizeof(set_specific));
    return t;
}

static struct threads t; /* threads that initialise it at the same time write the same values */

enum state { RUNS, RETURNS, PARKED };

/* A thread that was started and has not been joined. */
static struct started {
    void *(*fn)(void *arg);
    void *arg;
    pthread_t thread;
    pthread_t handle; /* handle for kp_worker_thread_join */
    atomic_int state;
    struct started *next;
} * started;
static struct kp_lock *const started_lock = &kp_locks[KP_LOCK_THREADS];
static __thread pthread_t own_handle __attribute__((tls_model("initial-exec")));
static atomic_int parking; /* threads park; waits happen in the kernel */

/* Parks only if the joiner knows: it waits for the very end of a thread that returns. */
static void *run(void *arg)
{
    struct started *s = arg;
    struct kp_traps traps;
    own_handle = s->handle;
    kp_traps_hold(&traps); /* a new thread has those of the program's */
    s->fn(s->arg);
    bool parks = atomic_load(&parking);
    atomic_store(&s->state, parks ? PARKED : RETURNS);
    kp_wake_all(&s->state); /* the joiner frees `s` when this thread has ended; a parked thread keeps it */
    while (parks && atomic_load(&parking))
        kp_lock_wait_while(&parking, 1, KP_FOREVER);
    return NULL;
}

static bool start(struct started *s)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr))
        return false;
    if (t.set_stack)
        t.set_stack(&attr, STACK_BYTES);
    int rc = t.create(&s->thread, &attr, run, s);
    pthread_attr_destroy(&attr);
    return !rc;
}

static void note_started(struct started *s)
{
    s->next = started;
    started = s;
}

/* Returns a value that no thread had before, even for threads that are joined as the process ends: the C library reuses
 * a pthread_t once its thread is joined. */
static pthread_t new_handle(void)
{
    static atomic_ulong last;
    return (pthread_t)(atomic_fetch_add(&last, 1) + 1);
}

/* Starts the thread and notes that before anyone can look for it: it may be joined at once, and `s` freed. */
static bool start_and_note(struct started *s, pthread_t *thread)
{
    sigset_t before = kp_signals_hold(); /* the new thread inherits it */
    kp_lock_take(started_lock, KP_FOREVER);
    bool starts = start(s);
    if (starts) {
        *thread = s->handle;
        note_started(s);
    }
    kp_lock_give(started_lock);
    kp_signals_let(&before);
    return starts;
}

bool kp_worker_thread_start(void *(*fn)(void *arg), void *arg, pthread_t *thread)
{
    if (!t.create)
        t = find_threads();
    struct started *s = t.create && t.join ? malloc(sizeof(*s)) : NULL;
    if (!s)
        return false;
    *s = (struct started){.fn = fn, .arg = arg, .handle = new_handle()};
    bool starts = start_and_note(s, thread);
    if (!starts)
        free(s);
    return starts;
}

pthread_t kp_worker_thread_own(void)
{
    return own_handle;
}

static struct started *take_started(pthread_t handle)
{
    kp_lock_take(started_lock, KP_FOREVER);
    struct started **link = &started, *s;
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    if ((s = *link))
        *link = s->next;
    kp_lock_give(started_lock);
    return s;
}

/* Joins a thread, unless it is parked: a parked thread stays there, with its entry. */
void kp_worker_thread_join(pthread_t handle)
{
    struct started *s = take_started(handle);
    int state;
    if (!s)
        return;
    while ((state = atomic_load(&s->state)) == RUNS)
        kp_lock_wait_while(&s->state, RUNS, KP_FOREVER);
    if (state != PARKED) {
        t.join(s->thread, NULL);
        free(s);
        return;
    }
    kp_lock_take(started_lock, KP_FOREVER);
    note_started(s); /* for let_go */
    kp_lock_give(started_lock);
}

static void join_all(void)
{
    struct started *s;
    do {
        kp_lock_take(started_lock, KP_FOREVER);
        s = started;
        if (s)
            started = s->next;
        kp_lock_give(started_lock);
        if (s)
            t.join(s->thread, NULL);
        free(s);
    } while (s);
}

/* The thread that runs the exit handlers ends by pthread_exit in one of them: the last thread then runs the remaining
 * ones. That must not be one of ours. From glibc 2.41 on exit() has a lock, which the ended thread still holds: another
 * one would wait for it forever. */
static void let_go(void *value)
{
    void (*at_end)(void);
    memcpy(&at_end, &value, sizeof(at_end));
    kp_work_begin(); /* it ends work that a handler has left */
    at_end();
    atomic_store(&parking, 0);
    kp_wake_all(&parking);
    join_all();
    kp_work_end();
}

void kp_worker_thread_park(void (*at_end)(void))
{
    void *value;
    static pthread_key_t key;
    static atomic_int state; /* of the key: none, being made (or failed), ready */
    int none = 0;
    if (!t.create)
        t = find_threads();
    if (!t.key_create || !t.set_specific)
        return; /* the process has no threads */
    if (atomic_compare_exchange_strong(&state, &none, 1) && !t.key_create(&key, let_go))
        atomic_store(&state, 2);
    memcpy(&value, &at_end, sizeof(value));
    if (atomic_load(&state) == 2 && !t.set_specific(key, value))
        atomic_store(&parking, 1);
}

/* Starts a new thread, after the last one has left the queue. Call under the lock. */
static bool start_worker(void)
{
    if (queue.unjoined)
        kp_worker_thread_join(queue.thread);
    queue.unjoined = kp_worker_thread_start(work, NULL, &queue.thread);
    return queue.unjoined;
}

/* Call under the lock. */
static bool take(struct job *j)
{
    if (queue.forked)
        return false;
    if (!atomic_load(&queue.running) && !start_worker())
        return false;
    atomic_store(&queue.running, 1);
    *queue.end = j;
    queue.end = &j->next;
    return true;
}

bool kp_worker_submit(void (*fn)(void *arg), void *arg)
{
    struct job *j = malloc(sizeof(*j));
    if (!j)
        return false;
    *j = (struct job){.fn = fn, .arg = arg};
    kp_lock_take(queue_lock, KP_FOREVER);
    bool taken = take(j);
    kp_lock_give(queue_lock);
    if (!taken)
        free(j);
    return taken;
}

/* Returns true if everything is done, as far as known within `patience_ms`. */
static bool idle(long patience_ms)
{
    if (!kp_lock_take(queue_lock, patience_ms))
        return false;
    bool yes = !atomic_load(&queue.running);
    if (yes && queue.unjoined) {
        kp_worker_thread_join(queue.thread);
        queue.unjoined = false;
    }
    kp_lock_give(queue_lock);
    return yes;
}

bool kp_worker_drain(long patience_ms)
{
    long start = kp_now_ms(), left = patience_ms;
    while (!on_worker && !idle(left)) {
        if (patience_ms != KP_FOREVER) {
            left = patience_ms - (kp_now_ms() - start);
            if (left <= 0)
                return false;
        }
        kp_lock_wait_while(&queue.running, 1, left);
    }
    return true;
}

void kp_worker_forked(void)
{
    queue.forked = true;
    atomic_store(&queue.running, 0);
    queue.unjoined = false;
    queue.first = NULL;
    queue.end = &queue.first;
}
