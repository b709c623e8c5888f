/*
 * The protocol of a typed door that enters the gate: the rows KP_GATED of doors.def. KP_GATED_LOGIC is all of it: it
 * enters the gate, calls the driver's function, notes what that has done, and leaves the gate. kprof's own calls, and
 * all calls before kprof has started, go straight to the driver.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_DOORS_DOOR_CALL_H
#define KP_PRELOAD_DOORS_DOOR_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/work.h"
#include "preload/doors/api.h"

/* A call, in the frame of its door. */
struct kp_door_call {
    const char *symbol;                        /* base name, static text */
    uint64_t first;                            /* argument */
    void (*way)(const struct kp_door_call *c); /* enters the gate, as work of base/work.h, with a copy of the call */
    bool unseen;                               /* what it starts may go on during a counted launch */
    uint64_t marks[KP_WORK_ARGS];              /* are gone if a handler has left the call for good */
};

/* The usual way into the gate: shared with other calls. It closes a window that would be replayed. */
void kp_door_shared(const struct kp_door_call *c);

/* The parts of KP_GATED_LOGIC, in order. The first enters the gate, notes work that goes on unseen, and raises the
 * guard: until the last part, this thread's calls are part of the call. Returns false if it has not entered; then the
 * other parts are left out. */
bool kp_door_enter(struct kp_door_call *c);
/* The driver has returned: the rest is kprof's work, still inside the gate. */
void kp_door_back(const struct kp_door_call *c);
void kp_door_leave(void);

/* KP_UNSEEN if what a function of cuda_api.def starts may go on during a counted launch, according to its class. */
enum {
#define KP_CLASS(name, way, work, ...) KP_WORK_OF_##name = KP_##work,
#include "preload/doors/classes.def"
#undef KP_CLASS
#define KP_API(symbol, base, class) KP_UNSEEN_##symbol = KP_WORK_OF_##class,
#include "preload/doors/cuda_api.def"
#undef KP_API
};

#define KP_DOOR_LIST(...)         __VA_ARGS__
#define KP_DOOR_FIRST(first, ...) first
#define kp_door_never(...)        false

/* Declares, and defines, the logic of a row. */
#define KP_GATED_HEAD(symbol, base, since, ptsz, way, instead, note, type, parameters, arguments)                      \
    CUresult kp_gated_##symbol(type real, bool unused, KP_DOOR_LIST parameters);
#define KP_GATED_LOGIC(symbol, base, since, ptsz, way, instead, note, type, parameters, arguments)                     \
    CUresult kp_gated_##symbol(type real, bool unused, KP_DOOR_LIST parameters)                                        \
    {                                                                                                                  \
        struct kp_door_call call = {base, (uintptr_t)(KP_DOOR_FIRST arguments), way, KP_UNSEEN_##symbol, {0}};         \
        (void)unused;                                                                                                  \
        if (!kp_door_enter(&call))                                                                                     \
            return real arguments;                                                                                     \
        if (instead arguments) {                                                                                       \
            kp_door_back(&call);                                                                                       \
            kp_door_leave();                                                                                           \
            return CUDA_SUCCESS;                                                                                       \
        }                                                                                                              \
        CUresult rc = real arguments;                                                                                  \
        kp_door_back(&call);                                                                                           \
        note(rc, KP_DOOR_LIST arguments);                                                                              \
        kp_door_leave();                                                                                               \
        return rc;                                                                                                     \
    }

#endif
