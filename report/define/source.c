#include "report/define/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"
#include "report/define/code_cache.h"

const struct kp_stall_reason kp_stall_reasons[KP_STALL_REASONS] = {
#define KP_STALL_REASON(reason, state, label, unit, cc) {KP_STALL_PREFIX #reason, #state, label},
#include "report/define/stalls.def"
};

const char kp_source_section[] = "SourceCounters";

/* The counted values; the others are computed from them. */
static const char *const counted[KP_AT_VALUES] = {
    [KP_AT_INSTRUCTIONS] = KP_INST_EXECUTED,
    [KP_AT_DIVERGENT] = "smsp__branch_targets_threads_divergent",
    [KP_AT_SECTORS] = KP_SECTORS,
    [KP_AT_SECTORS_IDEAL] = KP_SECTORS KP_IDEAL,
    [KP_AT_WAVEFRONTS] = KP_WAVEFRONTS,
    [KP_AT_WAVEFRONTS_IDEAL] = KP_WAVEFRONTS KP_IDEAL,
};

static const char unnamed[] = "kernel"; /* for code that is not available */
enum { DEEPEST = 64 /* code inlined into inlined code; anything deeper counts as a circle */ };

/* ---- locations ---- */

static const struct kp_location *location_at(const struct kp_code *c, uint32_t index_plus_1)
{
    return index_plus_1 && index_plus_1 <= c->n_locations ? &c->locations[index_plus_1 - 1] : NULL;
}

const struct kp_location *kp_location_parent(const struct kp_code *c, const struct kp_location *l, unsigned *steps)
{
    return ++*steps > DEEPEST ? NULL : location_at(c, l->parent);
}

const char *kp_location_path(const struct kp_code *c, const struct kp_location *l)
{
    return l->file < c->n_files && c->files[l->file].path ? c->files[l->file].path : "";
}

/* ---- sums ---- */

static uint64_t beyond(uint64_t value, uint64_t ideal)
{
    return value > ideal ? value - ideal : 0;
}

void kp_source_sums_of(const struct kp_source_map *s, const struct kp_source_instruction *i, struct kp_source_sums *out)
{
    const struct kp_source_function *f = &s->functions[i->function];
    *out = (struct kp_source_sums){0};
    if (i->at == SIZE_MAX)
        return;
    for (size_t k = 0; k < KP_AT_VALUES; k++)
        out->v[k] = f->values[k] ? f->values[k][i->at] : 0;
    for (size_t k = 0; k < KP_STALL_REASONS; k++) {
        out->stalls[k] = f->stalls[k] ? f->stalls[k][i->at] : 0;
        out->v[KP_AT_SAMPLES] += out->stalls[k];
    }
    /* an ideal that is 0 everywhere was not counted */
    if (f->values[KP_AT_SECTORS_IDEAL])
        out->v[KP_AT_SECTORS_EXCESS] = beyond(out->v[KP_AT_SECTORS], out->v[KP_AT_SECTORS_IDEAL]);
    if (f->values[KP_AT_WAVEFRONTS_IDEAL])
        out->v[KP_AT_WAVEFRONTS_EXCESS] = beyond(out->v[KP_AT_WAVEFRONTS], out->v[KP_AT_WAVEFRONTS_IDEAL]);
}

static void add_sums(struct kp_source_sums *to, const struct kp_source_sums *more)
{
    for (size_t k = 0; k < KP_AT_VALUES; k++)
        to->v[k] += more->v[k];
    for (size_t k = 0; k < KP_STALL_REASONS; k++)
        to->stalls[k] += more->stalls[k];
}

static int ptx_by_line(const void *a, const void *b)
{
    uint32_t x = ((const struct kp_ptx_line *)a)->line, y = ((const struct kp_ptx_line *)b)->line;
    return (x > y) - (x < y);
}

void kp_source_sums_of_ptx(const struct kp_source_map *s, const struct kp_source_function *f,
                           struct kp_source_sums *out)
{
    const struct kp_code *c = f->code;
    memset(out, 0, (c->n_ptx + 1) * sizeof *out);
    for (size_t i = f->first; i < f->end; i++) {
        const struct kp_instruction *at = s->instructions[i].code;
        struct kp_ptx_line key = {.line = at ? at->ptx : 0}, *line = NULL;
        struct kp_source_sums one;
        if (c->n_ptx)
            line = bsearch(&key, c->ptx, c->n_ptx, sizeof key, ptx_by_line);
        kp_source_sums_of(s, &s->instructions[i], &one);
        add_sums(&out[line ? (size_t)(line - c->ptx) : c->n_ptx], &one);
    }
}

const struct kp_stall_reason *kp_source_main_stall(const struct kp_source_sums *sums)
{
    size_t most = 0;
    for (size_t k = 1; k < KP_STALL_REASONS; k++)
        if (sums->stalls[k] > sums->stalls[most])
            most = k;
    return sums->stalls[most] ? &kp_stall_reasons[most] : NULL;
}

/* ---- instructions ---- */

static void find_values(struct kp_source_function *f)
{
    for (size_t k = 0; k < KP_AT_VALUES; k++)
        f->values[k] = counted[k] ? kp_code_counts_find(f->counts, counted[k]) : NULL;
    for (size_t k = 0; k < KP_STALL_REASONS; k++)
        f->stalls[k] = kp_code_counts_find(f->counts, kp_stall_reasons[k].metric);
}

/* Merges the instructions of the code with those that have values, in one order. */
static void merge(struct kp_source_map *s, uint32_t function)
{
    struct kp_source_function *f = &s->functions[function];
    const struct kp_code *c = f->code;
    const struct kp_code_counts *counts = f->counts;
    size_t n_code = c ? c->n_instructions : 0, i = 0, at = 0;
    f->first = s->n_instructions;
    while (i < n_code || at < counts->n_offsets) {
        const struct kp_instruction *next = i < n_code ? &c->instructions[i] : NULL;
        bool has = at < counts->n_offsets && (!next || counts->offsets[at] <= next->offset);
        if (has && next && counts->offsets[at] < next->offset)
            next = NULL;
        const struct kp_location *l = next ? location_at(c, next->location) : NULL;
        s->instructions[s->n_instructions++] =
            (struct kp_source_instruction){.function = function,
                                           .offset = next ? next->offset : counts->offsets[at],
                                           .code = next,
                                           .location = l && *kp_location_path(c, l) ? l : NULL,
                                           .at = has ? at : SIZE_MAX};
        s->has_lines |= s->instructions[s->n_instructions - 1].location != NULL;
        i += next != NULL;
        at += has;
    }
    f->end = s->n_instructions;
    s->has_code |= n_code > 0;
}

static int load_functions(const struct kp_result *r, struct kp_source_map *s)
{
    size_t most = 0;
    int rc = 0;
    s->functions = calloc(r->n_counts, sizeof *s->functions);
    if (!s->functions)
        return -ENOMEM;
    for (size_t i = 0; !rc && i < r->n_counts; i++) {
        struct kp_source_function *f = &s->functions[i];
        f->counts = &r->counts[i];
        rc = kp_codecache_code(s->cache, f->counts->code, &f->code);
        find_values(f);
        most += f->counts->n_offsets + (f->code ? f->code->n_instructions : 0);
    }
    s->n_functions = r->n_counts;
    s->instructions = rc ? NULL : calloc(most + 1, sizeof *s->instructions);
    if (!s->instructions)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_functions; i++)
        merge(s, (uint32_t)i);
    return 0;
}

/* ---- lines ---- */

/* Groups instructions into lines, by file, line, function and offset; the later fields distinguish the calls that
 * inlined the line. */
struct key {
    const char *file;
    uint32_t line, function, offset;
    const char *site_file;
    uint32_t site_line;
    size_t instruction;
};

static struct key key_of(const struct kp_source_map *s, size_t index)
{
    const struct kp_source_instruction *i = &s->instructions[index];
    const struct kp_code *c = s->functions[i->function].code;
    struct key k = {.file = "", .site_file = "", .instruction = index};
    unsigned steps = 0;
    if (!i->location) {
        k.function = i->function;
        k.offset = s->has_lines ? 0 : i->offset;
        return k;
    }
    const struct kp_location *site = kp_location_parent(c, i->location, &steps);
    k.file = kp_location_path(c, i->location);
    k.line = i->location->line;
    if (site) {
        k.site_file = kp_location_path(c, site);
        k.site_line = site->line;
    }
    return k;
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Compares paths; paths of one code are mostly the same pointer. */
static int by_path(const char *x, const char *y)
{
    return x == y ? 0 : strcmp(x, y);
}

static int by_line(const struct key *x, const struct key *y)
{
    int order = by_path(x->file, y->file);
    order = order ? order : compare(x->line, y->line);
    order = order ? order : compare(x->function, y->function);
    return order ? order : compare(x->offset, y->offset);
}

static int by_site(const struct key *x, const struct key *y)
{
    int order = by_path(x->site_file, y->site_file);
    return order ? order : compare(x->site_line, y->site_line);
}

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = by_line(x, y);
    order = order ? order : by_site(x, y);
    return order ? order : compare(x->instruction, y->instruction);
}

static int by_heat(const struct kp_source_sums *x, const struct kp_source_sums *y)
{
    int order = compare(y->v[KP_AT_SAMPLES], x->v[KP_AT_SAMPLES]);
    return order ? order : compare(y->v[KP_AT_INSTRUCTIONS], x->v[KP_AT_INSTRUCTIONS]);
}

/* Makes the lines of sorted keys, in their order. */
static void fill_lines(struct kp_source_map *s, const struct key *keys)
{
    struct kp_source_sums sums, hottest = {0};
    for (size_t i = 0; i < s->n_instructions; i++) {
        const struct key *k = &keys[i], *before = i ? k - 1 : NULL;
        bool fresh = !before || by_line(before, k);
        struct kp_source_line *line = &s->lines[fresh ? s->n_lines++ : s->n_lines - 1];
        kp_source_sums_of(s, &s->instructions[k->instruction], &sums);
        if (fresh || by_heat(&sums, &hottest) < 0) {
            line->hottest = k->instruction;
            hottest = sums;
        }
        line->sites += (*k->site_file || k->site_line) && (fresh || by_site(before, k));
        add_sums(&line->sums, &sums);
        add_sums(&s->all, &sums);
        s->instructions[k->instruction].line = s->n_lines - 1;
    }
}

static int hottest_first(const void *a, const void *b)
{
    const struct kp_source_line *x = a, *y = b;
    int order = by_heat(&x->sums, &y->sums);
    return order ? order : compare(x->hottest, y->hottest);
}

/* Renumbers the instructions after the lines were sorted. */
static int renumber(struct kp_source_map *s)
{
    size_t *place = calloc(s->n_lines + 1, sizeof *place);
    if (!place)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_lines; i++)
        place[s->instructions[s->lines[i].hottest].line] = i;
    for (size_t i = 0; i < s->n_instructions; i++)
        s->instructions[i].line = place[s->instructions[i].line];
    free(place);
    return 0;
}

static int load_lines(struct kp_source_map *s)
{
    struct key *keys = calloc(s->n_instructions + 1, sizeof *keys);
    s->lines = calloc(s->n_instructions + 1, sizeof *s->lines);
    if (!keys || !s->lines) {
        free(keys);
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->n_instructions; i++)
        keys[i] = key_of(s, i);
    qsort(keys, s->n_instructions, sizeof *keys, by_key);
    fill_lines(s, keys);
    free(keys);
    qsort(s->lines, s->n_lines, sizeof *s->lines, hottest_first);
    s->has_samples = s->all.v[KP_AT_SAMPLES] > 0;
    return renumber(s);
}

int kp_source_load(const struct kp_result *r, struct kp_code_cache *cache, struct kp_source_map *out)
{
    *out = (struct kp_source_map){.cache = cache};
    if (!r->n_counts)
        return 0;
    kp_codecache_trim(cache);
    int rc = load_functions(r, out);
    if (!rc)
        rc = load_lines(out);
    if (rc)
        kp_source_free(out);
    return rc;
}

void kp_source_free(struct kp_source_map *s)
{
    free(s->functions);
    free(s->instructions);
    free(s->lines);
    *s = (struct kp_source_map){0};
}

void kp_make_printable(char *text)
{
    bool shown;
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = kp_text_shown_len(text, left, &shown);
        if (!shown)
            memset(text, '?', n);
    }
}

/* Returns the outermost call that the location is inlined at: users change their own code, not a library's header. NULL
 * = none. */
static const struct kp_location *outermost_site(const struct kp_code *c, const struct kp_location *l)
{
    const struct kp_location *site = NULL;
    unsigned steps = 0;
    while ((l = kp_location_parent(c, l, &steps)))
        site = l;
    return site;
}

static int name_location(const struct kp_code *c, const struct kp_location *l, char **out)
{
    const struct kp_location *site = outermost_site(c, l);
    const char *file = kp_base_name(kp_location_path(c, l));
    return site ? asprintf(out, "%s:%u, inlined at %s:%u", file, l->line, kp_base_name(kp_location_path(c, site)),
                           site->line)
                : asprintf(out, "%s:%u", file, l->line);
}

char *kp_source_place(const struct kp_source_map *s, const struct kp_source_line *line)
{
    const struct kp_source_instruction *i = &s->instructions[line->hottest];
    const struct kp_code *c = s->functions[i->function].code;
    char *place, *function = kp_demangle_base(c ? c->function : unnamed);
    int n = !function      ? -1
            : i->location  ? name_location(c, i->location, &place)
            : s->has_lines ? asprintf(&place, "%s", function)
                           : asprintf(&place, "%s+0x%x", function, i->offset);
    free(function);
    if (n < 0)
        return NULL;
    kp_make_printable(place);
    return place;
}

/* ---- hottest lines ---- */

#define FP64_PAIRS "DADD,DMUL"

/* How each quantity counts at an instruction: `times` one metric, of opcodes ("" = all), without another. */
static const struct measure {
    const char *metric, *without; /* NULL: all samples; nothing */
    uint64_t times;
    const char *opcodes;
    const char *what;
} measures[KP_HOTS] = {
    [KP_HOT_SAMPLES] = {NULL, NULL, 1, "", "the samples"},
    [KP_HOT_GLOBAL] = {KP_SECTORS, KP_SECTORS KP_IDEAL, 1, "", "these sectors"},
    [KP_HOT_global_ld] = {KP_SECTORS, KP_SECTORS KP_IDEAL, 1, "LD,LDG,LDGSTS", "the sectors beyond the ideal"},
    [KP_HOT_global_st] = {KP_SECTORS, KP_SECTORS KP_IDEAL, 1, "ST,STG", "the sectors beyond the ideal"},
    [KP_HOT_LOCAL] = {KP_SECTORS_LOCAL, NULL, 1, "", "these sectors"},
    [KP_HOT_local_ld] = {KP_SECTORS_LOCAL, NULL, 1, "LD,LDL", "the sectors of local loads"},
    [KP_HOT_local_st] = {KP_SECTORS_LOCAL, NULL, 1, "ST,STL", "the sectors of local stores"},
    [KP_HOT_SHARED] = {KP_WAVEFRONTS, KP_WAVEFRONTS KP_IDEAL, 1, "", "these wavefronts"},
    [KP_HOT_shared_ld] = {KP_WAVEFRONTS, KP_WAVEFRONTS KP_IDEAL, 1, "LD,LDS,LDSM", "the wavefronts beyond the ideal"},
    [KP_HOT_shared_st] = {KP_WAVEFRONTS, KP_WAVEFRONTS KP_IDEAL, 1, "ST,STS,STSM", "the wavefronts beyond the ideal"},
    [KP_HOT_IDLE_THREADS] = {KP_INST_EXECUTED, KP_THREADS_ON, 32, "", "the idle threads' instructions"},
    [KP_HOT_FP64] = {KP_INST_EXECUTED, NULL, 1, FP64_PAIRS ",DFMA,DMNMX,DSETP", "the FP64 instructions"},
    [KP_HOT_SINGLE32] = {KP_INST_EXECUTED, NULL, 1, "FADD,FMUL", "the non-fused ones"},
    [KP_HOT_SINGLE64] = {KP_INST_EXECUTED, NULL, 1, FP64_PAIRS, "the non-fused ones"},
};

static bool is_one_of(const char *opcodes, const struct kp_source_instruction *i)
{
    const char *item;
    size_t len;
    if (!*opcodes)
        return true;
    if (!i->code || !i->code->opcode)
        return false;
    size_t base = strcspn(i->code->opcode, ".");
    while (kp_list_next(&opcodes, &item, &len))
        if (len == base && !strncmp(item, i->code->opcode, len))
            return true;
    return false;
}

/* Adds the quantity of each line to `sums`; returns the total. */
static uint64_t sum_up(const struct kp_source_map *s, const struct measure *m, uint64_t *sums)
{
    uint64_t all = 0;
    for (size_t k = 0; k < s->n_functions; k++) {
        const struct kp_source_function *f = &s->functions[k];
        const uint64_t *value = kp_code_counts_find(f->counts, m->metric);
        const uint64_t *less = m->without ? kp_code_counts_find(f->counts, m->without) : NULL;
        if (m->without && !less)
            continue; /* not counted */
        for (size_t j = f->first; value && j < f->end; j++) {
            const struct kp_source_instruction *i = &s->instructions[j];
            if (i->at == SIZE_MAX || !is_one_of(m->opcodes, i))
                continue;
            uint64_t one = beyond(m->times * value[i->at], less ? less[i->at] : 0);
            sums[i->line] += one;
            all += one;
        }
    }
    return all;
}

static const struct kp_source_line *hottest(const struct kp_source_map *s, const struct measure *m, double *share)
{
    uint64_t *sums = calloc(s->n_lines + 1, sizeof *sums), all = sums ? sum_up(s, m, sums) : 0;
    size_t most = 0;
    for (size_t i = 1; all && i < s->n_lines; i++)
        if (sums[i] > sums[most])
            most = i;
    *share = all ? (double)sums[most] / (double)all : 0;
    free(sums);
    return all ? &s->lines[most] : NULL;
}

const struct kp_source_line *kp_source_hottest(const struct kp_source_map *s, enum kp_hot hot, double *share,
                                               const char **what)
{
    const struct measure *m = &measures[hot];
    *what = m->what;
    if (m->metric)
        return hottest(s, m, share);
    *share = s->has_samples ? (double)s->lines->sums.v[KP_AT_SAMPLES] / (double)s->all.v[KP_AT_SAMPLES] : 0;
    return s->has_samples ? s->lines : NULL;
}

const struct kp_source_line *kp_source_hottest_stall(const struct kp_source_map *s, const char *state, double *share,
                                                     const char **what)
{
    for (size_t k = 0; k < KP_STALL_REASONS; k++)
        if (!strcmp(kp_stall_reasons[k].state, state)) {
            *what = "its samples";
            return hottest(s, &(struct measure){kp_stall_reasons[k].metric, NULL, 1, "", ""}, share);
        }
    return NULL;
}
