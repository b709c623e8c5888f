/*
 * The gate: keeps replays and the rest of the program's driver calls apart.
 *
 * A replay rewinds memory, so nothing else may change memory, streams or modules while it runs. Every driver function
 * that may do so is reached through a door, most through a trampoline (preload/doors/trampolines.S): it enters the gate
 * shared, calls the real function, and leaves. A replay enters exclusively: it waits
 * for calls in flight and holds back new ones.
 *
 * Threads: all functions may be called from any thread. A thread inside the exclusive section, or under kp_guard,
 * passes every door straight to the driver.
 */
#ifndef KP_PRELOAD_GATE_GATE_H
#define KP_PRELOAD_GATE_GATE_H

#include <stdbool.h>

/* Until armed, trampolines jump straight to the driver. Disarming is for a forked child and for the end. */
void kp_gate_arm(bool on);
bool kp_gate_is_armed(void);

/* The window as the gate sees it; all from any thread. */
struct kp_gate_window {
    bool (*is_open)(void);
    bool (*watches)(void);           /* one is open that will be replayed */
    void (*close)(const char *what); /* enters the gate exclusively; what it cannot close it spoils */
};

/* Before the first window is opened; until then there is none. `w` stays. */
void kp_gate_set_window(const struct kp_gate_window *w);

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
void kp_gate_capture_begins(void);
void kp_gate_capture_ends(void);

#endif
