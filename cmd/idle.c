#include "cmd/idle.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/console.h"
#include "cmd/query.h"
#include "report/options/options.h"

#define OF(field) offsetof(struct kp_options, field)

enum { ANY = -1, MAX_ROWS = 256 };

/* The needs of an option: another option that is on, not 0 and not empty, or that has the value. Several rows for an
 * option are alternatives, and are adjacent. */
static const struct need {
    size_t option, other;
    int value; /* of a choice; else ANY */
} needs[] = {
    {OF(trace_columns), OF(page), KP_PAGE_TRACE},
    {OF(print_source), OF(page), KP_PAGE_SOURCE},
    {OF(print_summary), OF(page), KP_PAGE_DETAILS},
    {OF(print_summary), OF(page), KP_PAGE_RAW},
    {OF(rule), OF(apply_rules), ANY},
    {OF(kernel_name_base), OF(kernel_name), ANY},
    {OF(kernel_name_base), OF(kernel_id), ANY},
    {OF(filter_mode), OF(launch_skip), ANY},
    {OF(filter_mode), OF(launch_count), ANY},
    {OF(nvtx_push_pop_scope), OF(nvtx), ANY},
    {OF(budget), OF(replay_mode), KP_REPLAY_AUTO},
    {OF(fallback), OF(replay_mode), KP_REPLAY_AUTO},
    {OF(fallback), OF(replay_mode), KP_REPLAY_KERNEL},
    {OF(save), OF(replay_mode), KP_REPLAY_AUTO},
    {OF(save), OF(replay_mode), KP_REPLAY_KERNEL},
    {OF(save), OF(replay_mode), KP_REPLAY_RANGE},
    {OF(save_time), OF(replay_mode), KP_REPLAY_AUTO},
    {OF(save_time), OF(replay_mode), KP_REPLAY_KERNEL},
    {OF(save_time), OF(replay_mode), KP_REPLAY_RANGE},
    {OF(rotate_key), OF(replay_mode), KP_REPLAY_ROTATE},
    {OF(app_replay_match), OF(replay_mode), KP_REPLAY_APPLICATION},
    {OF(app_replay_match), OF(replay_mode), KP_REPLAY_APP_RANGE},
    {OF(app_replay_mode), OF(replay_mode), KP_REPLAY_APPLICATION},
    {OF(app_replay_mode), OF(replay_mode), KP_REPLAY_APP_RANGE},
};

enum { NEEDS = sizeof needs / sizeof *needs };

static bool given[MAX_ROWS];

void kp_idle_note(const struct kp_option *row)
{
    size_t n;
    given[row - kp_option_rows(&n)] = true;
}

bool kp_idle_has_noted(size_t offset)
{
    size_t n;
    return given[kp_option_row(offset) - kp_option_rows(&n)];
}

/* Returns true if the option asks for something: its value is not empty, zero or off, nor a choice's default. */
static bool is_asked_for(const struct kp_options *o, const struct kp_option *row)
{
    const void *field = (const char *)o + row->offset;
    switch (row->kind) {
    case KP_OPT_SWITCH:
        return *(const bool *)field;
    case KP_OPT_COUNT:
    case KP_OPT_SIZE:
    case KP_OPT_TIME:
    case KP_OPT_DEVICES:
        return *(const uint64_t *)field > 0;
    case KP_OPT_AUTO_COUNT:
        return *(const int *)field != KP_OPTION_AUTO;
    case KP_OPT_CHOICE:
        return strcmp(row->words[*(const unsigned *)field], row->fallback) != 0;
    case KP_OPT_CHOICES:
        return true;
    default:
        return **(const char *const *)field;
    }
}

static bool is_met(const struct kp_options *o, const struct need *need)
{
    const struct kp_option *other = kp_option_row(need->other);
    const void *field = (const char *)o + need->other;
    if (need->value == ANY)
        return is_asked_for(o, other);
    if (other->kind == KP_OPT_CHOICE)
        return *(const unsigned *)field == (unsigned)need->value;
    return kp_choices_has(field, (unsigned)need->value);
}

/* "--page details or --page raw" */
static char *name_needs(const struct need *first, size_t n)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (size_t i = 0; f && i < n; i++) {
        const struct kp_option *row = kp_option_row(first[i].other);
        fprintf(f, "%s--%s%s%s", i ? " or " : "", row->flag, first[i].value == ANY ? "" : " ",
                first[i].value == ANY ? "" : row->words[first[i].value]);
    }
    if (f && kp_text_end(f, &text)) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Options that have no effect if the other is on. */
static const struct {
    size_t option, other;
} clashes[] = {
    {OF(print_metric_instances), OF(csv)},
};

static void tell_without_effect(const char *flag, const char *with, const char *other)
{
    char *line = NULL;
    if (asprintf(&line, "--%s has no effect with %s%s", flag, with, other) >= 0)
        kp_console_warn(line);
    free(line);
}

static void tell_clashes(const struct kp_options *o)
{
    size_t n;
    const struct kp_option *all = kp_option_rows(&n);
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++) {
        const struct kp_option *row = kp_option_row(clashes[i].option), *other = kp_option_row(clashes[i].other);
        if (given[row - all] && is_asked_for(o, row) && is_asked_for(o, other))
            tell_without_effect(row->flag, "--", other->flag);
    }
}

void kp_idle_tell(const struct kp_options *o)
{
    tell_clashes(o);
    size_t rows;
    const struct kp_option *all = kp_option_rows(&rows);
    for (size_t i = 0, n; i < NEEDS; i += n) {
        const struct kp_option *row = kp_option_row(needs[i].option);
        bool met = false;
        for (n = 0; i + n < NEEDS && needs[i + n].option == needs[i].option; n++)
            met |= is_met(o, &needs[i + n]);
        char *named = !met && given[row - all] && is_asked_for(o, row) ? name_needs(&needs[i], n) : NULL;
        char *line = NULL;
        const struct kp_option *other = kp_option_row(needs[i].other);
        const char *off = other->kind == KP_OPT_SWITCH && given[other - all] ? strchr(other->values, ',') : NULL;
        if (named && asprintf(&line, "--%s has no effect %s %s%s%s", row->flag, off ? "with" : "without", named,
                              off ? " " : "", off ? off + 1 : "") >= 0)
            kp_console_warn(line);
        free(line);
        free(named);
    }
}

bool kp_idle_heeds(const char *const *heeds, const char *flag)
{
    while (*heeds && strcmp(*heeds, flag) != 0)
        heeds++;
    return *heeds;
}

void kp_idle_tell_answer(const char *command, const char *const *heeds, const struct kp_query *q)
{
    size_t n, queries;
    const struct kp_option *rows = kp_option_rows(&n);
    const struct kp_query_flag *flags = kp_query_flags(&queries);
    for (size_t i = 0; i < n; i++)
        if (given[i] && !kp_idle_heeds(heeds, rows[i].flag))
            tell_without_effect(rows[i].flag, "kprof ", command);
    for (size_t i = 0; i < queries; i++)
        if (*flags[i].value && *(const char *const *)((const char *)q + flags[i].offset) &&
            !kp_idle_heeds(heeds, flags[i].flag))
            tell_without_effect(flags[i].flag, "kprof ", command);
}

void kp_idle_tell_overwrite(const struct kp_options *o, bool written, const char *writers)
{
    size_t n;
    const struct kp_option *row = kp_option_row(OF(force_overwrite));
    char *line = NULL;
    if (written || !o->force_overwrite || !given[row - kp_option_rows(&n)])
        return;
    if (asprintf(&line, "--%s has no effect without %s", row->flag, writers) >= 0)
        kp_console_warn(line);
    free(line);
}

void kp_idle_tell_lists(const struct kp_options *o, bool listed)
{
    static const size_t of_lists[] = {OF(sort), OF(top)};
    size_t n;
    const struct kp_option *all = kp_option_rows(&n);
    for (size_t i = 0; !listed && i < sizeof of_lists / sizeof *of_lists; i++) {
        const struct kp_option *row = kp_option_row(of_lists[i]);
        char *line = NULL;
        if (!given[row - all] || !is_asked_for(o, row))
            continue;
        if (asprintf(&line, "--%s has no effect without lists by kernel, which stand for many pairs (--brief-above)",
                     row->flag) >= 0)
            kp_console_warn(line);
        free(line);
    }
}

/* ---- what is written instead of pages ---- */

enum {
    HTML = KP_INSTEAD_HTML | KP_INSTEAD_OPEN,
    BARE = KP_INSTEAD_TRACE | KP_INSTEAD_FOLDED, /* has only times and names */
    EACH = KP_INSTEAD_JSON | HTML | BARE,
};

/* Options that have no effect on what is written instead of pages. Their dependents are reported above. */
static const struct unused {
    size_t option;
    unsigned written;
} unused[] = {
    {OF(page), EACH},
    {OF(csv), HTML | BARE},
    {OF(json), HTML | BARE},
    {OF(print_details), EACH},
    {OF(print_metric_name), EACH},
    {OF(print_units), EACH},
    {OF(print_metric_instances), EACH},
    {OF(print_summary), EACH},
    {OF(sort), EACH},
    {OF(top), EACH},
    {OF(color), EACH},
    {OF(brief_above), KP_INSTEAD_JSON | BARE},
    {OF(set), BARE},
    {OF(section), BARE},
    {OF(metrics), BARE},
    {OF(rule), BARE},
    {OF(source_folders), BARE},
    {OF(print_nvtx_rename), KP_INSTEAD_TRACE},
    {OF(kernel_name), KP_INSTEAD_TRACE},
    {OF(kernel_id), KP_INSTEAD_TRACE},
    {OF(launch_skip), KP_INSTEAD_TRACE},
    {OF(launch_count), KP_INSTEAD_TRACE},
    {OF(filter_mode), KP_INSTEAD_TRACE},
    {OF(devices), KP_INSTEAD_TRACE},
    {OF(nvtx_include), KP_INSTEAD_TRACE},
    {OF(nvtx_exclude), KP_INSTEAD_TRACE},
};

/* "--html and --trace-json"; more cannot be combined. */
static void name_written(unsigned written, char out[64])
{
    static const char *const names[] = {"--json", "--html", "--open", "--trace-json", "--folded"};
    size_t len = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (written >> i & 1)
            len += (size_t)snprintf(out + len, 64 - len, "%s%s", len ? " and " : "", names[i]);
}

void kp_idle_tell_instead(const struct kp_options *o, unsigned written)
{
    size_t n;
    const struct kp_option *all = kp_option_rows(&n);
    char names[64] = "";
    name_written(written, names);
    for (size_t i = 0; written && i < sizeof unused / sizeof *unused; i++) {
        const struct kp_option *row = kp_option_row(unused[i].option);
        bool idle = (unused[i].written & written) == written && given[row - all] && is_asked_for(o, row);
        char *line = NULL;
        if (idle && asprintf(&line, "--%s has no effect with %s", row->flag, names) >= 0)
            kp_console_warn(line);
        free(line);
    }
}
