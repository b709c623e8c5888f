/*
 * Launches that nobody wants go straight to the driver, and are counted. What is known of them is in tables, one for
 * each thread: such a launch touches a few cache lines, and uses no lock. The caches are full of the program's own
 * data, so each line costs more than ten instructions. Other launches go the longer way, which may put them into the
 * table.
 *
 * What a table knows holds until kp_passing_outdate, which every change calls that may make launches wanted. While a
 * window is open, a capture goes on, or a thread has the gate exclusively, all launches go the longer way.
 *
 * Threads: any. A thread that is cancelled within the driver leaves the gate when it ends.
 */
#ifndef KP_PRELOAD_GATE_FAST_PATH_H
#define KP_PRELOAD_GATE_FAST_PATH_H

#include <cuda.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/stripe.h"
#include "preload/os/guard.h"

/* Launches of a table after which one goes the longer way again, to see what has changed. */
enum { KP_PASS_AGAIN = 1 << 14 };
enum { KP_PASSING_TABLES = 64, KP_PASS_SETS = 512, KP_PASS_WAYS = 2 };

/* What each launch reads, and few write. */
struct kp_gate_state {
    alignas(KP_STRIPE_BYTES) atomic_int exclusive; /* a thread is, or wants to be, alone inside the gate */
    atomic_int captures, windows;                  /* number of open ones */
    atomic_uint epoch;                             /* epoch of what tables know */
};
extern struct kp_gate_state kp_gate_state;

/* A launch as a door sees it. */
struct kp_pass_shape {
    uint32_t grid[3], block[3], shared; /* shared: bytes */
    uint16_t cluster[3];
};

/* Launches of a function with a shape. */
struct kp_pass {
    alignas(KP_STRIPE_BYTES) CUfunction function;
    struct kp_pass_shape shape;
    uint32_t epoch;                /* epoch of what is known */
    bool of_key;                   /* it has a key of a rotation */
    atomic_uint_fast64_t launches; /* only grows, like those below */
};

/* A thread's table. The thread writes all of it, and nobody else. */
struct kp_passing {
    alignas(KP_STRIPE_BYTES) atomic_int calls;       /* in flight: 0 or 1 */
    atomic_uint_fast64_t launches, launches_of_keys; /* all, and those with a key */
    struct kp_pass at[KP_PASS_SETS][KP_PASS_WAYS];
};

/* This thread's table, or NULL. */
extern __thread struct kp_passing *kp_passing_own __attribute__((tls_model("initial-exec")));

static inline struct kp_pass *kp_passing_set(struct kp_passing *t, CUfunction f, const struct kp_pass_shape *s)
{
    uint64_t h = (uint64_t)(uintptr_t)f + s->grid[0] + ((uint64_t)s->grid[1] << 20) + ((uint64_t)s->block[0] << 32) +
                 ((uint64_t)s->grid[2] << 44) + s->shared;
    return t->at[(h * 0x9e3779b97f4a7c15u >> 32) % KP_PASS_SETS];
}

static inline bool kp_pass_is(const struct kp_pass *p, CUfunction f, const struct kp_pass_shape *s)
{
    bool same = p->function == f;
    for (int i = 0; i < 3; i++)
        same = same && p->shape.grid[i] == s->grid[i] && p->shape.block[i] == s->block[i] &&
               p->shape.cluster[i] == s->cluster[i];
    return same && p->shape.shared == s->shared;
}

/* Leaves the gate, which wakes a thread that waits for that. */
static inline void kp_passing_leave(struct kp_passing *t)
{
    atomic_fetch_sub(&t->calls, 1);
    if (atomic_load(&kp_gate_state.exclusive))
        kp_wake_all(&t->calls);
}

/* Call it on the thread that ends the process. If a handler ends it and has interrupted a passing launch at its start
 * or end, the launch does not go on: nobody must wait for it. One within the driver's function does not count. */
void kp_passing_ends_process(void);

/* Returns what is known of a launch that goes straight to the driver, or NULL. Then the gate has been entered shared,
 * the driver's function is called, and its answer goes to kp_passing_end, which returns it. */
static inline struct kp_pass *kp_passing_begin(CUfunction f, const struct kp_pass_shape *s)
{
    const struct kp_gate_state *g = &kp_gate_state;
    struct kp_passing *t = kp_passing_own;
    if (!t || kp_guard)
        return NULL;
    struct kp_pass *p = kp_passing_set(t, f, s);
    if (!kp_pass_is(p, f, s) && !kp_pass_is(++p, f, s))
        return NULL;
    atomic_fetch_add(&t->calls, 1); /* before it looks: see gate.c */
    if (!atomic_load(&g->exclusive) && !atomic_load_explicit(&g->captures, memory_order_relaxed) &&
        !atomic_load_explicit(&g->windows, memory_order_relaxed) &&
        atomic_load_explicit(&g->epoch, memory_order_relaxed) == p->epoch) {
        kp_guard_raise();
        return p;
    }
    kp_passing_leave(t);
    return NULL;
}

/* Makes all tables forget what they know, except what they have counted. */
void kp_passing_outdate(void);

/* Adds one to a counter that no other thread writes. Returns the new count. */
static inline uint64_t kp_pass_count(atomic_uint_fast64_t *n)
{
    uint64_t now = atomic_load_explicit(n, memory_order_relaxed) + 1;
    atomic_store_explicit(n, now, memory_order_relaxed);
    return now;
}

static inline CUresult kp_passing_end(struct kp_pass *p, CUresult rc)
{
    struct kp_passing *t = kp_passing_own;
    kp_guard_lower(NULL);
    if (rc == CUDA_SUCCESS) {
        kp_pass_count(&p->launches);
        if (kp_pass_count(&t->launches) % KP_PASS_AGAIN == 0)
            kp_passing_outdate();
        if (p->of_key)
            kp_pass_count(&t->launches_of_keys);
    }
    kp_passing_leave(t);
    return rc;
}

/* Returns the epoch of what tables know now; call it before finding out what to pass to kp_passing_learn. */
unsigned kp_passing_epoch(void);

/* Why launches pass: the reasons KP_REASON_... of the same names. */
enum kp_pass_why {
    KP_PASS_NOT, /* they do not */
    KP_PASS_PROFILER,
    KP_PASS_DURATION,
    KP_PASS_NAME,
    KP_PASS_ID,
    KP_PASS_COUNT,
    KP_PASS_ROTATED,
    KP_PASS_BUDGET,
    KP_PASS_WHYS
};

/* What is known of launches that pass. */
struct kp_pass_known {
    enum kp_pass_why why;
    bool of_key;                /* it has a key of a rotation */
    atomic_uint_fast64_t *also; /* also counts them, and is never freed; NULL = nothing else does */
};

/* Puts launches like this one into the thread's table. They pass until something outdates `epoch`. Does nothing if the
 * thread has no table because KP_PASSING_TABLES other threads have one each. */
void kp_passing_learn(CUfunction f, const struct kp_pass_shape *s, const struct kp_pass_known *known, unsigned epoch);

/* Adds what tables have counted to the counters of `also`. */
void kp_passing_settle(void);
/* Does so, and calls add(why, launches) for what was counted since the last call, under a lock. */
void kp_passing_take(void (*add)(enum kp_pass_why why, uint64_t launches));
/* Returns how many launches were counted since then; and how many launches with a key have passed. */
uint64_t kp_passing_ahead(void);
uint64_t kp_passing_of_keys(void);

/* For the gate: returns the calls in flight of table `i`, and the number of tables that threads have had. Resets all
 * calls in a forked child. */
atomic_int *kp_passing_calls(unsigned i);
unsigned kp_passing_tables(void);
void kp_passing_reset(void);

#endif
