/* The page source: what each launch did, by source line and by instruction. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/options/options.h"
#include "report/pages/page_body.h"
#include "report/write/source_table.h"
#include "base/text.h"
#include "report/write/launch.h"

enum { LINES_SHOWN = 20 };

/* ---- text ---- */

static void print_nothing(struct kp_out *o)
{
    kp_out_wrapped(
        o, "    Note: ",
        "the launch has no values by instruction: collect them with KPROF_SECTION=SourceCounters (section), or "
        "with one of the sets that have it (kprof --list-sets)");
    kp_out_text(o, "\n", 1);
}

static void print_source(struct kp_out *o, const struct kp_view *v)
{
    const struct kp_display *d = o->display;
    kp_source_dropped_print(o, v);
    if (!v->source->n_functions) {
        print_nothing(o);
        return;
    }
    if (d->source_lines)
        kp_source_lines_print(o, v, LINES_SHOWN, true);
    for (size_t i = 0; d->source_sass && i < v->source->n_functions; i++)
        kp_source_listing_print(o, v, &v->source->functions[i]);
}

static int print_launch(struct kp_result *r, void *arg)
{
    const struct kp_page *p = arg;
    struct kp_out o = {.sink = p->out, .display = p->display};
    struct kp_source_map source;
    int rc = kp_source_load(r, p->display->codes, &source);
    if (rc)
        return rc;
    kp_launch_head(&o, &r->launch, false);
    print_source(&o, &(struct kp_view){.session = p->session, .result = r, .source = &source});
    kp_source_free(&source);
    return o.rc;
}

int kp_source_text(const struct kp_page *p)
{
    return kp_page_each(p, print_launch, (void *)p);
}

/* ---- CSV: a column a metric, so all of them have to be known before the first launch is written ---- */

static const char *const headings[] = {"Function", "Offset", "File", "Line", "Inlined At", "Opcode", "Instruction"};

struct rows {
    const struct kp_page *page;
    struct kp_csv *to;
    char **names; /* of metrics, sorted */
    size_t n;
};

static int note_name(struct rows *rows, const char *name)
{
    size_t low = 0, high = rows->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(rows->names[middle], name);
        if (!order)
            return 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    char **grown = realloc(rows->names, (rows->n + 1) * sizeof *grown), *copy = grown ? kp_strdup(name) : NULL;
    if (grown)
        rows->names = grown;
    if (!copy)
        return -ENOMEM;
    memmove(&grown[low + 1], &grown[low], (rows->n - low) * sizeof *grown);
    grown[low] = copy;
    rows->n++;
    return 0;
}

static int note_names(struct kp_result *r, void *arg)
{
    int rc = 0;
    for (size_t i = 0; i < r->n_counts; i++)
        for (size_t j = 0; !rc && j < r->counts[i].n_metrics; j++)
            rc = note_name(arg, r->counts[i].metrics[j].name);
    return rc;
}

/* "file:line" of each call that leads to inlined code, the innermost first, separated by blanks. */
static int write_sites(struct kp_csv *c, const struct kp_code *code, const struct kp_location *l)
{
    char *text = NULL;
    size_t size;
    unsigned steps = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return -ENOMEM;
    const char *gap = "";
    while ((l = kp_location_parent(code, l, &steps))) {
        fprintf(f, "%s%s:%" PRIu32, gap, kp_location_path(code, l), l->line);
        gap = " ";
    }
    int rc = kp_text_end(f, &text) ? -ENOMEM : 0;
    if (!rc)
        kp_csv_field(c, text);
    free(text);
    return rc;
}

static int write_place(struct kp_csv *c, const struct kp_code *code, const struct kp_source_instruction *i)
{
    int rc = 0;
    kp_csv_field(c, code ? code->function : "");
    kp_csv_formatted(c, "%" PRIu32, i->offset);
    if (i->location) {
        kp_csv_field(c, kp_location_path(code, i->location));
        kp_csv_formatted(c, "%" PRIu32, i->location->line);
        rc = write_sites(c, code, i->location);
    } else {
        kp_csv_fields(c, (const char *const[]){"", "", ""}, 3);
    }
    kp_csv_field(c, i->code ? i->code->opcode : "");
    kp_csv_field(c, i->code ? i->code->text : "");
    return rc;
}

static int write_function(const struct rows *rows, const struct kp_result *r, const struct kp_source_map *s,
                          const struct kp_source_function *f)
{
    const uint64_t **values = calloc(rows->n + 1, sizeof *values);
    int rc = values ? 0 : -ENOMEM;
    for (size_t k = 0; !rc && k < rows->n; k++)
        values[k] = kp_code_counts_find(f->counts, rows->names[k]);
    for (size_t i = f->first; !rc && i < f->end; i++) {
        const struct kp_source_instruction *at = &s->instructions[i];
        rc = kp_csv_launch(rows->to, rows->page->session, &r->launch, rows->page->nvtx);
        if (!rc)
            rc = write_place(rows->to, f->code, at);
        for (size_t k = 0; k < rows->n; k++)
            kp_csv_formatted(rows->to, "%" PRIu64, values[k] && at->at != SIZE_MAX ? values[k][at->at] : 0);
        kp_csv_end_row(rows->to);
    }
    free(values);
    return rc;
}

static int write_launch(struct kp_result *r, void *arg)
{
    const struct rows *rows = arg;
    struct kp_source_map source;
    int rc = kp_source_load(r, rows->page->display->codes, &source);
    for (size_t i = 0; !rc && i < source.n_functions; i++)
        rc = write_function(rows, r, &source, &source.functions[i]);
    if (!rc && ferror(rows->to->to))
        rc = -EIO;
    kp_source_free(&source);
    return rc;
}

int kp_source_csv(const struct kp_page *pages, size_t n, struct kp_csv *to)
{
    struct rows rows = {.page = pages, .to = to};
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = kp_page_each(&pages[i], note_names, &rows);
    kp_csv_launch_headings(to, pages->nvtx);
    kp_csv_fields(to, headings, sizeof headings / sizeof *headings);
    kp_csv_fields(to, (const char *const *)rows.names, rows.n);
    kp_csv_end_row(to);
    for (size_t i = 0; !rc && i < n; i++) {
        rows.page = &pages[i];
        rc = kp_page_each(&pages[i], write_launch, &rows);
    }
    for (size_t i = 0; i < rows.n; i++)
        free(rows.names[i]);
    free(rows.names);
    return rc;
}
