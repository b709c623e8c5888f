/*
 * The gate: keeps replays and the rest of the program's driver calls apart.
 *
 * A replay rewinds memory, so nothing else may change memory, streams or modules while it runs. Every driver function
 * that may do so is reached through a trampoline (gate.S) that needs no knowledge of its signature: it enters the gate
 * shared, calls the real function with the same registers and stack, and leaves. A replay enters exclusively: it waits
 * for calls in flight and holds back new ones.
 *
 * Threads: all functions may be called from any thread. A thread inside the exclusive section, or under kp_guard,
 * passes every door straight to the driver.
 */
#ifndef KP_PRELOAD_GATE_GATE_H
#define KP_PRELOAD_GATE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kp_api_class {
    KP_CLASS_LAUNCH,
    KP_CLASS_DOOR,
    KP_CLASS_GATE,
    KP_CLASS_JOIN,
    KP_CLASS_ALLOC,
    KP_CLASS_LOAD,
    KP_CLASS_IMAGE,
    KP_CLASS_SHARE,
    KP_CLASS_MANAGED,
    KP_CLASS_VIRTUAL,
    KP_CLASS_CTX_END,
    KP_CLASS_FORGET,
    KP_CLASS_HOLD,
    KP_CLASS_CAPTURE_BEGIN,
    KP_CLASS_CAPTURE_END,
    KP_CLASS_INIT,
    KP_CLASS_SYNC,
    KP_CLASS_PURE,
};

struct kp_api_row {
    const char *symbol, *base;
    enum kp_api_class class;
};

/* cuda_api.def in its order. */
extern const struct kp_api_row kp_api[];
extern const size_t kp_api_rows;

/* Until armed, trampolines jump straight to the driver. Disarming is for a forked child and for the end. */
void kp_gate_arm(bool on);

/* A window that is open and would be replayed is closed first, for `what`: the driver's function that is called, or a
 * reason; static text. */
void kp_gate_enter_shared(const char *what);
void kp_gate_leave_shared(void);
/* The same, and any open window is closed first: also one whose launches are counted as they come, which would count
 * what follows with them, or wait for it. */
void kp_gate_enter_alone(const char *what);

/* Waits `owner_ms` for another thread's exclusive section (KP_FOREVER of lock.h: as long as it takes), then
 * `patience_ms` for calls of other threads in flight. False when either was not over: the caller is outside then. */
bool kp_gate_enter_exclusive(long owner_ms, long patience_ms);
void kp_gate_leave_exclusive(void);
void kp_gate_exclusive_to_shared(void);

/* In a forked child: no other thread exists any more. */
void kp_gate_reset(void);

/* Stream captures that the program has open. */
int kp_gate_captures(void);

/* The function to hand out for the driver's function `real`, which the program asked for by exported symbol, or by the
 * base name of cuGetProcAddress: a trampoline, or `real` itself where the class needs none or no trampoline is left. */
void *kp_gate_wrap(enum kp_api_class class, const char *symbol, void *real);

#endif
