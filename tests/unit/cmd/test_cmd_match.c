/* Which launches of two runs are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/match.h"

enum { MOST = 32 };

/* A run, written as one letter a launch (its kernel) with what differs behind it: "a", "a2" (grid 2), "a:3" (stream 3),
 * "a@1" (device 1), "a#4" (block 4), "a~5" (context 5); blanks between them. */
struct run {
    struct kp_launch_info launches[MOST];
    const struct kp_launch_info *list[MOST];
    char names[MOST][2];
    size_t n;
};

static void read_run(const char *text, struct run *r)
{
    memset(r, 0, sizeof *r);
    for (; *text; text += strspn(text, " ")) {
        struct kp_launch_info *l = &r->launches[r->n];
        r->names[r->n][0] = *text++;
        *l = (struct kp_launch_info){
            .mangled = r->names[r->n], .grid = {1, 1, 1}, .block = {1, 1, 1}, .context_id = 1, .stream_id = 7};
        while (*text && *text != ' ') {
            char what = strchr(":@#~", *text) ? *text++ : '\0';
            unsigned value = (unsigned)strtoul(text, (char **)&text, 10);
            *(what == ':'   ? (uint32_t *)&l->stream_id
              : what == '@' ? (uint32_t *)&l->device
              : what == '#' ? &l->block[1]
              : what == '~' ? (uint32_t *)&l->context_id
                            : &l->grid[0]) = value;
        }
        r->list[r->n] = l;
        r->n++;
    }
}

/* The partners as text: an index for each launch, or "-". */
static const char *match(const char *first, const char *other, enum kp_app_match by, enum kp_app_mode mode,
                         struct kp_match *m)
{
    static char text[4 * MOST];
    struct run a, b;
    size_t partner[MOST];
    char *to = text;
    read_run(first, &a);
    read_run(other, &b);
    memset(partner, 0x5a, sizeof partner);
    assert_int_equal(kp_match_launches(a.list, a.n, b.list, b.n, by, mode, partner, m), 0);
    *to = '\0';
    for (size_t i = 0; i < a.n; i++)
        to += partner[i] == KP_NO_PARTNER ? sprintf(to, "%s-", i ? " " : "")
                                          : sprintf(to, "%s%zu", i ? " " : "", partner[i]);
    return text;
}

static const struct {
    const char *first, *other;
    enum kp_app_match by;
    enum kp_app_mode mode;
    const char *partners;
    size_t alone, more;
} cases[] = {
    /* the same launches in the same order */
    {"a b a", "a b a", KP_MATCH_GRID, KP_APP_STRICT, "0 1 2", 0, 0},
    {"a b a", "a b a", KP_MATCH_GRID, KP_APP_BALANCED, "0 1 2", 0, 0},
    {"a b a", "a b a", KP_MATCH_GRID, KP_APP_RELAXED, "0 1 2", 0, 0},
    /* another order: the n-th of a kernel is the n-th of it */
    {"a b a", "b a a", KP_MATCH_GRID, KP_APP_STRICT, "- - -", 3, 3},
    {"a b a", "b a a", KP_MATCH_GRID, KP_APP_BALANCED, "1 0 2", 0, 0},
    {"a b a", "b a a", KP_MATCH_GRID, KP_APP_RELAXED, "1 0 2", 0, 0},
    /* one launch less, one more: balanced leaves out that kernel, relaxed the last of it */
    {"a b a", "a b", KP_MATCH_GRID, KP_APP_STRICT, "- - -", 3, 2},
    {"a b a", "a b", KP_MATCH_GRID, KP_APP_BALANCED, "- 1 -", 2, 1},
    {"a b a", "a b", KP_MATCH_GRID, KP_APP_RELAXED, "0 1 -", 1, 0},
    {"a b", "a b a", KP_MATCH_GRID, KP_APP_STRICT, "- -", 2, 3},
    {"a b", "a b a", KP_MATCH_GRID, KP_APP_BALANCED, "- 1", 1, 2},
    {"a b", "a b a", KP_MATCH_GRID, KP_APP_RELAXED, "0 1", 0, 1},
    /* another kernel */
    {"a b", "a c", KP_MATCH_NAME, KP_APP_STRICT, "- -", 2, 2},
    {"a b", "a c", KP_MATCH_NAME, KP_APP_BALANCED, "0 -", 1, 1},
    {"a b", "a c", KP_MATCH_NAME, KP_APP_RELAXED, "0 -", 1, 1},
    /* grids and blocks in another order */
    {"a1 a2", "a2 a1", KP_MATCH_NAME, KP_APP_STRICT, "0 1", 0, 0},
    {"a1 a2", "a2 a1", KP_MATCH_GRID, KP_APP_STRICT, "- -", 2, 2},
    {"a1 a2", "a2 a1", KP_MATCH_NAME, KP_APP_BALANCED, "0 1", 0, 0},
    {"a1 a2", "a2 a1", KP_MATCH_GRID, KP_APP_BALANCED, "1 0", 0, 0},
    {"a#1 a#2", "a#2 a#1", KP_MATCH_NAME, KP_APP_BALANCED, "0 1", 0, 0},
    {"a#1 a#2", "a#2 a#1", KP_MATCH_GRID, KP_APP_BALANCED, "1 0", 0, 0},
    {"a1 a1 a2", "a1 a2 a2", KP_MATCH_NAME, KP_APP_BALANCED, "0 1 2", 0, 0},
    {"a1 a1 a2", "a1 a2 a2", KP_MATCH_GRID, KP_APP_BALANCED, "- - -", 3, 3},
    {"a1 a1 a2", "a1 a2 a2", KP_MATCH_GRID, KP_APP_RELAXED, "0 - 1", 1, 1},
    /* streams and contexts count with `all` alone */
    {"a:1 a:2", "a:2 a:1", KP_MATCH_GRID, KP_APP_BALANCED, "0 1", 0, 0},
    {"a:1 a:2", "a:2 a:1", KP_MATCH_ALL, KP_APP_BALANCED, "1 0", 0, 0},
    {"a~1 a~2", "a~2 a~1", KP_MATCH_GRID, KP_APP_BALANCED, "0 1", 0, 0},
    {"a~1 a~2", "a~2 a~1", KP_MATCH_ALL, KP_APP_BALANCED, "1 0", 0, 0},
    {"a:1", "a:2", KP_MATCH_ALL, KP_APP_RELAXED, "-", 1, 1},
    /* devices always */
    {"a@0 a@1", "a@1 a@0", KP_MATCH_NAME, KP_APP_RELAXED, "1 0", 0, 0},
    {"a@0", "a@1", KP_MATCH_NAME, KP_APP_RELAXED, "-", 1, 1},
    /* nothing */
    {"", "", KP_MATCH_GRID, KP_APP_STRICT, "", 0, 0},
    {"a", "", KP_MATCH_GRID, KP_APP_RELAXED, "-", 1, 0},
    {"", "a", KP_MATCH_GRID, KP_APP_BALANCED, "", 0, 1},
};

static void partners_of_launches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_match m;
        const char *partners = match(cases[i].first, cases[i].other, cases[i].by, cases[i].mode, &m);
        if (strcmp(partners, cases[i].partners) != 0 || m.alone != cases[i].alone || m.more != cases[i].more)
            fail_msg("case %zu ('%s', '%s'): partners '%s', %zu alone, %zu more, instead of '%s', %zu, %zu", i,
                     cases[i].first, cases[i].other, partners, m.alone, m.more, cases[i].partners, cases[i].alone,
                     cases[i].more);
    }
}

/* Strict matching tells where the runs part; the others do not. */
static void first_difference(void **state)
{
    struct kp_match m;
    (void)state;
    match("a b c", "a c c", KP_MATCH_NAME, KP_APP_STRICT, &m);
    assert_true(m.first == 1);
    match("a b", "a b c", KP_MATCH_NAME, KP_APP_STRICT, &m);
    assert_true(m.first == 2);
    match("a b", "a b", KP_MATCH_NAME, KP_APP_STRICT, &m);
    assert_true(m.first == KP_NO_PARTNER);
    match("a b", "b", KP_MATCH_NAME, KP_APP_BALANCED, &m);
    assert_true(m.first == KP_NO_PARTNER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partners_of_launches),
        cmocka_unit_test(first_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
