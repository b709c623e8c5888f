#include "preload/os/exit_first.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"

typedef void (*handler)(void);
static _Atomic(handler) handlers[2]; /* a thread may register them as soon as there are any */

void kp_exit_handlers(void (*first)(void), void (*second)(void))
{
    atomic_store(&handlers[0], first);
    atomic_store(&handlers[1], second);
}

void kp_exit_first(void)
{
    for (int i = 1; i >= 0; i--) {
        handler h = atomic_load(&handlers[i]);
        if (h)
            atexit(h);
    }
}
