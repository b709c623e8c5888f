#include "preload/gate/fast_path.h"

#include <pthread.h>

#include "base/work.h"

_Static_assert(sizeof(struct kp_pass) == KP_STRIPE_BYTES, "a launch looks at one cache line of its table");

struct kp_gate_state kp_gate_state;
__thread struct kp_passing *kp_passing_own __attribute__((tls_model("initial-exec")));

static struct kp_passing tables[KP_PASSING_TABLES];
static atomic_uint n_tables; /* number of tables that threads have had */

/* Guards the variables below. */
static struct kp_lock *const lock = &kp_locks[KP_LOCK_PASSING];
static bool used[KP_PASSING_TABLES];
static struct known {
    struct kp_pass_known of;
    uint64_t settled; /* number of its launches */
} known[KP_PASSING_TABLES][KP_PASS_SETS][KP_PASS_WAYS];
static uint64_t settled;               /* of all */
static uint64_t counted[KP_PASS_WHYS]; /* not yet taken */
static atomic_uint_fast64_t taken;     /* of all */
static pthread_key_t at_end;
static bool has_key;

void kp_passing_outdate(void)
{
    atomic_fetch_add(&kp_gate_state.epoch, 1);
}

unsigned kp_passing_epoch(void)
{
    return atomic_load(&kp_gate_state.epoch);
}

/* ---- a table for each thread ---- */

/* A thread ends. One that was cancelled within the driver is still inside the gate. */
static void give_table(void *arg)
{
    struct kp_passing *t = arg;
    kp_passing_own = NULL;
    if (atomic_load(&t->calls)) {
        kp_work_left_driver();
        kp_passing_leave(t);
    }
    kp_work_begin();
    kp_lock_take(lock, KP_FOREVER);
    used[t - tables] = false; /* the next thread may use what it knows */
    kp_lock_give(lock);
    kp_work_end();
}

void kp_passing_ends_process(void)
{
    struct kp_passing *t = kp_passing_own;
    while (t && !kp_guard && atomic_load(&t->calls) > 0)
        kp_passing_leave(t);
}

/* Assigns a table to this thread, if one is free. Under the lock. */
static void take_table(void)
{
    unsigned i = 0, n = atomic_load(&n_tables);
    has_key = has_key || !pthread_key_create(&at_end, give_table);
    while (i < KP_PASSING_TABLES && used[i])
        i++;
    if (!has_key || i == KP_PASSING_TABLES || pthread_setspecific(at_end, &tables[i]))
        return;
    used[i] = true;
    if (i >= n)
        atomic_store(&n_tables, i + 1);
    kp_passing_own = &tables[i];
}

/* ---- counts ---- */

/* Returns how many launches tables have counted: all, or those with a key. */
static uint64_t sum(bool of_keys)
{
    uint64_t n = 0;
    for (size_t i = 0, tables_had = atomic_load(&n_tables); i < tables_had; i++)
        n += atomic_load_explicit(of_keys ? &tables[i].launches_of_keys : &tables[i].launches, memory_order_relaxed);
    return n;
}

/* Under the lock. */
static void settle(size_t table, size_t set, size_t way)
{
    struct known *k = &known[table][set][way];
    uint64_t now = atomic_load_explicit(&tables[table].at[set][way].launches, memory_order_relaxed);
    uint64_t more = now - k->settled;
    if (!more)
        return;
    k->settled = now;
    settled += more;
    counted[k->of.why] += more;
    if (k->of.also)
        atomic_fetch_add(k->of.also, more);
}

/* Looks at the tables only if anything has passed since: each key of a rotation asks when it is reported. */
static void settle_all(void)
{
    size_t n = sum(false) == settled ? 0 : atomic_load(&n_tables);
    for (size_t table = 0; table < n; table++)
        for (size_t set = 0; set < KP_PASS_SETS; set++)
            for (size_t way = 0; way < KP_PASS_WAYS; way++)
                settle(table, set, way);
}

/* ---- what tables know ---- */

void kp_passing_learn(CUfunction f, const struct kp_pass_shape *s, const struct kp_pass_known *what, unsigned epoch)
{
    kp_lock_take(lock, KP_FOREVER);
    if (!kp_passing_own)
        take_table();
    struct kp_passing *t = kp_passing_own;
    if (t) {
        struct kp_pass *p = kp_passing_set(t, f, s);
        size_t table = (size_t)(t - tables), set = (size_t)(p - t->at[0]) / KP_PASS_WAYS, way = 0;
        while (way < KP_PASS_WAYS && !kp_pass_is(p + way, f, s))
            way++;
        if (way == KP_PASS_WAYS) /* replace the one that is out of date, or else one after the other */
            way = p[0].epoch == epoch && (p[1].epoch != epoch || known[table][set][1].of.why == KP_PASS_NOT);
        p += way;
        settle(table, set, way);
        known[table][set][way].of = *what;
        p->function = f;
        p->shape = *s;
        p->of_key = what->of_key;
        p->epoch = epoch;
    }
    kp_lock_give(lock);
}

void kp_passing_settle(void)
{
    kp_lock_take(lock, KP_FOREVER);
    settle_all();
    kp_lock_give(lock);
}

void kp_passing_take(void (*add)(enum kp_pass_why why, uint64_t launches))
{
    kp_lock_take(lock, KP_FOREVER);
    settle_all();
    for (int why = KP_PASS_NOT + 1; why < KP_PASS_WHYS; why++) {
        uint64_t more = counted[why];
        counted[why] = 0;
        atomic_fetch_add(&taken, more);
        if (more)
            add((enum kp_pass_why)why, more);
    }
    kp_lock_give(lock);
}

uint64_t kp_passing_ahead(void)
{
    uint64_t before = atomic_load(&taken);
    return sum(false) - before;
}

uint64_t kp_passing_of_keys(void)
{
    return sum(true);
}

/* ---- for the gate ---- */

atomic_int *kp_passing_calls(unsigned i)
{
    return &tables[i].calls;
}

unsigned kp_passing_tables(void)
{
    return atomic_load(&n_tables);
}

void kp_passing_reset(void)
{
    for (unsigned i = 0; i < KP_PASSING_TABLES; i++)
        atomic_store(&tables[i].calls, 0);
}
