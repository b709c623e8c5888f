/* A writer of the tests gets the blocks of all pages: a format is one table of functions, and no page knows it. */
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
#include "report/pages/page.h"
#include "report/write/writer.h"
#include "tests/support/code_support.h"
#include "tests/support/report_support.h"

enum { LAUNCHES = 2, STACK = 2, CODE = 11 };

static struct kp_recording rec;

static void add_series(struct kp_result *r)
{
    struct kp_series s = {kp_strdup("sampled.avg"), kp_strdup("%"), calloc(2, sizeof(double)), 2, 0, 1000};
    assert_true(s.name && s.unit && s.values);
    assert_int_equal(kp_result_add_series(r, &s), 0);
}

static int make_session(void **state)
{
    (void)state;
    rec = kp_test_recording();
    while (rec.n > LAUNCHES)
        kp_result_free(&rec.results[--rec.n]);
    rec.results[0].launch.stack = STACK;
    kp_test_add_counts(&rec.results[0], CODE);
    add_series(&rec.results[0]);
    return 0;
}

static int drop_session(void **state)
{
    (void)state;
    kp_test_recording_free(&rec);
    return 0;
}

static int each(void *from, int (*fn)(struct kp_result *, void *), void *arg, char **err)
{
    struct kp_recording *r = from;
    int rc = 0;
    (void)err;
    for (size_t i = 0; !rc && i < r->n; i++)
        rc = fn(&r->results[i], arg);
    return rc;
}

static int find_code(void *arg, uint64_t id, struct kp_code *out)
{
    (void)arg;
    *out = kp_test_code(id);
    return 0;
}

static int find_stack(void *arg, uint64_t id, struct kp_stack *out)
{
    (void)arg;
    *out = kp_test_stack(id);
    return 0;
}

/* --- the writer: a line for each block --- */

struct toy {
    struct kp_writer base;
    FILE *to;
    size_t columns;      /* of the table that is being written */
    const char *ends_at; /* the block that finds no room; NULL = none */
};

__attribute__((format(printf, 3, 4))) static void record(struct kp_writer *w, const char *block, const char *format,
                                                         ...)
{
    struct toy *t = (struct toy *)w;
    va_list args;
    assert_int_equal(w->out.rc, 0); /* nothing is begun after an error */
    if (t->ends_at && !strcmp(t->ends_at, block))
        w->out.rc = -ENOSPC;
    fprintf(t->to, "%s", block);
    va_start(args, format);
    vfprintf(t->to, format, args);
    va_end(args);
    fputc('\n', t->to);
}

static void toy_begin(struct kp_writer *w, const struct kp_layout *layout)
{
    record(w, "begin", " %d, %zu fields from '%s'", layout->start, layout->n, layout->n ? layout->fields[0] : "");
}

static void toy_field(struct kp_writer *w, size_t field, const char *text)
{
    record(w, "field", " %zu %s", field, text ? text : "-");
}

static void toy_process(struct kp_writer *w)
{
    record(w, "process", " %s", w->session->exe);
}

static void toy_heading(struct kp_writer *w, enum kp_level level, const char *text)
{
    record(w, "heading", " %d %s", level, text);
}

static void toy_facts(struct kp_writer *w, const struct kp_facts *f)
{
    record(w, "facts", " %s: %zu, %s = %s", f->title, f->n, f->at->attribute, f->at->value);
}

static void toy_table(struct kp_writer *w, const struct kp_table *table)
{
    ((struct toy *)w)->columns = table->n;
    record(w, "table", " %d: %zu, %s", table->kind, table->n, table->columns->heading);
}

static void toy_row(struct kp_writer *w, const char *const *cells)
{
    record(w, "row", " %s ... %s", cells[0], cells[((struct toy *)w)->columns - 1]);
}

static void toy_table_end(struct kp_writer *w)
{
    record(w, "table_end", "%s", "");
}

static void toy_listed(struct kp_writer *w, const struct kp_shown *s, bool full)
{
    record(w, "listed", " %s%s", s->view.result->launch.demangled, full ? ", in full" : "");
}

static void toy_launch(struct kp_writer *w, bool quick)
{
    record(w, "launch", " %llu%s", (unsigned long long)w->launch->id, quick ? " quick" : "");
}

static void toy_metrics(struct kp_writer *w, const struct kp_lines *lines)
{
    record(w, "metrics", " %zu, %s", lines->n, lines->n ? lines->at->name : "");
}

static void toy_missing(struct kp_writer *w, const struct kp_lines *lines)
{
    record(w, "missing", " of %zu", lines->n);
}

static void toy_drawing(struct kp_writer *w, enum kp_body body, const struct kp_lines *lines)
{
    record(w, "drawing", " %d of %zu", body, lines->n);
}

static void toy_series(struct kp_writer *w, const struct kp_series_row *rows, size_t n, double dropped)
{
    record(w, "series", " %zu, %s, %g dropped", n, rows->series->name, dropped);
}

static void toy_verdict(struct kp_writer *w, const struct kp_verdict *v)
{
    record(w, "verdict", " %d", v->bound);
}

static void toy_messages(struct kp_writer *w, const struct kp_messages *m, const char *section)
{
    record(w, "messages", " %zu of %s", kp_messages_count(m, section), section);
}

static void toy_source_lines(struct kp_writer *w, const struct kp_view *v, size_t limit, bool help)
{
    record(w, "source_lines", " %zu, %zu%s", v->source->n_lines, limit, help ? " with help" : "");
}

static void toy_source_code(struct kp_writer *w, const struct kp_view *v, const struct kp_source_function *f)
{
    record(w, "source_code", " %zu of %zu", f->end - f->first, v->source->n_instructions);
}

static void toy_stacks(struct kp_writer *w, struct kp_stack_totals *stacks)
{
    record(w, "stacks", " %zu", stacks->n);
}

static void toy_summary(struct kp_writer *w, const struct kp_summary *summary)
{
    record(w, "summary", "%s", summary ? "" : " of nothing");
}

static void toy_note(struct kp_writer *w, enum kp_level level, const char *mark, const char *text)
{
    record(w, "note", " %d %s: %s", level, mark ? mark : "-", text);
}

static void toy_gap(struct kp_writer *w)
{
    record(w, "gap", "%s", "");
}

static void toy_account(struct kp_writer *w, const struct kp_choice *choice)
{
    record(w, "account", "%s", choice ? " of a choice" : "");
}

static void toy_end(struct kp_writer *w)
{
    fprintf(((struct toy *)w)->to, "end\n");
}

#define BLOCKS                                                                                                         \
    .begin = toy_begin, .field = toy_field, .process = toy_process, .heading = toy_heading, .facts = toy_facts,        \
    .table = toy_table, .row = toy_row, .table_end = toy_table_end, .listed = toy_listed, .launch = toy_launch,        \
    .metrics = toy_metrics, .missing = toy_missing, .drawing = toy_drawing, .series = toy_series,                      \
    .verdict = toy_verdict, .messages = toy_messages, .source_lines = toy_source_lines,                                \
    .source_code = toy_source_code, .stacks = toy_stacks, .summary = toy_summary, .note = toy_note, .gap = toy_gap,    \
    .account = toy_account, .end = toy_end

static const struct kp_writer_kind document = {BLOCKS}, rows = {.rows = true, .plain = true, BLOCKS}, none = {0};

/* What a writer of that kind has recorded; malloc'ed. */
static char *write_until(const struct kp_writer_kind *kind, const struct kp_display *d, const char *ends_at,
                         int expected)
{
    struct kp_launches launches = {.each = each, .from = &rec, .lookup = {.code = find_code, .stack = find_stack}};
    char *text = NULL, *err = NULL;
    size_t size;
    struct toy t = {.base = {.kind = kind}, .to = open_memstream(&text, &size), .ends_at = ends_at};
    assert_non_null(t.to);
    assert_int_equal(kp_page_write(&t.base, d, &rec.session, &launches, &err), expected);
    assert_int_equal(kp_write_end(&t.base), expected);
    assert_null(err);
    assert_int_equal(kp_text_end(t.to, &text), 0);
    return text;
}

static char *write_all(const struct kp_writer_kind *kind, const struct kp_display *d)
{
    return write_until(kind, d, NULL, 0);
}

#define DETAILS .rules = KP_RULES_ALL, .details = KP_DETAILS_ALL

static const struct kp_display every_page = {
    DETAILS,
    .source_lines = true,
    .source_sass = true,
    .n_pages = 7,
    .pages = {KP_PAGE_DETAILS, KP_PAGE_RAW, KP_PAGE_SESSION, KP_PAGE_SUMMARY, KP_PAGE_TRACE, KP_PAGE_SOURCE,
              KP_PAGE_PM},
};

static void a_document_has_all_pages(void **state)
{
    (void)state;
    char *text = write_all(&document, &every_page);
    kp_test_golden(text, "tests/golden/writer_document.txt");
    free(text);
}

static void rows_are_one_page(void **state)
{
    static const struct kp_display details = {DETAILS, .n_pages = 2, .pages = {KP_PAGE_DETAILS, KP_PAGE_TRACE}};
    (void)state;
    char *text = write_all(&rows, &details);
    kp_test_golden(text, "tests/golden/writer_rows.txt");
    free(text);
}

static const char *const blocks[] = {
    "begin",       "process", "heading", "facts",   "table",  "row",     "table_end", "listed",
    "launch",      "metrics", "missing", "drawing", "series", "verdict", "messages",  "source_lines",
    "source_code", "stacks",  "summary", "note",    "gap",    "account",
};

static void no_block_follows_the_first_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        char *text = write_until(&document, &every_page, blocks[i], -ENOSPC), *last = strrchr(text, '\n');
        assert_non_null(last);
        assert_string_equal(last - strlen("end"), "end\n"); /* what the writer holds is freed */
        free(text);
    }
}

static void a_format_may_lack_any_block(void **state)
{
    (void)state;
    char *text = write_all(&none, &every_page);
    assert_string_equal(text, "");
    free(text);
}

static void empty_values_are_no_facts(void **state)
{
    struct kp_facts f = {.title = "title"};
    (void)state;
    assert_int_equal(kp_facts_add(&f, "none", NULL, false), 0);
    assert_int_equal(kp_facts_add(&f, "empty", "", true), 0);
    assert_int_equal(f.n, 0);
    for (int i = 0; i < 40; i++)
        assert_int_equal(kp_facts_add(&f, "some", "value", i % 2), 0);
    assert_int_equal(f.n, 40);
    assert_string_equal(f.at[39].value, "value");
    assert_true(f.at[39].is_list);
    kp_facts_free(&f);
    assert_int_equal(f.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_has_all_pages),         cmocka_unit_test(rows_are_one_page),
        cmocka_unit_test(no_block_follows_the_first_error), cmocka_unit_test(a_format_may_lack_any_block),
        cmocka_unit_test(empty_values_are_no_facts),
    };
    return cmocka_run_group_tests(tests, make_session, drop_session);
}
