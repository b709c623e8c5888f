#include "report/write/source_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"
#include "base/width.h"
#include "base/wrap.h"
#include "report/define/units.h"
#include "report/model/counts.h"

enum {
    SITES_SHOWN = 3, /* calls that lead to inlined code, innermost first */
    TEXT_INDENT = 10,
    BAR_WIDTH = 5,
};

/* ---- numbers ---- */

void kp_write_short_number(uint64_t value, char out[KP_SHORT_MAX])
{
    static const char units[] = "kMGTPE";
    uint64_t unit = 1000;
    size_t k = 0;
    if (value < 10000) {
        snprintf(out, KP_SHORT_MAX, "%u", (unsigned)value);
        return;
    }
    for (; k + 2 < sizeof units && value / unit >= 1000; k++)
        unit *= 1000;
    /* cuts instead of rounding: 999,999 would become 1000k */
    unsigned whole = (unsigned)(value / unit), hundredths = (unsigned)(value % unit / (unit / 100));
    if (whole >= 100)
        snprintf(out, KP_SHORT_MAX, "%u%c", whole, units[k]);
    else if (whole >= 10)
        snprintf(out, KP_SHORT_MAX, "%u.%u%c", whole, hundredths / 10, units[k]);
    else
        snprintf(out, KP_SHORT_MAX, "%u.%02u%c", whole, hundredths, units[k]);
}

/* Returns "" for 0. */
static const char *short_cell(uint64_t value, char out[KP_SHORT_MAX])
{
    *out = '\0';
    if (value)
        kp_write_short_number(value, out);
    return out;
}

static const char *share_cell(uint64_t part, uint64_t all, char out[KP_SHORT_MAX])
{
    double share = all ? 100 * (double)part / (double)all : 0;
    *out = '\0';
    if (part && all)
        snprintf(out, KP_SHORT_MAX, share < 99.95 ? "%.1f%%" : "%.0f%%", share);
    return out;
}

/* Writes separators if they fit into `width`. */
static const char *long_cell(uint64_t value, size_t width, char out[KP_NUMBER_MAX])
{
    *out = '\0';
    if (!value)
        return out;
    kp_format_count(value, out);
    if (strlen(out) > width)
        kp_write_short_number(value, out);
    return out;
}

/* ---- text of others ---- */

/* Prints a line of a source file in at most `width` columns, without the blanks around it. */
static void print_line_of_source(struct kp_out *o, const char *text, size_t len, size_t width)
{
    static const char cut[] = "...";
    char line[4 * KP_LINE_WIDTH + 1], *to = line, *end_if_cut = line;
    size_t columns = 0, n;
    bool shown;
    while (len && strchr(" \t\r", text[len - 1]))
        len--;
    for (; len && strchr(" \t", *text); len--)
        text++;
    for (; len && columns < width; text += n, len -= n) {
        n = kp_text_shown_len(text, len, &shown);
        size_t wide = kp_width_of_char(text, len, &n);
        if (columns + wide > width || (size_t)(to - line) + n + sizeof cut > sizeof line)
            break; /* marks without a width still need room */
        if (columns + strlen(cut) <= width)
            end_if_cut = to;
        if (*text == '\t') {
            *to++ = ' ';
        } else if (!shown) {
            *to++ = '?';
        } else {
            memcpy(to, text, n);
            to += n;
        }
        columns += wide;
    }
    if (len)
        to = stpcpy(end_if_cut, cut);
    kp_out_text(o, line, (size_t)(to - line));
}

/* Prints the end of a path in at most `width` columns. */
static void print_path(FILE *f, const char *path, size_t width)
{
    size_t len = strlen(path);
    if (len > width)
        fprintf(f, "...%s", path + len - width + strlen("..."));
    else
        fputs(path, f);
}

/* ---- places ---- */

/* Widths of paths; longer ones lose their beginning. */
enum { WITH_FOLDERS = 40, WITHOUT_FOLDERS = 0 };

static void print_location(FILE *f, const struct kp_code *c, const struct kp_location *l, size_t width)
{
    const char *path = kp_location_path(c, l);
    if (width)
        print_path(f, path, width);
    else
        fprintf(f, "%.60s", kp_base_name(path));
    fprintf(f, ":%" PRIu32, l->line);
}

static void print_function(FILE *f, const char *before, const char *mangled)
{
    char *name = kp_demangle_base(mangled);
    if (name)
        fprintf(f, "%s%.60s", before, name);
    free(name);
}

/* Prints the location, and the calls that inlined it. */
static void print_place(FILE *f, const struct kp_code *c, const struct kp_location *l, size_t width)
{
    unsigned steps = 0, shown = 0;
    const struct kp_location *site = l;
    print_location(f, c, l, width);
    if (l->parent && l->function && *l->function)
        print_function(f, " in ", l->function);
    while (shown < SITES_SHOWN && (site = kp_location_parent(c, site, &steps))) {
        fputs(shown++ ? ", " : ", inlined at ", f);
        print_location(f, c, site, width);
    }
}

/* Returns malloc'ed text; NULL without memory. */
static char *describe(const struct kp_source_map *s, const struct kp_source_line *line)
{
    const struct kp_source_instruction *i = &s->instructions[line->hottest];
    const struct kp_source_function *function = &s->functions[i->function];
    char *text = NULL, *place;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    if (i->location) {
        print_place(f, function->code, i->location, WITH_FOLDERS);
        if (line->sites > 1)
            fprintf(f, " and %zu more", line->sites - 1);
        if (!i->location->parent && i->function)
            print_function(f, " in ", function->code->function);
    } else if ((place = kp_source_place(s, line))) {
        fputs(place, f);
        if (s->has_lines)
            fputs(" (instructions without a line)", f);
        else if (i->code)
            fprintf(f, " %s", i->code->text && *i->code->text ? i->code->text : i->code->opcode ? i->code->opcode : "");
        free(place);
    }
    if (kp_text_end(f, &text)) {
        free(text);
        return NULL;
    }
    kp_make_printable(text);
    return text;
}

/* Returns the source text of an instruction's location; NULL if unknown. */
static const char *text_of_instruction(const struct kp_source_map *s, const struct kp_source_instruction *i,
                                       size_t *len)
{
    return i->location
               ? kp_codecache_line(s->cache, s->functions[i->function].code, i->location->file, i->location->line, len)
               : NULL;
}

/* ---- the hottest lines ---- */

static const struct {
    const char *heading;
    int width;    /* negative: aligned left */
    size_t needs; /* columns of a line; a narrower terminal loses it */
} columns[] = {
    {"#", 3, 0},
    {"Samples", 11, 0},
    {"Share", 6, 45},
    {"Stall Reason", -18, 0},
    {"Instructions", 15, 77},
    {"Excess Sectors", 15, 61},
    {"Share", 6, KP_LINE_WIDTH},
    {"Excess Wavefronts", 17, KP_LINE_WIDTH},
    {"Share", 6, KP_LINE_WIDTH},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static bool is_shown(const struct kp_out *o, size_t column)
{
    return columns[column].needs <= kp_out_prose(o, 0);
}

static void print_row_of_table(struct kp_out *o, const char *const cells[COLUMNS])
{
    char row[KP_LINE_WIDTH + 1];
    int n = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        if (is_shown(o, i))
            n += snprintf(row + n, sizeof row - (size_t)n, " %*s", columns[i].width, cells[i]);
    while (n && row[n - 1] == ' ')
        n--;
    kp_out_print(o, "   %.*s\n", n, row);
}

static void print_source_rule(struct kp_out *o)
{
    kp_out_text(o, "   ", 3);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!is_shown(o, i))
            continue;
        kp_out_text(o, " ", 1);
        kp_out_repeat(o, '-', (size_t)abs(columns[i].width));
    }
    kp_out_text(o, "\n", 1);
}

static const char *reason_name(const struct kp_source_sums *sums)
{
    const struct kp_stall_reason *reason = kp_source_main_stall(sums);
    return reason ? reason->metric + strlen(KP_STALL_PREFIX) : "";
}

static void print_source_line(struct kp_out *o, const struct kp_source_map *s, size_t index)
{
    const struct kp_source_line *line = &s->lines[index];
    const uint64_t *v = line->sums.v, *all = s->all.v;
    char rank[24], samples[KP_NUMBER_MAX], instructions[KP_NUMBER_MAX], sectors[KP_NUMBER_MAX],
        wavefronts[KP_NUMBER_MAX], share[3][KP_SHORT_MAX];
    snprintf(rank, sizeof rank, "%zu", index + 1);
    const char *const cells[COLUMNS] = {
        rank,
        long_cell(v[KP_AT_SAMPLES], 11, samples),
        share_cell(v[KP_AT_SAMPLES], all[KP_AT_SAMPLES], share[0]),
        reason_name(&line->sums),
        long_cell(v[KP_AT_INSTRUCTIONS], 15, instructions),
        long_cell(v[KP_AT_SECTORS_EXCESS], 15, sectors),
        share_cell(v[KP_AT_SECTORS_EXCESS], all[KP_AT_SECTORS_EXCESS], share[1]),
        long_cell(v[KP_AT_WAVEFRONTS_EXCESS], 15, wavefronts),
        share_cell(v[KP_AT_WAVEFRONTS_EXCESS], all[KP_AT_WAVEFRONTS_EXCESS], share[2]),
    };
    print_row_of_table(o, cells);
    char *place = describe(s, line);
    if (kp_out_has(o, place)) {
        kp_out_repeat(o, ' ', TEXT_INDENT - 2);
        print_line_of_source(o, place, strlen(place), kp_out_prose(o, TEXT_INDENT - 2));
        kp_out_text(o, "\n", 1);
    }
    free(place);
    size_t len;
    const char *text = text_of_instruction(s, &s->instructions[line->hottest], &len);
    if (text) {
        kp_out_repeat(o, ' ', TEXT_INDENT - 2);
        kp_out_text(o, "| ", 2);
        print_line_of_source(o, text, len, kp_out_prose(o, TEXT_INDENT));
        kp_out_text(o, "\n", 1);
    }
}

/* Returns true if a line did nothing, and is not shown. */
static bool is_idle(const struct kp_source_line *line)
{
    return !line->sums.v[KP_AT_SAMPLES] && !line->sums.v[KP_AT_INSTRUCTIONS];
}

/* Returns the first file of the lines that was not found. */
static const char *missing_file(const struct kp_source_map *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct kp_source_instruction *at = &s->instructions[s->lines[i].hottest];
        const struct kp_code *c = s->functions[at->function].code;
        if (at->location && !kp_codecache_has_file(s->cache, c, at->location->file))
            return kp_location_path(c, at->location);
    }
    return NULL;
}

static void print_notes(struct kp_out *o, const struct kp_view *v)
{
    const struct kp_source_map *s = v->source;
    if (!s->has_code)
        kp_out_wrapped(o, "    Note: ", "the code of this launch is not in the session, so it has no source lines");
    else if (!s->has_lines)
        kp_out_wrapped(o, "    Note: ", "the code has no source lines: compile it with -lineinfo (nvcc, NVRTC)");
    if (!s->has_samples)
        kp_out_wrapped(o, "    Note: ",
                       kp_result_find(v->result, KP_SAMPLE_COUNT)
                           ? "no warp was sampled: the order is by instructions executed"
                           : "warps were not sampled in this session: the order is by instructions executed");
}

static void print_missing_file(struct kp_out *o, const struct kp_source_map *s, size_t shown)
{
    const char *missing = missing_file(s, shown);
    char *text;
    if (!missing)
        return;
    if (kp_out_has(o, asprintf(&text,
                               "%s was not found: KPROF_SOURCE_FOLDERS (source-folders) names folders to search, and "
                               "KPROF_IMPORT_SOURCE=yes (import-source) stores the text in the session",
                               missing) < 0
                          ? NULL
                          : text)) {
        kp_make_printable(text);
        kp_out_wrapped(o, "    Note: ", text);
        free(text);
    }
}

static void print_title(struct kp_out *o, const struct kp_view *v, size_t shown, size_t lines)
{
    const struct kp_source_map *s = v->source;
    char samples[KP_NUMBER_MAX], interval[KP_NUMBER_MAX];
    double cycles, launches;
    kp_out_print(o, "    Hottest %s", s->has_lines ? "Lines" : "Instructions");
    kp_format_count(s->all.v[KP_AT_SAMPLES], samples);
    if (shown < lines)
        kp_out_print(o, ": %zu of %zu", shown, lines);
    if (s->has_samples)
        kp_out_print(o, "; %s samples", samples);
    if (s->has_samples && kp_metric_number(kp_result_find(v->result, KP_SAMPLED_LAUNCHES), &launches) && launches > 1)
        kp_out_print(o, " of %.0f launches", launches);
    if (s->has_samples && kp_metric_number(kp_result_find(v->result, "smsp__pcsamp_interval_cycles"), &cycles)) {
        kp_format_real(cycles, interval);
        kp_out_print(o, ", one every %s cycles", interval);
    }
    kp_out_text(o, "\n", 1);
}

void kp_write_source_lines_text(struct kp_out *o, const struct kp_view *v, size_t limit, bool help)
{
    const struct kp_source_map *s = v->source;
    const char *headings[COLUMNS];
    size_t lines = 0, shown;
    while (lines < s->n_lines && !is_idle(&s->lines[lines]))
        lines++;
    shown = lines < limit ? lines : limit;
    for (size_t i = 0; i < COLUMNS; i++)
        headings[i] = columns[i].heading;
    print_title(o, v, shown, lines);
    if (shown) {
        print_source_rule(o);
        print_row_of_table(o, headings);
        print_source_rule(o);
    }
    for (size_t i = 0; i < shown; i++)
        print_source_line(o, s, i);
    if (shown)
        print_source_rule(o);
    print_notes(o, v);
    if (help)
        print_missing_file(o, s, shown);
    kp_out_text(o, "\n", 1);
}

/* ---- all instructions ---- */

/* Everything before the instruction, which has the rest of the line. */
#define LISTING_FORMAT "  %8s %6s %5s %-5s %-12.12s %6s %6s %11s %11s "
enum { LISTING_TEXT = 81, INSTRUCTION_WIDTH = KP_LINE_WIDTH - LISTING_TEXT };

static void bar_cell(uint64_t part, uint64_t most, char out[BAR_WIDTH + 1])
{
    size_t n = most ? (size_t)((double)part / (double)most * BAR_WIDTH + 0.5) : 0;
    n = n < BAR_WIDTH ? n : BAR_WIDTH;
    memset(out, '#', n);
    out[n] = '\0';
}

/* Writes "moved/ideal", or what was counted of them. */
static void pair_cell(uint64_t value, uint64_t ideal, char out[2 * KP_SHORT_MAX])
{
    char a[KP_SHORT_MAX], b[KP_SHORT_MAX];
    snprintf(out, 2 * KP_SHORT_MAX, "%s%s%s", short_cell(value, a), ideal ? "/" : "", short_cell(ideal, b));
}

static const char *instruction_text(const struct kp_source_map *s, const struct kp_source_instruction *i)
{
    if (!i->code)
        return s->functions[i->function].code ? "(not in the code)" : "?";
    if (i->code->text && *i->code->text)
        return i->code->text;
    return i->code->opcode && *i->code->opcode ? i->code->opcode : "?";
}

static uint64_t more_of(uint64_t most, const struct kp_source_sums *sums)
{
    return sums->v[KP_AT_SAMPLES] > most ? sums->v[KP_AT_SAMPLES] : most;
}

/* Prints a row: numbers between the label and the text, which is not trusted. NULL without memory for the text. */
static void print_sums(struct kp_out *o, const struct kp_source_map *s, const char *label,
                       const struct kp_source_sums *sums, uint64_t most, char *text)
{
    char samples[KP_SHORT_MAX], share[KP_SHORT_MAX], bar[BAR_WIDTH + 1], executed[KP_SHORT_MAX],
        divergent[KP_SHORT_MAX], sectors[2 * KP_SHORT_MAX], wavefronts[2 * KP_SHORT_MAX];
    const struct kp_stall_reason *reason = kp_source_main_stall(sums);
    bar_cell(sums->v[KP_AT_SAMPLES], most, bar);
    pair_cell(sums->v[KP_AT_SECTORS], sums->v[KP_AT_SECTORS_IDEAL], sectors);
    pair_cell(sums->v[KP_AT_WAVEFRONTS], sums->v[KP_AT_WAVEFRONTS_IDEAL], wavefronts);
    kp_out_print(o, LISTING_FORMAT, label, short_cell(sums->v[KP_AT_SAMPLES], samples),
                 share_cell(sums->v[KP_AT_SAMPLES], s->all.v[KP_AT_SAMPLES], share), bar,
                 reason ? reason->label + strlen(KP_STALL_LABEL_PREFIX) : "",
                 short_cell(sums->v[KP_AT_INSTRUCTIONS], executed), short_cell(sums->v[KP_AT_DIVERGENT], divergent),
                 sectors, wavefronts);
    if (!kp_out_has(o, text))
        return;
    kp_make_printable(text);
    struct kp_wrap wrap = {text, INSTRUCTION_WIDTH};
    const char *line;
    size_t len;
    for (int indent = 0; kp_wrap_next(&wrap, &line, &len); indent = LISTING_TEXT)
        kp_out_print(o, "%*s%.*s\n", indent, "", (int)len, line);
}

static void print_instruction(struct kp_out *o, const struct kp_source_map *s, const struct kp_source_instruction *i,
                              uint64_t most)
{
    struct kp_source_sums sums;
    char offset[16], *text = strdup(instruction_text(s, i));
    kp_source_sums_of(s, i, &sums);
    snprintf(offset, sizeof offset, "%04" PRIx32, i->offset);
    print_sums(o, s, offset, &sums, most, text);
    free(text);
}

static void print_mark(struct kp_out *o, const struct kp_source_map *s, const struct kp_source_instruction *i)
{
    const struct kp_code *c = s->functions[i->function].code;
    char *place = NULL;
    size_t size, len = 0;
    const char *text = text_of_instruction(s, i, &len);
    FILE *f = open_memstream(&place, &size);
    if (f && i->location) {
        size_t indent = len ? strspn(text, " \t") : 0;
        print_place(f, c, i->location, WITHOUT_FOLDERS);
        if (len > indent)
            fprintf(f, " | %.*s", len - indent < INT16_MAX ? (int)(len - indent) : INT16_MAX, text + indent);
    } else if (f) {
        fputs("(no line)", f);
    }
    if (!kp_out_has(o, f && !kp_text_end(f, &place) ? place : NULL)) {
        free(place);
        return;
    }
    kp_out_text(o, "  - ", 4);
    print_line_of_source(o, place, strlen(place), kp_out_prose(o, 4));
    kp_out_text(o, "\n", 1);
    free(place);
}

static bool same_location(const struct kp_location *a, const struct kp_location *b)
{
    return a == b || (a && b && a->file == b->file && a->line == b->line && a->parent == b->parent);
}

static void print_function_title(struct kp_out *o, const struct kp_source_function *f, const char *what)
{
    char *name = f->code ? kp_demangle(f->code->function) : strdup("function without code in the session");
    if (!kp_out_has(o, name))
        return;
    kp_make_printable(name);
    kp_out_wrapped(o, what, name);
    free(name);
    if (o->display->source_ptx && f->code && !f->code->n_ptx)
        kp_out_wrapped(o, "    Note: ",
                       "the session lacks its PTX: compile with -lineinfo, and keep the PTX with "
                       "KPROF_IMPORT_SOURCE=yes (import-source)");
}

/* ---- PTX ---- */

/* Returns a copy with blanks in the place of tabs; NULL without memory. */
static char *ptx_text(const char *text)
{
    char *copy = strdup(text), *at = copy;
    while (at && (at = strchr(at, '\t')))
        *at = ' ';
    return copy;
}

/* Prints the line of PTX that the next instructions are of. */
static void print_ptx_mark(struct kp_out *o, const struct kp_code *c, uint32_t line)
{
    char *place = NULL;
    const char *text = kp_code_ptx(c, line);
    int n = text ? asprintf(&place, "PTX:%" PRIu32 " | %s", line, text) : asprintf(&place, "(no line of PTX)");
    if (!kp_out_has(o, n < 0 ? NULL : place))
        return;
    kp_out_text(o, "  - ", 4);
    print_line_of_source(o, place, strlen(place), kp_out_prose(o, 4));
    kp_out_text(o, "\n", 1);
    free(place);
}

static void print_ptx_lines(struct kp_out *o, const struct kp_source_map *s, const struct kp_code *c,
                            const struct kp_source_sums *sums)
{
    static const struct kp_source_sums nothing;
    uint64_t most = 0;
    for (size_t i = 0; i <= c->n_ptx; i++)
        most = more_of(most, &sums[i]);
    for (size_t i = 0; !o->rc && i < c->n_ptx; i++) {
        char label[16], *text = ptx_text(c->ptx[i].text);
        snprintf(label, sizeof label, "%" PRIu32, c->ptx[i].line);
        print_sums(o, s, label, &sums[i], most, text);
        free(text);
    }
    if (memcmp(&sums[c->n_ptx], &nothing, sizeof nothing) != 0) {
        char rest[] = "(no line of PTX)";
        print_sums(o, s, "", &sums[c->n_ptx], most, rest);
    }
}

static void print_ptx(struct kp_out *o, const struct kp_source_map *s, const struct kp_source_function *f)
{
    print_function_title(o, f, "    PTX: ");
    struct kp_source_sums *sums = f->code && f->code->n_ptx ? calloc(f->code->n_ptx + 1, sizeof *sums) : NULL;
    if (f->code && f->code->n_ptx && kp_out_has(o, sums)) {
        kp_source_sums_of_ptx(s, f, sums);
        kp_out_print(o, LISTING_FORMAT "%s\n", "Line", "Sample", "Share", "", "Stall", "Inst", "Diverg", "Sect/Ideal",
                     "Wave/Ideal", "PTX");
        print_ptx_lines(o, s, f->code, sums);
    }
    free(sums);
    kp_out_text(o, "\n", 1);
}

/* ---- SASS ---- */

static void print_sass(struct kp_out *o, const struct kp_source_map *s, const struct kp_source_function *f,
                       bool with_ptx)
{
    uint64_t most = 0;
    struct kp_source_sums sums;
    const struct kp_location *last = NULL;
    uint32_t last_ptx = 0;
    for (size_t i = f->first; i < f->end; i++) {
        kp_source_sums_of(s, &s->instructions[i], &sums);
        most = more_of(most, &sums);
    }
    print_function_title(o, f, "    SASS: ");
    kp_out_print(o, LISTING_FORMAT "%s\n", "Offset", "Sample", "Share", "", "Stall", "Inst", "Diverg", "Sect/Ideal",
                 "Wave/Ideal", "Instruction");
    for (size_t i = f->first; !o->rc && i < f->end; i++) {
        const struct kp_source_instruction *at = &s->instructions[i];
        uint32_t ptx = at->code ? at->code->ptx : 0;
        bool marked = i > f->first, moved = !marked || !same_location(last, at->location);
        if (s->has_lines && moved)
            print_mark(o, s, at);
        if (with_ptx && (moved || ptx != last_ptx))
            print_ptx_mark(o, f->code, ptx);
        last = at->location;
        last_ptx = ptx;
        print_instruction(o, s, at, most);
    }
    kp_out_text(o, "\n", 1);
}

void kp_write_source_listing(struct kp_out *o, const struct kp_view *v, const struct kp_source_function *f)
{
    if (o->display->source_ptx && !o->display->source_sass)
        print_ptx(o, v->source, f);
    else
        print_sass(o, v->source, f, o->display->source_ptx && f->code && f->code->n_ptx);
}
