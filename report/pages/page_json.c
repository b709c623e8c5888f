/*
 * Prints the whole session as JSON. docs/kprof.schema.json describes it, and changes with this file. Additions keep
 * the version; renamed, removed or redefined members need a new one.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/text.h"
#include "report/define/source.h"
#include "report/define/units.h"
#include "report/model/launch_names.h"
#include "report/pages/json_code.h"
#include "report/pages/page_body.h"
#include "report/view/narrow.h"
#include "report/view/shown.h"
#include "report/view/variants.h"

enum { VERSION = 1 };
static const char schema[] = "kprof-session", schema_of_several[] = "kprof-sessions";

/* Writes a comma list as an array of strings. */
static int write_list(struct kp_json *j, const char *key, const char *list, size_t size)
{
    char *copy = strndup(list ? list : "", size);
    const char *cursor = copy, *item;
    size_t len;
    int rc = copy ? 0 : -ENOMEM;
    kp_json_array(j, key, true);
    while (!rc && kp_list_next(&cursor, &item, &len)) {
        char *word = strndup(item, len);
        rc = word ? 0 : -ENOMEM;
        if (word)
            kp_json_text(j, NULL, word);
        free(word);
    }
    kp_json_end(j);
    free(copy);
    return rc;
}

static void write_capability(struct kp_json *j, int major, int minor)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", major, minor);
    kp_json_text(j, "compute_capability", text);
}

/* Writes a word, "" if unknown. */
static void write_word(struct kp_json *j, const char *key, const char *word)
{
    kp_json_text(j, key, word ? word : "");
}

/* --- the session --- */

static int write_lists(struct kp_json *j, const struct kp_session *s)
{
    int rc = write_list(j, "sections", s->sections, SIZE_MAX);
    return rc ? rc : write_list(j, "metrics", s->metrics, SIZE_MAX);
}

/* Writes the key of a reason. */
static void write_reason(struct kp_json *j, enum kp_reason reason)
{
    kp_json_text(j, "reason", reason ? kp_reason_key(reason) : NULL);
}

static void write_names(struct kp_json *j, const char *key, const struct kp_kernel_count *list, size_t n)
{
    kp_json_array(j, key, false);
    for (size_t i = 0; i < n; i++) {
        kp_json_object(j, NULL, true);
        kp_json_text(j, "name", list[i].name);
        kp_json_count(j, "count", list[i].count);
        kp_json_end(j);
    }
    kp_json_end(j);
}

static void write_counts(struct kp_json *j, const struct kp_session *s)
{
    kp_json_count(j, "launches_seen", s->launches_seen);
    kp_json_count(j, "launches_profiled", s->launches_profiled);
    kp_json_count(j, "passes", s->passes);
    kp_json_real(j, "profiling_ns", kp_whole(s->profiling_ns));
    kp_json_array(j, "skipped", false);
    for (size_t i = 0; i < s->n_skips; i++) {
        kp_json_object(j, NULL, true);
        write_reason(j, s->skips[i].why.reason);
        kp_json_text(j, "why", kp_why_text(&s->skips[i].why));
        kp_json_count(j, "count", s->skips[i].count);
        kp_json_end(j);
    }
    kp_json_end(j);
    write_names(j, "kernels_not_selected", s->kernels, s->n_kernels);
    if (s->n_lacking) {
        char *further = kp_session_further(s);
        write_names(j, "kernels_lacking", s->lacking, s->n_lacking);
        kp_json_text(j, "further_run", further);
        free(further);
    }
}

static int write_environment(struct kp_json *j, const char *lines)
{
    const char *name, *value;
    size_t name_len, value_len;
    int rc = 0;
    kp_json_object(j, "environment", false);
    while (!rc && kp_environment_next(&lines, &name, &name_len, &value, &value_len)) {
        char *key = strndup(name, name_len), *text = strndup(value, value_len);
        if (key && text)
            kp_json_text(j, key, text);
        else
            rc = -ENOMEM;
        free(key);
        free(text);
    }
    kp_json_end(j);
    return rc;
}

static int write_session_object(struct kp_json *j, const struct kp_session *s)
{
    kp_json_object(j, "session", false);
    kp_json_count(j, "pid", s->pid);
    write_word(j, "executable", s->exe);
    write_word(j, "command_line", s->cmdline);
    write_word(j, "host", s->host);
    write_word(j, "kprof_version", s->kprof_version);
    kp_json_int(j, "driver_version", s->driver_version);
    write_word(j, "cupti_version", s->cupti_version);
    kp_json_int(j, "start_unix_ns", s->start_unix_ns);
    kp_json_int(j, "end_unix_ns", s->end_unix_ns);
    kp_json_bool(j, "complete", s->complete);
    write_word(j, "set", s->set);
    int rc = write_lists(j, s);
    write_word(j, "section_folder", s->section_folder);
    write_word(j, "cache_control", s->cache_control);
    write_word(j, "clock_control", s->clock_control);
    if (s->replay && *s->replay)
        write_word(j, "replay", s->replay);
    rc = rc ? rc : write_environment(j, s->environment);
    write_counts(j, s);
    kp_json_end(j);
    return rc;
}

/* Writes lines of a metric, a tab, and its constituents. */
static int write_breakdowns(struct kp_json *j, const char *lines)
{
    int rc = 0;
    kp_json_object(j, "breakdowns", false);
    for (size_t whole; !rc && lines && *lines; lines += whole + (lines[whole] == '\n')) {
        whole = strcspn(lines, "\n");
        size_t name = strcspn(lines, "\t\n");
        char *key = name < whole ? strndup(lines, name) : NULL;
        if (key)
            rc = write_list(j, key, lines + name + 1, whole - name - 1);
        else if (name < whole)
            rc = -ENOMEM;
        free(key);
    }
    kp_json_end(j);
    return rc;
}

static int write_devices(struct kp_json *j, const struct kp_session *s)
{
    int rc = 0;
    kp_json_array(j, "devices", false);
    for (size_t i = 0; !rc && i < s->n_devices; i++) {
        const struct kp_device_info *d = &s->devices[i];
        kp_json_object(j, NULL, false);
        kp_json_int(j, "ordinal", d->ordinal);
        write_word(j, "name", d->name);
        write_word(j, "chip", d->chip);
        write_word(j, "pci_bus_id", d->pci_bus_id);
        write_capability(j, d->cc_major, d->cc_minor);
        kp_json_count(j, "sm_count", d->sm_count);
        rc = write_breakdowns(j, d->breakdowns);
        kp_json_end(j);
    }
    kp_json_end(j);
    return rc;
}

/* --- launches --- */

static void write_size(struct kp_json *j, const char *key, const uint32_t size[3])
{
    kp_json_array(j, key, true);
    for (int i = 0; i < 3; i++)
        kp_json_count(j, NULL, size[i]);
    kp_json_end(j);
}

/* Writes numbers that JSON lacks as words. */
static void write_real(struct kp_json *j, double value)
{
    char text[KP_PLAIN_MAX];
    kp_json_real(j, "value", value);
    if (isfinite(value))
        return;
    kp_plain_real(value, text);
    kp_json_text(j, "why", text);
}

static void write_instances(struct kp_json *j, const struct kp_metric *m)
{
    kp_json_array(j, "instances", true);
    for (size_t i = 0; i < m->n_instances; i++) {
        kp_json_array(j, NULL, true);
        kp_json_text(j, NULL, m->instances[i].key);
        kp_json_real(j, NULL, m->instances[i].value);
        kp_json_end(j);
    }
    kp_json_end(j);
}

/* Writes over how many launches a value is the mean, and how far they spread. */
static void write_spread(struct kp_json *j, const struct kp_metric *m)
{
    double half;
    kp_json_count(j, "counted", m->counted);
    kp_json_real(j, "deviation", m->counted > 1 ? m->deviation : NAN);
    kp_json_real(j, "interval", kp_metric_interval(m, &half) ? half : NAN);
}

static void write_metric(struct kp_json *j, const struct kp_metric *m)
{
    kp_json_object(j, NULL, true);
    kp_json_text(j, "name", m->name);
    kp_json_text(j, "unit", m->unit);
    switch (m->kind) {
    case KP_VALUE_REAL:
        write_real(j, m->real);
        break;
    case KP_VALUE_COUNT:
        kp_json_count(j, "value", m->count);
        break;
    case KP_VALUE_TEXT:
        kp_json_text(j, "value", m->text);
        break;
    case KP_VALUE_NA:
        kp_json_text(j, "value", NULL);
        write_reason(j, m->reason);
        kp_json_text(j, "why", m->text);
        break;
    }
    if (m->n_instances)
        write_instances(j, m);
    if (m->counted)
        write_spread(j, m);
    kp_json_end(j);
}

static void write_message(struct kp_json *j, const struct kp_message *m)
{
    kp_json_object(j, NULL, true);
    kp_json_text(j, "rule", m->rule->id);
    kp_json_text(j, "section", m->rule->section);
    kp_json_text(j, "severity", kp_severity_name(m->severity));
    kp_json_text(j, "text", m->text);
    kp_json_real(j, "speedup_percent", m->speedup);
    kp_json_text(j, "speedup_of", isnan(m->speedup) ? NULL : m->global ? "kernel" : "unit");
    kp_json_end(j);
}

static void write_range(struct kp_json *j, const struct kp_nvtx_range *r)
{
    kp_json_object(j, NULL, true);
    kp_json_text(j, "kind", r->kind == KP_NVTX_PUSH_POP ? "push-pop" : "start-end");
    kp_json_text(j, "domain", r->domain);
    kp_json_text(j, "name", r->name);
    kp_json_text(j, "category", r->category);
    kp_json_text(j, "payload", r->payload);
    kp_json_count(j, "thread", r->thread);
    kp_json_end(j);
}

static void write_nvtx(struct kp_json *j, const struct kp_nvtx *n)
{
    if (!n->thread && !n->n_ranges) {
        kp_json_text(j, "nvtx", NULL);
        return;
    }
    kp_json_object(j, "nvtx", false);
    kp_json_count(j, "thread", n->thread);
    write_word(j, "thread_name", n->thread_name);
    write_word(j, "stream_name", n->stream_name);
    kp_json_array(j, "ranges", false);
    for (size_t i = 0; i < n->n_ranges; i++)
        write_range(j, &n->ranges[i]);
    kp_json_end(j);
    kp_json_end(j);
}

static void write_head(struct kp_json *j, const struct kp_launch_info *l)
{
    kp_json_count(j, "id", l->id);
    kp_json_count(j, "ordinal", l->ordinal);
    static const char *const kinds[] = {
        [KP_WORKLOAD_KERNEL] = "kernel", [KP_WORKLOAD_GRAPH] = "graph", [KP_WORKLOAD_RANGE] = "range"};
    kp_json_text(j, "kind", (size_t)l->kind < sizeof kinds / sizeof *kinds ? kinds[l->kind] : "kernel");
    kp_json_text(j, "name", kp_launch_name(l));
    kp_json_text(j, "mangled", l->mangled);
    write_size(j, "grid", l->grid);
    write_size(j, "block", l->block);
    kp_json_count(j, "context", l->context_id);
    kp_json_count(j, "stream", l->stream_id);
    if (l->graph_number) {
        kp_json_count(j, "graph", l->graph_number);
        kp_json_count(j, "node", l->node);
    }
    kp_json_int(j, "device", l->device);
    write_capability(j, l->cc_major, l->cc_minor);
    write_word(j, "chip", l->chip);
    kp_json_count(j, "passes", l->passes);
    if (l->groups) {
        kp_json_object(j, "rotation", false);
        kp_json_count(j, "launches", l->alike);
        kp_json_count(j, "counted", l->counted);
        kp_json_count(j, "groups", l->groups);
        kp_json_count(j, "groups_counted", l->groups_counted);
        kp_json_end(j);
    }
    if (!l->groups && l->alike > 1)
        kp_json_count(j, "stands_for", l->alike);
    if (l->recorded) {
        kp_json_object(j, "recorded", false);
        kp_json_count(j, "launches", l->recorded);
        kp_json_real(j, "ns", l->recorded_ns);
        kp_json_end(j);
    }
    kp_json_real(j, "profiler_ns", l->profiler_ns);
    kp_json_text(j, "note", l->note);
    write_reason(j, l->reason);
    write_nvtx(j, &l->nvtx);
}

/* Writes the metrics that the display chooses. */
static int write_metric_list(struct kp_json *j, const struct kp_page *p, const struct kp_result *r)
{
    struct kp_result chosen;
    int rc = kp_narrow(p->display, p->session, r, &chosen);
    if (rc)
        return rc;
    kp_json_array(j, "metrics", false);
    for (size_t i = 0; i < chosen.n_metrics; i++)
        write_metric(j, &chosen.metrics[i]);
    kp_json_end(j);
    free(chosen.metrics);
    return 0;
}

/* Writes a variant; the choice of metrics does not leave out what distinguishes variants. */
static void write_variant(struct kp_json *j, const struct kp_variant *v)
{
    kp_json_object(j, NULL, false);
    kp_json_text(j, "name", v->name);
    write_size(j, "grid", v->of->launch.grid);
    write_size(j, "block", v->of->launch.block);
    kp_json_count(j, "passes", v->of->launch.passes);
    kp_json_text(j, "note", v->of->launch.note);
    write_reason(j, v->of->launch.reason);
    kp_json_array(j, "metrics", false);
    for (size_t i = 0; i < v->of->n_metrics; i++)
        write_metric(j, &v->of->metrics[i]);
    kp_json_end(j);
    kp_json_end(j);
}

/* Writes the variants of a launch that has some. */
static void write_variants(struct kp_json *j, const struct kp_result *r)
{
    size_t best = 0;
    if (!r->n_variants)
        return;
    bool found = kp_variants_best(r, &best);
    kp_json_object(j, "profile_series", false);
    kp_json_text(j, "best", found ? kp_variants_name(r, best) : NULL);
    kp_json_bool(j, "checked", false);
    kp_json_array(j, "variants", false);
    for (size_t i = 0; i < r->n_variants; i++)
        write_variant(j, &r->variants[i]);
    kp_json_end(j);
    kp_json_end(j);
}

struct document {
    const struct kp_page *page;
    struct kp_json *json;
    struct kp_json_code code;
};

static int write_launch_object(struct kp_result *r, void *arg)
{
    struct document *d = arg;
    struct kp_json *j = d->json;
    struct kp_shown shown;
    int rc = kp_shown_of(d->page->display, d->page->session, r, &shown);
    if (rc)
        return rc;
    kp_json_object(j, NULL, false);
    write_head(j, &r->launch);
    rc = write_metric_list(j, d->page, r);
    kp_json_array(j, "messages", false);
    for (size_t i = 0; i < shown.messages.n; i++)
        write_message(j, &shown.messages.list[i]);
    kp_json_end(j);
    write_variants(j, r);
    if (!rc)
        rc = kp_page_json_launch_code(j, &d->code, r);
    kp_json_end(j);
    kp_shown_free(&shown);
    return rc ? rc : ferror(j->to) ? -EIO : 0;
}

/* ---- the timeline ---- */

static void write_activity(struct kp_json *j, const struct kp_timeline *t, const struct kp_activity *a)
{
    kp_json_object(j, NULL, true);
    kp_json_text(j, "kind", kp_timeline_activity_word(a->kind));
    kp_json_text(j, "name", kp_timeline_name(t, a));
    if (a->device >= 0) {
        kp_json_int(j, "device", a->device);
        kp_json_count(j, "context", a->context_id);
        kp_json_count(j, "stream", a->stream_id);
    }
    kp_json_int(j, "start_ns", a->start_ns);
    kp_json_int(j, "end_ns", a->end_ns);
    if (a->kind == KP_ACTIVITY_KERNEL) {
        write_size(j, "grid", a->grid);
        write_size(j, "block", a->block);
    }
    if (a->kind == KP_ACTIVITY_COPY || a->kind == KP_ACTIVITY_SET)
        kp_json_count(j, "bytes", a->bytes);
    if (a->thread)
        kp_json_count(j, "thread", a->thread);
    if (a->launched_ns)
        kp_json_int(j, "launched_ns", a->launched_ns);
    if (a->ordinal >= 0)
        kp_json_int(j, "ordinal", a->ordinal);
    kp_json_end(j);
}

/* Writes the timeline of a session that has one. */
static int write_timeline(struct kp_json *j, const struct kp_page *p)
{
    struct kp_timeline t;
    int rc = kp_lookup_timeline(&p->launches->lookup, &t);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    kp_json_object(j, "timeline", false);
    kp_json_count(j, "dropped", p->session->timeline_dropped);
    kp_json_array(j, "activities", false);
    for (size_t i = 0; i < t.n; i++)
        write_activity(j, &t, &t.at[i]);
    kp_json_end(j);
    kp_json_end(j);
    kp_timeline_free(&t);
    return 0;
}

static void write_kind(struct kp_json *j, const char *kind)
{
    kp_json_text(j, "schema", kind);
    kp_json_int(j, "version", VERSION);
}

static int write_session_document(struct kp_json *j, const struct kp_page *p)
{
    kp_json_object(j, NULL, false);
    write_kind(j, schema);
    int rc = write_session_object(j, p->session);
    if (!rc)
        rc = write_devices(j, p->session);
    if (rc)
        return rc;
    kp_json_array(j, "launches", false);
    struct document d = {.page = p, .json = j};
    rc = kp_page_each(p, write_launch_object, &d);
    kp_json_end(j);
    if (!rc)
        rc = kp_page_json_all_code(j, &d.code, &p->launches->lookup);
    if (!rc)
        rc = write_timeline(j, p);
    kp_json_end(j);
    kp_page_json_code_free(&d.code);
    return rc;
}

int kp_page_json(const struct kp_page *pages, size_t n, FILE *to)
{
    struct kp_json j = {.to = to};
    int rc = 0;
    if (!pages->shared)
        return write_session_document(&j, pages);
    kp_json_object(&j, NULL, false);
    write_kind(&j, schema_of_several);
    kp_json_array(&j, "sessions", false);
    for (size_t i = 0; !rc && i < n; i++)
        rc = write_session_document(&j, &pages[i]);
    kp_json_end(&j);
    kp_json_end(&j);
    return rc;
}
