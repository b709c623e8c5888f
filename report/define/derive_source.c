#include "report/define/derive_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "report/define/derive.h"
#include "report/define/sections.h"
#include "report/define/source.h"

enum { WARP = 32, BYTES_OF_INSTRUCTION = 16 };

#define PER_OPCODE   "sass__inst_executed_per_opcode"
#define PER_CATEGORY PER_OPCODE "_category"

/* How a metric is made of others. Facts: ncu's values of 14 launches agree with each. */
enum how {
    EXCESS,    /* differences at each instruction, whatever their sign */
    RATIOS,    /* of two metrics, at each instruction */
    LEFT,      /* the lanes that such ratios lack to a full warp; all of them for a never executed instruction */
    STEPS,     /* between the ratios of neighbouring instructions; a never executed one counts as 0 */
    BY_OPCODE, /* the metric, by basic opcode */
    BY_CATEGORY,
    BY_SPACE, /* of instructions that access memory, others do not count */
    BY_ACCESS,
    BY_SIZE,
    BY_MODIFIERS, /* by opcode with all its modifiers, as in the disassembly */
    SAMPLES,      /* of all reasons */
};

/* Rows of any other kind have the total of the metric itself. */
static const struct computed {
    const char *metric;
    enum how how;
    const char *counted, *other;
} computed[] = {
    {"derived__avg_thread_executed", RATIOS, "thread_inst_executed", KP_INST_EXECUTED},
    {"derived__avg_thread_executed_true", RATIOS, KP_THREADS_ON, KP_INST_EXECUTED},
    {"derived__avg_thread_unexecuted_true", LEFT, KP_THREADS_ON, KP_INST_EXECUTED},
    {"derived__derivative_avg_thread_executed_true", STEPS, KP_THREADS_ON, KP_INST_EXECUTED},
    {"derived__memory_l1_conflicts_shared_nway", RATIOS, KP_WAVEFRONTS, KP_INST_EXECUTED},
    {"derived__memory_l1_wavefronts_shared_excessive", EXCESS, KP_WAVEFRONTS, KP_WAVEFRONTS KP_IDEAL},
    {"derived__memory_l2_theoretical_sectors_global_excessive", EXCESS, KP_SECTORS, KP_SECTORS KP_IDEAL},
    {PER_OPCODE, BY_OPCODE, KP_INST_EXECUTED, NULL},
    {PER_CATEGORY, BY_CATEGORY, KP_INST_EXECUTED, NULL},
    {KP_SAMPLE_COUNT, SAMPLES, NULL, NULL},
};

/* The launch, and the code of each of its functions (empty = not known). */
struct launch {
    struct kp_result *r;
    struct kp_code *codes;
    const char *(*category)(const char *opcode);
    bool sampled, counted;
    struct kp_arena *keys; /* of mixes, if neither the code nor a table has them */
};

/* ---- values ---- */

static uint64_t total(const struct launch *l, const char *metric)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < l->r->n_counts; k++) {
        const uint64_t *values = kp_code_counts_find(&l->r->counts[k], metric);
        for (size_t i = 0; values && i < l->r->counts[k].n_offsets; i++)
            sum += values[i];
    }
    return sum;
}

static uint64_t all_samples(const struct launch *l)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < KP_STALL_REASONS; k++)
        sum += total(l, kp_stall_reasons[k].metric);
    return sum;
}

static uint64_t excess(const struct launch *l, const struct computed *c)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < l->r->n_counts; k++) {
        const struct kp_code_counts *s = &l->r->counts[k];
        const uint64_t *a = kp_code_counts_find(s, c->counted), *b = kp_code_counts_find(s, c->other);
        for (size_t i = 0; (a || b) && i < s->n_offsets; i++) {
            uint64_t x = a ? a[i] : 0, y = b ? b[i] : 0;
            sum += x > y ? x - y : y - x;
        }
    }
    return sum;
}

/* Counts the instructions of a function without the padding after its end: a jump to itself, and NOPs. */
static size_t without_padding(const struct kp_code *c)
{
    size_t n = c->n_instructions;
    while (n && c->instructions[n - 1].opcode && !strcmp(c->instructions[n - 1].opcode, "NOP"))
        n--;
    if (n && n < c->n_instructions && c->instructions[n - 1].opcode && !strcmp(c->instructions[n - 1].opcode, "BRA"))
        n--;
    return n;
}

/* The ratios of a function at all of its instructions, by offset. */
struct ratios {
    double sum, left, steps;
    double last; /* so far, and its place */
    uint32_t offset;
    bool any;
};

/* Rounds EXACT down because ncu's values at an instruction are whole numbers. EXACT is at least 0, so a cast suffices:
 * floor() may need libm, and the library only links libc. */
static void add_ratio(struct ratios *to, uint32_t offset, double exact)
{
    double ratio = (double)(uint64_t)exact, step = ratio - to->last;
    if (to->any && offset - to->offset == BYTES_OF_INSTRUCTION)
        to->steps += step < 0 ? -step : step;
    to->sum += ratio;
    to->left += ratio < WARP ? WARP - ratio : 0;
    to->last = ratio;
    to->offset = offset;
    to->any = true;
}

/* Adds a ratio for each instruction; code without values was never executed. Padding after the end does not count. */
static void add_ratios(const struct kp_code_counts *s, const struct kp_code *code, const struct computed *c,
                       struct ratios *to)
{
    const uint64_t *counted = kp_code_counts_find(s, c->counted), *of = kp_code_counts_find(s, c->other);
    size_t n_code = without_padding(code), j = 0;
    to->any = false;
    for (size_t i = 0; i < s->n_offsets; i++) {
        for (; j < n_code && code->instructions[j].offset < s->offsets[i]; j++)
            add_ratio(to, code->instructions[j].offset, 0);
        bool in_code = j < n_code && code->instructions[j].offset == s->offsets[i], executed = of && of[i];
        j += in_code;
        if (executed || in_code || !n_code)
            add_ratio(to, s->offsets[i], executed && counted ? (double)counted[i] / (double)of[i] : 0);
    }
    for (; j < n_code; j++)
        add_ratio(to, code->instructions[j].offset, 0);
}

static double ratios(const struct launch *l, const struct computed *c)
{
    struct ratios all = {0};
    for (size_t k = 0; k < l->r->n_counts; k++)
        add_ratios(&l->r->counts[k], &l->codes[k], c, &all);
    return c->how == LEFT ? all.left : c->how == STEPS ? all.steps : all.sum;
}

/* ---- mixes ---- */

struct share {
    const char *key; /* of code, static, or of the launch's keys */
    double value;
};

static int by_group_key(const void *a, const void *b)
{
    return strcmp(((const struct share *)a)->key, ((const struct share *)b)->key);
}

static int most_first(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    return x->value < y->value ? 1 : x->value > y->value ? -1 : strcmp(x->key, y->key);
}

static const struct memory_opcode {
    const char *opcode, *space, *access;
} memory_opcodes[] = {
#define KP_MEMORY_OPCODE(opcode, space, access) {opcode, space, access},
#include "report/define/memory_opcodes.def"
};

/* Returns what the opcode does with memory; "" for one that does not access it. */
static const char *memory_key(const char *opcode, enum how how)
{
    for (size_t i = 0; i < sizeof memory_opcodes / sizeof *memory_opcodes; i++)
        if (!strcmp(memory_opcodes[i].opcode, opcode))
            return how == BY_SPACE ? memory_opcodes[i].space : memory_opcodes[i].access;
    return "";
}

const char *kp_memory_space(const char *opcode)
{
    return opcode ? memory_key(opcode, BY_SPACE) : "";
}

const char *kp_memory_access(const char *opcode)
{
    return opcode ? memory_key(opcode, BY_ACCESS) : "";
}

/* Returns the bits that the instruction accesses; "" for one that accesses no memory, NULL if unknown. */
static const char *size_key(const struct launch *l, const struct kp_instruction *i)
{
    char bits[8];
    if (!*memory_key(i->opcode, BY_SPACE))
        return "";
    int len = snprintf(bits, sizeof bits, "%u", i->access_bits);
    return i->access_bits ? kp_arena_text(l->keys, bits, (size_t)len) : NULL;
}

/* Returns the opcode with its modifiers, which are between the predicate and the operands; NULL without a text. */
static const char *modifiers_key(const struct launch *l, const struct kp_instruction *i)
{
    const char *text = i->text ? i->text : "";
    if (*text == '@')
        text += strcspn(text, " ");
    text += strspn(text, " ");
    return *text ? kp_arena_text(l->keys, text, strcspn(text, " ")) : NULL;
}

/* Returns the key of the instruction in the mix; NULL if unknown, "" when the instruction does not count. */
static const char *group_key(const struct launch *l, const struct kp_code *code, uint32_t offset, enum how how)
{
    const struct kp_instruction *i = kp_code_at(code, offset);
    if (how == BY_MODIFIERS)
        return i ? modifiers_key(l, i) : NULL;
    if (!i || !i->opcode || !*i->opcode)
        return NULL;
    if (how == BY_SPACE || how == BY_ACCESS)
        return memory_key(i->opcode, how);
    if (how == BY_SIZE)
        return size_key(l, i);
    const char *category = how == BY_CATEGORY ? l->category(i->opcode) : i->opcode;
    return *category ? category : "Other";
}

/* Lists executed counts, one entry for each instruction. Sets *unknown if some have no key. */
static size_t list_shares(const struct launch *l, const struct computed *c, struct share *to, bool *unknown)
{
    size_t n = 0;
    for (size_t k = 0; k < l->r->n_counts; k++) {
        const struct kp_code_counts *s = &l->r->counts[k];
        const uint64_t *values = kp_code_counts_find(s, c->counted);
        for (size_t i = 0; values && i < s->n_offsets; i++) {
            const char *key = values[i] ? group_key(l, &l->codes[k], s->offsets[i], c->how) : NULL;
            if (key && *key)
                to[n++] = (struct share){key, (double)values[i]};
            *unknown |= values[i] && !key;
        }
    }
    return n;
}

static size_t put_together(struct share *shares, size_t n)
{
    size_t kinds = 0;
    qsort(shares, n, sizeof *shares, by_group_key);
    for (size_t i = 0; i < n; i++)
        if (kinds && !strcmp(shares[kinds - 1].key, shares[i].key))
            shares[kinds - 1].value += shares[i].value;
        else
            shares[kinds++] = shares[i];
    qsort(shares, kinds, sizeof *shares, most_first);
    return kinds;
}

static enum kp_reason why_unknown(enum how how)
{
    return how == BY_MODIFIERS ? KP_REASON_NOT_DISASSEMBLED
           : how == BY_SIZE    ? KP_REASON_ACCESS_SIZE
                               : KP_REASON_NO_OPCODES;
}

/* Returns true if an instruction may not count in the mix, so the mix may be empty. */
static bool may_be_empty(enum how how)
{
    return how == BY_SPACE || how == BY_ACCESS || how == BY_SIZE;
}

static int set_mix(const struct launch *l, const char *metric, const char *unit, const struct computed *c)
{
    size_t most = 1, n;
    bool unknown = false;
    for (size_t k = 0; k < l->r->n_counts; k++)
        most += l->r->counts[k].n_offsets;
    if (c->how == BY_CATEGORY && !l->category)
        return kp_result_set_na(l->r, metric, KP_REASON_NO_OPCODES);
    struct share *shares = malloc(most * sizeof *shares);
    const char **keys = malloc(most * sizeof *keys);
    double *values = malloc(most * sizeof *values);
    int rc = shares && keys && values ? 0 : -ENOMEM;
    if (rc)
        goto out;
    n = put_together(shares, list_shares(l, c, shares, &unknown));
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        keys[i] = shares[i].key;
        values[i] = shares[i].value;
        sum += (uint64_t)shares[i].value;
    }
    unknown |= !n && !may_be_empty(c->how);
    rc = unknown ? kp_result_set_na(l->r, metric, why_unknown(c->how)) : kp_result_set_count(l->r, metric, unit, sum);
    if (!rc && n && !unknown)
        rc = kp_result_set_instances(l->r, metric, keys, values, n);
out:
    free(shares);
    free(keys);
    free(values);
    return rc;
}

/* ---- rows ---- */

static const struct computed *find_computed(const char *metric)
{
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++)
        if (!strcmp(computed[i].metric, metric))
            return &computed[i];
    return NULL;
}

static bool is_counted(const struct kp_result *r, const char *metric)
{
    for (size_t k = 0; k < r->n_counts; k++)
        if (kp_code_counts_find(&r->counts[k], metric))
            return true;
    return false;
}

/* Returns true if a metric of accesses lacks its ideal: an ideal of 0 was not counted. */
static bool lacks_ideal(const struct launch *l, const char *metric, const struct computed *c)
{
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++) {
        const struct computed *e = &computed[i];
        if (e->how == EXCESS && (c == e || !strcmp(metric, e->other)))
            return !is_counted(l->r, e->other) && is_counted(l->r, e->counted);
    }
    return false;
}

static int set_computed(const struct launch *l, const struct kp_row *row, const struct computed *c)
{
    const char *unit = kp_row_unit(row);
    switch (c->how) {
    case EXCESS:
        return kp_result_set_count(l->r, row->metric, unit, excess(l, c));
    case RATIOS:
    case LEFT:
    case STEPS:
        return kp_result_set_real(l->r, row->metric, unit, ratios(l, c));
    case BY_OPCODE:
    case BY_CATEGORY:
    case BY_SPACE:
    case BY_ACCESS:
    case BY_SIZE:
    case BY_MODIFIERS:
        return set_mix(l, row->metric, unit, c);
    case SAMPLES:
        break;
    }
    /* The collector's own number may include samples that belong to no instruction. */
    return kp_result_find(l->r, row->metric) ? 0 : kp_result_set_count(l->r, row->metric, unit, all_samples(l));
}

static int set_row(const struct launch *l, const struct kp_row *row)
{
    const struct kp_launch_info *info = &l->r->launch;
    bool wanted = row->source == KP_SRC_PCSAMP ? l->sampled : row->source == KP_SRC_SASS && l->counted;
    if (!kp_cc_matches(row->cc, info->cc_major, info->cc_minor) || !(wanted || is_counted(l->r, row->metric)))
        return 0; /* so are nearly all rows, which are thousands */
    const struct kp_metric *held = kp_result_find(l->r, row->metric);
    if (held && held->kind == KP_VALUE_NA)
        return 0;
    const struct computed *c = find_computed(row->metric);
    if (lacks_ideal(l, row->metric, c))
        return kp_result_set_na(l->r, row->metric, KP_REASON_NO_IDEAL);
    return c ? set_computed(l, row, c)
             : kp_result_set_count(l->r, row->metric, kp_row_unit(row), total(l, row->metric));
}

/* ---- metrics that no section shows ---- */

/* Counts executed instructions of a basic opcode. */
static uint64_t executed(const struct launch *l, const char *opcode)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < l->r->n_counts; k++) {
        const struct kp_code_counts *s = &l->r->counts[k];
        const uint64_t *values = kp_code_counts_find(s, KP_INST_EXECUTED);
        for (size_t i = 0; values && i < s->n_offsets; i++) {
            const struct kp_instruction *at = kp_code_at(&l->codes[k], s->offsets[i]);
            if (at && at->opcode && !strcmp(at->opcode, opcode))
                sum += values[i];
        }
    }
    return sum;
}

static bool has_code(const struct launch *l)
{
    for (size_t k = 0; k < l->r->n_counts; k++)
        if (!l->codes[k].n_instructions)
            return false;
    return true;
}

static int set_mixes(const struct launch *l)
{
    static const struct {
        struct computed c;
        const char *unit;
    } mixes[] = {
#define KP_MIX_OF(name, unit, how, counted) {{name, how, counted, NULL}, unit},
#include "report/define/source_metrics.def"
    };
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof mixes / sizeof *mixes; i++)
        rc = set_mix(l, mixes[i].c.metric, mixes[i].unit, &mixes[i].c);
    return rc;
}

/* Sets metrics that ncu's raw page has wherever the counter was collected, even unasked. */
static int set_of_counters(const struct launch *l)
{
    static const struct {
        const char *metric, *counter;
    } rows[] = {
#define KP_OF_COUNTER(name, unit, counter) {name, counter},
#include "report/define/source_metrics.def"
    };
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof rows / sizeof *rows; i++)
        if (kp_result_find(l->r, rows[i].counter))
            rc = kp_derive(l->r, rows[i].metric);
    return rc;
}

/* Sets counts of spills; finding the instructions that are spills needs the code of all functions of the launch. */
static int set_spills(const struct launch *l)
{
    static const struct {
        const char *metric, *unit;
    } rows[] = {
#define KP_SPILL(name, unit, begin, end) {name, unit},
#include "report/define/source_metrics.def"
    };
    int rc = 0;
    if (!has_code(l))
        return 0;
    for (size_t i = 0; !rc && i < sizeof rows / sizeof *rows; i++)
        rc = kp_result_set_count(l->r, rows[i].metric, rows[i].unit, total(l, rows[i].metric));
    uint64_t all = total(l, rows[0].metric), accesses = executed(l, "LDL") + executed(l, "STL");
    if (!rc)
        rc = kp_result_set_count(l->r, "derived__local_spilling_requests", "", all);
    /* Formula: facts, sections. */
    return rc ? rc
              : kp_result_set_real(l->r, "derived__local_spilling_requests_pct", "%",
                                   accesses ? 100.0 * (double)all / (double)accesses : 0);
}

/* Sets the metrics that are made of counts and that no section shows. */
static int set_counted(const struct launch *l)
{
    int rc = set_of_counters(l);
    if (!rc)
        rc = set_mixes(l);
    return rc ? rc : set_spills(l);
}

/* Puts the kernel's own function before those that it calls. */
static void own_function_first(struct launch *l)
{
    const char *own = l->r->launch.mangled;
    size_t i = 0;
    while (i < l->r->n_counts && !(own && l->codes[i].function && !strcmp(l->codes[i].function, own)))
        i++;
    if (i == l->r->n_counts)
        return;
    struct kp_code_counts counts = l->r->counts[i];
    struct kp_code code = l->codes[i];
    memmove(l->r->counts + 1, l->r->counts, i * sizeof counts);
    memmove(l->codes + 1, l->codes, i * sizeof code);
    l->r->counts[0] = counts;
    l->codes[0] = code;
}

/* Finds the kinds of values: a kernel executes at least one instruction, but may end before it is sampled. */
static void find_kinds(struct launch *l)
{
    double samples;
    l->counted = is_counted(l->r, KP_INST_EXECUTED);
    l->sampled = kp_metric_number(kp_result_find(l->r, KP_SAMPLE_COUNT), &samples);
    for (size_t k = 0; k < KP_STALL_REASONS; k++)
        l->sampled |= is_counted(l->r, kp_stall_reasons[k].metric);
}

static int set_rows(const struct launch *l)
{
    size_t n;
    const struct kp_section *s = kp_sections_builtin(&n);
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; !rc && j < s[i].n_rows; j++)
            if (s[i].rows[j].kind != KP_ROW_BODY)
                rc = set_row(l, &s[i].rows[j]);
    return rc;
}

int kp_derive_source(struct kp_result *r, const struct kp_lookup *lookup, const char *(*category)(const char *opcode))
{
    struct kp_arena keys = {.blocks = NULL};
    struct launch l = {.r = r, .codes = calloc(r->n_counts + 1, sizeof *l.codes), .category = category, .keys = &keys};
    int rc = l.codes ? 0 : -ENOMEM;
    for (size_t k = 0; !rc && lookup && lookup->code && k < r->n_counts; k++) {
        rc = lookup->code(lookup->arg, r->counts[k].code, &l.codes[k]);
        if (rc != -ENOMEM && rc) {
            l.codes[k] = (struct kp_code){0};
            rc = 0;
        }
    }
    if (!rc)
        own_function_first(&l);
    find_kinds(&l);
    if (!rc && (l.sampled || r->n_counts))
        rc = set_rows(&l);
    if (!rc && l.counted)
        rc = set_counted(&l);
    for (size_t k = 0; l.codes && k < r->n_counts; k++)
        kp_code_free(&l.codes[k]);
    free(l.codes);
    kp_arena_free(&keys);
    return rc;
}

bool kp_derive_source_reads_texts(const char *metrics)
{
    static const struct {
        const char *name;
        enum how how;
    } mixes[] = {
#define KP_MIX_OF(name, unit, how, counted) {name, how},
#include "report/define/source_metrics.def"
    };
    const char *item;
    size_t len;
    while (metrics && kp_word_next(&metrics, &item, &len))
        for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
            if (mixes[i].how == BY_MODIFIERS && strlen(mixes[i].name) == len && !strncmp(mixes[i].name, item, len))
                return true;
    return false;
}
