#include "cmd/idle.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/console.h"
#include "report/options/options.h"

#define OF(field) offsetof(struct kp_options, field)

enum { ANY = -1, MAX_ROWS = 256 };

/* The needs of an option: another option that is on, not 0 and not empty, or that has the value. Several rows for an
 * option are alternatives, and are adjacent. */
static const struct need {
    size_t option, other;
    int value; /* of a choice; else ANY */
} needs[] = {
    {OF(csv_defuse), OF(csv), ANY},
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
    {OF(app_replay_match), OF(replay_mode), ANY},
    {OF(app_replay_mode), OF(replay_mode), ANY},
    {OF(force_overwrite), OF(export_file), ANY},
    {OF(force_overwrite), OF(session_file), ANY},
};

enum { NEEDS = sizeof needs / sizeof *needs };

static bool given[MAX_ROWS];

void kp_idle_note(const struct kp_option *row)
{
    size_t n;
    given[row - kp_option_rows(&n)] = true;
}

/* Whether the option asks for something: its value is not empty, zero or off, nor a choice's default. */
static bool is_asked_for(const struct kp_options *o, const struct kp_option *row)
{
    const void *field = (const char *)o + row->offset;
    switch (row->kind) {
    case KP_OPT_SWITCH:
        return *(const bool *)field;
    case KP_OPT_COUNT:
        return *(const uint64_t *)field > 0;
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
    if (need->value == ANY)
        return is_asked_for(o, kp_option_row(need->other));
    return kp_choices_has((const struct kp_choices *)((const char *)o + need->other), (unsigned)need->value);
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

void kp_idle_tell(const struct kp_options *o)
{
    size_t rows;
    const struct kp_option *all = kp_option_rows(&rows);
    for (size_t i = 0, n; i < NEEDS; i += n) {
        const struct kp_option *row = kp_option_row(needs[i].option);
        bool met = false;
        for (n = 0; i + n < NEEDS && needs[i + n].option == needs[i].option; n++)
            met |= is_met(o, &needs[i + n]);
        char *named = !met && given[row - all] && is_asked_for(o, row) ? name_needs(&needs[i], n) : NULL;
        char *line = NULL;
        if (named && asprintf(&line, "--%s has no effect without %s", row->flag, named) >= 0)
            kp_console_warn(line);
        free(line);
        free(named);
    }
}
