#include "preload/os/stdout_mute.h"

#ifdef __GLIBC__

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio_ext.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/lock.h"
#include "base/wait_limits.h"
#include "preload/os/quiet.h"

/* The active mute, for a child that another thread forks meanwhile; valid while `muted`. */
static struct kp_mute active;
static atomic_bool muted;

static bool lock_stream(FILE *f)
{
    long start = kp_now_ms();
    while (ftrylockfile(f)) {
        long waited = kp_now_ms() - start;
        if (waited >= kp_limit_first(KP_WAIT_STDOUT))
            return false;
        kp_nap(waited);
    }
    return true;
}

/* Writes the program's pending output. A write that would fail or block is left to the program, which then sees the
 * same as without kprof; the wait allows for a slow reader. */
static bool write_pending(FILE *f)
{
    struct pollfd p = {.fd = f->_fileno, .events = POLLOUT};
    if (!__fpending(f))
        return true;
    if (poll(&p, 1, (int)kp_limit_first(KP_WAIT_STDOUT)) != 1 || p.revents != POLLOUT)
        return false;
    struct kp_quiet q = kp_quiet_begin();
    bool written = !fflush_unlocked(f);
    kp_quiet_end(&q);
    return written;
}

/* Returns true if the stream has a descriptor, according to fileno and not to its field: a stream in memory has none. A
 * stream that the program locks itself is not ours to write either. */
static bool is_ours_to_write(FILE *f)
{
    return fileno_unlocked(f) >= 0 && __fsetlocking(f, FSETLOCKING_QUERY) != FSETLOCKING_BYCALLER;
}

void kp_stdout_flush(void)
{
    int saved = errno;
    FILE *f = stdout;
    if (f && lock_stream(f)) {
        if (is_ours_to_write(f))
            write_pending(f);
        funlockfile(f);
    }
    errno = saved;
}

static int open_nowhere(void)
{
    return kp_descriptor_raise(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

/* Redirects the stream; call with the stream locked. KP_VENDOR: glibc's <bits/types/struct_FILE.h> shows the stream's
 * descriptor. The file position needs no care: each flush makes the stream forget it. */
static bool redirect(struct kp_mute *m)
{
    FILE *f = m->stream;
    if (!is_ours_to_write(f) || !write_pending(f))
        return false;
    m->nowhere = open_nowhere();
    if (m->nowhere < 0)
        return false;
    m->fd = f->_fileno;
    active = *m;
    atomic_store(&muted, true);
    f->_fileno = m->nowhere;
    return true;
}

void kp_mute_begin(struct kp_mute *m)
{
    int saved = errno;
    *m = (struct kp_mute){.stream = stdout};
    if (m->stream && lock_stream(m->stream)) {
        m->on = redirect(m);
        if (!m->on)
            funlockfile(m->stream);
    }
    errno = saved;
}

void kp_mute_end(struct kp_mute *m)
{
    int saved = errno;
    if (m->on) {
        fflush_unlocked(m->stream);
        m->stream->_fileno = m->fd;
        atomic_store(&muted, false);
        m->on = false;
        funlockfile(m->stream);
        close(m->nowhere);
    }
    errno = saved;
}

void kp_mute_forked(void)
{
    if (!atomic_exchange(&muted, false))
        return;
    __fpurge(active.stream);
    active.stream->_fileno = active.fd;
    close(active.nowhere);
}

#else

/* Does nothing without access to a stream's descriptor: printing kernels then print for each execution. */
void kp_mute_begin(struct kp_mute *m)
{
    m->on = false;
}

void kp_mute_end(struct kp_mute *m)
{
    m->on = false;
}

void kp_mute_forked(void)
{
}

void kp_stdout_flush(void)
{
}

#endif
