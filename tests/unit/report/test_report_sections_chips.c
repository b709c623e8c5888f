/* The section table and the derived metrics against the real CUPTI's tables of every chip: what a chip shows of each
 * section, and what of it the chip does not have. Needs no GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/host.h"
#include "report/define/derive.h"
#include "report/define/sections.h"
#include "tests/support/chips_support.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

/* KP_VENDOR: LeakSanitizer's tracer faults in this process once the real CUPTI has been asked for all chips. Other
 * tests of the same code look for leaks. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "detect_leaks=0";
}

enum { NAMES = 4096, MOST_CHIPS = 128 };

static const char golden[] = "tests/golden/sections_chips.txt";

static struct kp_host *open_host(const struct kp_test_chip *chip)
{
    struct kp_host *h = NULL;
    if (kp_host_open(kp_test_real_cupti(), chip->name, NULL, &h))
        fail_msg("%s cannot be opened", chip->name);
    return h;
}

/* ---- names, each once ---- */

struct names {
    const char *at[NAMES];
    size_t n;
};

static bool has_name(const struct names *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->at[i], name))
            return true;
    return false;
}

static void add_name(struct names *list, const char *name)
{
    if (has_name(list, name))
        return;
    assert_true(list->n < NAMES);
    list->at[list->n++] = name;
}

/* ---- what a chip has ---- */

static int is_missing(const char *counter, void *host)
{
    struct kp_metric_props props;
    return kp_host_metric(host, counter, &props) ? 1 : 0;
}

static bool chip_has(struct kp_host *h, const struct kp_row *row)
{
    const size_t breakdown = strlen("breakdown:");
    if (row->source == KP_SRC_COUNTER)
        return !is_missing(strncmp(row->metric, "breakdown:", breakdown) ? row->metric : row->metric + breakdown, h);
    if (row->source != KP_SRC_DERIVED)
        return true;
    const struct kp_derived *d = kp_derived_find(row->metric);
    if (!d)
        fail_msg("%s has no definition", row->metric);
    int rc = kp_derived_inputs(d, is_missing, h);
    assert_true(rc == 0 || rc == 1);
    return !rc;
}

static bool applies(const struct kp_test_chip *chip, const struct kp_row *row)
{
    return row->kind != KP_ROW_BODY && kp_cc_matches(row->cc, chip->major, chip->minor);
}

static bool same_place(const struct kp_row *a, const struct kp_row *b)
{
    return a->kind == b->kind && !strcmp(a->group, b->group) && !strcmp(a->label, b->label);
}

/* What a section is on a chip. */
struct shown {
    struct names all;     /* metrics that it shows */
    struct names missing; /* rows that are always printed, and cannot be */
    struct names without; /* other rows that it has to do without */
};

/* The places of rows[first..to), which are the table or one body: each is filled by its first row whose metric the chip
 * has. */
static void look_at_places(struct kp_host *h, const struct kp_test_chip *chip, const struct kp_row *rows, size_t first,
                           size_t to, struct shown *s)
{
    for (size_t i = first; i < to; i++) {
        const struct kp_row *found = NULL;
        bool earlier = false;
        for (size_t j = first; j < i; j++)
            earlier |= same_place(&rows[j], &rows[i]) && applies(chip, &rows[j]);
        if (earlier || !applies(chip, &rows[i]))
            continue;
        for (size_t j = i; j < to && !found; j++)
            if (same_place(&rows[j], &rows[i]) && applies(chip, &rows[j]) && chip_has(h, &rows[j]))
                found = &rows[j];
        if (found)
            add_name(&s->all, found->metric);
        else
            add_name(kp_row_required(&rows[i]) ? &s->missing : &s->without, rows[i].metric);
    }
}

static void look_at_section(struct kp_host *h, const struct kp_test_chip *chip, const struct kp_section *section,
                            struct shown *s)
{
    memset(s, 0, sizeof(*s));
    for (size_t first = 0, to; first < section->n_rows; first = to) {
        for (to = first + 1; to < section->n_rows && section->rows[to].kind != KP_ROW_BODY;)
            to++;
        look_at_places(h, chip, section->rows, first, to, s);
    }
}

/* ---- the golden ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "; WORD N: a.sum, b.sum .avg": in the order of the alphabet, and without the counter where it is that of the name
 * before. */
static void print_names(FILE *f, const char *word, struct names *list)
{
    qsort(list->at, list->n, sizeof(*list->at), by_text);
    if (list->n)
        fprintf(f, "; %s %zu:", word, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const char *name = list->at[i], *before = i ? list->at[i - 1] : "";
        size_t base = strcspn(name, ".");
        if (strcspn(before, ".") == base && !strncmp(before, name, base))
            fprintf(f, " %s", name + base);
        else
            fprintf(f, "%s %s", i ? "," : "", name);
    }
}

static void print_section(FILE *f, const struct kp_test_chip *chip, const struct kp_section *section, struct kp_host *h)
{
    struct shown *s = malloc(sizeof(*s));
    assert_non_null(s);
    if (!kp_cc_matches(section->cc, chip->major, chip->minor)) {
        fprintf(f, "  %s: not of this chip\n", section->id);
    } else {
        look_at_section(h, chip, section, s);
        fprintf(f, "  %s: %zu metrics", section->id, s->all.n);
        print_names(f, "n/a", &s->missing);
        print_names(f, "without", &s->without);
        fputc('\n', f);
    }
    free(s);
}

/* A chip's lines; malloc'ed. */
static char *describe(const struct kp_test_chip *chip)
{
    char *text = NULL;
    size_t size, n;
    FILE *f = open_memstream(&text, &size);
    struct kp_host *h = open_host(chip);
    const struct kp_section *sections = kp_sections(&n);
    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        print_section(f, chip, &sections[i], h);
    assert_int_equal(fclose(f), 0);
    kp_host_close(h);
    return text;
}

static void test_sections_on_every_chip(void **state)
{
    (void)state;
    kp_test_every_chip(describe, golden);
}

/* ---- derived metrics ---- */

/* Fails for a counter that none of the hosts has. */
static int find_on_a_chip(const char *counter, void *hosts)
{
    struct kp_host **h = hosts;
    for (size_t i = 0; i < MOST_CHIPS; i++)
        if (h[i] && !is_missing(counter, h[i]))
            return 0;
    fail_msg("no chip has %s", counter);
    return 1;
}

/* In a section, or on the raw page wherever its counter was collected. */
static bool is_shown(const char *metric)
{
    static const char *const of_raw_page[] = {
#define KP_OF_COUNTER(name, unit, counter) name,
#include "report/define/source_metrics.def"
    };
    size_t n;
    for (size_t i = 0; i < sizeof(of_raw_page) / sizeof(*of_raw_page); i++)
        if (!strcmp(of_raw_page[i], metric))
            return true;
    const struct kp_section *sections = kp_sections(&n);
    for (size_t s = 0; s < n; s++)
        for (size_t r = 0; r < sections[s].n_rows; r++)
            if (sections[s].rows[r].source == KP_SRC_DERIVED && !strcmp(sections[s].rows[r].metric, metric))
                return true;
    return false;
}

/* Each is shown, or part of another one; each can be read, and its counters are those of some chip. */
static void test_derived_metrics(void **state)
{
    kp_test_real_cupti();
    size_t n = 0;
    const struct kp_derived **all = kp_derived_all(&n);
    size_t chips_n;
    const struct kp_test_chip *chips = kp_test_chips(&chips_n);
    struct kp_host *hosts[MOST_CHIPS] = {NULL};
    assert_true(chips_n <= MOST_CHIPS);
    (void)state;
    assert_true(all && n > 0);
    for (size_t i = 0; i < chips_n; i++)
        hosts[i] = kp_test_is_profiled(&chips[i]) ? open_host(&chips[i]) : NULL;
    for (size_t i = 0; i < n; i++) {
        bool used = is_shown(all[i]->name);
        for (size_t k = 0; k < n && !used; k++)
            used = k != i && strstr(all[k]->expression, all[i]->name);
        if (!used)
            fail_msg("nothing shows %s", all[i]->name);
        assert_int_equal(kp_derived_inputs(all[i], find_on_a_chip, hosts), 0);
    }
    for (size_t i = 0; i < chips_n; i++)
        kp_host_close(hosts[i]);
    free(all);
}

/* A row of a derived metric is in the unit of its definition. */
static void test_units_of_derived_rows(void **state)
{
    size_t n;
    const struct kp_section *sections = kp_sections(&n);
    (void)state;
    for (size_t s = 0; s < n; s++)
        for (size_t r = 0; r < sections[s].n_rows; r++) {
            const struct kp_row *row = &sections[s].rows[r];
            const struct kp_derived *d = row->source == KP_SRC_DERIVED ? kp_derived_find(row->metric) : NULL;
            if (row->source == KP_SRC_DERIVED && (!d || strcmp(d->unit, row->unit)))
                fail_msg("%s: %s: %s, %s", sections[s].id, row->metric, row->unit, d ? d->unit : "no definition");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sections_on_every_chip),
        cmocka_unit_test(test_derived_metrics),
        cmocka_unit_test(test_units_of_derived_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
