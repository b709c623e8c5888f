#include "report/pages/page_body.h"
#include "base/nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "report/model/launch_names.h"
#include "report/write/account.h"
#include "report/write/csv_writer.h"
#include "report/write/text_writer.h"
#include "base/pattern.h"
#include "base/plain.h"
#include "base/stream.h"
#include "base/text.h"
#include "report/define/source.h"

enum { ENOUGH = 1 }; /* what a function returns to see no more launches; errors are negative */

static const struct page_row {
    kp_page_fn *page;
    kp_page_text_fn *text;
    kp_page_csv_fn *csv;
    bool launches; /* shows each; kp_grouped_text and kp_grouped_csv take its place where they are put together */
} rows[KP_PAGE_IDS] = {
    [KP_PAGE_DETAILS] = {NULL, kp_details_text, kp_details_csv, true},
    [KP_PAGE_RAW] = {NULL, kp_raw_text, kp_raw_csv, true},
    [KP_PAGE_SESSION] = {kp_session_page, NULL, NULL, false},
    [KP_PAGE_SUMMARY] = {kp_summary_page, NULL, NULL, false},
    [KP_PAGE_TRACE] = {NULL, kp_trace_text, kp_trace_csv, false},
    [KP_PAGE_SOURCE] = {NULL, kp_source_text, kp_source_csv, false},
    [KP_PAGE_PM] = {NULL, kp_pm_text, kp_pm_csv, false},
};

/* --- all pages --- */

static int write_text(const struct kp_page *p, enum kp_page_id id)
{
    struct kp_text_writer t;
    kp_text_writer_init(&t, p->out, p->display);
    int rc = rows[id].page(p, 1, &t.base), failed = kp_write_end(&t.base);
    return rc ? rc : failed;
}

static int print_text(const struct kp_page *p, enum kp_page_id id)
{
    if (rows[id].page)
        return write_text(p, id);
    return p->display->grouping && rows[id].launches ? kp_grouped_text(p) : rows[id].text(p);
}

/* All others end with a blank line. */
static bool page_ends_with_a_table(const struct kp_page *p, enum kp_page_id id)
{
    return id == KP_PAGE_DETAILS && p->display->rules && !p->display->grouping && !p->summary;
}

static int print_texts(const struct kp_page *p)
{
    static const char unfinished[] = "==KPROF== The program had not finished (it was killed, or is still running), or "
                                     "not all could be written to the file. Above is what had been stored.\n";
    struct kp_display one = *p->display;
    struct kp_page page = *p;
    int rc = kp_render_process(p->out, p->session);
    page.display = &one;
    one.n_pages = 1;
    for (size_t i = 0; !rc && (!i || i < p->display->n_pages); i++) {
        one.pages[0] = p->display->n_pages ? p->display->pages[i] : KP_PAGE_DETAILS;
        if (i && page_ends_with_a_table(p, p->display->pages[i - 1]))
            rc = p->out->write(p->out->arg, "\n", 1);
        if (!rc)
            rc = print_text(&page, one.pages[0]);
    }
    if (!rc)
        rc = kp_render_account(p->out, p->session, p->launches->choice);
    if (!rc && !p->session->complete)
        rc = p->out->write(p->out->arg, unfinished, strlen(unfinished));
    return rc;
}

/* NVTX is on from the first launch on, or never; then each has its thread. */
static int has_thread(struct kp_result *r, void *arg)
{
    *(bool *)arg = r->launch.nvtx.thread || r->launch.nvtx.n_ranges;
    return ENOUGH;
}

/* Whether launches of one of the pages have NVTX: then all have its columns. */
static int find_nvtx(struct kp_page *pages, size_t n)
{
    bool found = false;
    int rc = 0;
    for (size_t i = 0; !rc && !found && i < n; i++) {
        rc = kp_page_each(&pages[i], has_thread, &found);
        rc = rc == ENOUGH ? 0 : rc;
    }
    for (size_t i = 0; i < n; i++)
        pages[i].nvtx = found;
    return rc;
}

static int write_csv(const struct kp_page *pages, size_t n, FILE *to, enum kp_page_id id)
{
    struct kp_csv_writer c;
    kp_csv_writer_init(&c, to, pages->display);
    c.base.shared = pages->shared;
    c.base.nvtx = pages->nvtx;
    int rc = rows[id].page(pages, n, &c.base), failed = kp_write_end(&c.base);
    return rc ? rc : failed;
}

static int print_csv(struct kp_page *pages, size_t n, FILE *to)
{
    const struct kp_display *d = pages->display;
    struct kp_csv csv = {.to = to, .defuse = d->csv_defuse};
    enum kp_page_id id = d->n_pages ? d->pages[0] : KP_PAGE_DETAILS;
    if (d->grouping && rows[id].launches)
        return kp_grouped_csv(pages, n, &csv);
    int rc = rows[id].launches ? find_nvtx(pages, n) : 0;
    if (rows[id].page)
        return rc ? rc : write_csv(pages, n, to, id);
    return rc ? rc : rows[id].csv(pages, n, &csv);
}

/* What has come of a page that was printed into the stream. */
static int end(struct kp_stream *stream, int rc)
{
    int closed = kp_stream_close(stream);
    return stream->rc ? stream->rc : rc ? rc : closed;
}

static int print_data(struct kp_page *pages, size_t n)
{
    struct kp_stream stream;
    int rc = kp_stream_open(&stream, pages->out);
    if (rc)
        return rc;
    rc = pages->display->format == KP_FORMAT_CSV ? print_csv(pages, n, stream.to) : kp_json_page(pages, n, stream.to);
    return end(&stream, rc);
}

/* In large pieces: each costs the log of a profiled process several system calls. */
static int print_text_page(const struct kp_page *p)
{
    struct kp_stream stream;
    struct kp_page page = *p;
    if (kp_stream_open(&stream, p->out))
        return print_texts(p);
    struct kp_sink sink = kp_stream_sink(stream.to);
    page.out = &sink;
    return end(&stream, print_texts(&page));
}

static int print(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s,
                 const struct kp_launches *launches, struct kp_summary *summary, char **err)
{
    struct kp_display with_code = *d;
    struct kp_page page = {
        .out = out, .display = &with_code, .session = s, .launches = launches, .summary = summary, .err = err};
    *err = NULL;
    with_code.codes = kp_code_cache_new(&launches->lookup, d->source_folders);
    if (!with_code.codes)
        return -ENOMEM;
    with_code.lookup = &launches->lookup;
    locale_t before = kp_plain_begin();
    int rc = d->format == KP_FORMAT_TEXT ? print_text_page(&page) : print_data(&page, 1);
    kp_plain_end(before);
    kp_code_cache_free(with_code.codes);
    return rc;
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
    struct kp_choice choice; /* as a page that looked at all of them has found */
};

/* What is called for each of its launches that is shown. */
struct chosen {
    const struct kp_display *display;
    uint64_t matched; /* launches so far */
    struct kp_choice choice;
    int (*fn)(struct kp_result *r, void *arg);
    void *arg;
};

/* 1, 0 or -ENOMEM. */
static int is_shown(struct chosen *c, const struct kp_launch_info *l)
{
    const struct kp_display *d = c->display;
    char *base = d->kernel ? kp_demangle_base(l->mangled ? l->mangled : "") : NULL;
    if (d->kernel && !base)
        return -ENOMEM;
    bool matches = !d->kernel || kp_pattern_match(d->kernel, base);
    free(base);
    if (!matches)
        return 0;
    uint64_t index = c->matched++;
    return index >= d->launch_skip && (!d->launch_count || index - d->launch_skip < d->launch_count);
}

static int one_stored(struct kp_result *r, void *arg)
{
    struct chosen *c = arg;
    int shown = is_shown(c, &r->launch);
    c->choice.stored++;
    c->choice.shown += shown > 0;
    return shown > 0 ? c->fn(r, c->arg) : shown;
}

static int each_stored(void *from, int (*fn)(struct kp_result *r, void *arg), void *arg, char **err)
{
    struct stored *s = from;
    struct chosen c = {.display = s->display, .fn = fn, .arg = arg};
    int rc = kp_store_each_result(s->store, one_stored, &c, err);
    if (!rc)
        s->choice = c.choice;
    return rc;
}

/* --- what was chosen so that no launch is left --- */

struct unmatched {
    struct chosen chosen;
    const char *kernel_name;
    struct kp_session seen; /* the launches' kernels */
    uint64_t launches;
    char *near; /* the name nearest to kernel_name so far */
};

static int see_near(struct unmatched *u, const struct kp_launch_info *l)
{
    char *base = kp_demangle_base(l->mangled ? l->mangled : "");
    if (!base)
        return -ENOMEM;
    const char *const both[] = {base, u->near, NULL};
    if (kp_nearest(u->kernel_name, both) != base) {
        free(base);
        return 0;
    }
    free(u->near);
    u->near = base;
    return 0;
}

static int one_unmatched(struct kp_result *r, void *arg)
{
    struct unmatched *u = arg;
    int rc = is_shown(&u->chosen, &r->launch);
    if (rc)
        return rc < 0 ? rc : ENOUGH;
    u->launches++;
    rc = see_near(u, &r->launch);
    return rc ? rc : kp_session_add_kernel(&u->seen, kp_launch_name(&r->launch), 1);
}

static void print_unmatched(struct kp_out *o, const struct unmatched *u)
{
    char number[KP_NUMBER_MAX];
    kp_format_count(u->chosen.matched, number);
    if (u->chosen.matched)
        kp_out_print(o,
                     "==KPROF== No launch is shown: of this session %s match, and all of them come before the first "
                     "one to show; lower launch-skip.\n",
                     number);
    else
        kp_out_print(o, "==KPROF== No launch is shown: no kernel of this session matches '%s' (kernel-name)%s%s%s\n",
                     u->kernel_name, u->near ? "; did you mean '" : ".", u->near ? u->near : "", u->near ? "'?" : "");
    kp_render_kernels(o, &u->seen);
}

int kp_page_tell_unmatched(const struct kp_sink *out, const struct kp_display *d, const char *kernel_name,
                           struct kp_store *store, char **err)
{
    struct unmatched u = {.chosen = {.display = d}, .kernel_name = kernel_name};
    struct kp_out o = {.sink = out, .display = d};
    int rc = kp_store_each_result(store, one_unmatched, &u, err);
    if (!rc && u.launches)
        print_unmatched(&o, &u);
    free(u.near);
    kp_session_free(&u.seen);
    return rc == ENOUGH ? 0 : rc ? rc : o.rc;
}

int kp_page_print_store(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store, char **err)
{
    return kp_page_part(out, d, store, NULL, err);
}

int kp_page_part(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store,
                 struct kp_summary *summary, char **err)
{
    struct stored stored = {.store = store, .display = d};
    bool filtered = d->kernel || d->launch_skip || d->launch_count;
    struct kp_launches launches = {each_stored, &stored, kp_store_lookup(store), filtered ? &stored.choice : NULL};
    struct kp_session session;
    int rc = kp_store_get_session(store, &session, err);
    if (rc)
        return rc;
    rc = print(out, d, &session, &launches, summary, err);
    kp_session_free(&session);
    return rc;
}

/* One of several sessions that are printed together. */
struct part {
    struct stored stored;
    struct kp_launches launches;
    struct kp_session session;
    struct kp_display display; /* with the code of the session */
};

static int open_part(struct part *part, const struct kp_display *d, struct kp_store *store, char **err)
{
    part->stored = (struct stored){.store = store, .display = d};
    part->launches = (struct kp_launches){each_stored, &part->stored, kp_store_lookup(store), NULL};
    part->display = *d;
    part->display.lookup = &part->launches.lookup;
    part->display.codes = kp_code_cache_new(&part->launches.lookup, d->source_folders);
    return part->display.codes ? kp_store_get_session(store, &part->session, err) : -ENOMEM;
}

static void close_part(struct part *part)
{
    kp_session_free(&part->session);
    kp_code_cache_free(part->display.codes);
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
        pages[i] = (struct kp_page){.out = out,
                                    .display = &part->display,
                                    .session = &part->session,
                                    .launches = &part->launches,
                                    .err = err,
                                    .shared = true};
    }
    locale_t before = kp_plain_begin();
    rc = rc ? rc : print_data(pages, n);
    kp_plain_end(before);
    for (size_t i = 0; parts && i < n; i++)
        close_part(&parts[i]);
    free(parts);
    free(pages);
    return rc;
}
