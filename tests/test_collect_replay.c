/* The replay loop over a scripted GPU: every operation fails at every occurrence, alone and in pairs, and the promise
 * of replay.h is checked against the log of what was called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collectors/replay.h"

enum op { SAVE, RESTORE, DROP, FLUSH, PROBE_BEGIN, PROBE_END, BEGIN, START, ISSUE, STOP, DECODE, OPS };

static const char *const op_names[OPS] = {"save",  "restore", "drop",  "flush", "probe_begin", "probe_end",
                                          "begin", "start",   "issue", "stop",  "decode"};

/* The stage that a failure of the operation is noted as; probes and drops are no reason to give up. */
static const enum kp_stage stages[OPS] = {
    [SAVE] = KP_STAGE_SAVE,   [RESTORE] = KP_STAGE_RESTORE, [FLUSH] = KP_STAGE_FLUSH, [BEGIN] = KP_STAGE_BEGIN,
    [START] = KP_STAGE_START, [ISSUE] = KP_STAGE_ISSUE,     [STOP] = KP_STAGE_STOP,   [DECODE] = KP_STAGE_DECODE,
};

enum { MAX_LOG = 512, MAX_GROUPS = 4, MAX_FAULTS = 2, WORDS = 4 };

/* The `occurrence`-th call of `op`, counted from 1, fails; 0: none does. */
struct fault {
    enum op op;
    unsigned occurrence;
};

struct call {
    enum op op;
    int code;
    size_t group;
    bool last;
};

struct script {
    size_t passes[MAX_GROUPS]; /* announced */
    size_t groups;
    size_t needed[MAX_GROUPS]; /* passes after which stop says that it was the last; 0: never */
    bool flush, probe;
};

struct gpu {
    const struct script *script;
    struct fault faults[MAX_FAULTS];
    uint64_t memory[WORDS], saved[WORDS];
    unsigned calls[OPS];
    size_t group, passes_of_group;
    bool dropped;
    struct call log[MAX_LOG];
    size_t n;
};

/* In place and dependent on the order: a second execution, or half of one, leaves something else. */
static void execute(uint64_t memory[WORDS], size_t words)
{
    for (size_t i = 0; i < words; i++)
        memory[i] = memory[i] * 6364136223846793005ULL + memory[(i + 1) % WORDS] + i + 1;
}

/* Logs a call and returns the code it is to end with. */
static int note(struct gpu *g, enum op op, size_t group)
{
    int code = 0;
    g->calls[op]++;
    for (size_t i = 0; i < MAX_FAULTS; i++)
        if (g->faults[i].op == op && g->faults[i].occurrence == g->calls[op])
            code = 100 * ((int)op + 1) + (int)g->calls[op];
    assert_true(g->n < MAX_LOG);
    g->log[g->n++] = (struct call){.op = op, .code = code, .group = group};
    return code;
}

static int op_save(void *arg)
{
    struct gpu *g = arg;
    int code = note(g, SAVE, 0);
    if (!code)
        memcpy(g->saved, g->memory, sizeof(g->saved));
    return code;
}

static int op_restore(void *arg)
{
    struct gpu *g = arg;
    int code = note(g, RESTORE, 0);
    assert_false(g->dropped);
    memcpy(g->memory, g->saved, code ? sizeof(g->saved) / 2 : sizeof(g->saved)); /* it fails half-way */
    return code;
}

static void op_drop(void *arg)
{
    struct gpu *g = arg;
    note(g, DROP, 0);
    g->dropped = true;
}

static int op_flush(void *arg)
{
    return note(arg, FLUSH, 0);
}

static int op_probe_begin(void *arg)
{
    return note(arg, PROBE_BEGIN, 0);
}

static int op_probe_end(void *arg)
{
    return note(arg, PROBE_END, 0);
}

static int op_begin(void *arg, size_t group)
{
    struct gpu *g = arg;
    g->group = group;
    g->passes_of_group = 0;
    return note(g, BEGIN, group);
}

static int op_start(void *arg)
{
    return note(arg, START, ((struct gpu *)arg)->group);
}

static int op_issue(void *arg)
{
    struct gpu *g = arg;
    int code = note(g, ISSUE, g->group);
    execute(g->memory, code ? WORDS / 2 : WORDS);
    return code;
}

/* A stop that fails may well say that the pass was the last one. */
static int op_stop(void *arg, bool *last)
{
    struct gpu *g = arg;
    int code = note(g, STOP, g->group);
    *last = ++g->passes_of_group == g->script->needed[g->group];
    g->log[g->n - 1].last = *last;
    return code;
}

static int op_decode(void *arg, size_t group)
{
    return note(arg, DECODE, group);
}

static const struct kp_replay_ops ops = {
    .save = op_save,
    .restore = op_restore,
    .drop = op_drop,
    .flush = op_flush,
    .probe_begin = op_probe_begin,
    .probe_end = op_probe_end,
    .begin = op_begin,
    .start = op_start,
    .issue = op_issue,
    .stop = op_stop,
    .decode = op_decode,
};

static void run(struct gpu *g, const struct script *s, const struct fault faults[MAX_FAULTS],
                struct kp_replay_outcome *out)
{
    struct kp_replay_request request = {.passes = s->passes, .groups = s->groups, .flush = s->flush, .probe = s->probe};
    memset(g, 0, sizeof(*g));
    memset(out, 0xa5, sizeof(*out)); /* what is not set shows */
    g->script = s;
    memcpy(g->faults, faults, sizeof(g->faults));
    for (uint64_t i = 0; i < WORDS; i++)
        g->memory[i] = 1000 + 17 * i;
    kp_replay_run(&ops, g, &request, out);
}

static const struct fault none[MAX_FAULTS];

/* ---- the promise ---- */

/* Fails the test with the whole story. */
static void broken(const struct gpu *g, const char *promise)
{
    print_message("faults: %s %u, %s %u; calls:", op_names[g->faults[0].op], g->faults[0].occurrence,
                  op_names[g->faults[1].op], g->faults[1].occurrence);
    for (size_t i = 0; i < g->n; i++)
        print_message(" %s%s", op_names[g->log[i].op], g->log[i].code ? "!" : "");
    print_message("\n");
    fail_msg("%s", promise);
}

#define PROMISE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            broken(g, #condition);                                                                                     \
    } while (0)

static unsigned succeeded(const struct gpu *g, enum op op)
{
    unsigned n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->log[i].op == op && !g->log[i].code;
    return n;
}

static const struct call *first_failure(const struct gpu *g, bool noted)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->log[i].code && (!noted || stages[g->log[i].op]))
            return &g->log[i];
    return NULL;
}

static bool is(const struct gpu *g, size_t i, enum op op)
{
    return i < g->n && g->log[i].op == op;
}

static void check_memory(const struct gpu *g, const struct kp_replay_outcome *out)
{
    uint64_t once[WORDS];
    bool restore_failed = succeeded(g, RESTORE) < g->calls[RESTORE],
         issue_failed = succeeded(g, ISSUE) < g->calls[ISSUE];
    for (uint64_t i = 0; i < WORDS; i++)
        once[i] = 1000 + 17 * i;
    execute(once, WORDS);
    PROMISE(out->damaged == restore_failed);
    PROMISE(out->dead == issue_failed);
    if (!out->damaged && !out->dead)
        PROMISE(!memcmp(once, g->memory, sizeof(once)));
}

static size_t executions(const struct script *s)
{
    size_t n = s->probe;
    for (size_t i = 0; i < s->groups; i++)
        n += s->passes[i];
    return n;
}

static void check_saving(const struct gpu *g)
{
    PROMISE(g->calls[SAVE] == (executions(g->script) > 1));
    PROMISE(!g->calls[SAVE] || is(g, 0, SAVE));
    PROMISE(g->calls[DROP] == succeeded(g, SAVE));
    PROMISE(!g->calls[DROP] || is(g, g->n - 1, DROP));
    PROMISE(!g->calls[RESTORE] || succeeded(g, SAVE));
    if (g->calls[SAVE] && !succeeded(g, SAVE)) /* nothing to go back to: the program's own execution, and no more */
        PROMISE(g->n == 2 && is(g, 1, ISSUE));
}

static void check_order(const struct gpu *g)
{
    size_t group = SIZE_MAX;
    bool last = false;
    for (size_t i = 0; i < g->n; i++)
        switch (g->log[i].op) {
        case BEGIN:
            PROMISE(group == SIZE_MAX ? g->log[i].group == 0 : g->log[i].group == group + 1);
            group = g->log[i].group;
            last = false;
            break;
        case START:
            PROMISE(group != SIZE_MAX && !last);
            PROMISE(!g->script->flush || (is(g, i - 1, FLUSH) && !g->log[i - 1].code));
            PROMISE(g->log[i].code || (is(g, i + 1, ISSUE) && is(g, i + 2, STOP)));
            break;
        case STOP:
            PROMISE(is(g, i - 2, START) && !g->log[i - 2].code);
            last = g->log[i].last;
            break;
        case FLUSH:
            PROMISE(g->script->flush && (g->log[i].code || is(g, i + 1, START)));
            break;
        case DECODE:
            PROMISE(last && is(g, i - 1, STOP) && g->log[i].group == group);
            break;
        case PROBE_BEGIN:
            PROMISE(g->script->probe && (g->log[i].code || (is(g, i + 1, ISSUE) && is(g, i + 2, PROBE_END))));
            break;
        case PROBE_END:
            PROMISE(is(g, i - 2, PROBE_BEGIN));
            break;
        default:
            break;
        }
}

/* A failed issue is the program's own error: whatever comes after it gives back what was taken, and does no more. */
static void check_death(const struct gpu *g)
{
    size_t i = 0;
    while (i < g->n && !(g->log[i].op == ISSUE && g->log[i].code))
        i++;
    for (i++; i < g->n; i++)
        PROMISE(is(g, i, STOP) || is(g, i, DROP) || is(g, i, PROBE_END));
}

static void check(const struct gpu *g, const struct kp_replay_outcome *out)
{
    const struct call *noted = first_failure(g, true);
    check_memory(g, out);
    check_saving(g);
    check_order(g);
    check_death(g);
    PROMISE(out->passes == g->calls[STOP]);
    PROMISE(g->calls[PROBE_BEGIN] <= 1 && g->calls[PROBE_END] <= 1);
    if (noted) {
        PROMISE(out->failed == stages[noted->op]);
        PROMISE(out->code == noted->code);
    } else {
        PROMISE(out->failed == KP_STAGE_NONE || out->failed == KP_STAGE_PASSES);
        PROMISE((out->code != 0) == (out->failed == KP_STAGE_PASSES));
    }
}

/* ---- the cases ---- */

static const struct script scripts[] = {
    {.groups = 0},
    {.groups = 0, .flush = true},
    {.groups = 0, .probe = true},
    {.groups = 1, .passes = {1}, .needed = {1}},
    {.groups = 1, .passes = {1}, .needed = {1}, .flush = true},
    {.groups = 1, .passes = {1}, .needed = {1}, .flush = true, .probe = true},
    {.groups = 1, .passes = {4}, .needed = {4}, .flush = true, .probe = true},
    {.groups = 1, .passes = {4}, .needed = {2}, .flush = true},
    {.groups = 2, .passes = {3, 1}, .needed = {3, 1}, .flush = true, .probe = true},
    {.groups = 3, .passes = {1, 2, 1}, .needed = {1, 2, 1}},
    {.groups = 1, .passes = {3}, .needed = {0}, .flush = true},
    {.groups = 1, .passes = {1}, .needed = {0}},
    {.groups = 2, .passes = {2, 2}, .needed = {2, 0}, .probe = true},
    {.groups = 1, .passes = {0}, .needed = {0}},
};

enum { SCRIPTS = sizeof(scripts) / sizeof(*scripts) };

static void test_all_well(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    const struct script *s = &scripts[8]; /* two groups, three passes and one, flush and probe */
    run(g, s, none, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_NONE && out.passes == 4);
    PROMISE(g->calls[ISSUE] == 5 && g->calls[RESTORE] == 4 && g->calls[FLUSH] == 4);
    PROMISE(g->calls[SAVE] == 1 && g->calls[DROP] == 1);
    PROMISE(g->calls[BEGIN] == 2 && g->calls[DECODE] == 2);
    PROMISE(g->calls[PROBE_BEGIN] == 1 && g->calls[PROBE_END] == 1);
}

static void test_fewer_passes_than_announced(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    run(g, &scripts[7], none, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_NONE && out.passes == 2 && g->calls[DECODE] == 1);
}

static void test_one_execution_is_not_saved(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    for (size_t i = 0; i < SCRIPTS; i++) {
        run(g, &scripts[i], none, &out);
        if (executions(&scripts[i]) <= 1)
            PROMISE(!g->calls[SAVE] && !g->calls[RESTORE] && !g->calls[DROP] && g->calls[ISSUE] == 1);
        else
            PROMISE(g->calls[SAVE] == 1);
    }
}

static void test_never_last(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    run(g, &scripts[10], none, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_PASSES && out.passes == 3 && !g->calls[DECODE]);
    run(g, &scripts[11], none, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_PASSES && out.passes == 1 && !g->calls[DECODE]);
    run(g, &scripts[12], none, &out); /* the second group of two */
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_PASSES && out.passes == 4 && g->calls[DECODE] == 1);
}

/* Its facts are then missing; the counters are not. */
static void test_probe_that_does_not_start(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    const struct fault faults[MAX_FAULTS] = {{PROBE_BEGIN, 1}};
    (void)state;
    run(g, &scripts[6], faults, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_NONE && out.passes == 4 && !g->calls[PROBE_END] && g->calls[ISSUE] == 4);
}

static void test_every_single_failure(void **state)
{
    struct gpu clean, gpu, *g = &gpu;
    struct kp_replay_outcome out;
    unsigned tried = 0;
    (void)state;
    for (size_t i = 0; i < SCRIPTS; i++) {
        run(&clean, &scripts[i], none, &out);
        check(&clean, &out);
        for (enum op op = 0; op < OPS; op++)
            for (unsigned n = 1; op != DROP && n <= clean.calls[op]; n++, tried++) {
                const struct fault faults[MAX_FAULTS] = {{op, n}};
                run(g, &scripts[i], faults, &out);
                PROMISE(first_failure(g, false) != NULL); /* the fault was met */
                check(g, &out);
            }
    }
    assert_true(tried > 100);
}

/* The second fault may only exist because of the first (the execution after a failed save), so one occurrence more than
 * in the clean run is tried. */
static void test_every_pair_of_failures(void **state)
{
    struct gpu clean, gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    for (size_t i = 0; i < SCRIPTS; i++) {
        run(&clean, &scripts[i], none, &out);
        for (enum op a = 0; a < OPS; a++)
            for (unsigned n = 1; a != DROP && n <= clean.calls[a]; n++)
                for (enum op b = 0; b < OPS; b++)
                    for (unsigned m = 1; b != DROP && m <= clean.calls[b] + 1; m++) {
                        const struct fault faults[MAX_FAULTS] = {{a, n}, {b, m}};
                        run(g, &scripts[i], faults, &out);
                        check(g, &out);
                    }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_well),
        cmocka_unit_test(test_fewer_passes_than_announced),
        cmocka_unit_test(test_one_execution_is_not_saved),
        cmocka_unit_test(test_never_last),
        cmocka_unit_test(test_probe_that_does_not_start),
        cmocka_unit_test(test_every_single_failure),
        cmocka_unit_test(test_every_pair_of_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
