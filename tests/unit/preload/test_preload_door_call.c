/*
 * The protocol of the doors that enter the gate, for every row KP_GATED of doors.def: a row that is added is tested
 * with the others. The gate, the window, the driver, and what is noted of graphs and memory are this test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "collectors/code/cubin.h"
#include "preload/doors/graph_doors.h"
#include "preload/doors/hostmem_doors.h"
#include "preload/doors/launch_doors.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/graphs/graphs.h"
#include "preload/program/hostmem.h"
#include "preload/journal/defer.h"
#include "preload/gate/window_facts.h"

/* ---- what happened ---- */

enum { MOST_STEPS = 16 };

static struct now {
    bool active, refuses, is_free, watches; /* the process, the driver, the gate, a window */
    bool replays;                           /* memory is made in place of the driver's */
    bool beside;                            /* the window does not depend on the graph, or on nothing */
    bool cannot_make, makes_none;           /* it is known before, or found out */
    bool no_driver, unknown, no_heap;       /* of kprof; the graph; what is noted takes no heap */
    const char *noted;                      /* of a graph: what kind of node has been set */
    CUDA_MEMSET_NODE_PARAMS memset_to;
    int heaps, spoilt;          /* times that the heap was noted; that the window was spoilt */
    bool leaves;                /* a handler leaves the driver for good */
    char steps[MOST_STEPS + 1]; /* in order */
    size_t n_steps;
    int inside; /* the gate */
    int own;    /* the call is kprof's */
    const char *entered_for;
    sigjmp_buf back;
} now;

static void step(char what)
{
    assert_true(now.n_steps < MOST_STEPS);
    now.steps[now.n_steps++] = what;
}

static void handle(int number)
{
    (void)number;
}

/* Whether signals with handlers wait. */
static bool at_work(void)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGUSR1);
}

static void enter(char how, const char *symbol)
{
    assert_true(at_work());
    assert_int_equal(kp_guard, 0);
    assert_int_equal(kp_in_driver, 0);
    assert_int_equal(now.inside++, 0);
    now.entered_for = symbol;
    step(how);
}

/* All notes of what a call has done come here, once or more often. */
static void note(void)
{
    assert_true(at_work());
    assert_int_equal(kp_guard, 1);
    assert_int_equal(kp_in_driver, 0);
    assert_int_equal(now.inside, 1);
    if (now.steps[now.n_steps - 1] != 'n')
        step('n');
}

/* ---- the gate, the window and the process ---- */

void kp_gate_enter_shared(const char *what)
{
    enter('s', what);
}

void kp_gate_enter_alone(const char *what)
{
    enter('a', what);
}

bool kp_gate_try_shared(void)
{
    assert_int_equal(kp_guard, 0);
    if (!now.is_free)
        return false;
    assert_int_equal(now.inside++, 0);
    step('f');
    return true;
}

void kp_gate_leave_shared(void)
{
    assert_int_equal(kp_guard, 0);
    assert_int_equal(kp_in_driver, 0);
    assert_int_equal(now.inside--, 1);
    step('l');
}

void kp_window_note_unseen(void)
{
    assert_int_equal(now.inside, 1);
    step('u');
}

bool kp_window_watches(void)
{
    return now.watches;
}

void kp_window_heap_blocks(void)
{
    note();
    now.heaps++;
}

bool kp_process_active(void)
{
    return now.active;
}

bool kp_process_replays(void)
{
    return now.replays;
}

bool kp_process_by_node(void)
{
    return false;
}

const struct kp_driver *kp_process_driver(void)
{
    static const struct kp_driver none;
    return now.no_driver ? NULL : &none;
}

void kp_process_skip(enum kp_reason reason, unsigned launches)
{
    (void)reason, (void)launches;
    note();
}

bool kp_process_changes_graph(CUgraphExec exec)
{
    (void)exec;
    if (now.beside)
        enter('b', now.entered_for);
    return now.beside;
}

bool kp_process_makes_graph(void)
{
    return kp_process_goes_beside();
}

bool kp_process_goes_beside(void)
{
    if (now.beside)
        enter('b', now.entered_for);
    return now.beside;
}

void kp_window_spoil(void)
{
    note();
    now.spoilt++;
}

void kp_window_synchronised(void)
{
}

/* ---- notes of graphs and memory ---- */

static struct kp_graph_nodes nodes;
static struct kp_graph_content content = {.nodes = &nodes};

const struct kp_graph_content *kp_graph_hold(CUgraphExec exec)
{
    (void)exec;
    return now.unknown ? NULL : &content;
}

void kp_graph_let(const struct kp_graph_content *held)
{
    assert_ptr_equal(held, &content);
}

unsigned kp_graph_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph, unsigned long long flags,
                       bool by_node)
{
    (void)d, (void)exec, (void)graph, (void)flags, (void)by_node;
    note();
    return now.no_heap ? 0 : KP_ONCE_HEAP;
}

void kp_graph_forget(CUgraphExec exec)
{
    (void)exec;
    note();
}

unsigned kp_graph_set_kernel(const struct kp_driver *d, CUgraphExec exec, CUgraphNode node,
                             const CUDA_KERNEL_NODE_PARAMS *p)
{
    (void)d, (void)exec, (void)node, (void)p;
    note();
    now.noted = "kernel";
    return now.no_heap ? 0 : KP_ONCE_HEAP;
}

void kp_graph_set_copy(const struct kp_driver *d, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p)
{
    (void)d, (void)exec, (void)node, (void)p;
    note();
    now.noted = "copy";
}

void kp_graph_set_memset(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p)
{
    (void)exec, (void)node;
    now.memset_to = *p;
    note();
    now.noted = "memset";
}

void kp_graph_set_host(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    (void)exec, (void)node, (void)p;
    note();
}

void kp_graph_set_enabled(CUgraphExec exec, CUgraphNode node, bool enabled)
{
    (void)exec, (void)node, (void)enabled;
    note();
}

unsigned kp_graph_update(const struct kp_driver *d, CUgraphExec exec, CUgraph graph)
{
    (void)d, (void)exec, (void)graph;
    note();
    return now.no_heap ? 0 : KP_ONCE_HEAP;
}

void kp_graph_blur(CUgraphExec exec)
{
    (void)exec;
    note();
    now.noted = "blur";
}

void kp_hostmem_note_pinned(const void *p, size_t bytes)
{
    (void)p, (void)bytes;
    note();
}

void kp_hostmem_note_registered(const void *p, size_t bytes, bool rewound, bool shared)
{
    (void)p, (void)bytes, (void)rewound, (void)shared;
    note();
}

/* In place of the driver. */
bool kp_hostmem_make(const struct kp_driver *d, void **p, size_t bytes, unsigned flags)
{
    (void)d, (void)p, (void)bytes, (void)flags;
    assert_true(at_work());
    assert_int_equal(kp_guard, 1);
    assert_int_equal(now.inside, 1);
    if (now.makes_none)
        return false;
    step('m');
    return true;
}

bool kp_hostmem_can_make(const struct kp_driver *d)
{
    (void)d;
    assert_int_equal(kp_guard, 1);
    return !now.cannot_make;
}

/* ---- what the doors call that are no rows KP_GATED ---- */

bool kp_hostmem_may_keep(const void *p)
{
    (void)p;
    return false;
}

bool kp_hostmem_ours(uint64_t address, struct kp_hostmem_facts *facts)
{
    (void)address, (void)facts;
    return false;
}

CUresult kp_hostmem_free(CUresult (*real)(void *p), void *p)
{
    return real(p);
}

CUresult kp_hostmem_unregister(CUresult (*real)(void *p), void *p)
{
    return real(p);
}

bool kp_hostmem_is_ours(uint64_t address)
{
    (void)address;
    return false;
}

bool kp_hostmem_is_gap(uint64_t address)
{
    (void)address;
    return false;
}

bool kp_defer_has(CUdeviceptr address)
{
    (void)address;
    return false;
}

CUresult kp_process_launch(struct kp_launch *l)
{
    return l->issue(l);
}

void kp_process_profile(bool on)
{
    (void)on;
}

void kp_phase_hold(void)
{
}

void kp_phase_launched(void)
{
}

/* ---- the doors ---- */

/* All functions of the driver, and all calls of them: these take words only, and pointers to much that is 0. */
typedef CUresult (*any_function)(void *, void *, void *, void *, void *);
static char zeros[4096];

static CUresult in_driver(void *a, void *b, void *c, void *d, void *e)
{
    (void)a, (void)b, (void)c, (void)d, (void)e;
    assert_false(at_work());
    assert_int_equal(kp_guard, now.inside + now.own);
    assert_int_equal(kp_in_driver, now.inside);
    step('d');
    if (now.leaves)
        siglongjmp(now.back, 1);
    return now.refuses ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

#define LIST(...) __VA_ARGS__
#define KP_DOOR(...)
#define KP_GATED(symbol, base, since, ptsz, way, instead, note, type, parameters, arguments)                           \
    static CUresult call_##symbol parameters                                                                           \
    {                                                                                                                  \
        return kp_gated_##symbol((type)(uintptr_t)in_driver, ptsz, LIST arguments);                                    \
    }
#include "preload/doors/doors.def"
#undef KP_GATED

static const struct door {
    const char *symbol, *base, *instead;
    any_function call;
} doors[] = {
#define KP_GATED(symbol, base, since, ptsz, way, instead, note, type, parameters, arguments)                           \
    {#symbol, base, #instead, (any_function)(uintptr_t)call_##symbol},
#include "preload/doors/doors.def"
#undef KP_GATED
#undef KP_DOOR
};

enum { DOORS = sizeof(doors) / sizeof(*doors) };

static const struct {
    const char *name, *work;
} classes[] = {
#define KP_CLASS(name, way, work, ...) {#name, #work},
#include "preload/doors/classes.def"
#undef KP_CLASS
};

static const struct {
    const char *symbol, *class;
} functions[] = {
#define KP_API(symbol, base, class) {#symbol, #class},
#include "preload/doors/cuda_api.def"
#undef KP_API
};

static bool is_unseen(const char *symbol)
{
    size_t f = 0, c = 0;
    while (strcmp(functions[f].symbol, symbol))
        assert_true(++f < sizeof(functions) / sizeof(*functions));
    while (strcmp(classes[c].name, functions[f].class))
        c++;
    return !strcmp(classes[c].work, "UNSEEN");
}

/* Makes the call, and checks what happened, in order: the way in, unseen work where the class says so, then what is to
 * be inside the gate, and the way out. */
static void check(const struct door *d, const char *in, const char *inside)
{
    char expected[MOST_STEPS + 1];
    now.n_steps = 0;
    now.entered_for = NULL;
    memset(now.steps, 0, sizeof(now.steps));
    CUresult rc = d->call(zeros, zeros, now.replays ? NULL : zeros, zeros, zeros); /* NULL: flags that allow that */
    assert_int_equal(rc, now.refuses ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS);
    snprintf(expected, sizeof(expected), "%s%s%sl", in, is_unseen(d->symbol) ? "u" : "", inside);
    if (strcmp(now.steps, expected))
        fail_msg("%s: \"%s\", not \"%s\"", d->symbol, now.steps, expected);
    if (now.entered_for)
        assert_string_equal(now.entered_for, d->base);
    assert_int_equal(now.inside + kp_in_driver + kp_guard, 0);
    assert_false(at_work());
}

/* A launch that no window holds has none beside it. */
static bool is_alone(const struct door *d)
{
    return !strcmp(d->symbol, "cuLaunchCooperativeKernelMultiDevice");
}

static bool changes_graph(const struct door *d)
{
    return strstr(d->symbol, "NodeSet") || strstr(d->symbol, "ExecUpdate") || strstr(d->symbol, "ExecDestroy");
}

/* By parameters, it may also upload the graph. */
static bool makes_graph(const struct door *d)
{
    return strstr(d->symbol, "Instantiate") && !strstr(d->symbol, "WithParams");
}

static bool makes_memory(const struct door *d)
{
    return strcmp(d->instead, "kp_door_never") != 0;
}

/* The way in where others are in the gate, or a window may have to close. */
static const char *way_of(const struct door *d)
{
    return is_alone(d) ? "a" : "s";
}

/* The driver's function, and a note. Notes in a table of launch_doors.c are not seen here, but by test_preload_launch.
 */
static const char *driver_of(const struct door *d)
{
    return strncmp(d->symbol, "cuFuncSet", strlen("cuFuncSet")) ? "dn" : "d";
}

static int reset(void **state)
{
    (void)state;
    memset(&now, 0, sizeof(now));
    now.active = true;
    kp_guard = kp_in_driver = 0;
    return 0;
}

static void test_each_part(void **state)
{
    (void)state;
    for (const struct door *d = doors; d < doors + DOORS; d++) {
        check(d, way_of(d), driver_of(d));
        assert_non_null(now.entered_for);
    }
}

/* Only the usual way may be short. */
static void test_free_gate(void **state)
{
    (void)state;
    now.is_free = true;
    for (const struct door *d = doors; d < doors + DOORS; d++)
        check(d, is_alone(d) || changes_graph(d) || makes_graph(d) || makes_memory(d) ? way_of(d) : "f", driver_of(d));
}

/* What the driver has refused is not noted; a graph is forgotten in any case. */
static void test_refused(void **state)
{
    (void)state;
    now.refuses = true;
    for (const struct door *d = doors; d < doors + DOORS; d++)
        check(d, way_of(d), strcmp(d->symbol, "cuGraphExecDestroy") ? "d" : "dn");
}

/* kprof's own calls, and those before it has started. */
static void test_straight_through(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        now.active = own;
        kp_guard = now.own = own;
        for (const struct door *d = doors; d < doors + DOORS; d++) {
            now.n_steps = 0;
            assert_int_equal(d->call(zeros, zeros, zeros, zeros, zeros), CUDA_SUCCESS);
            assert_int_equal(now.n_steps, 1);
        }
    }
}

/* What is made in place of the driver is not noted as the driver's. */
static void test_in_place_of_the_driver(void **state)
{
    size_t made = 0;
    (void)state;
    now.replays = true;
    for (const struct door *d = doors; d < doors + DOORS; d++) {
        if (!makes_memory(d))
            continue;
        made++;
        check(d, way_of(d), "m");
    }
    assert_true(made > 0);
}

/* A window stays open beside new memory of ours; the driver's spoils it. */
static void test_memory_beside_a_window(void **state)
{
    (void)state;
    for (const struct door *d = doors; d < doors + DOORS; d++) {
        if (!makes_memory(d))
            continue;
        now = (struct now){.active = true, .replays = true, .watches = true, .beside = true};
        check(d, "b", "m");
        now.makes_none = true;
        check(d, "b", "dn");
        assert_int_equal(now.spoilt, 1);
        now.watches = false;
        check(d, "s", "dn");
        now.watches = now.cannot_make = true;
        check(d, "s", "dn");
        now.cannot_make = now.beside = false;
        check(d, "s", "dn");
        now.beside = true;
        now.replays = false;
        check(d, "s", "dn");
    }
}

/* A call beside a window that does not depend on it, one that does, and none. */
static void check_beside(const struct door *d)
{
    now.watches = now.beside = true;
    check(d, "b", "dn");
    now.beside = false;
    check(d, "s", "dn");
    now.watches = false;
    now.beside = true;
    check(d, "s", "dn");
}

/* A window stays open that keeps its nodes, and no memory of the graph's. */
static void test_changes_beside_a_window(void **state)
{
    size_t changes = 0;
    (void)state;
    for (const struct door *d = doors; d < doors + DOORS; d++) {
        if (!changes_graph(d))
            continue;
        changes++;
        check_beside(d);
        now.watches = nodes.allocates = true;
        check(d, "s", "dn");
        nodes.allocates = false;
    }
    assert_true(changes > 0);
}

/* A graph that is new is nothing to a window. */
static void test_graphs_beside_a_window(void **state)
{
    size_t made = 0;
    (void)state;
    for (const struct door *d = doors; d < doors + DOORS; d++)
        if (makes_graph(d)) {
            made++;
            check_beside(d);
        }
    assert_int_equal(made, 3);
}

/* A graph that is not known is changed as any other call. */
static void test_changes_of_unknown_graphs(void **state)
{
    (void)state;
    now.watches = now.beside = now.unknown = true;
    for (const struct door *d = doors; d < doors + DOORS; d++)
        if (changes_graph(d))
            check(d, "s", "dn");
}

/* What a graph runs is not looked up before kprof has a driver; the rest is noted all the same. */
static void test_without_a_driver(void **state)
{
    static const char *const looked_up[] = {"Instantiate",       "KernelNodeSetParams", "MemcpyNodeSetParams",
                                            "cuGraphExecUpdate", "ExecNodeSetParams",   NULL};
    (void)state;
    now.no_driver = true;
    for (const struct door *d = doors; d < doors + DOORS; d++) {
        bool asks = false;
        for (const char *const *l = looked_up; *l; l++)
            asks |= strstr(d->symbol, *l) != NULL;
        check(d, way_of(d), asks ? "d" : driver_of(d));
    }
}

/* What needs the heap of the device is told to the window, and nothing else is. */
static void test_heap(void **state)
{
    (void)state;
    for (int has = 0; has < 2; has++) {
        now.no_heap = !has;
        now.heaps = 0;
        for (const struct door *d = doors; d < doors + DOORS; d++)
            check(d, way_of(d), driver_of(d));
        assert_int_equal(now.heaps, has ? 10 : 0); /* instantiations, kernels, updates */
    }
}

/* One function sets nodes of all kinds. */
static void test_nodes_of_any_kind(void **state)
{
    static const struct {
        CUgraphNodeType type;
        const char *noted;
    } kinds[] = {{CU_GRAPH_NODE_TYPE_KERNEL, "kernel"},
                 {CU_GRAPH_NODE_TYPE_MEMCPY, "copy"},
                 {CU_GRAPH_NODE_TYPE_MEMSET, "memset"},
                 {CU_GRAPH_NODE_TYPE_HOST, "blur"},
                 {CU_GRAPH_NODE_TYPE_EVENT_RECORD, "blur"}};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        CUgraphNodeParams p;
        memset(&p, 0, sizeof(p));
        p.type = kinds[i].type;
        if (p.type == CU_GRAPH_NODE_TYPE_MEMSET)
            p.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
                .dst = 1, .pitch = 2, .value = 3, .elementSize = 4, .width = 5, .height = 6};
        now.n_steps = 0;
        now.noted = NULL;
        assert_int_equal(call_cuGraphExecNodeSetParams(NULL, NULL, &p), CUDA_SUCCESS);
        assert_string_equal(now.noted, kinds[i].noted);
    }
    const CUDA_MEMSET_NODE_PARAMS *m = &now.memset_to;
    assert_true(m->dst == 1 && m->pitch == 2 && m->value == 3 && m->elementSize == 4 && m->width == 5 &&
                m->height == 6);
}

static __attribute__((noinline)) void leave_the_driver(const struct door *d)
{
    now.leaves = true;
    if (!sigsetjmp(now.back, 1)) {
        d->call(zeros, zeros, zeros, zeros, zeros);
        fail_msg("%s has returned", d->symbol);
    }
    now.leaves = false;
}

/* A handler that leaves the driver's function for good leaves the gate, at the latest when the thread comes next. */
static void test_left_for_good(void **state)
{
    (void)state;
    for (const struct door *d = doors; d < doors + DOORS; d++) {
        now.n_steps = 0;
        leave_the_driver(d);
        assert_int_equal(now.inside, 1);
        now.n_steps = 0;
        kp_work_reclaim();
        assert_int_equal(now.n_steps, 1);
        assert_int_equal(now.steps[0], 'l');
        check(d, way_of(d), driver_of(d));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_each_part, reset),
        cmocka_unit_test_setup(test_free_gate, reset),
        cmocka_unit_test_setup(test_refused, reset),
        cmocka_unit_test_setup(test_straight_through, reset),
        cmocka_unit_test_setup(test_in_place_of_the_driver, reset),
        cmocka_unit_test_setup(test_memory_beside_a_window, reset),
        cmocka_unit_test_setup(test_changes_beside_a_window, reset),
        cmocka_unit_test_setup(test_graphs_beside_a_window, reset),
        cmocka_unit_test_setup(test_changes_of_unknown_graphs, reset),
        cmocka_unit_test_setup(test_without_a_driver, reset),
        cmocka_unit_test_setup(test_heap, reset),
        cmocka_unit_test_setup(test_nodes_of_any_kind, reset),
        cmocka_unit_test_setup(test_left_for_good, reset),
    };
    signal(SIGUSR1, handle);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
