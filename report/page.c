#include "report/page_body.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/demangle.h"
#include "report/derive.h"
#include "report/options.h"
#include "report/pattern.h"
#include "report/plain.h"
#include "report/stream.h"
#include "report/summary.h"
#include "report/text.h"

enum { ENOUGH = 1 }; /* what a function returns to see no more launches; errors are negative */

static const struct page_row {
    const char *name;
    kp_page_text_fn *text;
    kp_page_csv_fn *csv;
    bool launches;       /* shows each; kp_grouped_text and kp_grouped_csv take its place where they are put together */
    const char *section; /* without which it has nothing to show; NULL: none */
} rows[KP_PAGE_IDS] = {
    [KP_PAGE_DETAILS] = {"details", kp_details_text, kp_details_csv, true, NULL},
    [KP_PAGE_RAW] = {"raw", kp_raw_text, kp_raw_csv, true, NULL},
    [KP_PAGE_SESSION] = {"session", kp_session_text, kp_session_csv, false, NULL},
    [KP_PAGE_SUMMARY] = {"summary", kp_summary_text, kp_summary_csv, false, NULL},
    [KP_PAGE_TRACE] = {"trace", kp_trace_text, kp_trace_csv, false, NULL},
    [KP_PAGE_SOURCE] = {"source", kp_source_text, kp_source_csv, false, kp_source_section},
    [KP_PAGE_PM] = {"pm", kp_pm_text, kp_pm_csv, false, "PmSampling"},
};

const char *kp_page_name(enum kp_page_id page)
{
    return rows[page].name;
}

size_t kp_page_ids(const char *list, enum kp_page_id out[KP_PAGES_MAX])
{
    const char *item;
    size_t len, n = 0;
    while (n < KP_PAGES_MAX && kp_list_next(&list, &item, &len))
        for (size_t i = 0; i < KP_PAGE_IDS; i++)
            if (strlen(rows[i].name) == len && !strncmp(rows[i].name, item, len))
                out[n++] = (enum kp_page_id)i;
    return n;
}

int kp_page_wants(struct kp_options *o)
{
    enum kp_page_id ids[KP_PAGES_MAX];
    size_t n = kp_page_ids(o->page, ids), size, found = 0;
    char *list = NULL;
    FILE *to = open_memstream(&list, &size);
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (rows[ids[i]].section)
            fprintf(to, "%s%s", found++ ? "," : "", rows[ids[i]].section);
    if (kp_text_end(to, &list)) {
        free(list);
        return -ENOMEM;
    }
    if (!found) {
        free(list);
        return 0;
    }
    free(o->section);
    o->section = list;
    if (found == n)
        *o->set = '\0';
    return 0;
}

/* --- words and numbers --- */

const char *kp_process_name(const struct kp_session *s)
{
    const char *exe = s->exe ? s->exe : "", *slash = strrchr(exe, '/');
    return slash ? slash + 1 : exe;
}

char *kp_line_full_title(struct kp_out *o, const struct kp_line *l)
{
    char *title = kp_line_title(o, l), *full;
    if (!title || l->kind != KP_ROW_ITEM || !*l->group || o->display->naming == KP_NAMING_NAME)
        return title;
    if (asprintf(&full, "%s: %s", l->group, title) < 0)
        full = NULL;
    free(title);
    return kp_out_has(o, full) ? full : NULL;
}

void kp_number_cell(double value, bool plain, char out[KP_NUMBER_MAX])
{
    if (plain)
        kp_plain_real(value, out);
    else
        kp_format_real(value, out);
}

void kp_count_cell(uint64_t value, bool plain, char out[KP_NUMBER_MAX])
{
    if (plain)
        snprintf(out, KP_NUMBER_MAX, "%" PRIu64, value);
    else
        kp_format_count(value, out);
}

const char *kp_plain_value(const struct kp_metric *m, char number[KP_NUMBER_MAX])
{
    if (!m || m->kind == KP_VALUE_NA)
        return KP_NO_VALUE;
    if (m->kind == KP_VALUE_TEXT)
        return m->text;
    if (m->kind == KP_VALUE_COUNT)
        kp_count_cell(m->count, true, number);
    else
        kp_plain_real(m->real, number);
    return number;
}

struct each {
    int (*fn)(struct kp_result *r, void *arg);
    void *arg;
    bool range_names;
};

static int one_derived(struct kp_result *r, void *arg)
{
    const struct each *e = arg;
    char *own = r->launch.demangled, *renamed = NULL;
    int rc = kp_derive_users(r);
    if (!rc && e->range_names)
        rc = kp_launch_range_name(&r->launch, &renamed);
    r->launch.demangled = renamed ? renamed : own;
    if (!rc)
        rc = e->fn(r, e->arg);
    r->launch.demangled = own; /* whose launch it is may show it again */
    free(renamed);
    return rc;
}

int kp_page_each(const struct kp_page *p, int (*fn)(struct kp_result *r, void *arg), void *arg)
{
    struct each e = {fn, arg, p->display->range_names};
    return p->launches->each(p->launches->from, one_derived, &e, p->err);
}

/* --- the details page as text --- */

struct details {
    struct kp_summary *summary;
    struct kp_stack_totals stacks;
    const struct kp_page *page;
};

static int one_launch(struct kp_result *r, void *arg)
{
    struct details *d = arg;
    int rc = kp_stack_totals_add(&d->stacks, r);
    return rc ? rc : kp_render_launch(d->page->out, d->page->display, d->page->session, r, d->summary);
}

int kp_details_text(const struct kp_page *p)
{
    struct details details = {.summary = p->summary ? p->summary : kp_summary_new(), .page = p};
    struct kp_out o = {.sink = p->out, .display = p->display};
    int rc = kp_page_each(p, one_launch, &details);
    if (!rc)
        kp_stack_totals_render(&o, &details.stacks);
    rc = rc ? rc : o.rc;
    kp_stack_totals_free(&details.stacks);
    if (p->summary)
        return rc;
    if (!rc && details.summary)
        rc = kp_summary_render(details.summary, p->out);
    kp_summary_free(details.summary);
    return rc;
}

/* --- all pages --- */

static int print_text(const struct kp_page *p, enum kp_page_id id)
{
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

static int print_csv(struct kp_page *pages, size_t n, FILE *to)
{
    const struct kp_display *d = pages->display;
    struct kp_csv csv = {.to = to, .defuse = d->csv_defuse};
    enum kp_page_id id = d->n_pages ? d->pages[0] : KP_PAGE_DETAILS;
    if (d->grouping && rows[id].launches)
        return kp_grouped_csv(pages, n, &csv);
    int rc = rows[id].launches ? find_nvtx(pages, n) : 0;
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
