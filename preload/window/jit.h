/*
 * A kernel of the program's, compiled once more by the driver's JIT with a limit of registers. Its module is loaded
 * beside the program's, which keeps its own.
 *
 * Threads: inside the gate's exclusive section, with the window's context current and nothing running.
 */
#ifndef KP_PRELOAD_WINDOW_JIT_H
#define KP_PRELOAD_WINDOW_JIT_H

#include "preload/program/context.h"
#include "preload/program/launch.h"
#include "report/model/vary.h"

struct kp_jit_kernel {
    uint64_t limit;
    CUmodule module;                   /* NULL where it could not be made */
    struct kp_known_function function; /* names are those of the program's function */
    uint32_t registers;                /* a thread, by its code */
    char *why;                         /* it could not; malloc'ed */
};

struct kp_jit {
    const struct kp_driver *driver;
    const struct kp_device *device;
    const struct kp_known_function *own; /* the program's */
    bool asked;
    uint32_t unlimited; /* registers that a thread has where nothing limits them; 0 = unknown */
    struct kp_jit_kernel made[KP_VARY_VALUES];
    size_t n;
};

/* Returns the kernel with at most `limit` registers a thread, with the attributes that the program has set for its own.
 * It is made once. Its `why` is set where there is none. NULL for more than KP_VARY_VALUES limits. */
struct kp_jit_kernel *kp_jit_get(struct kp_jit *j, uint64_t limit);

/* Unloads the modules, unless the context is `dead`. */
void kp_jit_end(struct kp_jit *j, bool dead);

#endif
