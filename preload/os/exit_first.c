#include "preload/os/exit_first.h"

#include <stdlib.h>

static void (*handlers[2])(void);

void kp_exit_handlers(void (*first)(void), void (*second)(void))
{
    handlers[0] = first;
    handlers[1] = second;
}

void kp_exit_first(void)
{
    for (int i = 1; i >= 0; i--)
        if (handlers[i])
            atexit(handlers[i]);
}
