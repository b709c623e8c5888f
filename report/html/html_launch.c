/* The list of all launches, and the sessions that they are of. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/text.h"
#include "report/html/parts.h"
#include "report/model/launch_names.h"
#include "report/view/roofs.h"
#include "report/write/cells.h"

/* --- what a launch refers to --- */

size_t kp_html_rule(struct kp_data *d, const struct kp_rule *rule, const struct kp_section *section)
{
    struct kp_draft draft;
    if (!kp_draft_begin(d, &draft))
        return 0;
    fprintf(draft.to, "[%zu,%zu,%zu]", kp_data_string(d, rule->id), kp_data_string(d, section->display),
            kp_data_string(d, rule->about));
    return kp_draft_add(d, &draft, KP_DATA_RULES);
}

/* Writes the ranges that are not push-pop ranges of the launching thread. */
static void write_others(struct kp_data *d, FILE *to, const struct kp_nvtx *n)
{
    const char *gap = "";
    for (size_t i = 0; i < n->n_ranges; i++) {
        const struct kp_nvtx_range *r = &n->ranges[i];
        if (r->kind == KP_NVTX_PUSH_POP && r->thread == n->thread)
            continue;
        fprintf(to, "%s%zu", gap, kp_data_string(d, *r->name ? r->name : kp_range_nameless));
        gap = ",";
    }
}

/* Returns the number of the path of NVTX ranges around a launch: push-pop ranges of its thread, outermost first; then,
 * in an array of their own, all others. */
static size_t path_of(struct kp_html *h, const struct kp_launch_info *l)
{
    struct kp_data *d = &h->data;
    struct kp_draft draft;
    struct kp_range_names names;
    int rc = kp_launch_ranges_find(&h->ranges, h->base.out.display->lookup, l, &names);
    d->rc = d->rc ? d->rc : rc;
    if (kp_draft_begin(d, &draft)) {
        fputs("[[", draft.to);
        for (size_t i = 0; i < names.n; i++)
            fprintf(draft.to, "%s%zu", i ? "," : "", kp_data_string(d, names.at[i]));
        fputs("],[", draft.to);
        write_others(d, draft.to, &l->nvtx);
        fputs("]]", draft.to);
    }
    free(names.at);
    return kp_draft_add(d, &draft, KP_DATA_PATHS);
}

/* Returns the number of the call stack, the innermost frame first. */
static size_t stack_of(struct kp_data *d, const struct kp_lookup *lookup, uint64_t id)
{
    struct kp_stack stack = {0};
    struct kp_draft draft;
    if (kp_lookup_stack(lookup, id, &stack))
        stack = (struct kp_stack){0};
    if (kp_draft_begin(d, &draft)) {
        fputc('[', draft.to);
        for (size_t i = 0; i < stack.n_frames; i++) {
            const struct kp_frame *f = &stack.frames[i];
            fprintf(draft.to, "%s[%zu,%zu,%" PRIu32 ",%d,%zu]", i ? "," : "", kp_data_string(d, f->function),
                    kp_data_string(d, f->file), f->line, f->kind == KP_FRAME_PYTHON,
                    kp_data_string(d, kp_base_name(f->module)));
        }
        fputc(']', draft.to);
    }
    kp_frames_free(&stack);
    return kp_draft_add(d, &draft, KP_DATA_STACKS);
}

/* --- rooflines --- */

static void write_rates(struct kp_data *d, FILE *to, const struct kp_roofs *r, const struct kp_rates *rates)
{
    fprintf(to, "[%zu,%d,", kp_data_string(d, rates->name), rates->is_point);
    kp_data_real(to, rates->work);
    fputc(',', to);
    kp_data_real(to, rates->traffic);
    fprintf(to, ",%ld]", rates->roof ? (long)(rates->roof - r->all) : -1L);
}

void kp_html_roofs(struct kp_data *d, FILE *to, const struct kp_lines *lines)
{
    struct kp_roofs r;
    int rc = kp_roofs_of(lines, &r);
    d->rc = d->rc ? d->rc : rc;
    if (rc)
        return;
    fprintf(to, "[%zu,[", kp_data_string(d, r.operation));
    for (size_t i = 0; i < r.n; i++) {
        fputs(i ? "," : "", to);
        write_rates(d, to, &r, &r.all[i]);
    }
    fputs("]]", to);
    kp_roofs_free(&r);
}

/* Writes the first roofline that the launch has all values of; null without any. */
static void write_roofline(struct kp_data *d, FILE *to, const struct kp_shown *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct kp_section *section = s->sections[i];
        struct kp_lines lines = {0};
        size_t at = kp_rows_before_bodies(section, KP_ROW_EXTRA);
        bool drawn = at < section->n_rows && section->rows[at].body == KP_BODY_ROOFLINE;
        int rc = drawn
                     ? kp_lines_of_rows(section, at + 1, kp_section_body_end(section, at + 1), &s->view, false, &lines)
                     : 0;
        d->rc = d->rc ? d->rc : rc;
        bool has = !rc && lines.n;
        if (has)
            kp_html_roofs(d, to, &lines);
        kp_lines_free(&lines);
        if (has)
            return;
    }
    fputs("null", to);
}

/* --- a launch --- */

/* Writes what each rule would save, in percent of the launch: of several messages of a rule the best. See summary.c. */
static void write_savings(struct kp_data *d, FILE *to, const struct kp_messages *m)
{
    const char *gap = "";
    fputc('[', to);
    for (size_t i = 0; i < m->n; i++) {
        const struct kp_message *at = &m->list[i];
        double best = 0;
        bool first = true;
        for (size_t j = 0; j < m->n; j++) {
            const struct kp_message *other = &m->list[j];
            if (other->rule != at->rule)
                continue;
            first &= j >= i;
            if (other->global && !other->rule->ceiling && other->speedup > best)
                best = other->speedup;
        }
        if (!first || !(best > 0))
            continue;
        fprintf(to, "%s[%zu,", gap, kp_html_rule(d, at->rule, at->section));
        kp_data_real(to, best);
        fputc(']', to);
        gap = ",";
    }
    fputc(']', to);
}

static double duration_of(const struct kp_result *r)
{
    double ns;
    return kp_result_mean_duration(r, &ns) ? ns : NAN;
}

static void write_verdict(struct kp_data *d, FILE *to, const struct kp_shown *s)
{
    struct kp_verdict v;
    kp_verdict(s->view.result, s->view.session, s->gains, &v);
    fprintf(to, ",%zu,", kp_data_string(d, v.what));
    kp_data_real(to, v.compute);
    fputc(',', to);
    kp_data_real(to, v.memory);
    fputc(',', to);
    write_savings(d, to, s->gains);
}

size_t kp_html_launch(struct kp_html *h, const struct kp_shown *s, long full)
{
    struct kp_data *d = &h->data;
    const struct kp_launch_info *l = &s->view.result->launch;
    struct kp_draft draft;
    if (!kp_draft_begin(d, &draft))
        return 0;
    FILE *to = draft.to;
    fprintf(to, "[%zu,%" PRIu64 ",%zu,%d,%" PRIu64 ",%" PRIu64 ",", d->parts[KP_DATA_SESSIONS].n, l->id,
            kp_data_string(d, kp_launch_name(l)), l->device, l->stream_id, l->context_id);
    if (l->kind == KP_WORKLOAD_KERNEL)
        fprintf(to, "[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", l->grid[0], l->grid[1],
                l->grid[2], l->block[0], l->block[1], l->block[2]);
    else
        fputs("null", to);
    fprintf(to, ",%zu,%zu,", path_of(h, l), stack_of(d, h->base.out.display->lookup, l->stack));
    kp_data_real(to, duration_of(s->view.result));
    write_verdict(d, to, s);
    fputc(',', to);
    write_roofline(d, to, s);
    fprintf(to, ",%ld,%" PRIu32 ",%zu,\"%d.%d\",%zu,%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 "]", full, l->passes,
            kp_data_string(d, l->note), l->cc_major, l->cc_minor, kp_data_string(d, l->nvtx.stream_name),
            l->graph_number, l->node, l->ordinal, kp_launch_weight(l));
    return kp_draft_add(d, &draft, KP_DATA_LAUNCHES);
}

/* --- a session --- */

/* Returns the rank from the environment; -1 for none. */
static long rank_of(const struct kp_session *s)
{
    size_t len;
    const char *rank = kp_environment_rank(s->environment ? s->environment : "", &len);
    return rank ? strtol(rank, NULL, 10) : -1;
}

static void write_devices(struct kp_data *d, FILE *to, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct kp_device_info *at = &s->devices[i];
        fprintf(to, "%s[%d,%zu,%zu,\"%d.%d\",%" PRIu32 "]", i ? "," : "", at->ordinal, kp_data_string(d, at->name),
                kp_data_string(d, at->chip), at->cc_major, at->cc_minor, at->sm_count);
    }
}

static void write_skips(struct kp_data *d, FILE *to, const struct kp_session *s)
{
    for (size_t i = 0; i < s->n_skips; i++)
        fprintf(to, "%s[%zu,%" PRIu64 "]", i ? "," : "", kp_data_string(d, kp_why_text(&s->skips[i].why)),
                s->skips[i].count);
}

void kp_html_session(struct kp_html *h, const struct kp_choice *choice)
{
    const struct kp_session *s = h->base.session;
    struct kp_data *d = &h->data;
    char *facts = kp_draft_take(d, &h->facts);
    struct kp_draft draft;
    if (kp_draft_begin(d, &draft)) {
        fprintf(draft.to,
                "{\"at\":%zu,\"file\":%zu,\"name\":%zu,\"host\":%zu,\"command\":%zu,\"pid\":%" PRIu64 ",\"rank\":%ld",
                d->parts[KP_DATA_SESSIONS].n, kp_data_string(d, h->base.out.display->file),
                kp_data_string(d, kp_write_process_name(s)), kp_data_string(d, s->host), kp_data_string(d, s->cmdline),
                s->pid, rank_of(s));
        fprintf(draft.to, ",\"start\":%" PRId64 ",\"complete\":%d,\"seen\":%" PRIu64 ",\"profiled\":%" PRIu64,
                s->start_unix_ns / 1000000, s->complete, s->launches_seen, s->launches_profiled);
        fprintf(draft.to, ",\"passes\":%" PRIu64 ",\"took\":", s->passes);
        kp_data_real(draft.to, s->profiling_ns);
        if (choice)
            fprintf(draft.to, ",\"shown\":%" PRIu64 ",\"stored\":%" PRIu64, choice->shown, choice->stored);
        fputs(",\"devices\":[", draft.to);
        write_devices(d, draft.to, s);
        fputs("],\"skips\":[", draft.to);
        write_skips(d, draft.to, s);
        fprintf(draft.to, "],\"facts\":[%s]", facts ? facts : "");
        kp_html_timeline(h, draft.to);
        fputc('}', draft.to);
    }
    kp_draft_add(d, &draft, KP_DATA_SESSIONS);
    kp_launch_ranges_free(&h->ranges);
    free(facts);
}
