/*
 * The gate keeps replays and the rest of the program's driver calls apart. A replay rewinds memory, so nothing else
 * may change memory, streams or modules while it runs.
 *
 * Every driver function that may do so is reached through a door, mostly a trampoline (preload/doors/trampolines.S).
 * The door enters the gate shared, calls the real function, and leaves. A replay enters exclusively: it waits for
 * calls in flight and holds back new ones: kp_gate_alone.
 *
 * Threads: all functions may be called from any thread. A thread inside the exclusive section, or under kp_guard,
 * passes every door straight to the driver.
 */
#ifndef KP_PRELOAD_GATE_GATE_H
#define KP_PRELOAD_GATE_GATE_H

#include <stdbool.h>

/* Arms or disarms the gate. Until armed, trampolines jump straight to the driver. Disarm in a forked child and at
 * the end. */
void kp_gate_arm(bool on);
bool kp_gate_is_armed(void);

/* The window as the gate sees it. Threads: any. */
struct kp_gate_window {
    bool (*is_open)(void);
    bool (*takes_all)(void);         /* an open window waits for each launch of its context */
    bool (*watches)(void);           /* an open window will be replayed */
    bool (*keeps)(void);             /* an open window still has to read functions or limits as they were */
    bool (*close)(const char *what); /* closes the window in the gate's exclusive section; a window that cannot be
                                        closed is spoilt. Returns false if it stays open because its end might wait for
                                        the caller */
};

/* Sets the window's functions, before the first window opens. `w` must stay. */
void kp_gate_set_window(const struct kp_gate_window *w);

/* Enters the gate shared, after closing an open window that would be replayed. `what` is the driver function called,
 * or a reason; static text. */
void kp_gate_enter_shared(const char *what);
void kp_gate_leave_shared(void);
/* Enters the gate shared, but closes no window: returns false, without entering, if one would be replayed by the time
 * that the gate is free. */
bool kp_gate_enter_unwatched(const char *what);
/* Does the same, but waits for nothing. */
bool kp_gate_try_shared(void);
/* Enters the gate shared, but closes any open window that can be. One that counts launches would count further work
 * with them, or wait for it. */
void kp_gate_enter_alone(const char *what);
/* Does the same, but leaves a window open that does not wait for what launches may wait for. */
void kp_gate_enter_behind(const char *what);
/* Does the same, but leaves a window open that keeps nothing: for calls that take effect in the program's order. */
void kp_gate_enter_in_order(const char *what);

/* A thread that is alone in the gate, under kp_guard, if `in`. A variable of type KP_ALONE leaves the section at the
 * end of its block, by any exit: into the state `then`, OUT unless set. */
struct kp_alone {
    bool in;
    enum kp_then { KP_THEN_OUT, KP_THEN_SHARED, KP_THEN_ALONE } then; /* ALONE: for kp_gate_alone_still */
};
#define KP_ALONE __attribute__((cleanup(kp_gate_end_alone), unused)) struct kp_alone

/* Enters the gate's exclusive section, and raises the guard. Waits `owner_ms` for another thread's exclusive section
 * (KP_FOREVER of lock.h: without limit). Then waits `patience_ms` for other threads' calls in flight. It has not
 * entered if either wait times out, and at once if this thread has a call in flight itself: a handler has interrupted
 * it. Runs inside work (base/work.h), so that neither a signal nor a cancellation ends it. */
struct kp_alone kp_gate_alone(long owner_ms, long patience_ms);
/* Does the same despite calls in flight, and holds none back: for changes that calls do not see. */
struct kp_alone kp_gate_alone_beside(long owner_ms);
/* Goes on after this thread has stayed alone: KP_THEN_ALONE. */
struct kp_alone kp_gate_alone_still(void);
/* Leaves before the end of the block. */
void kp_gate_end_alone(struct kp_alone *a);

/* Resets the gate in a forked child, where no other thread exists. */
void kp_gate_reset(void);

/* Returns the number of stream captures that the program has open. */
int kp_gate_captures(void);
void kp_gate_capture_begins(void);
void kp_gate_capture_ends(void);

#endif
