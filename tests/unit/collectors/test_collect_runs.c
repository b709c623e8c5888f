/* How the counters of a plan are shared among runs of the program, with the metric tables of the real CUPTI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/plan/runs.h"
#include "collectors/providers/tables.h"
#include "cupti/internal.h"
#include "tests/support/collect_support.h"

static const struct chip {
    const char *name;
    int major, minor;
} chips[] = {{"GH100", 9, 0}, {"GA100", 8, 0}, {"AD102", 8, 9}, {"TU102", 7, 5}, {"GB100", 10, 0}, {"GB202", 12, 0}};

enum { CHIPS = sizeof(chips) / sizeof(*chips) };

static const struct kp_cupti *library; /* to plan with, instead of the real one */

static struct kp_plan *make(const struct chip *ch, const char *set, const char *metrics, unsigned how)
{
    const struct kp_section **sections;
    size_t n;
    struct kp_plan *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_sections_select(set, "", &sections, &n, &err), 0);
    if (kp_plan_make(library ? library : kp_test_real_cupti(), ch->name, NULL, ch->major, ch->minor, sections, n,
                     metrics, how | KP_PLAN_RULES, &p, &err))
        fail_msg("%s, %s: %s", ch->name, set, err);
    free(sections);
    return p;
}

static const struct kp_planned *find(const struct kp_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n_metrics; i++)
        if (!strcmp(p->metrics[i].name, name))
            return &p->metrics[i];
    return NULL;
}

static size_t passes_of(const struct chip *ch, const char *const *names, size_t n)
{
    struct kp_config c;
    assert_int_equal(kp_tables_schedule(kp_test_real_cupti(), ch->name, NULL, names, n, &c), 0);
    size_t passes = c.passes;
    kp_config_free(&c);
    return passes;
}

/* Each list takes one pass, and the last one as many as it has runs. */
static void check_lists(const struct chip *ch, const struct kp_plan *p)
{
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    size_t runs = 0;
    for (size_t list = 0; list < p->runs; list++) {
        size_t n = 0, several = 0;
        for (size_t i = 0; i < p->n_metrics; i++)
            if (p->metrics[i].group == (int)list) {
                names[n++] = p->metrics[i].name;
                several = p->metrics[i].passes;
            }
        if (n)
            assert_int_equal(passes_of(ch, names, n), several ? several : 1);
        runs += several ? several : n > 0;
    }
    assert_int_equal(runs, p->runs);
    free(names);
}

/* Metrics that kernel replay counts are counted here, too, or are the largest of such. */
static void check_complete(const struct chip *ch, const struct kp_plan *p, const char *set)
{
    struct kp_plan *kernel = make(ch, set, "", 0);
    for (size_t i = 0; i < kernel->n_metrics; i++) {
        const struct kp_planned *was = &kernel->metrics[i], *m = find(p, was->name);
        if (was->rolled) /* application replay has none */
            continue;
        if (!m || (was->group >= 0 && m->group < 0 && !m->parts) || (m->part && was->group >= 0))
            fail_msg("%s: %s is in group %d, in application replay in %d", ch->name, was->name, was->group,
                     m ? m->group : 0);
    }
    kp_plan_free(kernel);
    for (size_t i = 0; i < p->n_metrics; i++) {
        const char *list = p->metrics[i].parts, *item;
        size_t len;
        while (list && kp_word_next(&list, &item, &len)) {
            char *name = strndup(item, len);
            const struct kp_planned *part = find(p, name);
            if (!part || part == &p->metrics[i] || (part->group < 0 && !part->parts))
                fail_msg("%s: %s, of which %s is made, is in no list", ch->name, name, p->metrics[i].name);
            free(name);
        }
    }
}

static void check_chip(const struct chip *ch, const char *set)
{
    struct kp_plan *p = make(ch, set, "", KP_PLAN_RUNS);
    size_t several = 0;
    for (size_t i = 0; i < p->n_metrics; i++)
        several = p->metrics[i].passes ? p->metrics[i].passes : several;
    print_message("%s, %s: %zu runs, %zu of them for metrics of several passes\n", ch->name, set, p->runs, several);
    check_lists(ch, p);
    check_complete(ch, p, set);
    kp_plan_free(p);
}

static void the_basic_set(void **state)
{
    (void)state;
    kp_test_skip_sanitized();
    for (size_t i = 0; i < CHIPS; i++)
        check_chip(&chips[i], "basic");
}

static void the_full_set(void **state)
{
    (void)state;
    kp_test_skip_sanitized();
    check_chip(&chips[0], "full");
}

static unsigned lists; /* that were given to the library to schedule */

static CUptiResult CUPTIAPI count_list(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    lists++;
    return kp_test_real_cupti()->cuptiProfilerHostConfigAddMetrics(p);
}

static NVPA_Status everything_fits(NVPW_RawCounterConfig_AreRawCountersSchedulable_Params *p)
{
    p->schedulable = true;
    return NVPA_STATUS_SUCCESS;
}

/* The library schedules each list once, which takes milliseconds, and a few more. Where its quick answers are wrong, or
 * it has none, the lists are as good. */
static void quick_answers(void **state)
{
    static const char apart[] =
        "pcie__read_bytes.sum,pcie__write_bytes.sum,smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
    enum { MOST_A_LIST = 4 };
    static struct kp_cupti other;
    (void)state;
    kp_test_skip_sanitized();
    other = *kp_test_real_cupti();
    other.cuptiProfilerHostConfigAddMetrics = count_list;
    library = &other;
    struct kp_plan *quick = make(&chips[0], "basic", apart, KP_PLAN_RUNS);
    if (!strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0"))
        assert_in_range(lists, quick->runs, MOST_A_LIST * quick->runs);
    for (int wrong = 0; wrong < 2; wrong++) {
        other.NVPW_RawCounterConfig_AreRawCountersSchedulable = wrong ? everything_fits : NULL;
        struct kp_plan *p = make(&chips[0], "basic", apart, KP_PLAN_RUNS);
        assert_int_equal(p->runs, quick->runs);
        check_lists(&chips[0], p);
        kp_plan_free(p);
    }
    library = NULL;
    kp_plan_free(quick);
}

/* A later run reads what the first has shared, and leaves its own list. */
static void runs_agree(void **state)
{
    struct kp_plan *first = make(&chips[0], "basic", "", KP_PLAN_RUNS);
    char *text = kp_plan_runs_text(first);
    size_t counted = 0;
    (void)state;
    assert_non_null(text);
    for (size_t list = 0; list < first->runs; list++) {
        struct kp_plan *p = make(&chips[0], "basic", "", KP_PLAN_UNSHARED);
        char *copy = strdup(text);
        assert_int_equal(kp_plan_runs_read(p, copy), 0);
        assert_int_equal(p->runs, first->runs);
        assert_int_equal(kp_plan_runs_keep(p, kp_test_real_cupti(), chips[0].name, NULL, (int)list), 0);
        assert_int_equal(p->n_groups, 1);
        assert_int_equal(p->groups[0].passes, p->several ? p->several : 1);
        bool last = !p->several || p->pass + 1 == p->several;
        for (size_t i = 0; i < p->n_metrics; i++) {
            const struct kp_planned *m = &p->metrics[i], *was = find(first, m->name);
            assert_non_null(was);
            assert_false(m->derived);
            size_t end = (size_t)was->group + (was->passes ? was->passes : 1);
            bool own = was->group >= 0 && list + 1 == end;
            assert_int_equal(m->group >= 0, own);
            assert_int_equal(m->part, was->part);
            counted += own;
            assert_true(!own || last);
        }
        free(copy);
        kp_plan_free(p);
    }
    for (size_t i = 0; i < first->n_metrics; i++)
        counted -= first->metrics[i].group >= 0;
    assert_int_equal(counted, 0); /* each in one run */
    free(text);
    kp_plan_free(first);
}

/* The run that counts nothing keeps what cannot be collected, and no list. */
static void the_first_run(void **state)
{
    struct kp_plan *p = make(&chips[0], "basic", "", KP_PLAN_RUNS);
    (void)state;
    assert_int_equal(kp_plan_runs_keep(p, kp_test_real_cupti(), chips[0].name, NULL, KP_NO_LIST), 0);
    assert_int_equal(p->n_groups, 0);
    assert_true(p->runs > 1);
    for (size_t i = 0; i < p->n_metrics; i++)
        assert_true(p->metrics[i].group < 0);
    kp_plan_free(p);
}

static int none(const struct kp_runs_line *line, void *arg)
{
    (void)line, (void)arg;
    return 0;
}

static int seventh(const struct kp_runs_line *line, void *arg)
{
    (void)line, (void)arg;
    return 7;
}

static void other_texts(void **state)
{
    static const char *const bad[] = {"counted", "counted\ta\tb\t1", "count\ta\tb\t1\t", "\t\t\t\t"};
    char good[] = "counted\tname\tunit\t3\t\nlargest\tname\t\t0\ta,b\n";
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char *text = strdup(bad[i]);
        assert_int_equal(kp_plan_runs_each(text, none, NULL), -EINVAL);
        free(text);
    }
    char *text = strdup(good);
    assert_int_equal(kp_plan_runs_each(text, seventh, NULL), 7);
    free(text);
    assert_int_equal(kp_plan_runs_each(good, none, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_basic_set), cmocka_unit_test(the_full_set),  cmocka_unit_test(quick_answers),
        cmocka_unit_test(runs_agree),    cmocka_unit_test(the_first_run), cmocka_unit_test(other_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
