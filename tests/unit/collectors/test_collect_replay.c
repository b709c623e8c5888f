/* The replay loop over a scripted GPU: every operation fails at every occurrence and in every way, alone and in pairs.
 * The promise of replay.h is checked against the memory and the log of what was called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collectors/replay/replay.h"

enum op { RESTORE, REHEARSE, BEGIN, START, ISSUE, STOP, DECODE, PLAIN, PUT_BACK, OPS };

static const char *const op_names[OPS] = {"restore", "rehearse", "begin", "start",   "issue",
                                          "stop",    "decode",   "plain", "put back"};

static const enum kp_stage stages[OPS] = {
    [RESTORE] = KP_STAGE_RESTORE, [REHEARSE] = KP_STAGE_REHEARSE, [BEGIN] = KP_STAGE_BEGIN,
    [START] = KP_STAGE_START,     [ISSUE] = KP_STAGE_ISSUE,       [STOP] = KP_STAGE_STOP,
    [DECODE] = KP_STAGE_DECODE,   [PLAIN] = KP_STAGE_ISSUE,       [PUT_BACK] = KP_STAGE_RESTORE,
};

/* How a call fails. What issues the window can be refused in the middle, fault in the middle, or end late; and a pass
 * that is refused in the middle can be done without. */
enum way { FAILS, REFUSED, LATE, GIVEN_UP, CUT, UNENDED };

enum { MAX_LOG = 512, MAX_GROUPS = 4, MAX_FAULTS = 2, WORDS = 4 };

/* The `occurrence`-th call of `op`, counted from 1, fails; 0: none does. */
struct fault {
    enum op op;
    unsigned occurrence;
    enum way way;
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
    unsigned rehearsals;
};

struct gpu {
    const struct script *script;
    struct fault faults[MAX_FAULTS];
    uint64_t memory[WORDS], own[WORDS]; /* the second as the program's own execution left it */
    unsigned calls[OPS];
    size_t group, passes_of_group;
    struct call log[MAX_LOG];
    size_t n;
    bool began_elsewhere; /* the window was issued on other memory than it was first issued on */
};

static bool issues(enum op op)
{
    return op == REHEARSE || op == ISSUE || op == PLAIN;
}

static void before_window(uint64_t memory[WORDS])
{
    for (uint64_t i = 0; i < WORDS; i++)
        memory[i] = 1000 + 17 * i;
}

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
            code = g->faults[i].way == REFUSED    ? KP_ISSUE_REFUSED
                   : g->faults[i].way == LATE     ? KP_ISSUE_TOO_LONG
                   : g->faults[i].way == GIVEN_UP ? KP_ISSUE_GIVEN_UP
                   : g->faults[i].way == CUT      ? KP_ISSUE_CUT
                   : g->faults[i].way == UNENDED  ? KP_ISSUE_UNENDED
                                                  : 100 * ((int)op + 1) + (int)g->calls[op];
    assert_true(g->n < MAX_LOG);
    g->log[g->n++] = (struct call){.op = op, .code = code, .group = group};
    return code;
}

static int op_restore(void *arg)
{
    struct gpu *g = arg;
    uint64_t before[WORDS];
    int code = note(g, RESTORE, 0);
    before_window(before);
    memcpy(g->memory, before, code ? sizeof(before) / 2 : sizeof(before)); /* it fails half-way */
    return code;
}

static int run_window(struct gpu *g, enum op op)
{
    uint64_t before[WORDS];
    int code = note(g, op, g->group);
    before_window(before);
    g->began_elsewhere |= memcmp(before, g->memory, sizeof(before)) != 0;
    execute(g->memory, code && code != KP_ISSUE_TOO_LONG ? WORDS / 2 : WORDS);
    return code;
}

static int op_rehearse(void *arg)
{
    return run_window(arg, REHEARSE);
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
    return run_window(arg, ISSUE);
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

static int op_plain(void *arg)
{
    return run_window(arg, PLAIN);
}

static int op_put_back(void *arg)
{
    struct gpu *g = arg;
    int code = note(g, PUT_BACK, 0);
    memcpy(g->memory, g->own, code ? sizeof(g->own) / 2 : sizeof(g->own));
    return code;
}

static const struct kp_replay_ops ops = {
    .restore = op_restore,
    .rehearse = op_rehearse,
    .begin = op_begin,
    .start = op_start,
    .issue = op_issue,
    .stop = op_stop,
    .decode = op_decode,
    .plain = op_plain,
    .put_back = op_put_back,
};

/* The program has run the window once when the loop begins; with `own` in a way that no repetition gives again. */
static void run_as(bool own, struct gpu *g, const struct script *s, const struct fault faults[MAX_FAULTS],
                   struct kp_replay_outcome *out)
{
    struct kp_replay_request request = {
        .passes = s->passes, .groups = s->groups, .rehearsals = s->rehearsals, .own = own};
    memset(g, 0, sizeof(*g));
    memset(out, 0xa5, sizeof(*out)); /* what is not set shows */
    g->script = s;
    memcpy(g->faults, faults, sizeof(g->faults));
    before_window(g->memory);
    execute(g->memory, WORDS);
    g->memory[1] += own;
    memcpy(g->own, g->memory, sizeof(g->own));
    kp_passes_run(&ops, g, &request, out);
}

static void run(struct gpu *g, const struct script *s, const struct fault faults[MAX_FAULTS],
                struct kp_replay_outcome *out)
{
    run_as(false, g, s, faults, out);
}

static const struct fault none[MAX_FAULTS];

/* ---- the promise ---- */

/* Fails the test with the whole story. */
static void broken(const struct gpu *g, const char *promise)
{
    print_message("faults: %s %u way %d, %s %u way %d; calls:", op_names[g->faults[0].op], g->faults[0].occurrence,
                  g->faults[0].way, op_names[g->faults[1].op], g->faults[1].occurrence, g->faults[1].way);
    for (size_t i = 0; i < g->n; i++)
        print_message(" %s%s", op_names[g->log[i].op],
                      !g->log[i].code                      ? ""
                      : g->log[i].code == KP_ISSUE_REFUSED ? "-"
                                                           : "!");
    print_message("\n");
    fail_msg("%s", promise);
}

#define PROMISE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            broken(g, #condition);                                                                                     \
    } while (0)

static bool is(const struct gpu *g, size_t i, enum op op)
{
    return i < g->n && g->log[i].op == op;
}

static bool has_failed(const struct call *c)
{
    return c->code && c->code != KP_ISSUE_GIVEN_UP;
}

static bool is_fault(const struct call *c)
{
    return issues(c->op) && has_failed(c) && c->code != KP_ISSUE_REFUSED && c->code != KP_ISSUE_TOO_LONG;
}

static void check_memory(const struct gpu *g, const struct kp_replay_outcome *out)
{
    uint64_t once[WORDS];
    bool damage = false, fault = false;
    before_window(once);
    execute(once, WORDS);
    for (size_t i = 0; i < g->n; i++) {
        damage |= is(g, i, RESTORE) && g->log[i].code;
        damage |= is(g, i, PLAIN) && g->log[i].code == KP_ISSUE_REFUSED;
        fault |= is_fault(&g->log[i]);
    }
    PROMISE(!g->began_elsewhere);
    PROMISE(out->damaged == damage);
    PROMISE(out->dead == fault);
    if (!out->damaged && !out->dead)
        PROMISE(!memcmp(once, g->memory, sizeof(once)));
}

/* A restore costs time: there is none unless the window was issued since the last one. */
static void check_restores(const struct gpu *g)
{
    bool issued = true;
    for (size_t i = 0; i < g->n; i++) {
        PROMISE(!is(g, i, RESTORE) || issued);
        issued = is(g, i, RESTORE) ? false : issued || issues(g->log[i].op);
    }
    PROMISE(g->calls[PLAIN] <= 1);
    PROMISE(!g->calls[PLAIN] || is(g, g->n - 1, PLAIN)); /* only to end with */
}

static void check_order(const struct gpu *g)
{
    size_t group = SIZE_MAX;
    bool last = false;
    PROMISE(g->calls[REHEARSE] <= g->script->rehearsals);
    for (size_t i = 0; i < g->n; i++)
        switch (g->log[i].op) {
        case REHEARSE:
            PROMISE(i % 2 == 1 && i / 2 < g->script->rehearsals && is(g, i - 1, RESTORE));
            break;
        case BEGIN:
            PROMISE(group == SIZE_MAX ? g->log[i].group == 0 : g->log[i].group == group + 1);
            PROMISE(g->calls[REHEARSE] == g->script->rehearsals);
            group = g->log[i].group;
            last = false;
            break;
        case START:
            PROMISE(group != SIZE_MAX && !last);
            PROMISE(g->log[i].code || (is(g, i + 1, ISSUE) && is(g, i + 2, STOP)));
            break;
        case ISSUE:
            PROMISE(is(g, i - 1, START));
            break;
        case STOP:
            PROMISE(is(g, i - 2, START) && !g->log[i - 2].code);
            last = g->log[i].last;
            break;
        case DECODE:
            PROMISE(last && is(g, i - 1, STOP) && !g->log[i - 1].code && g->log[i].group == group);
            break;
        default:
            break;
        }
}

/* Once something has failed, nothing is begun any more; after a fault nothing is done that a broken context refuses,
 * and after a failed restore nothing that would build on it. */
static void check_end(const struct gpu *g)
{
    size_t i = 0;
    while (i < g->n && !has_failed(&g->log[i]))
        i++;
    bool over = i < g->n && (is_fault(&g->log[i]) || is(g, i, RESTORE));
    for (i++; i < g->n; i++) {
        PROMISE(is(g, i, STOP) || (!over && (is(g, i, RESTORE) || is(g, i, PLAIN))));
        over |= is_fault(&g->log[i]) || (is(g, i, RESTORE) && g->log[i].code);
    }
}

static const struct call *first_failure(const struct gpu *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (has_failed(&g->log[i]))
            return &g->log[i];
    return NULL;
}

static void check(const struct gpu *g, const struct kp_replay_outcome *out)
{
    const struct call *noted = first_failure(g);
    check_memory(g, out);
    check_restores(g);
    check_order(g);
    check_end(g);
    PROMISE(out->passes == g->calls[STOP]);
    /* what comes to nothing is noted before the window is run as a whole in the end */
    bool before = noted && out->failed == KP_STAGE_PASSES && (noted->op == RESTORE || noted->op == PLAIN);
    if (noted && !before) {
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
    {.groups = 0, .rehearsals = 1},
    {.groups = 1, .passes = {1}, .needed = {1}},
    {.groups = 1, .passes = {1}, .needed = {1}, .rehearsals = 1},
    {.groups = 1, .passes = {4}, .needed = {4}, .rehearsals = 1},
    {.groups = 1, .passes = {4}, .needed = {2}},
    {.groups = 2, .passes = {3, 1}, .needed = {3, 1}, .rehearsals = 1},
    {.groups = 3, .passes = {1, 2, 1}, .needed = {1, 2, 1}},
    {.groups = 1, .passes = {3}, .needed = {0}},
    {.groups = 1, .passes = {1}, .needed = {0}, .rehearsals = 1},
    {.groups = 2, .passes = {2, 2}, .needed = {2, 0}, .rehearsals = 1},
    {.groups = 1, .passes = {0}, .needed = {0}},
    {.groups = 1, .passes = {2}, .needed = {2}, .rehearsals = 2},
};

enum { SCRIPTS = sizeof(scripts) / sizeof(*scripts) };

static const struct script *const two_groups = &scripts[6], *const early = &scripts[5];

static void test_all_well(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    run(g, two_groups, none, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_NONE && out.passes == 4);
    PROMISE(g->calls[REHEARSE] == 1 && g->calls[ISSUE] == 4 && g->calls[RESTORE] == 5 && !g->calls[PLAIN]);
    PROMISE(g->calls[BEGIN] == 2 && g->calls[DECODE] == 2);
}

static void test_fewer_passes_than_announced(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    run(g, early, none, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_NONE && out.passes == 2 && g->calls[DECODE] == 1);
}

/* Nothing to collect: what the program ran stays as it is. */
static void test_nothing_to_do(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    run(g, &scripts[0], none, &out);
    check(g, &out);
    PROMISE(!g->n && out.failed == KP_STAGE_NONE);
    run(g, &scripts[1], none, &out);
    check(g, &out);
    PROMISE(g->n == 2 && out.failed == KP_STAGE_NONE && !out.passes);
}

static void test_never_last(void **state)
{
    static const struct {
        size_t script, passes;
        unsigned decodes;
    } rows[] = {{8, 3, 0}, {9, 1, 0}, {10, 4, 1}, {11, 0, 0}};
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        run(g, &scripts[rows[i].script], none, &out);
        check(g, &out);
        PROMISE(out.failed == KP_STAGE_PASSES && out.passes == rows[i].passes);
        PROMISE(g->calls[DECODE] == rows[i].decodes && !g->calls[PLAIN]);
    }
}

/* A launch that does not end by itself would hang in a pass: none is begun, and the rehearsal was an execution. */
static void test_rehearsal_too_long(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    const struct fault faults[MAX_FAULTS] = {{REHEARSE, 1, LATE}};
    (void)state;
    run(g, two_groups, faults, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_REHEARSE && out.code == KP_ISSUE_TOO_LONG);
    PROMISE(g->n == 2 && !out.dead && !out.damaged && !out.passes);
}

/* Half of the window has run: it is undone, and the window run as a whole. */
static void test_refused_in_the_middle(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    const struct fault once[MAX_FAULTS] = {{ISSUE, 2, REFUSED}},
                       twice[MAX_FAULTS] = {{ISSUE, 2, REFUSED}, {PLAIN, 1, REFUSED}};
    (void)state;
    run(g, two_groups, once, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_ISSUE && out.code == KP_ISSUE_REFUSED && !out.damaged && !out.dead);
    PROMISE(is(g, g->n - 3, STOP) && is(g, g->n - 2, RESTORE) && is(g, g->n - 1, PLAIN));
    run(g, two_groups, twice, &out);
    check(g, &out);
    PROMISE(out.damaged && !out.dead);
}

/* Half of the window has run in a pass that is done without: it is undone for the next one, which is run as if nothing
 * had been, or the window is run as a whole. */
static void test_given_up_in_the_middle(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    const struct fault second[MAX_FAULTS] = {{ISSUE, 2, GIVEN_UP}}, last[MAX_FAULTS] = {{ISSUE, 4, GIVEN_UP}},
                       refused[MAX_FAULTS] = {{ISSUE, 4, GIVEN_UP}, {PLAIN, 1, REFUSED}};
    (void)state;
    run(g, two_groups, second, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_NONE && out.passes == 4 && g->calls[DECODE] == 2 && !g->calls[PLAIN]);
    run(g, two_groups, last, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_NONE && out.passes == 4 && g->calls[DECODE] == 2);
    PROMISE(is(g, g->n - 3, DECODE) && is(g, g->n - 2, RESTORE) && is(g, g->n - 1, PLAIN));
    run(g, two_groups, refused, &out);
    check(g, &out);
    PROMISE(out.damaged && !out.dead);
}

/* What has not ended in time is left alone: any call might wait for it. */
static void test_unended_in_a_pass(void **state)
{
    (void)state;
    const struct script s = {.passes = {3}, .groups = 1, .needed = {3}, .rehearsals = 1};
    const struct fault faults[MAX_FAULTS] = {{ISSUE, 2, UNENDED}};
    struct kp_replay_outcome out;
    struct gpu g;
    run(&g, &s, faults, &out);
    assert_true(out.dead);
    assert_false(out.damaged);
    assert_int_equal(out.failed, KP_STAGE_ISSUE);
    assert_int_equal(out.code, KP_ISSUE_UNENDED);
    assert_int_equal(out.passes, 1);
    assert_int_equal(g.log[g.n - 1].op, ISSUE); /* neither stopped nor restored */
}

/* The memory has been put back for a pass that does not come. */
static void test_start_fails(void **state)
{
    struct gpu gpu, *g = &gpu;
    struct kp_replay_outcome out;
    const struct fault faults[MAX_FAULTS] = {{START, 3, FAILS}};
    (void)state;
    run(g, two_groups, faults, &out);
    check(g, &out);
    PROMISE(out.failed == KP_STAGE_START && out.passes == 2 && !out.damaged);
    PROMISE(is(g, g->n - 2, START) && is(g, g->n - 1, PLAIN)); /* no second restore */
}

/* The promise where the program has read results: memory is that of its own execution, whatever fails. */
static void check_own(const struct gpu *g, const struct kp_replay_outcome *out)
{
    bool fault = false;
    for (size_t i = 0; i < g->n; i++)
        fault |= is_fault(&g->log[i]) && g->log[i].code != KP_ISSUE_CUT;
    PROMISE(!g->calls[PLAIN] && !g->began_elsewhere);
    PROMISE(out->dead == fault);
    PROMISE(g->calls[PUT_BACK] == (g->calls[RESTORE] && !fault));
    PROMISE(!g->calls[PUT_BACK] || is(g, g->n - 1, PUT_BACK));
    PROMISE(out->damaged == (g->calls[PUT_BACK] && g->log[g->n - 1].code));
    if (!out->damaged && !out->dead)
        PROMISE(!memcmp(g->own, g->memory, sizeof(g->own)));
    PROMISE(!first_failure(g) || out->failed != KP_STAGE_NONE);
}

static void test_own_execution(void **state)
{
    struct gpu clean, gpu, *g = &gpu;
    struct kp_replay_outcome out;
    unsigned cuts = 0, whole = 0;
    (void)state;
    for (size_t i = 0; i < SCRIPTS; i++) {
        run_as(true, &clean, &scripts[i], none, &out);
        check_own(&clean, &out);
        for (enum op op = 0; op < OPS; op++)
            for (unsigned n = 1; n <= clean.calls[op]; n++)
                for (enum way way = FAILS; way <= (issues(op) ? CUT : FAILS); way++) {
                    const struct fault faults[MAX_FAULTS] = {{op, n, way}};
                    run_as(true, g, &scripts[i], faults, &out);
                    check_own(g, &out);
                    cuts += out.code == KP_ISSUE_CUT;
                    whole += !out.damaged && !out.dead;
                }
    }
    assert_true(cuts > 20 && whole > 100);
}

static enum way ways_of(enum op op)
{
    return op == ISSUE ? GIVEN_UP : op == REHEARSE ? LATE : issues(op) ? REFUSED : FAILS;
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
            for (unsigned n = 1; n <= clean.calls[op]; n++)
                for (enum way way = FAILS; way <= ways_of(op); way++, tried++) {
                    const struct fault faults[MAX_FAULTS] = {{op, n, way}};
                    run(g, &scripts[i], faults, &out);
                    PROMISE(way == GIVEN_UP || first_failure(g) != NULL); /* the fault was met */
                    check(g, &out);
                }
    }
    assert_true(tried > 100);
}

/* The second fault may only exist because of the first: the execution after a refused issue. So one occurrence more
 * than in the clean run is tried. */
static void test_every_pair_of_failures(void **state)
{
    struct gpu clean, gpu, *g = &gpu;
    struct kp_replay_outcome out;
    unsigned damaged = 0, dead = 0, whole = 0;
    (void)state;
    for (size_t i = 0; i < SCRIPTS; i++) {
        run(&clean, &scripts[i], none, &out);
        for (enum op a = 0; a < OPS; a++)
            for (unsigned n = 1; n <= clean.calls[a]; n++)
                for (enum way u = FAILS; u <= ways_of(a); u++)
                    for (enum op b = 0; b < OPS; b++)
                        for (unsigned m = 1; m <= clean.calls[b] + 1; m++)
                            for (enum way v = FAILS; v <= ways_of(b); v++) {
                                const struct fault faults[MAX_FAULTS] = {{a, n, u}, {b, m, v}};
                                run(g, &scripts[i], faults, &out);
                                check(g, &out);
                                damaged += out.damaged;
                                dead += out.dead;
                                whole += !out.damaged && !out.dead;
                            }
    }
    assert_true(damaged > 100 && dead > 100 && whole > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_well),
        cmocka_unit_test(test_fewer_passes_than_announced),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_never_last),
        cmocka_unit_test(test_rehearsal_too_long),
        cmocka_unit_test(test_refused_in_the_middle),
        cmocka_unit_test(test_given_up_in_the_middle),
        cmocka_unit_test(test_unended_in_a_pass),
        cmocka_unit_test(test_start_fails),
        cmocka_unit_test(test_own_execution),
        cmocka_unit_test(test_every_single_failure),
        cmocka_unit_test(test_every_pair_of_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
