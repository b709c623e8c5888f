/* What is decided of a launch before it is made: each reason holds for its cause alone, and of several causes the first
 * in the order of the tables gives the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collectors/code/cubin.h"
#include "collectors/replay/rewound.h"
#include "preload/program/hostmem.h"
#include "preload/program/variables.h"
#include "preload/mode/admit.h"
#include "preload/mode/close_reasons.h"
#include "preload/gate/window_facts.h"
#include "preload/graphs/host_pointers.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"

/* ---- what is known of the process, in the place of the real ones ---- */

enum { MANY = 16 }; /* unwanted launches in a row, after which a window closes */

/* The causes of a test, a bit each. */
enum {
    TOLD = 1 << 0, /* the process has found a reason against repeating */
    GRAPH = 1 << 1,
    SEVERAL = 1 << 2,
    HEAP = 1 << 3,
    SHARED = 1 << 4,
    REGISTERED = 1 << 5,
    TAKES_HEAP = 1 << 6,
    LAUNCHES = 1 << 7,
    BLOCKS = 1 << 8,
    VIRTUAL = 1 << 9,
    HOST = 1 << 10,
    UNCOPIED = 1 << 11,
    READS = 1 << 12,
    MANAGED = 1 << 13,
    REWOUND = 1 << 14,
    ENDS = 1 << 15,
    STUCK = 1 << 16,
    ONE_PASS = 1 << 17,
    /* of the open window */
    ELSEWHERE = 1 << 18,
    OTHER_KIND = 1 << 19,
    OTHER_THREAD = 1 << 20,
    FULL = 1 << 21,
    UNWANTED = 1 << 22,
    STRATEGY = 1 << 23,
    COUNTED = 1 << 24,
    VARIABLES = 1 << 25,
    QUIET = 1 << 26,
    ASKED = 1 << 27,
    SPOILED = 1 << 28,
    READS_OFF = 1 << 29,
    TURNS = 1 << 30 /* the window counts for such launches */
};
#define WRITES (1u << 31) /* no enumerator, which are int: the kernel was seen to write host memory */

static unsigned causes;

bool kp_flags_spoiled(void)
{
    return causes & SPOILED;
}

static bool served, noted; /* KP_MET_SERVED, and that it was noted */

bool kp_flags_met(enum kp_met what)
{
    static const unsigned of[] = {[KP_MET_SHARED] = SHARED,
                                  [KP_MET_MANAGED] = MANAGED,
                                  [KP_MET_VIRTUAL] = VIRTUAL,
                                  [KP_MET_HEAP_BLOCKS] = BLOCKS};
    return what == KP_MET_SERVED ? served : causes & of[what];
}

void kp_flags_served(void)
{
    noted = true;
}

bool kp_hostmem_shared(void)
{
    return causes & REGISTERED;
}

bool kp_hostmem_rewound(void)
{
    return causes & REWOUND;
}

static bool pinned; /* the program has host memory that the device reaches */

bool kp_hostmem_any(void)
{
    return pinned;
}

bool kp_reach_heap(const struct kp_driver *d, const struct kp_launch *l)
{
    (void)d, (void)l;
    return causes & HEAP;
}

bool kp_reach_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, size_t most,
                   bool *kept)
{
    (void)d, (void)l, (void)most, (void)kept;
    assert_null(into);
    return causes & HOST;
}

enum kp_reason kp_stuck_known(const struct kp_launch *l, const struct kp_known_function *f)
{
    (void)l, (void)f;
    return causes & STUCK ? KP_REASON_WAITS_FOR_MORE : KP_REASON_NONE;
}

uint64_t kp_variables_pending(uint64_t known, uint64_t holder)
{
    assert_true(known == 1 && holder == 7);
    return causes & VARIABLES ? 1 : 0;
}

uint64_t kp_variables_questions(void)
{
    return causes & ASKED ? 4 : 3;
}

static struct kp_journal_facts journal;

struct kp_journal_facts kp_journal_facts(void)
{
    return journal;
}

bool kp_context_several(const struct kp_context_setup *setup)
{
    (void)setup;
    return causes & SEVERAL;
}

/* ---- a launch, and a window ---- */

static enum kp_reason admit(const struct kp_question *q)
{
    (void)q;
    return causes & STRATEGY ? KP_REASON_SERIES : KP_REASON_NONE;
}

static const struct kp_strategy rewinding = {.rewinds = true, .admit = admit}, counting = {.admit = admit},
                                beside = {.beside = true, .admit = admit};

static const struct kp_mode counts = {.again = KP_AGAIN_NEVER}, recurs = {.again = KP_AGAIN_RECUR},
                            repeats = {.again = KP_AGAIN_REPLAY},
                            takes_turns = {.again = KP_AGAIN_REPLAY, .otherwise = &recurs};

/* All that a question points to. */
static struct {
    struct kp_window window;
    struct kp_context_setup setup;
    struct kp_options options;
    struct kp_context context, other;
    struct kp_launch launch;
    struct kp_candidate what;
    struct kp_graph graph;
    struct kp_known_function function;
    void *params;
} t;

static struct kp_question judged(unsigned of)
{
    memset(&t, 0, sizeof(t));
    causes = of;
    bool is_graph = of & (GRAPH | READS | OTHER_KIND);
    t.setup.mode = of & ONE_PASS ? &counts : of & TURNS ? &takes_turns : &repeats;
    t.setup.options = &t.options;
    t.options.window_reads = !(of & READS_OFF);
    t.context.device.pageable_access = true;
    t.graph = (struct kp_graph){.reads_host = of & READS};
    t.what = (struct kp_candidate){.wanted = !(of & UNWANTED),
                                   .graph = is_graph ? &t.graph : NULL,
                                   .once_reason = of & TOLD ? KP_REASON_GRAPH_VALUES : KP_REASON_NONE};
    t.function.once = (of & TAKES_HEAP ? KP_ONCE_HEAP : 0) | (of & LAUNCHES ? KP_ONCE_LAUNCHES : 0);
    t.function.writes_host = of & WRITES;
    t.function.ends = of & ENDS;
    t.function.loud = !(of & QUIET);
    t.function.facts.params_known = !(of & UNCOPIED);
    t.launch.params = &t.params;
    t.launch.is_graph = is_graph;
    t.launch.stream = of & OTHER_THREAD ? CU_STREAM_PER_THREAD : NULL;
    t.window = (struct kp_window){.open = true,
                                  .setup = &t.setup,
                                  .context = of & ELSEWHERE ? &t.other : &t.context,
                                  .strategy = of & TURNS     ? &beside
                                              : of & COUNTED ? &counting
                                                             : &rewinding,
                                  .mode = KP_RANGE_AUTO,
                                  .most = 3,
                                  .unwanted_in_a_row = MANY};
    journal = (struct kp_journal_facts){.open = true,
                                        .launches = of & FULL ? 3 : 2,
                                        .has_per_thread = true,
                                        .serial = 7,
                                        .questions = 3,
                                        .variables = 1};
    struct kp_question q = {.window = &t.window,
                            .setup = &t.setup,
                            .context = &t.context,
                            .launch = &t.launch,
                            .what = &t.what,
                            .function = is_graph ? NULL : &t.function};
    kp_admit_judge(&q);
    return q;
}

static void check(unsigned of, const char *what, enum kp_reason got, enum kp_reason expected)
{
    if (got != expected)
        fail_msg("%#x: %s: '%s' instead of '%s'", of, what, kp_reason_key(got), kp_reason_key(expected));
}

/* ---- tests ---- */

static void test_obstacles(void **state)
{
    static const struct {
        unsigned of;
        enum kp_reason why;
        bool once;
    } rows[] = {
        {0, KP_REASON_NONE, false},
        {HOST | UNCOPIED | MANAGED | REWOUND | STUCK | SEVERAL, KP_REASON_NONE, false},
        {TOLD, KP_REASON_GRAPH_VALUES, false},
        {HEAP, KP_REASON_HOST_HEAP, false},
        {SHARED, KP_REASON_SHARED_MEMORY, false},
        {REGISTERED, KP_REASON_REGISTERED_SHARED, false},
        {TAKES_HEAP, KP_REASON_DEVICE_HEAP, true},
        {LAUNCHES, KP_REASON_DYNAMIC_PARALLELISM, true},
        {WRITES, KP_REASON_WRITES_HOST, true},
        {BLOCKS, KP_REASON_HEAP_BLOCKS, true},
        {VIRTUAL, KP_REASON_HOST_VIRTUAL, true},
        /* the order */
        {TOLD | HEAP | SHARED | REGISTERED | TAKES_HEAP | LAUNCHES | BLOCKS | VIRTUAL, KP_REASON_GRAPH_VALUES, false},
        {HEAP | SHARED | REGISTERED | TAKES_HEAP | LAUNCHES | BLOCKS | VIRTUAL, KP_REASON_HOST_HEAP, false},
        {SHARED | REGISTERED | TAKES_HEAP | LAUNCHES | BLOCKS | VIRTUAL, KP_REASON_SHARED_MEMORY, false},
        {REGISTERED | TAKES_HEAP | LAUNCHES | BLOCKS | VIRTUAL, KP_REASON_REGISTERED_SHARED, false},
        {TAKES_HEAP | LAUNCHES | BLOCKS | VIRTUAL, KP_REASON_DEVICE_HEAP, true},
        {LAUNCHES | WRITES | BLOCKS | VIRTUAL, KP_REASON_DYNAMIC_PARALLELISM, true},
        {WRITES | BLOCKS | VIRTUAL, KP_REASON_WRITES_HOST, true},
        {BLOCKS | VIRTUAL, KP_REASON_HEAP_BLOCKS, true},
        /* where nothing is replayed */
        {ONE_PASS | HEAP | SHARED | REGISTERED | TAKES_HEAP | LAUNCHES | BLOCKS | VIRTUAL, KP_REASON_NONE, false},
        {ONE_PASS | WRITES, KP_REASON_NONE, false},
        {ONE_PASS | TOLD, KP_REASON_NONE, false},
        {ONE_PASS | TOLD | SEVERAL, KP_REASON_GRAPH_VALUES, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_question q = judged(rows[i].of);
        check(rows[i].of, "obstacle", q.fit.once_reason, rows[i].why);
        assert_int_equal(q.fit.once, rows[i].once);
    }
}

static void test_attributes(void **state)
{
    static CUlaunchAttribute later = {.id = (CUlaunchAttributeID)0x7777};
    (void)state;
    for (unsigned of = 0; of <= ONE_PASS; of += ONE_PASS) {
        struct kp_question q = judged(of);
        t.launch.config.attrs = &later;
        t.launch.config.numAttrs = 1;
        kp_admit_judge(&q);
        check(of, "obstacle", q.fit.once_reason, of ? KP_REASON_NONE : KP_REASON_LATER_ATTRIBUTE);
        assert_int_equal(q.fit.once, !of);
    }
}

/* What the code of a kernel tells: it works with the host while it runs. */
static void test_shares(void **state)
{
    static const struct {
        unsigned of, once;
        bool pinned, host;
        enum kp_reason why;
    } rows[] = {
        {0, KP_ONCE_POSTS, true, true, KP_REASON_POSTS},
        {HOST, KP_ONCE_POSTS, true, true, KP_REASON_POSTS},
        {MANAGED, KP_ONCE_POSTS, false, true, KP_REASON_POSTS},
        {0, KP_WAITS_FOR_OTHERS, true, true, KP_REASON_WAITS_UNSEEN},
        {0, KP_WAITS_FOR_OTHERS, false, true, KP_REASON_NONE}, /* for a copy or another kernel */
        {HOST, KP_WAITS_FOR_OTHERS, true, true, KP_REASON_NONE},
        {0, KP_ONCE_PRINTS, true, false, KP_REASON_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        pinned = rows[i].pinned;
        struct kp_question q = judged(rows[i].of);
        t.function.once = rows[i].once;
        kp_admit_judge(&q);
        check(rows[i].once, "shares", q.fit.once_reason, rows[i].why);
        assert_int_equal(q.fit.once, rows[i].why != KP_REASON_NONE);
        assert_int_equal(q.fit.host, rows[i].host);
        assert_int_equal(kp_admit_may_hang(&q), rows[i].why != KP_REASON_NONE);
        t.function.ends = KP_ENDS_ENOUGH - 1;
        kp_admit_judge(&q);
        assert_int_equal(kp_admit_may_hang(&q), rows[i].why != KP_REASON_NONE);
        t.function.ends = KP_ENDS_ENOUGH;
        kp_admit_judge(&q);
        assert_false(kp_admit_may_hang(&q));
    }
    pinned = false;
}

/* A kernel that works with the host in memory that a replay rewinds keeps all others from replays. */
static void test_served(void **state)
{
    static const struct {
        unsigned of, once;
        bool served;
    } rows[] = {
        {HOST | REWOUND, KP_ONCE_POSTS, true},
        {HOST | REWOUND, KP_WAITS_FOR_OTHERS, true},
        {MANAGED, KP_ONCE_POSTS, true},
        {HOST, KP_ONCE_POSTS, false},
        {HOST | REWOUND, 0, false},
        {MANAGED, 0, false},
    };
    (void)state;
    pinned = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_question q = judged(rows[i].of);
        t.function.once = rows[i].once;
        noted = false;
        kp_admit_judge(&q);
        assert_int_equal(noted, rows[i].served);
    }
    pinned = false;
    served = true;
    struct kp_question q = judged(0);
    kp_admit_judge(&q);
    check(0, "served", q.fit.once_reason, KP_REASON_MEMORY_SERVED);
    assert_true(q.fit.once);
    served = false;
}

static void test_alone(void **state)
{
    static const struct {
        unsigned of;
        enum kp_reason why;
    } rows[] = {
        {0, KP_REASON_NONE},
        {HOST, KP_REASON_REACHES_HOST},
        {HEAP, KP_REASON_REACHES_HOST},
        {MANAGED, KP_REASON_REACHES_HOST},
        {UNCOPIED, KP_REASON_ARGUMENTS},
        {READS, KP_REASON_READING_GRAPH},
        {READS | MANAGED | REWOUND, KP_REASON_READING_GRAPH},
        {GRAPH | MANAGED | REWOUND, KP_REASON_MANAGED},
        /* the window keeps the program's own memory, where it can */
        {REWOUND, KP_REASON_NONE},
        {REWOUND | READS_OFF, KP_REASON_HOST_REWOUND},
        {REWOUND | SEVERAL, KP_REASON_HOST_REWOUND},
        {REWOUND | GRAPH, KP_REASON_HOST_REWOUND},
        {REWOUND | HOST | QUIET, KP_REASON_HOST_REWOUND},
        {HOST | UNCOPIED | REWOUND, KP_REASON_REACHES_HOST},
        /* which was not seen to change it */
        {HOST | QUIET, KP_REASON_NONE},
        {HOST | QUIET | UNCOPIED, KP_REASON_ARGUMENTS},
        {HEAP | QUIET, KP_REASON_REACHES_HOST},
        {MANAGED | QUIET, KP_REASON_REACHES_HOST},
        {UNCOPIED | REWOUND, KP_REASON_ARGUMENTS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        check(rows[i].of, "alone", judged(rows[i].of).fit.alone_reason, rows[i].why);
}

static void test_misfits(void **state)
{
    static const struct {
        unsigned of;
        enum kp_reason why;
    } rows[] = {
        {0, KP_REASON_NONE},
        {VARIABLES, KP_REASON_NONE}, /* kernels of other modules do not know them */
        {VARIABLES | ASKED, KP_REASON_MODULE_VARIABLES},
        {ASKED, KP_REASON_NONE},
        {VARIABLES | OTHER_KIND, KP_REASON_MODULE_VARIABLES},
        {VARIABLES | ASKED | COUNTED, KP_REASON_NONE},
        {STUCK, KP_REASON_WAITS_FOR_MORE},
        {ELSEWHERE, KP_REASON_ELSEWHERE},
        {TOLD, KP_REASON_GRAPH_VALUES},
        {TOLD | COUNTED | TURNS, KP_REASON_NONE},
        {OTHER_KIND, KP_REASON_OTHER_KIND},
        {OTHER_THREAD, KP_REASON_OTHER_THREAD},
        {FULL, KP_REASON_FULL},
        {UNWANTED, KP_REASON_MANY_UNWANTED},
        {STRATEGY, KP_REASON_SERIES},
        {SPOILED, KP_REASON_SPOILED},
        {SPOILED | COUNTED, KP_REASON_NONE},
        /* the order */
        {SPOILED | VARIABLES | ASKED | STUCK | ELSEWHERE | TOLD | OTHER_KIND | OTHER_THREAD, KP_REASON_SPOILED},
        {VARIABLES | ASKED | STUCK | ELSEWHERE | TOLD | OTHER_KIND | OTHER_THREAD | FULL | UNWANTED | STRATEGY,
         KP_REASON_MODULE_VARIABLES},
        {STUCK | ELSEWHERE | TOLD | OTHER_KIND | OTHER_THREAD | FULL | UNWANTED | STRATEGY, KP_REASON_WAITS_FOR_MORE},
        {ELSEWHERE | TOLD | OTHER_KIND | OTHER_THREAD | FULL | UNWANTED | STRATEGY, KP_REASON_ELSEWHERE},
        {TOLD | OTHER_KIND | OTHER_THREAD | FULL | UNWANTED | STRATEGY, KP_REASON_GRAPH_VALUES},
        {OTHER_KIND | OTHER_THREAD | FULL | UNWANTED | STRATEGY, KP_REASON_OTHER_KIND},
        {OTHER_THREAD | FULL | UNWANTED | STRATEGY, KP_REASON_OTHER_THREAD},
        {FULL | UNWANTED | STRATEGY, KP_REASON_FULL},
        {UNWANTED | STRATEGY, KP_REASON_MANY_UNWANTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_question q = judged(rows[i].of);
        check(rows[i].of, "misfit", kp_admit_join_reason(&q), rows[i].why);
    }
}

/* An unwanted kernel stays in a window of graphs where that is replayed, but is counted along where that is not. */
static void test_other_kind(void **state)
{
    (void)state;
    for (unsigned of = 0; of <= COUNTED; of += COUNTED) {
        struct kp_question q = judged(of | UNWANTED);
        t.window.mode = KP_RANGE_USER;
        t.window.unwanted_in_a_row = MANY - 1;
        check(of, "unwanted kernel", kp_admit_join_reason(&q), of ? KP_REASON_OTHER_KIND : KP_REASON_NONE);
        q = judged(of);
        t.window.mode = KP_RANGE_USER;
        check(of, "wanted kernel", kp_admit_join_reason(&q), KP_REASON_OTHER_KIND);
    }
}

static void test_hindrances(void **state)
{
    static const struct {
        unsigned of;
        enum kp_reason why;
    } rows[] = {
        {0, KP_REASON_NONE},
        {STUCK, KP_REASON_WAITS_FOR_MORE},
        {HOST, KP_REASON_NONE}, /* it is replayed, in a window of its own */
        {HOST | TOLD, KP_REASON_FIRST_WATCHED},
        {HOST | TOLD | ENDS, KP_REASON_NONE},
        {HOST | ONE_PASS, KP_REASON_FIRST_WATCHED},
        {HOST | ONE_PASS | ENDS, KP_REASON_NONE},
        {TOLD | SEVERAL, KP_REASON_GRAPH_VALUES},
        {TAKES_HEAP | SEVERAL, KP_REASON_NONE}, /* it waits for nobody */
        {SEVERAL, KP_REASON_NONE},
        {STUCK | HOST | TOLD | SEVERAL, KP_REASON_WAITS_FOR_MORE},
        {HOST | TOLD | SEVERAL, KP_REASON_FIRST_WATCHED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_question q = judged(rows[i].of);
        check(rows[i].of, "hindrance", kp_admit_open_reason(&q), rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_obstacles),  cmocka_unit_test(test_attributes), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_served),     cmocka_unit_test(test_alone),      cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_other_kind), cmocka_unit_test(test_hindrances),
    };
    return cmocka_run_group_tests_name("preload/admit", tests, NULL, NULL);
}
