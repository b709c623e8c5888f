#include "preload/gate/gate.h"

#include <stdalign.h>
#include <stdatomic.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/stripe.h"
#include "preload/gate/exclusive.h"
#include "preload/gate/fast_path.h"

static atomic_bool armed;
static atomic_int waiting; /* threads that wait for `exclusive` to be 0 */
static atomic_int *const exclusive = &kp_gate_state.exclusive, *const captures = &kp_gate_state.captures;

/* Calls in flight, of the threads of each stripe. A call is counted before it reads `exclusive`; a thread that enters
 * exclusively does the reverse: if it finds a stripe 0, no call of that stripe will be made. */
static struct {
    alignas(KP_STRIPE_BYTES) atomic_int calls;
} in_flight[KP_STRIPES];

/* This thread's part of them. If the thread waits for them, a handler has interrupted them, and they do not end. */
static __thread int own_calls;

static struct kp_lock *const owner = &kp_locks[KP_LOCK_GATE];

static _Atomic(const struct kp_gate_window *) window;

void kp_gate_set_window(const struct kp_gate_window *w)
{
    atomic_store(&window, w);
}

void kp_gate_arm(bool on)
{
    atomic_store(&armed, on);
}

bool kp_gate_is_armed(void)
{
    return atomic_load(&armed);
}

static bool watches(const struct kp_gate_window *w)
{
    return w && w->watches();
}

static void count_call(void)
{
    atomic_fetch_add(&in_flight[kp_stripe()].calls, 1);
    own_calls++;
}

bool kp_gate_try_shared(void)
{
    count_call();
    if (!atomic_load(exclusive) && !watches(atomic_load(&window)))
        return true;
    kp_gate_leave_shared();
    return false;
}

bool kp_gate_enter_unwatched(const char *what)
{
    const struct kp_gate_window *w = atomic_load(&window);
    for (;;) {
        if (kp_gate_try_shared())
            return true;
        if (watches(w))
            return false;
        kp_debug(KP_DEBUG_GATE, "%s waits: another thread has the gate", what);
        atomic_fetch_add(&waiting, 1);
        while (atomic_load(exclusive))
            kp_lock_wait_while(exclusive, 1, KP_FOREVER);
        atomic_fetch_sub(&waiting, 1);
    }
}

void kp_gate_enter_shared(const char *what)
{
    while (!kp_gate_enter_unwatched(what)) {
        kp_debug(KP_DEBUG_GATE, "%s closes the window", what);
        atomic_load(&window)->close(what);
    }
}

/* Enters shared once `closes` no longer holds for the open window, if any, or once that stays open. */
static void enter_alone(const char *what, const struct kp_gate_window *w, bool (*closes)(void))
{
    bool stays = false;
    kp_gate_enter_shared(what);
    while (w && !stays && closes()) {
        kp_gate_leave_shared();
        kp_debug(KP_DEBUG_GATE, "%s, which runs alone, closes the window", what);
        stays = !w->close(what);
        kp_gate_enter_shared(what);
    }
}

void kp_gate_enter_alone(const char *what)
{
    const struct kp_gate_window *w = atomic_load(&window);
    enter_alone(what, w, w ? w->is_open : NULL);
}

void kp_gate_enter_behind(const char *what)
{
    const struct kp_gate_window *w = atomic_load(&window);
    enter_alone(what, w, w ? w->takes_all : NULL);
}

void kp_gate_enter_in_order(const char *what)
{
    const struct kp_gate_window *w = atomic_load(&window);
    enter_alone(what, w, w ? w->keeps : NULL);
}

void kp_gate_leave_shared(void)
{
    atomic_int *calls = &in_flight[kp_stripe()].calls;
    own_calls -= own_calls > 0; /* none of a child that was forked within a call */
    if (atomic_fetch_sub(calls, 1) == 1 && atomic_load(exclusive))
        kp_wake_all(calls);
}

/* The calls in flight of stripe `i`; the tables of passing launches follow the stripes. */
static atomic_int *calls_at(unsigned i)
{
    return i < KP_STRIPES ? &in_flight[i].calls : kp_passing_calls(i - KP_STRIPES);
}

enum { ALL = KP_STRIPES + KP_PASSING_TABLES };

/* Returns the first index from `from` on with calls in flight; ALL: there is none. */
static unsigned find_busy(unsigned from)
{
    unsigned i = from, n = kp_stripes_used(), end = KP_STRIPES + kp_passing_tables();
    while (i < n && atomic_load(calls_at(i)) <= 0)
        i++;
    if (i < n)
        return i;
    i = i < KP_STRIPES ? KP_STRIPES : i;
    while (i < end && atomic_load(calls_at(i)) <= 0)
        i++;
    return i < end ? i : ALL;
}

static int all_in_flight(void)
{
    int calls = 0;
    for (unsigned i = find_busy(0); i < ALL; i = find_busy(i + 1))
        calls += atomic_load(calls_at(i));
    return calls;
}

bool kp_gate_enter_exclusive(long owner_ms, long patience_ms)
{
    if (!kp_lock_take(owner, owner_ms))
        return false;
    atomic_store(exclusive, 1);
    unsigned i = find_busy(0);
    if (i == ALL) /* the usual case, and reading the clock costs more */
        return true;
    if (own_calls > 0 || (kp_passing_own && atomic_load(&kp_passing_own->calls) > 0))
        patience_ms = 0;
    kp_debug(KP_DEBUG_GATE, "waits for %d calls in flight", all_in_flight());
    for (long start = kp_now_ms(), waited = 0; i < ALL; i = find_busy(i)) {
        waited = kp_now_ms() - start;
        if (waited >= patience_ms) {
            kp_debug(KP_DEBUG_GATE, "gives up after %ld ms: %d calls are in flight", waited, all_in_flight());
            kp_gate_leave_exclusive();
            return false;
        }
        int calls = atomic_load(calls_at(i));
        if (calls > 0)
            kp_lock_wait_while(calls_at(i), calls, patience_ms - waited);
    }
    return true;
}

bool kp_gate_enter_beside(long owner_ms)
{
    return kp_lock_take(owner, owner_ms);
}

void kp_gate_leave_exclusive(void)
{
    atomic_store(exclusive, 0);
    if (atomic_load(&waiting) > 0)
        kp_wake_all(exclusive);
    kp_lock_give(owner);
}

void kp_gate_exclusive_to_shared(void)
{
    count_call();
    kp_gate_leave_exclusive();
}

/* ---- alone ---- */

static struct kp_alone begin(bool in)
{
    if (in)
        kp_guard_raise();
    return (struct kp_alone){.in = in};
}

struct kp_alone kp_gate_alone(long owner_ms, long patience_ms)
{
    return begin(kp_gate_enter_exclusive(owner_ms, patience_ms));
}

struct kp_alone kp_gate_alone_beside(long owner_ms)
{
    return begin(kp_gate_enter_beside(owner_ms));
}

struct kp_alone kp_gate_alone_still(void)
{
    return begin(true);
}

void kp_gate_end_alone(struct kp_alone *a)
{
    if (!a->in)
        return;
    a->in = false;
    kp_guard_lower(NULL);
    if (a->then == KP_THEN_OUT)
        kp_gate_leave_exclusive();
    else if (a->then == KP_THEN_SHARED)
        kp_gate_exclusive_to_shared();
}

void kp_gate_reset(void)
{
    atomic_store(exclusive, 0);
    atomic_store(&waiting, 0);
    own_calls = 0;
    for (unsigned i = 0; i < KP_STRIPES; i++)
        atomic_store(&in_flight[i].calls, 0);
    kp_passing_reset();
    atomic_store(captures, 0);
}

int kp_gate_captures(void)
{
    return atomic_load(captures);
}

void kp_gate_capture_begins(void)
{
    atomic_fetch_add(captures, 1);
}

void kp_gate_capture_ends(void)
{
    if (atomic_load(captures) > 0)
        atomic_fetch_sub(captures, 1);
}
