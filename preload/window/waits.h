/*
 * Waits for the program's work, with a limit: a launch may wait for something that the program does only later.
 * Waits that time out share a budget of 20 s; once it is spent, each is short. All return CUDA_ERROR_NOT_READY after
 * the time limit.
 */
#ifndef KP_PRELOAD_WINDOW_WAITS_H
#define KP_PRELOAD_WINDOW_WAITS_H

#include <cuda.h>

#include "collectors/facts/driver.h"

enum {
    KP_ALONE_MS = 200,      /* for a launch that may wait for the host, before the program goes on */
    KP_PAGING_MS = 1000,    /* likewise, if it may only have to wait for managed memory to move */
    KP_LONGER_MS = 2000,    /* likewise, for a graph, a range or a window, which is many launches */
    KP_BEFORE_MS = 5000,    /* for the work before a launch */
    KP_ELSEWHERE_MS = 1000, /* for the end of a window's launches, where the program goes on in another context */
    KP_END_MS = 30000,      /* for the end of a window's launches, where the program itself would not wait */
    KP_EXIT_MS = 2000,      /* likewise, as the program ends */
    KP_REHEARSAL_MS = 100,  /* for a rehearsed launch, in addition to twice what the window took in the program */
    KP_SHORT_MS = 200       /* the minimum of any other wait */
};

/* Waits for a stream; does not use the budget. */
CUresult kp_wait_stream(const struct kp_driver *d, CUstream stream, long ms);
/* Waits for a rehearsed launch: how long is known from the program's own, so that no budget makes it shorter. */
CUresult kp_wait_rehearsed(const struct kp_driver *d, CUstream stream, long ms);
/* Waits for a copy, or another short operation, on the default stream of the current context, whatever other streams
 * do. */
CUresult kp_wait_copy(const struct kp_driver *d, long ms);
/* Waits for a context, which must be current, at least `least` ms. */
CUresult kp_wait_context(const struct kp_driver *d, CUcontext ctx, long ms, long least);
/* Waits `ms` for a context, which must be current. *outlasted counts the waits in a row that its work has outlasted:
 * from three on, the function returns at once until the work of the last wait has ended. */
CUresult kp_wait_again(const struct kp_driver *d, CUcontext ctx, long ms, unsigned *outlasted);
/* Waits as kp_wait_context does, without a step of its own in lines of progress: it is short, or another step tells
 * more. */
CUresult kp_wait_briefly(const struct kp_driver *d, CUcontext ctx, long ms, long least);

#endif
