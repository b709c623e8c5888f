#include "preload/os/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "base/wait_limits.h"
#include "preload/os/log.h"
#include "preload/os/worker.h"

enum { TEXT = 160 };

static struct {
    unsigned depth;
    char text[TEXT];
    long began_ms;
    long before_ms; /* spent on work that has ended, since another line reported progress */
    long told_ms;   /* how much was spent when the last line was printed */
    bool watched;
    pthread_t thread;
} work;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_PROGRESS];

static atomic_int over; /* the work that the thread watches has ended; the thread waits for it in the kernel */

/* Returns the time spent on work, including the current one. Call under the lock. */
static long spent_ms(void)
{
    return work.before_ms + (work.depth ? kp_now_ms() - work.began_ms : 0);
}

/* Makes the line that is due, if any. Call under the lock. */
static bool take_due(char line[TEXT + 64])
{
    long spent = spent_ms();
    if (!work.depth || spent < work.told_ms + kp_span_ms(KP_SPAN_PROGRESS_LINE))
        return false;
    work.told_ms = spent;
    snprintf(line, TEXT + 64, "Still working after %ld s: %s", spent / 1000, work.text);
    return true;
}

/* If a signal handler interrupted the lock's holder on this very thread, nothing is printed. */
static bool enter(void)
{
    return kp_lock_take(lock, kp_limit_first(KP_WAIT_PROGRESS));
}

static void *watch(void *unused)
{
    char line[TEXT + 64];
    (void)unused;
    while (!atomic_load(&over)) {
        kp_lock_take(lock, KP_FOREVER);
        bool due = take_due(line);
        long left = work.told_ms + kp_span_ms(KP_SPAN_PROGRESS_LINE) - spent_ms();
        kp_lock_give(lock);
        if (due)
            kp_log_still(line);
        kp_lock_wait_while(&over, 0, left > 0 ? left : 1);
    }
    return NULL;
}

/* Call under the lock. */
static void say(const char *text, bool takes_long)
{
    if (*text)
        snprintf(work.text, sizeof(work.text), "%s", text);
    if (work.watched || !takes_long)
        return;
    atomic_store(&over, 0);
    work.watched = kp_worker_thread_start(watch, NULL, &work.thread);
}

void kp_progress_begin(const char *text, bool takes_long)
{
    if (!enter())
        return;
    if (!work.depth++)
        work.began_ms = kp_now_ms();
    say(text, takes_long);
    kp_lock_give(lock);
}

void kp_progress_step(const char *text, bool takes_long)
{
    char line[TEXT + 64];
    if (!enter())
        return;
    if (work.depth)
        say(text, takes_long);
    bool due = !work.watched && take_due(line); /* for a process without threads */
    kp_lock_give(lock);
    if (due)
        kp_log_still(line);
}

void kp_progress_end(void)
{
    if (!enter())
        return;
    if (work.depth == 1)
        work.before_ms = spent_ms();
    bool stops = work.depth && !--work.depth && work.watched;
    pthread_t thread = work.thread;
    if (stops) {
        work.watched = false;
        atomic_store(&over, 1);
        kp_wake_all(&over);
    }
    kp_lock_give(lock);
    if (stops)
        kp_worker_thread_join(thread);
}

void kp_progress_told(void)
{
    if (!enter())
        return;
    work.before_ms = work.told_ms = 0;
    work.began_ms = kp_now_ms();
    kp_lock_give(lock);
}

void kp_progress_forked(void)
{
    memset(&work, 0, sizeof(work));
}
