#include "preload/os/quiet.h"

#include <time.h>

/* Blocks SIGPIPE and SIGXFSZ, with which our write could end the program. */
struct kp_quiet kp_quiet_begin(void)
{
    struct kp_quiet q;
    sigset_t pending;
    sigemptyset(&q.raised);
    sigaddset(&q.raised, SIGPIPE);
    sigaddset(&q.raised, SIGXFSZ);
    sigpending(&pending);
    q.had_pipe = sigismember(&pending, SIGPIPE) == 1;
    q.had_size = sigismember(&pending, SIGXFSZ) == 1;
    sigprocmask(SIG_BLOCK, &q.raised, &q.before); /* of this thread, on Linux */
    return q;
}

void kp_quiet_end(struct kp_quiet *q)
{
    static const struct timespec at_once = {0};
    if (q->had_pipe)
        sigdelset(&q->raised, SIGPIPE);
    if (q->had_size)
        sigdelset(&q->raised, SIGXFSZ);
    while (sigtimedwait(&q->raised, NULL, &at_once) > 0)
        ; /* it is ours: consume it before it can be delivered */
    sigprocmask(SIG_SETMASK, &q->before, NULL);
}
