/* The page source: what each launch did, by source line and by instruction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "report/pages/page_body.h"

enum { LINES_SHOWN = 20 };

static void write_functions(struct kp_writer *w, const struct kp_view *v)
{
    for (size_t i = 0; i < v->source->n_functions; i++)
        kp_write_source_code(w, v, &v->source->functions[i]);
}

struct sourced {
    struct kp_writer *to;
    uint64_t without; /* launches without values by instruction */
};

static int write_source(struct kp_writer *w, const struct kp_view *v)
{
    bool told;
    int rc = kp_page_tell_dropped(w, v, &told);
    if (rc)
        return rc;
    if (w->out.display->source_lines)
        kp_write_source_lines(w, v, LINES_SHOWN, true);
    if (w->out.display->source_sass || w->out.display->source_ptx || w->kind->rows)
        write_functions(w, v);
    return 0;
}

static int write_code_of(struct kp_result *r, void *arg)
{
    struct sourced *s = arg;
    struct kp_writer *w = s->to;
    struct kp_source_map source;
    int rc = kp_source_load(r, w->out.display->codes, &source);
    if (rc)
        return rc;
    w->launch = &r->launch;
    s->without += !source.n_functions;
    if (source.n_functions || kp_page_has_dropped(r)) {
        kp_write_launch(w, false);
        rc = write_source(w, &(struct kp_view){.session = w->session, .result = r, .source = &source});
    }
    kp_source_free(&source);
    return rc ? rc : w->out.rc;
}

/* --- in rows, a field a metric: all metrics have to be known before the first launch is written --- */

enum { PLACE = 12 /* fields for place and text of an instruction, and for its access to memory */ };
static const char *const place[PLACE] = {"Function",         "Offset",      "File",     "Line", "Inlined At",
                                         "Opcode",           "Instruction", "PTX Line", "PTX",  "Address Space",
                                         "Access Operation", "Access Size"};

struct names {
    char **at; /* of metrics, sorted */
    size_t n;
};

static int note_name(struct names *names, const char *name)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(names->at[middle], name);
        if (!order)
            return 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    char *copy = KP_ROOM(names->at, names->n) ? kp_strdup(name) : NULL;
    if (!copy)
        return -ENOMEM;
    memmove(&names->at[low + 1], &names->at[low], (names->n - low) * sizeof *names->at);
    names->at[low] = copy;
    names->n++;
    return 0;
}

static int note_metric_names(struct kp_result *r, void *arg)
{
    int rc = 0;
    for (size_t i = 0; i < r->n_counts; i++)
        for (size_t j = 0; !rc && j < r->counts[i].n_metrics; j++)
            rc = note_name(arg, r->counts[i].metrics[j].name);
    return rc;
}

static void free_metric_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->at[i]);
    free(names->at);
}

static int write_source_sessions(const struct kp_page *pages, size_t n, struct kp_writer *w, const struct names *names)
{
    const char **fields = calloc(PLACE + names->n, sizeof *fields);
    int rc = 0;
    if (!fields)
        return -ENOMEM;
    memcpy(fields, place, sizeof place);
    for (size_t i = 0; i < names->n; i++)
        fields[PLACE + i] = names->at[i];
    kp_write_begin(w, &(struct kp_layout){KP_START_LAUNCH, fields, PLACE + names->n, .metric = PLACE});
    for (size_t i = 0; !rc && i < n; i++) {
        struct sourced sourced = {.to = w};
        kp_page_enter(&pages[i], w);
        rc = kp_page_each(&pages[i], write_code_of, &sourced);
        if (!rc && sourced.without)
            kp_page_tell_without(w, sourced.without, "launch has", "launches have",
                                 "no values by instruction: collect them with KPROF_SECTION=SourceCounters (section), "
                                 "or with a set that includes it (kprof --list-sets)");
    }
    free(fields);
    return rc;
}

int kp_page_source(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    struct names names = {.n = 0};
    int rc = 0;
    for (size_t i = 0; w->kind->rows && !rc && i < n; i++)
        rc = kp_page_each(&pages[i], note_metric_names, &names);
    if (!rc)
        rc = write_source_sessions(pages, n, w, &names);
    free_metric_names(&names);
    return rc;
}
