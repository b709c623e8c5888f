#include "preload/os/exit_first.h"

#include <stdlib.h>

#include "base/lock.h"

static void (*handlers[2])(void);

void kp_exit_handlers(void (*first)(void), void (*second)(void))
{
    handlers[0] = first;
    handlers[1] = second;
}

void kp_exit_first(void)
{
    sigset_t before = kp_signals_hold(); /* a handler that exits must not find atexit()'s lock held by its own thread */
    for (int i = 1; i >= 0; i--)
        if (handlers[i])
            atexit(handlers[i]);
    kp_signals_let(&before);
}
