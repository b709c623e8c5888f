/*
 * The budget: its rules, one by one, and recorded programs played against it (tests/data/budget). The table of what
 * each program then costs is tests/golden/budget.txt: a change of the rules shows there what it does to all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/mode/budget.h"
#include "tests/support/report_support.h"

static const uint64_t SECOND = 1000000000;

/* A budget of 60 s of which `spent_s` are spent, where a launch costs `launch_ms`. */
static struct kp_budget budget_at(double spent_s, double launch_ms)
{
    return (struct kp_budget){
        .total_ns = 60 * SECOND, .spent_ns = (uint64_t)(spent_s * 1e9), .launch_ns = launch_ms * 1e6, .windows = 9};
}

static void test_rules(void **state)
{
    static const struct {
        double spent_s, launch_ms;
        struct kp_budget_kind kind;
        enum kp_serve how;
    } rows[] = {
        /* a kind without a result */
        {0, 0, {0, 0, 0}, KP_SERVE_REPLAY},
        {59, 3000, {0, 0, 0}, KP_SERVE_REPLAY},
        {1, 10, {1, 0, 1}, KP_SERVE_REPLAY},  /* a result was lost: once more, */
        {1, 10, {2, 0, 2}, KP_SERVE_TURNS},   /* but not for ever */
        {1, 500, {3, 0, 2}, KP_SERVE_REPLAY}, /* one is under way */
        {60, 1, {0, 0, 0}, KP_SERVE_PASS},
        /* one with results */
        {29, 25, {3, 3, 0}, KP_SERVE_REPLAY},
        {31, 25, {3, 3, 0}, KP_SERVE_PASS},
        {13, 25, {79, 79, 0}, KP_SERVE_REPLAY},
        {14, 25, {79, 79, 0}, KP_SERVE_PASS},
        {9, 25, {80, 80, 0}, KP_SERVE_REPLAY},
        {11, 25, {80, 80, 0}, KP_SERVE_PASS},
        {1.9, 30, {1, 1, 0}, KP_SERVE_REPLAY},
        {2.1, 30, {1, 1, 0}, KP_SERVE_PASS},
        {1.9, 30, {9, 0, 1}, KP_SERVE_REPLAY}, /* eight under way, */
        {2.1, 30, {9, 0, 1}, KP_SERVE_PASS},   /* which will do */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_budget b = budget_at(rows[i].spent_s, rows[i].launch_ms);
        if (kp_budget_serve(&b, &rows[i].kind) != rows[i].how)
            fail_msg("row %zu: %d", i, kp_budget_serve(&b, &rows[i].kind));
    }
}

static void test_dear(void **state)
{
    static const struct {
        double spent_s, launch_ms;
        bool dear;
    } rows[] = {{14.9, 999, false}, {0, 1001, true},  {15.1, 24, false},
                {15.1, 26, true},   {59.9, 26, true}, {60, 26, false}}; /* at the end nothing recurs either */
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_budget b = budget_at(rows[i].spent_s, rows[i].launch_ms);
        if (kp_budget_is_dear(&b) != rows[i].dear)
            fail_msg("row %zu", i);
    }
}

static void test_without_limit(void **state)
{
    struct kp_budget b = budget_at(1e6, 1e6);
    const struct kp_budget_kind kind = {1000000, 1000000, 0};
    (void)state;
    b.total_ns = 0;
    assert_false(kp_budget_is_spent(&b));
    assert_false(kp_budget_is_dear(&b));
    assert_int_equal(kp_budget_serve(&b, &kind), KP_SERVE_REPLAY);
    assert_true(kp_budget_room(&b) == UINT64_MAX);
}

static void test_prices(void **state)
{
    struct kp_budget b = {.total_ns = 60 * SECOND};
    (void)state;
    assert_int_equal(kp_budget_room(&b), 64);
    kp_budget_window(&b, 5e8, 0); /* a window without results says nothing */
    assert_int_equal(b.windows, 0);
    kp_budget_window(&b, 8e8, 8);
    assert_int_equal(b.launch_ns, 1e8);
    kp_budget_window(&b, 4e8, 8);
    assert_int_equal(b.launch_ns, 7.5e7);
    for (int i = 0; i < 40; i++)
        kp_budget_window(&b, 2e7, 2); /* what was long ago is forgotten */
    assert_true(b.launch_ns > 9.9e6 && b.launch_ns < 1.01e7);
    assert_in_range(kp_budget_room(&b), 740, 757); /* an eighth of 60 s, at 10 ms */
    kp_budget_spend(&b, 59 * SECOND);
    assert_in_range(kp_budget_room(&b), 12, 13);
    assert_false(kp_budget_is_spent(&b));
    kp_budget_spend(&b, SECOND);
    assert_true(kp_budget_is_spent(&b));
    assert_int_equal(kp_budget_room(&b), 1);
}

/* A window ends where kinds get fewer results, and not long after it; but it is not so short that it is dear. */
static void test_room(void **state)
{
    static const struct {
        double spent_s, launch_ms;
        uint64_t room;
    } rows[] = {
        {9, 10, 100},    /* until 10 s */
        {9.9, 10, 32},   /* the least */
        {10.5, 10, 330}, /* until 13.8 s */
        {26, 10, 400},   /* until 30 s */
        {22, 10, 475},   /* an eighth of the rest */
        {31, 10, 362},   /* likewise */
        {0.5, 30, 50},   /* until 2 s */
        {2.5, 30, 239},  /* an eighth */
        {59.9, 1000, 1}, /* one in any case */
        {59.99, 1, 1},   /* the least is no more than that */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_budget b = budget_at(rows[i].spent_s, rows[i].launch_ms);
        uint64_t room = kp_budget_room(&b);
        if (room > rows[i].room || room + 1 < rows[i].room)
            fail_msg("row %zu: %llu", i, (unsigned long long)room);
    }
}

/* ---- programs ---- */

enum { MOST_KINDS = 4096, MOST_RUNS = 65536 };

/* Launches of one kind in a row. */
struct run {
    unsigned kind, count;
    double gap_us; /* from one to the next, natively */
};

/* A recorded program, and the machine's prices. */
struct program {
    char name[64];
    double window_ms, launch_ms, turn_ms; /* a window, each launch that it repeats, and a window of a rotation */
    unsigned closes; /* after so many launches a call of the program closes an open window; 0 = there are none */
    unsigned n_runs;
    struct run runs[MOST_RUNS];
};

/* What became of it. */
struct outcome {
    uint64_t launches, measured;
    unsigned kinds, with_results, in_part; /* in_part: these, in a rotation that had too few of their launches */
    double native_s, added_s,
        last_first_s; /* what was added until each kind had its first result, or none was to come */
};

/* Lines are KEY NUMBER, or KIND COUNT GAP_US; # begins a comment. */
static void read_program(const char *path, struct program *p)
{
    const struct {
        const char *key;
        double *value;
    } keys[] = {{"window_ms", &p->window_ms}, {"launch_ms", &p->launch_ms}, {"turn_ms", &p->turn_ms}};
    char line[256], key[32];
    double number;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const char *slash = strrchr(path, '/');
    snprintf(p->name, sizeof(p->name), "%.*s", (int)strcspn(slash + 1, "."), slash + 1);
    p->n_runs = p->closes = 0;
    while (fgets(line, sizeof(line), f)) {
        struct run r;
        bool known = *line == '#' || *line == '\n';
        if (sscanf(line, "%u %u %lf", &r.kind, &r.count, &r.gap_us) == 3) {
            assert_true(p->n_runs < MOST_RUNS && r.kind < MOST_KINDS);
            p->runs[p->n_runs++] = r;
            continue;
        }
        if (!known && sscanf(line, "%31s %lf", key, &number) == 2) {
            known = !strcmp(key, "closes");
            p->closes = known ? (unsigned)number : p->closes;
            for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
                if (!strcmp(key, keys[i].key)) {
                    *keys[i].value = number;
                    known = true;
                }
        }
        if (!known)
            fail_msg("%s: %s", path, line);
    }
    fclose(f);
    assert_true(p->n_runs > 0);
}

/* A program that runs under a budget. */
struct play {
    const struct program *p;
    struct kp_budget budget;
    struct kp_budget_kind kinds[MOST_KINDS];
    unsigned turns[MOST_KINDS];             /* launches counted in turns */
    unsigned open[MOST_KINDS];              /* launches in the open window, of each kind */
    unsigned in_window, recorded, unwanted; /* with a result; all; and without one in a row */
    bool recurs;
    double turn_ends_s; /* the program's time at which the rotation's window ends */
    struct outcome out;
};

/* A kind is counted so often in a rotation, and a window of it lasts so long. */
enum { TURNS = 27 };
static const double turn_s = 0.045;

static double added_s(const struct play *y)
{
    return (double)y->budget.spent_ns / 1e9;
}

static void close_window(struct play *y)
{
    double ms = y->p->window_ms + y->p->launch_ms * y->recorded;
    if (!y->in_window)
        return;
    kp_budget_spend(&y->budget, (uint64_t)(1e6 * ms));
    kp_budget_window(&y->budget, 1e6 * ms, y->in_window);
    for (unsigned k = 0; k < MOST_KINDS; k++) {
        if (y->open[k] && !y->kinds[k].measured)
            y->out.last_first_s = added_s(y);
        y->kinds[k].measured += y->open[k];
        y->open[k] = 0;
    }
    y->in_window = y->recorded = y->unwanted = 0;
}

static void take_turn(struct play *y, unsigned kind)
{
    if (y->kinds[kind].measured || y->turns[kind] >= TURNS)
        return;
    if (y->out.native_s >= y->turn_ends_s) {
        y->turn_ends_s = y->out.native_s + turn_s;
        kp_budget_spend(&y->budget, (uint64_t)(1e6 * y->p->turn_ms));
    }
    kp_budget_spend(&y->budget, 1000000);
    if (++y->turns[kind] == TURNS)
        y->out.last_first_s = added_s(y);
}

static void replay(struct play *y, unsigned kind)
{
    bool wanted = kp_budget_serve(&y->budget, &y->kinds[kind]) == KP_SERVE_REPLAY;
    if (wanted) {
        y->kinds[kind].taken++;
        y->open[kind]++;
        y->in_window++;
        y->out.measured++;
    }
    y->unwanted = wanted ? 0 : y->unwanted + 1;
    y->recorded += y->in_window > 0;
    if (y->in_window && ((y->p->closes && y->recorded >= y->p->closes) || y->unwanted >= 16 ||
                         y->in_window >= kp_budget_room(&y->budget)))
        close_window(y);
}

static void launch(struct play *y, unsigned kind)
{
    y->out.launches++;
    y->recurs |= !y->in_window && kp_budget_is_dear(&y->budget);
    if (!y->recurs)
        replay(y, kind);
    else if (!kp_budget_is_spent(&y->budget))
        take_turn(y, kind);
}

static struct outcome play(const struct program *p)
{
    static struct play y;
    y = (struct play){.p = p, .budget = {.total_ns = 60 * SECOND}};
    bool seen[MOST_KINDS] = {false};
    for (unsigned i = 0; i < p->n_runs; i++) {
        seen[p->runs[i].kind] = true;
        for (unsigned n = 0; n < p->runs[i].count; n++) {
            launch(&y, p->runs[i].kind);
            y.out.native_s += p->runs[i].gap_us / 1e6;
        }
    }
    close_window(&y);
    for (unsigned k = 0; k < MOST_KINDS; k++) {
        y.out.kinds += seen[k];
        y.out.with_results += y.kinds[k].measured || y.turns[k];
        y.out.in_part += !y.kinds[k].measured && y.turns[k] && y.turns[k] < TURNS;
    }
    y.out.added_s = added_s(&y);
    return y.out;
}

/* Each program ends within the budget and one window, with a result for each kind; the table is the golden one. */
static void test_programs(void **state)
{
    static struct program p;
    glob_t found;
    char *table = NULL;
    size_t size;
    FILE *to = open_memstream(&table, &size);
    (void)state;
    assert_int_equal(glob("tests/data/budget/*.trace", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 10);
    fprintf(to, "%-12s %9s %9s %9s %6s %6s %8s %9s %9s\n", "program", "launches", "replayed", "native, s", "kinds",
            "known", "in part", "added, s", "known at");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        read_program(found.gl_pathv[i], &p);
        struct outcome o = play(&p);
        fprintf(to, "%-12s %9llu %9llu %9.1f %6u %6u %8u %9.1f %9.1f\n", p.name, (unsigned long long)o.launches,
                (unsigned long long)o.measured, o.native_s, o.kinds, o.with_results, o.in_part, o.added_s,
                o.last_first_s);
        if (o.added_s > 60 + p.window_ms / 1e3 + p.launch_ms / 1e3)
            fail_msg("%s: %.1f s", p.name, o.added_s);
    }
    fclose(to);
    globfree(&found);
    kp_test_golden(table, "tests/golden/budget.txt");
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules),         cmocka_unit_test(test_dear),
                                       cmocka_unit_test(test_without_limit), cmocka_unit_test(test_prices),
                                       cmocka_unit_test(test_room),          cmocka_unit_test(test_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
