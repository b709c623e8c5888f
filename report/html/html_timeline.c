/* The timeline of a session in the HTML file: what is drawn of it, and its numbers. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/html/parts.h"
#include "report/view/gaps.h"
#include "report/view/timeline_rows.h"

enum {
    DRAWN_MOST = 100000, /* activities, the first ones: some 4 MB of the file */
    KERNELS_MOST = 50,
};

struct timeline {
    struct kp_data *d;
    FILE *to;
    struct kp_timeline line;
    struct kp_timeline_rows rows;
    struct kp_gaps gaps;
    int64_t base;
    size_t *names; /* numbers of the file's texts, by name; 0: not yet asked for */
};

/* Returns the number of the text of an activity's name; that of "" for NULL. */
static size_t name_number(struct timeline *t, const struct kp_activity *a)
{
    if (!a || a->name >= t->line.n_names)
        return 0;
    size_t *known = &t->names[a->name];
    if (!*known)
        *known = kp_data_string(t->d, kp_timeline_name(&t->line, a));
    return *known;
}

static void write_rows(struct timeline *t)
{
    fputs("\"rows\":[", t->to);
    for (size_t i = 0; i < t->rows.n; i++) {
        const struct kp_timeline_row *r = &t->rows.at[i];
        fprintf(t->to, "%s[%d,%d,%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32 "]", i ? "," : "", r->kind, r->device,
                r->context_id, r->stream_id, r->thread, r->lane);
    }
    fputc(']', t->to);
}

/* Writes six numbers for each activity: its row, kind, name, start after that of the one before, length, and launch;
 * of copies and memsets the bytes in the place of the launch. */
static void write_events(struct timeline *t)
{
    int64_t before = t->base;
    fputs(",\"events\":[", t->to);
    for (size_t i = 0; i < t->line.n && i < DRAWN_MOST; i++) {
        const struct kp_activity *a = &t->line.at[i];
        bool copies = a->kind == KP_ACTIVITY_COPY || a->kind == KP_ACTIVITY_SET;
        fprintf(t->to, "%s%" PRIu32 ",%d,%zu,%" PRId64 ",%" PRId64 ",%" PRId64, i ? "," : "", t->rows.of[i], a->kind,
                name_number(t, a), a->start_ns - before, a->end_ns - a->start_ns,
                copies ? (int64_t)a->bytes : a->ordinal);
        before = a->start_ns;
    }
    fputc(']', t->to);
}

static void write_gap(struct timeline *t, const struct kp_gap *g)
{
    fprintf(t->to, "[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%zu,%zu,%zu,%" PRId64 "]", g->start_ns - t->base,
            g->end_ns - t->base, g->ns, g->copying_ns, name_number(t, g->before), name_number(t, g->next),
            name_number(t, g->range), g->next->ordinal);
}

static void write_device_rows(struct timeline *t)
{
    fputs(",\"devices\":[", t->to);
    for (size_t i = 0; i < t->gaps.n_devices; i++) {
        const struct kp_device_line *d = &t->gaps.devices[i];
        fprintf(t->to, "%s[%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%zu,%zu,[", i ? "," : "", d->device, d->span_ns,
                d->busy_ns, d->held_ns, d->kernels, d->n_gaps);
        for (size_t k = 0; k < KP_GAPS_MOST && k < d->n_gaps; k++) {
            fputs(k ? "," : "", t->to);
            write_gap(t, &d->gaps[k]);
        }
        fputs("]]", t->to);
    }
    fputs("],\"streams\":[", t->to);
    for (size_t i = 0; i < t->gaps.n_streams; i++) {
        const struct kp_stream_line *s = &t->gaps.streams[i];
        fprintf(t->to, "%s[%d,%" PRIu32 ",%" PRIu32 ",%zu,%zu,%zu,%" PRIu64 ",%" PRId64 ",%" PRId64 "]", i ? "," : "",
                s->device, s->context_id, s->stream_id, s->kernels, s->copies, s->sets, s->bytes, s->kernel_ns,
                s->busy_ns);
    }
    fputc(']', t->to);
}

static void write_kernels(struct timeline *t)
{
    fputs(",\"kernels\":[", t->to);
    for (size_t i = 0; i < t->gaps.n_kernels && i < KERNELS_MOST; i++) {
        const struct kp_kernel_line *k = &t->gaps.kernels[i];
        const struct kp_activity named = {.name = k->name};
        fprintf(t->to, "%s[%zu,%zu,%" PRId64 ",%" PRId64 ",%" PRId64 "]", i ? "," : "", name_number(t, &named), k->n,
                k->total_ns, k->least_ns, k->most_ns);
    }
    fprintf(t->to, "],\"ofKernels\":%zu", t->gaps.n_kernels);
}

static int prepare(struct timeline *t)
{
    t->names = calloc(t->line.n_names + 1, sizeof *t->names);
    int rc = t->names ? kp_timeline_rows_of(&t->line, false, &t->rows) : -ENOMEM;
    return rc ? rc : kp_gaps_of(&t->line, &t->gaps);
}

void kp_html_timeline(struct kp_html *h, FILE *to)
{
    struct timeline t = {.d = &h->data, .to = to};
    int rc = kp_lookup_timeline(h->base.out.display->lookup, &t.line);
    if (rc && rc != -ENOMEM)
        return;
    rc = rc ? rc : prepare(&t);
    if (!rc) {
        t.base = t.line.at[0].start_ns;
        fprintf(to, ",\"timeline\":{\"total\":%zu,\"dropped\":%" PRIu64 ",", t.line.n,
                h->base.session->timeline_dropped);
        write_rows(&t);
        write_events(&t);
        write_device_rows(&t);
        write_kernels(&t);
        fputc('}', to);
    }
    h->data.rc = h->data.rc ? h->data.rc : rc;
    free(t.names);
    kp_timeline_rows_free(&t.rows);
    kp_gaps_free(&t.gaps);
    kp_timeline_free(&t.line);
}
