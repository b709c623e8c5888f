/*
 * The page source as the CSV of ncu: for each launch blocks of lines "File Path" and "Function Name", or "Kernel Name",
 * and a table. `--print-source sass` has instructions, `cuda` lines of source, `cuda,sass` both. Columns without a
 * value are empty: kprof does not count policies of L2. Source of the form: what public programs read of ncu 2022 to
 * 2026, and what 2025.3.1 wrote on an H200. Addresses begin at 0 in each function.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/derive_source.h"
#include "report/model/launch_names.h"
#include "report/pages/page_body.h"
#include "report/write/csv_writer.h"

/* How a cell follows from the counts `a` and `b`, summed over the instructions of the row. */
enum how { SAMPLES, NOT_ISSUED, SUM, RATIO, REST, EXCESS, SPACE, ACCESS, SIZE, POLICY, UNKNOWN };

static const struct column {
    const char *heading;
    enum how how;
    const char *a, *b;
    bool rare; /* ncu leaves it out where the function has none of it */
} columns[] = {
    {"Warp Stall Sampling (All Samples)", SAMPLES, NULL, NULL, false},
    {"Warp Stall Sampling (Not-issued Samples)", NOT_ISSUED, NULL, NULL, false},
    {"# Samples", SAMPLES, NULL, NULL, false},
    {"Instructions Executed", SUM, KP_INST_EXECUTED, NULL, false},
    {"Thread Instructions Executed", SUM, "thread_inst_executed", NULL, false},
    {"Predicated-On Thread Instructions Executed", SUM, KP_THREADS_ON, NULL, false},
    {"Avg. Threads Executed", RATIO, "thread_inst_executed", KP_INST_EXECUTED, false},
    {"Avg. Predicated-On Threads Executed", RATIO, KP_THREADS_ON, KP_INST_EXECUTED, false},
    {"Avg. Predicated-On Threads Unexecuted", REST, "thread_inst_executed", KP_THREADS_ON, false},
    {"Divergent Branches", SUM, "smsp__branch_targets_threads_divergent", NULL, true},
    {"Address Space", SPACE, NULL, NULL, false},
    {"Access Operation", ACCESS, NULL, NULL, false},
    {"Access Size", SIZE, NULL, NULL, false},
    {"L1 Tag Requests Global", SUM, "memory_l1_tag_requests_global", NULL, false},
    {"L1 Conflicts Shared N-Way", RATIO, KP_WAVEFRONTS, KP_INST_EXECUTED, false},
    {"L1 Wavefronts Shared Excessive", EXCESS, KP_WAVEFRONTS, KP_WAVEFRONTS KP_IDEAL, true},
    {"L1 Wavefronts Shared", SUM, KP_WAVEFRONTS, NULL, true},
    {"L1 Wavefronts Shared Ideal", SUM, KP_WAVEFRONTS KP_IDEAL, NULL, true},
    {"L2 Theoretical Sectors Global Excessive", EXCESS, KP_SECTORS, KP_SECTORS KP_IDEAL, false},
    {"L2 Theoretical Sectors Global", SUM, KP_SECTORS, NULL, false},
    {"L2 Theoretical Sectors Global Ideal", SUM, KP_SECTORS KP_IDEAL, NULL, false},
    {"L2 Theoretical Sectors Local", SUM, KP_SECTORS_LOCAL, NULL, true},
    {"L2 Explicit Evict Policies", POLICY, NULL, NULL, false},
    {"L2 Explicit Hit Policy Evict First", UNKNOWN, NULL, NULL, false},
    {"L2 Explicit Hit Policy Evict Last", UNKNOWN, NULL, NULL, false},
    {"L2 Explicit Hit Policy Evict Normal", UNKNOWN, NULL, NULL, false},
    {"L2 Explicit Hit Policy Evict Normal Demote", UNKNOWN, NULL, NULL, false},
    {"L2 Explicit Miss Policy Evict First", UNKNOWN, NULL, NULL, false},
    {"L2 Explicit Miss Policy Evict Normal", UNKNOWN, NULL, NULL, false},
};

enum { COLUMNS = sizeof columns / sizeof *columns };
static const char not_issued[] = "_not_issued", none[] = "-";

/* The blocks of one function of a launch. */
struct block {
    struct kp_csv *csv;
    const struct kp_source_map *source;
    const struct kp_source_function *function;
    const size_t *order; /* of the instructions of the function, by file, line and offset */
    const uint64_t *a[COLUMNS], *b[COLUMNS], *stalls[KP_STALL_REASONS], *idle[KP_STALL_REASONS];
    const uint64_t *executed;
    bool lacks[COLUMNS], lacks_stall[KP_STALL_REASONS]; /* rare columns that are not there */
};

static const uint64_t *find(const struct block *b, const char *metric)
{
    return metric ? kp_code_counts_find(b->function->counts, metric) : NULL;
}

/* The instructions of a row: `n` of the order, from `first` on. */
struct span {
    size_t first, n;
};

static const struct kp_source_instruction *at(const struct block *b, const struct span *s, size_t i)
{
    return &b->source->instructions[b->order[s->first + i]];
}

static uint64_t sum(const struct block *b, const struct span *s, const uint64_t *values)
{
    uint64_t all = 0;
    for (size_t i = 0; values && i < s->n; i++)
        all += at(b, s, i)->at != SIZE_MAX ? values[at(b, s, i)->at] : 0;
    return all;
}

static uint64_t sum_stalls(const struct block *b, const struct span *s, const uint64_t *const *stalls)
{
    uint64_t all = 0;
    for (size_t i = 0; i < KP_STALL_REASONS; i++)
        all += sum(b, s, stalls[i]);
    return all;
}

static void find_values(struct block *b)
{
    char name[128];
    const struct span all = {0, b->function->end - b->function->first};
    b->executed = find(b, KP_INST_EXECUTED);
    for (size_t i = 0; i < COLUMNS; i++) {
        b->a[i] = find(b, columns[i].a);
        b->b[i] = find(b, columns[i].b);
        b->lacks[i] = columns[i].rare && !sum(b, &all, b->a[i]);
    }
    for (size_t i = 0; i < KP_STALL_REASONS; i++) {
        snprintf(name, sizeof name, "%s%s", kp_stall_reasons[i].metric, not_issued);
        b->stalls[i] = find(b, kp_stall_reasons[i].metric);
        b->idle[i] = find(b, name);
        b->lacks_stall[i] = !strcmp(kp_stall_reasons[i].label, "stall_gmma") && !sum(b, &all, b->stalls[i]);
    }
}

static void write_count(struct kp_csv *c, uint64_t value)
{
    kp_csv_formatted(c, "%" PRIu64, value);
}

static void write_ratio(struct kp_csv *c, uint64_t a, uint64_t b)
{
    if (!b || a % b == 0)
        write_count(c, b ? a / b : 0);
    else
        kp_csv_formatted(c, "%.2f", (double)a / (double)b);
}

/* Writes what a single instruction does with memory; of lines there is no such thing. */
static void write_access(struct kp_csv *c, const struct kp_instruction *i, enum how how)
{
    const char *text = !i ? "" : how == SPACE ? kp_memory_space(i->opcode) : kp_memory_access(i->opcode);
    if (how == SIZE && i && i->access_bits)
        write_count(c, i->access_bits);
    else
        kp_csv_field(c, how == SIZE || !*text ? none : text);
}

static void write_cell(const struct block *b, const struct span *s, size_t column)
{
    uint64_t a = sum(b, s, b->a[column]), other = sum(b, s, b->b[column]);
    switch (columns[column].how) {
    case SAMPLES:
    case NOT_ISSUED:
        write_count(b->csv, sum_stalls(b, s, columns[column].how == SAMPLES ? b->stalls : b->idle));
        break;
    case SUM:
        write_count(b->csv, a);
        break;
    case RATIO:
        write_ratio(b->csv, a, other);
        break;
    case REST:
        write_ratio(b->csv, a > other ? a - other : 0, sum(b, s, b->executed));
        break;
    case POLICY:
        kp_csv_field(b->csv,
                     s->n != 1 || !at(b, s, 0)->code || *kp_memory_space(at(b, s, 0)->code->opcode) ? "" : none);
        break;
    case EXCESS:
        write_count(b->csv, a > other ? a - other : 0);
        break;
    case UNKNOWN:
        kp_csv_field(b->csv, "");
        break;
    default:
        write_access(b->csv, s->n == 1 ? at(b, s, 0)->code : NULL, columns[column].how);
    }
}

static void write_cells(const struct block *b, const struct span *s)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (!b->lacks[i])
            write_cell(b, s, i);
    for (size_t i = 0; i < KP_STALL_REASONS; i++)
        if (!b->lacks_stall[i])
            write_count(b->csv, sum(b, s, b->stalls[i]));
    for (size_t i = 0; i < KP_STALL_REASONS; i++)
        if (!b->lacks_stall[i])
            write_count(b->csv, sum(b, s, b->idle[i]));
    kp_csv_end_row(b->csv);
}

static void write_headings(const struct block *b)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (!b->lacks[i])
            kp_csv_field(b->csv, columns[i].heading);
    for (size_t i = 0; i < KP_STALL_REASONS; i++)
        if (!b->lacks_stall[i])
            kp_csv_field(b->csv, kp_stall_reasons[i].label);
    for (size_t i = 0; i < KP_STALL_REASONS; i++)
        if (!b->lacks_stall[i]) /* ncu gives one of them two names */
            kp_csv_formatted(b->csv, "%s%s (Not Issued)", kp_stall_reasons[i].label,
                             strcmp(kp_stall_reasons[i].label, "stall_sleep") ? "" : "ing");
    kp_csv_end_row(b->csv);
}

/* Writes an instruction with room for a predicate before it, as in "@!P0  EXIT". */
static void write_padded(struct kp_csv *c, const char *text)
{
    enum { PREDICATE = 6 };
    int len = *text == '@' ? (int)strcspn(text, " ") : 0;
    char *padded = *text ? kp_asprintf("%-*.*s%s", PREDICATE, len, text, text + len + (len && text[len])) : NULL;
    kp_csv_field(c, padded ? padded : text);
    free(padded);
}

static void write_ncu_instruction(const struct block *b, size_t i)
{
    const struct span one = {i, 1};
    const struct kp_source_instruction *s = at(b, &one, 0);
    kp_csv_formatted(b->csv, "0x%08" PRIx32, s->offset);
    write_padded(b->csv, s->code && s->code->text ? s->code->text : "");
    write_cells(b, &one);
}

static void write_fact(struct kp_csv *c, const char *name, const char *value)
{
    kp_csv_field(c, name);
    kp_csv_field(c, value);
    kp_csv_end_row(c);
}

/* --- by instruction --- */

static void write_sass(const struct block *b, const char *kernel)
{
    kp_csv_field(b->csv, "Kernel Name");
    kp_csv_field(b->csv, kernel);
    fputc(',', b->csv->to); /* ncu ends this line so */
    kp_csv_end_row(b->csv);
    kp_csv_field(b->csv, "Address");
    kp_csv_field(b->csv, "Source");
    write_headings(b);
    for (size_t i = 0; i < b->function->end - b->function->first; i++)
        write_ncu_instruction(b, i);
}

/* --- by line --- */

static int by_place(const void *x, const void *y, void *source)
{
    const struct kp_source_map *s = source;
    const struct kp_source_instruction *a = &s->instructions[*(const size_t *)x],
                                       *b = &s->instructions[*(const size_t *)y];
    const struct kp_location *l = a->location, *m = b->location;
    if (!l || !m || (l->file == m->file && l->line == m->line))
        return !l == !m ? (a->offset > b->offset) - (a->offset < b->offset) : !l - !m;
    return l->file != m->file ? (l->file > m->file) - (l->file < m->file) : (l->line > m->line) - (l->line < m->line);
}

static void write_line_text(const struct block *b, uint32_t file, uint32_t line)
{
    size_t len = 0;
    const char *text = kp_codecache_line(b->source->cache, b->function->code, file, line, &len);
    char *copy = text ? strndup(text, len) : NULL;
    if (copy)
        kp_make_printable(copy);
    kp_csv_field(b->csv, copy);
    free(copy);
}

/* Writes a line, and its instructions if they are shown as well. */
static void write_line(const struct block *b, uint32_t file, uint32_t line, const struct span *s, bool with_sass)
{
    write_count(b->csv, line);
    if (!with_sass)
        kp_csv_field(b->csv, "");
    write_line_text(b, file, line);
    if (with_sass) {
        kp_csv_field(b->csv, none);
        kp_csv_field(b->csv, none);
    }
    write_cells(b, s);
    for (size_t i = 0; with_sass && i < s->n; i++) {
        kp_csv_field(b->csv, none);
        kp_csv_field(b->csv, none);
        write_ncu_instruction(b, s->first + i);
    }
}

/* Returns the instructions from `first` on, of `n`, that are of this line. */
static struct span on_line(const struct block *b, size_t first, size_t n, uint32_t file, uint32_t line)
{
    struct span s = {first, 0};
    const struct kp_location *l;
    while (first + s.n < n && (l = b->source->instructions[b->order[first + s.n]].location) && l->file == file &&
           l->line == line)
        s.n++;
    return s;
}

/* Returns the location of the next instruction if it is of that file; else NULL. */
static const struct kp_location *next_in(const struct block *b, size_t at, size_t n, uint32_t file)
{
    const struct kp_location *l = at < n ? b->source->instructions[b->order[at]].location : NULL;
    return l && l->file == file ? l : NULL;
}

/* Writes the lines of one file, up to its last one if the text is known. Returns where the instructions of the next one
 * begin. */
static size_t write_file(const struct block *b, size_t first, size_t n, const char *kernel, bool with_sass)
{
    static const char *const of_lines[] = {"#", "Address", "Source"};
    static const char *const of_both[] = {"Line No", "Source", "Address", "Source"};
    const struct kp_location *next = b->source->instructions[b->order[first]].location;
    uint32_t file = next->file, line = next->line ? 1 : 0;
    size_t len;
    write_fact(b->csv, "File Path", kp_location_path(b->function->code, next));
    write_fact(b->csv, "Function Name", kernel);
    kp_csv_fields(b->csv, with_sass ? of_both : of_lines, with_sass ? 4 : 3);
    write_headings(b);
    while (true) {
        bool has_text = line && kp_codecache_line(b->source->cache, b->function->code, file, line, &len);
        if (!has_text && !next)
            return first;
        if (!has_text)
            line = next->line;
        struct span s = on_line(b, first, n, file, line);
        write_line(b, file, line, &s, with_sass);
        next = next_in(b, first += s.n, n, file);
        if (line++ == UINT32_MAX)
            return first;
    }
}

static void write_lines(const struct block *b, const char *kernel, bool with_sass)
{
    size_t n = b->function->end - b->function->first, i = 0;
    while (i < n && b->source->instructions[b->order[i]].location)
        i = write_file(b, i, n, kernel, with_sass);
}

/* --- the page --- */

static int write_function(struct kp_writer *w, const struct kp_source_map *source, const struct kp_source_function *f,
                          const char *kernel)
{
    const struct kp_display *d = w->out.display;
    size_t n = f->end - f->first, *order = calloc(n + 1, sizeof *order);
    struct block b = {.csv = &((struct kp_csv_writer *)w)->csv, .source = source, .function = f, .order = order};
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        order[i] = f->first + i;
    find_values(&b);
    if (d->source_lines && f->code) {
        qsort_r(order, n, sizeof *order, by_place, (void *)source);
        write_lines(&b, kernel, d->source_sass);
    } else {
        write_sass(&b, kernel);
    }
    free(order);
    return 0;
}

static int write_ncu_launch(struct kp_result *r, void *arg)
{
    struct kp_writer *w = arg;
    struct kp_source_map source;
    char *kernel = kp_launch_plain_name(kp_launch_name(&r->launch));
    int rc = kernel ? kp_source_load(r, w->out.display->codes, &source) : -ENOMEM;
    if (!rc) {
        for (size_t i = 0; !rc && i < source.n_functions; i++)
            rc = write_function(w, &source, &source.functions[i], kernel);
        kp_source_free(&source);
    }
    free(kernel);
    if (ferror(((struct kp_csv_writer *)w)->csv.to))
        kp_write_failed(w, -EIO);
    return rc ? rc : w->out.rc;
}

int kp_page_ncu_source(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        kp_page_enter(&pages[i], w);
        rc = kp_page_each(&pages[i], write_ncu_launch, w);
    }
    return rc;
}
