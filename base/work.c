#include "base/work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait_limits.h"

#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))

/* A sanitiser only follows its own stacks: with one, work stays on the caller's stack, and cannot be finished without
 * it. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                           \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SWITCHES = 0 };
#else
enum { SWITCHES = 1 };
#endif

/* Of virtual memory; the driver may compile a kernel there. Only touched pages use memory. */
enum { STACK_BYTES = 8 << 20, GUARD_BYTES = 64 << 10, MARKS = 4, FRAMES = 32 };

/* Defined in work_switch.S. */
void kp_work_switch(void **left, void *to);
void kp_work_first(void);
uint64_t kp_work_control(void);

/* Symbols that older glibc keeps in libpthread (see tools/glibc_compat.h): without it no threads can end. */
#pragma weak pthread_key_create
#pragma weak pthread_setspecific

typedef uint64_t signals; /* one bit each, in the kernel's layout */

/* Work with safe points. */
struct work {
    void *program, *own; /* where the two stacks resume; work_switch.S relies on `program` being first */
    void (*fn)(void *arg);
    void *arg;            /* the copy */
    void (*call)(void *); /* of the program's, to be made while the work is paused; NULL: handlers are to run */
    void *call_arg;
    bool returned; /* from that call */
    /* While the work is paused: marks in a frame of kp_work_go's callees; and the frames above that one, up to
     * kp_work_go's, which do not change meanwhile. */
    const uint64_t *host, *frames;
    uint64_t mark, kept[FRAMES];
    size_t n_kept;
    struct work *next;        /* paused before this one */
    int guard, in_driver;     /* of the work, while it does not run */
    int guard_0, in_driver_0; /* of the program */
    bool takes_long, done, abandoned, dropped, cut;
};

/* A stack, with the work on it at its low end. They are never freed: there are as many as threads that work at once. */
struct stack {
    struct work work;
    atomic_bool used;
    struct stack *older;
};

__thread int kp_guard __attribute__((tls_model("initial-exec")));
__thread int kp_in_driver __attribute__((tls_model("initial-exec")));

static struct stack *_Atomic stacks;

THREAD_LOCAL unsigned depth;       /* of scopes */
THREAD_LOCAL bool has_points;      /* the outermost scope is work that has safe points */
THREAD_LOCAL struct work *current; /* on its own stack */
THREAD_LOCAL struct work *paused;  /* those of this thread, the last one first */
THREAD_LOCAL bool takes_long;      /* signals without a handler are let in */
THREAD_LOCAL uint64_t looked_ns;   /* when was last looked which those are */
THREAD_LOCAL bool ends;            /* the thread ends the process */
THREAD_LOCAL bool thread_ends;

/* The thread's outermost call of the driver, while kp_in_driver says so. */
THREAD_LOCAL struct {
    const uint64_t *at;
    uint64_t args[KP_WORK_ARGS];
    void (*refuse)(uint64_t slot, uint32_t entered);
    uint64_t slot;
    uint32_t entered;
} own_call;

THREAD_LOCAL signals mask; /* the program's, which the outermost scope gives back */
THREAD_LOCAL int cancel;   /* likewise */
THREAD_LOCAL int error;    /* likewise: its errno */

/* ---- signals: system calls, because a program may define functions of these names ---- */

static signals bit(int s)
{
    return UINT64_C(1) << (s - 1);
}

static void set_mask(int how, const signals *set, signals *before)
{
    syscall(SYS_rt_sigprocmask, how, set, before, sizeof(*set));
}

/* All signals but those of faults, which would end the program if they were blocked, and the C library's own. */
static signals may_wait(void)
{
    enum { CANCEL = 32, SET_ID = 33 };
    return ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS) | bit(CANCEL) |
             bit(SET_ID));
}

static bool has_handler(int s)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        signals mask;
    } now;
    return syscall(SYS_rt_sigaction, s, NULL, &now, sizeof(now.mask)) ||
           (now.handler != SIG_DFL && now.handler != SIG_IGN);
}

/* Blocks the signals that have handlers, and lets the others in, unless the program blocks them. Apart, so that frames
 * on the program's stack are small. */
static __attribute__((noinline)) void let_defaults(void)
{
    enum { MOST = 64, EVERY_NS = 10000000 };
    signals handled = 0;
    uint64_t now = kp_clock_ns();
    if (now - looked_ns < EVERY_NS)
        return;
    looked_ns = now;
    for (int s = 1; s <= MOST; s++)
        if (has_handler(s))
            handled |= bit(s);
    handled = mask | (handled & may_wait());
    set_mask(SIG_SETMASK, &handled, NULL);
}

/* The program's code comes next, or ours again. */
static void to_program(void)
{
    int unused;
    /* A cancellation that arrived during our work of the end would stop the exit handlers after it, or the flush of
     * stdout with its lock held: without us the process would have ended by then. */
    if (!ends)
        pthread_setcancelstate(cancel, &unused);
    set_mask(SIG_SETMASK, &mask, NULL);
}

static void to_work(void)
{
    const signals wait = may_wait();
    set_mask(SIG_BLOCK, &wait, &mask);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    looked_ns = 0;
    if (takes_long)
        let_defaults();
}

/* Returns true if a signal waits that the program would have got by now. */
static bool any_waits(void)
{
    signals pending = 0;
    syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    return pending & ~mask;
}

/* ---- stacks ---- */

static struct stack *make_stack(void)
{
    char *at =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    mprotect(at + GUARD_BYTES, GUARD_BYTES, PROT_NONE);
    struct stack *s = (struct stack *)at;
    atomic_store(&s->used, true);
    s->older = atomic_load(&stacks);
    while (!atomic_compare_exchange_weak(&stacks, &s->older, s))
        ;
    return s;
}

/* Returns NULL without memory for a stack. */
static struct work *take_work(void)
{
    for (struct stack *s = SWITCHES ? atomic_load(&stacks) : NULL; s; s = s->older) {
        bool used = false;
        if (!atomic_load(&s->used) && atomic_compare_exchange_strong(&s->used, &used, true))
            return &s->work;
    }
    struct stack *made = SWITCHES ? make_stack() : NULL;
    return made ? &made->work : NULL;
}

static void give_work(struct work *w)
{
    atomic_store(&((struct stack *)w)->used, false);
}

/* ---- pauses ---- */

static void go_on(struct work *w, const uint64_t *top);

/* Leaves the scope, and comes back: runs the handlers of waiting signals, and the call, if any. The handlers may make
 * any call, or never return. */
static void let_in(void (*call)(void *arg), void *arg)
{
    bool points = has_points, is_long = takes_long, is_end = ends;
    depth = 0;
    has_points = takes_long = false;
    to_program();
    errno = error;
    if (call)
        call(arg);
    error = errno;
    takes_long = is_long;
    to_work();
    ends = is_end;
    has_points = points;
    depth = 1;
}

/* Returns true on an alternate stack, on which a handler still runs. */
static bool is_on_alternate(void)
{
    stack_t s;
    return !sigaltstack(NULL, &s) && s.ss_flags & SS_ONSTACK;
}

/* Returns true if the frames that called for the work are gone. They stand above those of a handler that still runs. */
static bool is_above(const uint64_t *at)
{
    return (uintptr_t)__builtin_frame_address(0) > (uintptr_t)at && !is_on_alternate();
}

static bool is_gone(const struct work *w)
{
    bool gone = thread_ends || is_above(w->host);
    for (size_t i = 0; i < MARKS && !gone; i++)
        gone = w->host[i] != w->mark;
    for (size_t i = 0; i < w->n_kept && !gone; i++) /* by words: memcmp may be the program's own */
        gone = w->frames[i] != w->kept[i];
    return gone;
}

/* Removes the last paused work from the list. */
static struct work *take_paused(void)
{
    struct work *w = paused;
    paused = w->next;
    return w;
}

/* Finishes the thread's paused work: a handler has left for good, or makes a call itself. Work whose handler still runs
 * stays in the list, for its kp_work_run. Work whose call of the driver was interrupted cannot go on. */
static void finish_paused(void)
{
    while (paused) {
        bool gone = is_gone(paused), finished = paused->done || paused->dropped;
        if ((finished || paused->call) && !gone)
            break;
        struct work *w = take_paused();
        w->abandoned |= gone;
        w->cut = ends;
        if (!finished)
            go_on(w, __builtin_frame_address(0));
        if (gone) {
            give_work(w);
        } else {
            w->next = paused;
            paused = w;
        }
    }
}

static atomic_bool left_driver;

void kp_work_left_driver(void)
{
    atomic_store(&left_driver, true);
}

bool kp_work_driver_is_left(void)
{
    return atomic_load(&left_driver);
}

static void at_thread_end(void *unused)
{
    (void)unused;
    if (kp_in_driver || (paused && paused->call))
        kp_work_left_driver();
    kp_guard = kp_in_driver = 0; /* if the thread was cancelled in the driver */
    thread_ends = true;
    if (paused && !depth) {
        kp_work_begin();
        kp_work_end();
    }
}

/* Has paused work finished when the thread ends. */
static void watch_thread(void)
{
    static atomic_int state; /* of the key: none, being made (or failed), ready */
    static pthread_key_t key;
    int none = 0;
    if (!pthread_key_create || !pthread_setspecific)
        return;
    if (atomic_compare_exchange_strong(&state, &none, 1) && !pthread_key_create(&key, at_thread_end))
        atomic_store(&state, 2);
    if (atomic_load(&state) == 2)
        pthread_setspecific(key, &key);
}

/* Keeps the frames from this one of pause_work's up to `top`, which stand still until it returns. */
static void keep_frames(struct work *w, const uint64_t *from, const uint64_t *top)
{
    w->frames = from;
    w->n_kept = 0;
    for (; w->n_kept < FRAMES && from + w->n_kept < top; w->n_kept++)
        w->kept[w->n_kept] = from[w->n_kept];
}

/* Runs handlers, or the program's call, while the work is paused. */
static __attribute__((noinline)) void pause_work(struct work *w, const uint64_t *top)
{
    static atomic_uint_fast64_t last;
    volatile uint64_t marks[MARKS]; /* in the program's stack: other frames would write others there */
    w->mark = (atomic_fetch_add(&last, 1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < MARKS; i++)
        marks[i] = w->mark;
    keep_frames(w, __builtin_frame_address(0), top);
    w->takes_long = takes_long;
    if (!w->call) {
        kp_guard = w->guard_0;
        kp_in_driver = w->in_driver_0;
    }
    w->host = (const uint64_t *)marks;
    w->next = paused;
    paused = w;
    current = NULL;
    watch_thread();
    let_in(w->call, w->call_arg);
    while (paused && paused != w) { /* a handler of a handler has left into this one's */
        struct work *inner = take_paused();
        inner->abandoned = true;
        if (!inner->done && !inner->dropped)
            go_on(inner, __builtin_frame_address(0));
        give_work(inner);
    }
    if (paused)
        take_paused();
    w->returned = w->call;
}

/* Runs the work to its end, or until it is dropped. Inside the scope. `top`: the caller's frame. */
static void go_on(struct work *w, const uint64_t *top)
{
    int guard = kp_guard, in_driver = kp_in_driver;
    has_points = !w->in_driver_0; /* else the driver has called us back, and has its locks */
    takes_long = w->takes_long;
    if (takes_long)
        let_defaults();
    while (!w->done && !w->dropped) {
        kp_guard = w->guard;
        kp_in_driver = w->in_driver;
        current = w;
        kp_work_switch(&w->program, w->own);
        w->guard = kp_guard;
        w->in_driver = kp_in_driver;
        if (!w->done)
            pause_work(w, top);
    }
    current = NULL;
    kp_guard = guard;
    kp_in_driver = in_driver;
}

static void switch_to_program(struct work *w, void (*call)(void *arg), void *arg)
{
    w->call = call;
    w->call_arg = arg;
    w->returned = false;
    kp_work_switch(&w->own, w->program);
    w->call = NULL;
}

bool kp_safe_point(void)
{
    if (!has_points || depth != 1)
        return false;
    int own = errno;
    if (takes_long)
        let_defaults();
    if (any_waits()) {
        if (current)
            switch_to_program(current, NULL, NULL);
        else
            let_in(NULL, NULL);
    }
    errno = own;
    return true;
}

bool kp_work_call(void (*fn)(void *arg), void *arg)
{
    struct work *w = current;
    kp_safe_point(); /* so that handlers that wait by now do not interrupt the driver */
    if (kp_work_abandoned())
        return false;
    if (depth != 1)
        fn(arg);
    else if (w)
        switch_to_program(w, fn, arg);
    else
        let_in(fn, arg);
    return depth != 1 || !w || w->returned;
}

bool kp_work_is_cut(void)
{
    return current && current->cut;
}

long kp_work_patience(long ms)
{
    long cut = kp_limit_first(KP_WAIT_CUT);
    return kp_work_is_cut() && ms > cut ? cut : ms;
}

/* ---- the scope ---- */

void kp_work_reclaim(void)
{
    if (depth)
        return;
    if (paused && paused->call && is_gone(paused)) {
        kp_guard = paused->guard_0;
        kp_in_driver = paused->in_driver_0;
    }
    if (!kp_in_driver || !own_call.refuse ||
        !(is_above(own_call.at) || memcmp(own_call.at, own_call.args, sizeof(own_call.args))))
        return;
    void (*refuse)(uint64_t slot, uint32_t entered) = own_call.refuse;
    own_call.refuse = NULL;
    kp_guard = 0;
    kp_in_driver = 1;
    refuse(own_call.slot, own_call.entered);
}

void kp_work_call_begins(const uint64_t *at, const uint64_t *args, void (*refuse)(uint64_t slot, uint32_t entered),
                         uint64_t slot, uint32_t entered)
{
    own_call.at = at;
    memcpy(own_call.args, args, sizeof(own_call.args));
    own_call.refuse = refuse;
    own_call.slot = slot;
    own_call.entered = entered;
}

void kp_work_begin(void)
{
    if (depth) {
        depth++;
        return;
    }
    int before = errno;
    kp_work_reclaim();
    takes_long = has_points = false;
    to_work();
    depth = 1;
    if (paused && !kp_guard && !kp_in_driver) /* else the driver has called us back, and has its locks */
        finish_paused();
    takes_long = has_points = false;
    errno = error = before;
}

void kp_work_end(void)
{
    if (depth > 1) {
        depth--;
        return;
    }
    int before = error; /* a handler that runs as soon as it may can begin work of its own */
    has_points = false;
    depth = 0;
    to_program();
    errno = before;
}

/* The first function on a stack. It never returns: the entry is reused. */
static void run(void *arg)
{
    struct work *w = arg;
    w->fn(w->arg);
    w->done = true;
    kp_work_switch(&w->own, w->program);
}

/* Where the stack of a piece of work begins: above, there is room for the argument. */
enum { TOP = STACK_BYTES - KP_WORK_MOST };

/* Makes the stack as if kp_work_first had called kp_work_switch. */
static void prepare(struct work *w, void (*fn)(void *arg))
{
    enum { CONTROL, R12 = 4, RBX, RETURN = 7, WORDS };
    uintptr_t top = (uintptr_t)w + TOP;
    uintptr_t *frame = (uintptr_t *)top - WORDS;
    memset(frame, 0, WORDS * sizeof(*frame));
    frame[CONTROL] = kp_work_control();
    frame[R12] = (uintptr_t)w;
    frame[RBX] = (uintptr_t)run;
    frame[RETURN] = (uintptr_t)kp_work_first;
    w->fn = fn;
    w->arg = (void *)top;
    w->own = frame;
    w->call = NULL;
    w->guard = w->guard_0 = kp_guard;
    w->in_driver = w->in_driver_0 = kp_in_driver;
    w->takes_long = w->done = w->abandoned = w->dropped = w->cut = false;
}

void *kp_work_room(void)
{
    if (depth)
        return NULL;
    kp_work_begin();
    struct work *w = take_work();
    if (!w)
        kp_work_end();
    return w ? (char *)w + TOP : NULL;
}

void kp_work_go(void (*fn)(void *room), void *room, void *answer, size_t bytes)
{
    struct work *w = (struct work *)((char *)room - TOP);
    prepare(w, fn);
    go_on(w, __builtin_frame_address(0));
    if (w->done) {
        memcpy(answer, room, bytes);
        kp_guard = w->guard; /* a call may leave in another state */
        kp_in_driver = w->in_driver;
    }
    give_work(w);
    kp_work_end();
}

/* Without memory for a stack, or inside of other work. */
static void run_here(void (*fn)(void *arg), void *arg)
{
    if (depth) {
        fn(arg);
        return;
    }
    kp_work_begin();
    has_points = !kp_in_driver;
    fn(arg);
    kp_work_end();
}

void kp_work_run(void (*fn)(void *arg), void *arg, size_t bytes)
{
    void *room = kp_work_room();
    if (!room) {
        run_here(fn, arg);
        return;
    }
    memcpy(room, arg, bytes);
    kp_work_go(fn, room, arg, bytes);
}

bool kp_work_abandoned(void)
{
    return current && (current->abandoned || current->cut);
}

void kp_work_takes_long(void)
{
    int own = errno;
    if (depth && !takes_long) {
        takes_long = true;
        looked_ns = 0;
        let_defaults();
    }
    errno = own;
}

void kp_work_ends_process(void)
{
    ends = true;
}

void kp_work_forked(void)
{
    for (struct work *w = paused; w; w = w->next)
        w->dropped = true;
}
