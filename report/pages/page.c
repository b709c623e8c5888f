#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/nearest.h"
#include "base/plain.h"
#include "base/stream.h"
#include "report/define/source.h"
#include "report/model/launch_names.h"
#include "report/model/nvtx_expr.h"
#include "report/pages/page_body.h"
#include "report/view/chooser.h"
#include "report/view/records.h"
#include "report/write/csv_writer.h"
#include "report/write/fit.h"
#include "report/write/text_writer.h"

enum { ENOUGH = 1 }; /* ends the loop over launches; errors are negative */

static const struct page_row {
    kp_page_fn *page;
    kp_page_fn *of_ncu; /* in its place, in CSV of the face ncu; NULL = none */
    bool nvtx;          /* its rows have the columns of NVTX, if launches have any */
    bool grouped;       /* kp_page_grouped replaces it if launches are grouped */
    bool whole;         /* shows the session, but not its launches, whatever launches the filters choose */
} rows[KP_PAGE_IDS] = {
    [KP_PAGE_DETAILS] = {kp_page_details, .nvtx = true, .grouped = true},
    [KP_PAGE_RAW] = {kp_page_raw, .nvtx = true, .grouped = true},
    [KP_PAGE_SESSION] = {kp_page_session, kp_page_ncu_session, .whole = true},
    [KP_PAGE_SUMMARY] = {kp_page_summary, .nvtx = false},
    [KP_PAGE_TRACE] = {kp_page_trace, .nvtx = true},
    [KP_PAGE_SOURCE] = {kp_page_source, kp_page_ncu_source, .nvtx = false},
    [KP_PAGE_PM] = {kp_page_pm, .nvtx = false},
    [KP_PAGE_TIMELINE] = {kp_page_timeline, .whole = true},
    [KP_PAGE_SERIES] = {kp_page_series, .nvtx = false},
    [KP_PAGE_RANKS] = {kp_page_ranks, .nvtx = false},
};

/* --- pages with any writer --- */

static bool is_grouped(const struct kp_display *d, enum kp_page_id id)
{
    return d->grouping && rows[id].grouped;
}

static int write_page(const struct kp_page *pages, size_t n, struct kp_writer *w, enum kp_page_id id)
{
    const struct kp_display *d = pages->display;
    bool as_ncu = rows[id].of_ncu && d->face == KP_FACE_NCU && d->format == KP_FORMAT_CSV && w->kind->rows;
    return (is_grouped(d, id) ? kp_page_grouped : as_ncu ? rows[id].of_ncu : rows[id].page)(pages, n, w);
}

/* Returns true if the page ends without the gap that ends all others. */
static bool page_ends_with_a_table(const struct kp_page *p, enum kp_page_id id)
{
    return id == KP_PAGE_DETAILS && p->display->rules && !p->display->grouping && !p->summary;
}

/* Returns true if a page that is shown has launches, so that filters apply. */
static bool shows_launches(const struct kp_display *d)
{
    bool any = !d->n_pages;
    for (size_t i = 0; i < d->n_pages; i++)
        any |= !rows[d->pages[i]].whole;
    return any;
}

/* Returns the page that adds its launches to a summary of several sessions: each is added once. */
static enum kp_page_id adds_to_summary(const struct kp_display *d)
{
    return kp_display_shows(d, KP_PAGE_DETAILS) && !d->grouping ? KP_PAGE_DETAILS : KP_PAGE_SUMMARY;
}

static int write_document(const struct kp_page *p, struct kp_writer *w)
{
    struct kp_display one = *p->display;
    struct kp_page page = *p;
    enum kp_page_id adds = adds_to_summary(p->display);
    int rc = 0;
    kp_page_enter(p, w);
    kp_write_process(w);
    page.display = &one;
    one.n_pages = 1;
    for (size_t i = 0; !rc && !w->out.rc && (!i || i < p->display->n_pages); i++) {
        one.pages[0] = p->display->n_pages ? p->display->pages[i] : KP_PAGE_DETAILS;
        page.summary = one.pages[0] == adds ? p->summary : NULL;
        if (i && page_ends_with_a_table(p, p->display->pages[i - 1]))
            kp_write_gap(w);
        rc = write_page(&page, 1, w, one.pages[0]);
    }
    kp_page_enter(p, w);
    if (!rc && (p->display->face != KP_FACE_NCU || !p->session->launches_profiled))
        kp_write_account(w, shows_launches(p->display) ? p->launches->choice : NULL);
    return rc;
}

/* Looks at the first launch only: NVTX is on from the start or never; then each launch has a thread. */
static int has_thread(struct kp_result *r, void *arg)
{
    *(bool *)arg = r->launch.nvtx.thread || r->launch.nvtx.n_ranges;
    return ENOUGH;
}

/* Returns true if launches of a page have NVTX: then all sessions get the columns. */
static int find_nvtx(const struct kp_page *pages, size_t n, bool *found)
{
    int rc = 0;
    for (size_t i = 0; !rc && !*found && i < n; i++) {
        rc = kp_page_each(&pages[i], has_thread, found);
        rc = rc == ENOUGH ? 0 : rc;
    }
    return rc;
}

/* Writes one page of all sessions. */
static int write_rows(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    const struct kp_display *d = pages->display;
    enum kp_page_id id = d->n_pages ? d->pages[0] : KP_PAGE_DETAILS;
    int rc = rows[id].nvtx && !is_grouped(d, id) ? find_nvtx(pages, n, &w->nvtx) : 0;
    w->shared = pages->shared;
    for (size_t i = 0; i < n; i++)
        w->rotated |= pages[i].session->rotated;
    return rc ? rc : write_page(pages, n, w, id);
}

static int write_pages(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    int rc = 0;
    if (w->kind->rows)
        return write_rows(pages, n, w);
    for (size_t i = 0; !rc && i < n; i++)
        rc = write_document(&pages[i], w);
    return rc;
}

/* --- formats --- */

static int end_writer(struct kp_writer *w, int rc)
{
    int failed = kp_write_end(w);
    return rc ? rc : failed;
}

static int print_text(const struct kp_page *pages, size_t n, const struct kp_sink *to)
{
    struct kp_text_writer t;
    struct kp_fit fit;
    kp_fit_init(&fit, to, pages->display->width);
    kp_write_text_writer_init(&t, &fit.sink, pages->display);
    int rc = end_writer(&t.base, write_pages(pages, n, &t.base));
    int last = kp_fit_end(&fit);
    return rc ? rc : last;
}

static int text_pages(const struct kp_page *pages, size_t n, FILE *to)
{
    struct kp_sink sink = kp_stream_sink(to);
    return print_text(pages, n, &sink);
}

/* Returns true if ncu prints a line in place of rows. */
static bool has_no_rows_as_ncu(const struct kp_page *pages, size_t n)
{
    bool none = pages->display->face == KP_FACE_NCU && shows_launches(pages->display);
    for (size_t i = 0; none && i < n; i++)
        none = !pages[i].session->launches_profiled;
    return none;
}

static int csv_pages(const struct kp_page *pages, size_t n, FILE *to)
{
    struct kp_csv_writer c;
    if (has_no_rows_as_ncu(pages, n))
        return fputs(KP_NONE_PROFILED, to) < 0 ? -EIO : 0;
    kp_write_csv_writer_init(&c, to, pages->display);
    return end_writer(&c.base, write_pages(pages, n, &c.base));
}

static int (*const formats[])(const struct kp_page *pages, size_t n, FILE *to) = {
    [KP_FORMAT_TEXT] = text_pages,
    [KP_FORMAT_CSV] = csv_pages,
    [KP_FORMAT_JSON] = kp_page_json,
};

/* Prints in large pieces: each one costs the log of a profiled process several system calls. */
static int print_pages(const struct kp_sink *out, const struct kp_page *pages, size_t n)
{
    struct kp_stream stream;
    enum kp_format format = pages->display->format;
    int rc = kp_stream_open(&stream, out);
    if (rc)
        return format == KP_FORMAT_TEXT ? print_text(pages, n, out) : rc;
    rc = formats[format](pages, n, stream.to);
    int closed = kp_stream_close(&stream);
    return stream.rc ? stream.rc : rc ? rc : closed;
}

/* --- a session --- */

/* A page with the code of its session. */
struct opened {
    struct kp_page page;
    struct kp_display display;
    locale_t before;
};

/* Opens a page; `o` must stay in place until it is closed. 0, or -ENOMEM with nothing to close. */
static int open_page(struct opened *o, const struct kp_display *d, const struct kp_session *s,
                     const struct kp_launches *launches, char **err)
{
    *err = NULL;
    o->display = *d;
    o->display.lookup = &launches->lookup;
    o->display.codes = kp_codecache_new(&launches->lookup, d->source_folders);
    if (!o->display.codes)
        return -ENOMEM;
    o->page = (struct kp_page){.display = &o->display, .session = s, .launches = launches, .err = err};
    o->before = kp_plain_begin();
    return 0;
}

static void close_page(struct opened *o)
{
    kp_plain_end(o->before);
    kp_codecache_free(o->display.codes);
}

static int print(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s,
                 const struct kp_launches *launches, struct kp_summary *summary, char **err)
{
    struct opened o;
    int rc = open_page(&o, d, s, launches, err);
    if (rc)
        return rc;
    o.page.summary = summary;
    rc = print_pages(out, &o.page, 1);
    close_page(&o);
    return rc;
}

int kp_page_write(struct kp_writer *w, const struct kp_display *d, const struct kp_session *s,
                  const struct kp_launches *launches, char **err)
{
    struct opened o;
    int rc = open_page(&o, d, s, launches, err);
    if (rc)
        return rc;
    rc = write_pages(&o.page, 1, w);
    close_page(&o);
    return rc ? rc : w->out.rc;
}

int kp_page_print(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s,
                  const struct kp_launches *launches, char **err)
{
    return print(out, d, s, launches, NULL, err);
}

/* --- a stored session --- */

struct stored {
    struct kp_store *store;
    const struct kp_display *display;
    struct kp_choice choice; /* as the page that read all launches found it */
};

/* The callback for each launch that is shown. */
struct chosen {
    const struct kp_display *display;
    struct kp_choice choice;
    int (*fn)(struct kp_result *r, void *arg);
    void *arg;
};

/* Returns 1, 0 or -ENOMEM. */
static int is_shown(const struct kp_display *d, const struct kp_result *r)
{
    return d->chooser ? kp_chooser_takes(d->chooser, r) : 1;
}

static void begin_again(const struct kp_display *d)
{
    if (d->chooser)
        kp_chooser_begin(d->chooser);
}

static int one_stored(struct kp_result *r, void *arg)
{
    struct chosen *c = arg;
    int shown = is_shown(c->display, r);
    c->choice.stored++;
    c->choice.shown += shown > 0;
    return shown > 0 ? c->fn(r, c->arg) : shown;
}

/* Makes the list of metrics of what is read and what the choice needs, if that is more than `only`. 0 or -ENOMEM. */
static int add_needed(const struct kp_display *d, const char *const *only, const char ***with)
{
    const char *more = d->chooser ? kp_chooser_needs(d->chooser) : NULL;
    size_t n = 0;
    if (!more || !only)
        return 0;
    while (only[n])
        n++;
    *with = calloc(n + 2, sizeof **with);
    if (!*with)
        return -ENOMEM;
    memcpy(*with, only, n * sizeof **with);
    (*with)[n] = more;
    return 0;
}

/* Does the same with the kernels of the timeline. */
static int each_record(struct stored *s, struct chosen *c)
{
    const struct kp_lookup lookup = kp_store_lookup(s->store);
    struct kp_timeline timeline = {0};
    int rc = kp_lookup_timeline(&lookup, &timeline);
    if (!rc)
        rc = kp_records_each(&timeline, one_stored, c);
    kp_timeline_free(&timeline);
    return rc == -ENOENT ? 0 : rc;
}

static int each_stored_with(void *from, const char *const *only, int (*fn)(struct kp_result *r, void *arg), void *arg,
                            char **err)
{
    struct stored *s = from;
    struct chosen c = {.display = s->display, .fn = fn, .arg = arg};
    const char **with = NULL;
    int rc = add_needed(s->display, only, &with);
    begin_again(s->display);
    if (!rc)
        rc = kp_store_each_result_with(s->store, with ? (const char *const *)with : only, one_stored, &c, err);
    free(with);
    if (!rc && !c.choice.stored && s->display->from_records)
        rc = each_record(s, &c);
    if (s->display->chooser)
        c.choice.graphs = kp_chooser_graphs(s->display->chooser);
    if (!rc)
        s->choice = c.choice;
    return rc;
}

static int each_stored(void *from, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    return each_stored_with(from, NULL, fn, arg, err);
}

/* Returns the launches of a store; `stored` keeps the chosen ones. */
static struct kp_launches launches_of(struct stored *stored)
{
    return (struct kp_launches){.each = each_stored,
                                .each_with = each_stored_with,
                                .from = stored,
                                .lookup = kp_store_lookup(stored->store),
                                .choice = stored->display->chooser ? &stored->choice : NULL};
}

/* --- a choice that matches no launch --- */

struct unmatched {
    const struct kp_display *display;
    const char *kernel_name;
    struct kp_unmatched what;
    uint64_t launches;
    char *near; /* the name nearest to kernel_name so far */
};

static int see_near(struct unmatched *u, const struct kp_launch_info *l)
{
    char *base = kp_demangle_base(l->mangled ? l->mangled : "");
    if (!base)
        return -ENOMEM;
    const char *const both[] = {base, u->near, NULL};
    bool is_whole = !strcmp(u->kernel_name, kp_launch_name(l)); /* the listed name, if the function's is asked for */
    if (!is_whole && kp_nearest(u->kernel_name, both) != base) {
        free(base);
        return 0;
    }
    free(u->near);
    u->near = base;
    return 0;
}

static int see_ranges(struct unmatched *u, const struct kp_nvtx *n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n->n_ranges; i++) {
        if (!kp_range_is_new(n, i))
            continue;
        char *expression = kp_nvtx_expression(&n->ranges[i]);
        rc = expression ? kp_session_add_range(&u->what.seen, expression, 1) : -ENOMEM;
        free(expression);
    }
    return rc;
}

static int one_unmatched(struct kp_result *r, void *arg)
{
    struct unmatched *u = arg;
    int rc = is_shown(u->display, r);
    if (rc)
        return rc < 0 ? rc : ENOUGH;
    u->launches++;
    rc = see_near(u, &r->launch);
    rc = rc ? rc : see_ranges(u, &r->launch.nvtx);
    return rc ? rc : kp_session_add_kernel(&u->what.seen, kp_launch_name(&r->launch), 1);
}

static int render_unmatched(const struct kp_sink *out, struct unmatched *u)
{
    const struct kp_chooser *chooser = u->display->chooser;
    struct kp_unmatched *what = &u->what;
    struct kp_fit fit;
    char filters[KP_CHOOSER_FILTERS_MAX] = "what was chosen";
    bool one = !chooser || kp_chooser_filters(chooser, filters) <= 1;
    what->kernel_name = one ? u->kernel_name : "";
    what->range = one && chooser ? kp_chooser_range(chooser) : "";
    what->filters = filters;
    what->near = u->near && strcmp(u->near, u->kernel_name) != 0 ? u->near : NULL;
    what->matched = chooser ? kp_chooser_matched(chooser) : 0;
    what->graphs = chooser ? kp_chooser_graphs(chooser) : 0;
    kp_fit_init(&fit, out, u->display->width);
    int rc = kp_render_unmatched(&fit.sink, what), last = kp_fit_end(&fit);
    return rc ? rc : last;
}

int kp_page_tell_unmatched(const struct kp_sink *out, const struct kp_display *d, const char *kernel_name,
                           struct kp_store *store, bool *unmatched, char **err)
{
    struct unmatched u = {.display = d, .kernel_name = kernel_name};
    begin_again(d);
    int rc = kp_store_each_result(store, one_unmatched, &u, err);
    *unmatched = !rc && u.launches;
    if (*unmatched)
        rc = render_unmatched(out, &u);
    free(u.near);
    kp_session_free(&u.what.seen);
    return rc == ENOUGH ? 0 : rc;
}

int kp_page_print_store(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store, char **err)
{
    return kp_page_part(out, d, store, NULL, err);
}

int kp_page_part(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store,
                 struct kp_summary *summary, char **err)
{
    struct stored stored = {.store = store, .display = d};
    struct kp_launches launches = launches_of(&stored);
    struct kp_session session;
    int rc = kp_store_get_session(store, &session, err);
    if (rc)
        return rc;
    rc = print(out, d, &session, &launches, summary, err);
    kp_session_free(&session);
    return rc;
}

int kp_page_write_store(struct kp_writer *w, const struct kp_display *d, struct kp_store *store, char **err)
{
    struct stored stored = {.store = store, .display = d};
    struct kp_launches launches = launches_of(&stored);
    struct kp_session session;
    int rc = kp_store_get_session(store, &session, err);
    if (rc)
        return rc;
    rc = kp_page_write(w, d, &session, &launches, err);
    kp_session_free(&session);
    return rc;
}

/* One of several sessions printed together. */
struct part {
    struct stored stored;
    struct kp_launches launches;
    struct kp_session session;
    struct kp_display display; /* with the session's code */
};

static int open_part(struct part *part, const struct kp_display *d, struct kp_store *store, char **err)
{
    part->stored = (struct stored){.store = store, .display = d};
    part->launches = launches_of(&part->stored);
    part->launches.choice = NULL;
    part->display = *d;
    part->display.lookup = &part->launches.lookup;
    part->display.codes = kp_codecache_new(&part->launches.lookup, d->source_folders);
    return part->display.codes ? kp_store_get_session(store, &part->session, err) : -ENOMEM;
}

static void close_part(struct part *part)
{
    kp_session_free(&part->session);
    kp_codecache_free(part->display.codes);
}

int kp_page_print_stores(const struct kp_sink *out, const struct kp_display *d, struct kp_store *const *stores,
                         size_t n, char **err)
{
    struct part *parts = calloc(n, sizeof *parts);
    struct kp_page *pages = calloc(n, sizeof *pages);
    int rc = parts && pages ? 0 : -ENOMEM;
    *err = NULL;
    for (size_t i = 0; !rc && i < n; i++) {
        struct part *part = &parts[i];
        rc = open_part(part, d, stores[i], err);
        pages[i] = (struct kp_page){.display = &part->display,
                                    .session = &part->session,
                                    .launches = &part->launches,
                                    .err = err,
                                    .shared = true};
    }
    locale_t before = kp_plain_begin();
    rc = rc ? rc : print_pages(out, pages, n);
    kp_plain_end(before);
    for (size_t i = 0; parts && i < n; i++)
        close_part(&parts[i]);
    free(parts);
    free(pages);
    return rc;
}
